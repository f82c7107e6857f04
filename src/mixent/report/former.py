"""Sections of families whose description is not complete yet; each goes when its `on_rows` is there."""

from __future__ import annotations

from typing import Any

from mixent.base.document import Content, can_draw
from mixent.base.registry import entry_of
from mixent.report.mixture import mixture_section
from mixent.report.mixture_rows import clusters, pair_map
from mixent.report.sequences import sequences_section


def former_section(model: Any, X: Any, y: Any) -> list[Content]:
    """What the page showed of a model."""
    family, name, draw = entry_of(model).family, type(model).__name__, can_draw()
    if family == "hmm" and hasattr(model, "runs_"):
        return sequences_section(name, model, None, None, draw=draw)
    if family != "mixtures":
        return []
    if not hasattr(model, "classes_"):
        return [*clusters(model, X), *mixture_section(name, model, X)]
    return [*(pair_map({name: model}, name, X, y) if y is not None else []), *mixture_section(name, model, X)]
