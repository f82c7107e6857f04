"""Fitted hidden Markov models in words, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Document
from mixent.base.text import count

if TYPE_CHECKING:
    from mixent.hmm.classifier import HMMClassifier
    from mixent.hmm.estimators import HiddenMarkovModel


def describe_model(model: HiddenMarkovModel) -> Document:
    """One hidden Markov model of all sequences."""
    return document(
        model, f"A hidden Markov model of {count(model.n_states, 'state')}.", schema=model.schema_, runs=[model.run_]
    )


def describe_classifier(model: HMMClassifier) -> Document:
    """A hidden Markov model for each class."""
    lead = (
        f"A hidden Markov model of {count(model.n_states, 'state')} for each of {count(len(model.classes_), 'class')}."
    )
    facts = {"classes": class_facts(model.classes_, model.class_prior_)}
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, facts=facts, classes=classes, schema=model.schema_, runs=model.runs_)
