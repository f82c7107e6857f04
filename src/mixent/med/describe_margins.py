"""Shared parts of the descriptions of classifiers with margins: C, margins, support rows, labels, calibration."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.describe import class_facts, classes_table, document, optimality
from mixent.base.displays import computed
from mixent.base.document import Bullets, Content, Document, Figure, Number, Section, Table
from mixent.base.text import class_name, count, listing, percent, plain, readable
from mixent.data import TableLike
from mixent.med.cross_validation import CALIBRATIONS
from mixent.med.displays.margins import MarginsDisplay

if TYPE_CHECKING:
    from mixent.med.estimator import MEDBase

CERTAIN = 0.9  # probability from which an inferred label counts as certain
MOST_CLASSES = 30
TRAINING = "Training"  # title of the section
SOLUTION = (
    "Of all distributions over {over} under which every training row attains its required margin in expectation, the "
    "one closest to the prior (least relative entropy). {model}."
)
MARGINS = (
    "Margins of the labelled training rows: the score of the row's class minus the highest score of another class. "
    "Rows with a negative margin lie on the wrong side of the boundary, before the calibration moves it. Only support "
    "rows determine the boundary."
)

Facts = dict[str, Any]


def describe_margins(model: MEDBase, lead: str, content: list[Content], facts: Facts) -> Document:
    """Describe a classifier with margins.

    Parameters
    ----------
    model : fitted classifier
    lead : the model in one or two sentences
    content : tables and figures of this kind of model
    facts : the values of lead and content
    """
    about = {**margin_facts(model), **facts}
    trained = model._trains_margins()
    support = {"support rows": [entry["support"] for entry in about["classes"]]} if trained else {}
    tried = [tried_table(about["C"])] if about["C"]["tried"] else []
    bullets = Bullets([f"{text}." for text in training_texts(about, trained)])
    return document(
        model,
        lead,
        [*([Section("Model", content)] if content else []), Section(TRAINING, [bullets, *tried])],
        facts=about,
        classes=classes_table(model.classes_, model.class_prior_, support),
        schema=model.schema_,
        runs=[model.run_],
        certificates=_certificates(about) if trained else (),
    )


def margin_facts(model: MEDBase) -> Facts:
    """C, margins, support rows, inferred labels, gap and calibration as values."""
    highest = model.label_posterior_.max(axis=1)  # NaN for rows without a weight
    inferred, gain = highest[highest < 1.0], model.unlabelled_gain_
    with_inferred = len(inferred) > 0 and (gain is None or gain > 0)
    n_support = np.bincount(model.label_posterior_[model.support_].argmax(axis=1), minlength=len(model.classes_))
    classes = class_facts(model.classes_, model.class_prior_)
    calibration = model.calibration_
    facts: Facts = {
        "classes": [{**entry, "support": int(n)} for entry, n in zip(classes, n_support)],
        "C": _bound(model),
        "margin": {
            "distribution": type(model.margin_).__name__.lower(),
            "target": float(model.margin_.target),
            "quantile": model._quantile_in_use(),
        },
        "bias": model.bias if isinstance(model.bias, str) else float(model.bias),
        "support": {
            "rows": len(model.support_),
            "of": None if len(inferred) and not with_inferred else int((~np.isnan(highest)).sum()),
            "leave_one_out": float(model.loo_estimate_),
            "prior_from_rows": model._prior_from_rows,
        },
        "cv_error": model.cv_error_,
        "gap": None if model.gap_ is None else float(model.gap_),
        "calibration": {
            "kind": model.calibration,
            "slope": float(calibration.slope),
            "offset": [float(offset) for offset in calibration.offset],
        },
    }
    if len(inferred):
        facts["inferred_labels"] = {
            "rows": len(inferred),
            "used": with_inferred,
            "certain": int((inferred >= CERTAIN).sum()),
            "unlabelled_gain": None if gain is None else float(gain),
        }
    return facts


def _bound(model: MEDBase) -> Facts:
    """C, whether it bounds the multipliers, how it was chosen, and the values tried."""
    tried = [{name: float(value) for name, value in entry.items()} for entry in model.C_tried_]
    bounds = bool(np.isfinite(model.margin_.upper))
    if model.C_ is None:
        return {"value": None, "bounds_multipliers": bounds, "chosen_by": None, "tried": tried}
    chosen_by = "cross-validation" if tried else "default"
    return {
        "value": float(model.C_),
        "bounds_multipliers": bounds,
        "chosen_by": chosen_by if isinstance(model.C, str) else "user",
        "tried": tried,
    }


def training_texts(facts: Mapping[str, Any], trained: bool) -> list[str]:
    """Sentences without their final periods; only the last two if the model was not `trained` with margins."""
    texts = [_bound_text(facts["C"]), _margin_text(facts), _support_text(facts), _labels_text(facts)] if trained else []
    return [text for text in (*texts, _calibration_text(facts), _error_text(facts)) if text]


def _bound_text(bound: Mapping[str, Any]) -> str:
    if bound["value"] is None:
        return ""
    value = f"C = {bound['value']:g}, {_choice_text(bound)}"
    if bound["bounds_multipliers"]:
        return f"Upper bound on the multipliers: {value}"
    return f"Scale of the margin prior: {value}; its standard deviation is 1 / C. The multipliers have no upper bound"


def _choice_text(bound: Mapping[str, Any]) -> str:
    if bound["chosen_by"] == "user":
        return "as given"
    if bound["chosen_by"] == "default":
        return "the default, since there are too few labelled rows to choose it"
    best = min(entry["log_loss"] for entry in bound["tried"])
    how = f"chosen among {count(len(bound['tried']), 'value')} by cross-validation"
    if len(bound["tried"]) == 1:  # all margins are attained, so that larger values would change little
        how = "the smallest of the grid and the only value tried"
    return f"{how} (log-loss {best:.3f} nats)"


def _margin_text(facts: Mapping[str, Any]) -> str:
    margin, bias = facts["margin"], facts["bias"]
    text = f"Margin prior: {margin['distribution']} with mode {margin['target']:.3g}"
    if margin["distribution"] == "fixed":
        text = f"Hard margin of {margin['target']:.3g} for every row"
    if margin["quantile"] is not None:
        text += f", the {margin['quantile']:g} quantile of the margins before discrimination"
    return f"{text}; prior of the bias: " + ("flat" if bias == "flat" else f"Gaussian with variance {bias:g}")


def _support_text(facts: Mapping[str, Any]) -> str:
    support = facts["support"]
    if support["rows"] == 0:
        return "No support rows: every row already has its margin under the prior, so that training changed nothing"
    of_all = "" if support["of"] is None else f" of {count(support['of'], 'row')}"
    text = f"{support['rows']}{of_all} are support rows (their multiplier is not zero)"
    if of_all == "":
        text = f"{count(support['rows'], 'support row')} (their multiplier is not zero)"
    if support["prior_from_rows"] or _with_inferred_labels(facts):
        return text
    share = percent(support["leave_one_out"])
    return f"{text}; without any other row the model is the same, so that the leave-one-out error is at most {share}"


def _error_text(facts: Mapping[str, Any]) -> str:
    if facts["cv_error"] is None:
        return ""
    gamma = "tried" in (facts.get("kernel") or {})
    chosen = {
        "gamma": gamma,
        "C": bool(facts["C"]["tried"]),
        "the calibration": facts["calibration"]["kind"] in CALIBRATIONS,
    }
    fitted = [name for name, is_chosen in chosen.items() if is_chosen] or ["the use of unlabelled rows"]
    error, names = percent(facts["cv_error"], 1), " and ".join(fitted)
    return f"Error on held-out rows: {error}, in the cross-validation of {names}; slightly optimistic"


def _labels_text(facts: Mapping[str, Any]) -> str:
    if "inferred_labels" not in facts:
        return ""
    inferred = facts["inferred_labels"]
    rows = count(inferred["rows"], "row")
    certain = f"the inferred labels of {inferred['certain']} have a probability of at least {percent(CERTAIN)}"
    if inferred["used"]:
        return f"{rows} without a certain label were used; {certain}"
    return (
        f"Rows without a label were not used, since the predictions of held-out rows do not improve significantly with "
        f"them; of {rows} without a certain label, {certain}"
    )


def _calibration_text(facts: Mapping[str, Any]) -> str:
    calibration = facts["calibration"]
    kind, slope = calibration["kind"], calibration["slope"]
    if kind is None:
        return "Probabilities: softmax of the scores, not calibrated"
    if kind == "predictive":
        return "Probabilities: Bayes' rule with the predictive density of each class"
    if slope == 1.0 and not any(calibration["offset"]):
        return "Probabilities: softmax of the scores, not calibrated, since there are too few labelled rows"
    text = f"Probabilities: softmax of {slope:.3g} times the scores, calibrated on held-out rows ({kind})"
    if kind == "affine":
        offsets = [f"{class_name(c['class'])} {o:+.2f}" for c, o in zip(facts["classes"], calibration["offset"])]
        text += f", plus {listing(offsets, MOST_CLASSES)}"
    return text


def _with_inferred_labels(facts: Mapping[str, Any]) -> bool:
    """Whether rows whose labels are inferred are part of the fit."""
    return "inferred_labels" in facts and facts["inferred_labels"]["used"]


def _certificates(facts: Mapping[str, Any]) -> list[str]:
    gap = facts["gap"]
    if gap is not None and _with_inferred_labels(facts):
        return [f"For the labels inferred at the end, the objective is at most {gap:.1g} nats from its optimum."]
    return optimality(gap, "nats")


def tried_table(bound: Mapping[str, Any]) -> Table:
    """Table of the values of C tried."""
    rows = [
        [Number(readable(entry["C"], 3), best=entry["C"] == bound["value"]), Number(f"{entry['log_loss']:.4f}")]
        for entry in bound["tried"]
    ]
    return Table("Values of C tried, with their cross-validated log-loss", ["C", "log-loss (nats)"], rows)


def margins_on_rows(model: MEDBase, X: TableLike, y: ArrayLike | None) -> list[Content]:
    """Draw the margins of the training rows; nothing for other rows.

    Parameters
    ----------
    model : fitted classifier
    X : table of n rows
    y : (n,) labels, or None
    """
    if y is None or np.shape(y) != (model.n_rows_,) or not model._trains_margins():
        return []
    display = computed(MarginsDisplay.from_estimator, model, X, y)
    n, n_support = len(display.margin), int(display.support.sum())
    alt = f"Margins of {n} labelled training rows: {n_support} support rows, {display.n_wrong} with a negative margin."
    return [Figure(display.picture, alt, MARGINS)]


def label_name(label: Hashable) -> str:
    """The name of a class; "all classes" for None."""
    return "all classes" if label is None else class_name(plain(label))
