"""One of each public estimator, quick to fit, beside data of its kind; for the tests that hold of all of them."""

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from mixent import (
    AdaBoostM1Classifier,
    Calibration,
    FisherKernel,
    Fuser,
    GaussianMixture,
    HiddenMarkovModel,
    HMMClassifier,
    MaxEntStackingClassifier,
    MEDClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
    MixtureClassifier,
)
from mixent.base.capabilities import cells_of
from mixent.med.estimator import MEDBase
from mixent.overview import public_estimators

N = 60
CLASS = np.repeat([0, 1, 2], N // 3)
Y = np.array(["ash", "beech", "cedar"])[CLASS]
WEIGHT = np.where(np.arange(N) % 3 == 0, 2.0, 1.0)
TWICE = np.repeat(np.arange(N), WEIGHT.astype(int))
UNLABELLED = np.arange(N) % 4 == 0
SOME = np.where(UNLABELLED, None, Y.astype(object))
CERTAIN = pd.DataFrame({name: (name == Y).astype(float) for name in np.unique(Y)})
DOUBT = CERTAIN * np.where(UNLABELLED, 0.5, 1.0)[:, None] + np.where(UNLABELLED, 0.5 / 3, 0.0)[:, None]


# --- the tables ---------------------------------------------------------------------------------------------------


def draw(seed=0):
    """Two numbers and a text column; the first number and the text tell of the class, each a little."""
    rng = np.random.default_rng(seed)
    color = np.array(["red", "blue", "green"])[(CLASS + (rng.random(N) < 0.3)) % 3]
    return pd.DataFrame({"height": rng.normal(size=N) + 1.3 * CLASS, "age": rng.normal(size=N), "color": color})


TABLE = draw()
GAPPY = TABLE.assign(
    height=TABLE.height.mask(np.arange(N) % 5 == 0), color=TABLE.color.where(np.arange(N) % 7 != 0, None)
)
NUMBERS = TABLE[["height", "age"]].to_numpy()
SEQUENCES = np.cumsum(np.random.default_rng(1).normal(size=(N, 5)) + CLASS[:, None] - 1.0, axis=1)
GAPPY_SEQUENCES = np.where(np.random.default_rng(2).random(SEQUENCES.shape) < 0.15, np.nan, SEQUENCES)
KERNEL = NUMBERS @ NUMBERS.T
HOLED = np.where(np.eye(N) > 0, np.nan, KERNEL)
RATES = 0.7 * np.eye(3) + 0.1
CLASSES = np.unique(Y).tolist()


def votes(share=0.25, seed=3):
    """What two judges and a scale say, of whom nobody knows the others."""
    rng = np.random.default_rng(seed)
    said = [[CLASSES[rng.choice(3, p=RATES[c])] for c in CLASS] for _ in range(2)]
    silent = rng.random((2, N)) < share
    score = CLASS + rng.normal(size=N)
    return pd.DataFrame(
        {"judge": np.where(silent[0], None, said[0]), "jury": np.where(silent[1], None, said[1]), "scale": score}
    )


def fuser(**options):
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1, 2], 50)
    counted = {"counts": 100 * RATES, "classes": CLASSES}
    sources = {name: Calibration.from_counts(**counted) for name in ("judge", "jury")}
    scale = Calibration.from_scores(np.array(CLASSES)[truth], truth + rng.normal(size=150))
    return Fuser({**sources, "scale": scale}, method="ml-product", **options)


# --- the estimators -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """An estimator that is quick to fit, and data of its kind."""

    model: Any
    X: Any = None
    gappy: Any = None

    def fit(self, X=None, y=Y, **more):
        return deepcopy(self.model).fit(self.X if X is None else X, y, **more)

    @cached_property
    def usual(self):
        """Fitted to its usual rows and labels: those who ask do not change it."""
        return self.fit(y=Y if self.takes_y else None)

    def said(self, fitted, X=None):
        """What is made of each row, as numbers."""
        return np.asarray(getattr(fitted, self.speaks)(self.X if X is None else X), dtype=float)

    def answers(self, X=None, y=Y, **more):
        """What a fit says of the usual rows."""
        usual = X is None and y is Y and not more
        return self.said(self.usual if usual else self.fit(X, y, **more))

    @property
    def speaks(self):
        return (
            "predict_proba"
            if self.takes_y or isinstance(self.model, Fuser)
            else "transform"
            if hasattr(self.model, "transform")
            else "score_samples"
        )

    @property
    def takes_y(self):
        return hasattr(self.model, "adjust_priors")


def rows(X, index):
    """Some rows of a table, or of a kernel matrix with their columns."""
    if X is KERNEL:
        return X[np.ix_(index, index)]
    return X.iloc[index] if hasattr(X, "iloc") else X[index]


def members():
    return [MixtureClassifier(1, "VVI", n_jobs=1), MixtureClassifier(1, "VVV", n_jobs=1)]


QUICK = {  # options that make a fit quick and leave all cells as they are
    "GaussianMixture": {"n_components": 2, "covariance": "VVI"},
    "MixtureClassifier": {"n_components": 1, "covariance": "VVI"},
    "SharedMixtureClassifier": {"n_components": 3, "covariance": "VVI"},
    "AdaBoostM1Classifier": {"n_estimators": 3},
    "WeightBoostClassifier": {"n_estimators": 3},
    "HMMStackingClassifier": {"estimators": members(), "cv": 2},
    "MaxEntStackingClassifier": {"estimators": members(), "cv": 2, "prior_variance": 1.0},
    "MaxEntClassifier": {"prior_variance": 1.0},
    "MaxEntJoint": {"prior_variance": 1.0},
    "FisherKernel": {"model": GaussianMixture(1, "VVI")},
    "TunedClassifier": {"estimator": GaussianNB()},
    **{f"MED{kind}Classifier": {"C": 1.0, "calibration": None} for kind in ("", "Gaussian", "Tree", "BayesNet")},
}


def quick(model):
    options = QUICK.get(type(model).__name__, {})
    same = {name: value for name, value in {"random_state": 0, "n_jobs": 1}.items() if hasattr(model, name)}
    return clone(model).set_params(**options, **same)


def subject(model):
    if isinstance(model, Fuser):
        return Subject(fuser(), votes(share=0.0), votes())
    if isinstance(model, HMMClassifier | HiddenMarkovModel):
        return Subject(model, SEQUENCES, GAPPY_SEQUENCES)
    return Subject(model, TABLE, GAPPY)


def of_numbers(model):
    return Subject(model, NUMBERS, GAPPY[["height", "age"]].to_numpy())


PUBLIC = {type(model).__name__: model for model in public_estimators()}
SUBJECTS = {name: subject(quick(model)) for name, model in PUBLIC.items()} | {  # and options that change a cell
    "kernel matrix": Subject(MEDClassifier("precomputed", C=1.0, calibration=None), KERNEL, HOLED),
    "conditional mixture": subject(MixtureClassifier(1, "VVI", training="conditional", random_state=0)),
    "trees by likelihood": subject(MEDTreeClassifier(objective="likelihood", calibration=None, random_state=0)),
    "novel sequences": Subject(MEDNoveltyDetector("hmm", n_hidden=2, tol=1e-4), SEQUENCES, GAPPY_SEQUENCES),
    "kernel of sequences": Subject(FisherKernel(HiddenMarkovModel(1)), SEQUENCES, GAPPY_SEQUENCES),
    "boosting of naive Bayes": of_numbers(AdaBoostM1Classifier(GaussianNB(), n_estimators=3)),
    "stack of naive Bayes": of_numbers(
        MaxEntStackingClassifier([GaussianNB(), *members()], prior_variance=1.0, random_state=0)
    ),
    "stack of fitted ones": subject(
        MaxEntStackingClassifier([model.fit(TABLE, Y) for model in members()], cv="prefit", prior_variance=1.0)
    ),
}
FOUND = {name: cells_of(one.model) for name, one in SUBJECTS.items()}


def without_uniform(model, proba):
    """Probabilities without the uniform share that the calibration of maximum entropy discrimination adds."""
    lapse = model.calibration_.lapse if isinstance(model, MEDBase) else 0.0
    return (proba - lapse / proba.shape[1]) / (1 - lapse)


def differ(a, b, by=1e-6):
    return np.abs(np.asarray(a) - np.asarray(b)).max() > by


def same(a, b, atol=1e-8):
    np.testing.assert_allclose(a, b, rtol=1e-7, atol=atol)
