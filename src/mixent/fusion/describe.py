"""Fitted fusions in words, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Document

if TYPE_CHECKING:
    from mixent.fusion.estimator import Fuser


def describe_fusion(model: Fuser) -> Document:
    """Sources fused on a batch."""
    facts = {"classes": class_facts(model.classes_, model.prior_), "method": model.method_}
    return document(
        model,
        f"Fusion by the method {model.method_!r}.",
        facts=facts,
        classes=classes_table(model.classes_, model.prior_),
    )
