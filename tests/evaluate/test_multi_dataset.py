"""Many methods over many data sets: the numbers of Demsar (2006) and of scipy, and what order must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mixent.evaluate import compare_over_sets, holm, signed_rank_test
from mixent.evaluate.multi_dataset import iman_davenport, nemenyi_difference, sets_needed

# Demsar (2006), Table 6: ranks of C4.5, with m tuned, with cf tuned, with both; the best is 1
RANKS = np.array(
    [
        *([4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 2, 3], [4, 1, 3, 2], [4, 2, 3, 1], [1, 2.5, 4, 2.5], [3, 2, 4, 1]),
        *([2.5, 2.5, 4, 1], [4, 3, 2, 1], [2.5] * 4, [4, 2.5, 1, 2.5], [3, 2, 4, 1], [4, 1, 2, 3], [3, 1, 4, 2]),
    ]
)
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


def random_scores(n=12, k=5, seed=0, step=0.5):
    return np.random.default_rng(seed).normal(size=(n, k)) + step * np.arange(k)


def named(scores, names=None):
    return dict(zip(names or [f"m{j}" for j in range(scores.shape[1])], scores.T))


def test_the_example_of_the_paper():
    found = compare_over_sets(named(RANKS, NAMES))
    np.testing.assert_allclose(found.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    np.testing.assert_array_equal(found.ranks, RANKS)
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    k, n = 4, 14
    as_printed = 12 * n / (k * (k + 1)) * ((found.mean_ranks**2).sum() - k * (k + 1) ** 2 / 4)  # without ties
    assert as_printed == pytest.approx(9.28, abs=0.005) and found.chi2 > as_printed
    assert iman_davenport(9.28, n, k)[0] == pytest.approx(3.69, abs=0.005)
    assert found.order == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"] and found.groups == [found.order]


@pytest.mark.parametrize(("k", "q05", "q10"), [(2, 1.960, 1.645), (4, 2.569, 2.291), (10, 3.164, 2.920)])
def test_critical_values_are_those_of_the_tables(k, q05, q10):
    """Demsar (2006), Table 5."""
    unit = np.sqrt(k * (k + 1) / 6)
    assert nemenyi_difference(1, k) / unit == pytest.approx(q05, abs=6e-4)
    assert nemenyi_difference(1, k, alpha=0.1) / unit == pytest.approx(q10, abs=6e-4)
    assert nemenyi_difference(4, k) == pytest.approx(nemenyi_difference(1, k) / 2)


@pytest.mark.parametrize("scores", [RANKS, random_scores(), random_scores(3, 9, 1, 0), random_scores().round()])
def test_friedman_is_that_of_scipy_and_f_that_of_an_analysis_of_variance(scores):
    found = compare_over_sets(scores)
    peer = stats.friedmanchisquare(*scores.T)
    assert found.chi2 == pytest.approx(peer.statistic, rel=1e-9)
    assert found.chi2_p_value == pytest.approx(peer.pvalue, rel=1e-9)
    ranks, (n, k) = found.ranks, scores.shape
    methods = n * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    rest = ((ranks - (k + 1) / 2) ** 2).sum() - methods  # every set has the same mean rank
    f = methods / (k - 1) / (rest / ((k - 1) * (n - 1)))
    assert found.f == pytest.approx(f, rel=1e-9)
    assert found.p_value == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)), rel=1e-9)


def test_the_order_of_sets_and_methods_does_not_matter():
    scores, rng = random_scores(), np.random.default_rng(1)
    found = compare_over_sets(named(scores))
    sets, methods = rng.permutation(12), rng.permutation(5)
    other = compare_over_sets(named(scores[np.ix_(sets, methods)], [f"m{j}" for j in methods]))
    np.testing.assert_allclose(other.mean_ranks, found.mean_ranks[methods])
    np.testing.assert_array_equal(other.ranks, found.ranks[np.ix_(sets, methods)])
    assert other.chi2 == pytest.approx(found.chi2) and other.groups == found.groups and other.order == found.order
    for a in found.methods:
        for b in found.methods:
            assert other.adjusted_p_value(a, b) == pytest.approx(found.adjusted_p_value(b, a))


def test_scale_does_not_matter_and_higher_may_be_better():
    scores = random_scores()
    found, other = compare_over_sets(scores), compare_over_sets(1 - scores / 100, lower_is_better=False)
    np.testing.assert_array_equal(other.ranks, found.ranks)
    np.testing.assert_allclose(other.adjusted, found.adjusted)
    assert [p.leader for p in other.pairs] == [p.leader for p in found.pairs]
    np.testing.assert_array_equal(other.scores, 1 - scores / 100)


def test_scores_that_differ_by_rounding_are_tied():
    scores = np.array([[0.3, 0.1 + 0.2, 0.4], [0.3, 0.3, 0.5]])
    np.testing.assert_array_equal(compare_over_sets(scores).ranks, [[1.5, 1.5, 3]] * 2)


def test_methods_all_alike_and_methods_always_in_one_order():
    alike = compare_over_sets(np.ones((6, 3)))
    assert (alike.chi2, alike.chi2_p_value, alike.f, alike.p_value) == (0, 1, 0, 1)
    assert alike.adjusted.tolist() == [1, 1, 1] and alike.groups == [alike.methods]
    said = str(alike)
    assert "it does not apply where" in said
    sure = compare_over_sets(np.tile([3, 1, 2], (40, 1)) + 0.01 * np.arange(40)[:, None])
    assert sure.f == np.inf and sure.p_value == pytest.approx(6.0**-39) and sure.groups == []
    assert "; all methods differ significantly." in str(sure)


def test_groups_are_the_longest_runs_within_the_critical_difference():
    found = compare_over_sets(random_scores(14, 8, 2, 0.4))
    ranks = dict(zip(found.methods, found.mean_ranks))
    pairs = {frozenset((a, b)) for g in found.groups for a in g for b in g if a != b}
    wanted = {
        frozenset((a, b))
        for a in ranks
        for b in ranks
        if a != b and abs(ranks[a] - ranks[b]) < found.critical_difference
    }
    assert pairs == wanted and len(found.groups) > 1
    for group in found.groups:
        assert not any(set(group) < set(other) for other in found.groups)
        assert group == [name for name in found.order if name in group]


def test_pairs_are_signed_rank_tests_with_holms_adjustment():
    scores = random_scores(20, 4, 3)
    found = compare_over_sets(named(scores))
    raw = [stats.wilcoxon(scores[:, i], scores[:, j]).pvalue for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose([pair.p_value for pair in found.pairs], raw, rtol=1e-12)
    np.testing.assert_allclose(found.adjusted, holm(raw), rtol=1e-12)
    assert found.adjusted_p_value("m2", "m0") == found.adjusted[1] and found.adjusted_p_value("m1", "m1") == 1
    told = [pair for pair, p in zip(found.pairs, found.adjusted) if p < 0.05]
    assert 0 < len(told) < 6 and f"; {6 - len(told)} other pair" in str(found)


def test_a_third_method_changes_nemenyi_and_not_the_pair():
    """Why the pairs are to be preferred (Benavoli, Corani and Mangili 2016)."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=20)
    b = a + 0.3 + 0.1 * rng.normal(size=20)
    far = [a + 5 + j + 0.1 * rng.normal(size=20) for j in range(6)]  # never between a and b
    between = [a + 0.15 + 0.01 * rng.normal(size=20) for _ in range(6)]
    told = []
    for others in (far, between):
        found = compare_over_sets(np.column_stack([a, b, *others]))
        gap = abs(found.mean_ranks[1] - found.mean_ranks[0])
        told.append(gap >= found.critical_difference)
        assert found.pairs[0].p_value == signed_rank_test(a, b).p_value
    assert told == [False, True]


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]).tolist() == [1, 1] and holm([0.2]).tolist() == [0.2] and not len(holm([]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms())
def test_holm_is_monotone_between_the_plain_values_and_bonferroni(p, random):
    p = np.array(p)
    found = holm(p)
    order = np.argsort(p, kind="stable")
    assert (np.diff(found[order]) >= 0).all() and (found >= p).all()
    assert (found <= np.minimum(len(p) * p, 1) + 1e-15).all()
    mixed = random.sample(range(len(p)), len(p))
    np.testing.assert_array_equal(np.sort(holm(p[mixed])), np.sort(found))
    np.testing.assert_array_equal(holm(p[mixed]), found[mixed])


@pytest.mark.parametrize("n_pairs", [1, 3, 10, 66])
def test_how_many_sets_a_pair_needs(n_pairs):
    n = sets_needed(n_pairs)
    best = [n_pairs * signed_rank_test(np.zeros(m), np.arange(1, m + 1)).p_value for m in (n - 1, n)]
    assert best[1] < 0.05 <= best[0]


def test_tables_of_all_kinds_are_read_alike():
    scores = random_scores(4, 3)
    sets = ["iris", "wine", "glass", "sonar"]
    wanted = compare_over_sets({f"m{j}": {s: scores[i, j] for i, s in enumerate(sets)} for j in range(3)})
    assert wanted.sets == sets and wanted.methods == ["m0", "m1", "m2"]
    assert compare_over_sets(scores).methods == ["method 1", "method 2", "method 3"]
    assert compare_over_sets(scores.tolist()).sets == ["set 1", "set 2", "set 3", "set 4"]
    np.testing.assert_array_equal(compare_over_sets(named(scores)).scores, scores)


def test_frames_are_read_alike():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    scores, sets = random_scores(4, 3), ["iris", "wine", "glass", "sonar"]
    frame = pandas.DataFrame(scores, columns=["a", "b", "c"], index=sets)
    columns = {"data set": sets, **named(scores, ["a", "b", "c"])}
    for given_ in (frame, frame.rename_axis("set").reset_index(), polars.DataFrame(columns)):
        found = compare_over_sets(given_)
        assert found.sets == sets and found.methods == ["a", "b", "c"]
        np.testing.assert_array_equal(found.scores, scores)
    assert compare_over_sets(frame.reset_index(drop=True)).sets[0] == "set 1"
    with pytest.raises(ValueError, match="scores"):
        compare_over_sets(frame.assign(d=["x", "y", "z", "x"]))


def test_it_shows_itself_in_a_few_lines():
    found = compare_over_sets(random_scores())
    assert len(repr(found)) < 400 and len(str(found).splitlines()) == 4


def test_two_sets_that_rank_alike_are_little_evidence():
    found = compare_over_sets(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0]]))
    assert found.f == np.inf and found.p_value == pytest.approx(1 / 6)
