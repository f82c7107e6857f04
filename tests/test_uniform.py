"""Over all public estimators: the same option has the same name and default, the same attribute means the same, and the
same mistake gets the same words. What differs is listed here with its reason; a difference without one is a failure.
"""

import inspect
import re
from collections import defaultdict

import numpy as np
import pytest
from sklearn.base import clone

from mixent import MixtureClassifier

from .subjects import CLASSES, FOUND, PUBLIC, SUBJECTS, TABLE, N, Y

NAMES = list(PUBLIC)
SIGNATURES = {name: inspect.signature(type(model)).parameters for name, model in PUBLIC.items()}
CLASSIFIERS = [name for name in NAMES if FOUND[name]["multiclass"].able and name != "Fuser"]
TABLES = [name for name in NAMES if name != "Fuser"]  # whose X is a table of columns; that of a fuser is of answers


def having(option):
    return [name for name in NAMES if option in SIGNATURES[name]]


# --- options ------------------------------------------------------------------------------------------------------

DIFFERENT = {  # options of one name and several defaults
    "bias": "naive Bayes has a good one to begin with, and a flat prior would lose it",
    "C": "a novelty detector has no labels to choose it by",
    "calibration": "hidden Markov stacks have class priors in place of offsets",
    "class_prior": "a fuser is not trained on the rows it sees: its priors are those of the sources' training",
    "covariance": "classifiers choose theirs; sequences have few steps for a full matrix in each state",
    "init": "a hidden Markov model starts from segments of time where it can",
    "kernel": "each the plainest model of its kind, but kernel Fisher is about kernels",
    "margin": "of novelty it is the document's",
    "max_iter": "what usually suffices",
    "n_components": "a classifier has labels to choose by",
    "n_init": "shared components have more local optima",
    "solver": "each the best for its objective",
    "tol": "gain per row, per step of a sequence, or gap: what is worth another pass differs",
}


def test_an_option_has_one_default_or_a_reason():
    defaults = defaultdict(set)
    for parameters in SIGNATURES.values():
        for option in parameters.values():
            defaults[option.name].add(repr(option.default))
    assert {name for name, values in defaults.items() if len(values) > 1} == set(DIFFERENT)


LACKING = {  # options of all classifiers, and who does without
    "random_state": {"ParzenClassifier": "draws nothing"},
    "n_jobs": {
        "AdaBoostM1Classifier": "stages come one after another",
        "WeightBoostClassifier": "stages come one after another",
        "TunedClassifier": "the estimator has its own",
    },
    "categorical": {
        "AdaBoostM1Classifier": "the bases have it",
        "WeightBoostClassifier": "the bases have it",
        "HMMStackingClassifier": "the bases have it",
    },
    "progress": {},
}


@pytest.mark.parametrize("option", LACKING)
def test_classifiers_have_the_options_of_classifiers(option):
    assert set(CLASSIFIERS) - set(having(option)) == set(LACKING[option])


@pytest.mark.parametrize("name", NAMES)
def test_one_or_two_options_may_go_without_their_names(name):
    free = [p.name for p in SIGNATURES[name].values() if p.kind is not p.KEYWORD_ONLY]
    assert len(free) <= 2, free


ALIKE = {  # how the docstrings say what an option is
    "random_state": "int, RandomState or None",
    "n_jobs": "int or None",
    "categorical": '"auto" or list',
    "progress": "bool or callable",
    "max_iter": "int",
    "tol": "float",
}


@pytest.mark.parametrize("option", ALIKE)
def test_docstrings_say_the_same_of_the_same_option(option):
    for name in having(option):
        doc = inspect.getdoc(type(PUBLIC[name]))
        alone = re.search(rf"^{option} : (.*?)(?:, default=.*)?$", doc, flags=re.MULTILINE)
        if alone:
            assert alone[1].split(", default=")[0] == ALIKE[option], name
        else:  # among options that are as in another estimator
            assert re.search(rf"^(\w+, )*{option}(, \w+)*$", doc, flags=re.MULTILINE), name


FIRST = {  # method -> what its arguments are called
    "fit": ["X", "y", "sample_weight"],
    "predict": ["X"],
    "predict_proba": ["X"],
    "predict_log_proba": ["X"],
    "score_samples": ["X"],
    "decision_function": ["X"],
    "transform": ["X"],
    "explain": ["X", "label"],
    "decision": ["X", "costs", "reject"],
    "adjust_priors": ["X", "tol", "max_iter"],
    "impute": ["X"],
}


@pytest.mark.parametrize("method", FIRST)
def test_methods_take_the_same_arguments(method):
    found = {name: getattr(type(PUBLIC[name]), method, None) for name in TABLES}
    found = {name: inspect.signature(function) for name, function in found.items() if function is not None}
    assert found
    for name, signature in found.items():
        assert list(signature.parameters)[1 : 1 + len(FIRST[method])] == FIRST[method], name


# --- what is found ------------------------------------------------------------------------------------------------

NO_RUN = {  # who has no `run_`, and what tells how it went
    "HMMClassifier": "runs_",
    "HMMStackingClassifier": "runs_",
    "AdaBoostM1Classifier": "stopped_",
    "WeightBoostClassifier": "stopped_",
    "TunedClassifier": "search_",
    "KernelFisherClassifier": "tried_",
    "ParzenClassifier": "bandwidths_tried_",
    "FisherKernel": "model_",
    "Fuser": "history_",
}


@pytest.mark.parametrize("name", NAMES)
def test_how_it_went_is_told(name):
    fitted = SUBJECTS[name].usual
    assert hasattr(fitted, NO_RUN.get(name, "run_")) and hasattr(fitted, "run_") is (name not in NO_RUN)
    runs = getattr(fitted, "runs_", [fitted.run_] if hasattr(fitted, "run_") else [])
    assert all(run.message for run in runs)
    if runs:
        assert fitted.converged_ is all(run.status.name == "CONVERGED" for run in runs)
        assert fitted.n_iter_ == max(1, *(run.n_passes for run in runs))


def test_the_score_is_that_of_the_labelled_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.array(["a", "b"], dtype=object)[np.arange(60) % 2]
    X[y == "b"] += 2
    weight, absent = rng.random(60), np.arange(60) % 3 == 0
    few = np.where(absent, None, y)
    model = MixtureClassifier(1).fit(X, few)
    assert model.score(X, few) == model.score(X[~absent], y[~absent])
    assert model.score(X, few, weight) == model.score(X[~absent], y[~absent], weight[~absent])
    codes = np.where(absent, np.nan, y == "b")
    numbered = MixtureClassifier(1).fit(X, codes)
    assert numbered.score(X, codes) == model.score(X, few)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_tells_its_classes_and_their_priors(name):
    fitted = SUBJECTS[name].usual
    assert fitted.classes_.tolist() == CLASSES
    np.testing.assert_allclose(fitted.class_prior_, 1 / 3, atol=1e-9)
    assert (fitted.predict(SUBJECTS[name].X) == fitted.decision(SUBJECTS[name].X).labels).mean() > 0.95


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_remembered(name):
    one = SUBJECTS[name]
    fitted = one.usual
    assert fitted.n_features_in_ == one.X.shape[1]
    if one.X is TABLE:
        assert fitted.feature_names_in_.tolist() == TABLE.columns.tolist()
    else:
        assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize("name", having("class_prior"))
def test_class_priors_by_label_are_those_in_the_order_of_the_classes(name):
    one, prior = SUBJECTS[name], [0.5, 0.3, 0.2]
    by_label = dict(zip(CLASSES[::-1], prior[::-1])) | {"not among the rows": 0.9}
    method = {"method": "product"} if name == "Fuser" else {}  # which does not estimate them
    by_order, by_name = (
        clone(one.model).set_params(class_prior=given, **method).fit(one.X, Y if one.takes_y else None)
        for given in (prior, by_label)
    )
    np.testing.assert_array_equal(one.said(by_name), one.said(by_order))
    assert not np.allclose(one.said(by_name), one.said(one.usual), atol=1e-3)


# --- the same mistake ---------------------------------------------------------------------------------------------

MISTAKES = {  # option -> a bad value, the words, and estimators whose option is another
    "tol": (-1.0, r"tol must be a number >=? 0; got -1\.0", ()),
    "max_iter": (0, r"max_iter must be a whole number >= 1; got 0", ()),
    "n_init": (0, r"n_init must be a whole number >= 1; got 0", ()),
    "max_components": (0, r"max_components must be a whole number >= 1; got 0", {"MaxEntStackingClassifier"}),
    "n_estimators": (0, r"n_estimators must be a whole number >= 1; got 0", ()),
    "cv": (1, r"cv must be a whole number >= 2, a splitter or a list of splits(, or .*)?; got 1", ()),
    "n_jobs": (0, r"n_jobs must be None, -1 or a positive number of threads; got 0", ()),
    "random_state": ("x", r"'x' cannot be used to seed a numpy\.random\.RandomState instance", ()),
    "progress": ("yes", r"progress must be True, False or a function of \(done, total, text\); got 'yes'", ()),
    "accelerate": ("yes", r"accelerate must be True or False; got 'yes'", ()),
    "warm_start": ("yes", r"warm_start must be True or False; got 'yes'", ()),
    "standardize": ("yes", r"standardize must be True or False; got 'yes'", ()),
    "means": ("yes", r"means must be True or False; got 'yes'", ()),
    "restart": ("yes", r"restart must be True or False; got 'yes'", ()),
    "calibration": ("none", r"calibration must be one of 'temperature'.*, or None; got 'none'", ()),
    "categorical": ("all", r"categorical must be 'auto' or a list of column", {"MaxEntStackingClassifier"}),
    "class_prior": ("x", r"class_prior must be '\w+'.* or 3 positive numbers, one per class; got 'x'", ()),
    "covariance": ("XYZ", r"covariance must be one of EII, .*; got 'XYZ'", ()),
    "prior": (-1.0, r"prior must be 'auto', None \(.*\) or a positive .*; got -1\.0", {"MEDGaussianClassifier"}),
    "prior_variance": (
        -1.0,
        r"prior_variance must be 'auto', None \(no prior\) or a positive number; got -1\.0",
        (),
    ),
    "relaxation": (0.0, r"relaxation must be the step size of label updates, above 0 and at most 1; got", ()),
    "C": (-1.0, r"C must be a number > 0(, or 'auto')?; got -1\.0", ()),
    "objective": ("x", r"objective must be one of '.*'; got 'x'", ()),
    "margin": ("x", r"margin must be one of '.*'.*; got 'x'", ()),
    "decisions": ("x", r"decisions must be one of 'auto', 'soft', 'hard'; got 'x'", ()),
}


@pytest.mark.parametrize(
    ("option", "name"), [(o, n) for o, (_, _, but) in MISTAKES.items() for n in having(o) if n not in but]
)
def test_the_same_bad_value_gets_the_same_words(option, name):
    value, words, _ = MISTAKES[option]
    one = SUBJECTS[name]
    method = {"method": "auto"} if name == "Fuser" else {}  # which has an effect for every option
    model = clone(one.model).set_params(**{option: value}, **method)
    if name == "Fuser" and option == "tol":
        model.set_params(method="min-divergence")
    with pytest.raises(ValueError, match=words):
        model.fit(one.X, Y if one.takes_y else None)


ERRORS = {  # what is wrong with the data -> the words
    "no labels": (lambda one: one.fit(y=None), r"This estimator requires y to be passed, but the target y is None"),
    "short labels": (lambda one: one.fit(y=Y[:-1]), r"inconsistent numbers of samples: \[60, 59\]"),
    "one class": (lambda one: one.fit(y=np.full(N, "a")), r"needs at least 2 classes; y has 1 class: 'a'; check the"),
    "dates": (lambda one: one.fit(y=np.full(N, "2020-01-01", "M8[D]")), r"Unknown label type"),
}


@pytest.mark.parametrize("mistake", ERRORS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_same_bad_labels_get_the_same_words(name, mistake):
    run, words = ERRORS[mistake]
    with pytest.raises(ValueError, match=words):
        run(SUBJECTS[name])


WEIGHTS = {
    "negative": (-np.ones(N), r"sample_weight must be >= 0; row 0 has -1"),
    "short": (np.ones(N - 1), r"sample_weight must have one value per row \(60\); its shape is \(59,\)"),
    "none left": (np.zeros(N), r"Sample weights must contain at least one non-zero number"),
}


@pytest.mark.parametrize("mistake", WEIGHTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bad_weights_get_the_same_words(name, mistake):
    weight, words = WEIGHTS[mistake]
    one = SUBJECTS[name]
    with pytest.raises(ValueError, match=words):
        one.fit(y=Y if one.takes_y else None, sample_weight=weight)
