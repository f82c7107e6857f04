"""Descriptions of fitted maximum entropy models: text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import class_facts, classes_table, document, optimality
from mixent.base.displays import computed
from mixent.base.document import Bullets, Document, Figure, Number, Paragraph, Section, Table
from mixent.base.text import class_name, count
from mixent.core.driver import Run, Status
from mixent.maxent.contributions import strongest_features
from mixent.maxent.displays import ConstraintsDisplay, PathDisplay
from mixent.maxent.terms import Binned, Grouped, Latent, Moments, is_pair

if TYPE_CHECKING:
    from mixent.maxent.classifier import MaxEntClassifier
    from mixent.maxent.layout import Layout
    from mixent.maxent.model import EntropyModel

NUMERIC = {  # how numeric columns are converted to features
    "union": "hidden components of mixtures, one mixture per class",
    "class": "hidden components of each class's own mixture",
    "pooled": "hidden components of one mixture",
    "bins": "bins",
    "moments": "means and second moments",
}
DRAWN = 6  # features in the figure
LISTED = 12  # features in the table
NO_OPTIMUM = "no optimum"
NEARLY_CERTAIN = 1e-2  # nats per row; a log-loss of 1e-3 implies an entropy below this


def describe_classifier(model: MaxEntClassifier) -> Document:
    """Features, their contributions, feature selection, prior and convergence."""
    facts = {
        "features": list(model.feature_terms_),
        "numeric_features": _numeric_kind(model.layout_),
        **entropy_facts(model),
        **_path_facts(model),
        **_pair_facts(model),
    }
    if facts.get("pairs", {}).get("found"):
        facts["prior_variance"]["without_pairs"] = True
    numeric = facts["numeric_features"]
    lead = (
        "The distribution p(class | row) with maximum entropy among all that reproduce the training frequencies of "
        f"each class with each value of {count(len(facts['features']), 'feature')} "
        f"({count(facts['constraints'], 'constraint')})."
        f"{f' Numeric columns are represented by {NUMERIC[numeric]}.' if numeric else ''}"
    )
    sections = [features_section(model)] if model.feature_terms_ else []
    sections += [_selection_section(model, facts)] if model.path_ else []
    sections += [_pairs_section(facts["pairs"])] if "pairs" in facts else []
    return entropy_document(model, lead, sections, facts, schema=model.schema_)


# --- shared by the classifier and the stacking classifier -------------------------------------------------------------


def entropy_facts(model: EntropyModel) -> dict[str, Any]:
    """Size, prior, optimality certificate, entropy and strongest features of a conditional maximum entropy model."""
    shares = model.truth_[0][model.truth_[0] > 0]  # class frequencies of the training rows
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
    """The description of a conditional maximum entropy model; `inner` holds the runs of the models it combines."""
    reason = no_optimum(model)
    run = model.run_ if reason is None else replace(model.run_, status=Status.MAX_PASSES, message=reason)
    entropy = f"Conditional entropy of the class given the row {facts['entropy']:.3f} nats; entropy of the class "
    bullets = Bullets([variance_text(facts["prior_variance"]), f"{entropy}{facts['entropy_of_classes']:.3f} nats."])
    residual = f"Constraints are satisfied within {model.residual_:.2g}{_largest_residual(model)}."
    certificates = [*optimality(model.gap_), residual]
    runs = {"combination": run} if inner else [run]
    classes = classes_table(model.classes_, model.class_prior_)
    sections = [*sections, Section("Prior and entropy", [bullets])]
    more |= {"classes": classes, "certificates": certificates}
    description = document(model, lead, sections, facts=facts, runs=runs, inner=inner, **more)
    return description if reason is None else with_status(description, NO_OPTIMUM)


def with_status(description: Document, status: str) -> Document:
    """The description with another status of the run in its facts."""
    return replace(description, facts={**description.facts, "run": {**description.facts["run"], "status": status}})


def features_section(model: EntropyModel, title: str = "Features") -> Section:
    """The strongest features, each with the value that is the strongest evidence, and a figure of contributions."""
    target = "log-odds" if len(model.classes_) == 2 else "logit of that class minus the mean over all classes"
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
    listed = f"The {len(rows)} strongest of {n} features" if n > len(rows) else "Features, the strongest first"
    caption = (
        f"{listed}. The strength is the standard deviation over rows of a feature's contribution to the log-odds. The "
        f"strongest value is the one with the most evidence for a class; its contribution to the {target} is relative "
        "to the average row"
    )
    header = ["feature", "strength (nats)", "strongest value", "evidence for", "contribution (nats)"]
    return Section(title, [Table(caption, header, rows), _contributions(model)])


def _contributions(model: EntropyModel) -> Figure:
    display = computed(ConstraintsDisplay.from_estimator, model, n_features=DRAWN)
    names = ", ".join(contribution.name for contribution in display.contributions)
    curves = [contribution.curve for contribution in display.contributions]
    caption = "Contributions of the strongest features to the "
    caption += "log-odds" if len(model.classes_) == 2 else "logit of each class minus the mean over all classes"
    caption += ", relative to the average row"
    if any(contribution.curve is None and contribution.surface is None for contribution in display.contributions):
        caption += "; percentages are the shares of the rows with each value"
    if any(curve is not None and curve.has_density for curve in curves):
        caption += "; gray, the density of the rows"
    if any(contribution.surface is not None for contribution in display.contributions):
        caption += "; a heat map, what a pair of columns adds, as evidence for the class at its color bar"
    return Figure(display.picture, f"Contributions to the log-odds by value of {names}.", f"{caption}.")


def _largest_residual(model: EntropyModel) -> str:
    if not model.layout_.terms:
        return ""
    feature, value, label, residual = computed(ConstraintsDisplay.from_estimator, model, n_features=1).largest(1)[0]
    return f"; the largest residual is {residual:+.2g}, of {feature} = {value} with {class_name(label)}"


def no_optimum(model: EntropyModel) -> str | None:
    """The reason why the multipliers of a model without a prior have no finite optimum; None if they have one."""
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
        f"the gain per row fell below tol, but there is no finite optimum: {reason}, and without a prior the "
        "multipliers grow without bound; set prior_variance='auto'"
    )


def variance_facts(model: Any, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The variance of the Gaussian prior, how it was chosen, and the log-loss of the candidates."""
    how = "none" if model.prior_variance is None else "given"
    if isinstance(model.prior_variance, str):
        how = "cross-validation" if tried else "default"
    return {
        "value": None if model.prior_variance_ is None else float(model.prior_variance_),
        "how": how,
        "tried": [dict(entry) for entry in tried],
    }


def variance_text(variance: Mapping[str, Any]) -> str:
    """A sentence about the variance of the prior."""
    if variance["how"] == "none":
        return "No prior on the multipliers: the constraints are satisfied exactly where that is possible."
    text = f"Prior variance of the multipliers {variance['value']:g}"
    if variance["how"] == "given":
        return f"{text}, as given."
    if variance["how"] == "default":
        return f"{text}, the default: there are too few labelled rows to choose it."
    best = min(entry["log_loss"] for entry in variance["tried"])
    loss = "log-loss without pairs" if variance.get("without_pairs") else "log-loss"
    return f"{text}, chosen from {len(variance['tried'])} by cross-validation; {loss} {best:.3f} nats."


# --- the classifier ---------------------------------------------------------------------------------------------------


def _numeric_kind(layout: Layout) -> str | None:
    """How numeric columns were converted to features; None if there are none."""
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


def _pair_facts(model: MaxEntClassifier) -> dict[str, Any]:
    """The pairs found, their prior variance, and the log-loss with each number of pairs; none if not sought."""
    tried = [dict(entry) for entry in model.pairs_tried_]
    if not tried:
        return {}
    searched = model.pair_variance_ is not None
    chosen = [term.name for term in model.layout_.terms if searched and is_pair(term)]
    return {"pairs": {"found": chosen, "prior_variance": model.pair_variance_, "tried": tried}}


def _pairs_section(pairs: Mapping[str, Any]) -> Section:
    tried, chosen = pairs["tried"], pairs["found"]
    if chosen:
        after = next(entry["log_loss"] for entry in reversed(tried) if entry["pairs"] == len(chosen))
        named = ", ".join(chosen[:LISTED]) + f" and {len(chosen) - LISTED} more" * (len(chosen) > LISTED)
        text = (
            f"{count(len(chosen), 'pair')} of columns found by cross-validation ({named}): log-loss {after:.3f} nats, "
            f"without pairs {tried[0]['log_loss']:.3f}. Prior variance of their multipliers "
            f"{pairs['prior_variance']:g}. The contribution of a column includes the mean over its partners; that of a "
            "pair is what remains."
        )
    else:
        text = "No pairs of columns were added: none lowers the cross-validated log-loss clearly."
    return Section("Interactions", [Paragraph(text)])


def _selection_section(model: MaxEntClassifier, facts: Mapping[str, Any]) -> Section:
    kept = [step for step in facts["path"] if step["kept"]]
    name = "BIC" if facts["selection"] == "bic" else "held-out log-loss"
    if kept:
        scores = f"{kept[0]['score']:.6g} with the first to {kept[-1]['score']:.6g} with the last"
        text = f"{len(kept)} of {count(len(facts['path']), 'added feature')} kept; {name} from {scores}."
    else:
        text = (
            f"No feature was kept, because none lowers the {name}: the model predicts the class priors for every row."
        )
    names = ", ".join(step["feature"] for step in kept) or "none kept"
    caption = (
        "Features are added one at a time; each step adds the feature with the largest expected gain minus the "
        "penalty for its parameters."
    )
    display = computed(PathDisplay.from_estimator, model)
    figure = Figure(display.picture, f"Selected features: {names}.", caption)
    return Section("Feature selection", [Paragraph(text), figure])
