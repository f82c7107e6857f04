"""Fitted ensembles in words, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Document
from mixent.base.text import count

if TYPE_CHECKING:
    from mixent.ensemble.boosted import Boosted
    from mixent.ensemble.columns import OutputColumns
    from mixent.ensemble.stacked import Stacked
    from mixent.ensemble.tuned import TunedClassifier


def _of_classes(model: Any, lead: str, **more: Any) -> Document:
    facts = {"classes": class_facts(model.classes_, model.class_prior_)}
    return document(model, lead, facts=facts, classes=classes_table(model.classes_, model.class_prior_), **more)


def describe_boosting(model: Boosted) -> Document:
    """A boosted classifier."""
    return _of_classes(model, f"Boosting of {count(len(model.classes_), 'class')}.", schema=model.schema_)


def describe_stack(model: Stacked) -> Document:
    """Classifiers combined by a second one."""
    return _of_classes(
        model, f"{count(len(model.base_names_), 'classifier')} combined: {', '.join(model.base_names_)}."
    )


def describe_tuned(model: TunedClassifier) -> Document:
    """A classifier of another library."""
    return _of_classes(
        model, f"{type(model.model_).__name__} with settings {model.best_params_}.", schema=model.schema_
    )


def describe_columns(model: OutputColumns) -> Document:
    """Answers that stand in the table."""
    return document(model, f"Answers in {model.columns!r}.")
