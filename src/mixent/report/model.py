"""The page of a fitted model on a table: how good its predictions are, what the model is, rows explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import is_able
from mixent.base.delegation import aligned_proba
from mixent.base.document import Content, Paragraph, Section
from mixent.base.foreign import last_step
from mixent.base.registry import find
from mixent.base.text import count
from mixent.data.labels import as_labels, encode, labelled_rows
from mixent.report.cases import cases_section
from mixent.report.data import classes_table, fingerprint
from mixent.report.fusion import fusion_sections
from mixent.report.html import write_report
from mixent.report.maps import plane_map, regions_map
from mixent.report.novelty import novelty_sections
from mixent.report.results import Predictions, result_sections
from mixent.report.rows import density_note, likelihoods, predicted, unusual
from mixent.report.scores import scored
from mixent.report.sections import Subject, reproduce


def model_report(
    path: str | PathLike[str],
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    title: str = "",
    data_notes: Sequence[str] = (),
    commands: str = "",
    sample_weight: Any = None,
    groups: Any = None,
) -> Path:
    """Write the report of a fitted model on a table as one HTML file and return its path.

    Parameters
    ----------
    path : where to write
    model : fitted estimator
        Of mixent, of a package that registers its estimators, or any classifier with `predict_proba`.
    X : table of n rows
        For a `Fuser`, answers of its sources to new items; optional.
    y : (n,) labels, optional
        With them the predictions are scored; rows without a label are not.
    title : heading of the page
    data_notes : sentences on the data
    commands : what to type to get this again
    sample_weight : (n,) array, optional
        Weights of the rows in every score.
    groups : (n,) array, optional
        For a model of sequences with a row for each step: the sequence of each row; `y` and `sample_weight` then have
        a value for each sequence.

    Returns
    -------
    Path
    """
    task = _task(model)
    check_is_fitted(model)
    _check(model, task, X, y, sample_weight, groups)
    labels = None if y is None else as_labels(y)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    subject = Subject(model, X, labels, weight, groups, tuple(data_notes))
    data = "" if X is None or task == "fusion" else fingerprint(X, y)
    code = "" if task == "fusion" else _code(X, y, groups)  # `mixent fuse` need not save the model
    sections = [*PAGES[task](subject), reproduce(commands, data=data, code=code)]
    return write_report(path, title or subject.name, sections)


def _code(X: Any, y: Any, groups: Any) -> str:
    given = [text for text, value in (("X", X), ("y", y), ("groups=groups", groups)) if value is not None]
    call = ", ".join(['"page.html"', "model", *given])
    load = 'import mixent\nfrom mixent.report import model_report\n\nmodel = mixent.load("model.mixent")'
    return f"{load}\nmodel_report({call})"


def _task(model: Any) -> str:
    entry = find(type(model))
    if entry is None and not is_classifier(model):
        name = type(last_step(model)).__name__
        raise TypeError(f"{name} is neither a registered estimator nor a classifier; give one of these")
    task = "classification" if entry is None else entry.task
    if task not in PAGES:
        raise TypeError(f"{type(model).__name__} transforms rows and predicts nothing; give the model that uses it")
    return task


def _check(model: Any, task: str, X: Any, y: Any, weight: Any, groups: Any) -> None:
    name = type(last_step(model)).__name__
    if X is None and task != "fusion":
        raise ValueError(f"X is missing: the page shows {name} on rows")
    if y is not None and task not in ("classification", "fusion"):
        raise ValueError(f"y is only used with a classifier; {name} has no classes")
    if y is not None and X is None:
        raise ValueError("y is only used with X: it has the classes of these items")
    if weight is not None and (y is None or task != "classification"):
        raise ValueError("sample_weight is only used with a classifier and y, for the scores")
    if groups is not None and task not in ("classification", "density"):
        raise ValueError(f"groups is only used with a model of sequences; {name} is none")


# --- classifiers ----------------------------------------------------------------------------------------------------


def classifier_sections(subject: Subject) -> list[Section]:
    """The page of a classifier."""
    model, classes = subject.model, np.asarray(subject.model.classes_)
    proba = _probabilities(subject, classes)
    known = np.zeros(len(proba), dtype=bool) if subject.y is None else _labelled(subject.y, classes, len(proba))
    scores: list[Section] = [Section("Predictions", predicted(classes, proba, subject.what))]
    summary: list[Content] = [Paragraph(f"{subject.name} predicts {count(len(proba), subject.what)} without labels.")]
    if subject.y is not None and known.any():
        weight = None if subject.weight is None else subject.weight[known]
        rows = f"{subject.what}s of this table"
        predictions = Predictions(subject.name, subject.y[known], proba[known], classes, weight, rows)
        scores = [Section("Scores", scored(predictions)), *result_sections([predictions])]
        summary = _summary(predictions, len(proba), subject)
    sections = [Section("Summary", summary), *subject.data_sections(), *scores]
    if subject.groups is not None:
        return [*sections, *subject.model_sections()]
    sections += [Section("Map of the rows", _map(subject, known, proba, classes)), *subject.model_sections()]
    cases = cases_section(model, subject.X, subject.y, categorical=subject.categorical)
    return [*sections, Section("Explained rows", cases), *_unusual(subject)]


def _probabilities(subject: Subject, classes: np.ndarray) -> np.ndarray:
    try:
        predict = subject.model.predict_proba
    except AttributeError as error:
        raise TypeError(f"{subject.name} predicts no probabilities; give a classifier with predict_proba") from error
    if subject.groups is not None:
        return np.asarray(predict(subject.X, **subject.options))
    return aligned_proba(subject.model, subject.X, classes)


def _labelled(y: np.ndarray, classes: np.ndarray, n_rows: int) -> np.ndarray:
    """(n,) which rows have a label; every label must be a class of the model."""
    if len(y) != n_rows:
        raise ValueError(f"y must have one label for each of {n_rows} rows; it has {len(y)}")
    known = labelled_rows(y)
    encode(y[known], classes)  # names the row whose label is not a class of the model
    return known


def _summary(predictions: Predictions, n: int, subject: Subject) -> list[Content]:
    wrong, n_known = predictions.wrong, len(predictions.y)
    text = (
        f"{subject.name} predicts {count(n, subject.what)}: {int(wrong.sum())} of {n_known} with a label are wrong "
        f"({100 * wrong.mean():.1f}\u00a0%)."
    )
    caution = (
        "If the model was fitted to these rows, the scores on this page are optimistic. Cross-validation estimates the "
        "scores on new rows: see mixent.compare."
    )
    return [Paragraph(text, lead=True), Paragraph(caution), classes_table(predictions.y)]


def _map(subject: Subject, known: np.ndarray, proba: np.ndarray, classes: np.ndarray) -> list[Content]:
    labelled = bool(known.any())
    y = subject.y if labelled else classes[proba.argmax(axis=1)]
    rows = "rows of this table" if labelled else "rows of this table, colored by the predicted class,"
    options: dict[str, Any] = {"labelled": labelled, "categorical": subject.categorical}
    plane = plane_map(subject.name, subject.X, y, proba, classes, rows, **options)
    return [*regions_map(subject.name, subject.model, subject.X, y), *plane]


# --- models without classes -----------------------------------------------------------------------------------------


def rows_sections(subject: Subject) -> list[Section]:
    """The page of a model of the rows: a mixture, a hidden Markov model, a joint model of all columns."""
    n, d = np.shape(subject.X)
    n = n if subject.groups is None else len(set(np.asarray(subject.groups).tolist()))
    text = f"{subject.name} on {count(n, subject.what)} of {count(d, 'column')}"
    likelihood: list[Section] = []
    if is_able(subject.model, "density"):
        scores = np.asarray(subject.model.score_samples(subject.X, **subject.options))
        text += f": mean log-likelihood {scores.mean():.4g} nats per {subject.what}"
        likelihood = [Section("Log-likelihood", likelihoods(scores, density_note(subject.model)))]
    summary = Section("Summary", [Paragraph(f"{text}.", lead=True)])
    return [summary, *subject.data_sections(), *likelihood, *subject.model_sections(), *_unusual(subject)]


def _unusual(subject: Subject) -> list[Section]:
    if subject.groups is not None or not is_able(subject.model, "density"):
        return []
    scores = np.asarray(subject.model.score_samples(subject.X), dtype=float)
    return [Section("Unusual rows", unusual(scores, subject.X))] if scores.shape == (np.shape(subject.X)[0],) else []


PAGES: dict[str, Callable[[Subject], list[Section]]] = {
    "classification": classifier_sections,
    "clustering": rows_sections,
    "density": rows_sections,
    "joint": rows_sections,
    "novelty": novelty_sections,
    "fusion": fusion_sections,
}
