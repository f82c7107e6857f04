"""What is said of a comparison: means, tests, groups, the score without flattery, the recommendation."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mixent import MaxEntClassifier, MaxEntStackingClassifier, MEDClassifier
from mixent.base.recipes import Shape
from mixent.comparison.candidates import Candidate
from mixent.comparison.estimate import ALPHA, against_best, chosen_estimate, frequencies_loss
from mixent.comparison.recommendation import explains_columns, headline, miscalibration, recommend
from mixent.comparison.result import Comparison
from mixent.evaluate import CrossValidation, corrected_t_test, holm, row_t_test, score_table, stratified_folds
from mixent.evaluate.row_losses import out_of_fold_losses, paired_test, score_interval
from mixent.evaluate.scores import METRICS, ROW_LOSSES

CLASSES = np.array(["a", "b"])


def make_cv(sharpness, n=240, folds=6, seed=0, weight=None, names=None, common=False):
    """A cross-validation of methods that know the truth to some degree, their errors independent, or in common."""
    rng = np.random.default_rng(seed)
    y = CLASSES[rng.integers(2, size=n)]
    place = stratified_folds(y, folds=folds)
    records, proba = [], {}
    for m, sharp in enumerate(sharpness):
        name = f"m{m}" if names is None else names[m]
        if m == 0 or not common:
            noise = rng.normal(size=n)
        logit = sharp * (np.where(y == "b", 1, -1) + noise)
        p = 1 / (1 + np.exp(-logit))
        proba[name] = np.column_stack([1 - p, p])
        for fold in range(folds):
            rows = place[0] == fold
            scores = score_table(y[rows], proba[name][rows], CLASSES, None if weight is None else weight[rows])
            size = {"n_train": int((~rows).sum()), "n_test": int(rows.sum())}
            times = {"fit_seconds": 1.0 + m, "predict_seconds": 0.1, "labelled_only": False, "failed": None}
            records.append({"method": name, "repeat": 0, "fold": fold, **size, **scores, **times})
    return CrossValidation(records, proba, CLASSES, y, place, weight, 0)


def make_comparison(sharpness, from_mixent=(), metric="log_loss", **more):
    cv = make_cv(sharpness, **more)
    tried = {
        m: Candidate(m, None, "mixent" if i in from_mixent else "scikit-learn", "") for i, m in enumerate(cv.methods)
    }
    estimate = chosen_estimate(cv, cv.ranking(metric), metric)
    advice = recommend(cv, tried, metric, estimate)
    shape = Shape(240, 240, 2, 0, 2, 2, 100, 0.0, False)
    return Comparison(cv, tried, {"other": "it takes long"}, shape, [], metric, advice, estimate)


@pytest.mark.parametrize("weight", [None, 1.0 + np.arange(240) % 3])
@pytest.mark.parametrize("metric", ROW_LOSSES)
def test_losses_of_rows_add_up_to_the_score(metric, weight):
    cv = make_cv([1.0, 3.0], weight=weight)
    losses, rows = out_of_fold_losses(cv, cv.methods, metric)
    for loss, method in zip(losses, cv.methods):
        expected = score_table(cv.y, cv.proba[method], CLASSES, weight)[metric]
        assert loss @ rows / rows.sum() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", ROW_LOSSES)
def test_the_shares_score_what_they_score(metric):
    cv = make_cv([1.0])
    share = np.mean(cv.y == "b")
    constant = np.tile([1 - share, share], (len(cv.y), 1))
    assert frequencies_loss(cv, metric) == pytest.approx(score_table(cv.y, constant, CLASSES)[metric], rel=1e-12)


def test_the_best_of_many_equals_flatters_itself_and_the_estimate_does_not():
    """Twenty methods, all alike: the lowest mean is below what they are worth, the corrected one is not."""
    plain, corrected, worth = [], [], []
    for seed in range(12):
        cv = make_cv([1.5] * 20, n=120, seed=seed)
        result = chosen_estimate(cv, cv.methods, "log_loss")
        means = [cv.values(m, "log_loss").mean() for m in cv.methods]
        plain.append(result.plain), corrected.append(result.value), worth.append(np.mean(means))
    bias = np.mean(np.subtract(plain, worth)), np.mean(np.subtract(corrected, worth))
    assert bias[0] < -0.05 and abs(bias[1]) < 0.4 * abs(bias[0])


def test_one_method_is_worth_its_mean():
    cv = make_cv([2.0])
    result = chosen_estimate(cv, cv.methods, "log_loss")
    assert result.value == pytest.approx(result.plain, abs=0.02) and result.low < result.plain < result.high


def test_tests_are_those_of_the_rows_with_holm():
    comparison = make_comparison([0.2, 1.5, 1.4, 3.0])
    best, *others = comparison.ranking()
    tests = comparison.tests()
    assert list(tests.index) == others
    tests = tests.to_dict("records")
    for name, test in zip(others, tests):
        (first, second), _ = out_of_fold_losses(comparison.cv, [name, best], "log_loss")
        expected = row_t_test(first - second)
        assert (test["mean"], test["low"], test["high"], test["p_value"]) == pytest.approx(
            (expected.mean, *expected.interval, expected.p_value)
        )
    adjusted = holm([test["p_value"] for test in tests])
    np.testing.assert_allclose([t["adjusted"] for t in tests], adjusted)
    assert [t["significant"] for t in tests] == [bool(x < ALPHA) for x in adjusted]


def stopped(cv, name, folds=2):
    """The cross-validation with a method that was stopped after some folds."""
    part = np.where((cv.folds[0] < folds)[:, None], cv.proba[name], np.nan)
    records = [r for r in cv.records if r["method"] != name or r["fold"] < folds]
    return replace(cv, records=records, proba=cv.proba | {name: part})


def test_methods_that_were_stopped_are_tested_and_counted_but_not_ranked():
    cv = stopped(make_cv([1.5, 0.2, 1.4]), "m1")
    tests = against_best(cv, "m0", "log_loss")
    assert "m1" not in cv.ranking() and set(tests) == {"m1", "m2"}
    assert tests["m1"].test.n_rows == int((cv.folds[0] < 2).sum())
    assert [t.adjusted for t in tests.values()] == pytest.approx(holm([t.test.p_value for t in tests.values()]))
    alone = against_best(replace(cv, records=[r for r in cv.records if r["method"] != "m1"]), "m0", "log_loss")
    assert alone["m2"].adjusted < tests["m2"].adjusted or alone["m2"].adjusted == alone["m2"].test.p_value


def test_what_is_clearly_worse_is_no_alternative():
    """Few rows: a method with nearly twice the loss may not be significantly worse, and is still not suggested."""
    kinds = set()
    for seed in range(12):
        cv = make_cv([1.5, 0.8 if seed % 2 else 1.4], n=24, folds=3, seed=seed, common=not seed % 2)
        best, other = cv.ranking()
        against = against_best(cv, best, "log_loss")[other]
        near = against.test.mean <= max(0.05 * cv.values(best, "log_loss").mean(), 0.01)
        assert against.close == (against.adjusted >= ALPHA and near)
        kinds.add((against.adjusted >= ALPHA, near))
    assert {(True, True), (True, False)} <= kinds  # or nothing was tested


def test_worse_in_every_fold_is_significant_with_few_folds():
    """0.3 against 0.6 nats: after Holm's adjustment for twelve tests, five folds could not tell."""
    cv = make_cv([2.0, 0.2], n=150, folds=5, common=True)
    gaps = cv.values("m1", "log_loss") - cv.values("m0", "log_loss")
    test = against_best(cv, "m0", "log_loss")["m1"].test
    assert (gaps > 0).all() and 12 * test.p_value < 0.05 < 12 * corrected_t_test(gaps, 1 / 4).p_value


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_maximal_runs_without_a_significant_pair(seed):
    comparison = make_comparison([0.05, 0.1, 0.9, 1.0, 1.5, 8.0], seed=seed)
    order, groups = comparison.ranking(), comparison.groups()
    pairs = list(combinations(order, 2))
    adjusted = dict(zip(pairs, holm([comparison.test(a, b).p_value for a, b in pairs])))
    alike = lambda run: all(adjusted[pair] >= ALPHA for pair in combinations(run, 2))  # noqa: E731
    runs = [order[i:j] for i in range(len(order)) for j in range(i + 2, len(order) + 1) if alike(order[i:j])]
    assert groups == [run for run in runs if not any(set(run) < set(other) for other in runs)]
    assert groups and any(p < ALPHA for p in adjusted.values())  # there is something to tell


def test_best_of_either_camp():
    comparison = make_comparison([0.2, 1.5, 1.0], from_mixent=(0, 2))
    assert (
        comparison.recommended == "m1" == comparison.best(from_mixent=False)
        and comparison.best(from_mixent=True) == "m2"
    )
    assert make_comparison([1.0, 2.0]).best(from_mixent=True) is None


def test_means_and_frame():
    comparison = make_comparison([0.2, 1.5])
    first = comparison.means()[0]
    assert first["method"] == comparison.recommended and first["kind"] == "scikit-learn"
    assert first["log_loss"] == pytest.approx(comparison.cv.values("m1", "log_loss").mean())
    assert {*METRICS, "fit_seconds", "log_loss_sd"} <= set(comparison.frame().columns)


def test_the_words(found):
    text = str(found)
    assert "naive" in text and "log-loss" in text and str(found.recommendation) in text


def points(*args, **more):
    return " ".join(make_comparison(*args, **more).recommendation.points)


@pytest.mark.parametrize("n", [60, 240, 1200])
def test_the_headline_is_about_rows(n):
    comparison = make_comparison([0.1, 1.5], n=n)
    of = min(n, 100)
    right = of * (1 - comparison.cv.values("m1", "error").mean())
    label, share = max(((c, of * np.mean(comparison.cv.y == c)) for c in CLASSES), key=lambda one: one[1])
    text = comparison.recommendation.headline
    assert f"on {right:.0f} of {of} rows" in text and text.endswith(f"answering {str(label)!r} gets {share:.0f}.")
    low, high = score_interval(comparison.cv, "m1", "error")
    assert (f"interval {100 - 100 * high:.0f} to {100 - 100 * low:.0f}" in text) == (n < 1000)


def test_the_headline_counts_weights_and_never_rounds_up_to_all():
    weight = np.where(make_cv([0.1]).y == "a", 5.0, 1.0)
    assert "always answering 'a'" in make_comparison([0.1, 1.5], weight=weight).recommendation.headline
    cv = make_cv([9.0], n=2000)
    proba = np.where(cv.y[:, None] == CLASSES, 0.9, 0.1)
    proba[0] = proba[0, ::-1]
    records = [{**r, "error": 1 / 2000} for r in cv.records]
    text = headline(replace(cv, records=records, proba={"m0": proba}), "m0")
    assert "Right on 99.9 of 100 rows" in text


def test_no_better_than_the_shares():
    assert "No method" not in points([1.5, 2.0])


def test_right_probabilities_are_not_called_wrong():
    """Folds of few rows have a calibration error of 10 % even so."""
    called = 0
    for seed in range(20):
        cv = make_cv([2.0], n=240, seed=seed)  # logit 2 (y + noise) of variance 1: exactly p(y | x)
        off, usual = miscalibration(cv, "m0")
        called += off > usual
    assert called <= 2


def test_one_row_in_each_of_three_folds_is_not_beyond_doubt():
    cv = make_cv([2.0, 2.0], n=150, folds=3)
    proba = {"m0": cv.proba["m0"], "m1": cv.proba["m0"].copy()}
    for fold in range(3):
        row = np.flatnonzero((cv.folds[0] == fold) & (proba["m0"].argmax(axis=1) == (cv.y == "b")))[0]
        proba["m1"][row] = proba["m1"][row, ::-1]
    records = [
        r | score_table(cv.y[rows], proba[r["method"]][rows], CLASSES)
        for r in cv.records
        for rows in [cv.folds[0] == r["fold"]]
    ]
    test = paired_test(replace(cv, records=records, proba=proba), "m1", "m0", "error")
    assert test.mean == pytest.approx(1 / 50) and test.p_value > 0.1


def test_one_verdict_for_one_pair():
    """A difference that is significant is not listed among those that are not."""
    for seed in range(15):
        text = points([1.0, 0.8, 0.7, 0.6, 0.5], from_mixent=(0,), seed=seed)
        rival = text.split("Best method outside mixent: ")[-1].split(",")[0] if "outside" in text else None
        like = text.split("methods but: ")[-1].split(".")[0].split(", ") if "methods but: " in text else []
        if "better only than: " in text:
            like = {f"m{i}" for i in range(5)} - {*text.split("only than: ")[-1].split(".")[0].split(", ")}
        every = "No significant difference from any" in text
        if rival is not None:
            assert ("not significant at" in text) == (every or rival in like)


def test_who_explains_by_column():
    assert explains_columns(MaxEntClassifier()) and explains_columns(MEDClassifier())
    assert not explains_columns(MEDClassifier("rbf"))
    assert not explains_columns(MaxEntStackingClassifier([("a", MEDClassifier())]))


def test_balanced_shares_count_the_classes_that_are_scored():
    cv = make_cv([1.0])
    assert frequencies_loss(replace(cv, classes=np.array(["a", "b", "q"])), "balanced_error") == 0.5
