"""What must not matter: blocks, threads, row order, and whether a row is weighted or repeated."""

import numpy as np
import pytest

from mixent import GaussianMixture, MixtureClassifier
from mixent.base.executors import choose_executor
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.executors import Serial, Threads
from mixent.mixtures import fit_plan, fitting, predict

NAMES = ("EII", "VVI", "EEE", "VVE", "VEV", "VVV")
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # a fixed number of passes
    pytest.mark.usefixtures("plain_em"),
]


def exactness(name):
    """Relative; an inner minimization (VEI VEE VEV EVE VVE) that compares values finds its place to sqrt(rounding)."""
    return 1e-6 if name in ("VEI", "VEE", "VEV", "EVE", "VVE") else 1e-9


def fixed_passes(K, name, start, **options):
    """EM from given responsibilities for 15 passes, however small the gain."""
    return GaussianMixture(K, name, init=start, tol=0, max_iter=15, **options)


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", NAMES)
def test_splitting_rows_into_blocks_changes_no_statistic(draw, name, missing):
    X, _ = draw(n=300, missing=missing)
    weight = np.random.default_rng(0).exponential(size=300)
    fit = GaussianMixture(3, name, random_state=0, max_iter=3).fit(X, sample_weight=weight)
    ready = fit.problem_.prepare(fit.params_)

    def total(block_rows):
        source = ArrayBlocks(Block(X, weight=weight)).reblock(block_rows)
        return Serial().total(lambda block: fit.problem_.stats(ready, block), source)

    whole = total(1000)
    for block_rows in (1, 7, 64):
        parts = total(block_rows)
        np.testing.assert_allclose(parts.log_lik, whole.log_lik, rtol=1e-9)
        np.testing.assert_allclose(parts.counts, whole.counts, rtol=1e-9)
        a, b = (fit.problem_.update(fit.params_, s).components.gaussian for s in (parts, whole))
        np.testing.assert_allclose(a.means, b.means, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(a.covs, b.covs, rtol=exactness(name), atol=1e-12)


@pytest.fixture
def small_blocks(monkeypatch):
    def shrink():
        for module in (fit_plan, predict):
            monkeypatch.setattr(module, "blocks", lambda *args: fitting.blocks(*args).reblock(11))

    return shrink


@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "gaps"])
def test_splitting_rows_into_blocks_changes_no_fit(draw, soft_start, same, small_blocks, missing):
    X, _ = draw(n=200, missing=missing)
    start = soft_start(200, 3)
    one = fixed_passes(3, "EEV", start).fit(X)
    density = one.score_samples(X)
    small_blocks()
    many = fixed_passes(3, "EEV", start).fit(X)
    same(one, many, 1e-9)
    np.testing.assert_allclose(many.score_samples(X), density, rtol=1e-9, atol=1e-12)


def test_splitting_rows_into_blocks_changes_no_classifier(draw, same, small_blocks):
    X, label = draw(n=200, missing=0.2)
    y = label.astype(float)
    y[::5] = np.nan
    options = {"tol": 0, "max_iter": 10, "random_state": 0}
    one = MixtureClassifier(2, "VVV", **options).fit(X, y)
    proba = one.predict_proba(X)
    small_blocks()
    many = MixtureClassifier(2, "VVV", **options).fit(X, y)
    same(one, many, 1e-9)
    np.testing.assert_allclose(many.predict_proba(X), proba, rtol=1e-8, atol=1e-12)


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def even_small_tables_go_to_threads(monkeypatch):
    monkeypatch.setattr("mixent.base.executors.SMALL", 0)
    assert isinstance(choose_executor(2, 10, 1), Threads)


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_the_number_of_threads_changes_no_bit_of_a_mixture(draw, same, name, missing):
    X, _ = draw(n=20000, missing=missing)  # enough for several blocks
    assert len(fitting.blocks(Block(X), 3, name == "VVI")) > 3
    fits = [GaussianMixture(3, name, max_iter=8, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2, 3)]
    for other in fits[1:]:
        same(fits[0], other, 0)
        assert other.run_.objective == fits[0].run_.objective
        np.testing.assert_array_equal(other.predict_proba(X), fits[0].predict_proba(X))
        np.testing.assert_array_equal(other.score_samples(X), fits[0].score_samples(X))
        np.testing.assert_array_equal(other.impute(X), fits[0].impute(X))


def test_the_number_of_threads_changes_no_bit_of_a_classifier(draw, same):
    X, label = draw(n=24000, missing=0.1)
    y = label.astype(float)
    y[::3] = np.nan
    fits = [MixtureClassifier(2, "VVV", max_iter=6, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 3)]
    for other in fits[1:]:
        same(fits[0], other, 0)
        np.testing.assert_array_equal(other.predict_proba(X), fits[0].predict_proba(X))


def test_all_cores_by_default_and_minus_one(draw, same):
    X, _ = draw(n=20000)
    fits = [GaussianMixture(3, max_iter=5, random_state=0, n_jobs=jobs).fit(X) for jobs in (None, -1, 1)]
    same(fits[0], fits[1], 0)
    same(fits[0], fits[2], 0)


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", NAMES)
def test_row_order_does_not_matter(draw, soft_start, same, name, missing):
    X, _ = draw(n=200, missing=missing)
    start, order = soft_start(200, 3), np.random.default_rng(1).permutation(200)
    one = fixed_passes(3, name, start).fit(X)
    other = fixed_passes(3, name, start[order]).fit(X[order])
    same(one, other, exactness(name))


@pytest.mark.parametrize("prior", ["auto", None])
@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", NAMES)
def test_weight_two_is_the_row_twice(draw, soft_start, same, name, missing, prior):
    X, _ = draw(n=150, missing=missing)
    start = soft_start(150, 3)
    twice = fixed_passes(3, name, np.repeat(start, 2, axis=0), prior=prior).fit(np.repeat(X, 2, axis=0))
    weighted = fixed_passes(3, name, start, prior=prior).fit(X, sample_weight=np.full(150, 2.0))
    same(twice, weighted, exactness(name))
    assert weighted.run_.objective == pytest.approx(twice.run_.objective, rel=exactness(name))


@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_weight_is_the_row_that_often_and_zero_is_no_row(draw, soft_start, same, name, missing):
    X, _ = draw(n=150, missing=missing)
    start = soft_start(150, 3)
    weight = np.random.default_rng(3).integers(0, 4, size=150)
    X[np.flatnonzero(weight == 0)[0]] = 1e6  # a row left out may hold anything
    repeated = fixed_passes(3, name, np.repeat(start, weight, axis=0)).fit(np.repeat(X, weight, axis=0))
    weighted = fixed_passes(3, name, start).fit(X, sample_weight=weight)
    same(repeated, weighted, exactness(name))


@pytest.mark.parametrize("prior", ["auto", None])
@pytest.mark.parametrize("across", [False, True], ids=["within", "across"])
def test_a_whole_weight_is_the_row_that_often_for_a_classifier(draw, same, prior, across):
    X, label = draw(n=150, missing=0.1)
    y = label.astype(float)
    y[::7] = np.nan
    weight = np.random.default_rng(3).integers(0, 4, size=150)
    options = {"prior": prior, "across_classes": across, "tol": 1e-10}
    repeated = MixtureClassifier(1, "VVV", **options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    weighted = MixtureClassifier(1, "VVV", **options).fit(X, y, sample_weight=weight)
    same(repeated, weighted, 1e-9)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-7, atol=1e-12)


def test_weights_count_in_category_tables(same):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=60), "kind": rng.choice(["a", "b", "c"], size=60)})
    y = rng.integers(2, size=60)
    weight = rng.integers(1, 4, size=60)
    rows = np.repeat(np.arange(60), weight)
    repeated = MixtureClassifier(1, "VVV").fit(frame.iloc[rows], y[rows])
    weighted = MixtureClassifier(1, "VVV").fit(frame, y, sample_weight=weight)
    same(repeated, weighted, 1e-9)


def test_the_scale_and_origin_of_a_column_do_not_matter(draw, soft_start):
    """x -> a x + b column by column moves the means, scales the covariances and leaves responsibilities alone."""
    X, _ = draw(n=200, missing=0.1)
    a, b = np.array([1e3, 0.1, 2.0]), np.array([5.0, -7.0, 100.0])
    start = soft_start(200, 3)
    one, other = fixed_passes(3, "VVV", start).fit(X), fixed_passes(3, "VVV", start).fit(a * X + b)
    np.testing.assert_allclose(other.means_, a * one.means_ + b, rtol=1e-7)
    np.testing.assert_allclose(other.covariances_, one.covariances_ * np.outer(a, a), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other.predict_proba(a * X + b), one.predict_proba(X), atol=1e-8)


def test_in_accuracy_too_a_weight_is_the_row_that_often(draw):
    X, label = draw()
    y = np.where(np.arange(len(X)) % 5 == 0, None, np.array(["a", "b", "c"])[label])  # some rows are unlabelled
    model = MixtureClassifier(1).fit(X, y)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    twice = model.score(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert model.score(X, y, sample_weight=weight) == pytest.approx(twice, rel=1e-12)
