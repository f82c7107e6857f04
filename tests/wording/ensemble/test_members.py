"""Wording of ensemble, members."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from mixent import MaxEntStackingClassifier
from mixent.ensemble import OutputColumns
from mixent.ensemble.members import (
    output_of,
    read_members,
    stage_proba,
)
from mixent.ensemble.pmfs import pmf

from ...ensemble.test_members import NAN, TEXT


@pytest.mark.parametrize("given", ["abc", [], (), GaussianNB(), GaussianNB, None, 3, {"a": GaussianNB()}])
def test_anything_else_is_refused(given):
    with pytest.raises(
        ValueError, match="estimators must be a list of classifiers or of \\(name, classifier\\), or an"
    ):
        read_members(given, None, False)


def test_bases_that_are_no_classifiers_are_refused():
    with pytest.raises(TypeError, match="estimator must be a classifier with fit and predict; got LinearRegression"):
        read_members([LinearRegression()], None, False)
    with pytest.raises(TypeError, match="an instance of a classifier; got the class GaussianNB"):
        read_members([("a", GaussianNB)], None, False)
    with pytest.raises(TypeError, match="got bool"):
        read_members([("a", True)], None, False)
    with pytest.raises(ValueError, match="two classifiers named 'gaussiannb'; names must be unique"):
        read_members([GaussianNB(), ("gaussiannb", GaussianNB())], None, False)


def test_inputs_are_a_dict_of_columns_of_classifiers_that_there_are():
    bases = [("a", GaussianNB()), ("b", GaussianNB())]
    assert read_members(bases, {"b": (0, 2)}, False).inputs == {"b": [0, 2]}
    with pytest.raises(ValueError, match="inputs must be None or a dict, .* -> list of columns; got \\[0\\]"):
        read_members(bases, [0], False)
    with pytest.raises(ValueError, match="inputs: unknown classifier 'c'; the names are 'a', 'b'"):
        read_members(bases, {"c": [0]}, False)
    for columns in ("x", 3, []):
        with pytest.raises(ValueError, match="name -> list of columns; 'a' has"):
            read_members(bases, {"a": columns}, False)
    with pytest.raises(ValueError, match="inputs is only used with a list of classifiers"):
        read_members(RandomForestClassifier(), {"a": [0]}, False)


def test_cv_prefit_needs_fitted_classifiers(blobs):
    fitted = GaussianNB().fit(*blobs)
    with pytest.raises(ValueError, match="cv='prefit' requires fitted classifiers; 'b' is not fitted"):
        read_members([("a", fitted), ("b", GaussianNB())], None, True)
    with pytest.raises(ValueError, match="'RandomForestClassifier' is not fitted. .* wrap them in .*FrozenEstimator"):
        read_members(RandomForestClassifier(), None, True)


def test_needs_probabilities_and_r(blobs):
    X, y = blobs
    _soft, hard = GaussianNB().fit(X, TEXT[y]), RidgeClassifier().fit(X, TEXT[y])
    with pytest.raises(ValueError, match="requires predict_proba, which 'r' \\(RidgeClassifier\\) does not have; set"):
        output_of(hard, X, "soft", "r")


def test_probabilities_of_c_must_be_and_sum_to():
    for bad in ([0.7, 0.7], [1.5, -0.5], [np.inf, 0.0], [0.5, 0.6]):
        with pytest.raises(ValueError, match="probabilities of 'c' must be >= 0 and sum to 1, .*; row 1 has"):
            pmf(np.array([[0.2, 0.8], bad]), "c")


def test_an_ensemble_that_does_not_show_its_members_is_refused(blobs):
    class Closed(GaussianNB):
        n_estimators = 3

    model = Closed().fit(*blobs)
    with pytest.raises(ValueError, match="Closed has neither estimators_ nor stage_proba, .*; give a"):
        stage_proba(model, blobs[0])


def test_columns_that_cannot_be_read_are_refused():
    X = pd.DataFrame({"p": [0.25, 1.0], "q": [0.75, 0.5], "none": [None, None], "text": ["a", "b"]})
    with pytest.raises(ValueError, match="column 'none' is missing in every row; leave this classifier out"):
        OutputColumns("none").fit(X, [0, 1])
    with pytest.raises(ValueError, match="each of 3 classes, in sorted order; got \\['p', 'q'\\]; give 3 columns"):
        OutputColumns(["p", "q"]).fit(pd.concat([X, X]), [0, 1, 2, 0])
    with pytest.raises(
        ValueError, match="the probabilities of 'p, q' must be >= 0 and sum to 1, .*; row 1 has \\[1.0, 0.5\\]"
    ):
        OutputColumns(["p", "q"]).fit(X, [0, 1]).predict_proba(X)
    half = X.assign(q=[0.75, NAN])
    with pytest.raises(ValueError, match="in \\['p', 'q'\\] must be missing together; row 1 has"):
        OutputColumns(["p", "q"]).fit(half, [0, 1]).predict_proba(half)
    with pytest.raises(ValueError, match="column 'text' must hold probabilities; could not convert"):
        OutputColumns(["p", "text"]).fit(X, [0, 1]).predict_proba(X)
    for column, table in (("gone", X), (9, X.to_numpy()), ("p", X.to_numpy())):
        with pytest.raises(
            ValueError, match=f"X has no column {column!r}, which should hold the outputs of a classifier"
        ):
            OutputColumns(column).fit(table, [0, 1])
    with pytest.raises(NotFittedError):
        OutputColumns("p").predict_proba(X)


def test_nb_has_no_columns_to_learn_from(blobs):
    X, y = blobs
    table = pd.DataFrame(X, columns=["a", "b"]).assign(said=y)
    plain = MaxEntStackingClassifier([("nb", GaussianNB()), ("box", 2)], cv=3, random_state=0)
    plain.fit(table.to_numpy(), y)
    with pytest.raises(ValueError, match="'nb' has no input columns: all columns are outputs"):
        MaxEntStackingClassifier([("nb", GaussianNB()), ("box", "said")]).fit(table[["said"]], y)


def test_a_column_of_many_fractions_holds_no_labels():
    X = np.random.default_rng(0).random((50, 1))
    with pytest.raises(ValueError, match="column 0 must hold labels; got 50 different numbers, .*; give probabilities"):
        OutputColumns(0).fit(X, np.arange(50) % 2)
    OutputColumns(0).fit(np.round(20 * X), np.arange(50) % 2)


def test_an_error_says_whose_it_is(blobs):
    X, y = blobs
    with pytest.raises(ValueError) as caught:
        MaxEntStackingClassifier([("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=-1))]).fit(X, y)
    assert caught.value.__notes__ == ["in the training of 'tree'"]
    with pytest.raises(ValueError, match="inputs: X has no column 'agee'; its columns are 'a', 'b'"):
        MaxEntStackingClassifier([("nb", GaussianNB())], inputs={"nb": ["agee"]}).fit(
            pd.DataFrame(X, columns=["a", "b"]), y
        )
    with pytest.raises(ValueError, match="estimators contains None instead of a classifier; leave it out"):
        MaxEntStackingClassifier([("a", None)]).fit(X, y)
    mine = MaxEntStackingClassifier([("v", "said")], regions="union", inputs={"v": ["a"]}, prior_variance=1.0)
    mine.set_params(regions__max_components=1)
    mine.fit(pd.DataFrame(X, columns=["a", "b"]).assign(said=y), y)
    assert mine.regions_[0].columns == (0,)
