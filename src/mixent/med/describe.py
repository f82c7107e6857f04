"""Fitted models of maximum entropy discrimination in words, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Document
from mixent.base.text import count

if TYPE_CHECKING:
    from mixent.med.estimator import MEDBase
    from mixent.med.fisher import FisherKernel
    from mixent.med.novelty import MEDNoveltyDetector


def describe_classifier(model: MEDBase) -> Document:
    """A classifier by margins."""
    lead = f"Maximum entropy discrimination of {count(len(model.classes_), 'class')}."
    facts = {"classes": class_facts(model.classes_, model.class_prior_)}
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, facts=facts, classes=classes, schema=model.schema_, runs=[model.run_])


def describe_novelty(model: MEDNoveltyDetector) -> Document:
    """A detector of unusual rows."""
    lead = f"A density of {count(len(model.schema_.columns), 'column')}; rows below {model.offset_:.4g} nats are novel."
    return document(model, lead, schema=model.schema_, runs=[model.run_])


def describe_kernel(model: FisherKernel) -> Document:
    """The features of a Fisher kernel."""
    return document(
        model,
        f"The Fisher kernel of a model, as {count(int(model.rank_), 'feature')}.",
        facts={"fisher_features": int(model.rank_)},
    )
