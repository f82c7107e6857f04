"""The section of a maximum entropy classifier: features, certificate, constraints, path, explained cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table
from mixent.base.document import canvas as figure
from mixent.base.labels import as_labels, labelled_rows
from mixent.base.text import class_name, count
from mixent.displays import ConstraintsDisplay, ExplanationDisplay, PathDisplay
from mixent.evaluate.displays.explanation import probability_text
from mixent.maxent.contributions import strongest_features
from mixent.maxent.options import numeric_kind

NUMBERS = {  # what columns of numbers become
    "union": "hidden components of mixtures, one for each class",
    "class": "hidden components of each class's own mixture",
    "pooled": "hidden components of one mixture",
    "bins": "bins",
    "moments": "means and second moments",
}
DRAWN = 6  # features whose values are drawn
LISTED = 12
MOST_CASES = 20_000  # rows among which examples are looked for


def maxent_section(name: str, model: Any, X: Any, y: Any, *, draw: bool) -> list[Content]:
    """What a fitted `MaxEntClassifier` says of the data, and of itself."""
    content: list[Content] = [Paragraph(_what_it_is(name, model)), Bullets(_facts(model))]
    if model.feature_terms_:
        content.append(_features(model))
    if not draw:
        return content
    if model.path_:
        content.append(_path(model))
    if model.feature_terms_:
        content.append(_constraints(model))
    if X is not None:
        content += _cases(model, X, y)
    return content


def _what_it_is(name: str, model: Any) -> str:
    features, cells = len(model.feature_terms_), len(model.params_.cells) * len(model.classes_)
    numbers = NUMBERS[numeric_kind(model._group("features"))]
    passes = count(model.run_.n_passes, "pass", "passes")
    return (
        f"{name}, fitted on all rows: of all p(class | row) that reproduce how often each class occurs with each value "
        f"of {count(features, 'feature')} ({count(cells, 'constraint')}), the one of greatest entropy. Columns of "
        f"numbers enter as {numbers}. Solving took {passes} over the data; {model.run_.message}."
    )


def _facts(model: Any) -> list[str]:
    facts = []
    if model.gap_ is None:
        facts.append("No prior on the multipliers: constraints are met exactly where they can be.")
    else:
        chosen = " (chosen by cross-validated log-loss)" if model.priors_tried_ else ""
        told = "what was seen seldom counts for less"
        facts.append(f"Prior variance of the multipliers {model.prior_:g}{chosen}: {told}.")
        facts.append(f"Certificate: the objective is at most {model.gap_:.1g} nats per row below its maximum.")
    facts.append(f"Constraints are met within {model.residual_:.2g}{_least_met(model)}.")
    prior = model.class_prior_[model.class_prior_ > 0]
    without = -float(prior @ np.log(prior))
    facts.append(f"Entropy of the class given the row: {model.entropy_:.3f} nats; without the row {without:.3f}.")
    return facts


def _least_met(model: Any) -> str:
    if not model.feature_terms_:
        return ""
    feature, value, label, off = ConstraintsDisplay.from_estimator(model).largest(1)[0]
    return f"; least {feature} = {value} with {class_name(label)} (model less data {off:+.2g})"


def _features(model: Any) -> Table:
    rows: list = []
    for entry in strongest_features(model, LISTED):
        loud = entry
        says = [str(loud["value"]), class_name(loud["class"]), Number(f"{loud['nats']:.2f}")]
        rows.append([entry["feature"], Number(f"{entry['strength']:.3f}"), *says])
    n = len(model.feature_terms_)
    some = f"the {len(rows)} strongest of {n} features" if n > len(rows) else "the features, strongest first"
    adds = "log-odds" if len(model.classes_) == 2 else "logit of that class, less the mean of all classes"
    caption = (
        f"{some[0].upper()}{some[1:]}. Strength: the standard deviation over rows of the feature's part of the "
        f"log-odds. Then the values that speak loudest, for which class, and what they add to the {adds}, against the "
        "average row"
    )
    return Table(caption, ["feature", "strength (nats)", "loudest at", "speaks for", "adds (nats)"], rows)


def _constraints(model: Any) -> Figure:
    display = ConstraintsDisplay.from_estimator(model, n_features=DRAWN)
    canvas = figure(*display.size())
    display.plot(canvas.subplots())
    names = ", ".join(said.name for said in display.contributions)
    caption = "What the strongest features add to the "
    caption += "log-odds" if len(model.classes_) == 2 else "logit of each class, less the mean of all classes"
    caption += ", against the average row"
    if any(said.curve is None for said in display.contributions):
        caption += "; beside each value the share of the rows that have it"
    if any(said.curve is not None and said.curve.counted for said in display.contributions):
        caption += "; grey, where the rows are"
    return Figure(canvas, f"Parts of the log-odds by value of {names}.", f"{caption}.")


def _path(model: Any) -> Figure:
    display = PathDisplay.from_estimator(model)
    canvas = figure(*display.size())
    display.plot(canvas.subplots())
    kept = [name for name, is_kept in zip(display.names, display.kept) if is_kept]
    told = f"kept {len(kept)} of {len(display.names)} additions"
    caption = "Features were added one at a time, each time the one that promises most beyond its parameters; "
    alt = f"Path of features added: {', '.join(kept)}." if kept else "Path of features added: none kept."
    return Figure(canvas, alt, f"{caption}{told}.")


def _cases(model: Any, X: Any, y: Any) -> list[Content]:
    out: list[Content] = []
    for why, row, label in _examples(model, X, y):
        display = ExplanationDisplay.from_estimator(model, X, row)
        n = len(display.bars())
        canvas = figure(6.8, 1.7 + 0.32 * (n + 1))
        display.plot(canvas.subplots())
        said = f"{class_name(display.label)} with probability {probability_text(display.probability or 0.0)}"
        truth = f"; its label is {class_name(label)}" if label is not None else ""
        caption = f"{why}: row {row}, said to be {said}{truth}. The parts of the log-odds add up to the total."
        out.append(Figure(canvas, f"Why row {row} is said to be {class_name(display.label)}.", caption))
    return out


def _examples(model: Any, X: Any, y: Any) -> list[tuple[str, int, Any]]:
    """(why it is shown, row, label): a sure one, the least sure, and the surest error, of the rows trained on."""
    from sklearn.utils import _safe_indexing

    y = as_labels(y)
    rows = np.flatnonzero(labelled_rows(y))
    rows = rows[np.linspace(0, len(rows) - 1, min(MOST_CASES, len(rows))).astype(int)]
    proba = model.predict_proba(_safe_indexing(X, rows))
    wrong = np.array([str(a) != str(b) for a, b in zip(model.classes_[proba.argmax(axis=1)], y[rows])])
    top = np.sort(proba, axis=1)
    sure, close = top[:, -1], top[:, -1] - top[:, -2]
    found = []
    if not wrong.all():
        typical = np.where(wrong, np.inf, np.abs(sure - np.median(sure[~wrong])))
        found.append(("A case like most", int(typical.argmin())))
    found.append(("The least sure case", int(close.argmin())))
    if wrong.any():
        found.append(("The surest error", int(np.where(wrong, sure, -1.0).argmax())))
    different = {at: why for why, at in reversed(found)}
    return [(why, int(rows[at]), y[rows[at]]) for why, at in found if different[at] == why]
