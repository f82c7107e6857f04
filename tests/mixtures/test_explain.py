"""Contributions of columns and components: they add up, signs of components, Shapley values of columns."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.mixtures.explain import explain_rows, share_log_ratio


@pytest.fixture(scope="module")
def fitted(draw):
    X, label = draw(n=200, K=3, gap=1.0, missing=0.1)
    y = np.array(["a", "b", "c"])[label]
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    frame["kind"] = np.where(np.random.default_rng(0).random(200) < 0.5, y, "a")
    soft = MixtureClassifier(2, "EEE", random_state=0).fit(X, y)
    soft.temperature_ = 0.6  # as a search may find it
    return {
        "per class": (MixtureClassifier(2, "VVV", random_state=0).fit(X, y), X),
        "shared": (SharedMixtureClassifier(4, "VEE", random_state=0).fit(X, y), X),
        "trained": (SharedMixtureClassifier(4, "VVI", training="conditional", random_state=0).fit(X, y), X),
        "held": (SharedMixtureClassifier(4, "VVI", class_prior=[0.1, 0.2, 0.7], random_state=0).fit(X, y), X),
        "mixed": (SharedMixtureClassifier(4, random_state=0).fit(frame, y), frame),
        "temperature": (soft, X),
        "new priors": (soft.adjust_priors(X[y != "c"]), X),
    }


every_model = pytest.mark.parametrize(
    "name", ["per class", "shared", "trained", "held", "mixed", "temperature", "new priors"]
)


@pytest.mark.parametrize("by", ["column", "component"])
@every_model
def test_the_parts_add_up_to_the_log_odds_of_the_posterior(fitted, name, by):
    model, X = fitted[name]
    found, log_proba = model.explain(X, by=by), model.predict_log_proba(X)
    rows = np.arange(len(log_proba))
    np.testing.assert_array_equal(found.log_odds, found.baseline + found.parts.sum(axis=1))
    ours, rival = (np.searchsorted(model.classes_, c) for c in (found.label, found.rival))
    np.testing.assert_allclose(found.log_odds, log_proba[rows, ours] - log_proba[rows, rival], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.label, model.predict(X))
    assert (found.log_odds >= -1e-9).all() and (ours != rival).all()
    log_proba[rows, ours] = -np.inf
    np.testing.assert_array_equal(rival, log_proba.argmax(axis=1))  # the strongest other class
    log_prior = np.log(model.class_prior_)
    np.testing.assert_allclose(found.baseline, log_prior[ours] - log_prior[rival], rtol=1e-12, atol=1e-12)
    assert found.parts.shape == (len(rows), X.shape[1] if by == "column" else model.params_.n_components)


@every_model
def test_any_class_can_be_explained(fitted, name):
    model, X = fitted[name]
    log_proba = model.predict_log_proba(X)
    for c, label in enumerate(model.classes_.tolist()):
        found = model.explain(X, label)
        assert (found.label == label).all()
        others = np.delete(log_proba, c, axis=1).max(axis=1)
        np.testing.assert_allclose(found.log_odds, log_proba[:, c] - others, rtol=1e-9, atol=1e-9)


@every_model
def test_a_component_speaks_for_the_class_it_gives_more_to(fitted, name):
    """Positive exactly where a_k = p(k | class) f_k(x) exceeds that of the rival."""
    model, X = fitted[name]
    found = model.explain(X, by="component")
    within = model.weights_ / model.weights_.sum(axis=1, keepdims=True)
    ours, rival = (np.searchsorted(model.classes_, c) for c in (found.label, found.rival))
    more = within[ours] - within[rival]  # f_k(x) is the same in both
    clear = np.abs(found.parts) > 1e-12
    np.testing.assert_array_equal(np.sign(found.parts)[clear], np.sign(more)[clear])
    if name == "per class":
        owner = model.component_class_
        assert (found.parts[owner == ours[:, None]] >= 0).all()
        assert (found.parts[owner == rival[:, None]] <= 0).all()
        assert (found.parts[(owner != ours[:, None]) & (owner != rival[:, None])] == 0).all()


@pytest.mark.parametrize("far", [1e2, 1e4, 1e8, 1e100, 1e149])
@pytest.mark.parametrize("name", ["per class", "shared", "trained", "temperature"])
def test_rows_far_out_have_finite_parts(fitted, name, far):
    model, _ = fitted[name]
    X = far * np.random.default_rng(0).normal(size=(20, 3)).clip(-1, 1)
    found = model.explain(X)
    assert np.isfinite(found.parts).all() and np.isfinite(found.log_odds).all()
    log_proba, rows = model.predict_log_proba(X), np.arange(20)
    ours, rival = (np.searchsorted(model.classes_, c) for c in (found.label, found.rival))
    digits = 1e-13 * np.abs(model._log_components(model._read(X))).max(axis=0)  # of differences of such numbers
    apart = np.abs(found.log_odds - (log_proba[rows, ours] - log_proba[rows, rival]))
    assert (apart <= 1e-9 + digits).all()


@pytest.mark.parametrize("estimator", [MixtureClassifier(2), SharedMixtureClassifier(4)])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_beyond_every_density_the_priors_speak_alone(draw, estimator, temperature):
    X, y = draw()
    model = estimator.set_params(covariance="VVV", random_state=0).fit(1e-20 * X, y)
    model.temperature_ = temperature
    rows = np.array([[1e149] * 3, [-1e149] * 3, [0.0] * 3])
    assert np.isfinite(model.explain(rows).parts).all()
    found = model.explain(rows, by="component")
    assert np.isfinite(found.parts).all() and np.isfinite(found.log_odds).all()
    np.testing.assert_array_equal(found.parts[:2], 0.0)
    prior = np.sort(model.class_prior_)[::-1]
    np.testing.assert_allclose(found.log_odds[:2], np.log(prior[0] / prior[1]), rtol=1e-9)


def test_a_row_without_values_is_explained_by_the_priors(fitted):
    model, _ = fitted["shared"]
    found = model.explain(np.full((1, 3), np.nan))
    assert found.log_odds[0] == pytest.approx(found.baseline[0], abs=1e-9)
    np.testing.assert_allclose(found.parts, 0.0, atol=1e-12)
    assert found.values() == [["missing"] * 3]


def log_odds_given(model, row, known):
    """Log-odds of the first class against the second, with the other columns missing."""
    gap = np.where(known, row, np.nan)[None]
    log_proba = model.predict_log_proba(gap)[0]
    return log_proba[0] - log_proba[1]


@pytest.mark.parametrize("name", ["per class", "shared", "temperature"])
def test_contributions_of_columns_are_shapley_values_by_enumeration_of_orders(fitted, name):
    """The definition: mean gain over all orders of the columns."""
    model, X = fitted[name]
    found = model.explain(X[:20], "a", "b")
    for row, parts in zip(X[:20], found.parts):
        expected = np.zeros(3)
        for order in permutations(range(3)):
            known = np.zeros(3, dtype=bool)
            for j in order:
                before = log_odds_given(model, row, known)
                known[j] = True
                expected[j] += (log_odds_given(model, row, known) - before) / 6
        np.testing.assert_allclose(parts, expected, rtol=1e-9, atol=1e-9)
        assert (parts[np.isnan(row)] == 0).all()


def test_of_independent_columns_the_contributions_are_log_likelihood_ratios(draw):
    """Naive Bayes: the terms of the model are its Shapley values, also where orders are sampled."""
    X, y = draw(n=200, K=3)
    X = np.hstack([X, X[:, ::-1] ** 2, np.random.default_rng(1).normal(size=(200, 6))])  # 12 columns
    model = MixtureClassifier(1, "VVI", random_state=0).fit(X, y)
    found = model.explain(X[:10], 0, 1)
    assert found.method == "sampled Shapley values"
    for j in range(12):
        alone = np.full((10, 12), np.nan)
        alone[:, j] = X[:10, j]
        log_proba = model.predict_log_proba(alone)
        expected = log_proba[:, 0] - log_proba[:, 1] - found.baseline
        np.testing.assert_allclose(found.parts[:, j], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_split_of_a_log_ratio_is_exact(seed):
    rng = np.random.default_rng(seed)
    ours = rng.normal(size=(5, 30)) * 10.0 ** rng.integers(-9, 4)
    theirs = ours + rng.normal(size=(5, 30)) * 10.0 ** rng.uniform(-12, 3, size=30)
    ours[rng.random((5, 30)) < 0.3] = -np.inf
    ours[0] = 0.0
    parts = share_log_ratio(ours, theirs)
    expected = np.logaddexp.reduce(ours, axis=0) - np.logaddexp.reduce(theirs, axis=0)
    np.testing.assert_allclose(parts.sum(axis=1), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(share_log_ratio(theirs, ours), -parts, rtol=1e-9, atol=1e-12)
    with np.errstate(invalid="ignore"):
        clear = np.abs(ours - theirs) > 1e-9 * np.maximum(1.0, np.abs(theirs))
    assert (np.sign(parts.T)[clear] * np.sign(ours - theirs)[clear] >= 0).all()


def test_a_rival_without_any_density_leaves_infinite_odds_and_no_nan():
    with np.errstate(all="raise", divide="ignore", under="ignore"):
        parts = share_log_ratio(np.array([[0.0], [-np.inf]]), np.full((2, 1), -np.inf))
    np.testing.assert_array_equal(parts, [[np.inf, 0.0]])


def test_equal_classes_have_no_parts():
    same = np.log(np.array([[0.2], [0.8]]))
    np.testing.assert_array_equal(share_log_ratio(same, same), np.zeros((1, 2)))
    prior, parts = explain_rows(
        same, np.array([[0.1, 0.3], [0.15, 0.45]]), np.array([0.4, 0.6]), 1.0, np.array([0]), np.array([1])
    )
    assert prior[0] == pytest.approx(np.log(0.4 / 0.6), rel=1e-12)
    np.testing.assert_allclose(parts, 0.0, atol=1e-12)


def test_an_explanation_survives_saving(fitted, tmp_path):
    model, X = fitted["new priors"]
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent").explain(X)
    np.testing.assert_array_equal(again.parts, model.explain(X).parts)


# --- typical rows ----------------------------------------------------------------------------------------------------


@every_model
def test_typical_rows_are_claimed_by_their_component_and_come_densest_first(fitted, name):
    model, X = fitted[name]
    table = model._read(X)
    resp, log_components = model._responsibilities(table), model._log_components(table)
    found = model.typical_rows(X, 4)
    assert len(found) == model.params_.n_components
    for k, rows in enumerate(found):
        claimed = np.flatnonzero(resp.argmax(axis=1) == k)
        assert set(rows) <= set(claimed) and len(rows) == min(4, len(claimed))
        density = log_components[k][rows]
        assert (np.diff(density) <= 0).all()
        left = np.setdiff1d(claimed, rows)
        assert not len(left) or log_components[k][left].max() <= density[-1]


def test_typical_rows_of_a_plain_mixture(draw):
    X, label = draw(gap=6.0)
    model = GaussianMixture(3, "VVV", random_state=0).fit(X)
    for k, rows in enumerate(model.typical_rows(X)):
        assert len(rows) == 5 and (model.predict(X[rows]) == k).all()
        away = np.einsum("ni,ij,nj->n", X - model.means_[k], np.linalg.inv(model.covariances_[k]), X - model.means_[k])
        np.testing.assert_array_equal(rows, np.argsort(np.where(model.predict(X) == k, away, np.inf))[:5])
    assert len(set(label[model.typical_rows(X, 3)[0]])) == 1


@every_model
def test_any_rival_can_be_compared_with(fitted, name):
    model, X = fitted[name]
    log_proba, classes = model.predict_log_proba(X), model.classes_.tolist()
    for rival in classes[1:]:
        found = model.explain(X, classes[0], rival)
        expected = log_proba[:, 0] - log_proba[:, classes.index(rival)]
        np.testing.assert_allclose(found.log_odds, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(found.rival, rival)
    with pytest.raises(ValueError, match="rival"):
        model.explain(X, classes[0], classes[0])
    with pytest.raises(ValueError, match="rival"):
        model.explain(X, classes[0], "no such class")
