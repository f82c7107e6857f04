"""A fitted model in words and tables: for `fit` and `info`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mixent.base.text import count
from mixent.cli.console import Screen, grid, named, shown
from mixent.cli.data import schema_of
from mixent.cli.summary_classical import describe_classical, is_classical, show_classical
from mixent.cli.summary_ensemble import describe_ensembles, is_ensemble, show_ensemble
from mixent.cli.summary_fusion import show_fusion
from mixent.cli.summary_maxent import describe_joint, describe_maxent, endless_multipliers, show_maxent
from mixent.cli.summary_med import describe_med, show_med
from mixent.cli.summary_structures import describe_structures, has_structure, show_structures

MOST_ROWS = 30


def describe(model: Any) -> dict[str, Any]:
    """What a model is, in plain values."""
    if hasattr(model, "rank_"):  # a Fisher kernel
        return describe(model.model_) | {"fisher_features": int(model.rank_)}
    if hasattr(model, "rule_"):  # a fusion
        from mixent.report.fusion_words import describe_fusion

        return describe_fusion(model)
    found: dict[str, Any] = {
        "columns": [
            {"name": c.name, "kind": c.kind, "categories": [_plain(v) for v in c.categories]}
            for c in schema_of(model).columns
        ]
    }
    if hasattr(model, "run_") or hasattr(model, "runs_"):  # boosting has none: it ends when it ends
        found["run"] = _run(model)
    if is_ensemble(model):
        return found | describe_ensembles(model)
    if has_structure(model):
        return found | describe_structures(model)
    if hasattr(model, "multipliers_"):
        return found | describe_med(model)
    if is_classical(model):
        return found | describe_classical(model)
    found["n_parameters"] = int(model.n_parameters_)
    if hasattr(model, "layout_"):
        return found | describe_maxent(model)
    if hasattr(model, "terms_"):
        return found | describe_joint(model)
    if hasattr(model, "classes_"):
        found |= _classes(model)
    else:
        found["components"] = [{"component": k, "weight": float(w)} for k, w in enumerate(model.weights_)]
        found["covariance"] = model.covariance_
    if model.path_:
        found["path"] = _path(model)
    return found


def _run(model: Any) -> dict[str, Any]:
    """How the fit ended; to stand still on the way to infinity is not to converge."""
    if hasattr(model, "runs_"):  # one for each class: the worst speaks for all
        run = max(model.runs_, key=lambda one: (not one.status.ok, one.n_passes))
        run = replace(run, objective=sum(one.objective for one in model.runs_))
    else:
        run = model.run_
    endless = endless_multipliers(model) if run.status.name == "CONVERGED" else None
    return {
        "status": run.status.name.lower() if endless is None else "endless",
        "ok": run.status.ok and endless is None,
        "passes": int(run.n_passes),
        "objective": float(run.objective),
        "message": run.message if endless is None else endless,
    }


def _classes(model: Any) -> dict[str, Any]:
    from mixent.mixtures.options import training_name

    gaussian, names = model.problem_.family.gaussian, [_plain(c) for c in model.classes_]
    found: dict[str, Any] = {"objective": training_name(model)}
    if found["objective"] == "conditional":
        found["alpha"] = float(model._group("training").blend)
    found["temperature"] = float(model.temperature_)
    found["classes"] = [{"class": c, "prior": float(p)} for c, p in zip(names, model.class_prior_)]
    if isinstance(model.covariance_, str):  # components that all classes share
        found["covariance"] = None if gaussian is None else model.covariance_
        shares, weights = model.class_given_component_.T.tolist(), model.weights_.sum(axis=0).tolist()
        found["components"] = [
            {"component": k, "weight": w, "classes": dict(zip(map(str, names), p))}
            for k, (w, p) in enumerate(zip(weights, shares))
        ]
        return found
    structures = [None] * len(names) if gaussian is None else model.covariance_
    for entry, k, s in zip(found["classes"], model.n_components_, structures):
        entry |= {"components": int(k), "covariance": s}
    found["covariance_shared_by_classes"] = gaussian is not None and len(names) > len(gaussian.groups)
    return found


def _path(model: Any) -> list[dict[str, Any]]:
    """Every stage of growth: of the whole mixture, or class by class."""
    by_class = isinstance(model.path_[0], list)
    paths = zip([_plain(c) for c in model.classes_], model.path_) if by_class else [(None, model.path_)]
    return [
        ({"class": name} if by_class else {})
        | {"n_components": int(stage.n_components), "covariance": stage.covariance}
        | {"log_likelihood": float(stage.log_likelihood), "n_free": int(stage.n_free)}
        for name, path in paths
        for stage in path
    ]


def show_model(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None = None) -> None:
    """Print classes, components or features, structure and how the fit ended."""
    if "fusion" in about:
        show_fusion(screen, about)
        return
    if "classifiers" in about or "boosting" in about:
        show_ensemble(screen, about, n_rows)
    elif "certificate" in about or "cells" in about:
        show_maxent(screen, about, n_rows)
    elif "classical" in about:
        show_classical(screen, about, n_rows)
    elif "words" in about:
        show_structures(screen, about, n_rows)
    elif "support" in about:
        show_med(screen, about, n_rows)
    elif "classes" in about:
        _show_classes(screen, about, n_rows)
    if "components" in about:
        _show_components(screen, about)
    if "fisher_features" in about:
        model = "model" if "chains" in about else "mixture"
        screen.say(f"Fisher kernel of this {model}: {count(about['fisher_features'], 'feature')}.")
    if about.get("temperature", 1.0) != 1.0:
        screen.say(_temperature(about["temperature"]))
    if about.get("objective", "likelihood") not in ("likelihood", "margin", "bayes"):
        screen.say(_objective(about))
    if "path" in about and "certificate" not in about:
        screen.say(_growth(about))
    if "run" not in about:
        return
    run = about["run"]
    colour, word = ("green", "Converged") if run["ok"] else ("yellow", "Did not converge")
    word = "Stopped" if run["status"] in ("stopped", "endless") else word
    said = run["message"].removeprefix("converged: ")
    screen.say(f"[{colour}]{word}[/] after {count(run['passes'], 'pass')}: {shown(said)}")


def _show_classes(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None) -> None:
    own = "components" not in about
    table = grid("class", *(["rows"] if n_rows else []), "prior", *(["components", "covariance"] if own else []))
    for entry in about["classes"][:MOST_ROWS]:
        rows = [f"{n_rows.get(entry['class'], 0):g}"] if n_rows else []
        rest = [str(entry["components"]), entry["covariance"] or "-"] if own else []
        table.add_row(shown(entry["class"]), *rows, f"{entry['prior']:.3f}", *rest)
    screen.show(table)
    _more(screen, about["classes"])
    if own and about["covariance_shared_by_classes"]:
        screen.say("All classes share what the structure calls equal.")
    if not own:
        screen.say()


def _show_components(screen: Screen, about: dict[str, Any]) -> None:
    table = grid("component", "weight")
    shared = "classes" in about
    if shared:
        table.add_column("speaks for: p(class | component)", overflow="fold")
    for entry in about["components"][:MOST_ROWS]:
        table.add_row(
            str(entry["component"]), f"{entry['weight']:.3f}", *([_spoken(entry["classes"])] if shared else [])
        )
    screen.show(table)
    _more(screen, about["components"])
    if about["covariance"]:
        screen.say(f"Covariance structure {about['covariance']}.")


def _spoken(shares: dict[str, float], most: int = 4) -> str:
    """Classes by falling share, those below half a per cent left out."""
    top = sorted(((p, name) for name, p in shares.items() if p >= 0.005), key=lambda pair: -pair[0])
    told = [f"{named(name)}: {100 * p:.0f} %" for p, name in top[:most]]
    return ", ".join(told + ["..."] * (len(top) > most))


def _objective(about: dict[str, Any]) -> str:
    if about["objective"] == "error":
        return "Trained for few errors (objective error): its densities are no longer those of the rows."
    what = "the classes given the rows (objective conditional"
    what += ")" if about["alpha"] == 1.0 else f", alpha {about['alpha']:g})"
    return f"Trained for {what}: its densities are no longer those of the rows."


def _growth(about: dict[str, Any]) -> str:
    """The path of growth in one line."""
    stages = about["path"]
    if "class" not in stages[0]:
        values = ", ".join(f"{stage['log_likelihood']:.6g}" for stage in stages)
        first, last = stages[0]["n_components"], stages[-1]["n_components"]
        left = len(about["components"])
        return f"Grown from {first} to {count(last, 'component')}: log-likelihood {values}; {left} kept."
    ends: dict[Any, list[int]] = {}
    for stage in stages:
        ends.setdefault(stage["class"], []).append(stage["n_components"])
    kept = {entry["class"]: entry["components"] for entry in about["classes"]}
    told = [
        f"{named(c)}: {min(n)} to {count(max(n), 'component')} ({kept[c]} kept)"
        for c, n in list(ends.items())[:MOST_ROWS]
    ]
    return "Grown one component at a time: " + ", ".join(told) + "."


def _temperature(value: float) -> str:
    """Log posteriors times `value`: below 1 they come closer to each other."""
    done, was = ("softened", "over-confident") if value < 1 else ("sharpened", "under-confident")
    return f"Probabilities {done} (temperature {value:.3g}): the model was {was} on held-out rows."


def show_columns(screen: Screen, about: dict[str, Any]) -> None:
    """Print columns and their kinds."""
    table = grid("column", "kind")
    table.columns[1].justify = "left"
    table.add_column("values", overflow="fold")
    for column in about["columns"][:MOST_ROWS]:
        values = [shown(v) for v in column["categories"][:10]] + ["..."] * (len(column["categories"]) > 10)
        table.add_row(shown(column["name"]), column["kind"], ", ".join(values))
    screen.show(table)
    _more(screen, about["columns"])


def _more(screen: Screen, entries: list) -> None:
    if len(entries) > MOST_ROWS:
        screen.say(f"... and {len(entries) - MOST_ROWS} more")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
