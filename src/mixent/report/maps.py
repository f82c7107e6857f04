"""Maps of the rows: decision regions of two columns, or the plane that separates the classes best."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.displays import computed
from mixent.base.document import Content, Figure
from mixent.base.text import count
from mixent.displays import ProjectionDisplay, RegionsDisplay
from mixent.report.data import Categorical, with_categories


def plane_map(
    name: str,
    X: Any,
    y: Any,
    proba: Any,
    classes: Any,
    rows: str,
    *,
    labelled: bool = True,
    categorical: Categorical = "auto",
) -> list[Content]:
    """The plane that separates the classes best, with the predicted probabilities of the rows.

    Parameters
    ----------
    name : of the model
    X, y, proba, classes : rows, labels, probabilities and their order
    rows : what the page calls these rows
    labelled : whether `y` are labels, and not predictions
    categorical : columns that are categories whatever their type
    """
    try:
        display = computed(ProjectionDisplay.from_predictions, with_categories(X, categorical), y, proba, classes)
    except (TypeError, ValueError):  # nothing varies, one class, or no table
        return []
    second = "the direction of most remaining variance" if len(display.classes) == 2 else "the second"
    correct = "is correct" if labelled else "agrees"
    caption = (
        f"{name}: {rows} on the plane that separates the classes best (linear discriminants of the columns, numbers "
        f"standardized, missing values at the mean, categories as 0 and 1; horizontal, the first; vertical, {second}). "
        "Axes are named by the columns of highest correlation. The color of a place is the mean of the probabilities "
        "predicted for the rows around it: white where there are no rows, or where classes are equally probable. "
        f"{'Crosses are wrong decisions. ' if labelled else ''}The plane shows two directions of many: on it alone, "
        f"the nearest class mean {correct} for {100 * display.kept:.0f}\u00a0% of the rows."
    )
    alt = "Rows on two discriminant directions with the predicted probabilities"
    alt += f"; {int(display.wrong.sum())} decided wrongly." if labelled else "."
    return [Figure(display.picture, alt, caption)]


def regions_map(name: str, model: Any, X: Any, y: Any) -> list[Content]:
    """Decision regions of a classifier of two columns of numbers."""
    if np.shape(X)[1] != 2:
        return []
    try:
        display = computed(RegionsDisplay.from_estimator, model, X, y, columns=(0, 1))
    except ValueError:  # columns that are not numbers
        return []
    first, second = display.names
    outside = f" {count(display.n_outside, 'extreme row')} outside the figure." if display.n_outside else ""
    caption = f"{name}: decision regions over {first} and {second}.{outside}"
    return [Figure(display.picture, f"Decision regions over {first} and {second}, with the rows.", caption)]
