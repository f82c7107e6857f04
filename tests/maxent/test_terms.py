"""What columns become: codes, bins, given pmfs, hidden components, moments."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from mixent.core.driver import Stop
from mixent.core.executors import Serial
from mixent.data import read_features
from mixent.maxent.binning import bin_edges, entropy_bin_edges
from mixent.maxent.feature_arguments import related_columns
from mixent.maxent.features import FeaturePlan, Training
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.solvers import Sums, solve
from mixent.maxent.terms import Binned, Coded, Grouped, Moments, Probabilistic, crossed
from mixent.options import ComponentFeatures


def table_of(X):
    return read_features(SimpleNamespace(), X, reset=True)


@pytest.fixture(scope="module")
def shapes():
    """Figure 2.1: two three-component mixtures with equal means and variances."""
    rng = np.random.default_rng(0)
    centers = np.array([[-10.0, 0.0, 10.0], [-6.0, 0.0, 6.0]])
    y = np.arange(1200) % 2
    part = rng.integers(3, size=1200)
    # the second class has wider components, as much as the first is wider apart
    width = np.where(y == 0, 1.0, np.sqrt(1.0 + 2 / 3 * (100 - 36)))
    return (centers[y, part] + width * rng.normal(size=1200))[:, None], y


def solved(layout, table, y, n_classes=2):
    rows = layout.rows(table, np.eye(n_classes)[y], None)
    with Serial() as workers:
        sums = Sums.of(layout.cells, rows, workers, gram=True)
        solved = solve(layout.cells, sums, 1.0, "bohning", Stop(1e-9, 2000), workers, layout.mask(n_classes))
    return solved, rows


def error(found, rows, y):
    return np.mean(found.problem.log_posterior(found.run.params, rows).argmax(axis=0) != y)


def test_a_category_and_a_bin_are_codes_and_a_gap_is_none():
    table = table_of([[1.0, "a"], [None, "b"], [5.0, None], [3.0, "a"]])
    binned, coded = Binned("x", 0, np.array([2.0, 4.0])), Coded("k", 0, ("a", "b"))
    assert binned.codes(table).tolist() == [0, -1, 2, 1] and coded.codes(table).tolist() == [0, 1, -1, 0]
    assert binned.values == ("< 2", "2 to 4", ">= 4") and Binned("x", 0, np.empty(0)).values == ("any",)


def test_bins_hold_equally_many_rows_or_are_equally_wide():
    x = np.r_[np.arange(100.0) ** 2, np.nan]
    edges = bin_edges(x, np.ones(101), 4, "quantile")
    counts = np.bincount(np.searchsorted(edges, x[:100], side="right"))
    assert np.abs(counts - 25).max() <= 1
    np.testing.assert_allclose(np.diff(bin_edges(x, np.ones(101), 5, "uniform")), 99.0**2 / 5)
    doubled = np.r_[x, x[:100]]
    once = bin_edges(x, np.r_[np.full(100, 2.0), 1.0], 4, "quantile")
    np.testing.assert_array_equal(once, bin_edges(doubled, np.ones(201), 4, "quantile"))


def test_entropy_bins_are_where_the_classes_change():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 3, 600)
    target = np.eye(2)[((x > 1) & (x < 2)).astype(int)]
    edges = entropy_bin_edges(x, target, 8)
    np.testing.assert_allclose(edges, [1.0, 2.0], atol=0.02)
    noise = entropy_bin_edges(x, np.eye(2)[rng.integers(2, size=600)], 8)
    assert len(noise) <= 1  # no border pays for its description where classes do not change


def hidden(X, y, kind, weight=None, **options):
    """The hidden component of each column, as the classifier makes it."""
    groups = options.pop("groups", ())
    numeric = ComponentFeatures(kind, max_components=options.pop("max_components", 4), means=False)
    plan = FeaturePlan(numeric, (), groups, (), 0, 1)
    return plan.terms(Training(table_of(X), np.eye(2)[y], weight, (0, 1)))


@pytest.mark.parametrize("kind", ["union", "class", "pooled"])
def test_hidden_components_are_responsibilities(shapes, kind):
    X, y = shapes
    (term,) = hidden(X, y, kind)
    cells = term.cells(table_of(np.vstack([X[:50], [[np.nan]]])))
    assert not cells[:, -1].any() and len(term.values) == len(cells)
    joint = np.concatenate(
        [
            share * m.weights[:, None] * norm.pdf(X[:50].T, m.means[:, None], np.sqrt(m.variances)[:, None])
            for m, share in zip(term.mixtures, term.shares)
        ]
    )
    if kind == "class":
        for c in range(2):
            mine = term.component_class == c
            np.testing.assert_allclose(cells[mine, :50], joint[mine] / joint[mine].sum(axis=0), rtol=1e-7)
    else:
        np.testing.assert_allclose(cells[:, :50], joint / joint.sum(axis=0), rtol=1e-7, atol=1e-12)


def test_far_out_a_hidden_component_is_still_a_pmf(shapes):
    X, y = shapes
    for kind in ("union", "class", "pooled"):
        (term,) = hidden(X, y, kind)
        cells = term.cells(table_of(np.array([[1e140], [-1e140], [1e9]])))
        np.testing.assert_allclose(cells.sum(axis=0), 2.0 if kind == "class" else 1.0)


def test_a_class_that_never_shows_a_column_takes_the_mixture_of_all_rows(shapes):
    X, y = shapes
    X = np.column_stack([np.where(y == 0, np.nan, X[:, 0]), X[:, 0]])
    first = hidden(X, y, "union")[0]
    np.testing.assert_array_equal(first.mixtures[0].means, first.mixtures[1].means)
    assert np.isfinite(first.cells(table_of(X))).all()


def test_a_cell_learned_within_a_class_speaks_only_for_it(shapes):
    X, y = shapes
    layout = Layout.of(hidden(X, y, "class"))
    result, _ = solved(layout, table_of(X), y)
    owner = layout.terms[0].component_class
    assert not result.run.params.cells[owner == 0, 1].any() and not result.run.params.cells[owner == 1, 0].any()


def test_equal_moments_tell_nothing_where_hidden_components_tell_much(shapes):
    X, y = shapes
    table = table_of(X)
    flat, rows = solved(Layout.of([Moments("x", 0, X.mean(), X.std())]), table, y)
    assert error(flat, rows, y) > 0.4
    result, rows = solved(Layout.of(hidden(X, y, "union")), table, y)
    assert error(result, rows, y) < 0.25


def test_a_layout_puts_codes_first_and_counts_what_is_present():
    table = table_of([[0.2, 0.8, 1.0, "a"], [0.5, 0.5, None, None], [None, None, 2.0, "b"]])
    given, coded = Probabilistic("g", (0, 1), ("low", "high")), Coded("k", 0, ("a", "b"))
    layout = Layout.of([given, Moments("m", 2, 1.5, 1.0), coded])
    assert layout.terms[0] is coded and layout.spans == (slice(0, 2), slice(2, 4), slice(4, 6))
    rows = layout.rows(table, np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 3.0]]), np.array([2.0, 1.0, 1.0]))
    assert rows.sums.tolist() == [5, 2, 4]  # the class term among them
    np.testing.assert_allclose(rows.target.T, [[2.0, 0.0], [0.0, 0.0], [0.25, 0.75]])
    assert rows.weight.tolist() == [2.0, 0.0, 1.0]
    gamma = Multipliers(np.zeros(2), np.arange(12.0).reshape(6, 2))
    phi = np.array([[1, 0, 0.2, 0.8, -0.5, 0.25], [0, 0, 0.5, 0.5, 0, 0], [0, 1, 0, 0, 0.5, 0.25]])
    np.testing.assert_allclose(layout.cells.logits(gamma.cells, rows).T, phi @ gamma.cells)
    assert layout.mask(2) is None


def test_crossed_features_are_products():
    table = table_of([[0.2, 0.8, "a", "u"], [0.5, 0.5, None, "v"], [None, None, "b", "v"], [1.0, 0.0, "b", "u"]])
    a, b = Coded("a", 0, ("a", "b")), Coded("b", 1, ("u", "v"))
    both = crossed(a, b)
    assert both.codes(table).tolist() == [0, -1, 3, 2] and both.values[2] == "b & u" and both.name == "a & b"
    given = Probabilistic("g", (0, 1), ("low", "high"))
    soft = crossed(given, a)
    np.testing.assert_allclose(soft.cells(table).T, [[0.2, 0, 0.8, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
    assert soft.values == ("low & a", "low & b", "high & a", "high & b")


@pytest.mark.parametrize("kind", ["union", "class", "pooled"])
def test_groups_of_columns_share_a_mixture(kind):
    rng = np.random.default_rng(3)
    y = np.arange(300) % 2
    z = rng.normal(size=300)
    X = np.stack([z, np.where(y == 0, z, -z) + 0.2 * rng.normal(size=300)], axis=1)  # told apart only together
    (term,) = hidden(X, y, kind, groups=((0, 1),), max_components=3)
    assert isinstance(term, Grouped) and term.name == "x0 & x1"
    result, rows = solved(Layout.of([term]), table_of(X), y)
    assert error(result, rows, y) < (0.15 if kind == "union" else 0.45)


def test_related_columns_are_found_within_the_classes():
    rng = np.random.default_rng(4)
    y = np.arange(400) % 2
    z = rng.normal(size=(3, 400))
    X = np.stack([z[0], z[0] + 0.3 * z[1], 5.0 * y + z[2], 5.0 * y + rng.normal(size=400), -z[0] + 0.3 * z[2]], axis=1)
    X[::7, 1] = np.nan
    rows = Training(table_of(X), np.eye(2)[y], None, (0, 1))
    assert related_columns(rows, set()) == ((0, 1, 4),)  # columns 2 and 3 differ together, but between the classes
    assert related_columns(rows, {0}) == ((1, 4),)
