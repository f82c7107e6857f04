"""Save and load: the same predictions, bit for bit, now and by later versions."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.options import Conditional, MinimumError, Search

SAVED = Path(__file__).parents[1] / "saved"


def mixed_table(seed=0, n=120):
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes"])[rng.integers(2, size=n)]
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + (y == "yes"),
            "color": rng.choice(["red", "blue"], size=n),
            "count": rng.integers(10, size=n),
            "flag": rng.random(n) < 0.5,
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::5, "color"] = None
    return frame, y


def numbers(n=120):
    X, y = mixed_table(n=n)
    return X[["size", "count"]].to_numpy(float), y


def models():
    X, y = numbers()
    frame, _ = mixed_table()
    soft = np.full((120, 2), 0.5)
    soft[np.arange(120), (y == "yes").astype(int)] += 0.4
    soft /= soft.sum(axis=1, keepdims=True)
    partly = np.where(np.arange(120) % 3 == 0, None, y)
    return {
        "mixture": (GaussianMixture(3, "VVV", random_state=0), X, None),
        "axes": (GaussianMixture(2, "VVE", random_state=0), X, None),
        "starts": (GaussianMixture(2, "EII", n_init=3, prior=None, random_state=0), X, None),
        "mixture search": (
            GaussianMixture("auto", ["EII", "VVV"], search=Search(max_components=2), random_state=0),
            X,
            None,
        ),
        "mixed mixture": (GaussianMixture(2, random_state=0), frame, None),
        "given start": (GaussianMixture(2, init=np.eye(2)[np.arange(120) % 2]), X, None),
        "classifier": (MixtureClassifier(2, "VVI", random_state=0), X, y),
        "by class": (MixtureClassifier({"no": 1, "yes": 2}, {"no": "VVV", "yes": "EII"}, random_state=0), X, y),
        "mixed classifier": (MixtureClassifier(1), frame, y),
        "classifier search": (MixtureClassifier(search=Search(max_components=2, cv=2), random_state=0), frame, y),
        "soft labels": (MixtureClassifier(1), X, soft),
        "absent labels": (MixtureClassifier(1, class_prior=[0.3, 0.7]), X, partly),
        "numeric classes": (MixtureClassifier(1), X, (y == "yes").astype(int)),
        "true and false": (MixtureClassifier(1), X, y == "yes"),
        "shared": (SharedMixtureClassifier(3, "VVE", random_state=0), X, y),
        "mixed shared": (SharedMixtureClassifier(3, random_state=0), frame, y),
        "shared search": (
            SharedMixtureClassifier("auto", ["VVI"], search=Search("bic", 2), random_state=0),
            frame,
            y,
        ),
        "shared, trained": (SharedMixtureClassifier(3, training="conditional", random_state=0), frame, partly),
        "shared, stopped early": (
            SharedMixtureClassifier(3, "VVI", training=MinimumError(solver="lbfgs", validation=0.3), random_state=0),
            X,
            y,
        ),
        "trained": (MixtureClassifier(1, training=Conditional(0.5, anchor=3.0)), frame, soft),
        "generator": (MixtureClassifier(1, random_state=None, progress=lambda *a: None), X, y),
    }


@pytest.mark.parametrize("name", list(models()))
def test_a_loaded_model_is_the_saved_one(name, tmp_path):
    model, X, y = models()[name]
    model.fit(X, y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    assert type(again) is type(model)
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    for array in ("weights_", "means_", "covariances_"):
        np.testing.assert_array_equal(getattr(again, array), getattr(model, array))
    pd.testing.assert_frame_equal(pd.DataFrame(again.impute(X)), pd.DataFrame(model.impute(X)))
    np.testing.assert_array_equal(again.sample(4, random_state=0)[1], model.sample(4, random_state=0)[1])
    assert again.search_ == model.search_
    assert again.run_.status is model.run_.status and repr(again.run_.trace) == repr(model.run_.trace)  # NaN gains
    assert again.schema_ == model.schema_
    if y is not None:
        np.testing.assert_array_equal(again.classes_, model.classes_)
        assert again.classes_.dtype == model.classes_.dtype


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    X, y = mixed_table()
    model = MixtureClassifier(2, "VVI", random_state=0).fit(X, y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent").fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    mixture = GaussianMixture(2, warm_start=True, random_state=0).fit(X)
    mixent.save(mixture, tmp_path / "g.mixent")
    warm = mixent.load(tmp_path / "g.mixent").fit(X)
    assert warm.n_iter_ <= mixture.n_iter_


@pytest.mark.parametrize("estimator", [MixtureClassifier(1), SharedMixtureClassifier(3, random_state=0)])
def test_after_adjust_priors(estimator, tmp_path):
    X, y = numbers()
    model = estimator.fit(X, y).adjust_priors(X[y == "yes"])
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.class_prior_, model.class_prior_)
    assert again.prior_run_.status is model.prior_run_.status


def test_a_marginal_can_be_saved(tmp_path):
    X, y = mixed_table()
    model = MixtureClassifier(1).fit(X, y).marginal(["color", "size"])
    mixent.save(model, tmp_path / "m.mixent")
    part = X[["color", "size"]]
    np.testing.assert_array_equal(mixent.load(tmp_path / "m.mixent").predict_proba(part), model.predict_proba(part))
