"""Batches with labels of classes that the model did not have."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.core.driver import Status, rounding

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
CLOSED = ("EII", "VII", "EEI", "EVI", "VVI", "EEE", "EEV", "EVV", "VVV")  # no inner loop
note = pytest.mark.filterwarnings("ignore:y has labels of a new class:mixent.DataWarning")


@pytest.fixture
def mixed():
    """Numbers and categories with missing values, three classes apart."""

    def frame(n=360, seed=0):
        rng = np.random.default_rng(seed)
        label = rng.integers(3, size=n)
        X = pd.DataFrame(4 * np.eye(3)[label] + rng.normal(size=(n, 3)), columns=["u", "v", "w"])
        X["kind"] = np.array(["x", "y", "z"])[np.where(rng.random(n) < 0.5, label, rng.integers(3, size=n))]
        X = X.mask(pd.DataFrame(rng.random(X.shape) < 0.1, columns=X.columns))
        return X, np.array(["a", "b", "c"])[label]

    return frame


def models():
    return {
        "one": MixtureClassifier(1, "VVV"),
        "per class": MixtureClassifier(2, "VVV", random_state=0),
        "diagonal": MixtureClassifier(2, "VEI", random_state=0),
        "by class": MixtureClassifier({"a": 1, "c": 2}, {"a": "EEE", "c": "VVI"}, random_state=0),
        "across": MixtureClassifier(2, "EEE", across_classes=True, random_state=0),
        "across VEV": MixtureClassifier(2, "VEV", across_classes=True, random_state=0),
        "searched": MixtureClassifier(random_state=0, search="bic").set_params(search__max_components=2),
        "shared": SharedMixtureClassifier(4, "VVV", random_state=0),
        "shared EEV": SharedMixtureClassifier(3, "EEV", random_state=0),
    }


every_model = pytest.mark.parametrize("name", list(models()))


def assert_never_decreases(run, weight):
    steps = [s for s in run.trace if s.accepted]
    assert run.status in (Status.CONVERGED, Status.MAX_PASSES), run.message
    within = [(a.objective, b.objective) for a, b in pairwise(steps) if a.segment == b.segment]
    assert all(b >= a - rounding(a, weight) for a, b in within)


@note
@pytest.mark.parametrize("across", [False, True], ids=["alone", "across"])
@pytest.mark.parametrize("name", CLOSED)
def test_with_one_component_of_each_class_batches_are_one_fit(draw, same, name, across):
    """Class 1, which is not the last one, has all its rows in the second batch."""
    X, y = draw()
    late = y == 1
    options = {"prior": None, "tol": 1e-13, "across_classes": across}
    whole = MixtureClassifier(1, name, **options).fit(X, y)
    parts = MixtureClassifier(1, name, **options).fit(X[~late], y[~late])
    parts.partial_fit(X[late], y[late])
    same(parts, whole, 1e-8)
    assert parts.classes_.tolist() == [0, 1, 2] and parts.n_components_.tolist() == [1, 1, 1]
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(parts.statistics_.counts.sum(), len(X), rtol=1e-9)
    assert parts.n_parameters_ == whole.n_parameters_ and parts.covariance_ == whole.covariance_


@note
@every_model
def test_a_class_of_the_second_batch_is_learned(mixed, name):
    X, y = mixed()
    early = y != "b"
    model = models()[name].fit(X[early][:180], y[early][:180])
    later = np.r_[np.flatnonzero(early)[180:], np.flatnonzero(~early)]
    before = model.params_.n_components
    model.partial_fit(X.iloc[later], y[later])
    assert_never_decreases(model.run_, len(later))
    assert model.classes_.tolist() == ["a", "b", "c"] and model.params_.n_components == before + 1
    assert model.statistics_.counts.sum() == pytest.approx(len(X), rel=1e-9)
    np.testing.assert_allclose(model.class_prior_, [np.mean(y == c) for c in "abc"], rtol=1e-6)
    new, labels = mixed(seed=1)
    assert model.score(new, labels) > 0.93
    proba = model.predict_proba(new)
    assert proba.shape == (len(new), 3) and (model.classes_[proba.argmax(axis=1)] == model.predict(new)).all()
    if name.startswith("shared"):
        assert model.n_components_ == before + 1 and isinstance(model.covariance_, str)
        assert (model.weights_ > 0).all()  # every class may use every component
    else:
        assert model.n_components_[1] == 1 and len(model.covariance_) == 3
        assert (np.diff(model.component_class_) >= 0).all()  # components are in the order of the classes
    model.partial_fit(X[early][:50], y[early][:50])  # EM continues as before
    assert model.score(new, labels) > 0.93
    assert str(model.summary())


@note
@pytest.mark.parametrize("name", NAMES)
def test_the_objective_never_decreases_for_any_structure(mixed, name):
    X, y = mixed()
    early = y != "b"
    for model in (
        MixtureClassifier(2, name, across_classes=True, random_state=0),
        MixtureClassifier(2, name, random_state=0, forgetting=0.2),
        SharedMixtureClassifier(3, name, random_state=0),
    ):
        model.fit(X[early], y[early]).partial_fit(X[~early], y[~early])
        assert_never_decreases(model.run_, (~early).sum())
        assert model.score(X, y) > 0.85


@note
@pytest.mark.parametrize("name", ["one", "per class", "diagonal", "by class"])
def test_old_classes_are_as_they_were(mixed, name):
    """Without rows of theirs in the batch, their densities remain where they converged."""
    X, y = mixed()
    early = y != "b"
    model = models()[name].set_params(tol=1e-12, max_iter=5000).fit(X[early], y[early])
    old = {n: getattr(model, n) for n in ("means_", "covariances_")} | {"w": model.weights_.sum(axis=0)}
    tables = np.asarray(model.category_probabilities_["kind"])
    n = early.sum()
    model.partial_fit(X[~early], y[~early])
    kept = model.component_class_ != 1
    np.testing.assert_allclose(model.means_[kept], old["means_"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.covariances_[kept], old["covariances_"], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.weights_.sum(axis=0)[kept], old["w"] * n / len(X), rtol=1e-4)
    np.testing.assert_allclose(np.asarray(model.category_probabilities_["kind"])[kept], tables, rtol=1e-3, atol=1e-5)


@note
def test_several_classes_at_once_and_one_row(draw):
    X, y = draw(K=5, n=400, gap=6.0)
    model = MixtureClassifier(1).fit(X[(y == 1) | (y == 3)], y[(y == 1) | (y == 3)])
    model.partial_fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4] and model.score(X, y) > 0.9
    model.partial_fit(X[:1] + 50.0, [9])  # one row, with the prior
    assert model.classes_.tolist() == [0, 1, 2, 3, 4, 9] and model.predict(X[:1] + 50.0).tolist() == [9]
    shared = SharedMixtureClassifier(2, random_state=0).fit(X[y < 2], y[y < 2]).partial_fit(X, y)
    assert shared.n_components_ == 5 and shared.score(X, y) > 0.9


def test_announced_classes_have_no_note(draw, same):
    X, y = draw()
    late = y == 1
    for model in (MixtureClassifier(1), SharedMixtureClassifier(3, random_state=0)):
        model.fit(X[~late], y[~late]).partial_fit(X[late], y[late], classes=[2, 0, 1])
        assert model.classes_.tolist() == [0, 1, 2] and model.score(X, y) > 0.8


@pytest.mark.parametrize("prior", [None, "auto"])
def test_an_announced_class_may_have_no_rows_yet(draw, same, prior):
    X, y = draw()
    late = y == 1
    model = MixtureClassifier(1, prior=prior, tol=1e-13).fit(X[~late], y[~late])
    before = model.predict_proba(X)
    model.partial_fit(X[~late][:20], y[~late][:20], classes=[0, 1, 2], sample_weight=np.full(20, 1e-12))
    after = model.predict_proba(X)
    assert np.isfinite(after).all() and after[:, 1].max() < 1e-250
    np.testing.assert_allclose(after[:, [0, 2]], before, atol=1e-6)
    model.partial_fit(X[late], y[late])
    if prior is None:
        same(model, MixtureClassifier(1, prior=None, tol=1e-13).fit(X, y), 1e-6)
    assert model.score(X, y) > 0.8
    shared = SharedMixtureClassifier(3, random_state=0).fit(X[~late], y[~late])
    shared.partial_fit(X[~late], y[~late], classes=[0, 1, 2])
    assert shared.n_components_ == 3 and np.isfinite(shared.predict_proba(X)).all()
    shared.partial_fit(X, y)
    assert_never_decreases(shared.run_, len(X))


@note
def test_unlabelled_rows_and_missing_values_join(mixed):
    X, y = mixed()
    early = y != "b"
    for model in (MixtureClassifier(1), SharedMixtureClassifier(2, random_state=0)):
        model.fit(X[early], y[early])
        rng = np.random.default_rng(0)
        some = np.where(rng.random(len(y)) < 0.3, y, None)
        model.partial_fit(X, some)
        assert_never_decreases(model.run_, len(X))
        assert model.score(X, y) > 0.9


@note
@every_model
def test_an_extended_model_is_saved_and_continued(mixed, same, name, tmp_path):
    X, y = mixed()
    early = y != "b"
    model = models()[name].fit(X[early], y[early]).partial_fit(X[~early], y[~early])
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    same(again.partial_fit(X[:40], y[:40]), model.partial_fit(X[:40], y[:40]), 0)


@note
def test_adjusted_priors_and_imputation_know_the_new_class(mixed):
    X, y = mixed()
    early = y != "b"
    model = MixtureClassifier(1).fit(X[early], y[early]).partial_fit(X[~early], y[~early])
    np.testing.assert_allclose(model.adjust_priors(X[y == "b"]).class_prior_[1], 1.0, atol=0.05)
    assert not model.impute(X, y).isna().any().any()
    assert set(model.sample(500, random_state=0)[1]) == {"a", "b", "c"}


@note
def test_old_classes_use_a_new_shared_component_and_new_classes_the_old_ones():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)) + np.repeat([[0.0, 0.0], [6.0, 0.0]], 100, axis=0), np.repeat([0, 1], 100)
    model = SharedMixtureClassifier(2, "VVV", random_state=0).fit(X, y)
    far, near = rng.normal([0.0, 9.0], size=(150, 2)), rng.normal(size=(50, 2))
    model.partial_fit(np.r_[far, near], np.r_[np.repeat([2, 0], [100, 50]), np.full(50, 2)])
    by_class = model.weights_ / model.class_prior_[:, None]
    new, first = model.means_[:, 1].argmax(), np.abs(model.means_).sum(axis=1).argmin()
    np.testing.assert_allclose(by_class[0, new], 50 / 150, atol=0.02)
    np.testing.assert_allclose(by_class[2, [new, first]], [100 / 150, 50 / 150], atol=0.02)
