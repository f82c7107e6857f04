"""Table "discrimination": Tables 1 and 2 of document 001, and MED beside logistic regression and the linear SVM.

Twenty random stratified splits each: crabs (sex from five lengths) 80 training rows, 120 for testing; breast_w (rows
without missing values) 200 and 169. The document has one unknown split of each. heart_statlog and pima: 5 x 10
stratified folds, as in the table "accuracy".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from scipy.optimize import brentq
from scipy.special import expit, stdtrit
from scipy.stats import wilcoxon
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.tables import peers
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.printed import TABLES_OF_001, tables_of_001
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Printed, Setting, Splits, Table
from mixent import MEDClassifier, MEDGaussianClassifier

MED, MED_K0, ML, ML_K0 = "MED Gaussians", "MED Gaussians, 001", "ML Gaussians", "ML Gaussians, k of 001"
LINEAR, RBF, LR = "MED linear", "MED RBF", "LR"
SVM_LINEAR, SVM_RBF, SVM_CUBIC, TUNED, TUNED_RBF, QDA = (
    *("SVM linear", "SVM RBF 0.3", "SVM cubic", "SVM linear, tuned", "SVM RBF, tuned"),
    "QDA, ridge 1e-4",
)
SIGMA = 0.3
DOCUMENT = {"C": 5.0, "margin": "exponential", "calibration": None}
SMALLEST_K = (0.0, 0.01, 0.1, 1.0)  # the first with which every class has a distribution
GAMMAS = [0.02, 0.1, 0.5]
SPLIT = ("crabs", "breast_w")
EVERYWHERE = (LINEAR, RBF, LR, TUNED)
ALLOWED = {"crabs": 5.3, "breast_w": 6.0}  # mean test errors, mark (d) of ACCURACY.md
PAIRS = ((MED, ML), (MED_K0, ML_K0), (MED, QDA), (LINEAR, LR), (RBF, LR), (MED, LR), (LINEAR, TUNED), (RBF, TUNED_RBF))
NOTES = (
    "Errors are numbers of rows, mean (sd) over splits; 001: printed, one split. AUC: area under the ROC curve.",
    "ML Gaussians: MED's own before discrimination, same k, bias by conditional likelihood of the training rows.",
    f"{MED_K0}: k = 0 (or the first of {SMALLEST_K[1:]} that works), C = 5, quantile 0.1, uncalibrated.",
    f"SVM: C = 1; RBF exp(-|x - x'|^2 / (2 sigma^2)), sigma = {SIGMA}, scaled columns; log-loss by Platt's sigmoid.",
    "Differences: 95 % interval and p of the paired t-test over splits; p' corrected for shared rows (Nadeau-Bengio).",
)


def stratified(n_train: int, n_test: int) -> Splits:
    """Split i is that of seed i."""

    def splits(data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
        shuffle = StratifiedShuffleSplit(1, train_size=n_train, test_size=n_test, random_state=seed)
        return next(shuffle.split(data.y, data.y))

    return splits


# --- methods ----------------------------------------------------------------------------------------------------------


class Measured:
    """A classifier of two classes that keeps its training rows: its errors there are asked for too."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: np.ndarray) -> Measured:
        self.model.fit(X, y)
        self.classes_, self.train = self.model.classes_, (X, y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model.predict_proba(X)

    def scores(self, X: Any) -> np.ndarray:
        """(n,) that rank rows: higher for the second class."""
        if hasattr(self.model, "decision_function"):
            return self.model.decision_function(X)
        return self.model.predict_proba(X)[:, 1]

    def errors(self, X: Any, y: np.ndarray) -> float:
        return float(np.sum(self.model.predict(X) != y))

    def auc(self, X: Any, y: np.ndarray) -> float:
        return float(roc_auc_score(y == self.classes_[1], self.scores(X)))


class MeasuredSVM(Measured):
    """Decides by the sign of the discriminant function; probabilities by Platt's sigmoid from five inner folds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(**options), cv=5, ensemble=False)))

    def scores(self, X: Any) -> np.ndarray:
        machine = self.model[-1].calibrated_classifiers_[0].estimator
        return machine.decision_function(self.model[0].transform(X))

    def errors(self, X: Any, y: np.ndarray) -> float:
        return float(np.sum(self.classes_[(self.scores(X) > 0).astype(int)] != y))


class LikelihoodGaussians:
    """The Gaussians MED starts from: each class's own rows and the `k` of the prior; the bias sees both classes.

    The bias maximizes the conditional likelihood of the training rows: there sum_t P(1 | x_t) is the number of class 1.
    """

    def __init__(self, k: Any = "auto") -> None:
        self.k = k

    def fit(self, X: Any, y: np.ndarray) -> LikelihoodGaussians:
        self.start = with_k(
            self.k, lambda k: MEDGaussianClassifier(C=0.1, calibration=None, n_jobs=1, prior=k).fit(X, y)
        )
        self.k, self.classes_, self.bias = self.start.prior, self.start.classes_, 0.0
        f, second = self.decision_function(X), np.sum(y == self.classes_[1])
        reach = 40.0 + np.abs(f).max()
        self.bias = brentq(lambda b: expit(f + b).sum() - second, -reach, reach)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        Z = self.start._encoded(X)
        first, second = (gaussian.expected_log_prob(Z) for gaussian in self.start.prior_gaussians_)
        return second - first + self.bias

    def predict_proba(self, X: Any) -> np.ndarray:
        f = self.decision_function(X)
        return np.column_stack([expit(-f), expit(f)])

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class DocumentGaussians:
    """MED with the document's k = 0 and C = 5, or the smallest k that works: a class may have a constant column."""

    def fit(self, X: Any, y: np.ndarray) -> DocumentGaussians:
        self.model = with_k(None, lambda k: MEDGaussianClassifier(n_jobs=1, prior=k, **DOCUMENT).fit(X, y))
        self.k = self.model.prior
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["model"], name)


def with_k(k: Any, fit: Callable[[Any], Any]) -> Any:
    """The fit with this k; None: with the smallest that works."""
    for small in SMALLEST_K[:-1] if k is None else ():
        try:
            return fit(small)
        except ValueError:
            continue
    return fit(SMALLEST_K[-1] if k is None else k)


def measured(make: Callable[[Dataset], Any]) -> Make:
    return lambda data: Measured(make(data))


def svm(**options: Any) -> Make:
    return lambda data: MeasuredSVM(**options)


def med(**options: Any) -> Make:
    return measured(lambda data: MEDClassifier(**options, random_state=0, n_jobs=1))


def rbf_svm(data: Dataset) -> Any:
    """On scaled columns, cost and width chosen; probabilities by Platt's sigmoid."""
    calibrated = CalibratedClassifierCV(SVC(), cv=5, ensemble=False)
    model, at = make_pipeline(peers.scaled(data), calibrated), "calibratedclassifiercv__estimator__"
    return peers.tuned(model, {f"{at}C": [*peers.COSTS[1:], 100.0], f"{at}gamma": GAMMAS}, folds=3)


def qda(data: Dataset) -> Any:
    model = QuadraticDiscriminantAnalysis(solver="eigen", covariance_estimator=peers.ShrunkCovariance(1e-4))
    return make_pipeline(StandardScaler(), model)


METHODS: dict[str, Make] = {
    LINEAR: med(),
    RBF: med(kernel="rbf"),
    MED: measured(lambda data: MEDGaussianClassifier(random_state=0, n_jobs=1)),
    MED_K0: measured(lambda data: DocumentGaussians()),
    ML: measured(lambda data: LikelihoodGaussians()),
    ML_K0: measured(lambda data: LikelihoodGaussians(None)),
    SVM_LINEAR: svm(kernel="linear"),
    SVM_RBF: svm(kernel="rbf", gamma=0.5 / SIGMA**2),
    SVM_CUBIC: svm(kernel="poly", degree=3, coef0=1.0),
    TUNED: measured(peers.linear_svm),
    TUNED_RBF: measured(rbf_svm),
    QDA: measured(qda),
    LR: measured(peers.logistic),
}


# --- measures ---------------------------------------------------------------------------------------------------------


def chosen_c(model: Measured) -> float | None:
    c = getattr(model.model, "C_", None)
    return None if c is None else float(c)


def chosen_k(model: Measured) -> float | None:
    k = getattr(model.model, "k", getattr(model.model, "prior", None))
    return None if k is None or isinstance(k, str) else float(k)


def printed_values() -> dict[tuple[str, str, str], Printed]:
    beside = {
        "logistic regression": (LR,),
        "SVM linear": (SVM_LINEAR, TUNED),
        "SVM RBF": (SVM_RBF,),
        "SVM cubic": (SVM_CUBIC,),
        "ML Gaussians": (ML, ML_K0),
        "MED Gaussians": (MED, MED_K0),
    }
    return tables_of_001(beside)


# --- view -------------------------------------------------------------------------------------------------------------


def show(table: Table, result: Found, code: str, console: Console) -> None:
    some = {setting: by for setting, by in result.items() if any(by.values())}
    split = {setting: by for setting, by in some.items() if setting.splits is not None}
    for setting, by in split.items():
        console.print(_methods(table, setting, by))
        console.print(_pairs(setting, by))
        text = ", ".join(f"{name} {errors}" for name, (_, errors) in TABLES_OF_001[setting.name].items())
        print_line(console, f"printed test errors: {text}")
        for line in _marks(setting, by):
            print_line(console, line)
    folded = {setting: by for setting, by in some.items() if setting.splits is None}
    if folded:
        console.print(_folded(folded))
    for note in NOTES:
        print_line(console, f"* {note}")
    print_notes(table, result, code, console)


def print_line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False)


def _methods(table: Table, setting: Setting, by: Mapping[str, list[dict]]) -> Grid:
    columns = ("train errors", "001", "test errors", "001", "AUC train", "AUC test", "log-loss", "c", "k", "s / fit")
    grid = Grid("method", *columns)
    sizes = next((r["n_train"], r["n_test"]) for records in by.values() for r in records)
    grid.title = f"{setting.name}: {setting.folds} splits, {sizes[0]} training and {sizes[1]} test rows"
    for method, records in by.items():
        if not records:
            continue
        cells = []
        for metric in ("train_errors", "test_errors"):
            printed = table.printed.get((setting.name, method, metric))
            cells += [_mean_sd(records, metric, 1), f"{printed.value:g}" if printed else ""]
        cells += [_mean_sd(records, metric, 3) for metric in ("train_auc", "test_auc", "log_loss")]
        c, k = (median(records, metric) for metric in ("c", "k"))
        grid.add_row(method, *cells, c, k, f"{mean_sd(records, 'fit_seconds')[0]:.2f}")
    return grid


def median(records: list[dict], metric: str) -> str:
    """Median and range of what was chosen."""
    chosen = [r[metric] for r in records if not r["failed"] and r.get(metric) is not None]
    if not chosen:
        return ""
    middle, low, high = np.median(chosen), min(chosen), max(chosen)
    return f"{middle:g}" if low == high else f"{middle:g} ({low:g} to {high:g})"


def _mean_sd(records: list[dict], metric: str, digits: int) -> str:
    mean, sd, folds = mean_sd(records, metric)
    failed = len(records) - folds
    return f"{mean:.{digits}f} ({sd:.{digits}f})" + f" {failed} failed" * bool(failed)


def _pairs(setting: Setting, by: Mapping[str, list[dict]]) -> Grid:
    grid = Grid("difference", "test errors", "95 %", "p", "p'", "Wilcoxon p", "AUC test", "p", "log-loss", "p")
    grid.title = f"{setting.name}: differences over the same splits"
    for first, second in PAIRS:
        if by.get(first) and by.get(second):
            grid.add_row(f"{first} - {second}", *paired(by[first], by[second]))
    return grid


def paired(first: list[dict], second: list[dict]) -> list[str]:
    gap, corrected = (difference(first, second, "test_errors", corrected=c) for c in (False, True))
    if gap.df < 1:
        return [f"{gap.mean:+.2f}"]
    half = gap.se * stdtrit(gap.df, 0.975)
    cells = [f"{gap.mean:+.2f}", f"{gap.mean - half:+.2f} to {gap.mean + half:+.2f}"]
    cells += [f"{gap.p_value:.3f}", f"{corrected.p_value:.3f}", f"{signed_ranks(first, second):.3f}"]
    for metric in ("test_auc", "log_loss"):
        gap = difference(first, second, metric, corrected=False)
        cells += [f"{gap.mean:+.4f}", f"{gap.p_value:.3f}"]
    return cells


def signed_ranks(first: list[dict], second: list[dict], metric: str = "test_errors") -> float:
    """p of Wilcoxon's test; ties of zero are shared out (Pratt). 1 where both are always the same."""
    other = {(r["repeat"], r["fold"]): r for r in second if not r["failed"]}
    keys = [(r, other[r["repeat"], r["fold"]]) for r in first if not r["failed"] and (r["repeat"], r["fold"]) in other]
    differences = np.array([a[metric] - b[metric] for a, b in keys])
    return float(wilcoxon(differences, zero_method="pratt", method="approx").pvalue) if differences.any() else 1.0


def _marks(setting: Setting, by: Mapping[str, list[dict]]) -> list[str]:
    lines = []
    for method in (LINEAR, RBF, MED, MED_K0):
        mean = mean_sd(by.get(method, []), "test_errors")[0]
        if mean == mean:
            word = "reached" if mean <= ALLOWED[setting.name] else "missed"
            lines.append(f"mark (d), {method}: {mean:.2f} errors, at most {ALLOWED[setting.name]:g} wanted: {word}")
    return lines


def _folded(result: Found) -> Grid:
    against = [f"- {peer}" for peer in (LR, TUNED)]
    grid = Grid("set", "method", "error %", *against, "log-loss", *against, "AUC", "c", "s / fit", "folds", "mark (d)")
    grid.title = "differences ± s.e. over the same folds (Nadeau-Bengio), * worse beyond noise"
    for setting, by in result.items():
        grid.add_section()
        for method, records in by.items():
            if records:
                grid.add_row(setting.name, method, *_folded_cells(method, records, by))
    return grid


def _folded_cells(method: str, records: list[dict], by: Mapping[str, list[dict]]) -> list[str]:
    cells, worse = [], []
    for metric, digits in (("error", 1), ("log_loss", 3)):
        cells.append(_mean_sd(records, metric, digits))
        for peer in (LR, TUNED):
            gap = difference(records, by.get(peer, []), metric)
            worse.append(gap.worse)
            known = method not in (LR, TUNED) and gap.mean == gap.mean
            cells.append(
                f"{gap.mean:+.{digits + 1}f} ± {gap.se:.{digits + 1}f}{'*' if gap.worse else ''}" if known else ""
            )
    mark = ("miss" if any(worse) else "pass") if method in (LINEAR, RBF) and by.get(LR) and by.get(TUNED) else ""
    seconds = f"{mean_sd(records, 'fit_seconds')[0]:.2f}"
    return [*cells, _mean_sd(records, "test_auc", 3), median(records, "c"), seconds, str(len(records)), mark]


DISCRIMINATION = Table(
    name="discrimination",
    settings=(
        Setting("crabs", folds=20, repeats=1, splits=stratified(80, 120)),
        Setting("breast_w", folds=20, repeats=1, splits=stratified(200, 169)),
        Setting("heart_statlog"),
        Setting("heart_statlog_mixed", mixed=True, data="heart_statlog"),
        Setting("pima"),
    ),
    methods=METHODS,
    mixed_methods={m: METHODS[m] for m in EVERYWHERE},
    measures={
        "train_errors": lambda model: model.errors(*model.train),
        "train_auc": lambda model: model.auc(*model.train),
        "c": chosen_c,
        "k": chosen_k,
    },
    scores={"test_errors": Measured.errors, "test_auc": Measured.auc},
    printed=printed_values(),
    quick=("crabs",),
    view=show,
    peers=(SVM_LINEAR, SVM_RBF, SVM_CUBIC, TUNED, TUNED_RBF, QDA, LR),
    only={method: SPLIT for method in METHODS if method not in EVERYWHERE},
)
