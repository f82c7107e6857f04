"""Rows with a label and what was said of them: calibration, receiver operating characteristics, confusion, doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixent.base.document import Content, Figure, Number, Paragraph, Table
from mixent.base.document import canvas as figure
from mixent.base.labels import as_labels, classes_of, key
from mixent.base.text import class_name
from mixent.displays import CalibrationDisplay, ConfusionDisplay, RocDisplay, UncertaintyDisplay
from mixent.evaluate.displays.roc import log_odds
from mixent.evaluate.scores import calibration_error
from mixent.evaluate.validate import CrossValidation

UNSEEN = "rows not used for fitting"
MOST_CURVES = 4  # methods in one picture
MOST_CLASSES = 12  # curves of one method


@dataclass(frozen=True)
class Said:
    """Probabilities that one method gave rows with a label; `rows`: which rows these are, in words."""

    name: str
    y: np.ndarray  # (n,)
    proba: np.ndarray  # (n, C)
    classes: np.ndarray  # (C,)
    weight: np.ndarray | None = None
    rows: str = UNSEEN

    @property
    def guess(self) -> np.ndarray:
        """(n,) the most probable class."""
        return np.asarray(self.classes[self.proba.argmax(axis=1)])

    @property
    def wrong(self) -> np.ndarray:
        """(n,) is it another than the label?"""
        return np.array([key(a) != key(b) for a, b in zip(self.guess, as_labels(self.y))], dtype=bool)


def out_of_fold(cv: CrossValidation, method: str) -> Said:
    """What a method said of the rows it had not seen, in the first repeat."""
    rows = np.isfinite(cv.proba[method]).all(axis=1)
    weight = None if cv.sample_weight is None else cv.sample_weight[rows]
    return Said(method, cv.y[rows], cv.proba[method][rows], cv.classes, weight)


def calibration(every: Sequence[Said]) -> list[Content]:
    """Reliability curves of the first methods, in one picture."""
    shown, canvas = every[:MOST_CURVES], figure(5.2, 6.0)
    ax, told = canvas.subplots(), []
    for i, said in enumerate(shown):
        given = said.y, said.proba, said.classes
        display = CalibrationDisplay.from_predictions(*given, sample_weight=said.weight, name=said.name)
        display.plot(ax, first_colour=i, counts=i == 0, band=i == 0)
        off = calibration_error(said.y, said.proba, said.classes, sample_weight=said.weight)
        told.append(f"{said.name} {100 * off:.1f}\u00a0%")
    first = shown[0]
    amount = "how many" if first.weight is None else "the weight of the"
    alt = "Share of right decisions against confidence. Mean distance from the diagonal: " + ", ".join(told) + "."
    caption = (
        f"How often decisions of a given confidence are right, on {first.rows}; on the diagonal, "
        "confidence is exactly right, below it a method is too sure of itself. "
        f"Shaded: the 95\u00a0% interval of {first.name}; above: {amount} "
        "rows it decides with which confidence. Mean "
        "distance from the diagonal, all together: "
    ) + ", ".join(told)
    return [Figure(canvas, alt, caption + ".")]


def roc(every: Sequence[Said]) -> list[Content]:
    """Of two classes the curves of the first methods; of more, those of each class against the others, of the first."""
    first = every[0]
    if len(classes_of(first.y)) < 2:
        return []
    if len(first.classes) == 2:
        scores = {said.name: log_odds(said.proba, 1) for said in every[:MOST_CURVES]}
        positive = first.classes[1]
        display = RocDisplay.from_predictions(first.y, scores, positive=positive, sample_weight=first.weight)
        what = f"How many rows of {class_name(positive)} are found, against how many others are taken for it"
    else:
        display = RocDisplay.from_classes(first.y, first.proba, first.classes, sample_weight=first.weight)
        what = f"{first.name}: how many rows of each class are found, against how many others are taken for it"
    found = {name: curve.auc for name, curve in display.curves.items()}
    if len(found) > MOST_CLASSES:
        worst = sorted(found, key=lambda name: found[name])[:MOST_CLASSES]
        what += f" (the {MOST_CLASSES} hardest of {len(found)} classes)"
        display.curves = {name: curve for name, curve in display.curves.items() if name in worst}
    canvas = figure(*display.size())
    display.plot(canvas.subplots())
    told = ", ".join(f"{name} {auc:.3f}" for name, auc in found.items() if name in display.curves)
    caption = (
        f"{what}, at every threshold, on {first.rows}. AUC, the area below a curve, is the probability that a row of "
        "the class scores higher than another: 1 is perfect, 0.5 is chance (the diagonal)."
    )
    return [Figure(canvas, f"Receiver operating characteristics. Areas: {told}.", caption)]


def errors(said: Said) -> list[Content]:
    """Who is taken for whom, and how unsure the method was."""
    n_classes, n = len(said.classes), len(said.y)  # both pictures count rows: half a row wrong means nothing
    side = min(max(3.8, 1.8 + 0.6 * n_classes), 10)
    canvas = figure(side + 0.8, side)
    confusion = ConfusionDisplay.from_predictions(said.y, said.guess, said.classes).plot(canvas.subplots())
    wrong = int(said.wrong.sum())
    alt = f"Confusion matrix of {said.name}: {wrong} of {n} rows wrong."
    caption = f"{said.name}: {said.rows}, by true and predicted class ({wrong} of {n} wrong)."
    if said.weight is not None:
        caption += " Rows are counted here and below, each as one; the scores above are weighted."
    content: list[Content] = [worst_pairs(confusion), Figure(canvas, alt, caption), by_class(confusion)]
    doubt = figure(6.4, 3.8 + 0.2 * min(n_classes // 2, 6) * (n_classes > 4))
    UncertaintyDisplay.from_predictions(said.y, said.proba, said.classes).plot(doubt.subplots())
    caption = (
        f"How unsure {said.name} is: one minus its largest posterior, sorted inside each true class. Crosses are wrong "
        "decisions; they should sit high, where the method says it is unsure."
    )
    content.append(Figure(doubt, f"Sorted uncertainty of {said.name} for each class, errors marked.", caption))
    return content


def worst_pairs(confusion: ConfusionDisplay) -> Paragraph:
    """The most frequent mistakes."""
    off = confusion.counts * (1 - np.eye(len(confusion.classes)))
    order = [divmod(int(i), len(off)) for i in np.argsort(-off, axis=None, kind="stable")[:3] if off.flat[i] > 0]
    if not order:
        return Paragraph("No row was assigned to a wrong class.")
    names = [class_name(label) for label in confusion.classes]
    told = (f"{names[r]} taken for {names[c]} ({off[r, c]:.4g})" for r, c in order)
    return Paragraph("Most frequent mistakes: " + ", ".join(told) + ".")


def by_class(confusion: ConfusionDisplay) -> Table:
    """Of each class how many rows, how many found, and how many of those said to be of it are."""
    counts = np.asarray(confusion.counts)
    rows: list = []
    for c, label in enumerate(confusion.classes):
        n, said, hit = counts[c].sum(), counts[:, c].sum(), counts[c, c]
        found = Number(f"{100 * hit / n:.1f}") if n else None
        right = Number(f"{100 * hit / said:.1f}") if said else None
        rows.append([class_name(label), Number(f"{n:.0f}"), found, right])
    caption = (
        "Of each class: its rows, the share of them found (recall), and the share of rows said to be of it that are"
    )
    return Table(f"{caption} (precision)", ["class", "rows", "found (%)", "right (%)"], rows)
