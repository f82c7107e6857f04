"""Scores by ensemble size: reading stages is fitting each size, and all methods see the same folds."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, GradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from mixent.evaluate import cross_validate
from mixent.studies import size_curves

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
SIZES = [1, 3, 8]
COUNT = []


class Counted(AdaBoostClassifier):
    def fit(self, X, y, sample_weight=None):
        COUNT.append(self.n_estimators)
        return super().fit(X, y, sample_weight)


@pytest.fixture(autouse=True)
def _empty():
    COUNT.clear()


def test_stages_are_ensembles_of_each_size():
    makers = {"ada": Counted(random_state=0), "boosted": GradientBoostingClassifier(max_depth=1, random_state=0)}
    curves = size_curves(makers, X, Y, sizes=SIZES, folds=3, repeats=2, random_state=1)
    assert COUNT == [8] * 6  # fitted once in each fold
    for name, maker in makers.items():
        for s, size in enumerate(SIZES):
            alone = {name: maker.__class__(**maker.get_params() | {"n_estimators": size})}
            cv = cross_validate(alone, X, Y, folds=3, repeats=2, random_state=1)
            for metric in ("error", "log_loss"):
                np.testing.assert_allclose(curves.values(name, metric)[:, s], cv.values(name, metric), rtol=1e-9)
    assert all(r["staged"] and r["reached"] == r["size"] and r["fit_seconds"] > 0 for r in curves.records)


def test_others_are_fitted_at_each_size_on_the_same_folds():
    bag = BaggingClassifier(GaussianNB(), random_state=0)
    makers = {"bag": bag, "named": lambda size: BaggingClassifier(GaussianNB(), size, random_state=0)}
    makers["pipe"] = make_pipeline(StandardScaler(), bag)
    curves = size_curves(makers, X, Y, sizes=[8, 3], folds=3)
    assert curves.sizes.tolist() == [3, 8] and curves.methods == ["bag", "named", "pipe"]
    np.testing.assert_array_equal(curves.values("bag"), curves.values("named"))
    np.testing.assert_allclose(curves.values("bag", "log_loss"), curves.values("pipe", "log_loss"), rtol=1e-6)
    assert not any(r["staged"] for r in curves.records)
    assert bag.n_estimators == 10  # what was given is not touched


def test_options_that_go_with_the_size_forbid_reading_stages():
    makers = {
        "shrunk": lambda size: Counted(n_estimators=size, learning_rate=1 / size, random_state=0),
        "same": lambda size: Counted(n_estimators=size, random_state=0),
        "other": lambda size: Counted(n_estimators=3, random_state=0) if size < 8 else GaussianNB(),
    }
    curves = size_curves(makers, X, Y, sizes=SIZES, folds=2)
    staged = {name: [r["staged"] for r in curves.records if r["method"] == name] for name in makers}
    assert not any(staged["shrunk"]) and all(staged["same"]) and not any(staged["other"])
    assert COUNT == [1, 3, 8, 8, 3, 3] * 2


def test_an_ensemble_that_stopped_early_keeps_its_last_value():
    easy = AdaBoostClassifier(DecisionTreeClassifier(random_state=0), random_state=0)  # without an error: one stage
    curves = size_curves({"easy": easy}, X, Y, sizes=[1, 5, 9], folds=3)
    values = curves.values("easy", "log_loss")
    np.testing.assert_array_equal(values, values[:, :1].repeat(3, axis=1))
    assert {r["reached"] for r in curves.records} == {1} and {r["size"] for r in curves.records} == {1, 5, 9}


def test_one_size_alone():
    curves = size_curves({"ada": Counted(random_state=0)}, X, Y, sizes=[4], folds=2)
    assert COUNT == [4, 4] and curves.values("ada").shape == (2, 1)


def test_means_errors_and_differences():
    makers = {"ada": AdaBoostClassifier(random_state=0), "bag": BaggingClassifier(GaussianNB(), random_state=0)}
    curves = size_curves(makers, X, Y, sizes=SIZES, folds=5)
    values = curves.values("ada", "log_loss")
    np.testing.assert_allclose(curves.mean("ada", "log_loss"), values.mean(axis=0))
    np.testing.assert_allclose(
        curves.std_error("ada", "log_loss"), np.sqrt((1 / 5 + 1 / 4) * values.var(axis=0, ddof=1))
    )
    result = curves.difference("ada", "bag", size=3, metric="log_loss")
    np.testing.assert_allclose(result.differences, values[:, 1] - curves.values("bag", "log_loss")[:, 1], atol=1e-11)
    assert result.names == ("ada", "bag") and result.test_ratio == 0.25 and result.metric == "log_loss"
    outcome = str(curves).splitlines()
    assert outcome[1].split() == ["error,", "%", "1", "3", "8"] and outcome[4].split()[:2] == ["log-loss,", "nats"]
    assert outcome[2].startswith("ada") and f"{100 * curves.mean('ada')[0]:.2f} (" in outcome[2]
    assert len({len(line) for line in outcome[1:4]}) == 1 and len(repr(curves)) < 200


class Breaks(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        raise ZeroDivisionError("no luck")


def test_a_method_that_fails_loses_nothing_of_the_others():
    makers = {"bad": lambda size: GaussianNB() if size < 8 else Breaks(), "good": AdaBoostClassifier(random_state=0)}
    curves = size_curves(makers, X, Y, sizes=SIZES, folds=2)
    assert curves.failures == {"bad": "ZeroDivisionError: no luck"}
    assert np.isnan(curves.values("bad")).tolist() == [[False, False, True]] * 2
    assert np.isfinite(curves.values("good")).all() and "bad failed: ZeroDivisionError: no luck" in str(curves)
    with pytest.raises(ValueError, match="bad failed"):
        curves.difference("bad", "good", size=3)
    with pytest.raises(RuntimeError, match="every method failed"):
        size_curves({"bad": lambda size: Breaks()}, X, Y, sizes=[1, 2], folds=2)


def test_weights_gaps_and_progress():
    result, y = [], Y.astype(object)
    y[::10] = None
    weight = 1.0 + np.arange(150) % 2
    makers = {"ada": AdaBoostClassifier(random_state=0)}
    curves = size_curves(
        makers, X, y, sizes=[5], folds=3, sample_weight=weight, progress=lambda *said: result.append(said)
    )
    cv = cross_validate(
        {"ada": AdaBoostClassifier(n_estimators=5, random_state=0)}, X, y, folds=3, sample_weight=weight
    )
    np.testing.assert_allclose(curves.values("ada", "brier")[:, 0], cv.values("ada", "brier"), rtol=1e-12)
    assert result[1] == (1, 3, "ada, fold 1 of 3") and result[-1] == (3, 3, "ada, fold 3 of 3")


def test_a_finished_fold_is_not_fitted_again(tmp_path):
    makers, path = {"ada": AdaBoostClassifier(random_state=0)}, tmp_path / "folds.jsonl"
    first = size_curves(makers, X, Y, sizes=[2, 4], folds=3, journal=path)
    same = {"ada": lambda size: AdaBoostClassifier(n_estimators=size, random_state=0)}
    again = size_curves(same, X, Y, sizes=[2, 4], folds=3, journal=path)
    assert again.records == first.records  # seconds, too
    assert size_curves(makers, X, Y, sizes=[2, 5], folds=3, journal=path).sizes.tolist() == [2, 5]
    assert len(path.read_text().splitlines()) == 1 + 6
