"""Grouped options of mixtures and hidden Markov models: short forms, nested names, clones, files."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

import mixent
from mixent import GaussianMixture, HiddenMarkovModel, HMMClassifier, MixtureClassifier, SharedMixtureClassifier
from mixent.options import Conditional, HMMPrior, MinimumError, MixturePrior, Search

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
ESTIMATORS = (GaussianMixture, MixtureClassifier, SharedMixtureClassifier, HiddenMarkovModel, HMMClassifier)
UNCOUNTED = {"categorical", "class_prior", "checkpoint", "random_state", "n_jobs", "progress"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_constructor_has_at_most_eleven_parameters(estimator):
    assert len(set(inspect.signature(estimator).parameters) - UNCOUNTED) <= 11


@pytest.mark.parametrize(
    ("estimator", "criterion", "most"),
    [(GaussianMixture, "bic", 9), (MixtureClassifier, "cv", 8), (SharedMixtureClassifier, "cv", 12)],
)
def test_what_a_search_leaves_open_is_the_estimators_default(estimator, criterion, most):
    params = estimator().get_params()
    assert params["search"] is None
    assert (params["search__criterion"], params["search__max_components"]) == (criterion, most)
    found = estimator(search="icl")._group("search")
    assert (found.criterion, found.max_components) == ("icl", most)
    given = estimator(search=Search(max_components=3, growth="incremental"))._group("search")
    assert (given.criterion, given.max_components, given.growth) == (criterion, 3, "incremental")


def test_a_prior_is_given_by_its_strength_or_as_an_object():
    assert MixtureClassifier()._group("prior").rows(4) == 6.0
    assert MixtureClassifier(prior=3)._group("prior").rows(4) == 3.0
    assert MixtureClassifier(prior=None)._group("prior").rows(4) is None
    own = MixturePrior(2.0, smoothing=0.1)
    assert GaussianMixture(prior=own)._group("prior") is own
    assert HiddenMarkovModel(prior=2.0).get_params()["prior__transition_smoothing"] == 1.0


def test_a_grid_varies_one_parameter_of_a_default_estimator():
    grid = {"search__max_components": [1, 2], "prior__strength": [1.0, 10.0]}
    found = GridSearchCV(MixtureClassifier(covariance=["VVI"], random_state=0), grid, cv=2).fit(X, Y)
    assert len(found.cv_results_["params"]) == 4
    best = found.best_estimator_
    assert best.search.max_components == found.best_params_["search__max_components"]
    assert best.prior.strength == found.best_params_["prior__strength"]
    assert max(max(line["n_components"]) for line in best.search_) <= best.search.max_components


def test_nested_names_reach_the_objects_and_leave_the_original_alone():
    model = MixtureClassifier(search="bic", training="conditional")
    other = clone(model).set_params(search__per_class=True, training__blend=0.5, prior__smoothing=0.5)
    assert (other.search.criterion, other.search.per_class) == ("bic", True)
    assert other.training.blend == 0.5 and other.prior.smoothing == 0.5
    assert (model.search, model.training, model.prior) == ("bic", "conditional", "auto")
    again = clone(other)
    assert again.search is not other.search and again.get_params()["search__per_class"] is True
    with pytest.raises(ValueError, match="sharpness"):
        other.set_params(training__sharpness=2.0)


SAVED = {
    "short forms": MixtureClassifier(1, training="conditional", prior=2.0),
    "objects": MixtureClassifier(
        "auto",
        ["VVI"],
        search=Search("bic", 2, growth="incremental", per_class=True),
        training=MinimumError(2.0, validation=0.2),
        prior=MixturePrior(3.0, smoothing=0.5),
    ),
    "shared": SharedMixtureClassifier(3, "VVI", training=Conditional(0.8, solver="lbfgs"), random_state=0),
    "plain": GaussianMixture("auto", "EEE", search=Search("icl", 2, cv=3), random_state=0),
    "sequences": HMMClassifier(2, prior=HMMPrior(None, transition_smoothing=0.1)),
    "states": HiddenMarkovModel(2, prior=HMMPrior(smoothing=0.0)),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SAVED)
def test_a_file_keeps_short_forms_and_objects(name, tmp_path):
    model = clone(SAVED[name]).fit(X, Y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    shallow = model.get_params(deep=False)
    assert {k: type(v) for k, v in again.get_params(deep=False).items()} == {k: type(v) for k, v in shallow.items()}
    inner = {k: v for k, v in model.get_params().items() if "__" in k}
    assert inner and {k: again.get_params()[k] for k in inner} == inner
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
