"""Text that people read: counts, one-line values, names of classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

PACKAGES = {"sklearn": "scikit-learn"}  # module -> name of the library, where they differ


def count(n: Any, singular: str, many: str | None = None) -> str:
    """A number of things: `1 row`, `2 rows`, `2 passes`."""
    number = (
        f"{n:.3g}" if isinstance(n, float) and n != int(n) else f"{float(n):.0f}" if isinstance(n, float) else f"{n}"
    )
    plural = many or (f"{singular}es" if singular.endswith("s") else f"{singular}s")
    return f"{number} {singular if number == '1' else plural}"


def ordinal(n: int) -> str:
    """A place in words: `the fifth`; beyond ten, `number 12`."""
    names = "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"
    return f"the {names[n - 1]}" if n <= len(names) else f"number {n}"


def one_line(value: Any) -> str:
    """Text on one line, without characters that could steer a terminal."""
    text = re.sub(r"[ \t\r\n\f\v]+", " ", str(value)).strip()  # a space that does not break stays
    return "".join(c if c.isprintable() or c == "\u00a0" else repr(c)[1:-1] for c in text)


def class_name(label: Any) -> str:
    """The name of a class in a sentence or a legend: its label, after the word class where the label is not a word."""
    wordless = re.fullmatch(r"[+-]?\d+([.,]\d+)?|True|False|[\W_]+", str(label).strip())
    return f"class {label}" if wordless else str(label)


def with_library(value: Any) -> str:
    """The type of an object and its library, such as `GaussianNB of scikit-learn`, or what it consists of."""
    if hasattr(value, "consists_of"):
        return f"{type(value).__name__} ({value.consists_of})"
    package = type(value).__module__.partition(".")[0]
    return f"{type(value).__name__} of {PACKAGES.get(package, package)}"


def listing(items: Sequence[str], most: int = 12) -> str:
    """Items separated by commas; those beyond `most` are counted."""
    more = len(items) - most
    return ", ".join(items[:most]) + (f", and {more} more" if more > 0 else "")


def percent(share: float, digits: int | None = None) -> str:
    """A share as a percentage; with `digits` None, with a decimal only close to 0 and 100."""
    if digits is None:
        digits = 0 if 0.01 <= share <= 0.99 or share in (0.0, 1.0) else 1
    return f"{100 * share:.{digits}f}\u00a0%"


def readable(value: float, digits: int = 4) -> str:
    """A number in a few digits, without an exponent below a million."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e6 else text


def plain(value: Any) -> Any:
    """A label or number as JSON holds it: numpy scalars become Python's."""
    return value.item() if hasattr(value, "item") else value


def row_texts(X: Any) -> list[list[str]]:
    """The values of each row of a table, as short text."""
    import numpy as np

    return [[value_text(value) for value in row] for row in np.asarray(X, dtype=object).tolist()]


def value_text(value: Any) -> str:
    """A value of a table as short text."""
    missing = value is None or type(value).__name__ in ("NAType", "NaTType")  # pandas' own will not be compared
    if missing or (isinstance(value, float) and value != value):
        return "missing"
    return readable(value) if isinstance(value, float) else str(value)
