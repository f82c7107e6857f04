"""Constructor parameters: few, documented, and with one meaning per name over the whole library."""

import inspect
from collections import defaultdict

import pytest

from mixent.base.registry import entries
from mixent.cli.parameters import documented_parameters, parameters

MOST = 11  # parameters of a constructor
NOT_COUNTED = {"categorical", "class_prior", "class_weight", "random_state", "n_jobs", "progress", "checkpoint"}
MODELS = {entry.cls.__name__: entry for entry in entries() if entry.listed}
MEANINGS = {  # of each name that several estimators have: the phrase that every explanation contains
    "C": "upper bound on each row's multiplier",
    "accelerate": "squarem extrapolation",
    "anchor": "regularization towards the initial solution",
    "bias": "flat, or gaussian with this variance",
    "blend": "share of the conditional likelihood",
    "calibration": "calibration of the probabilities",
    "class_prior": "class shares of the unlabelled rows",
    "coef0": "constant that is added before the power",
    "covariance": "covariance structure",
    "criterion": "criterion that selects",
    "cv": "cross-validation folds",
    "decisions": "outputs of the classifiers",
    "degree": "degree of the polynomial",
    "dic_weight": "weight of the rows of other classes",
    "distribution": "family of the prior",
    "emissions": "distribution of the emissions",
    "ess": "equivalent sample size",
    "estimator": "classifier that is fitted",
    "estimators": "classifiers",
    "forgetting": "reduces the weight of earlier rows",
    "gamma": "coefficient of the kernel",
    "grow_by": "how incremental growth selects a candidate",
    "growth": "how k components are found",
    "init": "initialization",
    "inputs": "classifier name -> list of the columns",
    "kernel": "kernel function",
    "kind": "kind of the",
    "margin": "prior of the margins",
    "max_components": "maximum number of components",
    "max_iter": "maximum number of iterations",
    "max_rounds": "maximum number of rounds",
    "n_components": "number of components",
    "n_estimators": "maximum number of stages",
    "n_init": "number of initializations",
    "n_landmarks": "nyström features",
    "n_states": "number of hidden states",
    "nested": "in the training part of each of these folds",
    "objective": "training objective",
    "outliers": "how rows far from all components are modeled",
    "per_class": "separately for each class",
    "prior": "number of pseudo-rows",
    "prior_variance": "variance of the gaussian prior",
    "quantile": "quantile of the training rows' margins",
    "relaxation": "step size of the label updates",
    "resample": "rows drawn with the weights as probabilities",
    "search": "how components are found",
    "sharpness": "slope of the smoothed error",
    "smoothing": "number of pseudo-rows of the categorical",
    "solver": "optimization algorithm",
    "standardize": "scale continuous columns",
    "strength": "number of pseudo-rows",
    "target": "required margin",
    "tol": "is below",
    "topology": "whether all transitions are possible",
    "training": "objective of the training",
    "transition_smoothing": "pseudo-counts",
    "transitions": "for all steps",
    "validation": "share of the labelled rows",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_constructor_has_less_than_a_dozen_parameters(name):
    own = [p for p in inspect.signature(MODELS[name].cls).parameters if p not in NOT_COUNTED]
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
        for parameter in parameters(entry.make(), dict.fromkeys(NOT_COUNTED)):
            name = parameter.name.split(".")[-1]
            text = documented[parameter.name][1] if parameter.name in documented else parameter.meaning
            found[name].add((f"{entry.cls.__name__}: {parameter.name}", text))
    return found


EXPLANATIONS = explanations()


def shared_names(explanations):
    """Names of parameters that two or more estimators have."""
    estimators = {name: {where.partition(":")[0] for where, _ in texts} for name, texts in explanations.items()}
    return {name for name, having in estimators.items() if len(having) > 1}


def other_meanings(explanations):
    """Explanations without the phrase that their name stands for."""
    return [
        f"{where}: {text}"
        for name, phrase in MEANINGS.items()
        for where, text in explanations.get(name, ())
        if phrase.lower() not in " ".join(text.split()).lower()
    ]


def test_every_shared_name_has_a_meaning():
    assert set(MEANINGS) == shared_names(EXPLANATIONS)


def test_a_name_has_one_meaning():
    assert other_meanings(EXPLANATIONS) == []


def test_a_second_meaning_is_seen():
    second = {
        "gamma": {("A: gamma", "Scale of rows."), ("B: gamma", "Coefficient of the kernel.")},
        "depth": {("A: x.depth", "Levels."), ("B: depth", "Levels.")},
        "own": {("A: own", "Of one."), ("A: x.own", "Of one.")},
    }
    assert other_meanings(second) == ["A: gamma: Scale of rows."]
    assert shared_names(second) == {"gamma", "depth"}


def test_names_that_had_two_meanings_are_gone():
    gone = {"alpha", "c", "n_features", "latent", "moved", "parameters", "k", "select"}
    assert not gone & set(EXPLANATIONS)
