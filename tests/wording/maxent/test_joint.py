"""Wording of maxent, joint."""

import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mixent.maxent import joint
from mixent.maxent.joint import MaxEntJoint
from mixent.maxent.joint_problem import SOLVERS

from ...maxent.test_joint import frame


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_prior_variance_none(solver):
    X = frame(60).assign(again=lambda X: X["shape"])
    with pytest.warns(UserWarning, match=r"prior_variance=None: \d+ of \d+ pairs of values never occur together"):
        MaxEntJoint(prior_variance=None, tol=1e-3, solver=solver).fit(X)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"prior_variance": 0.0},
            "prior_variance must be 'auto', None .* or a positive number; got 0.0",
        ),
        ({"prior_variance": "wide"}, "prior_variance must be 'auto'.*got 'wide'"),
        ({"prior_variance": True}, "prior_variance must be 'auto'.*got True"),
        ({"solver": "newton"}, "solver must be one of 'lbfgs', 'iis'; got 'newton'"),
        ({"max_components": 0}, "max_components must be a whole number >= 1; got 0"),
        ({"tol": -1.0}, "tol must be a number >= 0; got -1.0"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1; got 0"),
        ({"n_jobs": 0}, "n_jobs must be None, -1 or a positive number of threads; got 0"),
        ({"categorical": "class"}, "categorical must be 'auto' or a list"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        MaxEntJoint(**options).fit(frame(20))


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("color", "target: the model has no column 'color'; its columns are 'shape', 'big'"),
        (6, "target: the model has no column 6"),
        (-7, "target: the model has no column -7"),
        (True, "target: the model has no column True"),
        (("big", "big"), "target must be a column or a pair of different columns"),
        (("big", 1), "target must be a column or a pair of different columns"),
        (("shape", "big", "class"), "target must be a column or a pair of different columns"),
    ],
)
def test_a_wrong_target_is_named(fitted, target, message):
    with pytest.raises(ValueError, match=message):
        fitted.predict(frame(5), target)


def test_pairs_of_values_never_occur_together():
    X = [["a", "p"], ["b", "q"]] * 10
    with pytest.warns(UserWarning, match="pairs of values never occur together"):
        MaxEntJoint(prior_variance=None).fit(X)


def test_an_unfitted_model_says_so():
    for method in ("predict", "predict_proba", "impute", "score", "score_samples", "accuracy_by_column"):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(MaxEntJoint(), method)(frame(5))
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        MaxEntJoint().values("class")


def test_too_many_values_are_refused_with_the_widest_column(monkeypatch):
    monkeypatch.setattr(joint, "WIDEST", 30)
    X = pd.DataFrame({"id": [f"r{i}" for i in range(40)], "b": ["x", "y"] * 20})
    with pytest.raises(ValueError, match=r"the columns have 42 values.*drop 'id', which has 40 values, or merge"):
        MaxEntJoint(categorical=["id"]).fit(X)
