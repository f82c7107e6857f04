"""What a case is, what counts as a defined result, and the small tables the cases spoil."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mixent import GaussianMixture, MixtureClassifier

nan, inf = np.nan, np.inf


@dataclass(frozen=True)
class Case:
    """An input and its expected outcome: an error with a message, or a result that passes a check."""

    name: str
    run: Callable[[], Any]
    error: type[Exception] | None = None
    match: str = ""
    check: Callable[[Any], None] | None = None
    warns: tuple[type[Warning], str] | None = None


def refused(error, match, cases):
    """Cases by name that all end in one kind of error; a pair (call, message) has a message of its own."""
    out = []
    for name, case in cases.items():
        run, message = case if isinstance(case, tuple) else (case, match)
        out.append(Case(name, run, error, message))
    return out


def defined(check, cases, warns=None):
    """Cases by name whose results all pass one check."""
    return [Case(name, run, check=check, warns=warns) for name, run in cases.items()]


# defined results


def probabilities(proba):
    assert isinstance(proba, np.ndarray) and proba.ndim == 2 and len(proba)
    assert np.isfinite(proba).all() and (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)


def useful(proba):
    """The classes of `X` told apart almost as well as without the oddity."""
    probabilities(proba)
    assert np.mean(proba.argmax(axis=1) == y) > 0.85


def even(proba):
    """Nothing to tell the classes apart: the priors."""
    probabilities(proba)
    np.testing.assert_allclose(proba, 1 / proba.shape[1], atol=1e-6)


def finite(values):
    assert np.isfinite(np.asarray(values, dtype=float)).all()


def nothing(value):
    assert value is None


# the tables to spoil

rng = np.random.default_rng(0)
y = np.arange(40) % 2
X = rng.normal(size=(40, 3)) + 2 * y[:, None]
rows = np.arange(40)
word = np.array(["u", "v"])[rng.integers(2, size=40)]


def put(value, row=3, column=1, dtype=float):
    """X with one cell changed."""
    spoilt = X.astype(dtype)
    spoilt[row, column] = value
    return spoilt


def frame(**more):
    """Two numbers, and any other columns."""
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], **more})


def every(*values):
    """Forty values that repeat these."""
    return (list(values) * 40)[:40]


def classifier(**options):
    return MixtureClassifier(1, random_state=0).set_params(**options)


def mixture(n_components=2, **options):
    return GaussianMixture(n_components, random_state=0).set_params(**options)


def classify(table=X, labels=y, weight=None, **options):
    """Fit and predict the same rows."""
    return classifier(**options).fit(table, labels, sample_weight=weight).predict_proba(table)


def cluster(table=X, weight=None, n_components=2, **options):
    return mixture(n_components, **options).fit(table, sample_weight=weight).predict_proba(table)


def label(labels):
    return lambda: classify(labels=labels)


def weigh(weight):
    return lambda: classify(weight=weight)


def trained(table, new):
    """Fit on one table, predict another."""
    return lambda: classifier().fit(table, y).predict_proba(new)
