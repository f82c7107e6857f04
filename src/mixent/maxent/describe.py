"""Fitted maximum entropy models in words, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Document
from mixent.base.text import count

if TYPE_CHECKING:
    from mixent.maxent.classifier import MaxEntClassifier
    from mixent.maxent.joint import MaxEntJoint


def describe_classifier(model: MaxEntClassifier) -> Document:
    """The classifier of maximum entropy."""
    lead = f"The conditional distribution of maximum entropy over {count(len(model.classes_), 'class')}."
    facts = {"classes": class_facts(model.classes_, model.class_prior_), "n_parameters": int(model.n_parameters_)}
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, facts=facts, classes=classes, schema=model.schema_, runs=[model.run_])


def describe_joint(model: MaxEntJoint) -> Document:
    """The joint distribution of all columns."""
    lead = f"The joint distribution of maximum entropy of {count(len(model.schema_.columns), 'column')}."
    facts = {"n_parameters": int(model.n_parameters_)}
    return document(model, lead, facts=facts, schema=model.schema_, runs=[model.run_])
