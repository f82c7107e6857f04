"""Measurements as records in the one result format, and as lines of a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

FASTER = "times faster than scikit-learn"
SOURCE = "design/PERFORMANCE.md"


@dataclass(frozen=True)
class Record:
    """One measured value; `printed` is the target where there is one."""

    set: str
    method: str
    metric: str
    mean: float
    sd: float | None = None
    folds: int | None = None  # passes or repeats behind it
    printed: float | None = None
    source: str | None = None
    at_least: bool = False  # is the target a floor? otherwise a ceiling

    @property
    def verdict(self) -> str:
        if self.printed is None:
            return ""
        good = self.mean >= self.printed if self.at_least else self.mean <= self.printed
        return "ok" if good else "missed"

    def as_dict(self) -> dict:
        record = asdict(self)
        del record["at_least"]
        return record

    def line(self) -> str:
        target = ""
        if self.printed is not None:
            target = f"{'>=' if self.at_least else '<='} {self.printed:g}"
        return (
            f"{self.set:<34} {self.metric:<36} {self.method:<24} {_number(self.mean):>10}  {target:>8} {self.verdict}"
        )


HEAD = f"{'set':<34} {'metric':<36} {'method':<24} {'value':>10}  {'target':>8}"


def _number(value: float) -> str:
    return f"{value:.1e}" if value != 0 and abs(value) < 1e-4 else f"{value:.4g}"


def fastest(seconds: list[float]) -> tuple[float, float, int]:
    """Median and spread of the fastest half, and how many passes there were."""
    best = np.sort(seconds)[: max(1, (len(seconds) + 1) // 2)]
    return float(np.median(best)), float(best.std()), len(seconds)
