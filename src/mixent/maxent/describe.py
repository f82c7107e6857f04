"""Fitted maximum entropy models in words, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import class_facts, classes_table, document, optimality
from mixent.base.document import Bullets, Document, Figure, Number, Paragraph, Section, Table
from mixent.base.text import class_name, count
from mixent.core.driver import Run, Status
from mixent.maxent.contributions import strongest_features
from mixent.maxent.displays import ConstraintsDisplay, PathDisplay
from mixent.maxent.terms import Binned, Grouped, Latent, Moments

if TYPE_CHECKING:
    from mixent.maxent.classifier import MaxEntClassifier
    from mixent.maxent.layout import Layout
    from mixent.maxent.model import EntropyModel

NUMERIC = {  # what numeric columns become
    "union": "hidden components of mixtures, one mixture per class",
    "class": "hidden components of each class's own mixture",
    "pooled": "hidden components of one mixture",
    "bins": "bins",
    "moments": "means and second moments",
}
DRAWN = 6  # features whose values are drawn
LISTED = 12
NO_OPTIMUM = "no optimum"
NEARLY_CERTAIN = 1e-2  # nats per row; where the log-loss is a thousandth, the entropy is below this


def describe_classifier(model: MaxEntClassifier) -> Document:
    """Features, their contributions, the selection, the prior, how the fit ended."""
    facts = {
        "features": list(model.feature_terms_),
        "numeric_features": _numeric_kind(model.layout_),
        **entropy_facts(model),
        **_path_facts(model),
    }
    numeric = facts["numeric_features"]
    lead = (
        "Of all conditional distributions p(class | row) that reproduce how often each class occurs with each value of "
        f"{count(len(facts['features']), 'feature')} ({count(facts['constraints'], 'constraint')}), the one of maximum "
        f"entropy.{f' Numeric columns enter as {NUMERIC[numeric]}.' if numeric else ''}"
    )
    sections = [features_section(model)] if model.feature_terms_ else []
    sections += [_selection_section(model, facts)] if model.path_ else []
    return entropy_document(model, lead, sections, facts, schema=model.schema_)


# --- what classifiers and stacks of maximum entropy share -------------------------------------------------------------


def entropy_facts(model: EntropyModel) -> dict[str, Any]:
    """Size, prior, certificate, entropy and strongest features of a conditional maximum entropy model."""
    shares = model.truth_[0][model.truth_[0] > 0]  # of the classes in the training rows, as the entropy is
    return {
        "classes": class_facts(model.classes_, model.class_prior_),
        "n_parameters": int(model.n_parameters_),
        "constraints": int(model.truth_[1:].size),
        "prior_variance": variance_facts(model, model.prior_variances_tried_),
        "certificate": {"gap": None if model.gap_ is None else float(model.gap_), "residual": float(model.residual_)},
        "entropy": float(model.entropy_),
        "entropy_of_classes": -float(shares @ np.log(shares)),
        "strongest": strongest_features(model),
    }


def entropy_document(
    model: EntropyModel,
    lead: str,
    sections: Sequence[Section],
    facts: Mapping[str, Any],
    *,
    inner: Mapping[str, Run] = {},
    **more: Any,
) -> Document:
    """The description of a conditional maximum entropy model; `inner`: runs of models inside it."""
    missing = no_optimum(model)
    run = model.run_ if missing is None else replace(model.run_, status=Status.MAX_PASSES, message=missing)
    entropy = f"Entropy of the class given the row {facts['entropy']:.3f} nats; of the class alone "
    bullets = Bullets([variance_text(facts["prior_variance"]), f"{entropy}{facts['entropy_of_classes']:.3f} nats."])
    certificates = [*optimality(model.gap_), f"Constraints are met within {model.residual_:.2g}{_least_met(model)}."]
    runs = {"combination": run} if inner else [run]
    classes = classes_table(model.classes_, model.class_prior_)
    sections = [*sections, Section("Prior and entropy", [bullets])]
    more |= {"classes": classes, "certificates": certificates}
    found = document(model, lead, sections, facts=facts, runs=runs, inner=inner, **more)
    return found if missing is None else with_status(found, NO_OPTIMUM)


def with_status(found: Document, status: str) -> Document:
    """The description with another status of the run among its facts."""
    return replace(found, facts={**found.facts, "run": {**found.facts["run"], "status": status}})


def features_section(model: EntropyModel, title: str = "Features") -> Section:
    """The strongest features, the value of each that is the strongest evidence, and a figure of their contributions."""
    adds = "log-odds" if len(model.classes_) == 2 else "logit of that class, less the mean of all classes"
    rows = [
        [
            entry["feature"],
            Number(f"{entry['strength']:.3f}"),
            str(entry["value"]),
            class_name(entry["class"]),
            Number(f"{entry['nats']:.2f}"),
        ]
        for entry in strongest_features(model, LISTED)
    ]
    n = len(model.feature_terms_)
    some = f"The {len(rows)} strongest of {n} features" if n > len(rows) else "Features, the strongest first"
    caption = (
        f"{some}. Strength is the standard deviation over rows of a feature's part of the log-odds; then the value "
        f"that is the strongest evidence, for which class, and what it adds to the {adds}, relative to the average row"
    )
    header = ["feature", "strength (nats)", "strongest value", "evidence for", "adds (nats)"]
    return Section(title, [Table(caption, header, rows), _contributions(model)])


def _contributions(model: EntropyModel) -> Figure:
    display = ConstraintsDisplay.from_estimator(model, n_features=DRAWN)
    names = ", ".join(one.name for one in display.contributions)
    caption = "Contributions of the strongest features to the "
    caption += "log-odds" if len(model.classes_) == 2 else "logit of each class, less the mean of all classes"
    caption += ", relative to the average row"
    if any(one.curve is None for one in display.contributions):
        caption += "; beside each value its share of the rows"
    if any(one.curve is not None and one.curve.counted for one in display.contributions):
        caption += "; gray, the density of the rows"
    return Figure(display.picture, f"Contributions to the log-odds by value of {names}.", f"{caption}.")


def _least_met(model: EntropyModel) -> str:
    if not model.layout_.terms:
        return ""
    feature, value, label, off = ConstraintsDisplay.from_estimator(model, n_features=1).largest(1)[0]
    return f"; the largest residual is {off:+.2g}, of {feature} = {value} with {class_name(label)}"


def no_optimum(model: EntropyModel) -> str | None:
    """Why the multipliers of a model without a prior have no optimum; None where they have one."""
    if model.prior_variance_ is not None or model.run_.status is not Status.CONVERGED:
        return None
    truth, mask = model.truth_[1:], model.layout_.mask(len(model.classes_))
    never = (truth == 0) & (truth.sum(axis=1, keepdims=True) > 0)
    if (never if mask is None else never & (mask > 0)).any():
        reason = "a value never occurs with a class"
    elif model.entropy_ < NEARLY_CERTAIN:
        reason = "the classes look separable"
    else:
        return None
    return (
        f"the gain per row fell below tol, but there is no optimum: {reason}, and without a prior multipliers grow "
        "without bound; set prior_variance='auto'"
    )


def variance_facts(model: Any, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The variance of the Gaussian prior, how it was chosen, and the log-loss of those tried."""
    how = "none" if model.prior_variance is None else "given"
    if isinstance(model.prior_variance, str):
        how = "cross-validation" if tried else "default"
    return {
        "value": None if model.prior_variance_ is None else float(model.prior_variance_),
        "how": how,
        "tried": [dict(entry) for entry in tried],
    }


def variance_text(variance: Mapping[str, Any]) -> str:
    """The variance of the prior, in a sentence."""
    if variance["how"] == "none":
        return "No prior on the multipliers: constraints are met exactly where they can be."
    text = f"Prior variance of the multipliers {variance['value']:g}"
    if variance["how"] == "given":
        return f"{text}, as given."
    if variance["how"] == "default":
        return f"{text}, the default: too few labelled rows to choose it."
    best = min(entry["log_loss"] for entry in variance["tried"])
    return f"{text}, chosen from {len(variance['tried'])} by cross-validation: log-loss {best:.3f} nats."


# --- the classifier ---------------------------------------------------------------------------------------------------


def _numeric_kind(layout: Layout) -> str | None:
    """What the numeric columns among the features have become; None where there are none."""
    for term in layout.single_terms():
        if isinstance(term, Latent | Grouped):
            return term.kind
        if isinstance(term, Binned | Moments):
            return "bins" if isinstance(term, Binned) else "moments"
    return None


def _path_facts(model: MaxEntClassifier) -> dict[str, Any]:
    if not model.path_:
        return {}
    steps = [
        {"feature": step.name, "gain": float(step.gain), "score": float(step.score), "kept": bool(step.kept)}
        for step in model.path_
    ]
    return {"selection": model.path_[0].criterion, "path": steps}


def _selection_section(model: MaxEntClassifier, facts: Mapping[str, Any]) -> Section:
    kept = [step for step in facts["path"] if step["kept"]]
    name = "BIC" if facts["selection"] == "bic" else "held-out log-loss"
    if kept:
        scores = f"{kept[0]['score']:.6g} with the first to {kept[-1]['score']:.6g} with the last"
        text = f"{len(kept)} of {count(len(facts['path']), 'addition')} kept; {name} from {scores}."
    else:
        text = f"No feature was kept: none lowers the {name}; every row gets the class priors."
    names = ", ".join(step["feature"] for step in kept) or "none kept"
    caption = (
        "Features are added one at a time, each time the one with the largest expected gain beyond its parameters."
    )
    display = PathDisplay.from_estimator(model)
    figure = Figure(display.picture, f"Added: {names}.", caption)
    return Section("Feature selection", [Paragraph(text), figure])
