"""Fitted Parzen windows and kernel Fisher discriminants in words, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Document
from mixent.base.text import count

if TYPE_CHECKING:
    from mixent.classical.kernel_fisher import KernelFisherClassifier
    from mixent.classical.parzen import ParzenClassifier


def describe_classifier(model: ParzenClassifier | KernelFisherClassifier) -> Document:
    """A classifier whose settings were chosen by leaving each row out."""
    lead = (
        f"{count(len(model.classes_), 'class')}; leaving each row out: log-loss {model.loo_log_loss_:.3f} nats, error "
        f"{100 * model.loo_error_:.1f} %."
    )
    facts = {"classes": class_facts(model.classes_, model.class_prior_)}
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, facts=facts, classes=classes, schema=model.schema_)
