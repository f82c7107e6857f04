"""Descriptions of fitted discriminant functions and Fisher kernels: text, tables and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import describe, document
from mixent.base.document import Content, Document, Number, Section, Table
from mixent.base.kernels import RBF, Kernel, Linear, Nystrom, Polynomial
from mixent.base.text import class_name, count, plain
from mixent.hmm.model import SequenceModel
from mixent.med.describe_margins import SOLUTION, Facts, describe_margins
from mixent.med.fisher import FisherKernel

if TYPE_CHECKING:
    from mixent.med.classifier import MEDClassifier
    from mixent.med.gaussian_classifier import MEDGaussianClassifier

MOST_COLUMNS = 12


def describe_classifier(model: MEDClassifier) -> Document:
    """Describe a linear or kernel discriminant function."""
    text, kernel = _discriminant(model)
    if model.gamma_tried_:
        text += f", chosen from {len(model.gamma_tried_)} values by cross-validation"
        kernel["tried"] = model.gamma_tried_
    facts: Facts = {"kernel": kernel}
    content: list[Content] = []
    if isinstance(model.kernel_, Linear):
        strongest = strongest_columns(model)
        facts |= {"strongest": strongest, "encoded_columns": len(model.feature_names_)}
        content.append(_columns_table(model, strongest))
    return describe_margins(model, SOLUTION.format(over="discriminant functions", model=text), content, facts)


def describe_gaussians(model: MEDGaussianClassifier) -> Document:
    """Describe Gaussian class densities."""
    n = model.n_encoded_features_
    text, kernel = f"Gaussian densities of {count(n, 'encoded column')}", None
    if model.components_ is not None:
        inner, kernel = _kernel(model.components_.nystrom.kernel)
        kernel["components"] = n
        text = f"Gaussian densities of the {count(n, 'leading principal component')} of the {inner}"
    lead = SOLUTION.format(over="the Gaussians of the classes", model=text)
    return describe_margins(model, lead, [], {"kernel": kernel})


def describe_kernel(model: FisherKernel) -> Document:
    """Describe a Fisher kernel and its model."""
    inner = describe(model.model_)
    text, facts = _fisher(model)
    sections = [Section(section.title or inner.title, section.content) for section in inner.sections]
    lead = f"{text}: the gradient of the log-density with respect to its {len(model.information_)} free parameters."
    return document(model, lead, sections, facts={**facts, "model": dict(inner.facts)})


# --- kernels ----------------------------------------------------------------------------------------------------------


def _discriminant(model: MEDClassifier) -> tuple[str, Facts]:
    """The discriminant function, as text and as values."""
    features, kernel = model.feature_map_, model.kernel_
    if isinstance(kernel, Linear):
        return f"Linear discriminant function of {count(len(model.feature_names_), 'encoded column')}", {
            "name": "linear"
        }
    if kernel is not None:
        text, facts = _kernel(kernel)
        if isinstance(features, Nystrom):
            facts["landmarks"] = len(features.landmarks)
            text += f", approximated by {count(len(features.landmarks), 'landmark')}"
        return text[0].upper() + text[1:], facts
    if features is None:
        return "Precomputed kernel matrix", {"name": "precomputed"}
    if isinstance(features, FisherKernel):
        return _fisher(features)
    name = type(features).__name__
    return f"Inner products of the features of {name}", {"name": name}


def _kernel(kernel: Kernel) -> tuple[str, Facts]:
    if isinstance(kernel, RBF):
        return f"RBF kernel with gamma {kernel.gamma:.3g}", {"name": "rbf", "gamma": kernel.gamma}
    if isinstance(kernel, Polynomial):
        facts = {"name": "poly", "degree": kernel.degree, "gamma": kernel.gamma, "coef0": kernel.coef0}
        text = f"polynomial kernel of degree {kernel.degree} with gamma {kernel.gamma:.3g}, coef0 {kernel.coef0:.3g}"
        return text, facts
    return "kernel given as a function", {"name": "function"}


def _fisher(model: FisherKernel) -> tuple[str, Facts]:
    inner, rank = model.model_, int(model.rank_)
    if isinstance(inner, SequenceModel):
        n, kind = int(inner.n_states), "hidden Markov model"
        text = f"a hidden Markov model of {count(n, 'state')}"
    else:
        n, kind = int(inner.params_.weights.shape[-1]), "mixture"
        text = f"a mixture of {count(n, 'component')}"
    facts = {"name": "fisher", "of": kind, "components": n, "features": rank}
    return f"Fisher kernel of {text}, as {count(rank, 'feature')}", facts


# --- columns of a linear discriminant ---------------------------------------------------------------------------------


def strongest_columns(model: MEDClassifier, most: int = MOST_COLUMNS) -> list[Facts]:
    """The encoded columns with the largest coefficients of a linear discriminant, and the class they are evidence for.

    With more than two classes, a coefficient is that of the class minus the mean over all classes.
    """
    weights = model.function_.weights  # (r, C)
    relative = weights - (weights[:, ::-1] if weights.shape[1] == 2 else weights.mean(axis=1, keepdims=True))
    size, favored = relative.max(axis=1), relative.argmax(axis=1)
    order = np.argsort(-size, kind="stable")[:most]
    return [
        {"column": model.feature_names_[j], "coefficient": float(size[j]), "class": plain(model.classes_[favored[j]])}
        for j in order
    ]


def _columns_table(model: MEDClassifier, strongest: list[Facts]) -> Table:
    n = len(model.feature_names_)
    which = f"The {len(strongest)} largest of {n} coefficients" if n > len(strongest) else "Coefficients"
    relative = "" if len(model.classes_) == 2 else ", relative to the mean over all classes"
    scaled = "; numbers are in standard deviations" if model.standardize else ""
    rows: list[Any] = [
        [entry["column"], Number(f"{entry['coefficient']:.3f}"), class_name(entry["class"])] for entry in strongest
    ]
    caption = f"{which} of the discriminant function{relative}{scaled}"
    return Table(caption, ["column", "coefficient", "a higher value is evidence for"], rows)
