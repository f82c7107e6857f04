"""Dates: text in one of three orders, days since 1970, and the parts of the year and of the week."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.data.numbers import ENOUGH

ORDERS = {"ymd": "year-month-day", "dmy": "day, month, year", "mdy": "month, day, year"}
PARTS = ("days", "sine of the year", "cosine of the year", "sine of the week", "cosine of the week")
EPOCH = datetime.date(1970, 1, 1).toordinal()
MONDAY = 3  # days from Monday to the epoch, a Thursday
DATE = re.compile(
    r"([0-9]{1,4})([-/.])([0-9]{1,2})\2([0-9]{1,4})"
    r"(?:[T ]+([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]+)?))?\s*(?:Z|UTC|([-+][0-9]{2}):?([0-9]{2}))?)?"
)


@dataclass(frozen=True)
class DateText:
    """How the dates of a column are written.

    Parameters
    ----------
    order : {"", "ymd", "dmy", "mdy"}
        Order of day, month and year in text; "" where the column had dates and no text.
    """

    order: str = ""

    def __post_init__(self) -> None:
        if self.order not in ("", *ORDERS):
            raise ValueError(f"unknown order of dates {self.order!r}")

    def read(self, text: str) -> float | None:
        """Days since 1970-01-01, with the time of day as a fraction; None where the text is no such date."""
        m = DATE.fullmatch(text.strip())
        if m is None:
            return None
        date = dict(zip(self.order or "ymd", (m[1], m[3], m[4])))
        if len(date["y"]) not in (2, 4) or max(len(date["m"]), len(date["d"])) > 2:
            return None
        if len(date["y"]) == 2 and self.order in ("", "ymd"):
            return None
        try:
            day = datetime.date(_year(date["y"]), int(date["m"]), int(date["d"])).toordinal() - EPOCH
        except ValueError:
            return None
        hour, minute, second = int(m[5] or 0), int(m[6] or 0), float(m[7] or 0)
        if hour > 23 or minute > 59 or second >= 60:
            return None
        offset = int(m[8] or 0) * 60 + int((m[8] or "+")[0] + (m[9] or "0"))  # minutes ahead of UTC
        return day + (3600 * hour + 60 * (minute - offset) + second) / 86400

    def __str__(self) -> str:
        return ORDERS.get(self.order, "")


def _year(text: str) -> int:
    """Two digits are 1969 to 2068, as in the C library."""
    return int(text) if len(text) == 4 else int(text) + (1900 if int(text) > 68 else 2000)


def infer_dates(texts: Sequence[str], counts: np.ndarray) -> tuple[DateText | None, bool]:
    """The order in which most values of a column are dates; and whether two orders contradict each other.

    Parameters
    ----------
    texts : distinct values, none of them missing
    counts : rows of each

    Returns
    -------
    format : DateText or None
    ambiguous : bool
        Whether the dates are read in two orders equally well (01/02/2024), with different results.
    """
    if sum(n for text, n in zip(texts, counts.tolist()) if DATE.fullmatch(text.strip())) < ENOUGH * counts.sum():
        return None, False
    forms = [DateText(order) for order in ORDERS]
    values = {form: [form.read(text) for text in texts] for form in forms}
    rows = {form: sum(n for v, n in zip(values[form], counts.tolist()) if v is not None) for form in forms}
    most = max(rows.values())
    if most < ENOUGH * counts.sum():
        return None, False
    best = [form for form in forms if rows[form] == most]
    if all(values[form] == values[best[0]] for form in best):
        return best[0], False
    if all("." in text for text in texts) and DateText("dmy") in best:  # nobody writes the month first with points
        return DateText("dmy"), False
    return None, True


def days_of(value: Any) -> float:
    """Days since 1970-01-01 of a date or datetime, in UTC where it has a time zone."""
    if isinstance(value, np.datetime64):
        return float(value.astype("M8[us]").astype(np.int64)) / 86400e6
    day = float(value.toordinal() - EPOCH)
    if not isinstance(value, datetime.datetime):
        return day
    offset = value.utcoffset() or datetime.timedelta(0)
    midnight = datetime.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )
    return day + (midnight - offset) / datetime.timedelta(days=1)


def to_dates(days: np.ndarray, whole: bool) -> np.ndarray:
    """Days since 1970-01-01 as datetime64, of whole days or with the time of day; NaT for NaN."""
    scaled = np.rint(np.nan_to_num(days) * (1 if whole else 86400e6)).astype(np.int64)
    dates = scaled.astype("M8[D]" if whole else "M8[us]")
    dates[np.isnan(days)] = np.datetime64("NaT")
    return dates


def date_parts(days: np.ndarray) -> list[np.ndarray]:
    """Days, and sine and cosine of the position in the calendar year and in the week.

    Parameters
    ----------
    days : ndarray, shape (n,)
        Since 1970-01-01; NaN for missing.

    Returns
    -------
    list of ndarray, shape (n,), one for each of `PARTS`
    """
    with np.errstate(invalid="ignore"):
        day = np.where(np.isnan(days), np.datetime64("NaT"), np.floor(days).astype("M8[D]"))
    start = day.astype("M8[Y]")
    length = ((start + 1).astype("M8[D]") - start.astype("M8[D]")).astype(float)
    year = (days - start.astype("M8[D]").astype(float)) / np.where(np.isnan(days), np.nan, length)
    week = np.mod(days + MONDAY, 7) / 7
    angles = 2 * np.pi * np.where(np.isnan(days), np.nan, year), 2 * np.pi * week
    return [days, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))]
