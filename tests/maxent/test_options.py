"""Grouped options of the maximum entropy classifier: short forms, nested names, searches, clones."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from mixent import MaxEntClassifier
from mixent.options import BinFeatures, ComponentFeatures, ForwardSelection, MomentFeatures

X, Y = load_iris(return_X_y=True)
SAME = [
    ({"features": "class"}, {"features": ComponentFeatures("class")}),
    ({"features": "bins"}, {"features": BinFeatures()}),
    ({"features": "moments"}, {"features": MomentFeatures()}),
    ({"selection": "bic"}, {"selection": ForwardSelection()}),
    ({"selection": "validation"}, {"selection": ForwardSelection("validation", validation=0.2)}),
]


@pytest.mark.parametrize(("short", "long"), SAME)
def test_a_short_form_is_its_object(short, long):
    fits = [MaxEntClassifier(prior_variance=1.0, random_state=0, **options).fit(X, Y) for options in (short, long)]
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


def test_a_search_varies_one_option_of_a_default_estimator():
    model = MaxEntClassifier(prior_variance=1.0, random_state=0)
    search = GridSearchCV(model, {"features__max_components": [1, 2]}, cv=2).fit(X, Y)
    assert search.best_estimator_.features.max_components in (1, 2) and model.features == "union"
    kinds = GridSearchCV(model, [{"features": ["bins"], "features__n_bins": [2, 4]}, {"features": ["moments"]}], cv=2)
    assert len(kinds.fit(X, Y).cv_results_["params"]) == 3


def test_nested_options_of_a_clone_are_its_own():
    model = MaxEntClassifier("class", selection="validation")
    copy = clone(model).set_params(features__means=False, selection__validation=0.3)
    assert copy.features.kind == "class" and copy.features.means is False and copy.selection.validation == 0.3
    assert model.features == "class" and model.get_params()["features__means"] is True
    again = clone(copy).set_params(features__means=True)
    assert copy.features.means is False and again.features.means is True
