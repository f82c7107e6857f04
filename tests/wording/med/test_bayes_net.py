"""Wording of med, bayes net."""

import numpy as np
import pytest

from mixent import MEDBayesNetClassifier
from mixent.med import bayes_net as module
from mixent.options import Margin

from ...med.test_bayes_net import draw, words

WANTED = "structure must be 'naive', a list of .parent, child., a function of the column names, or a dict"


BAD = [
    ({"structure": "tree"}, f"{WANTED}.*got 'tree'; to learn a tree, use MEDTreeClassifier"),
    ({"structure": "chain"}, f"{WANTED}.*got 'chain'$"),
    ({"structure": 3}, f"{WANTED}.*got 3"),
    ({"structure": ["v0"]}, "structure must list pairs .parent, child.; got 'v0'"),
    ({"structure": [(0, 1, 2)]}, r"structure must list pairs .parent, child.; got \(0, 1, 2\)"),
    ({"structure": [0]}, "structure must list pairs .parent, child.; got 0"),
    ({"structure": [("v0", "v11")]}, "structure names a column 'v11' that X does not have; did you mean 'v1'"),
    ({"structure": [("v0", "Q")]}, "structure names a column 'Q' that X does not have; the columns are 'v0', 'v1'"),
    ({"structure": [(0, 4)]}, r"structure names position 4, but X has 4 columns \(0 to 3\)"),
    ({"structure": [(0, 1.5)]}, "structure must name columns by name or position; got 1.5"),
    ({"structure": [(0, 1), (1, 3), (3, 0), (0, 2)]}, "structure has a cycle, v. -> v. -> v. -> v.;"),
    ({"structure": [(2, 2)]}, "structure has a cycle, v2 -> v2;"),
    ({"structure": lambda names: 5}, "structure must return a list of .parent, child.; it returned 5"),
    ({"structure": lambda names: "naive"}, "structure must return a list .*; it returned 'naive'"),
    ({"structure": {"yes": []}}, r"structure is a dict without the class 'no'; add its edges, or \[\] for none"),
    (
        {"structure": {"yes": [], "no": [], "ye": []}},
        "edges for class 'ye', which y does not contain; did you mean 'yes'",
    ),
    ({"structure": {"yes": [], "no": [], 7: []}}, "edges for class 7, .*; the classes are 'no', 'yes'"),
    ({"structure": {"yes": {}, "no": []}}, "structure of a class must be 'naive', a list or a function; got {}"),
    ({"structure": {"yes": "tree", "no": []}}, f"{WANTED}.*got 'tree'"),
    ({"ess": 0.0}, "ess must be a number > 0"),
    (
        {"margin": "hinge"},
        "margin must be one of 'exponential', .*, 'fixed', or a Margin; got 'hinge'",
    ),
    ({"objective": "joint"}, "objective must be one of 'margin', 'likelihood'"),
    ({"margin": Margin("laplace", target=-1.0)}, "target of the margin must be a number > 0"),
    (
        {"margin": Margin("laplace", quantile=2.0)},
        "quantile of the margin must be a number from 0 to 1",
    ),
    ({"margin": Margin("laplace", 1.0, 0.5)}, "give either the target or the quantile of the margin; got"),
    ({"C": -1.0}, "C must be a number > 0"),
    ({"calibration": "sigmoid"}, "calibration must be one of 'temperature', 'affine', 'predictive'"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options_are_refused_in_words(options, message):
    Z, y = draw(40)
    with pytest.raises(ValueError, match=message):
        MEDBayesNetClassifier(**options).fit(words(Z), np.array(["no", "yes"])[y])


@pytest.mark.parametrize("options", [{"C": 1.0}, {"margin": Margin("laplace", 1.0)}, {"bias": "flat"}])
def test_options_without_effect_are_named_and_have_none(options):
    Z, y = draw(40)
    likelihood = {"objective": "likelihood", "random_state": 0}
    with pytest.warns(UserWarning, match="=.* has no effect; it is only used with objective='margin'"):
        model = MEDBayesNetClassifier(**likelihood, **options).fit(words(Z), y)
    expected = MEDBayesNetClassifier(**likelihood).fit(words(Z), y)
    np.testing.assert_array_equal(model.predict_proba(words(Z)), expected.predict_proba(words(Z)))
    assert model.C_ is None


def test_tables_that_are_too_large_are_refused_with_their_numbers(monkeypatch):
    Z, y = draw(40)
    monkeypatch.setattr(module, "MAX_CELLS", 20)
    message = (
        r"the table of column 'v3' has 6 configurations of its parents 'v0' \(2\), 'v1' \(3\) times 4 values, "
        r"24 cells; at most 20 are allowed. Use fewer parents"
    )
    with pytest.raises(ValueError, match=message):
        MEDBayesNetClassifier([(0, 3), (1, 3)], C=1.0).fit(words(Z), y)
