"""Table "accuracy": the default classifiers beside scikit-learn, and marks (a) to (d) of ACCURACY.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.tables import peers
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.printed import BEST, PRINTED, REMARKS, TODAY
from benchmarks.tables.table import Mark, Setting, Table
from mixent import MaxEntClassifier, MixtureClassifier

NUMERIC = ("breast_w", "heart_statlog", "heart_cleveland", "iris", "new_thyroid", "wine", "zoo", "glass", "crabs")
MORE = ("pima", "bupa", "vehicle", "balance_scale", "sonar", "ionosphere")
HEARTS = ("heart_statlog", "heart_cleveland")  # as numbers, and with their categories
SETTINGS = (
    *(Setting(name) for name in (*NUMERIC, *MORE)),
    Setting("segment", repeats=2),
    Setting("waveform", folds=2),
    Setting("satimage", folds=1),
    *(Setting(name, mixed=True) for name in ("hepatitis", "crx", "cmc")),
    *(Setting(f"{name}_mixed", mixed=True, data=name) for name in HEARTS),
    Setting("horse_colic", folds=1, mixed=True),
)
ALLOWED = 1.5  # times the log-loss of logistic regression
BEHIND = ("glass", "bupa", "segment", "satimage", "crx", "sonar", *HEARTS)  # sets of mark (c)
MATCHED = ("pima", *HEARTS)  # sets of mark (d)
MIXTURES, LINEAR = ("QDA-reg", "GMM tuned"), ("LR", "linear SVM")


def ours(data: Dataset) -> Any:
    return MixtureClassifier(random_state=0, n_jobs=1)


def one_gaussian(data: Dataset) -> Any:
    return MixtureClassifier(1, "VVV", random_state=0, n_jobs=1)


def maxent(data: Dataset) -> Any:
    return MaxEntClassifier(random_state=0, n_jobs=1)


def mark_a(by_method: Mapping[str, list[dict]]) -> str:
    """Not worse than regularized QDA and the tuned mixture beyond noise, in error and log-loss."""
    return _not_worse(by_method, "mixent", MIXTURES)


def mark_b(method: str) -> Mark:
    """Log-loss at most 1.5 x that of logistic regression."""

    def mark(by_method: Mapping[str, list[dict]]) -> str:
        loss, other = (mean_sd(by_method[m], "log_loss")[0] for m in (method, "LR"))
        return "-" if not loss + other >= 0 else f"{'pass' if loss <= ALLOWED * other else 'miss'} {loss / other:.2f}"

    return mark


def mark_c(method: str) -> Mark:
    """Half of the gap closed between today's mixtures and the best peer: the share of it, in error.

    The ends are those of ACCURACY.md; but the mixtures' on these folds, where they were run.
    """

    def mark(by_method: Mapping[str, list[dict]]) -> str:
        name, error = _set_of(by_method), mean_sd(by_method[method], "error")[0]
        if name not in BEHIND or not error >= 0:
            return "-"
        measured = [mean_sd(by_method[m], "error")[0] for m in MIXTURES if by_method.get(m)]
        start = min(measured, default=TODAY[name])
        closed = (start - error) / (start - BEST[name][1])
        return f"{'pass' if closed >= 0.5 else 'miss'} {closed:.2f}"

    return mark


def mark_d(by_method: Mapping[str, list[dict]]) -> str:
    """Maximum entropy not worse than logistic regression and the linear SVM beyond noise, in error and log-loss."""
    return _not_worse(by_method, "maxent", LINEAR) if _set_of(by_method) in MATCHED else "-"


def _not_worse(by_method: Mapping[str, list[dict]], method: str, peers: tuple[str, ...]) -> str:
    against = [by_method[peer] for peer in peers if by_method.get(peer)]
    if len(against) < len(peers) or not by_method[method]:
        return "-"
    worse = [difference(by_method[method], b, m).worse for b in against for m in ("error", "log_loss")]
    return "miss" if any(worse) else "pass"


def _set_of(by_method: Mapping[str, list[dict]]) -> str:
    return next((r["set"].removesuffix("_mixed") for records in by_method.values() for r in records), "")


ACCURACY = Table(
    name="accuracy",
    settings=SETTINGS,
    methods={
        "mixent": ours,
        "QDA-reg": peers.qda,
        "GMM BIC": peers.gmm_bic,
        "GMM tuned": peers.gmm_tuned,
        "LR": peers.logistic,
        "mixent 1 VVV": one_gaussian,
        "maxent": maxent,
        "linear SVM": peers.linear_svm,
    },
    mixed_methods={"mixent": ours, "LR": peers.logistic, "maxent": maxent, "linear SVM": peers.linear_svm},
    printed=PRINTED,
    remarks=REMARKS | {f"{name}_mixed": REMARKS[name] for name in HEARTS},
    marks={
        "a": mark_a,
        **{f"b {method}": mark_b(method) for method in ("mixent", "maxent")},
        **{f"c {method}": mark_c(method) for method in ("mixent", "maxent")},
        "d maxent": mark_d,
    },
    peers=("QDA-reg", "GMM BIC", "GMM tuned", "LR", "linear SVM"),
    only={"linear SVM": (*MATCHED, *(f"{name}_mixed" for name in HEARTS))},
    compared=("maxent",),
    quick=("iris", "wine", "crabs"),
)
