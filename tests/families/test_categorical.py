from dataclasses import replace

import numpy as np
import pytest

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.stats import tree_sum
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily

SIZES = (3, 1, 2, 5)


def make(rng, K=3, sizes=SIZES, rows=0.5):
    family = CategoricalFamily(sizes, rows * (0.1 + rng.random(sum(sizes))))
    tables = [rng.dirichlet(np.ones(size), K) for size in sizes]
    return family, Categoricals(np.log(np.concatenate(tables, axis=1))), tables


def codes(rng, n, sizes=SIZES, gaps=0.3):
    values = np.stack([rng.integers(size, size=n) for size in sizes], axis=1).astype(np.int32)
    values[rng.random(values.shape) < gaps] = -1
    return values


def block(values):
    return Block(np.empty((len(values), 0)), values)


@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("sizes", [SIZES, (2,), (4, 4)])
def test_densities_and_counts_by_looking_them_up(K, sizes):
    rng = np.random.default_rng(0)
    family, params, tables = make(rng, K, sizes)
    values = codes(rng, 50, sizes)
    values[0] = -1
    work = family.open(family.prepare(params), block(values))
    expected, resp = np.zeros((K, 50)), rng.normal(size=(K, 50))
    counts = [np.zeros((K, size)) for size in sizes]
    for n, row in enumerate(values):
        for j, v in enumerate(row):
            if v >= 0:
                expected[:, n] += np.log(tables[j][:, v])
                counts[j][:, v] += resp[:, n]
    found = work.log_prob()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert (found[:, 0] == 0).all()
    np.testing.assert_allclose(work.moments(resp).counts, np.concatenate(counts, axis=1), rtol=1e-12, atol=1e-12)


def penalized(family, params, values, resp):
    work = family.open(family.prepare(params), block(values))
    return float((resp * work.log_prob()).sum()) + family.log_prior(params)


def test_the_update_is_the_maximum_of_the_penalized_likelihood():
    rng = np.random.default_rng(0)
    family, params, _ = make(rng)
    values, resp = codes(rng, 80), rng.random((3, 80))
    assert family.log_prior(params) == pytest.approx(sum(family.rows @ row for row in params.log_probs), rel=1e-12)
    new = family.update(params, family.open(family.prepare(params), block(values)).moments(resp))
    best = penalized(family, new, values, resp)
    for table in np.split(np.exp(new.log_probs), family.starts[1:], axis=1):
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    assert best > penalized(family, params, values, resp)
    for size in (1.0, 1e-2, 1e-4):
        for _ in range(10):
            moved = new.log_probs + size * rng.normal(size=new.log_probs.shape)
            near = family.unpack(moved.ravel(), new, np.ones(3))
            assert penalized(family, near, values, resp) < best
    # with no rows at all the prior's own frequencies
    silent = family.update(params, family.open(family.prepare(params), block(values)).moments(0 * resp))
    for table, rows in zip(
        np.split(silent.log_probs, family.starts[1:], axis=1), np.split(family.rows, family.starts[1:])
    ):
        np.testing.assert_allclose(np.exp(table), np.repeat((rows / rows.sum())[None], 3, axis=0), rtol=1e-12)


def test_restricting_and_embedding_is_silence_of_the_others():
    rng = np.random.default_rng(0)
    family, params, _ = make(rng)
    values, index = codes(rng, 30), np.array([2, 0])
    ready = family.prepare(params)
    some, whole = family.open(family.restrict(ready, index), block(values)), family.open(ready, block(values))
    np.testing.assert_array_equal(some.log_prob(), whole.log_prob()[index])
    resp = np.zeros((3, 30))
    resp[index] = rng.random((2, 30))
    part = family.embed(some.moments(resp[index]), index, 3)
    np.testing.assert_allclose(part.counts, whole.moments(resp).counts, rtol=1e-13, atol=1e-13)


def test_sampling_has_the_tables_frequencies():
    rng = np.random.default_rng(0)
    family, params, tables = make(rng)
    component = np.repeat([2, 0, 1], 20_000)
    drawn = family.sample(params, component, rng)
    for k in range(3):
        for j, table in enumerate(tables):
            seen = np.bincount(drawn[component == k, j], minlength=SIZES[j]) / 20_000
            assert (np.abs(seen - table[k]) < 4.5 * np.sqrt(table[k] * (1 - table[k]) / 20_000) + 1e-12).all()


def test_gaps_are_filled_with_the_most_probable_value():
    rng = np.random.default_rng(0)
    family, params, tables = make(rng)
    values, resp = codes(rng, 40), rng.dirichlet(np.ones(3), 40).T
    filled = family.expected(params, values, resp)
    for n, row in enumerate(values):
        for j, v in enumerate(row):
            assert filled[n, j] == (v if v >= 0 else np.argmax(resp[:, n] @ tables[j]))
    assert (values < 0).any()  # the rows themselves are as they were


def test_marginal_take_pack_and_split():
    rng = np.random.default_rng(0)
    family, params, _ = make(rng)
    values = codes(rng, 30)
    columns = np.array([3, 0])
    some, part = family.marginal(params, columns)
    hidden = np.where(np.isin(np.arange(4), columns), values, -1)
    np.testing.assert_allclose(
        some.open(some.prepare(part), block(values[:, columns])).log_prob(),
        family.open(family.prepare(params), block(hidden)).log_prob(),
        rtol=1e-12,
        atol=1e-13,
    )
    assert some.rows.shape == (8,) and some.n_free(3) == 3 * (4 + 2)
    _, taken = family.take(params, np.array([2, 1]))
    np.testing.assert_array_equal(taken.log_probs, params.log_probs[[2, 1]])
    back = family.unpack(family.pack(params), params, np.ones(3))
    np.testing.assert_allclose(back.log_probs, params.log_probs, rtol=1e-12, atol=1e-14)
    for wrong in (np.nan, np.inf, 1e4):
        assert family.unpack(np.full(params.log_probs.size, wrong), params, np.ones(3)) is None
    assert family.unpack(np.full(params.log_probs.size, -1e5), params, np.ones(3)) is not None
    child = family.split(params, 0, 2).log_probs
    np.testing.assert_array_equal(child[:2], params.log_probs[:2])
    assert not np.allclose(child[2], child[0])
    np.testing.assert_allclose(np.exp(child[2][:3]).sum(), 1.0)
    assert not family.degenerate(params).any()


# --- mixed tables ----------------------------------------------------------------------------------------------------


def mixed(rng, K=3, d=2, prior=True):
    categorical, tables, _ = make(rng, K)
    gaussian = GaussianFamily((Group("VVV", 0, K),), np.zeros(d), np.ones(d))
    if prior:
        rule = Prior(np.array(2.0), np.eye(d), np.zeros(d), np.array(0.1))
        gaussian = replace(gaussian, prior=rule.expand(K, False))
    params = Components(Gaussians(rng.normal(size=(K, d)), np.repeat(np.eye(d)[None], K, axis=0), (None,)), tables)
    return ProductFamily(gaussian, categorical), params


def only(family, params, part):
    parts = [part == "gaussian", part == "categorical"]
    pick = [x if keep else None for keep, x in zip(parts, (family.gaussian, family.categorical))]
    own = [x if keep else None for keep, x in zip(parts, (params.gaussian, params.categorical))]
    return ProductFamily(*pick), Components(*own)


def test_a_mixed_table_is_the_sum_of_its_parts():
    rng = np.random.default_rng(0)
    family, params = mixed(rng)
    X, values, resp = rng.normal(size=(40, 2)), codes(rng, 40), rng.random((3, 40))
    X[rng.random(X.shape) < 0.2] = np.nan
    source = ArrayBlocks(Block(X, values), 100, 100)
    log_prob, log_prior, n_free, packed, stats = 0.0, 0.0, 0, [], {}
    where = np.concatenate([source[i].rows for i in range(len(source))])

    def total(fam, par):
        ready = fam.prepare(par)
        works = [fam.open(ready, source[i]) for i in range(len(source))]
        logs = np.concatenate([work.log_prob().copy() for work in works], axis=1)
        parts = [w.moments(np.ascontiguousarray(resp[:, source[i].rows])) for i, w in enumerate(works)]
        return logs[:, np.argsort(where)], tree_sum(parts)

    whole, whole_stats = total(family, params)
    for name in ("gaussian", "categorical"):
        alone = only(family, params, name)
        logs, stats[name] = total(*alone)
        log_prob = log_prob + logs
        log_prior += alone[0].log_prior(alone[1])
        n_free += alone[0].n_free(3)
        packed.append(alone[0].pack(alone[1]))
        assert alone[1].n_components == 3
        new = alone[0].update(alone[1], stats[name])
        back = alone[0].unpack(alone[0].pack(new), new, np.ones(3))
        np.testing.assert_allclose(alone[0].pack(back), alone[0].pack(new), rtol=1e-9, atol=1e-9)
        both = family.update(params, whole_stats)
        np.testing.assert_allclose(only(family, both, name)[0].pack(only(family, both, name)[1]), alone[0].pack(new))
    np.testing.assert_allclose(whole, log_prob, rtol=1e-12, atol=1e-12)
    assert family.log_prior(params) == pytest.approx(log_prior, rel=1e-12)
    assert family.n_free(3) == n_free == 3 * (2 + 3) + 3 * (11 - 4)
    np.testing.assert_array_equal(family.pack(params), np.concatenate(packed))
    back = family.unpack(family.pack(params), params, np.ones(3))
    np.testing.assert_allclose(family.pack(back), family.pack(params), rtol=1e-9, atol=1e-12)
    far = family.pack(params)
    for at in (0, len(far) - 1):
        wrong = far.copy()
        wrong[at] = 1e9
        assert family.unpack(wrong, params, np.ones(3)) is None


def test_restrict_embed_take_split_sample_and_marginal_of_mixed_tables():
    rng = np.random.default_rng(0)
    family, params = mixed(rng)
    X, values = rng.normal(size=(20, 2)), codes(rng, 20)
    index = np.array([0, 2])
    ready, table = family.prepare(params), Block(X, values)
    log_prob = family.open(ready, table).log_prob().copy()
    some = family.open(family.restrict(ready, index), table)
    np.testing.assert_allclose(some.log_prob(), log_prob[index], rtol=1e-12)
    resp = rng.random((2, 20))
    stats = family.embed(some.moments(resp), index, 3)
    np.testing.assert_allclose(stats.gaussian.mass, [resp[0].sum(), 0.0, resp[1].sum()])
    np.testing.assert_array_equal(stats.categorical.counts[1], 0.0)
    smaller, taken = family.take(params, index)
    np.testing.assert_allclose(smaller.open(smaller.prepare(taken), table).log_prob(), log_prob[index], rtol=1e-12)
    child = family.split(params, 0, 1)
    assert not np.allclose(child.gaussian.means[1], child.gaussian.means[0])
    assert not family.degenerate(params).any()
    drawn, drawn_codes = family.sample(params, np.zeros(7, dtype=int), rng)
    assert drawn.shape == (7, 2) and drawn_codes.shape == (7, 4)
    drawn, drawn_codes = only(family, params, "categorical")[0].sample(params, np.zeros(7, dtype=int), rng)
    assert drawn.shape == (7, 0) and drawn_codes.shape == (7, 4)
    none = np.array([], dtype=int)
    for columns, code_columns in [(np.array([1]), np.array([0, 3])), (np.array([0, 1]), none), (none, np.array([2]))]:
        part, marginal = family.marginal(params, columns, code_columns)
        hidden = Block(
            np.where(np.isin(np.arange(2), columns), X, np.nan),
            np.where(np.isin(np.arange(4), code_columns), values, -1).astype(np.int32),
            complete=len(columns) == 2,
        )
        seen = Block(X[:, columns], values[:, code_columns])
        np.testing.assert_allclose(
            part.open(part.prepare(marginal), seen).log_prob(),
            family.open(ready, hidden).log_prob(),
            rtol=1e-9,
            atol=1e-12,
        )
