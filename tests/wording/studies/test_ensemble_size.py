"""Wording of studies, ensemble size."""

import pytest
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixent.studies import size_curves

from ...studies.test_ensemble_size import COUNT, SIZES, Breaks, Counted, X, Y


@pytest.fixture(autouse=True)
def _empty():
    COUNT.clear()


def test_mean_over_folds_by_ensemble_size():
    makers = {"ada": AdaBoostClassifier(random_state=0), "bag": BaggingClassifier(GaussianNB(), random_state=0)}
    curves = size_curves(makers, X, Y, sizes=SIZES, folds=5)
    result = str(curves).splitlines()
    assert result[0] == "Mean over 5 folds by ensemble size (standard error)"


def test_bad_failed_in_some_folds_so_there_is_no_test():
    makers = {"bad": lambda size: GaussianNB() if size < 8 else Breaks(), "good": AdaBoostClassifier(random_state=0)}
    curves = size_curves(makers, X, Y, sizes=SIZES, folds=2)
    with pytest.raises(ValueError, match="bad failed in some folds and cannot be tested; first error: Zero"):
        curves.difference("bad", "good", size=3)
    with pytest.raises(RuntimeError, match="every method failed in every fold. bad: ZeroDivisionError: no luck"):
        size_curves({"bad": lambda size: Breaks()}, X, Y, sizes=[1, 2], folds=2)


class Silent(Counted):
    def staged_predict_proba(self, X):
        return iter(())


def test_an_ensemble_without_a_stage_is_a_failure():
    with pytest.raises(RuntimeError, match="Silent.staged_predict_proba returned no stage"):
        size_curves({"silent": Silent(random_state=0)}, X, Y, sizes=[2], folds=2)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"makers": {}}, ValueError, "makers must be a dict, name -> maker; got {}"),
        ({"makers": AdaBoostClassifier()}, ValueError, "makers must be a dict, name -> maker; got AdaBoost"),
        ({"makers": {"a": AdaBoostClassifier}}, TypeError, "'a' is the class AdaBoostClassifier; give an instance"),
        ({"makers": {"a": 3}}, TypeError, "'a' must be a classifier with n_estimators, or a callable of a size; got 3"),
        ({"makers": {"a": GaussianNB()}}, TypeError, "'a' is a GaussianNB, which has no parameter n_estimators"),
        (
            {"makers": {"a": make_pipeline(StandardScaler(), GaussianNB())}},
            TypeError,
            "'a' is a Pipeline, which has no parameter gaussiannb__n_estimators; give a callable",
        ),
        ({"sizes": []}, ValueError, "sizes is empty; give numbers of estimators"),
        ({"sizes": [0, 3]}, ValueError, "each of sizes must be a whole number >= 1; got 0"),
        ({"y": Y[:100]}, ValueError, "X has 150 rows, y has 100"),
    ],
)
def test_bad_input_says_what_to_do(change, error, message):
    given = {"makers": {"ada": AdaBoostClassifier()}, "X": X, "y": Y, "sizes": [2]} | change
    with pytest.raises(error, match=message):
        size_curves(given.pop("makers"), given.pop("X"), given.pop("y"), **given)


def test_what_was_not_measured_is_refused():
    curves = size_curves({"ada": AdaBoostClassifier(random_state=0)}, X, Y, sizes=[2, 4], folds=2)
    with pytest.raises(ValueError, match="unknown method 'x'; choose one of 'ada'"):
        curves.values("x")
    with pytest.raises(ValueError, match="metric must be one of 'error', .*; got 'accuracy'"):
        curves.mean("ada", "accuracy")
    with pytest.raises(ValueError, match="size must be one of .2, 4.; got 3"):
        curves.difference("ada", "ada", size=3)
