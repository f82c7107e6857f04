"""Wording of ensemble, maxent stacking."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from mixent import (
    MaxEntClassifier,
    MaxEntStackingClassifier,
)
from mixent.ensemble import OutputColumns
from mixent.options import InputRegions

from ...ensemble.test_maxent_stacking import TEXT, Growing, stacked


def test_no_class_has_two_labelled_rows(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="no class has two labelled rows, so none can be held out; give more rows, or"):
        MaxEntStackingClassifier([GaussianNB()]).fit(X[:3], y[:3])


def test_no_label_of_decisiontreeclassifier_down_up_is_a_class(blobs):
    X, y = blobs
    two = np.flatnonzero(y < 2)
    base = GaussianNB().fit(X, TEXT[y])
    for constraints in ("full", "diagonal"):
        model = MaxEntStackingClassifier([("nb", base)], cv="prefit", prior_variance=1.0, constraints=constraints)
        model.fit(X[two], TEXT[y[two]])
        assert model.base_classes_[0].tolist() == TEXT.tolist() and model.classes_.tolist() == ["low", "mid"]
        assert model.predict_proba(X).shape == (90, 2)
        zero = model.params_.cells == 0
        assert zero.tolist() == ([[False] * 2] * 3 if constraints == "full" else (np.eye(3)[:, :2] == 0).tolist())
    other = DecisionTreeClassifier(max_depth=2).fit(X, np.array(["up", "down"])[(X[:, 0] > 0).astype(int)])
    model = MaxEntStackingClassifier([other], cv="prefit", prior_variance=1.0)
    with pytest.warns(
        UserWarning, match="no label of 'decisiontreeclassifier' .'down', 'up'. is a class .0, 1, 2.: its labels"
    ):
        model.fit(X, y)


def test_decisions_soft_needs_probabilities_and_ridge(blobs):
    X, y = blobs
    bases = [("nb", GaussianNB()), ("ridge", RidgeClassifier())]
    with pytest.raises(ValueError, match="decisions='soft' requires predict_proba, which 'ridge'"):
        MaxEntStackingClassifier(bases, decisions="soft").fit(X, y)


def test_growing_takes_no_sample_weight(blobs):
    X, y = blobs
    folds = [(np.arange(60), np.arange(60, 90)), (np.arange(24, 90), np.arange(24))]
    model = MaxEntStackingClassifier(Growing(), cv=folds, prior_variance=1.0).fit(X, y)
    with pytest.warns(UserWarning, match="Growing does not support sample_weight and is trained without weights"):
        model.fit(X, y, np.ones(90))


def test_answers_are_no_input(placed):
    X, y = placed
    model = stacked(2, 2, regions="union", random_state=0).fit(X, y)
    assert model.regions_[0].columns == (4,)
    with pytest.raises(ValueError, match="regions require input columns, but all columns are outputs of classifiers"):
        stacked(2, 2, regions="union").fit(X[:, :4], y)
    with pytest.raises(ValueError, match="inputs: X has no column -1; its columns are 'x0', 'x1'"):
        MaxEntStackingClassifier([("a", GaussianNB())], inputs={"a": [-1]}, regions="union").fit(X, y)
    with pytest.raises(ValueError, match="estimators: X has no column -5; its columns are 'x0', 'x1'"):
        MaxEntStackingClassifier([("a", [-5, -4])], regions="union", cv="train").fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decisions": "firm"}, "decisions must be one of 'auto', 'soft', 'hard'; got 'firm'"),
        ({"constraints": "some"}, "constraints must be one of 'full', 'diagonal'; got 'some'"),
        (
            {"regions": "both"},
            "regions must be one of None, 'union', 'class', 'pooled', or an InputRegions; got 'both'",
        ),
        ({"regions": True}, "regions must be one of None, 'union', 'class', 'pooled', or an InputRegions; got True"),
        ({"solver": "cg"}, "solver must be one of 'auto', 'bohning', 'iis', 'lbfgs'; got 'cg'"),
        (
            {"prior_variance": 0.0},
            "prior_variance must be 'auto', None .* or a positive number; got 0.0",
        ),
        ({"prior_variance": "strong"}, "prior_variance must be 'auto', None .*; got 'strong'"),
        ({"tol": -1.0}, "tol must be a number >= 0; got -1.0"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1; got 0"),
        ({"regions": InputRegions(max_components=0)}, "max_components must be a whole number >= 1; got 0"),
        ({"regions": InputRegions(covariance="XYZ")}, "covariance .*'XYZ'"),
        ({"cv": "fold"}, "cv must be a whole number >= 2, .*'train' .* or 'prefit' .*; got 'fold'"),
        ({"cv": 1}, "cv must be a whole number >= 2, a splitter or a list of splits, or 'train' .*; got 1"),
        ({"class_prior": [0.5]}, "class_prior must be 'empirical' or 3 positive numbers"),
        ({"inputs": {"b": [0]}}, "inputs: unknown classifier 'b'; the names are 'gaussiannb'"),
        ({"cv": [([0, 1], [200])]}, "cv must give pairs \\(train, test\\) of the 90 labelled rows"),
        ({"cv": []}, "cv gives no split, or one that holds out no row"),
    ],
)
def test_options_are_checked(blobs, options, message):
    with pytest.raises(ValueError, match=message):
        MaxEntStackingClassifier([GaussianNB()], **options).fit(*blobs)


def test_what_cannot_be_learned_from_is_refused(blobs):
    X, y = blobs
    model = MaxEntStackingClassifier([GaussianNB()])
    with pytest.raises(
        ValueError,
        match="y must hold labels, because the classifiers cannot be trained on label probabilities; give lab",
    ):
        model.fit(X, 0.7 * np.eye(3)[y] + 0.1)
    with pytest.raises(ValueError, match="labelled rows of positive weight have one class; at least two classes"):
        model.fit(X, y, (y == 1).astype(float))
    with pytest.raises(ValueError, match="decisions='soft' requires predict_proba"):
        MaxEntStackingClassifier([RidgeClassifier()], decisions="soft").fit(X, y)
    with pytest.raises(ValueError, match="must be >= 0 and sum to 1"):
        stacked(1).fit(np.full((90, 3), 0.5), y)
    with pytest.raises(ValueError, match="cv='prefit' requires fitted classifiers; 'gaussiannb' is not fitted"):
        MaxEntStackingClassifier([GaussianNB()], cv="prefit").fit(X, y)


def test_knn_takes_no_sample_weight(blobs):
    X, y = blobs
    weight = 1.0 + np.arange(90) % 2
    bases = [("knn", KNeighborsClassifier(3)), ("said", OutputColumns(2))]
    wide = np.column_stack([X, y])
    with pytest.warns(UserWarning, match="^knn does not support sample_weight and is trained without weights$"):
        MaxEntStackingClassifier(bases, inputs={"knn": [0, 1]}, cv=3, prior_variance=1.0).fit(wide, y, weight)


def test_multipliers_without_end_are_told(make_answers):
    y = make_answers()[1]
    with pytest.warns(ConvergenceWarning, match="prior_variance=None: the classes look separable"):
        stacked(1, prior_variance=None).fit(np.eye(3)[y] * 0.98 + 0.02 / 3, y)
    with pytest.warns(
        ConvergenceWarning, match="multipliers have no finite optimum, because a value never occurs with"
    ):
        stacked(1, prior_variance=None, decisions="hard").fit(np.eye(3)[y], y)


def test_cv_holds_out_no_row_of_class(blobs):
    X, y = blobs
    fold = np.arange(90) // 3 % 3
    some = [(np.flatnonzero(fold != 0), np.flatnonzero(fold == 0))]
    base = GaussianNB().fit(X[fold != 0], y[fold != 0])
    by_hand = MaxEntClassifier(probabilistic={"p": [0, 1, 2]}, prior_variance=1.0)
    by_hand.fit(base.predict_proba(X[fold == 0]), y[fold == 0])
    without = [(train, held[y[held] > 0]) for train, held in some]
    with pytest.raises(ValueError, match="cv holds out no row of class 0; every class must be in a test fold"):
        MaxEntStackingClassifier([GaussianNB()], cv=without).fit(X, y)


def test_diagonal_constraints_need_labels_that_are_classes(blobs):
    _, y = blobs
    votes = pd.DataFrame({"v": pd.Series(y).map("v{}".format)})
    with pytest.warns(UserWarning, match="no label of 'v' .* is a class"):
        assert MaxEntStackingClassifier([("v", "v")]).fit(votes, y).score(votes, y) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(
            ValueError,
            match="'diagonal' requires labels that are classes .*; 'v' has .*; use constraints='full'",
        ):
            MaxEntStackingClassifier([("v", "v")], constraints="diagonal").fit(votes, y)
