"""The scale of the prior of covariances: that of the narrow components, whatever the distances between components."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mixent import GaussianMixture, HiddenMarkovModel, MixtureClassifier, SharedMixtureClassifier
from mixent.core.blocks import Block
from mixent.families.gaussian.prior import common_variances
from mixent.families.gaussian.structures import COVARIANCES
from mixent.mixtures.fitting import part_variances
from mixent.mixtures.init import Partition, one_hot

STRUCTURES = sorted({structure.name for structure in COVARIANCES.values()})


@pytest.mark.parametrize("seed", range(5))
def test_the_scale_maximizes_the_likelihood_of_the_variances(seed):
    rng = np.random.default_rng(seed)
    counts, variances = rng.integers(0, 80, size=(4, 3)).astype(float), 10 ** rng.normal(size=(4, 3))
    reference, rows = 10 ** rng.normal(size=3), rng.uniform(1, 20)
    found = common_variances(rows, counts, variances, reference)

    def loss(log_s, j):
        s = np.exp(log_s)
        each = rows * log_s - (counts[:, j] + rows) * np.log(counts[:, j] * variances[:, j] + rows * s)
        return -each.sum() - 2 * (log_s - s / reference[j])

    for j in range(3):
        best = minimize_scalar(loss, args=(j,), bounds=(-12, 12), method="bounded", options={"xatol": 1e-9})
        assert np.log(found[j]) == pytest.approx(best.x, abs=1e-6)
    np.testing.assert_allclose(common_variances(rows, counts, 1e40 * variances, 1e40 * reference), 1e40 * found)
    assert common_variances(rows, counts[:, :1], np.ones((4, 1)), np.ones(1)) == pytest.approx(1.0)


def test_a_prior_with_more_rows_than_the_components_has_their_mean_as_scale():
    counts, variances = np.array([[10.0], [30.0]]), np.array([[1.0], [5.0]])
    assert common_variances(1e9, counts, variances, np.array([4.0])) == pytest.approx((10 + 150) / 40, rel=1e-6)


def test_equal_values_carry_no_information_about_the_scale():
    X = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, np.nan], [5.0, 7.0], [6.0, 7.0]])
    start = Partition(np.arange(5), one_hot(np.array([0, 0, 0, 1, 1]), 2))
    counts, variances = part_variances(Block(X), start)
    np.testing.assert_array_equal(counts, [[0, 1], [1, 0]])
    np.testing.assert_allclose(variances, [[0, 0.5], [0.5, 0]])
    assert (common_variances(4.0, counts, variances, np.array([9.0, 9.0])) > 0.5).all()
    assert common_variances(4.0, 0 * counts, variances, np.array([9.0, 3.0])).tolist() == pytest.approx([9.0, 3.0])


def test_a_weight_of_two_is_the_row_twice():
    rng = np.random.default_rng(1)
    X, label = rng.normal(size=(30, 3)), rng.integers(3, size=30)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(1, 4, size=30)
    found = part_variances(Block(X, weight=weight.astype(float)), Partition(np.arange(30), one_hot(label, 3)))
    rows = np.repeat(np.arange(30), weight)
    repeated = part_variances(Block(X[rows]), Partition(np.arange(len(rows)), one_hot(label[rows], 3)))
    for a, b in zip(found, repeated):
        np.testing.assert_allclose(a, b, rtol=1e-12)


# --- fitted standard deviations --------------------------------------------------------------------------------------


def three_groups(separation, n=600, d=2, missing=0.0):
    rng = np.random.default_rng(int(separation))
    group = np.arange(n) % 3
    centers = separation * np.array([[0, 0], [1, 2], [-2, 1]])
    X = rng.normal(size=(n, d)) + centers[group]
    X[rng.random(X.shape) < missing] = np.nan
    sd = np.array([np.nanstd(X[group == k], axis=0) for k in range(3)])
    order = np.argsort(np.array([np.nanmean(X[group == k], axis=0) for k in range(3)])[:, 0])
    return X, sd[order]


def deviations(model):
    return np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))[np.argsort(model.means_[:, 0])]


@pytest.mark.parametrize("separation", [3, 30, 300, 3000])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_the_separation_of_components_does_not_inflate_their_variances(separation, missing):
    X, sd = three_groups(separation, missing=missing)
    mixture = GaussianMixture(3, "VVI", random_state=0, n_init=3).fit(X)
    chain = HiddenMarkovModel(3, "VVI", random_state=0, n_init=3).fit(X, lengths=[len(X)])
    tolerance = 0.1 if separation == 3 else 0.03  # overlapping groups are not those drawn
    np.testing.assert_allclose(deviations(mixture), sd, rtol=tolerance)
    np.testing.assert_allclose(deviations(chain), sd, rtol=tolerance)


@pytest.mark.parametrize("name", STRUCTURES)
def test_in_any_structure(name):
    X, sd = three_groups(1000, n=300)
    np.testing.assert_allclose(deviations(GaussianMixture(3, name, random_state=0, n_init=2).fit(X)), sd, rtol=0.15)


def test_in_components_of_classes_and_shared_by_classes():
    X, sd = three_groups(3000)
    y = np.arange(len(X)) // 3 % 2  # each class has all groups
    model = MixtureClassifier(3, "VVI", random_state=0).fit(X, y)
    found = np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))
    np.testing.assert_allclose(found, 1.0, rtol=0.2)
    shared = SharedMixtureClassifier(3, "VVI", random_state=0).fit(X, y)
    np.testing.assert_allclose(deviations(shared), sd, rtol=0.03)


def test_segments_of_unequal_length_are_found_left_to_right():
    rng = np.random.default_rng(3)
    X = np.concatenate([np.repeat([[0.0, 3000.0, 9000.0]], 20, axis=0)[:, [0] * 7 + [1] * 2 + [2] * 3]])
    X = X + rng.normal(size=X.shape)
    model = HiddenMarkovModel(3, topology="left-right", random_state=0).fit(X)
    np.testing.assert_allclose(np.sqrt(model.covariances_.ravel()), 1.0, rtol=0.15)


def test_bic_selects_the_number_of_separated_states():
    X, _ = three_groups(3000)
    scores = [
        HiddenMarkovModel(k, random_state=0, n_init=3).fit(X, lengths=[600]).bic(X, lengths=[600]) for k in (2, 3, 4)
    ]
    assert np.argmin(scores) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_group_beside_a_wide_one(seed):
    rng = np.random.default_rng(seed)
    narrow, wide = rng.normal(0, 0.01, (60, 1)), rng.normal(3, 1, (60, 1))
    X, y = np.concatenate([narrow, wide]), np.repeat([0, 1], 60)
    sd = np.array([narrow.std(), wide.std()])
    classes = MixtureClassifier(1, "VVI").fit(X, y)
    np.testing.assert_allclose(np.sqrt(classes.covariances_).ravel(), sd, rtol=0.1)
    groups = GaussianMixture(2, "VVI", random_state=0).fit(X)
    np.testing.assert_allclose(deviations(groups).ravel(), sd, rtol=0.1)


def test_units_and_order_of_rows_and_columns_do_not_matter():
    X, _ = three_groups(30, n=150)
    y = np.arange(150) % 5 % 2
    model = MixtureClassifier(1).fit(X, y)
    units, order = np.array([1e-6, 1e7]), np.random.default_rng(0).permutation(150)
    scaled = MixtureClassifier(1).fit((units * X)[order], y[order])
    np.testing.assert_allclose(scaled.covariances_, units[:, None] * units * model.covariances_, rtol=1e-9)
    swapped = MixtureClassifier(1).fit(X[:, ::-1], y)
    np.testing.assert_allclose(swapped.covariances_, model.covariances_[:, ::-1, ::-1], rtol=1e-9)


def test_the_objective_never_falls():
    """The prior is computed again after a first run of EM, which begins a new segment with another objective."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.01, (60, 1)), rng.normal(3, 1, (60, 1))])
    for run in (
        GaussianMixture(2, "VVI", random_state=0).fit(X).run_,
        HiddenMarkovModel(2, random_state=0).fit(X, lengths=[120]).run_,
    ):
        accepted = [step for step in run.trace if step.accepted]
        assert accepted[-1].segment > 0 and accepted[-1].objective == run.objective
        gains = [b.objective - a.objective for a, b in pairwise(accepted) if a.segment == b.segment]
        assert min(gains) >= -1e-9
        assert [step.n_pass for step in run.trace if step.kind != "start"] == list(range(1, run.n_passes + 1))


def test_classes_with_constant_columns_are_shrunk_towards_the_others():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack([np.where(y == 0, 0.0, rng.integers(0, 2, 200)), rng.normal(size=200)])
    model = MixtureClassifier(1, "VVI").fit(X, y)
    assert 0.05 < np.sqrt(model.covariances_[0, 0, 0]) < 0.2
