"""Fitted mixtures in words, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Document
from mixent.base.text import count

if TYPE_CHECKING:
    from mixent.mixtures.bayes import BayesMixture
    from mixent.mixtures.clustering import GaussianMixture


def describe_mixture(model: GaussianMixture) -> Document:
    """A mixture of all rows."""
    lead = f"A mixture of {count(len(model.weights_), 'component')}, covariance structure {model.covariance_}."
    return document(model, lead, schema=model.schema_, runs=[model.run_])


def describe_classifier(model: BayesMixture) -> Document:
    """The Bayes classifier of mixtures."""
    lead = f"A Bayes classifier of {count(len(model.classes_), 'class')} by Gaussian mixtures."
    facts = {"classes": class_facts(model.classes_, model.class_prior_)}
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, facts=facts, classes=classes, schema=model.schema_, runs=[model.run_])
