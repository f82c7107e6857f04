"""What every estimator predicts on fixed tables: `python tests/golden/predictions.py` writes predictions.json anew.

Run it only when results are meant to change, and say so in the changelog. `tests/test_predictions.py` compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import mixent as mx
from mixent import options as opt
from mixent.options import RBF, BinFeatures, InputRegions, Margin, Polynomial, Tables

HERE = Path(__file__).parent / "predictions.json"
SHOWN = 8  # rows whose numbers are kept
N = 90
CLASS = np.repeat([0, 1, 2], N // 3)
Y = np.array(["ash", "beech", "cedar"])[CLASS]


def table(seed: int = 0, missing: bool = True) -> pd.DataFrame:
    """Three numbers and two text columns, some values missing."""
    rng = np.random.default_rng(seed)
    color = np.array(["red", "blue", "green"])[(CLASS + (rng.random(N) < 0.3)) % 3]
    soil = np.array(["sand", "clay"])[(rng.random(N) < 0.3 + 0.2 * CLASS).astype(int)]
    numbers = rng.normal(size=(N, 3)) + CLASS[:, None] * [1.3, 0.0, -0.7]
    numbers[:, 2] += 0.5 * numbers[:, 0] ** 2
    frame = pd.DataFrame(numbers, columns=["height", "age", "width"]).assign(color=color, soil=soil)
    if missing:
        frame = frame.assign(
            height=frame.height.mask(rng.random(N) < 0.1), color=frame.color.where(rng.random(N) > 0.1, None)
        )
    return frame


MIXED, FULL = table(), table(missing=False)
NUMBERS = FULL[["height", "age", "width"]].to_numpy()
GAPPY = MIXED[["height", "age", "width"]].to_numpy()
SOME = np.where(np.arange(N) % 4 == 0, None, Y.astype(object))
SEQUENCES = np.cumsum(np.random.default_rng(1).normal(size=(N, 5)) + CLASS[:, None] - 1.0, axis=1)
WEIGHT = np.where(np.arange(N) % 3 == 0, 2.0, 1.0)
TWO = CLASS < 2


def bases() -> list[tuple[str, Any]]:
    return [("mixture", mx.MixtureClassifier(1, "VVI", n_jobs=1)), ("med", mx.MEDClassifier(C=2.0, calibration=None))]


def fuser(method: str) -> Any:
    rates = 0.7 * np.eye(3) + 0.1
    classes = ["ash", "beech", "cedar"]
    sources = {name: mx.Calibration.from_counts(100 * rates, classes=classes) for name in ("judge", "jury", "panel")}
    return mx.Fuser(sources, method=method)


def votes(share: float = 0.25) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rates, classes = 0.7 * np.eye(3) + 0.1, np.array(["ash", "beech", "cedar"])
    told = {name: [classes[rng.choice(3, p=rates[c])] for c in CLASS] for name in ("judge", "jury", "panel")}
    return pd.DataFrame({name: np.where(rng.random(N) < share, None, values) for name, values in told.items()})


def proba(model: Any, X: Any, y: Any = Y, **more: Any) -> np.ndarray:
    return model.fit(X, y, **more).predict_proba(X)


def scores(model: Any, X: Any) -> np.ndarray:
    return model.fit(X).score_samples(X)


R: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
CASES: dict[str, Callable[[], np.ndarray]] = {
    "GaussianMixture": lambda: scores(mx.GaussianMixture(3, **R), GAPPY),
    "GaussianMixture auto": lambda: scores(
        mx.GaussianMixture("auto", "auto", search=opt.Search(max_components=3), **R), NUMBERS
    ),
    "GaussianMixture grown": lambda: scores(
        mx.GaussianMixture("auto", search=opt.Search("icl", 3, growth="incremental"), **R), NUMBERS
    ),
    "MixtureClassifier": lambda: proba(mx.MixtureClassifier(search=opt.Search(max_components=2, cv=3), **R), MIXED),
    "MixtureClassifier bic": lambda: proba(
        mx.MixtureClassifier("auto", "VVI", search=opt.Search("bic", 3), **R), NUMBERS
    ),
    "MixtureClassifier conditional": lambda: proba(
        mx.MixtureClassifier(2, "VVI", training=opt.Conditional(0.7), **R), NUMBERS
    ),
    "MixtureClassifier some labels": lambda: proba(mx.MixtureClassifier(1, "VVV", **R), MIXED, SOME),
    "SharedMixtureClassifier": lambda: proba(mx.SharedMixtureClassifier(4, "VVI", **R), MIXED),
    "SharedMixtureClassifier conditional": lambda: proba(
        mx.SharedMixtureClassifier(3, "VVV", training=opt.Conditional(solver="lbfgs"), **R), NUMBERS
    ),
    "HMMClassifier": lambda: proba(mx.HMMClassifier(2, **R), SEQUENCES),
    "HiddenMarkovModel": lambda: scores(mx.HiddenMarkovModel(3, topology="left-right", **R), SEQUENCES),
    "MaxEntClassifier": lambda: proba(mx.MaxEntClassifier(cv=3, **R), MIXED, sample_weight=WEIGHT),
    "MaxEntClassifier bins": lambda: proba(
        mx.MaxEntClassifier(BinFeatures("uniform", n_bins=4), prior_variance=1.0, **R), MIXED
    ),
    "MaxEntClassifier pairs": lambda: proba(
        mx.MaxEntClassifier(pairs=[("color", "soil")], prior_variance=1.0, **R), MIXED
    ),
    "MaxEntClassifier forward": lambda: proba(mx.MaxEntClassifier(selection="bic", prior_variance=1.0, **R), MIXED),
    "MaxEntJoint": lambda: (
        mx.MaxEntJoint(3, prior_variance=1.0, **R).fit(MIXED).predict_proba(MIXED.drop(columns="soil"), "soil")
    ),
    "MEDClassifier": lambda: proba(mx.MEDClassifier(cv=3, **R), MIXED),
    "MEDClassifier rbf": lambda: proba(mx.MEDClassifier(RBF(0.3), C=3.0, cv=3, **R), NUMBERS),
    "MEDClassifier poly": lambda: proba(mx.MEDClassifier(Polynomial(2), C=2.0, margin="gaussian", cv=3, **R), NUMBERS),
    "MEDClassifier features": lambda: proba(mx.MEDClassifier(RBF(n_landmarks=10), C=3.0, cv=3, **R), NUMBERS),
    "MEDClassifier some labels": lambda: proba(mx.MEDClassifier(C=2.0, cv=3, **R), FULL[TWO], SOME[TWO]),
    "MEDGaussianClassifier": lambda: proba(mx.MEDGaussianClassifier(C=1.0, cv=3, **R), NUMBERS[TWO], Y[TWO]),
    "MEDGaussianClassifier rbf": lambda: proba(
        mx.MEDGaussianClassifier(C=1.0, kernel="rbf", n_kernel_components=3, calibration=None, **R),
        NUMBERS[TWO],
        Y[TWO],
    ),
    "MEDTreeClassifier": lambda: proba(mx.MEDTreeClassifier(C=1.0, cv=3, **R), MIXED),
    "MEDTreeClassifier integrated": lambda: proba(
        mx.MEDTreeClassifier(
            Tables("integrated", continuous="quantized"),
            C=1.0,
            calibration=None,
            margin=Margin("laplace", target=2.0),
            **R,
        ),
        FULL,
    ),
    "MEDTreeClassifier shared": lambda: proba(
        mx.MEDTreeClassifier(C=1.0, calibration=None, trees="shared", margin=Margin("laplace", quantile=0.3), **R),
        MIXED[["color", "soil", "height"]],
    ),
    "MEDBayesNetClassifier": lambda: proba(mx.MEDBayesNetClassifier(C=1.0, cv=3, **R), FULL[["color", "soil"]]),
    "MEDBayesNetClassifier edges": lambda: proba(
        mx.MEDBayesNetClassifier([("color", "soil")], C=1.0, calibration="predictive", ess=2.0, **R),
        FULL[["color", "soil"]],
    ),
    "MEDNoveltyDetector": lambda: scores(mx.MEDNoveltyDetector(), MIXED),
    "MEDNoveltyDetector tree": lambda: scores(
        mx.MEDNoveltyDetector("tree", margin=Margin("exponential", quantile=0.3)), FULL[["color", "soil"]]
    ),
    "FisherKernel": lambda: np.abs(
        mx.FisherKernel(mx.GaussianMixture(2, "VVI", **R), random_state=0).fit(NUMBERS).transform(NUMBERS)
    ),
    "ParzenClassifier": lambda: proba(mx.ParzenClassifier(n_jobs=1), MIXED),
    "KernelFisherClassifier": lambda: proba(mx.KernelFisherClassifier(**R), MIXED),
    "KernelFisherClassifier poly": lambda: proba(
        mx.KernelFisherClassifier(Polynomial(2, gamma="auto", n_landmarks=20), **R), NUMBERS
    ),
    "AdaBoostM1Classifier": lambda: proba(mx.AdaBoostM1Classifier(GaussianNB(), 5, random_state=0), NUMBERS),
    "WeightBoostClassifier": lambda: proba(mx.WeightBoostClassifier(GaussianNB(), 5, random_state=0), NUMBERS),
    "MaxEntStackingClassifier": lambda: proba(mx.MaxEntStackingClassifier(bases(), cv=3, **R), NUMBERS),
    "MaxEntStackingClassifier latent": lambda: proba(
        mx.MaxEntStackingClassifier(
            bases(), regions=InputRegions(max_components=2, covariance="VVI"), prior_variance=1.0, cv=3, **R
        ),
        NUMBERS,
    ),
    "HMMStackingClassifier": lambda: proba(mx.HMMStackingClassifier(bases(), cv=3, **R), NUMBERS),
    "TunedClassifier": lambda: proba(
        mx.TunedClassifier(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, random_state=0), MIXED
    ),
    **{
        f"Fuser {method}": (lambda method=method: fuser(method).fit(votes()).predict_proba(votes()))  # type: ignore[misc]
        for method in ("auto", "ml-product", "product", "min-divergence", "pool", "dawid-skene", "majority")
    },
}


def predicted(name: str) -> list[float]:
    """The first numbers of some rows, spread over the table."""
    values = np.asarray(CASES[name](), dtype=float)
    return values[:: len(values) // SHOWN][:SHOWN].reshape(SHOWN, -1)[:, :4].ravel().tolist()


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    names = sys.argv[2:] or list(CASES)
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    found = json.loads(out.read_text()) if sys.argv[2:] and out.exists() else {}
    for name in names:
        found[name] = predicted(name)
    out.write_text(json.dumps(found, indent=0) + "\n")
