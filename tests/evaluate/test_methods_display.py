"""Methods on one data set: bars join exactly those that no adjusted paired test tells apart."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from mixent.base.multiple_tests import adjusted_p_values, homogeneous_groups
from mixent.displays import MethodScoresDisplay
from mixent.evaluate import CrossValidation, holm


def made(scores, metric="log_loss"):
    """A cross-validation of methods (k, J) with these scores."""
    scores = np.asarray(scores, dtype=float)
    blank = dict.fromkeys(("error", "balanced_error", "log_loss", "brier", "calibration"), 0.5)
    records = [
        {"method": f"m{i}", "repeat": 0, "fold": f, "n_train": 90, "n_test": 10, **blank, metric: value}
        | {"fit_seconds": 0.1, "predict_seconds": 0.1, "labelled_only": False, "failed": None}
        for i, row in enumerate(scores)
        for f, value in enumerate(row)
    ]
    none = np.zeros((0, 2))
    return CrossValidation(records, {}, np.array(["a", "b"]), none[:, 0], np.zeros((1, 0), dtype=int))


def random_scores(seed, k=6, folds=8):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.2, 0.9, k)[:, None] + 0.1 * rng.normal(size=folds) + 0.08 * rng.normal(size=(k, folds)) + 1


@pytest.mark.parametrize("seed", range(12))
def test_bars_are_the_maximal_runs_without_a_difference(seed):
    cv = made(random_scores(seed))
    display = MethodScoresDisplay.from_comparison(cv)
    names = display.names
    assert names == cv.ranking() and (np.diff(display.means) >= 0).all()
    pairs = list(combinations(range(len(names)), 2))
    adjusted = dict(zip(pairs, holm([cv.difference(names[i], names[j])["p_value"] for i, j in pairs])))
    alike = [
        set(range(i, j + 1))
        for i, j in pairs
        if all(adjusted[a, b] >= 0.05 for a, b in combinations(range(i, j + 1), 2))
    ]
    maximal = [run for run in alike if not any(run < other for other in alike)]
    assert [set(group) for group in display.groups] == sorted(maximal, key=min)


def test_the_order_in_which_methods_come_changes_nothing():
    scores = random_scores(3)
    one = MethodScoresDisplay.from_comparison(made(scores))
    other = MethodScoresDisplay.from_comparison(made(scores[::-1]))
    np.testing.assert_allclose(one.means, other.means)
    assert one.groups == other.groups


def test_runs_are_those_of_a_comparison():
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    import mixent as mx

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "a", "b")
    methods = {"bayes": GaussianNB(), "stump": DecisionTreeClassifier(max_depth=1), "tree": DecisionTreeClassifier()}
    found = mx.compare(X, y, methods=methods, baselines=False, folds=5, n_jobs=1, refit=False)
    display = MethodScoresDisplay.from_comparison(found)
    assert [[display.names[i] for i in group] for group in display.groups] == found.groups()
    assert display.from_mixent == [False] * len(found.ranking())


def test_equal_methods_are_joined_and_one_fold_tells_nothing():
    same = made([[0.1, 0.2, 0.3]] * 3)
    assert MethodScoresDisplay.from_comparison(same).groups == [[0, 1, 2]]
    assert MethodScoresDisplay.from_comparison(made([[0.1], [0.9]])).groups == [[0, 1]]


def between(k, **apart):
    """(k, k) p-values, 0.5 but for the pairs named, such as p02=0.01."""
    out = np.full((k, k), 0.5)
    np.fill_diagonal(out, 1.0)
    for name, p in apart.items():
        i, j = int(name[1]), int(name[2])
        out[i, j] = out[j, i] = p
    return out


def test_every_pair_of_a_run_counts_not_only_those_with_its_first():
    assert homogeneous_groups(between(4, p12=0.01)) == [[0, 1], [2, 3]]
    assert homogeneous_groups(between(4, p13=0.01)) == [[0, 1, 2], [2, 3]]
    assert homogeneous_groups(between(4, p03=0.01)) == [[0, 1, 2], [1, 2, 3]]
    assert homogeneous_groups(between(3), alpha=0.6) == [] and homogeneous_groups(np.ones((1, 1))) == []


def test_p_values_are_adjusted_for_all_pairs():
    raw = {("a", "b"): 0.01, ("a", "c"): 0.02, ("b", "c"): np.nan}
    found = adjusted_p_values("abc", lambda a, b: raw[a, b])
    np.testing.assert_allclose(found, [[1, 0.03, 0.04], [0.03, 1, 1], [0.04, 1, 1]])
    np.testing.assert_array_equal(adjusted_p_values(["a"], lambda a, b: 0.0), [[1.0]])


@pytest.mark.parametrize("seed", range(12))
def test_the_sentence_names_those_that_no_test_tells_from_the_best(seed):
    rng = np.random.default_rng(seed)
    spread = 10.0 ** rng.uniform(-4, -0.5, size=5)  # a noisy method behind a steady one
    cv = made(np.sort(rng.uniform(1, 1.2, 5))[:, None] + spread[:, None] * rng.normal(size=(5, 8)))
    best, *others = cv.ranking()
    pairs = list(combinations(cv.ranking(), 2))
    adjusted = dict(zip(pairs, holm([cv.difference(a, b)["p_value"] for a, b in pairs])))
    words = MethodScoresDisplay.from_comparison(cv).text()
    if not {"every", "any", "no"} & set(words.split()):
        assert {m for m in others if m in words} == {m for m in others if adjusted[best, m] >= 0.05}
    else:
        assert len({adjusted[best, m] >= 0.05 for m in others}) == 1
        assert ("every other" in words) == all(adjusted[best, m] < 0.05 for m in others)


def test_the_tests_are_those_of_the_comparison():
    cv = made([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    own = SimpleNamespace(cv=cv, test=lambda a, b, metric: SimpleNamespace(p_value=0.001))
    assert MethodScoresDisplay.from_comparison(own).groups == []
    assert MethodScoresDisplay.from_comparison(cv).groups == [[0, 1]]


def test_it_is_drawn_and_told():
    base = np.linspace(0.1, 0.12, 8)
    noise = 0.002 * np.outer([0.0, 1.1, -1.0, 1.2], np.tile([1, -1], 4)) + 1e-6 * np.arange(4)[:, None]
    cv = made([base + noise[0], base + noise[1], base + 1 + noise[2], base + 1 + noise[3]])
    display = MethodScoresDisplay.from_comparison(cv)
    assert display.groups == [[0, 1], [2, 3]] and len(display._levels()) == 1
    bars = [line for line in display.ax_.lines if line.get_linewidth() == 3.6]
    assert len(bars) == 2
    ends = [tuple(sorted(bar.get_ydata())) for bar in bars]
    np.testing.assert_allclose(ends, [(-0.3, 1.3), (1.7, 3.3)])
    assert [t.get_text().split("  ")[0] for t in display.ax_.get_yticklabels()] == display.names
    assert "Log-loss (nats)" in display.ax_.get_xlabel()
    apart = MethodScoresDisplay.from_comparison(made([base, base + 1 + noise[1]]))
    assert apart.groups == []


def test_one_bad_method_does_not_push_the_others_together():
    wide = MethodScoresDisplay.from_comparison(made([[0.1, 0.12], [0.2, 0.22], [9.0, 9.1]]))
    assert wide.ax_.get_xscale() == "log"
    with_zero = MethodScoresDisplay.from_comparison(made([[0.0, 0.0], [0.2, 0.22], [9.0, 9.1]]))
    assert with_zero.ax_.get_xscale() == "linear"


def test_ours_and_others_have_their_marks():
    cv = made(random_scores(0, k=3))
    candidates = {f"m{i}": SimpleNamespace(from_mixent=i == 0) for i in range(3)}
    display = MethodScoresDisplay.from_comparison(SimpleNamespace(cv=cv, candidates=candidates), metric="log_loss")
    assert sum(display.from_mixent) == 1
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["mixent", "other"]
