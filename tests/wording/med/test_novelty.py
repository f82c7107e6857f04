"""Wording of med, novelty."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import MEDNoveltyDetector
from mixent.med import novelty
from mixent.med.novelty_models import NoveltyTrees
from mixent.options import Margin

from ...med.test_novelty import many_values, mixed, numbers, words


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"density": "forest"},
            "density must be one of 'auto', 'product', 'tree', 'gaussian', 'mixture', 'hmm'; got 'forest'",
        ),
        ({"density": None}, "density must be one of .*; got None"),
        ({"objective": "ml"}, "objective must be one of 'margin', 'bayes'; got 'ml'"),
        ({"margin": "fixed"}, "margin must be one of 'exponential', 'laplace', 'gaussian'; got 'fixed'"),
        ({"density": "mixture", "n_hidden": 0}, "n_hidden must be a whole number >= 1; got 0"),
        ({"density": "hmm", "n_hidden": 1.5}, "n_hidden must be a whole number >= 1; got 1.5"),
        ({"C": 0.0}, "C must be a number > 0; got 0.0"),
        ({"C": np.inf}, "C must be a number > 0; got inf"),
        ({"ess": -1}, "ess must be a number from 1e-6 to 1e5; got -1"),
        ({"ess": 9e-7}, "ess must be a number from 1e-6 to 1e5; got 9e-07"),
        ({"ess": 1.1e5}, "ess must be a number from 1e-6 to 1e5; got 110000.0"),
        ({"ess": "one"}, "ess must be a number from 1e-6 to 1e5; got 'one'"),
        ({"tol": 0}, "tol must be a number > 0; got 0"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1; got 0"),
        ({"margin": Margin("exponential", quantile=1.5)}, "quantile of the margin must be a number from 0 to 1"),
        ({"contamination": 0.6}, "contamination must be a number from 0 to 0.5; got 0.6"),
        ({"contamination": float("nan")}, "contamination must be a number from 0 to 0.5; got nan"),
        ({"categorical": "all"}, "categorical must be 'auto' or a list"),
    ],
)
def test_options_are_checked_at_the_door(settings, message):
    with pytest.raises(ValueError, match=message):
        MEDNoveltyDetector(**settings).fit(numbers(10, 2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_hidden": 2}, "n_hidden=2 has no effect; it is only used with density 'mixture' and 'hmm'; got 'auto'"),
        ({"margin": Margin("exponential", target=1.5)}, "target=1.5 of the margin .* only used with classifiers"),
        ({"objective": "bayes", "margin": "laplace"}, "margin='laplace' has no effect; .* with objective='margin'"),
        ({"objective": "bayes", "C": 2.0}, "C=2.0 has no effect; it is only used with objective='margin'"),
    ],
)
def test_options_without_effect_are_named_and_have_none(settings, message):
    X = numbers(30, 2)
    with pytest.warns(UserWarning, match=message):
        detector = MEDNoveltyDetector(**settings).fit(X)
    expected = MEDNoveltyDetector(objective=settings.get("objective", "margin")).fit(X)
    np.testing.assert_array_equal(detector.decision_function(X), expected.decision_function(X))


def test_tables_that_a_model_cannot_take():
    wide = numbers(5, novelty.MOST_COLUMNS + 1)
    for name in ("gaussian", "mixture"):
        with pytest.raises(ValueError, match=f"density='{name}' takes at most 100 continuous columns; got 101"):
            MEDNoveltyDetector(name).fit(wide)
    assert isinstance(MEDNoveltyDetector("tree", objective="bayes").fit(wide).model_, NoveltyTrees)
    with pytest.raises(ValueError, match="pairwise tables allow at most 4000 values over all columns; got 4100"):
        MEDNoveltyDetector("tree").fit(many_values())
    with pytest.raises(ValueError, match="all columns are steps of one variable, but column 'p' is numeric"):
        MEDNoveltyDetector("hmm").fit(mixed(10))
    with pytest.raises(ValueError, match="varies by only"):
        MEDNoveltyDetector().fit(numbers(10, 2) * 1e-170)
    with pytest.raises(ValueError, match=r"sample_weight must be >= 0|weight"):
        MEDNoveltyDetector().fit(numbers(10, 2), sample_weight=np.full(10, -1.0))


def test_mednoveltydetector_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="MEDNoveltyDetector did not converge: max_iter was reached first"):
        MEDNoveltyDetector("tree", max_iter=2).fit(words(60, 4))


def test_no_row_has_a_multiplier():
    model = MEDNoveltyDetector("product", margin=Margin("exponential", quantile=0.0), C=0.05, ess=1e5)
    with pytest.warns(UserWarning, match="multiplier") as caught:
        model.fit(numbers(30, 2))
    wanted = model.level_ - 1 / 0.05
    assert str(caught[0].message) == (
        f"all multipliers are zero: with C=0.05 the required log-probability is {wanted:.3g}, which every row "
        "already has under the prior, so that the scores are those of the prior. Set a larger C or a smaller ess"
    )
