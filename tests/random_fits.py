"""Random fits: any registered estimator with any documented options, on small and difficult tables.

`case(seed)` draws an estimator, options from the types and choices in its docstring, a table, labels and weights;
`attempt(case)` fits it and checks all predictions. A fit is an answer or a refusal (ValueError or TypeError);
everything else is a defect. From the repository root, `python -m tests.random_fits 0 1000` runs many.
"""

import inspect
import json
import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import mixent.options
from mixent import Calibration, FisherKernel, GaussianMixture, HiddenMarkovModel, MixtureClassifier
from mixent.base.registry import entries
from mixent.core.driver import EPS, OutsideDomainError, Status, rounding
from mixent.families.gaussian.structures import COVARIANCES
from mixent.mixtures.problem import MixtureProblem

SECONDS = 10.0  # of CPU time; a fit that takes longer is counted as slow
OPTION_CLASSES = {name: getattr(mixent.options, name) for name in mixent.options.__all__ if name != "KernelFunction"}
ENTRIES = {entry.cls.__name__: entry for entry in entries() if entry.cls.__module__.startswith("mixent.")}
NAMES = [name for name in ENTRIES if name != "OutputColumns"]  # which reads predictions out of the table
SEQUENCES = {"HiddenMarkovModel", "HMMClassifier"}
FIXED = {"progress", "categorical", "inputs", "probabilistic", "grid", "groups", "nested"}


# --- options from the documentation -----------------------------------------------------------------------------------


@cache
def documented(cls: type) -> dict[str, str]:
    """Type of each constructor parameter, as its docstring states it."""
    types = {}
    for line in re.findall(r"^(\w+(?:, \w+)*) : (.*)$", inspect.getdoc(cls) or "", flags=re.MULTILINE):
        types |= {name: line[1].split(", default=")[0] for name in line[0].split(", ")}
    return types


@cache
def type_of(cls: type, name: str) -> str:
    """The documented type; a parameter that is "as in" another class has the type that it has there."""
    others = [entry.cls for entry in ENTRIES.values()] + list(OPTION_CLASSES.values())
    return next(documented(c)[name] for c in (cls, *others) if name in documented(c))


def choices(cls: type, name: str, default: Any, rng: np.random.Generator) -> list[Any]:
    """Values that the documented type allows."""
    kind = type_of(cls, name)
    found: list[Any] = [word for word in re.findall(r'"([^"]+)"', kind) if word not in ("precomputed", "prefit", "oob")]
    words = re.findall(r"\w+", re.sub(r'"[^"]+"', "", kind))
    if name == "covariance":
        found += [*COVARIANCES] * 2
    if "None" in words:
        found.append(None)
    if "bool" in words:
        found += [True, False]
    if "int" in words:
        found += [1, 2, int(rng.integers(2, 6))] if name != "n_samples" else [10, 300]
    if "float" in words:
        usual = default if isinstance(default, float) else 1.0
        found += [usual * factor for factor in (10.0 ** rng.uniform(-3, 3), rng.random(), rng.random())]
        found.append(float(rng.integers(2)))
    return found + [options(OPTION_CLASSES[word], rng) for word in words if word in OPTION_CLASSES]


def options(cls: type, rng: np.random.Generator, **given: Any) -> Any:
    """An instance with some of its parameters drawn from their documented values."""
    values, share = {}, rng.choice([0.05, 0.1, 0.3])
    for name, parameter in inspect.signature(cls).parameters.items():
        if name in FIXED or name in given or rng.random() > share:
            continue
        allowed = choices(cls, name, parameter.default, rng)
        if allowed:
            values[name] = allowed[int(rng.integers(len(allowed)))]
    return cls(**given, **values)


def estimator(name: str, n_classes: int, numeric: bool, rng: np.random.Generator) -> Any:
    """An estimator of this name, with options that keep its fit short."""
    cls = ENTRIES[name].cls
    given: dict[str, Any] = {}
    parameters = inspect.signature(cls).parameters
    if "random_state" in parameters:
        given["random_state"] = int(rng.integers(1000))
    if "n_jobs" in parameters:
        given["n_jobs"] = min(int(rng.integers(1, 3)), 1 if "estimators" in parameters else 2)  # stacks start processes
    if "max_iter" in parameters and rng.random() < 0.5:
        given["max_iter"] = int(rng.choice([1, 3, 30]))
    if "class_prior" in parameters and rng.random() < 0.2:
        given["class_prior"] = rng.dirichlet(np.full(n_classes, 2.0))
    if "n_estimators" in parameters:
        given["n_estimators"] = int(rng.integers(1, 5))
    if "cv" in parameters:
        given["cv"] = int(rng.integers(2, 4))
    if "estimator" in parameters:
        given["estimator"] = member(numeric, rng)
    if "estimators" in parameters:
        given["estimators"] = [member(numeric, rng) for _ in range(rng.integers(1, 4))]
    if name == "FisherKernel":
        given["model"] = options([GaussianMixture, MixtureClassifier, HiddenMarkovModel][rng.integers(3)], rng)
    return options(cls, rng, **given)


def member(numeric: bool, rng: np.random.Generator) -> Any:
    """A classifier of an ensemble; those of scikit-learn take complete numeric columns only."""
    own = [MixtureClassifier(1, "VVI", n_jobs=1, random_state=0), MixtureClassifier(2, "EEV", n_jobs=1, random_state=0)]
    others = [GaussianNB(), LogisticRegression(), DecisionTreeClassifier(max_depth=2, random_state=0)]
    possible = own + others if numeric or rng.random() < 0.1 else own
    return possible[rng.integers(len(possible))]


# --- tables -----------------------------------------------------------------------------------------------------------


def numbers(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Columns with offsets, scales, constants, duplicated rows and columns, few values, outliers, missing values."""
    X = rng.normal(size=(n, d)) + 2.0 * rng.integers(0, 3, size=(n, 1)) * rng.random(d)
    if rng.random() < 0.2:
        X = np.round(X)
    if rng.random() < 0.2:
        X = X[rng.integers(0, max(1, n // 3), size=n)]  # duplicated rows
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = X[:, rng.integers(d)] * rng.choice([1.0, -2.0])  # dependent columns
    if rng.random() < 0.15:
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3e5])
    if rng.random() < 0.1:
        X[rng.integers(n), rng.integers(d)] *= 1e6
    if rng.random() < 0.3:
        X *= 10.0 ** (rng.integers(-8, 9, size=d) if rng.random() < 0.5 else rng.integers(-8, 9))
    if rng.random() < 0.25:
        X += rng.choice([1e3, 1e6, -1e8]) * (rng.random(d) < 0.5)
    if rng.random() < 0.3:
        X[rng.random((n, d)) < rng.choice([0.05, 0.3, 0.8])] = np.nan
    return X


def frame(X: np.ndarray, rng: np.random.Generator) -> Any:
    """The array, or a table in which some columns are categories."""
    if rng.random() < 0.6:
        return X
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for j in range(X.shape[1]):
        if rng.random() < 0.4:
            values = np.array(["red", "green", "blue", "a very long name", ""], dtype=object)[: rng.integers(1, 6)]
            table[f"x{j}"] = values[rng.integers(len(values), size=len(X))]
            if rng.random() < 0.3:
                table[f"x{j}"] = table[f"x{j}"].mask(rng.random(len(X)) < 0.3)
    return table


def labels(n: int, n_classes: int, rng: np.random.Generator) -> Any:
    """Labels that may be absent, uncertain, rare, or all of one class."""
    classes = [["a", "b", "c", "d"], [0, 1, 2, 3], [True, False, True, False], [1.0, 2.0, 3.0, 4.0]][rng.integers(4)]
    codes = rng.choice(n_classes, size=n, p=rng.dirichlet(np.full(n_classes, 3.0)))
    kind = rng.random()
    if kind < 0.7:
        return np.array(classes)[codes]
    if kind < 0.85:
        y = np.array(classes, dtype=object)[codes]
        y[rng.random(n) < rng.choice([0.2, 0.7])] = None
        return y
    sharpness = rng.choice([0.0, 1.0, 5.0])
    soft = np.exp(sharpness * np.eye(n_classes)[codes] * rng.random((n, 1)))
    names = list(dict.fromkeys(map(str, classes)))[:n_classes]
    return pd.DataFrame(soft[:, : len(names)] / soft[:, : len(names)].sum(axis=1, keepdims=True), columns=names)


def weights(n: int, rng: np.random.Generator) -> np.ndarray | None:
    kind = rng.random()
    if kind < 0.6:
        return None
    weight = rng.random(n) if kind < 0.7 else rng.integers(0, 4, size=n).astype(float)
    if kind > 0.8:
        weight = 10.0 ** rng.uniform(-9, 9, size=n) if kind > 0.9 else np.full(n, 10.0 ** rng.integers(-9, 10))
    return weight


def answers(n: int, rng: np.random.Generator) -> tuple[dict[str, Calibration], pd.DataFrame]:
    """Sources with confusion counts, and what they answered."""
    C = int(rng.integers(2, 4))
    classes = list("abc"[:C])
    sources, table = {}, {}
    for j in range(rng.integers(1, 5)):
        counts = rng.integers(0, 20, size=(C, C)) + int(rng.choice([0, 5, 10**6])) * np.eye(C, dtype=int)
        sources[f"s{j}"] = Calibration.from_counts(counts + (counts.sum() == 0), classes=classes)
        said = np.array(classes, dtype=object)[rng.integers(C, size=n)]
        said[rng.random(n) < rng.choice([0.0, 0.3, 1.0], p=[0.6, 0.3, 0.1])] = None
        table[f"s{j}"] = said
    return sources, pd.DataFrame(table)


# --- cases ------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """What is fitted to what; `make` calls the constructor, which may refuse."""

    seed: int
    name: str
    model: Any = None
    X: Any = None
    fit: dict[str, Any] = field(default_factory=dict)
    lengths: dict[str, Any] = field(default_factory=dict)


def case(seed: int, name: str | None = None) -> Case:
    """The case of a seed; raises the errors of the constructors."""
    rng = np.random.default_rng(seed)
    name = name or NAMES[rng.integers(len(NAMES))]
    n, d = int(rng.choice([rng.integers(1, 6), rng.integers(6, 61)], p=[0.2, 0.8])), int(rng.integers(1, 7))
    n_classes = int(rng.choice([1, 2, 3, 4], p=[0.03, 0.57, 0.3, 0.1]))
    one = Case(seed, name)
    weight = weights(n, rng)
    if weight is not None:
        one.fit["sample_weight"] = weight
    if name == "Fuser":
        sources, one.X = answers(n, rng)
        one.model = options(ENTRIES[name].cls, rng, sources=sources)
        return one
    X = numbers(n, d, rng)
    y = labels(n, n_classes, rng)
    one.X = X if name in SEQUENCES else frame(X, rng)
    one.model = estimator(name, n_classes, one.X is X and not np.isnan(X).any(), rng)
    if isinstance(getattr(one.model, "model", None), HiddenMarkovModel):
        one.X = X
    if name == "HiddenMarkovModel" and rng.random() < 0.5:
        cut = int(rng.integers(0, n))
        one.lengths = {"lengths": [length for length in (cut, n - cut) if length]}
        one.fit.pop("sample_weight", None)
    if hasattr(one.model, "adjust_priors") or (isinstance(one.model, FisherKernel) and rng.random() < 0.5):
        one.fit["y"] = y
    return one


# --- checks -----------------------------------------------------------------------------------------------------------


class SlowError(BaseException):
    """The fit took longer than its limit."""


class UnfinishedError(BaseException):
    """A solver of maximum entropy discrimination reports that it did not reach the optimum."""


@contextmanager
def limited(seconds: float):
    """Raise `SlowError` in the main thread after this CPU time, where the system can."""
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def stop(*_: Any) -> None:
        raise SlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(seed: int, name: str | None = None, seconds: float = SECONDS) -> str:
    """Return "answer", "refusal: ...", "slow" or "unfinished"; every other exception is a defect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning, module=r"mixent\b")
        try:
            with limited(seconds):
                one = case(seed, name)
                fitted = one.model.fit(one.X, **one.fit, **one.lengths)
                check_runs(fitted, one)
                check_predictions(fitted, one)
        except (ValueError, TypeError) as error:
            check_refusal(error)
            return f"refusal: {error}"
        except SlowError:
            return "slow"
        except UnfinishedError:
            return "unfinished"
    return "answer"


def check_refusal(error: Exception) -> None:
    """A refusal comes from a check, with a sentence; errors of numpy and others inside of a computation are defects."""
    files = [Path(frame.filename).parts for frame in traceback.extract_tb(error.__traceback__)]
    if any("sklearn" in file for file in files):  # of a member, or of scikit-learn's checks
        return
    internal = isinstance(error, np.linalg.LinAlgError | OutsideDomainError)
    if internal or "mixent" not in files[-1] or re.search(r"\bnan\b|broadcast", str(error)):
        raise AssertionError(f"not a refusal in a user's words: {error}") from error


def check_runs(fitted: Any, one: Case) -> None:
    """No objective decreased by more than rounding."""
    weight = float(np.sum(one.fit.get("sample_weight", len(one.X)))) * (one.X.shape[1] if one.name in SEQUENCES else 1)
    mixture = isinstance(getattr(fitted, "problem_", None), MixtureProblem)
    condition = 10 * fitted.problem_.condition(fitted.params_) if mixture else 1.0  # that of earlier passes is similar
    for run in getattr(fitted, "runs_", None) or [getattr(fitted, "run_", None)]:
        if run is None:
            continue
        # without a prior, the likelihood may have no maximum: Gaussians that collapse, classes that can be separated
        unbounded = run.status is Status.NOT_FINITE and getattr(one.model, "prior", "") is None
        unbounded |= run.status.failed and getattr(one.model, "prior_variance", "") is None
        # rotations of columns in very different units are not accurate, see docs/mathematics.md
        rotated = any(name in str(getattr(fitted, "covariance_", one.model)) for name in ("EVE", "VVE"))
        if run.status.failed and ENTRIES[one.name].family == "med":
            raise UnfinishedError
        assert unbounded or rotated or not run.status.failed, run.message
        before: dict[int, float] = {}
        for step in run.trace:
            if step.accepted and step.segment in before:
                fall, slack = before[step.segment] - step.objective, rounding(before[step.segment], weight, condition)
                assert fall <= slack, f"the objective fell by {fall:.3g}; rounding explains {slack:.3g}"
            if step.accepted:
                before[step.segment] = step.objective


def check_predictions(fitted: Any, one: Case) -> None:
    """Predictions of the rows, and of rows far from them, are distributions, known labels or finite numbers."""
    tables = [one.X]
    if isinstance(one.X, np.ndarray):
        tables.append(np.nan_to_num(one.X[:3]) * 1e3 + 1e3)
    for X in tables:
        lengths = one.lengths if X is one.X else {name: [len(X)] for name in one.lengths}
        check_table(fitted, X, lengths)
        if not lengths:
            check_single_rows(fitted, X)


def check_single_rows(fitted: Any, X: Any) -> None:
    """A row alone has the prediction of its batch, up to what rounding the values of the row changes."""
    for method in ("predict_proba", "decision_function", "score_samples"):
        if not hasattr(fitted, method):
            continue
        predict = getattr(fitted, method)
        together, *others = (np.asarray(predict(Z), dtype=float) for Z in (X, *(rounded(X, f) for f in (-4.0, 4.0))))
        slack = 10 * np.max([np.abs(other - together) for other in others], axis=0)
        for i in {0, len(X) - 1}:
            row = X.iloc[i : i + 1] if hasattr(X, "iloc") else X[i : i + 1]
            alone = np.asarray(predict(row), dtype=float)[0]
            difference, allowed = np.abs(alone - together[i]), 1e-7 + 1e-7 * np.abs(together[i]) + slack[i]
            assert (difference <= allowed).all(), f"{method} of row {i} alone differs by {difference}"


def rounded(X: Any, factor: float) -> Any:
    """The table with numbers that differ by this multiple of the machine precision."""
    scale = 1 + factor * EPS
    if not hasattr(X, "iloc"):
        return X * scale
    return X.assign(**{name: X[name] * scale for name in X.columns if X[name].dtype.kind == "f"})


def check_table(fitted: Any, X: Any, lengths: dict[str, Any]) -> None:
    n = len(X)
    if hasattr(fitted, "predict_proba"):
        proba = np.asarray(fitted.predict_proba(X, **lengths))
        assert len(proba) == n and np.isfinite(proba).all(), "probabilities are not finite"
        assert (proba >= 0).all() and np.allclose(proba.sum(axis=-1), 1.0, rtol=0, atol=1e-9), "not a distribution"
    for method in ("decision_function", "score_samples", "transform"):
        if hasattr(fitted, method) and not (method == "transform" and hasattr(fitted, "estimators")):  # of members
            values = np.asarray(getattr(fitted, method)(X, **lengths), dtype=float)
            assert np.isfinite(values).all(), f"{method} is not finite"
    if hasattr(fitted, "predict"):
        labels = np.asarray(fitted.predict(X, **lengths))
        if hasattr(fitted, "classes_"):
            assert set(labels.tolist()) <= set(fitted.classes_.tolist()), "an unknown label"


# --- many ---------------------------------------------------------------------------------------------------------


def main(start: int, stop: int, file: str | None = None, name: str | None = None) -> None:
    """Run the seeds from start to stop; append a line for each to the file, and skip those that it has."""
    log = Path(file) if file else None
    known = {json.loads(line)["seed"] for line in log.open()} if log and log.exists() else set()
    found: Counter[str] = Counter()
    for seed in range(start, stop):
        if seed in known:
            continue
        began, detail = time.perf_counter(), ""
        try:
            result, _, detail = attempt(seed, name).partition(": ")
        except Exception as error:
            result = "defect"
            place = traceback.extract_tb(error.__traceback__)[-1]
            detail = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        found[result] += 1
        seconds = round(time.perf_counter() - began, 2)
        model = name or NAMES[np.random.default_rng(seed).integers(len(NAMES))]
        if result not in ("answer", "refusal"):
            print(seed, model, result, seconds, detail[:300], flush=True)
        if log:
            with log.open("a") as out:
                line = {"seed": seed, "model": model, "result": result, "seconds": seconds, "detail": detail[:300]}
                out.write(json.dumps(line) + "\n")
    print(dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
