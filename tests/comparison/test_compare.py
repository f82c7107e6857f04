"""One call: the same folds for all, nothing done twice, nothing beyond the budget, nothing depends on processes."""

import io
import json
import re
import time
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.naive_bayes import GaussianNB

import mixent
from mixent.comparison.live import _lines_on
from mixent.data import read_labels
from mixent.evaluate import cross_validate
from mixent.evaluate.journal import Outcome
from mixent.evaluate.runner import Method, Runner, Split
from mixent.evaluate.scores import METRICS

from .conftest import quick

FITS = []


class Counted(GaussianNB):
    """Notes every fit."""

    def fit(self, X, y, sample_weight=None):
        FITS.append(len(y))
        return super().fit(X, y, sample_weight)


class Slow(GaussianNB):
    """Takes its time."""

    def fit(self, X, y, sample_weight=None):
        time.sleep(0.2)
        return super().fit(X, y, sample_weight)


class Few(GaussianNB):
    """Cannot take all rows."""

    def fit(self, X, y, sample_weight=None):
        if len(y) > 60:
            raise MemoryError("too many")
        return super().fit(X, y, sample_weight)


class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise ValueError("out of luck")

    def predict_proba(self, X):
        raise AssertionError


def scores(comparison):
    return [{k: r[k] for k in ("method", "repeat", "fold", *METRICS)} for r in comparison.cv.records]


def test_scores_are_those_of_a_cross_validation(table, found):
    plain = cross_validate(quick(), *table, folds=4)
    assert set(found.skipped) == {"shares of classes"}  # clearly behind after two folds
    for method in quick():
        folds = 2 if method in found.skipped else 4
        for metric in METRICS:
            scores = found.cv.values(method, metric)
            np.testing.assert_array_equal(scores[:folds], plain.values(method, metric)[:folds])
            assert np.isnan(scores[folds:]).all()
        rows = found.cv.folds[0] < folds
        np.testing.assert_array_equal(found.cv.proba[method][rows], plain.proba[method][rows])
        assert np.isnan(found.cv.proba[method][~rows]).all()


def test_processes_change_nothing_but_seconds(table, found):
    two = mixent.compare(*table, methods=quick(), baselines=False, n_jobs=2, folds=4)
    assert scores(two) == scores(found) and two.recommendation.headline == found.recommendation.headline


def test_the_winner_is_fitted_to_all_rows(table, found):
    X, y = table
    again = clone(quick()[found.recommended]).fit(X, y)
    np.testing.assert_array_equal(found.winner.predict_proba(X), again.predict_proba(X))
    assert mixent.compare(X, y, methods=quick(), baselines=False, n_jobs=1, refit=False).winner is None


def test_rows_without_a_label_are_trained_on_and_never_scored(table):
    X, y = table
    y = np.where(np.arange(len(y)) % 5 == 0, None, y)
    models = {"mixture": mixent.MixtureClassifier(1, "VVI"), "naive": GaussianNB()}
    comparison = mixent.compare(X, y, methods=models, baselines=False, n_jobs=1, folds=3)
    assert (
        np.isnan(comparison.cv.proba["mixture"][::5]).all() and np.isfinite(comparison.cv.proba["mixture"][1::5]).all()
    )
    assert {r["method"]: r["labelled_only"] for r in comparison.cv.records} == {"mixture": False, "naive": True}
    assert "18 rows without a label" in str(comparison.shape)


def test_weights_reach_fits_and_scores(table):
    X, y = table
    weight = 1.0 + np.arange(len(y)) % 4
    comparison = mixent.compare(X, y, methods=quick(), baselines=False, n_jobs=1, folds=3, sample_weight=weight)
    plain = cross_validate(quick(), X, y, folds=3, sample_weight=weight)
    np.testing.assert_array_equal(comparison.cv.values("naive", "log_loss"), plain.values("naive", "log_loss"))
    assert comparison.shape.weighted
    again = GaussianNB().fit(X, y, weight)
    alone = mixent.compare(X, y, methods={"naive": GaussianNB()}, baselines=False, n_jobs=1, sample_weight=weight)
    np.testing.assert_array_equal(alone.winner.theta_, again.theta_)


def test_a_method_that_fails_loses_only_itself(table):
    comparison = mixent.compare(*table, methods={**quick(), "broken": Broken()}, baselines=False, n_jobs=1, folds=3)
    assert comparison.cv.failures == {"broken": "ValueError: out of luck"} and "broken" not in comparison.ranking()
    with pytest.raises(RuntimeError, match="broken"):
        mixent.compare(*table, methods={"broken": Broken()}, baselines=False, n_jobs=1, folds=3)


def test_a_refit_that_fails_does_not_lose_the_rest(table):
    comparison = mixent.compare(*table, methods={"naive": Few()}, baselines=False, n_jobs=1, folds=3)
    assert comparison.winner is None


# --- journal ----------------------------------------------------------------------------------------------------------


def test_stopped_and_resumed_is_one_run(table, found, tmp_path):
    path = tmp_path / "folds.jsonl"

    def stop(done, total, text):
        if done == 5:
            raise KeyboardInterrupt

    options = {"methods": quick(), "baselines": False, "n_jobs": 1, "folds": 4, "journal": path}
    with pytest.raises(KeyboardInterrupt):
        mixent.compare(*table, **options, progress=stop)
    assert len(path.read_text().splitlines()) == 1 + 5
    again = mixent.compare(*table, **options)
    assert scores(again) == scores(found)
    for name in quick():
        np.testing.assert_array_equal(again.cv.proba[name], found.cv.proba[name])


def test_finished_folds_are_not_fitted_again(table, tmp_path):
    options = {"baselines": False, "n_jobs": 1, "folds": 3, "journal": tmp_path / "j", "refit": False}
    FITS.clear()
    mixent.compare(*table, methods={"naive": Counted()}, **options)
    assert len(FITS) == 3
    mixent.compare(*table, methods={"naive": Counted()}, **options)
    assert len(FITS) == 3
    mixent.compare(
        *table, methods={"naive": Counted(var_smoothing=0.1)}, **options
    )  # another setting is another method
    assert len(FITS) == 6


def test_a_line_cut_short_is_done_again(table, found, tmp_path):
    path = tmp_path / "j"
    options = {"methods": quick(), "baselines": False, "n_jobs": 1, "folds": 4, "journal": path, "refit": False}
    mixent.compare(*table, **options)
    path.write_text(path.read_text()[:-30])
    assert scores(mixent.compare(*table, **options)) == scores(found)
    assert all(json.loads(line) for line in path.read_text().splitlines()[-1:])


def test_a_fold_that_failed_is_tried_again(table, tmp_path):
    options = {"baselines": False, "n_jobs": 1, "folds": 3, "journal": tmp_path / "j", "refit": False}
    mixent.compare(*table, methods={"naive": GaussianNB(), "broken": Broken()}, **options)
    assert "broken" not in (tmp_path / "j").read_text()


# --- budget -----------------------------------------------------------------------------------------------------------


def test_a_method_begins_only_while_those_that_have_begun_can_finish(table):
    methods = {"slow": Slow(), "late": Slow(var_smoothing=1e-3)}
    comparison = mixent.compare(*table, methods=methods, baselines=False, n_jobs=1, folds=3, budget=1.0, refit=False)
    assert comparison.recommended == "slow"


def test_with_a_budget_cheap_methods_are_first(table, tmp_path):
    path = tmp_path / "j"
    names = ["maximum entropy", "linear MED", "Parzen window"]
    mixent.compare(*table, methods=names, baselines=False, n_jobs=1, folds=2, budget=60, journal=path, refit=False)
    order = [json.loads(line)["record"]["method"] for line in path.read_text().splitlines()[1:4]]
    assert order == ["Parzen window", "linear MED", "maximum entropy"]


def test_a_method_that_fails_is_not_the_quickest(table):
    methods = {"broken": Broken(), "slow": Slow()}
    comparison = mixent.compare(*table, methods=methods, baselines=False, n_jobs=1, folds=3, budget=0.3, refit=False)
    assert comparison.recommended == "slow" and "broken" in comparison.cv.failures


def test_folds_in_the_journal_cost_nothing(table, tmp_path):
    methods = {"slow": Slow(), "naive": GaussianNB()}
    options = {
        "methods": methods,
        "baselines": False,
        "n_jobs": 1,
        "folds": 4,
        "journal": tmp_path / "j",
        "refit": False,
    }
    mixent.compare(*table, **options)
    comparison = mixent.compare(*table, **options, budget=0.3)
    assert set(comparison.cv.methods) == set(methods) and "lack of time" not in str(comparison.recommendation)


def test_one_method_stays_whatever_the_budget(table):
    comparison = mixent.compare(
        *table, methods={"slow": Slow()}, baselines=False, n_jobs=1, folds=2, budget=0.3, refit=False
    )
    assert comparison.recommended == "slow"


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_is_told(table):
    result, options = [], {"methods": quick(), "baselines": False, "n_jobs": 1, "folds": 2}
    found = mixent.compare(*table, **options, progress=lambda *a: result.append(a))
    assert result[-2:] == [(6, 6, "3 of 3 methods done"), (6, 6, f"fitting {found.recommended} to all rows")]
    assert [d for d, _, _ in result] == sorted(d for d, _, _ in result)


def test_a_log_of_a_budget_goes_on_after_the_first_stage(table):
    from rich.console import Console

    console = Console(record=True, width=100, file=io.StringIO())
    mixent.compare(*table, methods=quick(), baselines=False, n_jobs=1, folds=3, budget=60.0, progress=console)
    lines = console.export_text().splitlines()
    assert [f"fold {k} of 3" for k in (1, 2, 3)] == list(dict.fromkeys(line.split(":")[0] for line in lines[:-1]))
    assert all(re.search(r"\d of \d methods? done, \d+ s of", line) for line in lines[:-1])
    assert lines[-1].startswith("fitting ")


def test_a_stage_to_which_methods_are_added_is_shown_again():
    from rich.console import Console

    console = Console(record=True, width=100, file=io.StringIO())
    runner = Runner({name: Method(name) for name in "abc"}, None, [Split(0, 0, np.arange(2), np.arange(1))])
    runner.rung, show = 0, _lines_on(console)
    for n_planned, done in ((2, "ab"), (3, "abc")):
        runner.planned = {(name, 0) for name in "abc"[:n_planned]}
        runner.outcomes |= {name: {0: Outcome({"fit_seconds": 0.1, "failed": None}, None)} for name in done}
        show(runner)
    assert [line[13:19] for line in console.export_text().splitlines()] == ["2 of 2", "3 of 3"]


def test_the_live_table(table):
    from rich.console import Console

    console = Console(record=True, width=100, force_terminal=True, file=io.StringIO())
    mixent.compare(*table, methods=quick(), baselines=False, n_jobs=1, folds=2, progress=console)
    text = console.export_text()
    assert "shares of classes" in text and "2 / 2" in text and "log-loss" in text


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_problems_are_shown_before_anything_is_fitted(table, capsys):
    X, y = table
    seen = []

    class Watched(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append(capsys.readouterr().err)
            return super().fit(X, y, sample_weight)

    X = X.assign(number=np.arange(len(X)))
    options = {"baselines": False, "n_jobs": 1, "folds": 2, "refit": False, "progress": True}
    result = mixent.compare(X, y, methods={"watched": Watched()}, **options)
    assert result.problems and "'number'" in seen[0] and not any("'number'" in text for text in seen[1:])


def test_the_class_frequencies_are_in_the_table_and_run_in_every_fold(table):
    X, y = table
    names = ["logistic regression", "most frequent class"]
    result = mixent.compare(X, y, methods=names, baselines=False, n_jobs=1, folds=4, refit=False)
    assert result.ranking() == names and result.skipped == {}
    shares = np.array([(y[result.cv.folds[0] != 0] == c).mean() for c in "abc"])
    np.testing.assert_allclose(result.cv.proba["most frequent class"][result.cv.folds[0] == 0], [shares] * 23)


def test_a_method_that_fails_in_one_fold_is_scored_on_the_others(table):
    FITS.clear()
    methods = {**quick(), "once": FailsOnce()}
    result = mixent.compare(*table, methods=methods, baselines=False, n_jobs=1, folds=4, refit=False)
    assert np.isfinite(result.cv.values("once", "log_loss")).tolist() == [False, True, True, True]
    assert "once" not in result.ranking() and result.cv.label("once") == "once (3 of 4 folds)"


class FailsOnce(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        FITS.append(len(y))
        if len(FITS) == 1:
            raise ValueError("once")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("budget", [None, 60.0])
def test_the_highest_auc_is_recommended(table, budget):
    result = mixent.compare(
        *table, methods=quick(), baselines=False, n_jobs=1, folds=3, metric="auc", budget=budget, refit=False
    )
    means = {m: result.cv.values(m, "auc").mean() for m in result.ranking()}
    assert list(means) == sorted(means, key=means.get, reverse=True) and result.recommended == next(iter(means))
    assert set(means) == set(quick()) and 0.5 <= min(means.values()) <= max(means.values()) <= 1
    tests = result.tests()
    assert (tests["mean"] >= 0).all()


def test_the_auc_leaves_out_folds_of_one_class():
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(57, dtype=int), [1, 1, 1]]
    X = rng.normal(size=(60, 2)) + y[:, None]
    with pytest.warns(UserWarning, match="missing from"):
        result = mixent.compare(X, y, methods={"naive": GaussianNB()}, baselines=False, n_jobs=1, metric="auc")
    assert len(result.cv.values("naive", "auc")) == 3 and np.isfinite(result.cv.values("naive", "auc")).all()


@pytest.mark.parametrize("through", ["compare", "cross_validate"])
def test_notes_on_columns_and_labels_are_one_warning(through):
    rng = np.random.default_rng(0)
    y = np.r_[-1, np.arange(59) % 2]
    X = np.c_[rng.normal(size=(60, 2)) + y[:, None], np.ones(60)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if through == "compare":
            mixent.compare(X, y, methods=quick(), baselines=False, n_jobs=1, folds=2)
        else:
            cross_validate(quick(), X, y, folds=2, n_jobs=1)
    (warning,) = [entry for entry in caught if issubclass(entry.category, mixent.DataWarning)]
    assert warning.message.notes[1:] == read_labels(y, 60).notes and "x2" in warning.message.notes[0]
    assert warning.filename == __file__
