import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixent.core.blocks import ArrayBlocks, Block


def table(rng, n, d, gaps=0.0, weights=False, codes=0, n_classes=0):
    X = rng.normal(size=(n, d))
    X[rng.random((n, d)) < gaps] = np.nan
    return Block(
        X,
        rng.integers(-1, 3, (n, codes)).astype(np.int32) if codes else None,
        rng.random((n, n_classes)) if n_classes else None,
        rng.random(n) if weights else None,
    )


def positions(block):
    return np.arange(block.rows.start, block.rows.stop) if isinstance(block.rows, slice) else block.rows


def check_cover(source, whole, classes=None):
    """Every row once, in one block, with all that belongs to it."""
    seen = np.concatenate([positions(source[i]) for i in range(len(source))])
    np.testing.assert_array_equal(np.sort(seen), np.arange(whole.n_rows))
    for i in range(len(source)):
        block = source[i]
        at = positions(block)
        assert block.n_rows == len(at) > 0
        np.testing.assert_array_equal(block.X, whole.X[at])
        for name in ("codes", "weight", "label"):
            part, full = getattr(block, name), getattr(whole, name)
            if (name == "label" and block.known is not None) or full is None:
                assert part is None
            else:
                np.testing.assert_array_equal(part, full[at])
        n_missing = np.isnan(block.X).sum(axis=1)
        assert (n_missing == 0).all() if block.complete else (n_missing > 0).all()
        assert (np.diff(n_missing) >= 0).all()  # in order, so that rows alike stand together
        if classes is None:
            assert block.known is None
        else:
            assert (classes[at] == (-1 if block.known is None else block.known)).all()


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 90),
    d=st.integers(0, 11),
    block_rows=st.integers(1, 100),
    incomplete_rows=st.integers(1, 40),
    gaps=st.sampled_from([0.0, 0.2, 0.9, 1.0]),
    known=st.booleans(),
    seed=st.integers(0, 99),
)
def test_blocks_cover_every_row_once_and_hold_rows_alike(n, d, block_rows, incomplete_rows, gaps, known, seed):
    rng = np.random.default_rng(seed)
    whole = table(rng, n, d, gaps, weights=bool(seed % 2), codes=seed % 3, n_classes=2 * (seed % 2))
    classes = rng.integers(-1, 2, n) if known else None
    source = ArrayBlocks(whole, block_rows, incomplete_rows, classes)
    check_cover(source, whole, classes)
    assert source.n_rows == n
    assert source.has_missing == bool(np.isnan(whole.X).any())
    for i in range(len(source)):
        assert source[i].n_rows <= (block_rows if source[i].complete else incomplete_rows)
    again = source.reblock(7, 3)
    check_cover(again, whole, classes)
    joined = [np.concatenate([positions(s[i]) for i in range(len(s))]) for s in (source, again)]
    np.testing.assert_array_equal(*joined)  # other cuts, the same order
    check_cover(source, whole, classes)  # the first is as it was
    assert all(source[i].n_rows <= max(block_rows, incomplete_rows) for i in range(len(source)))


def test_complete_rows_are_views():
    rng = np.random.default_rng(0)
    whole = table(rng, 5000, 3, weights=True, codes=2, n_classes=2)
    source = ArrayBlocks(whole, 1000)
    for i in range(len(source)):
        for name in ("X", "codes", "label", "weight"):
            assert np.shares_memory(getattr(source[i], name), getattr(whole, name))


def test_rows_with_equal_patterns_of_gaps_stand_together():
    rng = np.random.default_rng(0)
    whole = table(rng, 600, 10, 0.15)
    source = ArrayBlocks(whole, 10_000, 10_000)
    for i in range(len(source)):
        patterns = np.isnan(source[i].X)
        changes = (patterns[1:] != patterns[:-1]).any(axis=1).sum() + 1
        assert changes == len(np.unique(patterns, axis=0))


def test_weight_is_counted():
    rng = np.random.default_rng(0)
    whole = table(rng, 20, 2, weights=True)
    assert ArrayBlocks(whole).total_weight == pytest.approx(whole.weight.sum(), rel=1e-15)
    assert ArrayBlocks(Block(whole.X)).total_weight == 20.0


def test_several_blocks_are_cut_evenly_so_that_threads_share_them():
    source = ArrayBlocks(Block(np.zeros((2049, 1))), 2048)
    sizes = [source[i].n_rows for i in range(len(source))]
    assert len(sizes) == 4 and max(sizes) - min(sizes) <= 4


def test_no_rows_no_blocks():
    assert len(ArrayBlocks(Block(np.empty((0, 3))))) == 0
    assert len(ArrayBlocks(Block(np.empty((0, 3))), classes=np.empty(0, dtype=int))) == 0


def test_huge_values_are_not_gaps_and_do_not_warn():
    X = np.full((4, 2), 1.7e308)
    X[2:] *= -1
    source = ArrayBlocks(Block(X))
    check_cover(source, Block(X))
    assert not source.has_missing
