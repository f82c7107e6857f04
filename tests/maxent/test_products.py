"""Cells that are products of two pmfs: never written out, and the same in every number as if they were."""

import numpy as np
import pytest

from mixent.core.driver import Stop
from mixent.core.executors import Serial
from mixent.data import Column, Schema, Table
from mixent.maxent import products
from mixent.maxent.blocks import RowBlocks
from mixent.maxent.curvature import gram_matrix, gram_row_sums
from mixent.maxent.layout import Layout
from mixent.maxent.products import Product, ProductLayout
from mixent.maxent.solvers import Sums, solve
from mixent.maxent.terms import CrossedDense, Probabilistic, crossed, mask_of

SIZES = (3, 2, 4)  # labels of three classifiers
CELLS = (3, 2)  # of two input spaces


def pmfs(n=60, seed=0, gaps=True):
    """(n, labels and cells) as one table: three classifiers, then two hidden components; some answers missing."""
    rng = np.random.default_rng(seed)
    parts = [rng.dirichlet(np.ones(size), n) for size in (*SIZES, *CELLS)]
    if gaps:
        for i, part in enumerate(parts[: len(SIZES)]):
            part[rng.random(n) < 0.2 + 0.1 * i] = np.nan
    return np.concatenate(parts, axis=1)


def table_of(X):
    return Table(X, None, Schema(tuple(Column(f"x{j}", "continuous") for j in range(X.shape[1])), named=False))


def terms(value_class=None):
    """The classifiers and the cells as features; `value_class` of the first classifier's labels."""
    stops = np.cumsum((*SIZES, *CELLS)).tolist()
    places = [tuple(range(a, b)) for a, b in zip([0, *stops[:-1]], stops)]
    made = [Probabilistic(f"t{i}", p, tuple(f"v{j}" for j in range(len(p)))) for i, p in enumerate(places)]
    made[0] = Probabilistic("t0", places[0], made[0].values, value_class)
    return made[:3], made[3:]


def layouts(kind):
    """The products, and the same written out."""
    (a, b, c), (m, k) = terms((0, 1, -1) if kind == "masked" else None)
    alone, pairs = {
        "shared": ((a, b, c), ((a, m), (b, m), (c, m))),  # all three merge
        "masked": ((a, b, c), ((a, m), (b, m), (c, m))),
        "own": ((a, b, c), ((a, m), (b, k), (c, m))),  # none do
        "some": ((a, b, c), ((b, k), (c, k))),
        "skipping": ((a, b, c), ((a, m), (c, m))),  # the same cells, but no neighbors
        "turned": ((c, a), ((b, k), (a, m))),
        "only": ((), ((a, m), (b, m), (c, k))),
    }[kind]
    return ProductLayout.crossing(alone, pairs), Layout.of([*alone, *(crossed(x, y) for x, y in pairs)])


KINDS = ("shared", "masked", "own", "some", "skipping", "turned", "only")


@pytest.fixture(params=KINDS)
def both(request):
    return layouts(request.param)


@pytest.fixture
def rows(both):
    rng = np.random.default_rng(1)
    target = np.eye(3)[rng.integers(3, size=60)]
    target[50:53] = 0.0  # without a label
    weight = rng.uniform(0.5, 2.0, 60)
    weight[:4] = 0.0
    return tuple(layout.rows(table_of(pmfs()), target, weight) for layout in both)


def close(ours, written):
    np.testing.assert_allclose(ours, written, rtol=1e-12, atol=1e-12)


def test_terms_spans_and_masks_are_those_of_the_written_layout(both):
    made, plain = both
    assert made.terms == plain.terms and made.spans == plain.spans
    assert made.cells.n_cells == plain.cells.n_cells and made.cells.n_discrete == 0
    for n_classes in (2, 3):
        ours, theirs = made.mask(n_classes), plain.mask(n_classes)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, theirs)


def test_rows_hold_the_factors_and_say_how_many_features_are_present(both, rows):
    ours, written = rows
    np.testing.assert_array_equal(ours.sums, written.sums)
    assert len(np.unique(ours.sums)) > 2
    for name in ("target", "weight"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(written, name))
    assert len(ours.dense) <= sum((*SIZES, *CELLS)) + 1 < len(written.dense)
    np.testing.assert_array_equal(ours.dense[-1], 1.0)
    close(both[0].cells.dense(ours), written.dense)


def test_logits_and_counts_are_those_of_the_written_cells(both, rows):
    rng = np.random.default_rng(2)
    (made, plain), (ours, written) = both, rows
    multipliers, weights = rng.normal(size=(made.cells.n_cells, 3)), rng.uniform(size=(3, 60))
    close(made.cells.logits(multipliers, ours), plain.cells.logits(multipliers, written))
    close(made.cells.expected(weights, ours), plain.cells.expected(weights, written))
    close(made.term_logits(multipliers, ours), plain.term_logits(multipliers, written))
    close(made.term_logits(multipliers, ours).sum(axis=0), made.cells.logits(multipliers, ours))


def test_logits_and_counts_are_each_others_transpose(both, rows):
    """sum over cells of counts gamma = sum over rows of weights logits."""
    rng = np.random.default_rng(3)
    cells = both[0].cells
    gamma, weights = rng.normal(size=(cells.n_cells, 3)), rng.uniform(size=(3, 60))
    ahead = float((weights * cells.logits(gamma, rows[0])).sum())
    assert ahead == pytest.approx(float((cells.expected(weights, rows[0]) * gamma).sum()), rel=1e-12)


def test_curvature_and_lengths_are_those_of_the_written_cells(both, rows):
    (made, plain), (ours, written) = both, rows
    close(made.cells.gram(ours), plain.cells.gram(written))
    close(made.cells.dense_sums(ours), plain.cells.dense_sums(written))
    close(made.cells.dense_squares(ours), plain.cells.dense_squares(written))
    with Serial() as workers:
        first, second = (Sums.of(lay.cells, r, workers) for lay, r in zip(both, rows))
        assert first.max_square == pytest.approx(second.max_square, rel=1e-12) and first.max_square > 0
        close(first.truth, second.truth)
        for matrix in (gram_matrix, gram_row_sums):
            close(*(matrix(lay.cells, RowBlocks(r), workers) for lay, r in zip(both, rows)))
    bound = gram_row_sums(made.cells, RowBlocks(ours), workers)
    assert (bound >= made.cells.gram(ours).sum(axis=1) - 1e-9).all()


@pytest.mark.parametrize("block", [1, 7, 2_000_000])
def test_ranges_are_those_of_the_written_cells(both, rows, monkeypatch, block):
    """However many rows are written out at a time; rows that do not count and answers not given have no say."""
    monkeypatch.setattr(products, "_chunks", lambda rows, width: _blocks(rows, block))
    close(both[0].widths(rows[0]), both[1].widths(rows[1]))


def _blocks(rows, step):
    return [rows.part(slice(a, a + step)) for a in range(0, rows.n_rows, step)]


def test_rows_are_processed_in_chunks(rows):
    parts = products._chunks(rows[0], 400_000)  # five rows of so many numbers
    assert [p.n_rows for p in parts] == [5] * 12
    close(np.concatenate([p.dense for p in parts], axis=1), rows[0].dense)
    assert [p.n_rows for p in products._chunks(rows[0], 10**9)] == [1] * 60


def test_a_feature_never_present_has_the_range_of_a_category():
    X = pmfs()
    X[:, : SIZES[0]] = np.nan
    made, plain = layouts("shared")
    result = made.widths(made.rows(table_of(X), np.eye(3)[np.zeros(60, int)], None))
    written = plain.widths(plain.rows(table_of(X), np.eye(3)[np.zeros(60, int)], None))
    np.testing.assert_allclose(result, written, rtol=1e-12)
    np.testing.assert_array_equal(result[: SIZES[0]], 1.0)


def test_a_range_is_never_taken_for_nothing():
    X = pmfs(gaps=False)
    X[:, SIZES[0] : SIZES[0] + 2] = 0.5  # the second classifier always says the same
    for layout in layouts("shared"):
        rows = layout.rows(table_of(X), np.eye(3)[np.zeros(60, int)], None)
        np.testing.assert_array_equal(layout.widths(rows)[3:5], 0.05)


@pytest.mark.parametrize(("kind", "merged"), [("shared", 2), ("own", 4), ("some", 2), ("skipping", 3), ("only", 2)])
def test_neighbors_with_the_same_cells_are_one_product(kind, merged):
    made, _ = layouts(kind)
    assert len(made.cells.products) == merged and len(made._products) == len(made.terms)
    assert sum(p.n_cells for p in made.cells.products) == made.cells.n_cells
    assert [s.stop - s.start for s in made.cells.spans] == [p.n_cells for p in made.cells.products]


def test_a_product_is_every_number_times_every_other():
    product = Product(slice(0, 2), slice(2, 5))
    made, _ = layouts("shared")
    rows = made.rows(table_of(pmfs(gaps=False)), np.eye(3)[np.zeros(60, int)], None)
    assert product.shape == (2, 3) and product.n_cells == 6
    written = product.dense(rows)
    for i in range(2):
        for k in range(3):
            np.testing.assert_array_equal(written[3 * i + k], rows.dense[i] * rows.dense[2 + k])


def test_a_pair_speaks_for_a_class_if_both_do():
    (a, b, _), (m, _) = terms((0, 1, -1))
    owned = Probabilistic("m", m.columns, m.values, (0, 0, 1))
    for first, second in ((a, m), (b, owned), (a, owned), (b, m)):
        result = mask_of(CrossedDense(first, second), 3)
        if first is b and second is m:
            assert result is None
            continue
        for i in range(len(first.values)):
            for k in range(len(second.values)):
                outcome = first.value_class is None or np.arange(3) == first.value_class[i]
                owns = second.value_class is None or np.arange(3) == second.value_class[k]
                np.testing.assert_array_equal(result[i * len(second.values) + k], np.ones(3) * outcome * owns)


@pytest.mark.parametrize("kind", ["shared", "masked", "own"])
@pytest.mark.parametrize("solver", ["auto", "bohning", "iis", "lbfgs"])
def test_every_solver_reaches_the_optimum_of_the_written_cells(kind, solver):
    rng = np.random.default_rng(4)
    target, weight = np.eye(3)[rng.integers(3, size=60)], rng.uniform(0.5, 2.0, 60)
    result = []
    for layout in layouts(kind):
        rows = layout.rows(table_of(pmfs()), target, weight)
        with Serial() as workers:
            sums = Sums.of(layout.cells, rows, workers, gram=solver != "iis")
            stop = Stop(-np.inf, 20_000, gain=1e-21) if solver in ("bohning", "iis") else Stop(0.0, 500)
            variance = 2.0 / layout.widths(rows) ** 2
            result.append(solve(layout.cells, sums, variance, solver, stop, workers, layout.mask(3)))
    assert result[0].run.objective == pytest.approx(result[1].run.objective, rel=1e-10)
    np.testing.assert_allclose(result[0].run.params.cells, result[1].run.params.cells, atol=1e-6)
    assert result[0].gap == pytest.approx(result[1].gap, abs=1e-8)
    if result[0].problem.mask is not None:
        assert (result[0].run.params.cells[result[0].problem.mask == 0] == 0).all()
