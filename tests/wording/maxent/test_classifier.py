"""Wording of maxent, classifier."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import MaxEntClassifier
from mixent.maxent import forward_selection
from mixent.options import BinFeatures, ComponentFeatures, ForwardSelection


def test_prior_variance_none(votes):
    X, y = votes
    lonely = X.assign(mark=np.where(np.arange(len(y)) == np.flatnonzero(y == "no")[0], "once", "often"))
    with pytest.warns(ConvergenceWarning, match=r"prior_variance=None: 2 multipliers.*mark = once with maybe"):
        MaxEntClassifier(prior_variance=None).fit(lonely, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"features": "hidden"},
            "features must be one of 'union', 'class', 'pooled', 'bins', 'moments', or a Comp.*got 'hidden'",
        ),
        ({"solver": "newton"}, "solver must be one of"),
        ({"prior_variance": -1.0}, "prior_variance must be"),
        ({"prior_variance": "weak"}, "prior_variance must be"),
        ({"selection": "forward"}, "selection must be one of None, 'bic', 'validation', or a ForwardSelection; got"),
        ({"selection": ForwardSelection("aic")}, "criterion must be one of 'bic', 'validation'; got 'aic'"),
        ({"selection": ForwardSelection("validation", validation=1.0)}, "validation must be a share"),
        ({"selection": ForwardSelection(validation=0.3)}, "validation=0.3 is only used with criterion='validation'"),
        ({"features": ComponentFeatures("own")}, "kind must be one of 'union', 'class', 'pooled'; got 'own'"),
        ({"features": ComponentFeatures(max_components=0)}, "max_components must be a whole number >= 1; got 0"),
        ({"features": ComponentFeatures(means="yes")}, "means must be True or False; got 'yes'"),
        ({"features": BinFeatures("wide")}, "strategy must be one of 'quantile', 'uniform', 'entropy'; got 'wide'"),
        ({"features": BinFeatures(n_bins=0)}, "n_bins must be a whole number >= 1; got 0"),
        ({"solver": "iis"}, "solver='iis' requires non-negative features; set features=ComponentFeatures"),
        (
            {"features": "class", "pairs": [("color", "number")]},
            r"the feature 'number' cannot be paired with features=ComponentFeatures\(kind='class'\)",
        ),
        ({"pairs": [("color", "size"), ("size", "color")]}, "pairs contains the same pair twice"),
        ({"features": "moments", "solver": "iis"}, "solver='iis' requires non-negative features, but moments"),
        (
            {"features": ComponentFeatures(groups="all")},
            "groups must be None, 'auto' or a list of lists of columns; got 'all'",
        ),
        (
            {"features": ComponentFeatures(groups=[["number"]])},
            r"groups must be a list of lists of at least two columns; got the element \['number'\]",
        ),
        (
            {"features": ComponentFeatures(groups=[["number", "nothing"]])},
            "groups: X has no column 'nothing'; its columns are",
        ),
        (
            {"features": ComponentFeatures(groups=[["number", "color"]])},
            "groups: column 'color' is categorical; a numeric column is required",
        ),
        ({"features": ComponentFeatures(groups=[["number", "number"]])}, "groups uses a column twice"),
        ({"pairs": "every"}, "pairs must be 'auto', None or a list of pairs of feature names; got 'every'"),
        ({"pairs": [("color",)]}, "pairs must be 'auto', None or a list of pairs of feature names; got"),
        ({"pairs": [("color", "taste")]}, "pairs: unknown feature 'taste'; the features are 'color'"),
        (
            {"probabilistic": ["a"]},
            "probabilistic must be a dict, .* list of at least two columns, or None; got",
        ),
        ({"probabilistic": {"p": ["number"]}}, "list of at least two columns; 'p' has"),
        ({"probabilistic": {"p": ["number", "number"]}}, r"probabilistic\['p'\] uses a column twice"),
        (
            {"probabilistic": {"size": ["number", "other"]}},
            "probabilistic: the name 'size' is already used by another feature",
        ),
        ({"probabilistic": {"p": ["number", "other"]}}, "the probabilities of feature 'p' must be >= 0 and sum to 1"),
        ({"selection": ForwardSelection("validation", validation=0.0001)}, "holds out none or all of them; give more"),
    ],
)
def test_messages_say_what_to_do(mixed, options, message):
    X, y = mixed
    with pytest.raises(ValueError, match=message):
        MaxEntClassifier(**options).fit(X, y)


def test_labels_must_say_something(votes):
    X, y = votes
    with pytest.raises(ValueError, match="y has no informative label"):
        MaxEntClassifier().fit(X, np.full((len(y), 2), 0.5))
    some = y.astype(object)
    some[10:] = None
    with pytest.raises(ValueError, match="every labelled row has sample_weight 0"):
        MaxEntClassifier().fit(X, some, np.r_[np.zeros(10), np.ones(len(y) - 10)])


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_folds_must_teach_every_class(votes):
    X, y = votes
    order = np.argsort(y, kind="stable")
    thirds = [(np.setdiff1d(order, part), part) for part in np.array_split(order, 3)]
    with pytest.raises(ValueError, match="cv: a training fold has no row of class"):
        MaxEntClassifier(cv=thirds).fit(X, y)
    weight = np.ones(len(y))
    weight[:50] = 0
    with pytest.raises(ValueError, match="cv: all rows of a test fold have sample_weight 0"):
        MaxEntClassifier(cv=[(np.arange(50, 400), np.arange(50))] * 2).fit(X, y, weight)
    heavy = MaxEntClassifier().fit(X[:2], y[[0, int(np.flatnonzero(y != y[0])[0])]], [100.0, 100.0])
    assert heavy.prior_variances_tried_ == []


def test_pmfs_within_pairs_are_checked(votes):
    X, y = votes
    pmf = pd.get_dummies(X["color"], prefix="p").astype(float)
    table = X.join(pmf)
    model = MaxEntClassifier(probabilistic={"f": list(pmf.columns)}, pairs=[("shape", "f")], prior_variance=1.0).fit(
        table, y
    )
    with pytest.raises(ValueError, match="the probabilities of feature 'f' must be >= 0 and sum to 1"):
        model.predict(table.assign(p_red=7.0))


def test_counts_pairs_of_at_most_cells_and_there_are(votes, monkeypatch):
    X, y = votes
    monkeypatch.setattr(forward_selection, "WIDEST", 5)
    with pytest.raises(
        ValueError, match="counts pairs of at most 5 values, but the features have 9; set pairs=None, or leave out"
    ):
        MaxEntClassifier(selection="bic").fit(X, y)
