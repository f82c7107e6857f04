"""Table "judges": verdicts of language models on which of two answers is better (LLMBar), fused without common labels.

The 12 judges were named before any result was seen: of each of the six base models the plain prompt ("Vanilla", the
benchmark's baseline) with the answers in the order they came, and the reasoning prompt ("CoT") with the answers
swapped. So two judges have the same base model and no two the same model and prompt.

A split draws the test half first. Each judge is calibrated on 100 items of the other half, drawn for it alone; the test
items are resampled to stated priors; no method but those named so sees a label of the other judges' rows or of the
test. "20 labels": the classes of the first 20 items of the batch are given. Supervised stacking has 100 items of the
calibration half that all judges answered, with their classes.

All errors and losses in the view are of the items of the batch other than these 20 and their repeats, the same for all
methods. Log-loss has probabilities below 1e-6 counted as that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Setting, Table
from mixent import Calibration, Fuser, MaxEntStackingClassifier
from mixent.base.priors import shifted_priors
from mixent.fusion.methods import METHODS
from mixent.studies import resample_priors

MODELS = ("ChatGPT", "ChatGPT-0301", "Falcon", "GPT-4", "LLaMA2", "PaLM2")
PROMPTS = ("Vanilla|ab", "CoT|ba")
JUDGES = tuple(f"{model}:{prompt}" for model in MODELS for prompt in PROMPTS)
CLASSES = ("1", "2")
PRIORS = {"50-50": (0.5, 0.5), "20-80": (0.2, 0.8), "80-20": (0.8, 0.2)}
SPLITS = 20
OWN, COMMON, FEW = 100, 100, 20  # items: to calibrate a judge, labelled for stacking, labelled in the batch
SMALLEST = 1e-6

AUTO = "auto"
FUSED = tuple(METHODS)
SHIFTED, UNCALIBRATED = "EM of each, mean", "Dawid-Skene, no calibration"
LABELLED, STACKED, LOGISTIC = "auto, 20 labels", "stacking, 100 labels", "logistic, 100 labels"
STACKED_SHIFTED = "stacking, 100 labels, EM"
FREE = (*FUSED, SHIFTED, UNCALIBRATED)  # methods that see no common label

# --- methods ----------------------------------------------------------------------------------------------------------


class Fusion:
    """Judges calibrated one by one in `fit`; the batch is fused when it is asked for."""

    def __init__(self, data: Dataset, method: str = AUTO, labels: int = 0) -> None:
        self.data, self.method, self.labels = data, method, labels

    def fit(self, X: Any, y: np.ndarray) -> Fusion:
        self.classes_ = np.array(CLASSES)
        self.calibrations = calibrations(X, y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        self.proba = self.fused(X)  # kept: the scores are of the same rows
        return self.proba

    def fused(self, X: Any) -> np.ndarray:
        known = np.full(len(X), None, dtype=object)
        known[: self.labels] = self.data.y[X.index[: self.labels]]
        self.fuser = Fuser(self.calibrations, method=self.method)
        return self.fuser.fit(X[list(JUDGES)], known if self.labels else None).posterior_


class Shifted(Fusion):
    """Each judge's priors by Saerens' EM on its own, then the mean of the posteriors of the judges that answered."""

    def fused(self, X: Any) -> np.ndarray:
        total, voices = np.zeros((len(X), len(CLASSES))), np.zeros((len(X), 1))
        for judge, calibration in self.calibrations.items():
            codes = X[judge].map({symbol: v for v, symbol in enumerate(calibration.symbols)}).to_numpy(dtype=float)
            there = np.flatnonzero(np.isfinite(codes))
            ratio = np.log(calibration.confusion.T)[codes[there].astype(int)]
            prior = shifted_priors(ratio, calibration.class_prior).params
            joint = np.exp(ratio) * prior
            total[there] += joint / joint.sum(axis=1, keepdims=True)
            voices[there] += 1
        return np.where(voices > 0, total / np.maximum(voices, 1), 1 / len(CLASSES))


class Uncalibrated(Fusion):
    """Dawid and Skene's EM of the batch alone."""

    def fused(self, X: Any) -> np.ndarray:
        return Fuser(None, method="dawid-skene").fit(X[list(JUDGES)]).posterior_


class Supervised(Fusion):
    """A classifier of the judges' answers, of 100 items with classes; with `shift` the batch's priors are learned."""

    def __init__(self, data: Dataset, make: Callable[[], Any], shift: bool = False) -> None:
        super().__init__(data)
        self.make, self.shift = make, shift

    def fit(self, X: Any, y: np.ndarray) -> Supervised:
        rows = np.random.default_rng([0, *X.index]).permutation(len(X))[:COMMON]
        self.model = self.make().fit(X[list(JUDGES)].iloc[rows], y[rows])
        self.prior = np.mean(y[rows, None] == np.array(CLASSES), axis=0)
        self.classes_ = self.model.classes_
        return self

    def fused(self, X: Any) -> np.ndarray:
        proba = self.model.predict_proba(X[list(JUDGES)])
        if not self.shift:
            return proba
        ratio = np.log(np.maximum(proba, SMALLEST)) - np.log(self.prior)
        joint = np.exp(ratio) * shifted_priors(ratio, self.prior).params
        return joint / joint.sum(axis=1, keepdims=True)


def calibrations(X: Any, y: np.ndarray) -> dict[str, Calibration]:
    """Each judge on items of its own; seeded by the rows, so that all methods have the same."""
    results = {}
    for j, judge in enumerate(JUDGES):
        rows = np.random.default_rng([1 + j, *X.index]).permutation(len(X))[:OWN]
        outputs = X[judge].iloc[rows].to_numpy(dtype=object)
        results[judge] = Calibration.from_predictions(y[rows], outputs, symbols=list(CLASSES))
    return results


def stacking() -> Any:
    return MaxEntStackingClassifier([(judge, judge) for judge in JUDGES], random_state=0, n_jobs=1)


def logistic() -> Any:
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(SimpleImputer(strategy="most_frequent"), encoder, LogisticRegression(max_iter=1000))


def methods() -> dict[str, Make]:
    made: dict[str, Make] = {method: partial(Fusion, method=method) for method in FUSED}
    return made | {
        SHIFTED: Shifted,
        UNCALIBRATED: Uncalibrated,
        LABELLED: partial(Fusion, labels=FEW),
        STACKED: partial(Supervised, make=stacking),
        STACKED_SHIFTED: partial(Supervised, make=stacking, shift=True),
        LOGISTIC: partial(Supervised, make=logistic),
    }


# --- splits and measures ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Halves:
    """The test half first, then resampled to the priors; the other half is for calibration."""

    priors: tuple[float, ...]

    def __call__(self, data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
        order = np.random.default_rng(seed).permutation(len(data.y))
        half = len(order) // 2
        test = order[:half]
        return order[half:], test[resample_priors(data.y[test], self.priors, random_state=seed)]


def judged(X: Any) -> np.ndarray:
    """(n,) rows of the batch that are no item of the few whose class may be given."""
    return ~X.index.isin(X.index[:FEW])


def loss(model: Any, X: Any, y: np.ndarray) -> float:
    proba = model.proba[judged(X)]
    chosen = proba[np.arange(len(proba)), np.searchsorted(model.classes_, y[judged(X)])]
    return float(-np.log(np.clip(chosen, SMALLEST, 1)).mean())


def wrong(model: Any, X: Any, y: np.ndarray) -> float:
    """In %."""
    proba = model.proba[judged(X)]
    return 100.0 * float(np.mean(model.classes_[proba.argmax(axis=1)] != y[judged(X)]))


def prior_error(model: Any, X: Any, y: np.ndarray) -> float | None:
    """Of the share of the first class, in points."""
    fuser = getattr(model, "fuser", None)
    return None if fuser is None else 100.0 * float(fuser.prior_[0] - np.mean(y == CLASSES[0]))


def covered(model: Any, X: Any, y: np.ndarray) -> float | None:
    """Does the interval hold the share of the first class in the batch?"""
    fuser = getattr(model, "fuser", None)
    if fuser is None:
        return None
    estimate = fuser.prior_estimate_
    return float(estimate.low[0] <= np.mean(y == CLASSES[0]) <= estimate.high[0])


def largest_z(model: Any) -> float | None:
    return None if getattr(model, "fuser", None) is None else float(model.fuser.dependence_.largest)


# --- view -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Near:
    """Is a method as good as the best of some, but for noise?"""

    best: str
    gap: float
    paired_se: float  # of the mean of differences over splits
    mean_se: float  # of the best method's own mean

    def __str__(self) -> str:
        outputs = [self.gap <= se + 1e-12 for se in (self.paired_se, self.mean_se)]
        words = "yes" if all(outputs) else "no" if not any(outputs) else "by the mean's s.e. only"
        words = "by the difference's s.e. only" if outputs == [True, False] else words
        return f"best {self.best}, {self.gap:+.3f} (s.e. {self.paired_se:.3f}, of the mean {self.mean_se:.3f}): {words}"


def near(by: Mapping[str, list[dict]], method: str, others: tuple[str, ...], metric: str) -> Near:
    """`method` against the one of `others` whose mean is lowest."""
    there = [m for m in others if by.get(m)]
    best = min(there, key=lambda m: mean_sd(by[m], metric)[0])
    gap = difference(by[method], by[best], metric, corrected=False)
    _, sd, n = mean_sd(by[best], metric)
    return Near(best, gap.mean, gap.se if best != method else 0.0, sd / np.sqrt(n))


def show(table: Table, result: Found, code: str, console: Console) -> None:
    for setting, by in result.items():
        if any(by.values()):
            console.print(_means(setting, by))
        if by.get(AUTO):
            for metric in ("loss", "wrong"):
                text = f"{setting.name}: {AUTO} within one s.e. of the best label-free in {metric}? "
                console.print(text + str(near(by, AUTO, FREE, metric)), markup=False, highlight=False)
    console.print(f"* judges: {', '.join(JUDGES)}", markup=False, highlight=False)
    print_notes(table, result, code, console)


def _means(setting: Setting, by: Mapping[str, list[dict]]) -> Grid:
    grid = Grid("method", "error %", "log-loss", "- best: log-loss", "prior, points", "covered %", "z", "s")
    grid.title = f"LLMBar judges, batch priors {setting.name}: mean ± s.e. over splits"
    best = near(by, AUTO, FREE, "loss").best if by.get(AUTO) else None
    for method, records in by.items():
        if records:
            gap = difference(records, by[best], "loss", corrected=False) if best and best != method else ""
            cells = [_cell(records, "wrong", 2), _cell(records, "loss", 3), str(gap), _cell(records, "prior_error", 1)]
            share = 100 * mean_sd(records, "covered")[0]
            more = ["" if np.isnan(share) else f"{share:.0f}", _mean(records, "z"), _mean(records, "fit_seconds")]
            grid.add_row(method, *cells, *more)
    return grid


def _cell(records: list[dict], metric: str, digits: int) -> str:
    mean, sd, n = mean_sd(records, metric)
    return f"{mean:.{digits}f} ± {sd / np.sqrt(n):.{digits}f}" if n else ""


def _mean(records: list[dict], metric: str) -> str:
    mean, _, n = mean_sd(records, metric)
    return f"{mean:.2f}" if n else ""


JUDGES_TABLE = Table(
    name="judges",
    settings=tuple(
        Setting(name, SPLITS, 1, mixed=True, discrete=True, data="llmbar_judges", splits=Halves(priors))
        for name, priors in PRIORS.items()
    ),
    methods=methods(),
    mixed_methods=methods(),
    measures={"z": largest_z},
    scores={"loss": loss, "wrong": wrong, "prior_error": prior_error, "covered": covered},
    quick=("20-80",),
    view=show,
    peers=(LOGISTIC,),
)
