"""Maximum entropy discrimination in files: the same answers, bit for bit; what is no plain number refused."""

import json
import zipfile

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

import mixent
from mixent import FisherKernel, GaussianMixture, MEDClassifier, MEDGaussianClassifier, MixtureClassifier
from mixent.options import RBF, LabelUpdates, Margin, Polynomial

from .saving import mixed_table, same_classifier, saved_twice

X, LABELS = mixed_table(90)
MIXTURE = GaussianMixture(2, "EII", random_state=0)
OPTIONS = {"C": 3.0, "cv": 2, "tol": 1e-3, "random_state": 0}
MODELS = {
    "linear": MEDClassifier(**OPTIONS),
    "c chosen": MEDClassifier(cv=2, random_state=0),
    "poly": MEDClassifier(Polynomial(2), **OPTIONS),
    "rbf": MEDClassifier(RBF(0.3), **OPTIONS),
    "rbf by features": MEDClassifier(RBF(n_landmarks=20), **OPTIONS),
    "laplace, affine": MEDClassifier(margin="laplace", calibration="affine", bias=2.0, **OPTIONS),
    "label updates": MEDClassifier(C=1.0, relaxation=LabelUpdates(max_rounds=3), cv=2, random_state=0),
    "margin object": MEDClassifier(margin=Margin("gaussian", target=2.0), C=2.0, cv=2, random_state=0),
    "fisher": MEDClassifier(FisherKernel(MIXTURE, n_samples=500, random_state=0), **OPTIONS),
    "Gaussians": MEDGaussianClassifier(**OPTIONS),
    "Gaussians, predictive": MEDGaussianClassifier(
        calibration="predictive", prior=5, margin=Margin("laplace", quantile=0.5), **OPTIONS
    ),
    "Gaussians, rbf": MEDGaussianClassifier(kernel="rbf", n_kernel_components=3, **OPTIONS),
    "Gaussians, poly, watched": MEDGaussianClassifier(
        kernel=Polynomial(2), n_kernel_components=3, progress=lambda *a: None, **OPTIONS
    ),
}


@pytest.mark.parametrize("labels", list(LABELS))
@pytest.mark.parametrize("name", list(MODELS))
def test_a_loaded_classifier_is_the_saved_one(name, labels, tmp_path):
    model = MODELS[name].fit(X, LABELS[labels])
    same_classifier(saved_twice(model, tmp_path), model, X)


def test_a_precomputed_kernel(tmp_path):
    Z = np.random.default_rng(0).normal(size=(60, 3))
    model = MEDClassifier("precomputed", **OPTIONS).fit(Z @ Z.T, Z[:, 0] > 0)
    mixent.save(model, tmp_path / "m.mixent")
    same_classifier(mixent.load(tmp_path / "m.mixent"), model, Z[:7] @ Z.T)


def test_a_margin_that_is_certain(tmp_path):
    Z = np.random.default_rng(0).normal(size=(40, 2))
    y = Z[:, 0] > 0
    Z[:, 0] += np.where(y, 1.0, -1.0)
    model = MEDClassifier(margin="fixed", cv=2, random_state=0).fit(Z, y)
    mixent.save(model, tmp_path / "m.mixent")
    same_classifier(mixent.load(tmp_path / "m.mixent"), model, Z)


def test_what_is_computed_on_the_way_is_not_written(tmp_path):
    """Distributions over Gaussians keep what was once computed from them."""
    model = MODELS["Gaussians"].fit(X, LABELS["two"])
    model.predict_proba(X)
    one = model.gaussians_[0]
    assert {"_constant", "_log_det"} & set(vars(one))
    mixent.save(model, tmp_path / "a.mixent")
    state = json.loads(zipfile.ZipFile(tmp_path / "a.mixent").read("header.json"))["model"]["state"]
    assert set(state["distribution_"]["state"]["parts"]["$tuple"][0]["state"]) == {"T", "d", "diagonal", "frame"}
    for each in (*model.gaussians_, *model.prior_gaussians_):
        for name in set(vars(each)) - {"T", "d", "diagonal", "frame"}:
            del vars(each)[name]
    mixent.save(model, tmp_path / "b.mixent")
    assert (tmp_path / "a.mixent").read_bytes() == (tmp_path / "b.mixent").read_bytes()


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    for name in ("linear", "rbf by features", "fisher", "Gaussians"):
        model = MODELS[name].fit(X, LABELS["three"])
        mixent.save(model, tmp_path / "m.mixent")
        again = mixent.load(tmp_path / "m.mixent").fit(X, LABELS["three"])
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_after_adjust_priors(tmp_path):
    model = MODELS["linear"].fit(X, LABELS["two"]).adjust_priors(X[LABELS["two"] == "yes"])
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.class_prior_, model.class_prior_)


# the Fisher kernel by itself


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_loaded_fisher_kernel_is_the_saved_one(wrapped, tmp_path):
    mixture = GaussianMixture(2, "EII", random_state=0, progress=lambda *a: None).fit(X)
    kernel = FisherKernel(FrozenEstimator(mixture) if wrapped else mixture, n_samples=500, random_state=0).fit(X)
    mixent.save(kernel, tmp_path / "k.mixent")
    again = mixent.load(tmp_path / "k.mixent")
    assert type(again) is FisherKernel and type(again.model) is GaussianMixture and again.rank_ == kernel.rank_
    np.testing.assert_array_equal(again.transform(X), kernel.transform(X))
    assert isinstance(kernel.model, FrozenEstimator) is wrapped and callable(mixture.progress)  # the user's own stays
    again.fit(X)
    np.testing.assert_array_equal(again.transform(X), kernel.transform(X))


def test_a_fisher_kernel_of_a_classifier_and_one_that_was_fitted_before(tmp_path):
    y = LABELS["two"]
    kernel = FisherKernel(MixtureClassifier(1, "EII", random_state=0), n_samples=500, random_state=0).fit(X, y)
    for given in (kernel, FrozenEstimator(kernel)):
        model = MEDClassifier(given, **OPTIONS).fit(X, y)
        mixent.save(model, tmp_path / "m.mixent")
        again = mixent.load(tmp_path / "m.mixent")
        same_classifier(again, model, X)
        assert type(again.feature_map_) is FisherKernel


# what a file cannot hold
