"""Wording of med, tree classifier."""

import numpy as np
import pytest

from mixent import MEDTreeClassifier
from mixent.options import Margin, Tables, Trees

from ...med.test_tree_classifier import PLAIN, words


def test_no_solution_keeps_the_fixed_margin_in_every_row():
    X, y = words(60)
    with pytest.raises(ValueError, match="no solution satisfies the fixed margin 1e\\+03 for every row"):
        MEDTreeClassifier(margin=Margin("fixed", target=1e3), calibration=None).fit(X, y)


def test_mutual_information_needs_fixed_tables():
    model = MEDTreeClassifier("integrated", **PLAIN).fit(*words(90, 3))
    with pytest.raises(AttributeError, match="mutual_information_ is only defined with tables='fixed'"):
        _ = model.mutual_information_


def test_values_not_seen_at_fit():
    X, y = words()
    model = MEDTreeClassifier(**PLAIN).fit(X, y)
    with pytest.warns(UserWarning, match="column 'b' has values not seen at fit"):
        model.predict_proba(X.head(3).assign(b="new"))


BAD = [
    ({"tables": "free"}, "tables must be one of 'fixed', 'integrated', or a Tables; got 'free'"),
    (
        {"margin": "hinge"},
        "margin must be one of 'exponential', 'laplace', 'gaussian', 'fixed', or a Margin; got 'hinge'",
    ),
    ({"objective": "loss"}, "objective must be one of 'margin', 'likelihood'; got 'loss'"),
    ({"trees": "one"}, "trees must be one of 'separate', 'shared', or a Trees; got 'one'"),
    ({"trees": Trees("one")}, "trees must be one of 'separate', 'shared'; got 'one'"),
    ({"tables": Tables("free")}, "tables must be one of 'fixed', 'integrated'; got 'free'"),
    ({"trees": Trees(structure_prior="flat")}, "structure_prior must be one of 'uniform', 'posterior'; got 'flat'"),
    (
        {"tables": Tables(continuous="binned")},
        "continuous must be one of 'auto', 'gaussian', 'quantized'; got",
    ),
    ({"trees": Trees(n_trees=0)}, "n_trees must be a whole number >= 1"),
    ({"tables": Tables(ess=0.0)}, "ess must be a number > 0"),
    (
        {"margin": Margin("laplace", quantile="a")},
        "quantile of the margin must be a number from 0 to 1, or None",
    ),
    (
        {"tables": "integrated", "objective": "likelihood"},
        "objective='likelihood' needs tables='fixed'; got tables='integrated'",
    ),
    (
        {"tables": "integrated", "trees": "shared"},
        "trees='shared' needs tables='fixed'; got tables='integrated'",
    ),
    (
        {"tables": Tables("integrated", continuous="gaussian")},
        "continuous='gaussian' needs tables='fixed'; got tables='integrated'",
    ),
    ({"trees": Trees("shared", n_trees=2)}, "trees='shared' needs n_trees=1; got n_trees=2"),
    (
        {"trees": Trees(n_trees=2), "tables": Tables(continuous="gaussian")},
        "continuous='gaussian' needs n_trees=1",
    ),
    ({"C": -1.0}, "C must be a number > 0"),
    ({"calibration": "sigmoid"}, "calibration must be one of 'temperature', 'affine', or None; got 'sigmoid'"),
    ({"relaxation": 0.0}, "relaxation must be the step size of label updates"),
    ({"bias": "wide"}, "bias must be 'flat', or the variance of its Gaussian prior, > 0; got 'wide'"),
    ({"tol": 0.0}, "tol must be a number > 0"),
    ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options_are_refused_in_words(options, message):
    with pytest.raises(ValueError, match=message):
        MEDTreeClassifier(**options).fit(*words(40))


UNUSED = [
    ({"objective": "likelihood", "C": 3.0}, "C=3.0 has no effect; it is only used with objective='margin'"),
    ({"objective": "likelihood", "margin": "gaussian"}, "margin='gaussian' .* only used with objective='margin'"),
    (
        {"objective": "likelihood", "trees": Trees(structure_prior="posterior")},
        "structure_prior='posterior' has no effect; it is only used with objective='margin'",
    ),
]


@pytest.mark.parametrize(("options", "message"), UNUSED)
def test_options_without_effect_are_named_and_have_none(options, message):
    X, y = words(40)
    plain = {"objective": "likelihood", "random_state": 0}
    with pytest.warns(UserWarning, match=message):
        model = MEDTreeClassifier(**{**plain, **options}).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), MEDTreeClassifier(**plain).fit(X, y).predict_proba(X))


def test_edges_are_explained_with_fixed_tables_only():
    X, y = words(40)
    model = MEDTreeClassifier("integrated", C=1.0, calibration=None).fit(X, y)
    with pytest.raises(ValueError, match="by='edge' needs tables='fixed' and n_trees=1; explain by column"):
        model.explain(X, by="edge")


def test_bad_data_is_refused_in_words(monkeypatch):
    X, y = words(40)
    partly = y.astype(object)
    partly[5] = None
    with pytest.raises(ValueError, match="a mixture of trees needs the label of every row; give them all, or set n_"):
        MEDTreeClassifier(C=1.0, trees=Trees(n_trees=2)).fit(X, partly)
    with pytest.raises(ValueError, match="margin='fixed' requires that all labels are known"):
        MEDTreeClassifier(margin="fixed", calibration=None).fit(X, partly)
    monkeypatch.setattr("mixent.med.tree_columns.MAX_CELLS", 8)
    with pytest.raises(ValueError, match="pairwise tables allow at most 8 values over all columns; got 10"):
        MEDTreeClassifier(C=1.0).fit(X, y)
