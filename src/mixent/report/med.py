"""The section of a classifier by maximum entropy discrimination: kernel, choice of c, support, margins."""

from __future__ import annotations

from typing import Any

from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table
from mixent.base.document import canvas as figure
from mixent.base.text import class_name, count, readable
from mixent.displays import MarginsDisplay
from mixent.evaluate.discrimination import describe_discrimination, in_words, strongest_columns

LISTED = 12


def med_section(name: str, model: Any, X: Any, y: Any, *, draw: bool) -> list[Content]:
    """What a fitted `MEDClassifier` or `MEDGaussianClassifier` found, and how sure that is."""
    about = describe_discrimination(model)
    facts = [f"{text}." for text in in_words(about, see="the comparison above says what it is on rows not seen")]
    content: list[Content] = [Paragraph(_what_it_is(name, model, about)), Bullets(facts)]
    strongest = strongest_columns(model, LISTED)
    if strongest:
        content.append(_columns(model, strongest))
    if about["c"]["tried"]:
        content.append(tried(about["c"]))
    if draw and X is not None:
        content.append(margins(model, X, y))
    return content


def _what_it_is(name: str, model: Any, about: dict[str, Any]) -> str:
    gaussian = "quantile" in about["margin"]
    over = "the Gaussians of the classes" if gaussian else "discriminant functions"
    passes = count(model.run_.n_passes, "pass", "passes")
    return (
        f"{name}, fitted on all rows: of all distributions over {over} that keep the margin of every label on average, "
        f"the one of least relative entropy to the prior. {about['kernel']['words']}. Solving took {passes}; "
        f"{model.run_.message}."
    )


def _columns(model: Any, strongest: list[dict[str, Any]]) -> Table:
    n = len(model.feature_names_)
    some = f"The {len(strongest)} strongest of {n} encoded columns" if n > len(strongest) else "The encoded columns"
    of = "" if len(model.classes_) == 2 else ", of that class less the mean of all classes"
    scaled = "; numbers are in standard deviations" if model.standardize else ""
    caption = f"{some}, strongest first: coefficient of the discriminant function{of}{scaled}"
    rows: list = [[e["column"], Number(f"{e['size']:.3f}"), class_name(e["class"])] for e in strongest]
    return Table(caption, ["column", "coefficient", "more of it speaks for"], rows)


def tried(bound: dict[str, Any]) -> Table:
    """Values of c."""
    rows: list = [
        [Number(readable(e["c"], 3), best=e["c"] == bound["value"]), Number(f"{e['log_loss']:.4f}")]
        for e in bound["tried"]
    ]
    caption = "Values of C tried, and the log-loss of rows held out; the one in use is marked"
    return Table(caption, ["C", "log-loss (nats)"], rows)


def margins(model: Any, X: Any, y: Any) -> Figure:
    """How clearly the training rows are on their side."""
    display = MarginsDisplay.from_estimator(model, X, y)
    canvas = figure(6.4, 3.6)
    display.plot(canvas.subplots())
    held, n = int(display.support.sum()), len(display.margin)
    alt = f"Margins of {n} labelled training rows: {held} have a multiplier, {display.n_wrong} are on the wrong side."
    caption = (
        "How clearly the labelled training rows are on their side: left of 0 a rival scores more. Rows with a "
        "multiplier hold the boundary in place; the others have all the margin they are to have."
    )
    return Figure(canvas, alt, caption)
