"""Table "accuracy": the default classifier beside scikit-learn, and marks (a) and (b) of ACCURACY.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.tables import peers
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.printed import PRINTED, REMARKS
from benchmarks.tables.table import Setting, Table
from mixent import MixtureClassifier

NUMERIC = ("breast_w", "heart_statlog", "heart_cleveland", "iris", "new_thyroid", "wine", "zoo", "glass", "crabs")
MORE = ("pima", "bupa", "vehicle", "balance_scale", "sonar", "ionosphere")
SETTINGS = (
    *(Setting(name) for name in (*NUMERIC, *MORE)),
    Setting("segment", repeats=2),
    Setting("waveform", folds=2),
    Setting("satimage", folds=1),
    *(Setting(name, mixed=True) for name in ("hepatitis", "crx", "cmc")),
    Setting("horse_colic", folds=1, mixed=True),
)
ALLOWED = 1.5  # times the log-loss of logistic regression


def ours(data: Dataset) -> Any:
    return MixtureClassifier(random_state=0, n_jobs=1)


def one_gaussian(data: Dataset) -> Any:
    return MixtureClassifier(1, "VVV", random_state=0, n_jobs=1)


def mark_a(by_method: Mapping[str, list[dict]]) -> str:
    """Not worse than regularised QDA and the tuned mixture beyond noise, in error and log-loss."""
    against = [by_method[peer] for peer in ("QDA-reg", "GMM tuned") if by_method.get(peer)]
    if len(against) < 2 or not by_method["mixent"]:
        return "-"
    worse = [difference(by_method["mixent"], b, m).worse for b in against for m in ("error", "log_loss")]
    return "miss" if any(worse) else "pass"


def mark_b(by_method: Mapping[str, list[dict]]) -> str:
    """Log-loss at most 1.5 x that of logistic regression."""
    loss, other = (mean_sd(by_method[m], "log_loss")[0] for m in ("mixent", "LR"))
    return "-" if not loss + other >= 0 else f"{'pass' if loss <= ALLOWED * other else 'miss'} {loss / other:.2f}"


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
    },
    mixed_methods={"mixent": ours, "LR": peers.logistic},
    printed=PRINTED,
    remarks=REMARKS,
    marks={"a": mark_a, "b": mark_b},
    quick=("iris", "wine", "crabs"),
)
