"""Ensembles in plain values, in words and in a section: what was combined, how good each was, what its labels say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table
from mixent.base.document import canvas as figure
from mixent.base.style import FAINT, INK, colour, plain, tidy
from mixent.base.text import class_name, count
from mixent.data.labels import as_labels, labelled_rows
from mixent.displays import ConstraintsDisplay
from mixent.ensemble import HMMStackingClassifier, MaxEntStackingClassifier, OutputColumns, TunedClassifier
from mixent.ensemble.boosting import BaseBoosting
from mixent.ensemble.stacking import BaseStacking
from mixent.maxent.contributions import feature_contributions, strongest_value

ENSEMBLES = (BaseStacking, BaseBoosting)
DRAWN = 6  # features whose values are drawn
LISTED = 12  # classifiers, or stages
HOW = {"train": "on the rows they were trained on", "prefit": "on the rows the combination learned from"}
CELLS = {
    "union": "hidden components of a mixture per class",
    "class": "hidden components of each class's own mixture",
    "pooled": "hidden components of one mixture",
}


def describe_ensemble(model: Any) -> dict[str, Any]:
    """A fitted ensemble in values that JSON can hold."""
    classes = [{"class": c, "prior": float(p)} for c, p in zip(model.classes_.tolist(), model.class_prior_)]
    return {"classes": classes} | (_boosting(model) if isinstance(model, BaseBoosting) else _stack(model))


def _stack(model: Any) -> dict[str, Any]:
    kinds = _kinds(model)
    classifiers = [
        {"name": name, "kind": kind, "labels": len(alphabet), "error": _finite(error)}
        for name, kind, alphabet, error in zip(model.base_names_, kinds, model.alphabets_, model.base_errors_)
    ]
    about: dict[str, Any] = {"classifiers": classifiers, "errors": _how(model), "decisions": model.decisions}
    if isinstance(model, HMMStackingClassifier):
        stays = [float(np.einsum("...ii->...i", trans).mean()) if trans.size else None for trans in model.transitions_]
        return about | {
            "combination": "hmm",
            "transitions": model.transitions,
            "chains": [
                {"class": c, "first": dict(zip(map(str, model.classes_.tolist()), first)), "stays": stay}
                for c, first, stay in zip(model.classes_.tolist(), model.start_.tolist(), stays)
            ],
            "temperature": float(model.temperature_),
        }
    found = model.constraint_table()
    alone, placed = strengths(model)
    for entry in classifiers:
        entry["strength"] = alone[entry["name"]]
        entry |= {"strength_of_place": placed[entry["name"]]} if placed else {}
    shares = model.truth_[0][model.truth_[0] > 0]  # of the training rows, as the entropy is
    return about | {
        "combination": "maxent",
        "constraints_of": model.constraints,
        "constraints": len(found.features) * len(found.classes),
        "latent": model.regions_[0].kind if model.regions_ else None,
        "input_cells": [len(cells.names) for cells in dict.fromkeys(model.regions_)],
        "certificate": {"gap": _finite(model.gap_), "residual": float(model.residual_)},
        "entropy": float(model.entropy_),
        "entropy_of_classes": -float(shares @ np.log(shares)),
        "n_parameters": int(model.n_parameters_),
    }


def _how(model: Any) -> str:
    if isinstance(model.cv, str):
        return HOW[model.cv]
    read = isinstance(model.fitted_, list) and all(isinstance(base, OutputColumns) for base in model.fitted_)
    return "of the answers as they stand" if read else "out of fold"


def _kinds(model: Any) -> list[str]:
    """What each classifier is; stages are what their ensemble is made of."""
    if isinstance(model.fitted_, list):
        return [_kind(base) for base in model.fitted_]
    stages = getattr(model.fitted_, "estimators_", [None])
    stage = stages[0][0] if isinstance(stages[0], list) else stages[0]
    return [_kind(stage)] * len(model.base_names_)


def _kind(base: Any) -> str:
    if isinstance(base, OutputColumns):
        return f"column{'s' * (len(base.used) > 1)} {', '.join(map(str, base.used))}"
    if isinstance(base, TunedClassifier):
        return type(base.model_).__name__
    steps = getattr(base, "steps", None)
    return type(steps[-1][1] if steps else base).__name__


def strengths(model: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Standard deviation of each classifier's part of the log-odds, and of what the row's place adds to it, nats."""
    found = model.constraint_table().strength
    pairs = [(term.first.name, term.name) for term in model.layout_.terms if hasattr(term, "first")]
    return {name: found[name] for name in model.base_names_}, (
        dict.fromkeys(model.base_names_, 0.0) | {name: found[both] for name, both in pairs} if pairs else {}
    )


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _boosting(model: Any) -> dict[str, Any]:
    contests = getattr(model, "binary_boostings_", None)
    if contests is None or len(contests) == 1:
        runs = [(None, model.estimators_, model.alphas_, model.errors_, model.bound_, model.stopped_)]
    else:
        runs = [
            (c, run.estimators, run.alphas, run.errors, run.bound, run.stopped)
            for c, run in zip(model.classes_.tolist(), contests)
        ]
    return {
        "base": _kind(runs[0][1][0]),
        "weighted": contests is not None,
        "most_stages": int(model.n_estimators),
        "boosting": [
            {
                "class": c,
                "stages": [
                    {"error": float(e), "alpha": float(a), "bound": _finite(b)}
                    for e, a, b in zip(errors, alphas, bound)
                ],
                "stopped": stopped,
            }
            for c, _, alphas, errors, bound, stopped in runs
        ],
    }


def ensemble_in_words(about: dict[str, Any]) -> list[str]:
    """What `describe_ensemble` found, a sentence each without its full stop."""
    return _boosting_in_words(about) if "boosting" in about else _stack_in_words(about)


def _stack_in_words(about: dict[str, Any]) -> list[str]:
    n = count(len(about["classifiers"]), "classifier")
    said = {"hard": ", by their labels alone", "soft": ", by their probabilities"}.get(about["decisions"], "")
    if about["combination"] == "hmm":
        each = "each step has its own transitions" if about["transitions"] == "per_step" else "all steps alike"
        return [f"{n} combined by a hidden Markov model per class of the sequence of their decisions{said}; {each}"]
    diagonal = ", of each class with its own label" * (about["constraints_of"] == "diagonal")
    first = f"{n} combined by maximum entropy{said}: {count(about['constraints'], 'constraint')}{diagonal}"
    if about["latent"] is None:
        return [first]
    cells = " and ".join(map(str, about["input_cells"]))
    where = f"{cells} cell{'s' * (about['input_cells'] != [1])} of the input space, {CELLS[about['latent']]}"
    return [first, f"They are believed according to where the row lies: {where}"]


def _boosting_in_words(about: dict[str, Any]) -> list[str]:
    what = "WeightBoost" if about["weighted"] else "AdaBoost.M1"
    told = []
    for run in about["boosting"]:
        whose = "" if run["class"] is None else f"{class_name(run['class'])} against the others: "
        stages, last = run["stages"], run["stages"][-1]
        text = f"{whose}{count(len(stages), 'stage')} of at most {about['most_stages']}"
        bound = last["bound"]
        text += "; it began anew, so that the training error has no bound" if bound is None else ""
        text += "" if bound is None else f"; the training error is at most {100 * min(bound, 1):.3g} % (bound)"
        told.append(text + ("" if run["stopped"] is None else f"; ended early: {run['stopped']}"))
    return [f"{what} of {about['base']}", *told]


def ensemble_section(
    name: str, model: Any, X: Any, y: Any, *, draw: bool, held_out: float | None = None
) -> list[Content]:
    """What a fitted ensemble is made of; `held_out`: its own error on rows not seen, where it is known."""
    about = describe_ensemble(model)
    if isinstance(model, BaseBoosting):
        return _boosting_section(name, model, about, X, y, draw, held_out)
    first, *more = ensemble_in_words(about)
    facts = [f"{text}." for text in [*more, *_place(about), *_certificate(model)]]
    content: list[Content] = [Paragraph(f"{name}, fitted on all rows: {first}."), *([Bullets(facts)] if facts else [])]
    content.append(_classifiers(about, held_out))
    if draw:
        content.append(_errors(name, about, held_out))
    if isinstance(model, MaxEntStackingClassifier):
        content.append(_labels(model))
        content += [_constraints(model)] if draw else []
    else:
        content.append(_chains(about))
    return content


def _place(about: dict[str, Any]) -> list[str]:
    """For whom it matters most where the row lies."""
    placed = [e for e in about["classifiers"] if "strength_of_place" in e]
    if not placed:
        return []
    most = max(placed, key=lambda e: e["strength_of_place"])
    told = f"{most['strength_of_place']:.2f} nats beside {most['strength']:.2f} everywhere"
    return [f"The place of the row changes most what {most['name']} says: {told}"]


def _certificate(model: Any) -> list[str]:
    if isinstance(model, HMMStackingClassifier):
        t = model.temperature_
        made = "as they are" if t == 1 else f"softened by a temperature of {t:.3g}, learned on rows held out"
        return [f"Probabilities of the chains are taken {made}", *_not_converged(model)]
    chosen = " (chosen by cross-validated log-loss)" if model.priors_tried_ else ""
    facts = []
    if model.gap_ is None:
        facts.append("No prior on the multipliers: constraints are met exactly where they can be")
    else:
        facts.append(f"Prior variance of the multipliers {model.prior_:g}{chosen}")
        facts.append(f"Certificate: the objective is at most {model.gap_:.1g} nats per row below its maximum")
    facts.append(f"Constraints are met within {model.residual_:.2g}")
    shares = model.truth_[0][model.truth_[0] > 0]
    without = -float(shares @ np.log(shares))
    return [*facts, f"Entropy of the class given what is said: {model.entropy_:.3f} nats; without it {without:.3f}"]


def _not_converged(model: Any) -> list[str]:
    return [
        f"Did not converge for {class_name(c)}: {run.message}"
        for c, run in zip(model.classes_, model.runs_)
        if not run.status.ok
    ]


def _classifiers(about: dict[str, Any], held_out: float | None) -> Table:
    entries = about["classifiers"]
    best = min([e["error"] for e in entries if e["error"] is not None] + [held_out] * (held_out is not None), default=0)
    strength, place = "strength" in entries[0], "strength_of_place" in entries[0]
    rows: list = []
    for entry in entries[:LISTED]:
        error = entry["error"]
        row = [entry["name"], entry["kind"], None if error is None else _percent(error, error == best)]
        row += [Number(f"{entry['strength']:.3f}")] if strength else []
        row += [Number(f"{entry['strength_of_place']:.3f}")] if place else []
        rows.append(row)
    if held_out is not None:
        last = ["the combination", "cross-validated", _percent(held_out, held_out == best)]
        rows.append([*last, *([None] * (strength + place))])
    some = f" (the first {LISTED} of {len(entries)})" if len(entries) > LISTED else ""
    caption = f"Classifiers that are combined{some}: error {about['errors']}"
    caption += "; strength is the standard deviation of what each adds to the log-odds" if strength else ""
    caption += "; of place, what it adds beyond that, cell by cell" if place else ""
    head = ["classifier", "kind", "error (%)", *["strength (nats)"] * strength, *["strength of place (nats)"] * place]
    return Table(caption, head, rows)


def _percent(error: float, best: bool) -> Number:
    return Number(f"{100 * error:.1f}", best=best)


def _errors(name: str, about: dict[str, Any], held_out: float | None) -> Figure:
    entries = [e for e in about["classifiers"] if e["error"] is not None]
    shown = entries if len(entries) <= 3 * LISTED else entries[: 3 * LISTED]
    errors, at = 100 * np.array([e["error"] for e in shown]), np.arange(len(shown))
    canvas = figure(6.4, 1.3 + 0.28 * len(shown))
    ax = canvas.subplots()
    ax.hlines(at, 0, errors, color=FAINT, lw=1.2, zorder=1)
    ax.plot(errors, at, ls="none", marker="o", ms=6, color=colour(0), label=about["errors"], zorder=3)
    if held_out is not None:
        label = f"{plain(name, 30)}, cross-validated"
        ax.axvline(100 * held_out, color=colour(1), lw=1.6, ls=(0, (5, 2)), label=label, zorder=2)
    ax.set_yticks(at, [plain(e["name"], 30) for e in shown], fontsize="small")
    ax.set(xlabel="error (%)", xlim=(0, None), ylim=(len(shown) - 0.5, -0.5))
    ax.margins(x=0.08)
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    tidy(ax)
    ax.tick_params(axis="y", length=0)
    told = ", ".join(f"{e['name']} {100 * e['error']:.1f} %" for e in shown[:LISTED])
    alt = f"Errors of the classifiers: {told}."
    caption = f"Error of each classifier, {about['errors']}"
    caption += "." if held_out is None else f"; dashed, that of the combination: {100 * held_out:.1f} %."
    return Figure(canvas, alt, caption)


def _labels(model: Any) -> Table:
    rows: list = []
    for said in feature_contributions(model)[:LISTED]:
        value, c, nats = strongest_value(said)
        rows.append(
            [said.name, Number(f"{said.strength:.3f}"), value, class_name(model.classes_[c]), Number(f"{nats:+.2f}")]
        )
    adds = "log-odds" if len(model.classes_) == 2 else "logit, less the mean of all classes"
    caption = (
        "What is said, strongest first: the label that speaks loudest, for which class, and what it adds to the "
        f"{adds}, against the average row"
    )
    if model.regions_:
        caption += "; with & the label in a cell of the input space, where it is believed more or less than elsewhere"
    return Table(caption, ["feature", "strength (nats)", "loudest at", "speaks for", "adds (nats)"], rows)


def _constraints(model: Any) -> Figure:
    display = ConstraintsDisplay.from_estimator(model, n_features=DRAWN)
    canvas = figure(*display.size())
    display.plot(canvas.subplots())
    names = ", ".join(said.name for said in display.contributions)
    caption = "What the labels of the strongest classifiers add to the "
    caption += "log-odds" if len(model.classes_) == 2 else "logit of each class, less the mean of all classes"
    caption += ", against the average row; beside each label its share of the rows."
    return Figure(canvas, f"Parts of the log-odds by label of {names}.", caption)


def _chains(about: dict[str, Any]) -> Table:
    names = list(about["chains"][0]["first"])[:LISTED]
    rows: list = [
        [class_name(e["class"]), *(Number(f"{e['first'][n]:.2f}") for n in names), _stays(e)]
        for e in about["chains"][:LISTED]
    ]
    caption = (
        "The chain of each class: probability of each first decision, and how often, averaged over steps and "
        "decisions, a classifier decides as the one before it"
    )
    return Table(caption, ["class", *(f"first {name}" for name in names), "the same again"], rows)


def _stays(chain: dict[str, Any]) -> Number | None:
    return None if chain["stays"] is None else Number(f"{chain['stays']:.2f}")


def _boosting_section(
    name: str, model: Any, about: dict[str, Any], X: Any, y: Any, draw: bool, held_out: float | None
) -> list[Content]:
    first, *more = ensemble_in_words(about)
    content: list[Content] = [
        Paragraph(f"{name}, fitted on all rows: {first}, each stage trained on what the last ones got wrong."),
        Bullets([f"{text}." for text in more]),
        *(_stages(run) for run in about["boosting"][:LISTED]),
    ]
    if draw and X is not None:
        content.append(_by_stage(name, model, about, X, y, held_out))
    return content


def _stages(run: dict[str, Any]) -> Table:
    rows: list = [
        [m + 1, Number(f"{100 * s['error']:.1f}"), Number(f"{s['alpha']:.3f}"), Number(f"{100 * s['bound']:.1f}")]
        for m, s in enumerate(run["stages"][:LISTED])
    ]
    n, whose = len(run["stages"]), "" if run["class"] is None else f", {class_name(run['class'])} against the others"
    some = f" (the first {LISTED} of {n})" if n > LISTED else ""
    caption = (
        f"Stages{some}{whose}: error on the weighted rows it was trained on, weight of its vote, and the bound of "
    )
    return Table(f"{caption}the training error", ["stage", "weighted error (%)", "vote", "bound (%)"], rows)


def _by_stage(name: str, model: Any, about: dict[str, Any], X: Any, y: Any, held_out: float | None) -> Figure:
    """The error of the rows after each stage, the bound, and what each stage alone gets wrong of its weight."""
    from sklearn.utils import _safe_indexing

    y = as_labels(y)
    known = np.flatnonzero(labelled_rows(y))
    truth = [str(label) for label in y[known]]
    wrong = [_share_wrong(said, truth) for said in model.staged_predict(_safe_indexing(X, known))]
    stages = np.arange(1, len(wrong) + 1)
    canvas = figure(6.4, 3.8)
    ax = canvas.subplots()
    ax.plot(stages, 100 * np.array(wrong), color=colour(0), lw=1.8, marker="o", ms=3, label="rows fitted to")
    if len(about["boosting"]) == 1:
        run = about["boosting"][0]["stages"]
        bound = 100 * np.minimum(np.array([s["bound"] for s in run], dtype=float), 1.0)
        ax.plot(stages, bound, color=colour(1), lw=1.4, ls=(0, (5, 2)), label="bound")
        alone = 100 * np.array([s["error"] for s in run])
        ax.plot(stages, alone, color=colour(2), lw=0, marker="^", ms=4, label="stage alone, weighted rows")
    if held_out is not None:
        ax.axhline(100 * held_out, color=INK, lw=1, ls=(0, (1, 1.5)), label="cross-validated, all stages")
    ax.set(xlabel="stages", ylabel="error (%)", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    tidy(ax)
    alt = f"Error of {name} by stage: from {100 * wrong[0]:.1f} % to {100 * wrong[-1]:.1f} % of the rows fitted to."
    caption = f"Error of the rows it was fitted to after each stage: {100 * wrong[0]:.1f} % after the first, "
    caption += f"{100 * wrong[-1]:.1f} % after the last"
    if len(about["boosting"]) == 1 and about["boosting"][0]["stages"][-1]["bound"] is not None:
        caption += ", never above the bound"  # boosting that began anew has none
    caption += "." if held_out is None else f". On rows not seen it is {100 * held_out:.1f} %."
    return Figure(canvas, alt, caption)


def _share_wrong(said: Sequence[Any], truth: list[str]) -> float:
    return float(np.mean([str(label) != true for label, true in zip(said, truth)]))
