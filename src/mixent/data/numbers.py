"""Numbers written as text: money, percentages, thousands separators, decimal commas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

HUGE = 1e150  # its square is still finite
ENOUGH = 0.95  # share of the values that must be numbers, or dates, for the others to be missing
BLANKS = str.maketrans({"\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2019": "'", "\u2212": "-"})
DASHES = ("-", ".")  # missing values among numbers
CURRENCIES = "$€£¥₹₽₩₺₪"
POINT_CURRENCIES = "$£¥₹"  # written with a decimal point
CODES = ("US$", "USD", "EUR", "GBP", "CHF", "JPY", "CAD", "AUD", "CNY", "INR", "SEK", "NOK", "DKK", "PLN", "BRL")
SEPARATED = 20  # different numbers with a separator, beside numbers without, that show that it separates thousands
SIGN = rf"[{CURRENCIES}]|{'|'.join(map(re.escape, CODES))}"
CELL = re.compile(
    rf"(?P<open>\()?\s*(?P<minus>[-+])?\s*(?P<before>{SIGN})?\s*(?P<inner>[-+])?\s*"
    rf"(?P<body>[0-9][0-9., ']*|[.,][0-9]+)(?P<power>[eE][-+]?[0-9]+)?\s*(?P<after>{SIGN}|%)?\s*(?P<close>\))?"
)
CODE = re.compile(r"[-+]?0[0-9]+")  # a leading zero: no number is written so


@dataclass(frozen=True)
class NumberText:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ","}
        Decimal sign.
    thousands : {"", ",", ".", " ", "'"}
        What separates thousands; "" for nothing.
    sign : str
        "%", which stands after every number, or a currency, which may stand before or after; "" for neither.
    indicators : tuple of str
        Values that are no numbers, but frequent: each becomes a boolean column of its own.
    """

    decimal: str = "."
    thousands: str = ""
    sign: str = ""
    indicators: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.decimal not in (".", ",") or self.thousands not in ("", ",", ".", " ", "'"):
            raise ValueError(f"unknown format of numbers: {self.decimal!r}, {self.thousands!r}")
        if self.thousands == self.decimal or self.sign not in ("", "%", *CURRENCIES, *CODES):
            raise ValueError(f"unknown format of numbers: {self.decimal!r}, {self.thousands!r}, {self.sign!r}")
        if not all(isinstance(text, str) for text in self.indicators):
            raise ValueError("the indicators of a format of numbers must be text")

    def read(self, text: str) -> float | None:
        """The number, or None; the sign of percent or of a currency is dropped."""
        cell = Cell.of(text)
        return None if cell is None else cell.value(self)

    def __str__(self) -> str:
        return f"decimal {NAMES[self.decimal]}" + (f", {NAMES[self.thousands]} for thousands" * bool(self.thousands))


NAMES = {".": "point", ",": "comma", " ": "blank", "'": "apostrophe"}
FORMATS = (NumberText(), *(NumberText(".", t) for t in ", '"), *(NumberText(",", t) for t in ("", ".", " ", "'")))


@dataclass(frozen=True)
class Cell:
    """Text that may be a number."""

    negative: bool
    body: str
    power: str
    sign: str

    @classmethod
    def of(cls, text: str) -> Cell | None:
        """The parts of the text; None where it is no number in any format."""
        m = CELL.fullmatch(text.translate(BLANKS).strip())
        if m is None or (m["open"] is None) != (m["close"] is None):
            return None
        if sum(m[part] is not None for part in ("open", "minus", "inner")) > 1 or (m["before"] and m["after"]):
            return None
        negative = m["open"] is not None or "-" in (m["minus"], m["inner"])
        return cls(negative, m["body"].rstrip(), m["power"] or "", m["before"] or m["after"] or "")

    def value(self, form: NumberText) -> float | None:
        """The number in a format, or None."""
        if self.sign != form.sign and (self.sign or form.sign == "%"):
            return None
        if not _body(form.decimal, form.thousands).fullmatch(self.body):
            return None
        plain = self.body.replace(form.thousands, "") if form.thousands else self.body
        value = float(plain.replace(form.decimal, ".") + self.power)
        return None if value > HUGE else -value if self.negative else value


@lru_cache
def _body(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = rf"(?:[0-9]+|[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+)" if thousands else "[0-9]+"
    point = re.escape(decimal)
    return re.compile(rf"{whole}(?:{point}[0-9]*)?|{point}[0-9]+")


def infer_numbers(texts: Sequence[str], counts: np.ndarray) -> tuple[NumberText | None, bool]:
    """The format in which most values of a column are numbers; and whether formats contradict each other.

    Parameters
    ----------
    texts : distinct values, none of them missing
    counts : rows of each

    Returns
    -------
    format : NumberText or None
        None if fewer than 95 % of the values are numbers, if some are codes (0123), or if the formats that fit best
        differ in the numbers they give.
    ambiguous : bool
        Whether the last is the reason.
    """
    cells = [Cell.of(text) for text in texts]
    present = [(cell, n) for cell, n in zip(cells, counts.tolist()) if cell is not None]
    if sum(n for _, n in present) < ENOUGH * counts.sum() or any(CODE.fullmatch(text.strip()) for text in texts):
        return None, False
    sign = _sign(present)
    bodies = "".join(cell.body for cell, _ in present)
    forms = [replace(form, sign=sign) for form in FORMATS if form == FORMATS[0] or _occurs(form, bodies)]
    rows = [sum(n for cell, n in present if cell.value(form) is not None) for form in forms]
    if max(rows) < ENOUGH * counts.sum():
        return None, False
    best = [form for form, n in zip(forms, rows) if n == max(rows)]
    values = {form: [cell.value(form) for cell, _ in present] for form in best}
    if all(value == values[best[0]] for value in values.values()):
        return best[0], False
    form = _decided(best, sign, {cell.body for cell, _ in present})
    return form, form is None


def _occurs(form: NumberText, bodies: str) -> bool:
    return (form.thousands or form.decimal) in bodies


def _sign(present: Sequence[tuple[Cell, int]]) -> str:
    """The sign of most values; a currency need not stand with all of them."""
    rows: dict[str, int] = {}
    for cell, n in present:
        rows[cell.sign] = rows.get(cell.sign, 0) + n
    money = {sign: n for sign, n in rows.items() if sign not in ("", "%")}
    if rows.get("%", 0) > rows.get("", 0):
        return "%"
    return max(money, key=money.__getitem__) if money else ""


def _decided(best: Sequence[NumberText], sign: str, bodies: set[str]) -> NumberText | None:
    """Of formats that fit equally well, the one for which the sign or the other numbers of the column are evidence.

    1.234 without a sign is a decimal number, as everywhere in computing. $1,234 is more than a thousand. In other
    cases a separator that always stands before three digits, while numbers below 1000 stand without, separates
    thousands: decimals would not always be three where they are not always written.
    """
    if not sign and best[0] == FORMATS[0]:
        return best[0]
    if sign and sign in POINT_CURRENCIES:
        return next((form for form in best if form.decimal == "."), None)
    grouped = [form for form in best if form.thousands]
    alone = [body for body in bodies if body.isdigit()]
    if len(grouped) == 1 and alone and all(len(body) < 4 for body in alone) and len(bodies) - len(alone) >= SEPARATED:
        return grouped[0]
    return None
