"""Tests of two methods over several data sets: only who wins, or by how much too.

All scores are losses, so a difference score(a) - score(b) below 0 means that a is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.result import Result
from mixent.base.text import count
from mixent.evaluate.text import p_text, verdict, without_rounding

MOST_EXACT = 50  # data sets for which the signed-rank test counts all choices of signs


@dataclass(frozen=True, repr=False)
class SetsTest(Result):
    """What a sign or signed-rank test over data sets found; `str()` is a sentence."""

    _title = "Paired test over data sets"
    _shown = ("test", "names", "wins", "losses", "p_value")

    test: str  # "sign" or "signed-rank"
    statistic: float  # the smaller of: data sets won, sums of ranks
    p_value: float  # two-sided
    wins: int  # data sets where a is better
    ties: int
    losses: int
    balance: float  # of wins, or of ranks of the sets won: above 0, a is better
    names: tuple[str, str] = ("a", "b")

    @property
    def leader(self) -> str | None:
        """The better method, None where both are equally good."""
        return None if self.balance == 0 else self.names[self.balance < 0]

    def __str__(self) -> str:
        n = self.wins + self.ties + self.losses
        a, b = self.names
        tied = f", {count(self.ties, 'tie')}" if self.ties else ""
        if self.leader is None:
            text = f"{a} and {b} are equally good on {n} data sets ({self.wins} wins each{tied})."
        else:
            won = (self.wins, self.losses) if self.leader == a else (self.losses, self.wins)
            text = f"{self.leader} is better than {b if self.leader == a else a} on {n} data sets"
            text += f" ({count(won[0], 'win')}, {count(won[1], 'loss')}{tied})."
        return f"{text} {verdict(self.p_value, f'{self.test} test, p {p_text(self.p_value)}')}"


def signed_rank_test(a: Any, b: Any, *, names: tuple[str, str] = ("a", "b")) -> SetsTest:
    """Wilcoxon's signed-rank test of two methods over data sets.

    Differences are ranked by size; the ranks of the sets that a wins are compared with those it loses. Differences of 0
    count half for each (Demsar 2006). With up to 50 sets the p-value is exact, ties or not: the share of all choices of
    signs that are as one-sided. Data sets must have no rows in common, and their differences one scale.

    Parameters
    ----------
    a, b : (N,) arrays
        Score of each method on each data set; lower is better.
    names : (str, str)

    Returns
    -------
    SetsTest

    Examples
    --------
    >>> from mixent.evaluate import signed_rank_test
    >>> a, b = [0.10, 0.20, 0.31, 0.05, 0.11, 0.24], [0.12, 0.25, 0.32, 0.08, 0.15, 0.30]
    >>> print(signed_rank_test(a, b))
    a is better than b on 6 data sets (6 wins, 0 losses). Significant at the 5 % level (signed-rank test, p = 0.031).
    """
    from scipy.stats import rankdata, wilcoxon

    gap = _between(a, b)
    ranks = rankdata(np.abs(gap))
    balance = float(np.dot(ranks, -np.sign(gap)))
    if len(gap) <= MOST_EXACT:
        p_value = _exact_p_value(ranks[gap != 0], float(ranks[gap < 0].sum()))
    else:
        p_value = float(wilcoxon(gap, zero_method="zsplit", method="approx").pvalue) if gap.any() else 1.0
    return SetsTest("signed-rank", (ranks.sum() - abs(balance)) / 2, p_value, *_counts(gap), balance, names)


def sign_test(a: Any, b: Any, *, names: tuple[str, str] = ("a", "b")) -> SetsTest:
    """Sign test of two methods over data sets: only who wins counts, not by how much. Ties are left out.

    Less powerful than `signed_rank_test`, but does not require that differences on all data sets have the same scale.

    Parameters
    ----------
    a, b : (N,) arrays
        Score of each method on each data set; lower is better.
    names : (str, str)

    Returns
    -------
    SetsTest
    """
    from scipy.stats import binomtest

    wins, ties, losses = _counts(_between(a, b))
    p_value = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    return SetsTest("sign", float(min(wins, losses)), p_value, wins, ties, losses, float(wins - losses), names)


def _between(a: Any, b: Any) -> np.ndarray:
    """a - b over data sets."""
    first, second = (np.asarray(scores, dtype=float) for scores in (a, b))
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(
            f"a and b must be lists of one score per data set, on the same sets; their shapes are {first.shape} and "
            f"{second.shape}"
        )
    for letter, scores in zip("ab", (first, second)):
        if not np.isfinite(scores).all():
            i = int(np.argmin(np.isfinite(scores)))
            raise ValueError(f"scores must be finite numbers; that of {letter} on set {i} is {scores[i]}")
    return without_rounding(first - second, first, second)


def _counts(gap: np.ndarray) -> tuple[int, int, int]:
    """Data sets that a wins, ties and loses."""
    return int((gap < 0).sum()), int((gap == 0).sum()), int((gap > 0).sum())


def _exact_p_value(ranks: np.ndarray, total: float) -> float:
    """Two-sided p-value of the sum of the ranks that have one sign, each sign being a toss."""
    steps = np.rint(2 * ranks).astype(int)  # tied ranks end in a half
    share = np.zeros(steps.sum() + 1)  # of the choices of signs, by twice the sum
    share[0] = 1.0
    for step in steps:
        share[step:] = share[step:] + share[: len(share) - step]
        share /= 2
    at = int(np.rint(2 * total))
    return float(min(1.0, 2 * min(share[: at + 1].sum(), share[at:].sum())))
