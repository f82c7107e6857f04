"""Ordinary dirty tables: each kind of dirt as columns to add, beside the same columns cleaned by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from tests.subjects import CLASS, N

Columns = dict[str, Any]


@dataclass(frozen=True)
class Dirt:
    """Columns as they come, the same cleaned by hand, and a word of the note that reports what was done.

    `absent` are columns that are there at fit and not at predict.
    """

    dirty: Columns = field(default_factory=dict)
    clean: Columns = field(default_factory=dict)
    note: str | None = None
    absent: tuple[str, ...] = ()


def signal(seed: int, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
    """Numbers that depend on the class, with two decimals."""
    values = np.random.default_rng(seed).normal(size=N) + CLASS
    return np.round(shift + scale * values, 2)


def text(values: np.ndarray, form: str = "{}") -> list[Any]:
    return [form.format(value) for value in values]


def with_cells(values: Any, cells: dict[int, Any]) -> list[Any]:
    """Some cells replaced."""
    return [cells.get(row, value) for row, value in enumerate(values)]


def without(values: np.ndarray, rows: Any) -> np.ndarray:
    """Some cells missing."""
    copy = np.array(values, dtype=float)
    copy[list(rows)] = np.nan
    return copy


def date_columns(name: str, days: pd.DatetimeIndex) -> Columns:
    """What a date is cleaned to by hand: days since 1970, and the position in the year and in the week."""
    start = days.to_period("Y").start_time
    year = (days - start).days / (365 + days.is_leap_year.astype(int))
    week = days.day_of_week / 7
    parts = {"days": (days - pd.Timestamp("1970-01-01")).days.to_numpy()}
    for part, position in (("year", year), ("week", week)):
        parts[f"sine of the {part}"] = np.sin(2 * np.pi * position)
        parts[f"cosine of the {part}"] = np.cos(2 * np.pi * position)
    return {f"{name} ({part})": np.asarray(values) for part, values in parts.items()}


EVERY = np.arange(N)
MONEY = signal(1, 800.0, 2500.0)
PERCENT = signal(2, 10.0, 40.0)
MASS = signal(3, 500.0, 3000.0).round()
COMMA = signal(4)
MARKED = signal(5)
MARKERS = ("N/A", "n/a", "None", "NULL", "#N/A", "NaN", "-", ".", "", "?", "<NA>")
STRAY = signal(6)
LIMIT = signal(7)
HUGE = signal(8)
DAYS = pd.DatetimeIndex(pd.Timestamp("2024-01-15") + pd.to_timedelta(np.round(9 * signal(9)), unit="D"))
WORDS = np.array(["low", "mid", "high"])[(CLASS + (EVERY % 4 == 0)) % 3]
FLAG = (CLASS == 1) ^ (EVERY % 5 == 0)
BELOW = EVERY % 20 == 7  # three rows
MANY = np.array([*"abcde", "v", "w", "x"])[np.where(EVERY % 7 == 0, 5 + EVERY % 3, (CLASS + EVERY) % 5)]
OPEN_DATES = text(CLASS + EVERY % 3 + 1, "{}/2/2024")
OPEN_NUMBERS = text(CLASS + EVERY % 3 + 1, "{},234")

DIRT = {
    "empty column": Dirt({"empty": [None] * N}, {}, "empty"),
    "empty text": Dirt({"blank": [" "] * N}, {}, "blank"),
    "missing markers": Dirt(
        {"marked": with_cells(text(MARKED), dict(zip(range(3, N, 5), MARKERS)))},
        {"marked": without(MARKED, range(3, 3 + 5 * len(MARKERS), 5))},
        "marked",
    ),
    "money": Dirt({"money": text(MONEY, "${:,.2f}")}, {"money": MONEY}, "money"),
    "percentages": Dirt({"percent": text(PERCENT, "{}%")}, {"percent": PERCENT}, "percent"),
    "thousands": Dirt({"mass": text(MASS, "{:,.1f}")}, {"mass": MASS}, "mass"),
    "decimal comma": Dirt({"comma": [t.replace(".", ",") for t in text(COMMA)]}, {"comma": COMMA}, "comma"),
    "stray word": Dirt(
        {"stray": with_cells(text(STRAY), {11: "unknown", 40: "see file"})},
        {"stray": without(STRAY, (11, 40))},
        "stray",
    ),
    "frequent word": Dirt(
        {"limit": [("<0.1" if below else value) for below, value in zip(BELOW, text(LIMIT))]},
        {"limit": without(LIMIT, np.flatnonzero(BELOW)), "limit = <0.1": BELOW},
        "limit",
    ),
    "numbers and text mixed": Dirt(
        {"mixed": with_cells(STRAY.tolist(), {5: "unknown", 9: None})}, {"mixed": without(STRAY, (5, 9))}, "mixed"
    ),
    "infinite values": Dirt(
        {"huge": np.where(EVERY == 13, np.inf, np.where(EVERY == 31, -np.inf, HUGE))},
        {"huge": without(HUGE, (13, 31))},
        "huge",
    ),
    "codes with leading zeros": Dirt(
        {"code": text(CLASS + EVERY % 3, "0{:02}")},
        {"code": pd.Categorical(text(CLASS + EVERY % 3, "0{:02}"))},
    ),
    "dates as text": Dirt({"day": DAYS.strftime("%Y-%m-%d")}, date_columns("day", DAYS), "day"),
    "German dates": Dirt({"datum": DAYS.strftime("%d.%m.%Y")}, date_columns("datum", DAYS), "datum"),
    "American dates": Dirt({"date": DAYS.strftime("%m/%d/%Y")}, date_columns("date", DAYS), "date"),
    "dates": Dirt({"when": DAYS}, date_columns("when", DAYS)),
    "identifier": Dirt({"id": text(EVERY * 7919 % 10007, "K-{:05}")}, {}, "id"),
    "constant column": Dirt({"constant": ["same"] * N}, {"constant": ["same"] * N}, "constant"),
    "booleans with missing values": Dirt(
        {"flag": with_cells(FLAG.tolist(), {4: None})},
        {"flag": pd.array(with_cells(FLAG.tolist(), {4: None}), dtype="boolean")},
    ),
    "spellings": Dirt(
        {"word": with_cells(WORDS.tolist(), {0: "Low", 25: "mid "})},
        {"word": pd.Categorical(with_cells(WORDS.tolist(), {0: "Low", 25: "mid "}))},
        "word",
    ),
    "many categories": Dirt({"many": MANY}, {"many": np.where(np.isin(MANY, list("vwx")), "zzz", MANY)}, "many"),
    "ambiguous dates": Dirt({"order": OPEN_DATES}, {"order": pd.Categorical(OPEN_DATES)}, "order"),
    "ambiguous numbers": Dirt({"sign": OPEN_NUMBERS}, {"sign": pd.Categorical(OPEN_NUMBERS)}, "sign"),
    "column absent at predict": Dirt({"gone": signal(10)}, {"gone": signal(10)}, "gone", absent=("gone",)),
}


def pairs(n: int = 40, seed: int = 0) -> list[tuple[str, str]]:
    """Random pairs of kinds of dirt, all different."""
    names = sorted(DIRT)
    everything = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    chosen = np.random.default_rng(seed).choice(len(everything), n, replace=False)
    return [everything[i] for i in chosen]
