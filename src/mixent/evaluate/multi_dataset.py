"""Many methods over many data sets: mean ranks, whether they differ at all, and which pairs do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from mixent.base.multiple_tests import holm
from mixent.base.params import check_number
from mixent.base.result import Result
from mixent.base.text import count
from mixent.data.files import need_pandas
from mixent.data.frames import check_names, is_frame
from mixent.evaluate.paired_datasets import SetsTest, signed_rank_test
from mixent.evaluate.text import p_text, without_rounding


@dataclass(frozen=True, repr=False)
class RankComparison(Result):
    """Methods ranked over data sets; `str()` is a summary.

    Rank 1 is the best. Mean ranks that differ by less than `critical_difference` are not significantly different by
    Nemenyi's test;
    `pairs` and `adjusted` are the signed-rank tests of all pairs with Holm's adjustment.
    """

    _title = "Comparison over data sets"

    methods: list[str]  # (k,) as given
    sets: list[str]  # (N,)
    scores: np.ndarray  # (N, k) as given
    ranks: np.ndarray  # (N, k) ties averaged
    chi2: float  # Friedman's, corrected for ties
    chi2_p_value: float  # of chi-square, k - 1 degrees of freedom
    f: float  # Iman and Davenport's
    p_value: float  # of F(k - 1, (k - 1) (N - 1)): are all methods alike?
    critical_difference: float
    alpha: float
    lower_is_better: bool
    pairs: list[SetsTest]  # (k (k - 1) / 2,) every method with every later one
    adjusted: np.ndarray  # p-values of the pairs, Holm

    @property
    def mean_ranks(self) -> np.ndarray:
        """(k,) in the order of `methods`."""
        return self.ranks.mean(axis=0)

    @property
    def order(self) -> list[str]:
        """Methods from the best mean rank to the worst; equal ones as given."""
        return [self.methods[j] for j in np.argsort(self.mean_ranks, kind="stable")]

    @property
    def groups(self) -> list[list[str]]:
        """Largest groups of two or more methods without a significant difference by Nemenyi's test, best first."""
        ranks, names = np.sort(self.mean_ranks), self.order
        ends = np.searchsorted(
            ranks, ranks + self.critical_difference - 1e-12
        )  # a difference of exactly CD is significant
        longest = [(i, end) for i, end in enumerate(ends) if end > i + 1 and (i == 0 or end > ends[i - 1])]
        return [names[i:end] for i, end in longest]

    def adjusted_p_value(self, a: str, b: str) -> float:
        """Holm-adjusted p-value of the signed-rank test of two methods."""
        for name in (a, b):
            if name not in self.methods:
                raise ValueError(f"unknown method {name!r}; choose one of {', '.join(map(repr, self.methods))}")
        if a == b:
            return 1.0
        return next(float(p) for pair, p in zip(self.pairs, self.adjusted) if set(pair.names) == {a, b})

    def _brief(self) -> str:
        ranks = dict(zip(self.methods, self.mean_ranks))
        best = ", ".join(f"{name} {ranks[name]:.2f}" for name in self.order[:3])
        return f"{len(self.methods)} methods, {len(self.sets)} data sets, p_value={self.p_value:.3g}; mean ranks {best}"

    def frame(self) -> Any:
        """The ranks as a pandas DataFrame: data sets as rows, methods as columns, the best mean rank first."""
        pandas = need_pandas("for a table of ranks")
        return pandas.DataFrame(self.ranks, index=self.sets, columns=self.methods)[self.order]

    def __str__(self) -> str:
        n, k = self.scores.shape
        ranks = dict(zip(self.methods, self.mean_ranks))
        listed = ", ".join(f"{name} {ranks[name]:.2f}" for name in self.order)
        differ = "differ significantly" if self.p_value < self.alpha else "do not differ significantly"
        return "\n".join(
            [
                f"Mean ranks of {k} methods over {n} data sets, the best first: {listed}.",
                f"The methods {differ} (Friedman chi-square {self.chi2:.2f}, p {p_text(self.chi2_p_value)}; "
                f"Iman-Davenport F({k - 1}, {(k - 1) * (n - 1)}) = {self.f:.2f}, p {p_text(self.p_value)}).",
                self._nemenyi(),
                self._by_pairs(),
            ]
        )

    def _nemenyi(self) -> str:
        text = f"Nemenyi: the critical difference of mean ranks is {self.critical_difference:.2f}"
        if self.p_value >= self.alpha:
            return f"{text}; it does not apply where the methods do not differ significantly."
        if not self.groups:
            return f"{text}; all methods differ significantly."
        return f"{text}; not significantly different: {'; '.join(', '.join(group) for group in self.groups)}."

    def _by_pairs(self) -> str:
        significant = [(pair, p) for pair, p in zip(self.pairs, self.adjusted) if p < self.alpha]
        text = "Signed-rank tests of the pairs (Holm):"
        n, needed = len(self.sets), sets_needed(len(self.pairs), self.alpha)
        if n < needed:
            return f"{text} with {n} data sets no pair can differ significantly; at least {needed} are needed."
        if not significant:
            return f"{text} no pair differs significantly; the lowest adjusted p {p_text(self.adjusted.min())}."
        worse: dict[str, list[str]] = {name: [] for name in self.order}
        for pair, p in significant:
            a, b = pair.names
            worse[str(pair.leader)].append(f"{b if pair.leader == a else a} (p {p_text(p)})")
        wins = "; ".join(f"{name} is better than {', '.join(others)}" for name, others in worse.items() if others)
        rest = len(self.pairs) - len(significant)
        return f"{text} {wins}" + (f"; {count(rest, 'other pair')} not significantly different." if rest else ".")


def compare_over_sets(scores: Any, *, alpha: float = 0.05, lower_is_better: bool = True) -> RankComparison:
    """Rank methods over data sets and test whether they differ (Friedman, Nemenyi; pairs by Wilcoxon and Holm).

    With r_ij the rank of method j on set i (ties averaged) and R_j its mean over the N sets, Friedman's statistic is

        chi2 = (k - 1) N^2 sum_j (R_j - (k + 1) / 2)^2 / sum_ij (r_ij - (k + 1) / 2)^2,

    Iman and Davenport's F = (N - 1) chi2 / (N (k - 1) - chi2), and Nemenyi's critical difference of mean ranks is
    q sqrt(k (k + 1) / (6 N)) with q the studentized range of k means over sqrt 2 (Demsar 2006).

    Nemenyi's test is conservative, and its result for two methods depends on which others are in the pool; the
    tests of the pairs do not (but for Holm's adjustment) and are to be preferred (Benavoli, Corani and Mangili 2016).

    Parameters
    ----------
    scores : (N, k) array, DataFrame, or dict of method to scores
        A row for each data set, a column for each method; at least two rows and three columns. In a dict, a method's
        scores are a list or a dict of set to score. A DataFrame's sets are named by its index, or by its first column
        where that is text.
    alpha : float
        Level of the tests.
    lower_is_better : bool
        False for accuracies.

    Returns
    -------
    RankComparison

    Examples
    --------
    >>> from mixent.evaluate import compare_over_sets
    >>> errors = {"tree": [4, 7, 9, 3, 6, 8], "Bayes": [3, 6, 8, 2, 5, 7], "stack": [1, 5, 4, 1, 2, 3]}
    >>> found = compare_over_sets(errors)
    >>> found.order
    ['stack', 'Bayes', 'tree']
    >>> found.groups
    [['stack', 'Bayes'], ['Bayes', 'tree']]
    """
    if not check_number(alpha) or not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, such as 0.05; got {alpha!r}")
    table, sets, methods = _read(scores)
    _check(table, sets, methods)
    lower = table if lower_is_better else -table
    ranks = _ranks(lower)
    chi2, chi2_p = friedman(ranks)
    f, p_value = iman_davenport(chi2, *table.shape)
    pairs = [
        signed_rank_test(lower[:, i], lower[:, j], names=(methods[i], methods[j]))
        for i, j in combinations(range(len(methods)), 2)
    ]
    return RankComparison(
        methods,
        sets,
        table,
        ranks,
        chi2,
        chi2_p,
        f,
        p_value,
        nemenyi_difference(*table.shape, alpha=alpha),
        float(alpha),
        bool(lower_is_better),
        pairs,
        holm([pair.p_value for pair in pairs]),
    )


def friedman(ranks: np.ndarray) -> tuple[float, float]:
    """Friedman's chi-square of ranks (N, k), corrected for ties, and its p-value; 0 and 1 where all are tied."""
    from scipy.special import chdtrc

    k = ranks.shape[1]
    apart = ranks - (k + 1) / 2
    spread = float((apart**2).sum())
    chi2 = (k - 1) * float((apart.sum(axis=0) ** 2).sum()) / spread if spread else 0.0
    return chi2, float(chdtrc(k - 1, chi2))


def iman_davenport(chi2: float, n_sets: int, n_methods: int) -> tuple[float, float]:
    """F of Friedman's chi-square, less conservative, and its p-value.

    Infinite where every set ranks alike, which by chance N sets do with probability (k!)^(1 - N).
    """
    from scipy.special import fdtrc

    left = n_sets * (n_methods - 1) - chi2
    if left <= 1e-9 * chi2:
        return float("inf"), float(factorial(n_methods)) ** (1 - n_sets)
    f = (n_sets - 1) * chi2 / left
    return f, float(fdtrc(n_methods - 1, (n_methods - 1) * (n_sets - 1), f))


def nemenyi_difference(n_sets: int, n_methods: int, *, alpha: float = 0.05) -> float:
    """Difference of mean ranks that Nemenyi's test asks for: q sqrt(k (k + 1) / (6 N))."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, n_methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def sets_needed(n_pairs: int, alpha: float = 0.05) -> int:
    """Fewest data sets N for which a win on all of them counts: n_pairs 2^(1 - N) < alpha, Holm's first step."""
    return int(np.floor(1 + np.log2(n_pairs / alpha))) + 1


def _ranks(lower: np.ndarray) -> np.ndarray:
    """Ranks in every row; scores that differ by rounding only are tied."""
    from scipy.stats import rankdata

    return np.array([rankdata(without_rounding(row, row)) for row in lower])


def _read(scores: Any) -> tuple[np.ndarray, list[str], list[str]]:
    """Scores (N, k), names of the sets, names of the methods."""
    if isinstance(scores, Mapping):
        return _read_dict(scores)
    if is_frame(scores):
        return _read_frame(scores)
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2:
        raise ValueError(f"scores must have a row for each data set and a column for each method; shape {table.shape}")
    return table, _numbered(len(table)), [f"method {j + 1}" for j in range(table.shape[1])]


def _read_frame(frame: Any) -> tuple[np.ndarray, list[str], list[str]]:
    names = check_names(frame)
    columns = {str(name): np.asarray(frame[name]) for name in names}
    index = np.asarray(getattr(frame, "index", np.arange(len(frame))))
    sets = _numbered(len(frame)) if np.array_equal(index, np.arange(len(index))) else [str(name) for name in index]
    first = next(iter(columns), None)
    if first is not None and all(isinstance(value, str) for value in columns[first]):
        sets = [str(value) for value in columns.pop(first)]
    for name, values in columns.items():
        text = [value for value in values if isinstance(value, str)]
        if text:
            raise ValueError(f"scores must be numbers; column {name!r} holds text, such as {text[0]!r}; drop it")
    table = np.column_stack([np.asarray(v, dtype=float) for v in columns.values()]) if columns else np.empty((0, 0))
    return table, sets, list(columns)


def _read_dict(scores: Mapping) -> tuple[np.ndarray, list[str], list[str]]:
    methods = [str(name) for name in scores]
    values = list(scores.values())
    if values and all(isinstance(scores, Mapping) for scores in values):
        sets = list(values[0])
        for name, scores in zip(methods, values):
            if set(scores) != set(sets):
                odd = sorted(set(map(str, scores)) ^ set(map(str, sets)))
                raise ValueError(f"every method needs a score on every set; {methods[0]} and {name} differ in {odd}")
        return np.array([[scores[s] for scores in values] for s in sets], dtype=float), [str(s) for s in sets], methods
    lengths = {name: np.size(scores) for name, scores in zip(methods, values)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"every method needs a score on every set; numbers of scores: {lengths}")
    table = np.array([np.asarray(scores, dtype=float).ravel() for scores in values]).T
    return table, _numbered(len(table)), methods


def _numbered(n: int) -> list[str]:
    return [f"set {i + 1}" for i in range(n)]


def _check(table: np.ndarray, sets: list[str], methods: list[str]) -> None:
    if table.ndim != 2 or table.shape[1] < 3 or len(table) < 2:
        raise ValueError(
            "ranks need at least two data sets and three methods; got scores of shape "
            f"{table.shape}. Two methods: see signed_rank_test"
        )
    if len(set(methods)) < len(methods):
        raise ValueError(f"methods must have different names; got {methods}")
    if not np.isfinite(table).all():
        i, j = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"every method needs a score on every set; {methods[j]} on {sets[i]} is {table[i, j]}. Leave out the "
            "set or the method"
        )
