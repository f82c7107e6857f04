"""Wording of mixtures, selection."""

import numpy as np
import pytest

from mixent import GaussianMixture, MixtureClassifier
from mixent.options import Search

from ...mixtures.test_selection import IRIS, SPECIES, alternating


def test_nested_needs_more_labelled_rows():
    X, y = alternating(10)
    with pytest.warns(UserWarning, match="nested=3 needs more labelled rows; bic of all rows is used instead"):
        MixtureClassifier("auto", search=Search("bic", nested=3), random_state=0).fit(X, y)


TIES = "across_classes=True needs a search that fits all classes together; set growth='restart', criterion='cv'"


REFUSED = [
    ({"across_classes": True, "search__growth": "incremental"}, TIES),
    ({"across_classes": True, "search__criterion": "bic"}, TIES),
    ({"across_classes": True, "search__per_class": True}, TIES),
    (
        {"search__nested": 3},
        "nested is only used with one of the criteria 'bic', 'icl', 'dic', 'dic_robust', 'cbic'; got 'cv'",
    ),
    (
        {"search__nested": 1, "search__criterion": "bic"},
        "nested must be a whole number >= 2, a splitter or a list of splits, or None; got 1",
    ),
    ({"search__dic_weight": 0.5}, "dic_weight=0.5 is only used with criterion 'dic' or 'dic_robust'; got 'cv'"),
    (
        {"search__dic_weight": 0.5, "search__criterion": "bic"},
        "dic_weight=0.5 is only used with criterion 'dic' or 'dic_robust'; got 'bic'",
    ),
    ({"search__dic_weight": 0.0, "search__criterion": "dic"}, "dic_weight must be a number > 0; got 0.0"),
    (
        {"search__criterion": "loo"},
        "criterion must be one of 'cv', 'bic', 'icl', 'dic', 'dic_robust', 'cbic', or None; got 'loo'",
    ),
    ({"search__growth": "quick"}, "growth must be one of 'restart', 'incremental'; got 'quick'"),
    ({"search__grow_by": "error"}, "grow_by must be one of 'likelihood', 'criterion'; got 'error'"),
    (
        {"search__grow_by": "criterion", "search__criterion": "bic"},
        "grow_by='criterion' is only used with growth='incremental'; got growth='restart'",
    ),
    (
        {"search__grow_by": "criterion", "search__growth": "incremental"},
        "grow_by='criterion' needs criterion to be one of 'bic', 'icl', 'dic', 'dic_robust'; got 'cv'",
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_has_no_effect_is_refused(options, message):
    with pytest.raises(ValueError) as error:
        MixtureClassifier("auto").set_params(**options).fit(IRIS, SPECIES)
    assert message in str(error.value)


def test_growth_of_a_given_size_ties_no_classes():
    with pytest.raises(ValueError, match="across_classes=True needs a search that fits all classes together"):
        MixtureClassifier(2, "EEE", across_classes=True, search=Search(growth="incremental")).fit(IRIS, SPECIES)


def test_a_class_without_rows_has_no_mixture_of_its_own():
    message = (
        "class 'virginica' has no rows to fit its mixture to; "
        "it needs rows with weight > 0, also in the training part of every fold"
    )
    folds = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
    for options in (
        {"search__cv": folds, "search__per_class": True},
        {"search__nested": folds, "search__criterion": "dic"},
    ):
        with pytest.raises(ValueError, match=message):
            MixtureClassifier("auto").set_params(**options).fit(IRIS, SPECIES)
    weight = (SPECIES != "virginica").astype(float)
    for count, way in (("auto", "bic"), (2, "cv")):
        model = MixtureClassifier(count, "VVI", search=Search(way, growth="incremental"))
        with pytest.raises(ValueError, match=message):
            model.fit(IRIS, SPECIES, sample_weight=weight)


def test_what_a_plain_mixture_refuses():
    for options, message in (
        ({"warm_start": True}, "warm_start=True is only used with growth='restart'; got growth='incremental'"),
        ({"init": np.ones((150, 2))}, "init as responsibilities is only used with growth='restart'"),
        (
            {"search__grow_by": "criterion", "search__criterion": "cv"},
            "needs criterion to be one of 'bic', 'icl'; got 'cv'",
        ),
    ):
        with pytest.raises(ValueError) as error:
            GaussianMixture(2, search=Search(growth="incremental")).set_params(**options).fit(IRIS)
        assert message in str(error.value)
