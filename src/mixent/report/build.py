"""The report of a comparison: what was done, who leads, how sure that is, pictures, how to do it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mixent.evaluate.bounds import ErrorReport, error_bounds
from mixent.evaluate.displays import (
    CalibrationDisplay,
    ComponentsDisplay,
    ConfusionDisplay,
    ConvergenceDisplay,
    GrowthDisplay,
    RegionsDisplay,
    SelectionDisplay,
    UncertaintyDisplay,
)
from mixent.evaluate.displays.palette import class_name
from mixent.evaluate.labels import as_labels, encode, labelled_rows
from mixent.evaluate.scores import calibration_error
from mixent.evaluate.validate import CrossValidation
from mixent.report.common import can_draw as _can_draw
from mixent.report.common import count as _count
from mixent.report.common import figure as _figure
from mixent.report.common import reproduce
from mixent.report.ensembles import ENSEMBLES, ensemble_section
from mixent.report.html import Bullets, Content, Figure, Number, Paragraph, Section, Table, readable, write_report
from mixent.report.maxent import maxent_section
from mixent.report.med import med_section
from mixent.report.sequences import sequences_section
from mixent.report.structures import OF_MODELS
from mixent.report.trees import structures_section

SHOWN = {  # metric: (heading, factor, decimals)
    "error": ("error (%)", 100, 1),
    "balanced_error": ("balanced error (%)", 100, 1),
    "log_loss": ("log-loss (nats)", 1, 3),
    "brier": ("Brier", 1, 3),
    "calibration": ("calibration (%)", 100, 1),
    "fit_seconds": ("fit (s)", 1, 3),
}

NOTHING = 1e-6  # of its standard deviation: a mean below this is 0
BOUNDS = {  # quantity of an ErrorReport: (heading, factor, decimals)
    "error": ("error (%)", 100, 1),
    "expected_error": ("error it expects (%)", 100, 1),
    "log_loss": ("log-loss (nats)", 1, 3),
    "entropy": ("own entropy (nats)", 1, 3),
    "overconfidence": ("overconfidence (nats)", 1, 3),
}
SAME = ("log_loss", "error", "temperature")  # equal in these, two models of a search are the same to a reader
LEFT_OUT = ("chosen", "evaluations", "log_loss_raw")  # of a search: not for readers of a page
IDLE = (
    "across_classes",
    "prior_rows",
    "prior_local",
    "noise",
    "temperature",
    "folds",
    "converged",
)  # told if they differ
FEW_PASSES = 4  # fewer are told in a sentence, not drawn


def comparison_report(
    path: Any,
    *,
    title: str,
    cv: CrossValidation,
    data_notes: Sequence[str] = (),
    models: Mapping[str, Any] | None = None,
    X: Any = None,
    y: Any = None,
    commands: str = "",
) -> Path:
    """Write the report of a cross-validation as one HTML file and return its path.

    Parameters
    ----------
    path : where to write
    title : heading of the page
    cv : what `cross_validate` returned
    data_notes : sentences on what was found in the data and done about it
    models : name to estimator fitted on all rows, for the map and the section of each model
    X, y : the data behind `models`
    commands : what to type to get this again

    Pieces that cannot be made (no matplotlib, no component model, columns that are no numbers) are left out.
    """
    models = dict(models or {})
    y = cv.y if y is None else as_labels(y)
    leader = next(iter(cv.ranking()), None)
    sections = [Section("What was done", _data(cv, X, data_notes)), Section("Comparison of methods", _comparison(cv))]
    if leader is not None:
        sections.append(Section("Errors, made and expected", _bounds(cv)))
    if leader is not None and _can_draw():
        sections.append(Section("Calibration", _calibration(cv)))
        sections.append(Section("Errors of the leading method", _errors(cv, leader)))
    if X is not None and _can_draw():
        sections.append(Section("Map of two columns", _map(models, leader, X, y)))
    fitted = {n: m for n, m in models.items() if _has_section(m)}
    for name, model in fitted.items():
        only, content = _model(name, model, X, y, _held_out(cv, name))
        sections.append(Section(only if len(fitted) == 1 else f"The model: {name}", content))
    sections.append(Section("How to reproduce", reproduce(commands, cv.random_state)))
    return write_report(path, title, [section for section in sections if section.content])


def _data(cv: CrossValidation, X: Any, notes: Sequence[str]) -> list[Content]:
    known = labelled_rows(cv.y)
    counts = np.bincount(encode(cv.y[known], cv.classes), minlength=len(cv.classes))
    columns = "" if X is None else f" and {_count(np.shape(X)[1], 'column')}"
    repeats, folds = len(cv.folds), int(cv.folds.max()) + 1
    text = (
        f"{_count(len(cv.methods), 'method')} on a table of {_count(len(cv.y), 'row')}{columns}, "
        f"{len(cv.classes)} classes. Each method was fitted and scored in {folds}-fold stratified cross-validation"
        + (f", repeated {repeats} times" if repeats > 1 else "")
        + "; all methods saw the same folds, and every score is on rows the method had not seen."
    )
    if cv.sample_weight is not None:
        text += " Rows are weighted, in fitting and in every score."
    found = list(notes)
    helpless = list(dict.fromkeys(r["method"] for r in cv.records if r["labelled_only"]))
    if not known.all():
        told = f"{_count(np.sum(~known), 'row')} without a label: always in training, never scored"
        found.append(told + (f"; left out by {', '.join(helpless)}, which cannot use them." if helpless else "."))
    found += [f"{method} failed: {message}" for method, message in cv.failures.items()]
    order = np.argsort(-counts, kind="stable")
    rows: list = [[str(cv.classes[c]), int(counts[c]), Number(f"{100 * counts[c] / counts.sum():.1f}")] for c in order]
    table = Table("Labelled rows of each class", ["class", "rows", "share (%)"], rows)
    return [Paragraph(text), *([Bullets(found)] if found else []), table]


def _comparison(cv: CrossValidation) -> list[Content]:
    ranking = cv.ranking()
    means = {(s["method"], s["metric"]): s for s in cv.summary()}
    best = {metric: min((means[m, metric]["mean"] for m in ranking), default=None) for metric in SHOWN}
    rows = []
    for method in [*ranking, *(m for m in cv.methods if m not in ranking)]:
        whole = method in ranking
        cells = [_score(means[method, metric], metric, whole and best[metric]) for metric in SHOWN]
        rows.append([method, *cells])
    caption = "Mean ± standard deviation over the folds; lower is better everywhere; the best of each column is marked"
    return [Paragraph(leader_in_words(cv)), Table(caption, ["method", *(h for h, _, _ in SHOWN.values())], rows)]


def _score(entry: Mapping[str, Any], metric: str, best: Any) -> Number | None:
    _, factor, digits = SHOWN[metric]
    if not np.isfinite(entry["mean"]):
        return None
    text = f"{factor * entry['mean']:.{digits}f}"
    if np.isfinite(entry["sd"]):
        text += f" ± {factor * entry['sd']:.{digits}f}"
    return Number(text, best=best is not False and entry["mean"] == best)


def leader_in_words(cv: CrossValidation) -> str:
    """Who leads by log-loss, and whether the lead over the runner-up exceeds the noise between folds."""
    ranking = cv.ranking("log_loss")
    if not ranking:
        return "No method worked in every fold, so none leads; see above for the errors."
    first, loss = ranking[0], float(cv.values(ranking[0], "log_loss").mean())
    if len(cv.methods) == 1:
        return f"{first} was the only method run: log-loss {loss:.3f} nats."
    if len(ranking) == 1:
        return f"{first} is the only method that worked in every fold: log-loss {loss:.3f} nats."
    second = ranking[1]
    gap = cv.difference(second, first, "log_loss")
    text = f"{first} has the lowest log-loss ({loss:.3f} nats); {second} follows, {gap['mean']:.3f} nats behind. "
    if not np.isfinite(gap["p_value"]):
        text += "One fold says nothing about noise."
    elif gap["p_value"] < 0.05:
        text += f"The difference exceeds the noise between folds (p {_p(gap['p_value'])}"
    else:
        text += f"The difference is within the noise between folds (p {_p(gap['p_value'])}"
    if np.isfinite(gap["p_value"]):
        text += "; paired t-test, corrected for the training rows that folds share)."
    sharp = cv.ranking("error")[0]
    if sharp != first and cv.values(sharp, "error").mean() < cv.values(first, "error").mean():
        text += f" The fewest errors are made by {sharp} ({100 * cv.values(sharp, 'error').mean():.1f}\u00a0%)."
    return text


def _p(value: float) -> str:
    return f"= {value:.2f}" if value >= 0.01 else "< 0.01"


def _bounds(cv: CrossValidation) -> list[Content]:
    """What each method expects of itself beside what happened, on rows not used for fitting."""
    reports = {}
    for method in cv.ranking():
        y, proba, weight = _out_of_fold(cv, method)
        reports[method] = error_bounds(y, proba, cv.classes, sample_weight=weight)
    head = next(iter(reports.values()))
    rows: list = [[method, *(_quantity(report, name) for name in BOUNDS)] for method, report in reports.items()]
    caption = (
        f"Value ± standard error on {_count(head.n_rows, 'row')} not used for fitting, all folds together; rows taken "
        "as independent"
    )
    told = [f"{BOUNDS[name][0].split(' (')[0]}: {head.quantities[name].meaning}" for name in BOUNDS]
    told[-1] = told[-1].replace(": ", ": log-loss minus own entropy, ")
    text = (
        "Here p is the truth, q a method's probabilities, J the error of its decisions, H the entropy, and E D the "
        "divergence of q from p. Labels cannot show the Bayes error, the least any classifier could make: log-loss is "
        "H(Y|X), which no method can lower, plus E D, which a better one could."
    )
    table = Table(caption, ["method", *(heading for heading, _, _ in BOUNDS.values())], rows)
    return [table, Paragraph(text), Bullets(told)]


def _quantity(report: ErrorReport, name: str) -> Number:
    _, factor, digits = BOUNDS[name]
    found = report.quantities[name]
    spread = f" ± {factor * found.std_error:.{digits}f}" if np.isfinite(found.std_error) else ""
    return Number(f"{factor * found.value:.{digits}f}{spread}")


def _calibration(cv: CrossValidation) -> list[Content]:
    shown, figure = cv.ranking()[:4], _figure(5.2, 6.0)
    ax, said = figure.subplots(), []
    for i, method in enumerate(shown):
        y, proba, weight = _out_of_fold(cv, method)
        display = CalibrationDisplay.from_predictions(y, proba, cv.classes, sample_weight=weight, name=method)
        display.plot(ax, first_colour=i, counts=i == 0, band=i == 0)
        off = calibration_error(y, proba, cv.classes, sample_weight=weight)
        said.append(f"{method} {100 * off:.1f}\u00a0%")
    amount = "how many" if cv.sample_weight is None else "the weight of the"
    alt = "Share of right decisions against confidence. Mean distance from the diagonal: " + ", ".join(said) + "."
    caption = (
        "How often decisions of a given confidence are right, on rows not used for fitting; on the diagonal, "
        "confidence is exactly right, below it a method is too sure of itself. "
        f"Shaded: the 95\u00a0% interval of {shown[0]}; above: {amount} "
        "rows it decides with which confidence. Mean "
        "distance from the diagonal, all folds together: "
    ) + ", ".join(said)
    return [Figure(figure, alt, caption + ".")]


def _errors(cv: CrossValidation, leader: str) -> list[Content]:
    y, proba, weight = _out_of_fold(cv, leader)  # both pictures count rows: half a row wrong means nothing to a reader
    guess = cv.classes[proba.argmax(axis=1)]
    side = min(max(3.8, 1.8 + 0.6 * len(cv.classes)), 10)
    figure = _figure(side + 0.8, side)
    confusion = ConfusionDisplay.from_predictions(y, guess, cv.classes).plot(figure.subplots())
    wrong = int(np.sum(as_labels(y) != guess))
    alt = f"Confusion matrix of {leader}: {wrong} of {len(y)} rows wrong."
    caption = f"{leader}: rows not used for fitting, by true and predicted class ({wrong} of {len(y)} wrong)."
    if weight is not None:
        caption += " Rows are counted here and below, each as one; the scores above are weighted."
    content: list[Content] = [_worst_pairs(confusion), Figure(figure, alt, caption)]
    doubt = _figure(6.4, 3.8 + 0.2 * min(len(cv.classes) // 2, 6) * (len(cv.classes) > 4))
    UncertaintyDisplay.from_predictions(y, proba, cv.classes).plot(doubt.subplots())
    caption = (
        f"How unsure {leader} is: one minus its largest posterior, sorted inside each true class. Crosses are wrong "
        "decisions; they should sit high, where the method says it is unsure."
    )
    content.append(Figure(doubt, f"Sorted uncertainty of {leader} for each class, errors marked.", caption))
    return content


def _worst_pairs(confusion: ConfusionDisplay) -> Paragraph:
    off = confusion.counts * (1 - np.eye(len(confusion.classes)))
    order = [divmod(int(i), len(off)) for i in np.argsort(-off, axis=None, kind="stable")[:3] if off.flat[i] > 0]
    if not order:
        return Paragraph("No row was assigned to a wrong class.")
    names = [class_name(label) for label in confusion.classes]
    told = (f"{names[r]} taken for {names[c]} ({off[r, c]:.4g})" for r, c in order)
    return Paragraph("Most frequent mistakes: " + ", ".join(told) + ".")


def _out_of_fold(cv: CrossValidation, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    rows = np.isfinite(cv.proba[method]).all(axis=1)
    return cv.y[rows], cv.proba[method][rows], None if cv.sample_weight is None else cv.sample_weight[rows]


def _map(models: Mapping[str, Any], leader: str | None, X: Any, y: np.ndarray) -> list[Content]:
    order = sorted((n for n in models if hasattr(models[n], "classes_")), key=lambda name: name != leader)
    n_columns = np.shape(X)[1]
    name = next((n for n in order if hasattr(models[n], "marginal") or n_columns == 2), None)
    if name is None or n_columns < 2:
        return []
    try:
        pair = (0, 1) if n_columns == 2 else best_pair(models[name], X, y)
        display = RegionsDisplay.from_estimator(models[name], X, y, columns=pair)
    except ValueError:  # columns that are not numbers: there is no map to draw
        return []
    figure = _figure(7.2, 4.6)
    display.plot(figure.subplots())
    first, second = display.names
    caption = f"{name}, fitted on all rows: decision regions over {first} and {second}"
    if n_columns > 2:
        others = "the other column is" if n_columns == 3 else f"the other {n_columns - 2} columns are"
        caption += (
            f"; {others} integrated out exactly, so this shows what these two columns "
            "alone can tell. Of the pairs tried, they make the fewest errors on these rows"
        )
    if display.n_outside:
        caption += f". {_count(display.n_outside, 'extreme row')} outside the picture"
    return [Figure(figure, f"Decision regions of {name} over {first} and {second}, with the rows.", caption + ".")]


def best_pair(model: Any, X: Any, y: Any, *, n_columns: int = 6, n_rows: int = 1000) -> tuple[int, int]:
    """The two columns on which the model, all others integrated out, makes the fewest errors on (a sample of) the rows.

    Tried are all pairs of the `n_columns` columns whose class means differ most for their spread.
    """
    y = as_labels(y)
    rows = np.flatnonzero(labelled_rows(y))
    rows = rows[np.linspace(0, len(rows) - 1, min(n_rows, len(rows))).astype(int)]
    coded = getattr(getattr(model, "schema_", None), "categorical", ())
    values = {j: column for j, column in _number_columns(X, rows).items() if j not in coded}
    true = encode(y[rows], model.classes_)
    apart = {j: _between(column, true) for j, column in values.items()}
    best = sorted(sorted(apart, key=lambda j: -apart[j])[:n_columns])
    if len(best) < 2:
        raise ValueError("a map needs two columns of numbers that vary")

    def errors(pair: tuple[int, int]) -> int:
        guess = model.marginal(pair).predict(_as_frame(X, pair, np.stack([values[j] for j in pair], axis=1)))
        return int(np.sum(encode(guess, model.classes_) != true))

    return min(combinations(best, 2), key=errors)


def _number_columns(X: Any, rows: np.ndarray) -> dict[int, np.ndarray]:
    from sklearn.utils import _safe_indexing

    part, found = _safe_indexing(X, rows), {}
    for j in range(np.shape(X)[1]):
        column = np.asarray(_safe_indexing(part, j, axis=1))
        if column.dtype.kind in "iuf" and np.nanstd(column) > 0:
            found[j] = column.astype(float)
    return found


def _as_frame(X: Any, pair: tuple[int, int], values: np.ndarray) -> Any:
    """Two columns as a frame like `X`, under their names, or as the array they are."""
    if not hasattr(X, "columns"):
        return values
    import narwhals as nw

    names, frame = [str(name) for name in X.columns], nw.from_native(X)
    return nw.from_dict({names[j]: values[:, i] for i, j in enumerate(pair)}, backend=frame.implementation).to_native()


def _between(column: np.ndarray, true: np.ndarray) -> float:
    """Share of the variance of a column that lies between the classes."""
    seen = np.isfinite(column)
    column, true = column[seen], true[seen]
    count = np.bincount(true)
    mean = np.bincount(true, column) / np.maximum(count, 1)
    return float(np.sum(count * (mean - column.mean()) ** 2) / (np.sum((column - column.mean()) ** 2) or 1))


def _held_out(cv: CrossValidation, name: str) -> float | None:
    """Error of a method on rows not seen, if it was among those compared."""
    return float(cv.values(name, "error").mean()) if name in cv.ranking() else None


def _has_section(model: Any) -> bool:
    return (
        isinstance(model, ENSEMBLES)
        or getattr(model, "run_", None) is not None
        or hasattr(model, "runs_")
        or hasattr(model, "means_")
    )


def _model(name: str, model: Any, X: Any, y: Any, held_out: float | None = None) -> tuple[str, list[Content]]:
    """The heading of the section of a model that is the only one, and what stands there."""
    if isinstance(model, ENSEMBLES):
        return "The ensemble", ensemble_section(name, model, X, y, draw=_can_draw(), held_out=held_out)
    if hasattr(model, "constraints"):
        return "The maximum entropy model", maxent_section(name, model, X, y, draw=_can_draw())
    if isinstance(model, OF_MODELS):
        return "The discrimination model", structures_section(name, model, X, y, draw=_can_draw())
    if hasattr(model, "runs_"):
        return "The hidden Markov models", sequences_section(name, model, X, y, draw=_can_draw())
    if hasattr(model, "multipliers_"):
        return "The discrimination model", med_section(name, model, X, y, draw=_can_draw())
    return "The mixture model", _mixture(name, model, X)


def _mixture(name: str, model: Any, X: Any) -> list[Content]:
    """Training, components, search and convergence of a model."""
    content: list[Content] = []
    n_passes = 0
    if getattr(model, "run_", None) is not None:
        n_passes = max(step.n_pass for step in model.run_.trace)
        said = f"{name}, fitted on all rows, made {_count(n_passes, 'pass', 'passes')} over the data"
        said += f"; {model.run_.message}" if getattr(model.run_, "message", "") else ""
        content.append(Paragraph(said + "."))
    trained = getattr(model, "objective", "likelihood") != "likelihood"
    if trained:
        content.append(
            Paragraph(
                f"It was trained to tell the classes apart ({_objective(model)}), so its components are no "
                "longer a description of the rows, only of what parts the classes."
            )
        )
    table = _components_table(model, X)
    content += [table] if table is not None else []
    content += _who_speaks(model) if _is_shared(model) and _can_draw() else []
    search = getattr(model, "search_", None) or []
    if search and ("log_loss" in search[0] or not _can_draw()):
        by, nested = getattr(model, "selection", "cv"), getattr(model, "nested", None)
        table = _search_table(search, by, nested=nested is not None)
        if trained and not (by == "cv" and _is_shared(model)):  # shared components are trained in every fold
            table = replace(
                table, caption=table.caption + ". Scored as fitted by likelihood; the chosen one was then trained"
            )
        content.append(table)
    if not _can_draw():
        return content
    if search and "log_loss" not in search[0]:
        content.append(_selection(model))
    if getattr(model, "path_", None):
        content.append(_growth(model))
    if n_passes >= FEW_PASSES:
        figure = _figure(6.4, 3.8)
        ConvergenceDisplay.from_estimator(model).plot(figure.subplots())
        caption = (
            f"Objective of {name} against passes over the data. It never falls, except where a component is re-seeded."
        )
        content.append(Figure(figure, f"Objective of {name} by pass.", caption))
    return content


def _objective(model: Any) -> str:
    alpha = f", alpha {model.alpha:g}" if model.objective == "conditional" and hasattr(model, "alpha") else ""
    return f"objective {model.objective}{alpha}"


def _selection(model: Any) -> Figure:
    figure = _figure(7.0, 4.0)
    display = SelectionDisplay.from_estimator(model)
    display.plot(figure.subplots())
    best = "; ".join(
        (f"for {class_name(entry['class'])} " if "class" in entry else "")
        + f"{entry['covariance']}, {entry['n_components']}"
        for entry in display.picks
    )
    name = "-2 x held-out log density" if display.criterion == "cv" else display.criterion.upper().replace("_", " ")
    alt = f"{name} against the number of components; chosen: {best}."
    return Figure(figure, alt, f"Search for the number of components and the structure: {alt}")


def _growth(model: Any) -> Figure:
    figure = _figure(7.0, 3.8)
    GrowthDisplay.from_estimator(model).plot(figure.subplots(), quantity="log_likelihood")
    caption = "Components were added one at a time: the log-likelihood per row of the training rows after each."
    return Figure(figure, "Log-likelihood per row against the number of components.", caption)


def _is_shared(model: Any) -> bool:
    """Does any component speak for more than one class?"""
    weights = np.asarray(getattr(model, "weights_", ()))
    return hasattr(model, "class_given_component_") and bool(((weights > 0).sum(axis=0) > 1).any())


def _who_speaks(model: Any) -> list[Content]:
    shares = model.class_given_component_
    n_classes, n_components = shares.shape
    figure = _figure(min(2.4 + 0.6 * n_components, 10), min(1.6 + 0.4 * n_classes, 8))
    ComponentsDisplay.from_estimator(model).plot(figure.subplots())
    said = [
        f"{k} for {class_name(model.classes_[c])} ({100 * shares[c, k]:.0f}\u00a0%)"
        for k, c in enumerate(shares.argmax(axis=0))
    ]
    caption = (
        "p(class | component): all classes share the components, and each speaks for some more than for others. "
        "Columns sum to 100\u00a0%."
    )
    return [Figure(figure, "Which component mostly speaks for which class: " + ", ".join(said) + ".", caption)]


def _search_table(
    search: Sequence[Mapping[str, Any]], by: str = "cv", *, nested: bool = False, longest: int = 8
) -> Table:
    """The chosen entries of a search and the best others; of those that predict the same, the first."""
    held = "log_loss" in search[0]
    if by in search[0] and not held:
        search = sorted(search, key=lambda entry: entry[by])
    ordered = sorted(search, key=lambda entry: not entry.get("chosen", False))  # stable: the rest stays best first
    different: dict[Any, Mapping[str, Any]] = {}
    for entry in ordered:
        different.setdefault(tuple(_value(entry.get(key), digits=9) for key in SAME) if held else id(entry), entry)
    entries = list(different.values())
    shown = entries[:longest]
    same = [key for key in IDLE if key in search[0] and _all_alike(shown, key)]
    keys = [key for key in search[0] if key not in LEFT_OUT and key not in same]
    rows = [
        ["chosen" if entry.get("chosen") else "", *(_found(entry.get(key), key) for key in keys)] for entry in shown
    ]
    if held:
        how = "held-out error" if nested else "held-out log-loss"
    else:
        how = ("-2 x held-out log density" if by == "cv" else by.upper()) + ", lower is better"
    first = "the chosen one first" if sum(bool(entry.get("chosen")) for entry in search) < 2 else "those chosen first"
    told = f"{min(longest, len(entries))} of {len(entries)}, {first}, then by {how}"
    caption = f"What the search tried ({told})"
    if len(entries) < len(search):
        caption += f". Left out: {len(search) - len(entries)} that predict the same as another"
    told_once = [f"{key.replace('_', ' ')} {_text_of(shown[0][key])}" for key in same if shown[0][key]]
    if told_once:
        caption += f". The same in all: {', '.join(told_once)}"
    if "across_classes" in keys or any(entry.get("across_classes") for entry in shown):
        caption += ". Across classes: all classes share what the structure calls equal"
    return Table(caption, ["", *(str(key).replace("_", " ") for key in keys)], rows)


def _text_of(value: Any) -> str:
    value = _value(value)
    return readable(value, 3) if isinstance(value, float) else str(value)


def _all_alike(entries: Sequence[Mapping[str, Any]], key: str) -> bool:
    return len({_value(entry.get(key), digits=9) for entry in entries}) == 1


def _found(value: Any, key: str) -> Any:
    """A cell of the search table, in few digits: it has many columns."""
    value = _value(value) if not isinstance(value, list | tuple) else value
    if isinstance(value, list | tuple):
        alike = len(value) > 1 and len(set(value)) == 1
        return f"{value[0]} each" if alike else ", ".join(map(str, value))
    if isinstance(value, float) and np.isfinite(value):
        return Number(f"{value:.3f}" if key in ("log_loss", "error") else readable(value, 3 if key in IDLE else 5))
    return value


def _value(value: Any, digits: int | None = None) -> Any:
    """As a cell of a table; with `digits`, as something to compare by."""
    value = value.item() if isinstance(value, np.generic) else value
    if digits is not None and isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {v}" for k, v in value.items())
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(str(_value(v)) for v in value)
    return value if value is None or isinstance(value, int | float) else str(value)


def _components_table(model: Any, X: Any, longest: int = 30, widest: int = 5) -> Table | None:
    means: Any = getattr(model, "means_", None)
    covs: Any = getattr(model, "covariances_", None)
    if means is None or np.ndim(means) != 2 or 0 in np.shape(means):
        return None
    K, d = np.shape(means)
    names = _column_names(model, X, d)
    weights: Any = getattr(model, "weights_", None)
    owner: Any = getattr(model, "component_class_", None)
    by_class = owner is not None and hasattr(model, "classes_")
    spread = np.sqrt(np.diagonal(covs, axis1=1, axis2=2)) if np.shape(covs) == (K, d, d) else None
    rows = []
    for k in range(min(K, longest)):
        row: list = [str(k)]
        row += [str(model.classes_[owner[k]])] if by_class else []
        if weights is not None and np.shape(weights)[-1] == K:
            share = weights[k] if np.ndim(weights) == 1 else np.sum(weights, axis=0)[k]
            row.append(Number(f"{share:.3f}"))
        for j in range(min(d, widest)):
            sd = "" if spread is None else f" ± {readable(spread[k, j], 3)}"
            mean = 0.0 if spread is not None and abs(means[k][j]) < NOTHING * spread[k, j] else means[k][j]
            row.append(Number(f"{readable(mean)}{sd}"))
        rows.append(row)
    shared = _is_shared(model)
    head = (
        ["component"]
        + ["mostly class" if shared else "class"] * by_class
        + ["weight"] * (len(rows[0]) - 1 - by_class - min(d, widest))
    )
    caption = "Components: weight (share of all rows), mean"
    caption += (" ± standard deviation" if spread is not None else "") + " of each numeric column"
    caption += f" (first {widest} of {d} numeric columns)" if d > widest else ""
    likely = _likely_values(model)
    if likely:
        shown = list(likely)[:widest]
        rows = [[*row, *(likely[name][k] for name in shown)] for k, row in enumerate(rows)]
        head_of_rest = [*names[:widest], *shown]
        caption += ", most probable value of each categorical column"
        caption += f" (first {widest} of {len(likely)} categorical columns)" if len(likely) > widest else ""
    else:
        head_of_rest = names[:widest]
    caption += f"; first {longest} of {K} components" if longest < K else ""
    return Table(caption, [*head, *head_of_rest], rows)


def _likely_values(model: Any) -> dict[str, list[str]]:
    """For each categorical column the most probable value in every component, and how probable it is."""
    schema: Any = getattr(model, "schema_", None)
    found = {}
    for name, probs in getattr(model, "category_probabilities_", {}).items():
        values = schema.columns[schema.names.index(name)].categories
        found[str(name)] = [f"{values[p.argmax()]} ({100 * p.max():.0f} %)" for p in np.asarray(probs)]
    return found


def _column_names(model: Any, X: Any, d: int) -> list[str]:
    schema = getattr(model, "schema_", None)
    if schema is not None and len(schema.continuous) == d:  # components have means of the continuous columns only
        return [str(schema.names[j]) for j in schema.continuous]
    names = getattr(X, "columns", None)
    names = getattr(model, "feature_names_in_", None) if names is None else names
    if names is None or len(names) != d:
        return [f"column {j}" for j in range(d)]
    return [str(name) for name in names]
