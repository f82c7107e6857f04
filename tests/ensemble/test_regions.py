"""Where in the input space a row lies: the cells of a mixture, and what they are without the row's own label."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from mixent import GaussianMixture, MaxEntStackingClassifier, MixtureClassifier
from mixent.core.executors import Serial
from mixent.ensemble.inputs import Inputs
from mixent.ensemble.regions import RegionMixture, column_positions, fit_regions
from mixent.maxent.options import KINDS
from mixent.mixtures.fitting import blocks
from mixent.mixtures.model import select_columns

OPTIONS = {"max_components": 2, "covariance": "VVV", "random_state": 0, "n_jobs": None}


def cells_of(X, y, kind, columns=None, weight=None, rows=None, **options):
    columns = tuple(range(X.shape[1])) if columns is None else columns
    rows = np.arange(len(y)) if rows is None else rows
    part = X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
    counts = None if weight is None else weight[rows]
    mixture = fit_regions(Inputs(part), np.asarray(y)[rows], counts, columns, kind, {**OPTIONS, **options})
    return RegionMixture(columns, kind, mixture, tuple(range(len(np.unique(y)))))


def two_each(X, y, kind, n_jobs=None):
    """Two components of each class, or in all; nothing is chosen."""
    kinds = {"pooled": GaussianMixture(2, random_state=0, n_jobs=n_jobs)}
    mixture = kinds.get(kind, MixtureClassifier(2, random_state=0, n_jobs=n_jobs))
    mixture.fit(*((X,) if kind == "pooled" else (X, y)))
    return RegionMixture(tuple(range(X.shape[1])), kind, mixture, tuple(range(len(np.unique(y)))))


def folds_of(n, k=3):
    fold = np.arange(n) // 3 % k
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(k)]


def likelihood(y):
    return np.equal(np.asarray(y)[:, None], np.unique(y)).astype(float)


def densities(cells, X):
    """(n, K) p_k N(x; m_k, C_k), written out."""
    params = cells.mixture.params_
    weights = params.weights.sum(axis=0)
    each = zip(cells.mixture.means_, cells.mixture.covariances_)
    return weights * np.stack([multivariate_normal(m, C).pdf(X) for m, C in each], axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_the_responsibility_of_a_component(kind, blobs):
    X, y = blobs
    cells = two_each(X, y, kind)
    proba, joint = cells.pmf(Inputs(X)), densities(cells, X)
    if kind == "class":
        for c in np.unique(cells.component_class):
            mine = cells.component_class == c
            joint[:, mine] /= joint[:, mine].sum(axis=1, keepdims=True)
            np.testing.assert_allclose(proba[:, mine].sum(axis=1), 1.0, rtol=1e-12)
    else:
        joint /= joint.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(proba, joint, rtol=1e-9, atol=1e-300)


def test_cells_have_owners_and_names(blobs):
    X, y = blobs
    pooled, union = cells_of(X, y, "pooled"), cells_of(X, np.array(["p", "q", "r"])[y], "union")
    K = pooled.mixture.params_.n_components
    assert pooled.component_class is None and pooled.names == tuple(f"region {k + 1}" for k in range(K))
    assert isinstance(pooled.mixture, GaussianMixture) and isinstance(union.mixture, MixtureClassifier)
    assert sorted(set(union.component_class)) == [0, 1, 2] and len(union.names) == union.mixture.params_.n_components
    assert union.names[0] == "region 1 (of p)" and union.names[-1] == f"region {len(union.names)} (of r)"


def test_only_these_rows_columns_and_weights_are_learned_from(blobs):
    X, y = blobs
    wide = np.column_stack([np.full(90, 3.0), X[:, 1], X[:, 0]])
    rows, weight = np.arange(5, 80), 1.0 + (np.arange(90) % 2)
    cells = cells_of(wide, y, "union", (2, 1), weight, rows, max_components=1)
    alone = MixtureClassifier(1).fit(X[rows], y[rows], weight[rows])
    np.testing.assert_allclose(cells.mixture.means_, alone.means_, rtol=1e-12)
    np.testing.assert_allclose(cells.pmf(Inputs(wide)), alone.predict_proba(X), rtol=1e-9)
    assert cells.columns == (2, 1) and cells.mixture.n_features_in_ == 2


def test_the_number_of_components_is_chosen_by_bic(blobs):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(60, 1)), rng.normal(size=(60, 1)) + 12, rng.normal(size=(60, 1)) + 6]
    y = np.repeat([0, 0, 1], 60)
    cells = cells_of(X, y, "union", max_components=4)
    assert np.bincount(cells.component_class)[0] == 2
    assert cells.mixture.search.criterion == "bic" and cells.mixture.search.max_components == 4
    assert cells_of(X, y, "pooled", max_components=4).mixture.params_.n_components == 3
    straight = cells_of(blobs[0], blobs[1], "union", covariance="VVI", max_components=1).mixture.covariances_
    assert (straight[:, 0, 1] == 0).all() and (straight[:, 0, 0] > 0).all()


def test_a_categorical_column_is_one_whatever_its_numbers(frame):
    X, y = frame
    cells = cells_of(X, y, "union", (2, 0))
    assert cells.mixture.schema_.categorical == (0,)
    assert np.isfinite(cells.pmf(Inputs(X))).all()
    coded = pd.DataFrame({"n": np.arange(90.0), "k": np.arange(90) % 4})
    assert cells_of(coded, y, "pooled", categorical=[1]).mixture.schema_.categorical == (1,)


# out of fold


def one_step(cells, X, y, weight, train):
    """The update from the statistics of these rows alone, by the mixture's own problem."""
    mixture, problem = cells.mixture, cells.mixture.problem_
    table = mixture._read(X)
    label = None if cells.kind == "pooled" else likelihood(y)[train]
    part = select_columns(table.take(train), mixture.varying_, label, None if weight is None else weight[train])
    ready, K = problem.prepare(mixture.params_), mixture.params_.n_components
    with Serial() as workers:
        total = workers.total(lambda block: problem.stats(ready, block), blocks(part, K, False))
    return problem.update(mixture.params_, total)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_held_out_cells_are_those_of_one_step_on_the_other_folds(kind, weighted, blobs):
    X, y = blobs
    weight = 0.5 + np.arange(90) % 3 if weighted else None
    cells, folds = two_each(X, y, kind), folds_of(90)
    proba = cells.held_out(Inputs(X), likelihood(y), weight, folds)
    for train, held in folds:
        params = one_step(cells, X, y, weight, train)
        mixture = cells.mixture
        np.testing.assert_allclose(proba[held], cells._cells(params, mixture._block(mixture._read(X[held]))), rtol=1e-9)


def test_held_out_cells_of_one_gaussian_per_class_are_its_own_fit_to_the_other_folds(blobs):
    """One component is known to be each row's, so that one step is all of EM; the prior is that of all rows."""
    X, y = blobs
    cells, folds = cells_of(X, y, "union", max_components=1), folds_of(90)
    assert cells.mixture.params_.n_components == 3
    proba, prior = cells.held_out(Inputs(X), likelihood(y), None, folds), cells.mixture.problem_.family.gaussian.prior
    for train, held in folds:
        joint = np.empty((len(held), 3))
        for c in range(3):
            mine = X[train][y[train] == c]
            mean, cov = maximum(mine, prior, c)
            joint[:, c] = len(mine) * multivariate_normal(mean, cov).pdf(X[held])
        np.testing.assert_allclose(proba[held], joint / joint.sum(axis=1, keepdims=True), rtol=1e-8)


def maximum(x, prior, c):
    """Mean and covariance of one Gaussian, `rows` pseudo-rows of the prior's covariance included."""
    assert prior.mean_rows[c] == 0
    off = x - x.mean(axis=0)
    return x.mean(axis=0), (off.T @ off + prior.rows[c] * prior.cov[c]) / (len(x) + prior.rows[c])


def test_rows_of_no_fold_keep_their_cells(blobs):
    X, y = blobs
    cells, (first, *_) = two_each(X, y, "union"), folds_of(90)
    proba = cells.held_out(Inputs(X), likelihood(y), None, [first])
    np.testing.assert_array_equal(proba[first[0]], cells.pmf(Inputs(X))[first[0]])
    assert np.abs(proba[first[1]] - cells.pmf(Inputs(X))[first[1]]).max() > 1e-4
    np.testing.assert_array_equal(cells.held_out(Inputs(X), likelihood(y), None, []), cells.pmf(Inputs(X)))


@pytest.mark.parametrize("kind", ["union", "class"])
def test_a_rows_own_label_loses_its_hold(kind, blobs):
    """Out of fold a flipped label reaches the row through the components found only, not through its own statistics."""
    X, y = blobs
    row, folds = 4, folds_of(90)
    flipped = y.copy()
    flipped[row] = (y[row] + 1) % 3
    cells = two_each(X, y, kind)
    before, after = (cells.held_out(Inputs(X), likelihood(labels), None, folds)[row] for labels in (y, flipped))
    np.testing.assert_array_equal(before, after)  # with the same components, not at all
    others = [held for _, held in folds if row not in held]
    moved = cells.held_out(Inputs(X), likelihood(flipped), None, folds)
    still = cells.held_out(Inputs(X), likelihood(y), None, folds)
    assert all((moved[held] != still[held]).any() for held in others)


def test_a_flipped_label_moves_held_out_cells_less(blobs):
    X, y = blobs
    folds, inside, outside = folds_of(90), 0.0, 0.0
    first = cells_of(X, y, "union", max_components=1)
    for row in range(0, 90, 15):
        flipped = y.copy()
        flipped[row] = (y[row] + 1) % 3
        second = cells_of(X, flipped, "union", max_components=1)
        inside += np.abs(second.pmf(Inputs(X))[row] - first.pmf(Inputs(X))[row]).sum()
        ahead, back = (
            m.held_out(Inputs(X), likelihood(v), None, folds)[row] for m, v in ((second, flipped), (first, y))
        )
        outside += np.abs(ahead - back).sum()
    # one Gaussian per class: one step forgets the components it came from, and what is left is the prior's scale
    assert outside < 0.03 * inside


def test_a_category_and_gaps_are_held_out_too(frame):
    X, y = frame
    for kind in KINDS:
        cells = two_each(X, y, kind)
        proba = cells.held_out(Inputs(X), likelihood(y), None, folds_of(90))
        assert np.isfinite(proba).all() and proba.min() >= 0
        total = 3.0 if kind == "class" else 1.0
        np.testing.assert_allclose(proba.sum(axis=1), total, rtol=1e-9)


def test_a_class_no_other_fold_has_keeps_next_to_nothing(blobs):
    X, y = blobs
    cells = two_each(X, y, "union")
    proba = cells.held_out(Inputs(X), likelihood(y), None, [(np.flatnonzero(y != 1), np.flatnonzero(y == 1))])
    assert np.isfinite(proba).all() and proba[y == 1][:, cells.component_class == 1].max() < 1e-200
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)


def test_columns_are_found_by_name_or_number():
    names = ["a", "b", "c"]
    assert column_positions(["c", 0, np.int64(1)], names, "inputs") == (2, 0, 1)
    for bad in ("d", -1, 3, 1.0, True, None):
        with pytest.raises(ValueError, match="inputs"):
            column_positions([bad], names, "inputs")


def test_cells_are_the_same_for_any_number_of_threads(blobs):
    X, y = blobs
    one, two = (two_each(X, y, "union", n) for n in (1, 2))
    for find in (
        lambda cells: cells.pmf(Inputs(X)),
        lambda cells: cells.held_out(Inputs(X), likelihood(y), None, folds_of(90)),
    ):
        np.testing.assert_array_equal(find(one), find(two))
    assert isinstance(one, RegionMixture)


def test_a_search_varies_one_option_of_the_regions():
    X, y = load_iris(return_X_y=True)
    model = MaxEntStackingClassifier([("nb", GaussianNB())], regions="pooled", prior_variance=1.0, cv=2, random_state=0)
    grid = {"regions__max_components": [1, 2], "nb__var_smoothing": [1e-9]}
    search = GridSearchCV(model, grid, cv=2, refit=False).fit(X, y)
    assert len(search.cv_results_["params"]) == 2 and model.regions == "pooled"
    with pytest.raises(ValueError, match="max_components"):
        MaxEntStackingClassifier([GaussianNB()]).set_params(regions__max_components=1)
