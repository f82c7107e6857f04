"""Wording of mixtures, training."""

import re

import numpy as np
import pytest

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.options import Conditional, MinimumError

from ...mixtures.test_training import WEAK, noisy


def test_held_out_rows_gained_nothing_more():
    model = MixtureClassifier(2, "VVV", max_iter=300)
    model.set_params(training__solver="lbfgs", training__validation=0.25, **WEAK).fit(*noisy(seed=2))
    assert re.fullmatch(r"the score of held-out rows did not improve after \d+ passes", model.run_.message)


@pytest.mark.parametrize(
    ("share", "rows", "message"),
    [
        (0.01, 40, "validation holds out no row; hold out a larger share, or use more labelled rows"),
        (0.9, 12, "validation leaves a class without training rows; hold out a smaller share"),
    ],
)
def test_shares_that_leave_nothing(share, rows, message):
    X, _ = noisy(rows)
    y = np.arange(rows) % 4
    with pytest.raises(ValueError, match=re.escape(message)):
        MixtureClassifier(1, training=Conditional(validation=share)).fit(X, y)


@pytest.mark.parametrize("estimator", [MixtureClassifier, SharedMixtureClassifier])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training": "margin"}, "training must be one of 'likelihood', 'conditional', 'error', or a Likelihood or"),
        ({"training": None}, "training must be one of 'likelihood', 'conditional', 'error'"),
        ({"training__blend": 0.5}, "blend is a parameter of Conditional; set training='conditional' too"),
        (
            {"training": "error", "training__blend": 0.5},
            "blend is a parameter of Conditional; set training='conditional' too",
        ),
        (
            {"training": "conditional", "training__sharpness": 2.0},
            "sharpness is a parameter of MinimumError; set training='error' too",
        ),
        *[
            (
                {"training": Conditional(blend)},
                f"blend must be between 0 (joint likelihood) and 1 (conditional likelihood); got {blend!r}",
            )
            for blend in (-0.1, 1.5, "x", True)
        ],
        *[
            (
                {"training": MinimumError(sharpness)},
                f"sharpness must be a number >= 1, the slope of the smoothed error; got {sharpness!r}",
            )
            for sharpness in (0.5, 0, np.inf, "x")
        ],
        (
            {"training": "error", "training__anchor": 0},
            "anchor must be 'auto' or a positive number of pseudo-rows per component; got 0",
        ),
        (
            {"training": "conditional", "training__anchor": "weak"},
            "anchor must be 'auto' or a positive number of pseudo-rows per component; got 'weak'",
        ),
        (
            {"training": "conditional", "training__anchor": None},
            "anchor must be 'auto' or a positive number of pseudo-rows per component; got None",
        ),
        (
            {"training": "conditional", "training__solver": "newton"},
            "solver must be one of 'ebw', 'lbfgs'; got 'newton'",
        ),
        *[
            (
                {"training": "error", "training__validation": v},
                f"validation must be None or the share of rows to hold out, between 0 and 1; got {v!r}",
            )
            for v in (0.0, 1.0, 2, True, "half", np.nan)
        ],
    ],
)
def test_options_training_refuses(estimator, options, message):
    X, y = noisy(40)
    with pytest.raises(ValueError, match=re.escape(message)):
        estimator(2).set_params(**options).fit(X, y)


def test_a_trained_model_keeps_no_statistics_to_go_on_from():
    X, y = noisy()
    model = MixtureClassifier(1, training="conditional").fit(X, y)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as told:
        model.partial_fit(X, y)
    assert str(told.value.__cause__) == "partial_fit is only available with training='likelihood'; got 'conditional'"
    model.set_params(training="likelihood")
    with pytest.raises(ValueError, match="this model has no statistics of its training rows; fit it again"):
        model.partial_fit(X, y)
