"""Constructor parameters: few, documented, and with one meaning per name over the whole library."""

import inspect
import re
from collections import defaultdict

import pytest

from mixent.base.registry import entries
from mixent.cli.parameters import documented_parameters, parameters

MOST = 11  # parameters of a constructor
COMMON = {"categorical", "class_prior", "random_state", "n_jobs", "progress"}  # not counted
MODELS = {entry.cls.__name__: entry for entry in entries() if entry.listed}
MEANINGS = {  # of names that several estimators have: what every explanation must say
    "C": "upper bound on each row's multiplier",
    "bias": "prior of",
    "calibration": "probabilities|log-loss",
    "cov": "covariance matrix",
    "covariance": "covariance structure|structures of Celeux and Govaert",
    "criterion": "chosen? by|chooses by|when to stop|leave-one-out criterion|criterion of n_components",
    "cv": "folds|out of fold|cross-validation splits",
    "distribution": "prior of the margin|family of the prior",
    "ess": "equivalent sample size",
    "gamma": "width|scale|kernel",
    "init": "start|initialization",
    "kernel": "rbf|poly|kernel",
    "margin": "prior of the margins",
    "max_components": "components",
    "max_iter": "passes|maximum number of iterations",
    "n_components": "components|tries several",
    "n_init": "starts|number of initializations",
    "n_landmarks": "landmark|Nyström",
    "n_states": "states",
    "objective": "discrimination|level set|likelihood|training objective",
    "prior": "pseudo-rows|pseudo-observations|rows the prior counts for|see `HiddenMarkovModel`",
    "prior_variance": "variance of the Gaussian prior",
    "quantile": "quantile",
    "relaxation": "label update",
    "smoothing": "pseudo-rows",
    "solver": "L-BFGS|MaxEntClassifier",
    "standardize": "variance 1|standard deviations",
    "strength": "pseudo-rows|pseudo-observations|rows the prior counts for",
    "target": "margin",
    "tol": "stop",
    "transition_smoothing": "pseudo-",
    "validation": "share of the labelled rows",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_constructor_has_less_than_a_dozen_parameters(name):
    own = [p for p in inspect.signature(MODELS[name].cls).parameters if p not in COMMON]
    assert len(own) <= MOST


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_is_explained(name):
    for parameter in parameters(MODELS[name].make(), {}):
        if parameter.name != "random_state":
            assert parameter.meaning, parameter.name


def explanations():
    """Last part of a parameter's name -> where it occurs and its full explanation."""
    found = defaultdict(set)
    for entry in MODELS.values():
        documented = documented_parameters(entry.cls)
        for parameter in parameters(entry.make(), dict.fromkeys(COMMON)):
            name = parameter.name.split(".")[-1]
            text = documented[parameter.name][1] if parameter.name in documented else parameter.meaning
            found[name].add((f"{entry.cls.__name__}: {parameter.name}", text))
    return found


EXPLANATIONS = explanations()


@pytest.mark.parametrize("name", MEANINGS)
def test_a_name_has_one_meaning(name):
    for where, text in EXPLANATIONS[name]:
        assert re.search(MEANINGS[name], " ".join(text.split()), re.IGNORECASE), f"{where}: {text}"


def test_names_that_had_two_meanings_are_gone():
    gone = {"alpha", "c", "n_features", "latent", "moved", "parameters", "k", "select"}
    assert not gone & set(EXPLANATIONS)
