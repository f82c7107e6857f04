"""Wording of med, gaussian classifier."""

import numpy as np
import pytest

from mixent import FisherKernel, MEDGaussianClassifier
from mixent.options import RBF, GaussianPrior, Margin, Polynomial

BAD = [
    ({"margin": "fixed"}, "margin must be one of 'exponential', 'laplace', 'gaussian'; got 'fixed'"),
    ({"margin": Margin("laplace", quantile=1.5)}, "quantile of the margin must be a number from 0 to 1"),
    ({"prior": -1.0}, "strength of the prior must be a number >= 0"),
    ({"prior": "flat"}, "prior must be 'auto', a number of pseudo-rows >= 0, or a GaussianPrior; got 'flat'"),
    ({"kernel": FisherKernel()}, "is a transformer; put it before this classifier in a pipeline"),
    ({"kernel": "linear"}, "kernel must be one of 'poly', 'rbf', Polynomial, RBF, .*, None; got 'linear'"),
    ({"n_kernel_components": 0, "kernel": "rbf"}, "n_kernel_components must be a whole number >= 1"),
    ({"kernel": RBF(-3.0)}, "gamma must be 'auto', 'scale' or a number > 0"),
    ({"kernel": Polynomial(coef0=-1.0)}, "coef0 must be a number >= 0"),
    ({"calibration": "sigmoid"}, "calibration must be one of 'temperature', 'affine', 'predictive'"),
    ({"prior": GaussianPrior(mean=[0.0])}, r"mean of the prior must be finite numbers of shape \(2,\)"),
    ({"prior": GaussianPrior(mean="none")}, r"mean of the prior must be finite numbers of shape \(2,\)"),
    (
        {"prior": GaussianPrior(cov=-np.eye(2))},
        "cov of the prior must be symmetric and positive definite",
    ),
    (
        {"prior": GaussianPrior(covariances="round")},
        "covariances must be one of 'full', 'diagonal', 'tied'; got 'round'",
    ),
]
UNUSED = [
    ({"n_kernel_components": 3}, "n_kernel_components=3 has no effect; it is only used with a kernel"),
    ({"prior": GaussianPrior(0, cov=np.eye(2))}, "cov of the prior .* with a strength > 0; got strength=0"),
    (
        {"prior": GaussianPrior(cov=np.eye(2)), "kernel": "rbf"},
        "cov of the prior .* with kernel=None; got kernel='rbf'",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options_are_refused_in_words(ring, options, message):
    with pytest.raises(ValueError, match=message):
        MEDGaussianClassifier(**options).fit(*ring)


@pytest.mark.parametrize(("options", "message"), UNUSED)
def test_options_without_effect_are_named_and_have_none(ring, options, message):
    X, y = ring
    plain = {"C": 1.0, "calibration": None, "random_state": 0}
    with pytest.warns(UserWarning, match=message):
        model = MEDGaussianClassifier(**plain, **options).fit(X, y)
    without = {"prior": options["prior"].strength if "prior" in options else "auto", "kernel": options.get("kernel")}
    expected = MEDGaussianClassifier(**plain, **without).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


def test_bad_data_is_refused_in_words(ring):
    X, y = ring
    flat = np.column_stack([X, np.where(y == "in", 1.0, X[:, 0])])
    with pytest.raises(ValueError, match="class in has columns that are constant or depend on each other"):
        MEDGaussianClassifier(C=1.0, prior=0.0).fit(flat, y)
    assert MEDGaussianClassifier(C=1.0, calibration=None).fit(flat, y).score(flat, y) > 0.9  # by the prior
    few = np.r_[0:3, 60:140]
    wide = np.random.default_rng(5).normal(size=(140, 6))
    with pytest.raises(ValueError, match="class in has a total weight of 3; 6 columns need more than 5"):
        MEDGaussianClassifier(C=1.0, prior=0.0).fit(wide[few], y[few])
