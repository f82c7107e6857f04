"""How a column of the user's table is read: plain values, numbers as text, dates, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mixent.data.dates import DateText
from mixent.data.numbers import NumberText


@dataclass(frozen=True)
class Plain:
    """Numbers or categories, as they are."""


@dataclass(frozen=True)
class Ignored:
    """A column that the model does not use.

    Parameters
    ----------
    reason : {"empty", "identifier"}
        It had no values in training, or hardly two that were equal.
    """

    reason: str

    def __post_init__(self) -> None:
        if self.reason not in ("empty", "identifier"):
            raise ValueError(f"unknown reason {self.reason!r}")


Format = Plain | Ignored | NumberText | DateText
PLAIN = Plain()
KINDS: dict[str, type] = {"plain": Plain, "ignored": Ignored, "numbers": NumberText, "dates": DateText}


def format_to_json(form: Format) -> dict[str, Any]:
    """Return a format in plain JSON types."""
    kind = next(name for name, cls in KINDS.items() if isinstance(form, cls))
    return {"kind": kind, **{k: list(v) if isinstance(v, tuple) else v for k, v in asdict(form).items()}}


def format_from_json(d: Mapping[str, Any]) -> Format:
    """Read what `format_to_json` wrote; a ValueError, KeyError or TypeError where it did not."""
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in d.items() if k != "kind"}
    return KINDS[d["kind"]](**values)
