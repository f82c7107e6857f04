"""Wording of mixtures, online learning."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mixent import DataWarning, GaussianMixture, MixtureClassifier, SharedMixtureClassifier, config_context


@pytest.fixture
def mixed():
    """Numbers with gaps, categories with gaps, three classes."""

    def frame(n=240, seed=0):
        rng = np.random.default_rng(seed)
        label = rng.integers(3, size=n)
        X = pd.DataFrame(2 * np.eye(3)[label] + rng.normal(size=(n, 3)), columns=["u", "v", "w"])
        X["kind"] = np.where(rng.random(n) < 0.5, np.array(["x", "y", "z"])[label], "x")
        X = X.mask(pd.DataFrame(rng.random(X.shape) < 0.1, columns=X.columns))
        return X, np.array(["a", "b", "c"])[label]

    return frame


def test_a_class_not_seen_at_first_is_named_where_it_would_have_components_of_its_own(draw):
    X, label = draw()
    y = np.array(["a", "b", "c"])[label]
    early = label < 2
    message = (
        "class 'c' has no rows in the first batch, so that its components cannot be initialized; give rows of every "
        "class, or set n_components=1"
    )
    for count in (2, {"a": 1, "b": 1, "c": 2}, "auto"):
        with pytest.raises(ValueError, match=re.escape(message)):
            MixtureClassifier(count).partial_fit(X[early], y[early], classes=["a", "b", "c"])


@pytest.mark.parametrize("estimator", [MixtureClassifier(1), SharedMixtureClassifier(2, random_state=0)])
def test_batches_that_do_not_fit_what_came_before(draw, estimator):
    X, label = draw()
    y = np.array(["a", "b", "c"])[label]
    model = estimator.partial_fit(X, y)
    before = model.predict_proba(X)
    for bad, message in (
        ((X[:, :2], y), "X has 2 features, but"),
        ((X, label), "y holds the label 0, which is none of the classes ['a', 'b', 'c']"),
        ((X, y[:5]), "inconsistent numbers of samples"),
        ((X, y, ["a", "b"]), "classes must include those of the model, ['a', 'b', 'c']; got ['a', 'b']"),
        ((X, np.where(label == 0, "d", y), ["a", "b", "c", "e"]), "the label 'd', which is none of the classes"),
        ((X, y, None, -np.ones(len(y))), "sample_weight must be >= 0"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            model.partial_fit(*bad)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.partial_fit(X[:20], y[:20], classes=["c", "a", "b"])  # the same classes, in whatever order


def test_other_columns_of_a_table_are_refused(mixed):
    X, y = mixed()
    model = MixtureClassifier(1).partial_fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(X.add_prefix("t"), y)
    mixture = GaussianMixture(2, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="X has 1 features, but|feature names"):
        mixture.partial_fit(X[["u"]])


@pytest.mark.parametrize("estimator", [GaussianMixture(1), MixtureClassifier(1), SharedMixtureClassifier(1)])
@pytest.mark.parametrize("share", [-0.1, 1.0, 2, True, "x", None, np.nan])
def test_a_share_to_forget_that_is_none(draw, estimator, share):
    X, y = draw(n=40)
    message = f"forgetting must be a share, at least 0 and less than 1; got {share!r}"
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=re.escape(message)):
            getattr(estimator.set_params(forgetting=share), method)(X, y)


@pytest.mark.parametrize("estimator", [GaussianMixture(1), MixtureClassifier(1), SharedMixtureClassifier(1)])
def test_a_marginal_has_nothing_to_go_on_from(draw, estimator):
    X, y = draw(n=60)
    part = estimator.set_params(forgetting=0.0).fit(X, y).marginal([0, 2])
    with pytest.raises(ValueError, match="this model has no statistics of its training rows; fit it again"):
        part.partial_fit(X[:, [0, 2]], y)


@pytest.mark.parametrize("estimator", [MixtureClassifier(1), SharedMixtureClassifier(2, random_state=0)])
def test_a_new_class_has_a_note(draw, estimator):
    X, label = draw()
    y = np.array(["a", "b", "c"])[label]
    model = clone(estimator).fit(X[label < 2], y[label < 2])
    rows = (label == 2).sum()
    message = f"y has labels of a new class, which is added to the classes: 'c' ({rows} rows), 'd' (1 row)"
    later = [*y[label == 2], "d"], np.r_[X[label == 2], X[:1]]
    with config_context(strict=True), pytest.raises(ValueError, match=re.escape(message)):
        model.partial_fit(later[1], later[0])
    assert model.classes_.tolist() == ["a", "b"]
    with pytest.warns(DataWarning, match=re.escape(message)):
        model.partial_fit(later[1], later[0])


def test_new_classes_that_cannot_be_added(draw):
    X, label = draw()
    first = label < 2
    held = MixtureClassifier(1, class_prior=[0.5, 0.5]).fit(X[first], label[first])
    message = "class_prior has no entry for the new class 2; fit again on all rows, with priors of all classes"
    with pytest.raises(ValueError, match=re.escape(message)):
        held.partial_fit(X, label)
    without = MixtureClassifier(1, prior=None).fit(X[first], label[first])
    message = (
        "the new class 2 has 2 row(s) in this batch, too few to estimate a covariance by maximum likelihood; give more "
        "rows of it, or fit with prior='auto'"
    )
    few = np.flatnonzero(label == 2)[:2]
    with pytest.raises(ValueError, match=re.escape(message)):
        without.partial_fit(X[few], label[few], classes=[0, 1, 2])
    assert without.classes_.tolist() == held.classes_.tolist() == [0, 1]
