"""A fitted model in words and tables: for `fit` and `info`."""

from __future__ import annotations

from typing import Any

from mixent.cli.screen import Screen, count, grid, shown

MOST_ROWS = 30


def describe(model: Any) -> dict[str, Any]:
    """What a model is, in plain values."""
    run, gaussian = model.run_, model.problem_.family.gaussian
    found: dict[str, Any] = {
        "columns": [
            {"name": c.name, "kind": c.kind, "categories": [_plain(v) for v in c.categories]}
            for c in model.schema_.columns
        ],
        "n_parameters": int(model.n_parameters_),
        "run": {
            "status": run.status.name.lower(),
            "ok": run.status.ok,
            "passes": int(run.n_passes),
            "objective": float(run.objective),
            "message": run.message,
        },
    }
    if hasattr(model, "classes_"):
        structures = [None] * len(model.classes_) if gaussian is None else model.covariance_
        values = zip(model.classes_, model.class_prior_, model.n_components_, structures)
        found["classes"] = [
            {"class": _plain(c), "prior": float(p), "components": int(k), "covariance": s} for c, p, k, s in values
        ]
        found["covariance_shared_by_classes"] = gaussian is not None and len(model.classes_) > len(gaussian.groups)
        found["temperature"] = float(model.temperature_)
    else:
        found["components"] = [{"component": k, "weight": float(w)} for k, w in enumerate(model.weights_)]
        found["covariance"] = model.covariance_
    return found


def show_model(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None = None) -> None:
    """Print classes (or components), structure and how the fit ended."""
    if "classes" in about:
        _show_classes(screen, about, n_rows)
    else:
        _show_clusters(screen, about)
    run = about["run"]
    colour, word = ("green", "Converged") if run["ok"] else ("yellow", "Did not converge")
    screen.say(f"[{colour}]{word}[/] after {count(run['passes'], 'pass')}: {shown(run['message'])}")


def _show_classes(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None) -> None:
    table = grid("class", *(["rows"] if n_rows else []), "prior", "components", "covariance")
    for entry in about["classes"][:MOST_ROWS]:
        rows = [f"{n_rows.get(entry['class'], 0):g}"] if n_rows else []
        structure = entry["covariance"] or "-"
        table.add_row(shown(entry["class"]), *rows, f"{entry['prior']:.3f}", str(entry["components"]), structure)
    screen.show(table)
    _more(screen, about["classes"])
    if about["covariance_shared_by_classes"]:
        screen.say("All classes share what the structure calls equal.")
    if about["temperature"] != 1.0:
        screen.say(_temperature(about["temperature"]))


def _temperature(value: float) -> str:
    """Log posteriors times `value`: below 1 they come closer to each other."""
    done, was = ("softened", "over-confident") if value < 1 else ("sharpened", "under-confident")
    return f"Probabilities {done} (temperature {value:.3g}): the model was {was} on held-out rows."


def _show_clusters(screen: Screen, about: dict[str, Any]) -> None:
    table = grid("component", "weight")
    for entry in about["components"][:MOST_ROWS]:
        table.add_row(str(entry["component"]), f"{entry['weight']:.3f}")
    screen.show(table)
    _more(screen, about["components"])
    if about["covariance"]:
        screen.say(f"Covariance structure {about['covariance']}.")


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
