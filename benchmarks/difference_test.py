"""Study of the test of differences: how often it rejects, and how often its interval contains the true difference.

`python -m benchmarks.difference_test` draws 2,000 tables for every setting and number of rows, cross-validates two
methods in five folds, and tests their difference in log-loss and in error by `row_t_test` and by the test on five fold
means that it replaced. Ten minutes on one core; batches of tables are kept as they come, and the same command
resumes. With `--others`, the same for trees, nearest neighbors, forests and boosting of scikit-learn (hours; use
`--tables` and `--rows`). With `--nested 20`, the reference beside the test on rows is nested cross-validation (Bates,
Hastie and Tibshirani 2023), repeated over 20 splits of every table, instead of the test on fold means.

The true difference is 0 where both methods are the same procedure on exchangeable columns. Elsewhere it is the mean of
the differences over all tables: a cross-validated difference is an unbiased estimate for training sets of its size.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks.tables.store import RESULTS, read_lines
from mixent.evaluate import row_t_test

FOLDS, BATCH, LEVEL = 5, 100, 0.05
ROWS = (150, 500, 2000)
METRICS = ("log_loss", "error")
Learner = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(columns (B, n, d), classes 0 and 1 (B, n), training rows (B, n)) -> log-odds of class 1 (B, n), for B tables."""


def linear_discriminant(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Gaussian classes with one covariance matrix."""
    scatter = 1e-3 * np.eye(X.shape[2]) * train.sum(axis=1)[:, None, None]
    means, sizes = [], []
    for c in (0, 1):
        member = (train & (y == c)).astype(float)
        sizes.append(member.sum(axis=1))
        means.append(np.einsum("bn,bnd->bd", member, X) / sizes[c][:, None])
        away = X - means[c][:, None]
        scatter = scatter + (away * member[..., None]).transpose(0, 2, 1) @ away
    cov = scatter / (sizes[0] + sizes[1])[:, None, None]
    weights = np.linalg.solve(cov, (means[1] - means[0])[..., None])[..., 0]
    offset = np.log(sizes[1] / sizes[0]) - ((means[1] + means[0]) / 2 * weights).sum(axis=1)
    return np.einsum("bnd,bd->bn", X, weights) + offset[:, None]


def naive_bayes(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Gaussian classes with independent columns."""
    log_odds = np.zeros(y.shape)
    for c, sign in ((0, -1), (1, 1)):
        member = (train & (y == c)).astype(float)
        size = member.sum(axis=1)[:, None]
        mean = np.einsum("bn,bnd->bd", member, X) / size
        var = np.einsum("bn,bnd->bd", member, X**2) / size - mean**2 + 1e-9
        squares = ((X - mean[:, None]) ** 2 / var[:, None]).sum(axis=2)
        log_odds += sign * (np.log(size) - 0.5 * squares - 0.5 * np.log(var).sum(axis=1)[:, None])
    return log_odds


def logistic(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Logistic regression with a quadratic penalty 1/2 |w|^2, by Newton's method."""
    design = np.concatenate([X, np.ones((*y.shape, 1))], axis=2)
    weights, penalty = np.zeros((len(X), design.shape[2])), np.eye(design.shape[2])
    penalty[-1, -1] = 1e-6
    for _ in range(8):
        p = 1 / (1 + np.exp(-np.einsum("bnd,bd->bn", design, weights)))
        gradient = np.einsum("bn,bnd->bd", train * (y - p), design) - weights @ penalty
        curvature = (design * (train * np.maximum(p * (1 - p), 1e-6))[..., None]).transpose(0, 2, 1) @ design + penalty
        weights = weights + np.linalg.solve(curvature, gradient[..., None])[..., 0]
    return np.einsum("bnd,bd->bn", design, weights)


def best_split(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """A tree with one split, the best of seven thresholds in every column: it differs between training sets."""
    least, log_odds = np.full(len(X), np.inf), np.zeros(y.shape)
    for above in (X[:, :, j] > cut for j in range(X.shape[2]) for cut in np.linspace(-1.5, 1.5, 7)):
        loss, leaf = np.zeros(len(X)), np.zeros(y.shape)
        for side in (above, ~above):
            ones, zeros = (train & side & (y == 1)).sum(axis=1) + 1.0, (train & side & (y == 0)).sum(axis=1) + 1.0
            loss -= ones * np.log(ones / (ones + zeros)) + zeros * np.log(zeros / (ones + zeros))
            leaf += side * np.log(ones / zeros)[:, None]
        log_odds = np.where((loss < least)[:, None], leaf, log_odds)
        least = np.minimum(loss, least)
    return log_odds


def local_average(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Class frequencies in cells of about 15 rows of the first two columns, as trees and nearest neighbors have."""
    n_bins = max(2, round(np.sqrt(y.shape[1] / 15)))
    cuts = 1.1 * stats.norm.ppf(np.arange(1, n_bins) / n_bins)
    cell = np.digitize(X[..., 0], cuts) * n_bins + np.digitize(X[..., 1], cuts)
    place = np.arange(len(X))[:, None] * n_bins**2 + cell
    zeros, ones = (np.bincount(place[train & (y == c)], minlength=len(X) * n_bins**2) + 0.5 for c in (0, 1))
    return np.log(ones / zeros)[place]


def fitted(estimator: Any) -> Learner:
    """The learner of a classifier of scikit-learn, with probabilities of at least 1 %."""

    def learner(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
        share = [clone(estimator).fit(x[t], c[t]).predict_proba(x)[:, 1] for x, c, t in zip(X, y, train)]
        p = np.clip(share, 0.01, 0.99)
        return np.log(p / (1 - p))

    return learner


@dataclass(frozen=True)
class Setting:
    """Two methods and the tables they are compared on.

    Columns are normal with variance 1, with means -shift and shift in the two classes, and equally correlated. `apart`:
    each method sees as many columns of its own; else both see all, the second only the first `second_sees`.
    """

    name: str
    first: Learner
    second: Learner
    n_columns: int = 4
    shift: float = 0.35
    correlation: float = 0.0
    n_noise: int = 0  # columns without information, the last ones
    share: float = 0.4  # of class 1
    apart: bool = True
    second_sees: int | None = None

    def drawn(self, n_tables: int, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns of the first and of the second method, and the classes."""
        y = (rng.random((n_tables, n_rows)) < self.share).astype(int)
        y[:, :FOLDS], y[:, FOLDS : 2 * FOLDS] = 0, 1  # every class is in every fold
        first = self._columns(y, rng)
        return first, self._columns(y, rng) if self.apart else first[:, :, : self.second_sees], y

    def _columns(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        own, common = rng.normal(size=(*y.shape, self.n_columns)), rng.normal(size=(*y.shape, 1))
        shift = np.where(np.arange(self.n_columns) < self.n_columns - self.n_noise, self.shift, 0.0)
        mixed = np.sqrt(1 - self.correlation) * own + np.sqrt(self.correlation) * common
        return mixed + shift * (2 * y[..., None] - 1)


SETTINGS = (
    Setting("linear discriminant, 4 columns each", linear_discriminant, linear_discriminant),
    Setting("naive Bayes, 4 correlated columns each", naive_bayes, naive_bayes, correlation=0.5),
    Setting("logistic regression, 4 columns each", logistic, logistic),
    Setting("logistic regression, 12 columns each", logistic, logistic, 12, 0.25),
    Setting("logistic regression, 12 columns each, 4 % error", logistic, logistic, 12, 0.5),
    Setting("logistic regression, 4 columns each, 10 % in one class", logistic, logistic, share=0.1),
    Setting("local average, 2 columns each", local_average, local_average, 2, 0.5),
    Setting("best split, 4 columns each", best_split, best_split),
    Setting("linear discriminant - naive Bayes", linear_discriminant, naive_bayes, 6, apart=False),
    Setting("the same, correlated columns", linear_discriminant, naive_bayes, 6, correlation=0.5, apart=False),
    Setting(
        "logistic regression with 8 noise columns - without",
        logistic,
        logistic,
        12,
        n_noise=8,
        apart=False,
        second_sees=4,
    ),
    Setting("local average - logistic regression", local_average, logistic, 2, 0.5, apart=False),
    Setting("best split - logistic regression", best_split, logistic, apart=False),
)
NESTED = tuple(SETTINGS[i] for i in (2, 3, 6, 7, 9, 12))  # those that are compared with nested cross-validation


LIBRARY = {
    "tree of depth 3": DecisionTreeClassifier(max_depth=3, min_samples_leaf=5, random_state=0),
    "15 nearest neighbors": KNeighborsClassifier(15),
    "random forest": RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=30, max_depth=2, random_state=0),
}
OTHERS = tuple(Setting(f"{name}, 4 columns each", *(2 * [fitted(model)])) for name, model in LIBRARY.items())


def folds_of(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Stratified folds (B, n) at random."""
    order = np.argsort(y + 0.5 * rng.random(y.shape), axis=1)
    fold = np.empty(y.shape, dtype=int)
    np.put_along_axis(fold, order, np.broadcast_to(np.arange(y.shape[1]) % FOLDS, y.shape), axis=1)
    return fold


Pair = tuple[tuple[Learner, np.ndarray], tuple[Learner, np.ndarray]]
"""Two methods, each with its columns (B, n, d)."""


def differences_at(methods: Pair, y: np.ndarray, log_odds: Callable[[Learner, np.ndarray], np.ndarray]) -> dict:
    """(B, n) differences in loss of two methods by metric, from the log-odds of each."""
    margins = [np.where(y == 1, 1, -1) * log_odds(learner, X) for learner, X in methods]
    first, second = (np.clip(margin, -34.0, 34.0) for margin in margins)
    return {
        "log_loss": np.logaddexp(0, -first) - np.logaddexp(0, -second),
        "error": (first <= 0).astype(float) - (second <= 0).astype(float),
    }


def out_of_fold(learner: Learner, X: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """(B, n) log-odds of rows that the model was not fitted to."""
    margin = np.zeros(y.shape)
    for k in range(FOLDS):
        margin = np.where(fold == k, learner(X, y, fold != k), margin)
    return margin


def on_folds(differences: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and half widths of the 95 % intervals (B,) of the test on fold means that `row_t_test` replaced.

    That of Nadeau and Bengio (2003), with a standard error not below that of independent rows.
    """
    means = np.stack([np.where(fold == k, differences, 0).sum(1) / (fold == k).sum(1) for k in range(FOLDS)], axis=1)
    corrected = (1 / FOLDS + 1 / (FOLDS - 1)) * means.var(axis=1, ddof=1)
    least = differences.var(axis=1) / differences.shape[1]
    half = stats.t.ppf(1 - LEVEL / 2, FOLDS - 1) * np.sqrt(np.maximum(corrected, least))
    return means.mean(axis=1), half


def nested(methods: Pair, y: np.ndarray, n_splits: int, rng: np.random.Generator) -> dict[str, tuple]:
    """Means and half widths of the 95 % intervals (B,) of nested cross-validation, by metric.

    Bates, Hastie and Tibshirani (2023), Cross-validation: what does it estimate and how well does it do it? For every
    split and fold k, let in_k be the mean difference of a cross-validation without the rows of k, and out_k the mean
    over the rows of k, with variance v_k, of the models fitted to all other rows. Then

        MSE = mean of (in_k - out_k)^2 - v_k,    se <= sqrt((K - 1) / K MSE) <= sqrt(K) se,    se^2 = s^2 / n,

    is the mean squared error of in_k, for tables smaller by one fold; the bounds are those of the authors. The center
    is the mean of the repeated cross-validation: training sets have the size that `row_t_test` is about.
    """
    n, total = y.shape[1], {metric: np.zeros((3, len(y))) for metric in METRICS}
    for _ in range(n_splits):
        fold = folds_of(y, rng)
        size = np.stack([(fold == k).sum(axis=1) for k in range(FOLDS)])  # (K, B)
        inner = {metric: np.zeros(size.shape) for metric in METRICS}
        for j, k in combinations(range(FOLDS), 2):
            train = (fold != j) & (fold != k)
            for metric, gap in differences_at(methods, y, lambda learner, X, t=train: learner(X, y, t)).items():
                inner[metric][k] += np.where(fold == j, gap, 0).sum(axis=1)
                inner[metric][j] += np.where(fold == k, gap, 0).sum(axis=1)
        outer = differences_at(methods, y, lambda learner, X, f=fold: out_of_fold(learner, X, y, f))
        for metric, gap in outer.items():
            held_out = np.stack([np.where(fold == k, gap, 0).sum(axis=1) for k in range(FOLDS)]) / size
            squares = np.stack([np.where(fold == k, gap**2, 0).sum(axis=1) for k in range(FOLDS)]) / size
            error = (inner[metric] / (n - size) - held_out) ** 2 - (squares - held_out**2) / (size - 1)
            total[metric] += error.mean(axis=0), gap.mean(axis=1), gap.var(axis=1, ddof=1) / n
    intervals = {}
    for metric, sums in total.items():
        error, center, variance = sums / n_splits
        wide = np.clip((FOLDS - 1) / FOLDS * error, variance, FOLDS * variance)
        intervals[metric] = center, stats.norm.ppf(1 - LEVEL / 2) * np.sqrt(wide)
    return intervals


def batch(setting: Setting, n_rows: int, number: int, n_tables: int = BATCH, n_splits: int = 0) -> dict:
    """Mean differences and half widths of two intervals for every table of a batch: on rows, and of the reference.

    The reference is nested cross-validation over `n_splits` splits, or the test on fold means if there are none.
    """
    rng = np.random.default_rng([(*SETTINGS, *OTHERS).index(setting), n_rows, number])
    first, second, y = setting.drawn(n_tables, n_rows, rng)
    fold, methods = folds_of(y, rng), ((setting.first, first), (setting.second, second))
    record: dict = {"setting": setting.name, "n_rows": n_rows, "batch": number}
    differences = differences_at(methods, y, lambda learner, X: out_of_fold(learner, X, y, fold))
    reference = (
        nested(methods, y, n_splits, rng) if n_splits else {m: on_folds(d, fold) for m, d in differences.items()}
    )
    for metric, gap in differences.items():
        tests = [row_t_test(row, bound=1.0 if metric == "error" else 0.0) for row in gap]
        columns = [t.mean for t in tests], [(t.interval[1] - t.interval[0]) / 2 for t in tests], *reference[metric]
        record[metric] = np.column_stack(columns).round(9).tolist()
    return record


@dataclass(frozen=True)
class Shares:
    """What the tables of one setting, number of rows and metric show, in shares of the tables."""

    setting: Setting
    n_rows: int
    metric: str
    n_tables: int
    difference: float  # true mean difference
    rejected: float  # by the test on rows
    covered: float
    rejected_by_reference: float  # by the test on fold means, or by nested cross-validation
    covered_by_reference: float

    @property
    def equal(self) -> bool:
        """Whether both methods have the same expected loss."""
        return self.setting.apart


def shares_of(records: list[dict]) -> Iterator[Shares]:
    """The shares of all tables that are there."""
    for setting in (*SETTINGS, *OTHERS):
        for n_rows in sorted({r["n_rows"] for r in records}):
            mine = [r for r in records if r["setting"] == setting.name and r["n_rows"] == n_rows]
            for metric in METRICS if mine else ():
                mean, half, fold_mean, fold_half = np.concatenate([r[metric] for r in mine]).T
                true = 0.0 if setting.apart else float(mean.mean())
                shares = [np.mean(np.abs(mean) > half), np.mean(np.abs(mean - true) <= half)]
                shares += [np.mean(np.abs(fold_mean) > fold_half), np.mean(np.abs(fold_mean - true) <= fold_half)]
                yield Shares(setting, n_rows, metric, len(mean), true, *map(float, shares))


def text_of(results: list[Shares], reference: str = "on folds") -> str:
    """Markdown: a line for each setting and metric, each cell with all numbers of rows."""
    header = ["methods", "loss", "true difference", "rejected (%)", f"{reference} (%)", "covered (%)"]
    header.append(f"{reference} (%)")
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    by_line: dict[tuple[Setting, str], list[Shares]] = {}
    for f in results:
        by_line.setdefault((f.setting, f.metric), []).append(f)
    for (setting, metric), sizes in by_line.items():
        difference = "0" if setting.apart else ", ".join(f"{f.difference:+.4f}" for f in sizes)
        shares = [[f.rejected for f in sizes], [f.rejected_by_reference for f in sizes]]
        shares += [[f.covered for f in sizes], [f.covered_by_reference for f in sizes]]
        cells = [", ".join(f"{100 * share:.1f}" for share in column) for column in shares]
        lines.append("| " + " | ".join([setting.name, metric.replace("_", "-"), difference, *cells]) + " |")
    rows = ", ".join(map(str, sorted({f.n_rows for f in results})))
    return "\n".join([*lines, "", f"Tables of {rows} rows, {min(f.n_tables for f in results)} of each, {FOLDS} folds."])


def run(
    path: Path,
    n_tables: int,
    rows: tuple[int, ...],
    settings: tuple[Setting, ...] | None = None,
    n_splits: int = 0,
) -> list[Shares]:
    """Draw the batches that the file does not hold, and summarize all."""
    settings = SETTINGS if settings is None else settings
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(r["setting"], r["n_rows"], r["batch"]) for r in read_lines(path)}
    for n_rows in rows:
        for setting in settings:
            for number in range(-(-n_tables // BATCH)):
                if (setting.name, n_rows, number) not in done:
                    record = batch(setting, n_rows, number, n_splits=n_splits)
                    with path.open("a") as out:
                        out.write(json.dumps(record) + "\n")
            print(f"{setting.name}, {n_rows} rows: done", flush=True)
    return list(shares_of(read_lines(path)))


def main(given: list[str] | None = None) -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.difference_test", description=__doc__)
    parser.add_argument("--tables", type=int, default=2000, help="for every setting and number of rows")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--others", action="store_true", help="trees, neighbors, forests and boosting instead: slow")
    parser.add_argument("--nested", type=int, default=0, metavar="SPLITS", help="compare with nested cross-validation")
    parser.add_argument("--results", type=Path, help="[difference_test.jsonl or nested_difference_test.jsonl]")
    args = parser.parse_args(given)
    settings = OTHERS if args.others else NESTED if args.nested else SETTINGS
    name = "nested_difference_test.jsonl" if args.nested else "difference_test.jsonl"
    results = run(args.results or RESULTS / name, args.tables, tuple(args.rows), settings, args.nested)
    print(text_of(results, "nested" if args.nested else "on folds"))


if __name__ == "__main__":
    main()
