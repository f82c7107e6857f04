from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mixent import MixtureClassifier
from mixent.evaluate import cross_validate, score_table, stratified_folds
from mixent.evaluate.cross_validation import gathered, score_fold
from mixent.evaluate.runner import Method, Runner, splits_of
from mixent.evaluate.samples import read_samples
from mixent.evaluate.scores import METRICS

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]


class Spy(ClassifierMixin, BaseEstimator):
    """Predicts the training frequencies; keeps what it was given."""

    seen = []

    def fit(self, X, y, sample_weight=None):
        known = np.array([value is not None and value == value for value in y])
        self.classes_, counts = np.unique(np.asarray(y[known].tolist()), return_counts=True)
        self.share_ = counts / counts.sum()
        Spy.seen.append((np.asarray(X)[:, 0], y, sample_weight))
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))


class Breaks(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        raise ZeroDivisionError("no luck <today>")


@pytest.fixture(autouse=True)
def _empty():
    Spy.seen = []


@pytest.mark.parametrize("folds", [2, 5, 7])
def test_folds_are_disjoint_cover_and_stratified(folds):
    found = stratified_folds(Y[:140], folds=folds, repeats=3, random_state=1)
    assert found.shape == (3, 140)
    for row in found:
        sizes = np.bincount(row, minlength=folds)  # every row in exactly one fold: it is a map
        assert sizes.sum() == 140 and np.ptp(sizes) <= 1
        for label in np.unique(Y):
            assert np.ptp(np.bincount(row[Y[:140] == label], minlength=folds)) <= 1
    assert (found[0] != found[1]).any()
    np.testing.assert_array_equal(found, stratified_folds(Y[:140], folds=folds, repeats=3, random_state=1))


def test_one_estimator_alone():
    alone, named = cross_validate(GaussianNB(), X, Y, folds=3), cross_validate({"nb": GaussianNB()}, X, Y, folds=3)
    assert alone.methods == ["GaussianNB"]
    np.testing.assert_array_equal(alone.proba["GaussianNB"], named.proba["nb"])
    assert cross_validate(make_pipeline(StandardScaler(), GaussianNB()), X, Y, folds=2).methods == ["Pipeline"]


def test_scores_are_those_of_the_out_of_fold_probabilities():
    cv = cross_validate({"nb": GaussianNB()}, X, Y, folds=4)
    for record in cv.records:
        test = cv.folds[0] == record["fold"]
        model = GaussianNB().fit(X[~test], Y[~test])
        np.testing.assert_array_equal(cv.proba["nb"][test], model.predict_proba(X[test]))
        expected = score_table(Y[test], cv.proba["nb"][test], cv.classes)
        assert {name: record[name] for name in METRICS} == expected
        assert record["n_test"] == test.sum() and record["n_train"] == (~test).sum()
        assert record["fit_seconds"] > 0 and record["predict_seconds"] > 0


def test_all_methods_see_the_same_folds_and_no_test_row():
    numbered = np.c_[np.arange(150), X]
    cv = cross_validate({"a": Spy(), "b": Spy()}, numbered, Y, folds=3, repeats=2)
    assert cv.methods == ["a", "b"] and len(cv.records) == 12
    for first, second in zip(Spy.seen[::2], Spy.seen[1::2]):
        np.testing.assert_array_equal(first[0], second[0])
    for i, (rows, _, _) in enumerate(Spy.seen[::2]):
        np.testing.assert_array_equal(rows, np.flatnonzero(cv.folds[i // 3] != i % 3))


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_give_the_same_as_arrays(backend):
    frame = pytest.importorskip(backend).DataFrame({f"c{j}": X[:, j] for j in range(4)})
    methods = {"nb": GaussianNB()}
    expected, found = cross_validate(methods, X, Y), cross_validate(methods, frame, Y)
    np.testing.assert_array_equal(expected.proba["nb"], found.proba["nb"])


@pytest.mark.parametrize("absent", [None, float("nan"), ""])
def test_rows_without_label_train_always_and_are_never_scored(absent):
    y = Y.astype(object)
    y[::5] = absent
    numbered = np.c_[np.arange(150), X]
    cv = cross_validate({"spy": Spy(), "nb": GaussianNB()}, numbered, y, folds=3)
    hidden = np.arange(0, 150, 5)
    assert (cv.folds[:, hidden] == -1).all() and np.isnan(cv.proba["spy"][hidden]).all()
    assert np.isfinite(np.delete(cv.proba["spy"], hidden, axis=0)).all()
    for rows, given, _ in Spy.seen:
        assert np.isin(hidden, rows).all()
        assert all(value is None for value in given[np.isin(rows, hidden)])
    # one that refuses absent labels is fitted to the labelled rows alone
    assert all(r["labelled_only"] == (r["method"] == "nb") and not r["failed"] for r in cv.records)


def test_number_labels_with_gaps_reach_scikit_learn_as_numbers():
    y = np.where(np.arange(150) % 7 == 0, np.nan, CODES)
    cv = cross_validate({"nb": GaussianNB(), "mixed": Spy()}, X, y)
    np.testing.assert_array_equal(cv.classes, [0, 1, 2])
    assert not cv.failures
    cv = cross_validate({"nb": GaussianNB()}, X, [None if v != v else int(v) for v in y])
    assert not cv.failures and cv.classes.dtype.kind == "i"


def test_small_classes():
    y = np.r_[["a"] * 20, ["b"] * 20, ["rare"] * 3, ["lone"]]
    numbers = np.random.default_rng(0).normal(size=(44, 2))
    with pytest.warns(UserWarning, match="lone|rare") as warned:
        cv = cross_validate({"spy": Spy()}, numbers, y, folds=5)
    told = " ".join(str(w.message) for w in warned)
    assert "never scored: lone;" in told and "rare (3)" in told
    assert cv.folds[0, -1] == -1
    assert len(set(cv.folds[0, 40:43])) == 3
    for _, given, _ in Spy.seen:
        assert set(given) == {"a", "b", "rare", "lone"}  # every class is in every training set
    assert not cv.failures


def test_a_method_that_fails_is_recorded_and_the_others_go_on():
    cv = cross_validate({"bad": Breaks(), "svc": LinearSVC(), "nb": GaussianNB()}, X, Y)
    assert list(cv.failures) == ["bad", "svc"] and cv.failures["bad"] == "ZeroDivisionError: no luck <today>"
    assert "predict_proba" in cv.failures["svc"]
    assert cv.ranking() == ["nb"]
    bad = [s for s in cv.means() if s["method"] == "bad"]
    assert all(s["folds"] == 0 and np.isnan(s["mean"]) for s in bad)
    with pytest.raises(RuntimeError, match="every method failed"):
        cross_validate({"bad": Breaks()}, X, Y)


def test_summary_is_mean_and_deviation_over_folds():
    cv = cross_validate({"nb": GaussianNB(), "lda": LinearDiscriminantAnalysis()}, X, Y, repeats=2)
    rows = {(s["method"], s["metric"]): s for s in cv.means()}
    for method in cv.methods:
        for metric in METRICS:
            values = [r[metric] for r in cv.records if r["method"] == method]
            found = rows[method, metric]
            assert found["folds"] == 10
            assert found["mean"] == pytest.approx(np.mean(values))
            assert found["sd"] == pytest.approx(np.std(values, ddof=1))


def test_it_prints_as_a_table_the_best_first():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    X[:, 0] += 2 * y
    methods = {"blind": DummyClassifier(strategy="prior"), "sees": GaussianNB()}
    cv = cross_validate(methods, X, y, folds=3)
    head, first, second = str(cv).splitlines()
    assert head.startswith("method") and first.startswith("sees ") and second.startswith("blind ")
    assert f"{cv.values('sees', 'log_loss').mean():.3f}" in first and "50.0" in second
    assert repr(cv) == "CrossValidation(2 methods, 3 folds, 1 repeat, 60 rows)"


def test_kept_probabilities_are_of_the_first_repeat():
    once, thrice = (cross_validate({"nb": GaussianNB()}, X, Y, repeats=r) for r in (1, 3))
    np.testing.assert_array_equal(once.proba["nb"], thrice.proba["nb"])


def test_difference_is_antisymmetric_and_over_all_repeats():
    cv = cross_validate({"nb": GaussianNB(), "lda": LinearDiscriminantAnalysis()}, X, Y, repeats=2)
    one, other = cv.difference("nb", "lda"), cv.difference("lda", "nb")
    assert one["mean"] == -other["mean"] and one["p_value"] == other["p_value"]
    gap = cv.values("nb", "log_loss") - cv.values("lda", "log_loss")
    assert one["mean"] == pytest.approx(gap.mean(), rel=1e-9)
    seconds = cv.values("nb", "fit_seconds") - cv.values("lda", "fit_seconds")  # no mean over rows: tested on folds
    corrected = np.sqrt((1 / 10 + 1 / 4) * seconds.var(ddof=1))
    assert cv.difference("nb", "lda", "fit_seconds")["se"] == pytest.approx(corrected)
    assert 0 < one["p_value"] < 1
    assert cv.difference("nb", "nb") == {"mean": 0, "se": 0, "p_value": 1}


def test_weights_reach_the_fit_and_the_score():
    weight = 1.0 + np.arange(150) % 3
    pipe = make_pipeline(StandardScaler(), GaussianNB())
    cv = cross_validate({"spy": Spy(), "pipe": pipe}, X, Y, sample_weight=weight)
    test = cv.folds[0] == 0
    np.testing.assert_array_equal(Spy.seen[0][2], weight[~test])
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(
        X[~test], Y[~test], gaussiannb__sample_weight=weight[~test]
    )
    np.testing.assert_array_equal(cv.proba["pipe"][test], model.predict_proba(X[test]))
    expected = score_table(Y[test], cv.proba["spy"][test], cv.classes, weight[test])
    assert cv.records[0]["log_loss"] == expected["log_loss"]
    with pytest.warns(UserWarning, match="sample_weight"):
        cross_validate({"knn": KNeighborsClassifier()}, X, Y, sample_weight=weight)


def test_rows_without_a_label_do_not_count_for_the_overlap():
    X, y = load_iris(return_X_y=True)
    labels = np.where(np.arange(150) % 5 == 0, y.astype(object), None)
    cv = cross_validate(GaussianNB(), X, labels, folds=5)
    assert {(r["n_train"], r["n_test"]) for r in cv.records} == {(24, 6)}
    with pytest.raises(ValueError, match="'bost'"):
        cv.difference("GaussianNB", "bost")


def test_stopped_and_resumed_is_one_run(tmp_path):
    methods, path = {"nb": GaussianNB(), "lda": LinearDiscriminantAnalysis()}, tmp_path / "folds.jsonl"
    whole = cross_validate(methods, X, Y, folds=3, repeats=2)

    def stop(done, total, text):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate(methods, X, Y, folds=3, repeats=2, journal=path, progress=stop)
    assert len(path.read_text().splitlines()) == 1 + 5
    told = []
    again = cross_validate(methods, X, Y, folds=3, repeats=2, journal=path, progress=lambda *a: told.append(a[0]))
    assert told[-1] == 12 and len(path.read_text().splitlines()) == 1 + 12
    for method in methods:
        np.testing.assert_array_equal(again.values(method, "log_loss"), whole.values(method, "log_loss"))
        np.testing.assert_array_equal(again.proba[method], whole.proba[method])
    with pytest.raises(ValueError, match="journal"):
        cross_validate(methods, X, Y[::-1], folds=3, repeats=2, journal=path)


def test_processes_change_nothing_but_seconds():
    methods = {"nb": GaussianNB(), "lda": LinearDiscriminantAnalysis()}
    one, two = (cross_validate(methods, X, Y, folds=3, n_jobs=n) for n in (1, 2))
    for method in methods:
        np.testing.assert_array_equal(one.values(method, "brier"), two.values(method, "brier"))
    assert [r["fold"] for r in two.records] == [0, 1, 2, 0, 1, 2] and two.methods == ["nb", "lda"]


def test_rows_of_any_kind():
    """What only a pipeline of the user can read is handed to it as it is."""
    texts = ["good fine", "bad poor", "fine good good", "poor bad"] * 5
    y = np.array(["+", "-"] * 10)
    pipe = make_pipeline(CountVectorizer(), MultinomialNB())
    cv = cross_validate({"pipe": pipe, "mixture": MixtureClassifier(1)}, texts, y, folds=2)
    assert cv.values("pipe", "error").max() == 0 and "Expected 2D array" in cv.failures["mixture"]


def test_a_list_of_classifiers_is_named_by_their_classes_and_y_may_be_a_column():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=Y)
    named = cross_validate({"GaussianNB": GaussianNB(), "GaussianNB 2": GaussianNB(var_smoothing=0.1)}, X, Y, folds=2)
    for table in (frame, pl.from_pandas(frame)):
        listed = cross_validate([GaussianNB(), GaussianNB(var_smoothing=0.1)], table, "kind", folds=2)
        assert listed.methods == named.methods
        np.testing.assert_array_equal(listed.values("GaussianNB 2", "error"), named.values("GaussianNB 2", "error"))


# --- groups -----------------------------------------------------------------------------------------------------------


def grouped(n_groups=30, seed=0):
    """Rows of patients of whom each has one class, and one value of a column."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_groups), rng.integers(2, 7, size=n_groups))
    y = (patient % 3 == 0).astype(int)
    return pd.DataFrame({"u": rng.normal(size=n_groups)[patient], "patient": patient}), y


@pytest.mark.parametrize("repeats", [1, 3])
def test_folds_do_not_split_a_group(repeats):
    X, y = grouped()
    cv = cross_validate({"naive": GaussianNB()}, X, y, folds=4, repeats=repeats, groups="patient")
    for tested in cv.folds:
        assert set(tested) == {0, 1, 2, 3}
        assert all(len(set(tested[X["patient"] == patient])) == 1 for patient in X["patient"].unique())
        assert all(len(np.unique(y[tested == fold])) == 2 for fold in range(4))  # spread as far as groups allow
    np.testing.assert_array_equal(cv.groups, X["patient"])


def test_the_column_of_groups_is_not_a_feature():
    X, y = grouped()
    by_name = cross_validate({"naive": GaussianNB()}, X, y, folds=3, groups="patient")
    apart = cross_validate({"naive": GaussianNB()}, X[["u"]], y, folds=3, groups=[f"p{i}" for i in X["patient"]])
    np.testing.assert_array_equal(by_name.proba["naive"], apart.proba["naive"])


def test_a_value_of_the_group_does_not_leak():
    X, y = grouped(60)
    split = cross_validate({"tree": DecisionTreeClassifier(random_state=0)}, X[["u"]], y)
    kept = cross_validate({"tree": DecisionTreeClassifier(random_state=0)}, X[["u"]], y, groups=X["patient"])
    assert split.values("tree", "error").mean() < 0.05 < 0.2 < kept.values("tree", "error").mean()


@pytest.mark.parametrize(
    ("groups", "match"), [([1, 2], "groups"), ([1.0] * 20 + [np.nan] * 20, "row 20"), ([1] * 40, "lower folds")]
)
def test_groups_that_cannot_be_used(groups, match):
    with pytest.raises(ValueError, match=match):
        cross_validate({"naive": GaussianNB()}, np.zeros((40, 1)), np.arange(40) % 2, groups=groups)


@pytest.mark.parametrize(("stage", "planned", "label"), [([0, 1], 3, "a (1 of 3 folds)"), ([0, 1, 2], None, "a")])
def test_folds_that_a_budget_did_not_reach_are_counted_as_planned(stage, planned, label):
    samples = read_samples(X, Y, None, None)
    folds = stratified_folds(Y, folds=3)

    def policy(runner):
        names = {0: "ab", 1: "b", 2: "b"} if planned else dict.fromkeys(range(3), "ab")
        runner.perform((name, split) for split in stage for name in names[split])
        runner.stage = stage

    methods = {name: Method(GaussianNB()) for name in "ab"}
    runner = Runner(methods, partial(score_fold, samples), splits_of(folds), policy=policy)
    cv = gathered(runner, samples, folds, 0)
    assert cv.n_planned == planned and cv.label("a") == label and cv.label("b") == "b"
