"""What the search for a mixture tried, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixent.base.document import Number, Table
from mixent.base.text import readable

SAME = ("log_loss", "error", "temperature")  # equal in these, two models of a search are the same to a reader
LEFT_OUT = ("chosen", "evaluations", "log_loss_raw")  # of a search: not for readers of a page
IDLE = (
    "across_classes",
    "prior_rows",
    "prior_local",
    "noise",
    "temperature",
    "folds",
    "converged",
)  # told if they differ


def search_table(
    search: Sequence[Mapping[str, Any]], by: str = "cv", *, nested: bool = False, longest: int = 8
) -> Table:
    """The chosen entries of a search and the best others; of those that predict the same, the first."""
    held = "log_loss" in search[0]
    if by in search[0] and not held:
        search = sorted(search, key=lambda entry: entry[by])
    ordered = sorted(search, key=lambda entry: not entry.get("chosen", False))  # stable: the rest stays best first
    different: dict[Any, Mapping[str, Any]] = {}
    for entry in ordered:
        different.setdefault(tuple(_value(entry.get(key), digits=9) for key in SAME) if held else id(entry), entry)
    entries = list(different.values())
    shown = entries[:longest]
    same = [key for key in IDLE if key in search[0] and _all_alike(shown, key)]
    keys = [key for key in search[0] if key not in LEFT_OUT and key not in same]
    rows = [
        ["chosen" if entry.get("chosen") else "", *(_found(entry.get(key), key) for key in keys)] for entry in shown
    ]
    if held:
        how = "held-out error" if nested else "held-out log-loss"
    else:
        how = ("-2 x held-out log density" if by == "cv" else by.upper()) + ", lower is better"
    first = "the chosen one first" if sum(bool(entry.get("chosen")) for entry in search) < 2 else "those chosen first"
    told = f"{min(longest, len(entries))} of {len(entries)}, {first}, then by {how}"
    caption = f"What the search tried ({told})"
    if len(entries) < len(search):
        caption += f". Left out: {len(search) - len(entries)} that predict the same as another"
    told_once = [f"{key.replace('_', ' ')} {_text_of(shown[0][key])}" for key in same if shown[0][key]]
    if told_once:
        caption += f". The same in all: {', '.join(told_once)}"
    if "across_classes" in keys or any(entry.get("across_classes") for entry in shown):
        caption += ". Across classes: all classes share what the structure calls equal"
    return Table(caption, ["", *(str(key).replace("_", " ") for key in keys)], rows)


def _text_of(value: Any) -> str:
    value = _value(value)
    return readable(value, 3) if isinstance(value, float) else str(value)


def _all_alike(entries: Sequence[Mapping[str, Any]], key: str) -> bool:
    return len({_value(entry.get(key), digits=9) for entry in entries}) == 1


def _found(value: Any, key: str) -> Any:
    """A cell of the search table, in few digits: it has many columns."""
    value = _value(value) if not isinstance(value, list | tuple) else value
    if isinstance(value, list | tuple):
        alike = len(value) > 1 and len(set(value)) == 1
        return f"{value[0]} each" if alike else ", ".join(map(str, value))
    if isinstance(value, float) and np.isfinite(value):
        return Number(f"{value:.3f}" if key in ("log_loss", "error") else readable(value, 3 if key in IDLE else 5))
    return value


def _value(value: Any, digits: int | None = None) -> Any:
    """As a cell of a table; with `digits`, as something to compare by."""
    value = value.item() if isinstance(value, np.generic) else value
    if digits is not None and isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {v}" for k, v in value.items())
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(str(_value(v)) for v in value)
    return value if value is None or isinstance(value, int | float) else str(value)
