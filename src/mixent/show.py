"""One-line representations of results and parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from html import escape
from numbers import Integral, Real
from typing import Any, ClassVar

LENGTH = 120  # most characters of a representation
PART = 40  # most characters of a value in it
FEW = 4  # most numbers of an array that are listed


class Short:
    """A dataclass whose representation is one line of at most 120 characters.

    Arrays and long containers are shown by their sizes, other objects by their types. A subclass names the fields and
    properties to show in `_shown` (default: all fields).
    """

    _shown: ClassVar[tuple[str, ...]] = ()

    def _brief(self) -> str:
        """The text between the parentheses."""
        names = self._shown or tuple(f.name for f in fields(self) if f.repr)  # type: ignore[arg-type]
        return ", ".join(f"{name}={short_text(getattr(self, name))}" for name in names)

    def __repr__(self) -> str:
        text = f"{type(self).__name__}({self._brief()})"
        return text if len(text) <= LENGTH else f"{text[: LENGTH - 4]}...)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def short_text(value: Any) -> str:
    """A value as short text: numbers with four digits, arrays by their shapes, long values by their types."""
    if shape := getattr(value, "shape", ()):
        listed = _listed(value.tolist()) if len(shape) == 1 and shape[0] <= FEW and hasattr(value, "tolist") else ""
        kind = getattr(value, "dtype", "table")
        kind = "str" if getattr(kind, "kind", "") == "U" else kind
        return listed if listed and len(listed) <= PART else f"<{' x '.join(map(str, shape))} {kind}>"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Real) and not isinstance(value, Integral):
        return f"{float(value):.4g}"
    if isinstance(value, str):
        return repr(value if len(value) <= PART else f"{value[: PART - 1]}…")
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        text = _listed(value) if len(value) <= PART else ""
        return text if text and len(text) <= PART else f"<{type(value).__name__} of {len(value)}>"
    text = "" if is_dataclass(value) or callable(value) else repr(value)
    return text if text and len(text) <= PART and "\n" not in text else f"<{type(value).__name__}>"


def _listed(values: Iterable[Any]) -> str:
    """Numbers and text in brackets; empty if there are other values."""
    items = [item for pair in values.items() for item in pair] if isinstance(values, dict) else list(values)
    if not all(item is None or isinstance(item, str | Real) for item in items):
        return ""
    texts = list(map(short_text, items))
    if isinstance(values, dict):
        return f"{{{', '.join(f'{key}: {value}' for key, value in zip(texts[::2], texts[1::2]))}}}"
    return f"[{', '.join(texts)}]"
