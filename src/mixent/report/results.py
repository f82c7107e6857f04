"""Results of classification on labelled rows: calibration, ROC curves, confusion, uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.displays import computed
from mixent.base.document import Content, Figure, Number, Paragraph, Section, Table, canvas
from mixent.base.style import plain, share_colors
from mixent.base.text import class_name
from mixent.data.labels import as_labels, classes_of, encode, label_value
from mixent.displays import ReliabilityDisplay, RocCurvesDisplay, UncertaintyDisplay
from mixent.evaluate.displays.roc import log_odds
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import calibration_error

OUT_OF_FOLD = "rows not used for fitting"
MOST_CURVES = 4  # methods in one figure
MOST_CLASSES = 12  # curves of one method
MOST_NUMBERS = 20  # classes of a confusion matrix with numbers


@dataclass(frozen=True)
class Predictions:
    """Probabilities that one method gave to labelled rows; `rows` is what the page calls these."""

    name: str
    y: np.ndarray  # (n,)
    proba: np.ndarray  # (n, C)
    classes: np.ndarray  # (C,)
    weight: np.ndarray | None = None
    rows: str = OUT_OF_FOLD

    @property
    def predicted(self) -> np.ndarray:
        """(n,) the most probable class."""
        return np.asarray(self.classes[self.proba.argmax(axis=1)])

    @property
    def wrong(self) -> np.ndarray:
        """(n,) whether it differs from the label."""
        return np.array(
            [label_value(a) != label_value(b) for a, b in zip(self.predicted, as_labels(self.y))], dtype=bool
        )


def out_of_fold(cv: CrossValidation, method: str) -> Predictions:
    """The predictions of a method for rows not used for fitting, in the first repeat."""
    rows = np.isfinite(cv.proba[method]).all(axis=1)
    weight = None if cv.sample_weight is None else cv.sample_weight[rows]
    return Predictions(method, cv.y[rows], cv.proba[method][rows], cv.classes, weight)


def result_sections(every: Sequence[Predictions], errors_title: str = "Errors") -> list[Section]:
    """Figures of the first methods, and the errors of the first."""
    return [
        Section("Calibration", calibration(every)),
        Section("ROC curves", roc(every)),
        Section(errors_title, errors(every[0])),
    ]


def calibration(every: Sequence[Predictions]) -> list[Content]:
    """Reliability curves of the first methods, in one figure."""
    shown, first = every[:MOST_CURVES], every[0]
    proba = {p.name: p.proba for p in shown}
    display = computed(ReliabilityDisplay.from_predictions, first.y, proba, first.classes, sample_weight=first.weight)
    distances = [calibration_error(p.y, p.proba, p.classes, sample_weight=p.weight) for p in shown]
    listed = ", ".join(f"{p.name} {100 * distance:.1f}\u00a0%" for p, distance in zip(shown, distances))
    amount = "number" if first.weight is None else "total weight"
    pooled = " (all folds pooled; the table of scores has the mean over the folds)" if first.rows == OUT_OF_FOLD else ""
    caption = (
        f"Share of correct decisions against predicted probability{_selected(every)}, on {first.rows}. Below the "
        "diagonal a method is "
        f"overconfident. Shaded: 95\u00a0% interval of {first.name}; above: the {amount} of rows it predicts with each "
        f"probability. Mean distance from the diagonal{pooled}: {listed}."
    )
    alt = f"Share of correct decisions against predicted probability. Mean distance from the diagonal: {listed}."
    return [Figure(display.picture, alt, caption)]


def _selected(every: Sequence[Predictions]) -> str:
    """Which of the methods a figure shows, where it does not show all."""
    return f" (the best {MOST_CURVES} of {len(every)} methods)" if len(every) > MOST_CURVES else ""


def roc(every: Sequence[Predictions]) -> list[Content]:
    """With two classes the curves of the first methods; with more, those of each class against the others."""
    first = every[0]
    if len(classes_of(first.y)) < 2:
        return []
    if len(first.classes) == 2:
        scores = {p.name: log_odds(p.proba, 1) for p in every[:MOST_CURVES]}
        positive = first.classes[1]
        display = computed(
            RocCurvesDisplay.from_predictions, first.y, scores, pos_label=positive, sample_weight=first.weight
        )
        what = f"True positive rate of {class_name(positive)} against false positive rate{_selected(every)}"
    else:
        display = computed(
            RocCurvesDisplay.from_classes, first.y, first.proba, first.classes, sample_weight=first.weight
        )
        what = f"{first.name}: true positive rate of each class, against all others, by false positive rate"
    areas = {name: curve.auc for name, curve in display.curves.items()}
    if len(areas) > MOST_CLASSES:
        worst = sorted(areas, key=lambda name: areas[name])[:MOST_CLASSES]
        what += f" (the {MOST_CLASSES} classes of least area of {len(areas)})"
        display.curves = {name: curve for name, curve in display.curves.items() if name in worst}
    listed = ", ".join(f"{name} {areas[name]:.3f}" for name in display.curves)
    caption = (
        f"{what}, at every threshold, on {first.rows}. The area under a curve (AUC) is the probability that a row of "
        "the class scores higher than another row: 1 is perfect, 0.5 is chance (the diagonal)."
    )
    if first.rows == OUT_OF_FOLD:
        caption += " It is of all folds pooled; the table of scores has the mean over the folds."
    return [Figure(display.picture, f"ROC curves. Areas: {listed}.", caption)]


def errors(predictions: Predictions) -> list[Content]:
    """The confusion matrix, recall and precision of each class, and the uncertainty of wrong decisions."""
    name, classes, n = predictions.name, predictions.classes, len(predictions.y)
    counts, wrong = confusion_counts(predictions), int(predictions.wrong.sum())
    caption = f"{name}: {predictions.rows}, by true and predicted class ({wrong} of {n} wrong)."
    if predictions.weight is not None:  # half a row wrong means nothing
        caption += " Rows are counted here and below, each as one; the scores above are weighted."
    alt = f"Confusion matrix: {wrong} of {n} rows wrong."
    matrix = Figure(lambda: _confusion_matrix(counts, classes), alt, caption)
    display = computed(UncertaintyDisplay.from_predictions, predictions.y, predictions.proba, classes)
    caption = (
        f"Uncertainty of {name}: one minus its largest probability, sorted within each true class. Crosses are wrong "
        "decisions; they should be at the top, where the uncertainty is high."
    )
    uncertainty = Figure(display.picture, "Sorted uncertainty for each class, errors marked.", caption)
    return [frequent_errors(counts, classes), matrix, by_class(counts, classes), uncertainty]


def confusion_counts(predictions: Predictions) -> np.ndarray:
    """(C, C) rows of each true class (rows) that are predicted as each class (columns)."""
    counts = np.zeros((len(predictions.classes),) * 2, dtype=int)
    true, predicted = (encode(y, predictions.classes) for y in (predictions.y, predictions.predicted))
    np.add.at(counts, (true, predicted), 1)
    return counts


def _confusion_matrix(counts: np.ndarray, classes: np.ndarray) -> Any:
    from sklearn.metrics import ConfusionMatrixDisplay  # takes long to import

    names = [plain(label, 18) for label in classes]
    side = min(max(3.8, 1.8 + 0.6 * len(classes)), 10)
    figure = canvas(side + 0.4, side)
    display = ConfusionMatrixDisplay(counts, display_labels=names)
    steep = max(map(len, names)) > (12 if len(names) <= 3 else 4)
    look: dict[str, Any] = {"cmap": share_colors(), "colorbar": False, "values_format": "d"}
    look["xticks_rotation"] = "vertical" if steep else "horizontal"
    display.plot(ax=figure.subplots(), include_values=len(classes) <= MOST_NUMBERS, **look)
    return figure


def frequent_errors(counts: np.ndarray, classes: np.ndarray) -> Paragraph:
    """The most frequent pairs of true and wrongly predicted class."""
    off = counts * (1 - np.eye(len(classes)))
    order = [divmod(int(i), len(off)) for i in np.argsort(-off, axis=None, kind="stable")[:3] if off.flat[i] > 0]
    if not order:
        return Paragraph("No row was assigned to a wrong class.")
    names = [class_name(label) for label in classes]
    listed = (f"{names[r]} predicted as {names[c]} ({off[r, c]:.4g})" for r, c in order)
    return Paragraph(f"Most frequent errors: {', '.join(listed)}.")


def by_class(counts: np.ndarray, classes: np.ndarray) -> Table:
    """Rows, recall and precision of each class."""
    rows: list = []
    for c, label in enumerate(classes):
        n, n_predicted, hits = counts[c].sum(), counts[:, c].sum(), counts[c, c]
        recall = Number(f"{100 * hits / n:.1f}") if n else None
        precision = Number(f"{100 * hits / n_predicted:.1f}") if n_predicted else None
        rows.append([class_name(label), Number(f"{n:.0f}"), recall, precision])
    return Table("Recall and precision of each class", ["class", "rows", "recall (%)", "precision (%)"], rows)
