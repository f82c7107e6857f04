"""Descriptions of fitted mixtures: text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.displays import ConvergenceDisplay, computed
from mixent.base.document import Bullets, Content, Document, Figure, Number, Section, Table
from mixent.base.text import class_name, count, percent, readable
from mixent.mixtures.describe_search import search_facts, search_sections
from mixent.mixtures.displays import ComponentsDisplay
from mixent.mixtures.options import Conditional, training_name

if TYPE_CHECKING:
    from mixent.mixtures.bayes import BayesMixture
    from mixent.mixtures.classifier import MixtureClassifier
    from mixent.mixtures.clustering import GaussianMixture
    from mixent.mixtures.model import MixtureModel
    from mixent.mixtures.shared import SharedMixtureClassifier

LISTED = 30  # components in the table
COLUMNS = 5  # columns of each type in the table
CLASSES = 4  # classes of a component in the table
DRAWN = 4  # smallest number of passes for which the objective is drawn
ZERO = 1e-6  # standard deviations below which a mean is shown as 0
TRAINED = {
    "conditional": "conditional likelihood of the classes",
    "error": "smoothed error rate",
}


def describe_mixture(model: GaussianMixture) -> Document:
    """Describe a mixture without classes: components, search, convergence."""
    weights = model.weights_
    facts = {
        "n_parameters": int(model.n_parameters_),
        "covariance": model.covariance_,
        "components": [{"component": k, "weight": float(w)} for k, w in enumerate(weights)],
        **_outlier_facts(model),
        **search_facts(model),
    }
    lead = f"A mixture of {count(len(weights), 'component')}{_structure(model.covariance_)}{_size(model)}."
    return _document(model, lead, _components(model, {}), facts)


def describe_classifier(model: MixtureClassifier) -> Document:
    """Describe a classifier with a mixture for each class: components, training, search, convergence."""
    gaussian = model.problem_.family.gaussian
    structures = [None] * len(model.classes_) if gaussian is None else list(model.covariance_)
    counts = [int(k) for k in model.n_components_]
    tied = gaussian is not None and len(gaussian.groups) < len(model.classes_)
    classes = [
        {**entry, "components": k, "covariance": s}
        for entry, k, s in zip(class_facts(model.classes_, model.class_prior_), counts, structures)
    ]
    facts = {**_classifier_facts(model), "classes": classes, "covariance_shared_by_classes": tied}
    lead = (
        f"A mixture for each of {count(len(counts), 'class')}, with {count(sum(counts), 'component')} in total"
        f"{_size(model)}."
    )
    more: dict[str, list[Any]] = {"components": counts, **({} if gaussian is None else {"covariance": structures})}
    shared = '"Equal" in the covariance structure refers to the components of all classes.'
    owner = {"class": [str(model.classes_[c]) for c in model.component_class_]}
    table = classes_table(model.classes_, model.class_prior_, more)
    return _document(model, lead, _components(model, owner), facts, table, [shared] if tied else [])


def describe_shared(model: SharedMixtureClassifier) -> Document:
    """Describe a classifier with shared components: components, classes, training, search, convergence."""
    shares, weights = model.class_given_component_, model.weights_.sum(axis=0)
    names = [str(c) for c in model.classes_]
    structure = None if model.problem_.family.gaussian is None else model.covariance_
    components: list[dict[str, Any]] = [
        {"component": k, "weight": float(w), "classes": dict(zip(names, map(float, share)))}
        for k, (w, share) in enumerate(zip(weights, shares.T))
    ]
    facts = {
        **_classifier_facts(model),
        "classes": class_facts(model.classes_, model.class_prior_),
        "covariance": structure,
        "components": components,
    }
    classes = f"{count(len(weights), 'component')} shared by {count(len(names), 'class')}"
    lead = f"{classes}{_structure(structure)}{_size(model)}."
    owner = {"p(class | component)": [_shares(entry["classes"]) for entry in components]}
    table = classes_table(model.classes_, model.class_prior_)
    return _document(model, lead, [*_components(model, owner), _classes_figure(model)], facts, table)


def _document(
    model: Any,
    lead: str,
    components: list[Content],
    facts: Mapping[str, Any],
    classes: Table | None = None,
    notes: list[str] | None = None,
) -> Document:
    """Return the document with classes, components, training, search and objective."""
    training = [*(notes or []), *_outliers(facts), *_training(facts)]
    sections = [
        Section("Components", components),
        *([Section("Training", [Bullets(training)])] if training else []),
        *search_sections(model),
        *_objective(model),
    ]
    return document(model, lead, sections, facts=facts, classes=classes, schema=model.schema_, runs=[model.run_])


# --- facts and sentences ----------------------------------------------------------------------------------------------


def _classifier_facts(model: BayesMixture) -> dict[str, Any]:
    training = model._group("training")
    blend = {"blend": float(training.blend)} if isinstance(training, Conditional) else {}
    return {
        "n_parameters": int(model.n_parameters_),
        "training": training_name(model),
        **blend,
        "temperature": float(model.temperature_),
        **_outlier_facts(model),
        **search_facts(model),
    }


def _outlier_facts(model: GaussianMixture | BayesMixture) -> dict[str, Any]:
    """Return the share of noise, or the degrees of freedom, if outliers are modeled."""
    df = model.degrees_of_freedom_
    facts: dict[str, Any] = {} if np.isinf(df).all() else {"degrees_of_freedom": [float(v) for v in df]}
    noise = float(np.sum(model.noise_weight_))
    return facts | ({"noise": noise} if noise > 0 else {})


def _outliers(facts: Mapping[str, Any]) -> list[str]:
    """Describe the model of outliers, if there is one."""
    if "noise" in facts:
        return [f"Noise: {percent(facts['noise'])} of the rows, with a uniform density over the range of the columns."]
    if "degrees_of_freedom" in facts:
        return ["The components are t distributions: the fewer degrees of freedom (df), the heavier the tails."]
    return []


def _training(facts: Mapping[str, Any]) -> list[str]:
    """Describe the objective of the training and the temperature, if they are not the default."""
    texts = []
    training, temperature = facts.get("training", "likelihood"), facts.get("temperature", 1.0)
    if training in TRAINED:
        blend = f" (blend {facts['blend']:g})" if facts.get("blend", 1.0) != 1.0 else ""
        texts.append(
            f"Trained discriminatively, by {TRAINED[training]}{blend}: the components describe the differences between "
            "the classes, not the distribution of the rows."
        )
    if temperature != 1.0:
        texts.append(
            f"The log densities of the classes are multiplied by {temperature:.3g}, because the model was "
            "overconfident on held-out rows."
        )
    return texts


def _structure(name: str | None) -> str:
    return f", covariance structure {name}" if name else ""


def _size(model: MixtureModel) -> str:
    return f"; {count(int(model.n_parameters_), 'free parameter')}"


def _shares(classes: Mapping[str, float]) -> str:
    """Return the most probable classes of a component as text, without those below 0.5 %."""
    top = sorted(((p, name) for name, p in classes.items() if p >= 0.005), key=lambda pair: -pair[0])
    return ", ".join([f"{name} {percent(p)}" for p, name in top[:CLASSES]] + ["..."] * (len(top) > CLASSES))


# --- tables and figures -----------------------------------------------------------------------------------------------


def _components(model: MixtureModel, owner: Mapping[str, list[str]]) -> list[Content]:
    """Return the table of components: weights, means and standard deviations, most probable categories."""
    weights = model.params_.weights.sum(axis=0)[: model.params_.n_components]
    numbers, likely, tails = _means(model), _likely_values(model), _tails(model)
    header = ["component", *owner, "weight", *tails, *numbers, *likely]
    columns: list[list[Any]] = [
        *owner.values(),
        [Number(f"{w:.3f}") for w in weights],
        *tails.values(),
        *numbers.values(),
        *likely.values(),
    ]
    rows = [[str(k), *(column[k] for column in columns)] for k in range(min(len(weights), LISTED))]
    return [Table(_caption(model, len(weights)), header, rows)]


def _caption(model: MixtureModel, n_components: int) -> str:
    parts = ["Components: weight (share of the rows)"]
    n_numeric, n_categorical = len(model.schema_.continuous), len(model.schema_.categorical)
    if n_numeric:
        some = f"the first {COLUMNS} of {n_numeric} numeric columns" if n_numeric > COLUMNS else "each numeric column"
        parts.append(f"mean ± {'scale' if _tails(model) else 'standard deviation'} of {some}")
    if n_categorical:
        some = f"the first {COLUMNS} of {n_categorical} categorical columns"
        parts.append(f"most probable value of {some if n_categorical > COLUMNS else 'each categorical column'}")
    return ", ".join(parts) + (f"; the first {LISTED} of {n_components} components" if n_components > LISTED else "")


def _tails(model: MixtureModel) -> dict[str, list[Number]]:
    """Return the degrees of freedom of t components."""
    df = model.degrees_of_freedom_
    return {} if np.isinf(df).all() else {"df": [Number(f"{v:.3g}") for v in df]}


def _means(model: MixtureModel) -> dict[str, list[Number]]:
    """Return mean ± standard deviation in each component, for the first numeric columns."""
    positions = model.schema_.continuous[:COLUMNS]
    means, deviations = model.means_, np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))
    columns = {}
    for j, position in enumerate(positions):
        pairs = zip(means[:, j], deviations[:, j])
        cells = [(0.0 if abs(mean) < ZERO * sd else mean, sd) for mean, sd in pairs]
        columns[str(model.schema_.names[position])] = [Number(f"{readable(m)} ± {readable(sd, 3)}") for m, sd in cells]
    return columns


def _likely_values(model: MixtureModel) -> dict[str, list[str]]:
    """Return the most probable value in each component and its probability, for the first categorical columns."""
    schema, tables, columns = model.schema_, model.category_probabilities_, {}
    for position in schema.categorical[:COLUMNS]:
        column = schema.columns[position]
        probs = tables[column.name]
        columns[str(column.name)] = [f"{probs.categories[p.argmax()]} ({percent(float(p.max()))})" for p in probs]
    return columns


def _classes_figure(model: SharedMixtureClassifier) -> Figure:
    display, shares = computed(ComponentsDisplay.from_estimator, model), model.class_given_component_
    most = ", ".join(
        f"{k}: {class_name(model.classes_[c])} ({percent(float(shares[c, k]))})"
        for k, c in enumerate(shares.argmax(axis=0))
    )
    caption = "p(class | component) of the shared components. Columns sum to 100 %."
    return Figure(display.picture, f"Most probable class of each component: {most}.", caption)


def _objective(model: MixtureModel) -> list[Section]:
    """Return the figure of the objective against passes, if there are several."""
    run = model.run_
    if run.n_passes < DRAWN:
        return []
    caption = (
        "Objective against passes over the data. It never decreases, except where a component is re-seeded or the "
        "prior is estimated again."
    )
    figure = Figure(lambda: computed(ConvergenceDisplay.from_trace, run.trace).picture(), "Objective by pass.", caption)
    return [Section("Objective", [figure])]
