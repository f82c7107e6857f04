"""Constructor options of both estimators, good data."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.options import Search

from .cases import (
    X,
    classifier,
    classify,
    cluster,
    defined,
    frame,
    inf,
    mixture,
    nan,
    probabilities,
    refused,
    useful,
    word,
    y,
)

many = np.tile(X, (2, 1)), np.tile(y, 2)
mixed = frame(c=word)


def option(name, *values, make=classify, **more):
    """The option at each of these values."""
    prefix = "" if make is classify else f"{make.__name__}: "
    return {f"{prefix}{name}={short(v)}": lambda v=v: make(**{name: v}, **more) for v in values}


def clusters(name, *values, **more):
    return option(name, *values, make=cluster, **more)


def short(value):
    return f"{value.shape} of {value.flat[0]}" if isinstance(value, np.ndarray) else repr(value)[:30]


def searched(**options):
    """Enough rows that "auto" searches."""
    model = MixtureClassifier(search=Search(max_components=1), random_state=0).set_params(**options)
    return model.fit(*many).predict_proba(many[0])


def mixed_table(**options):
    return classify(mixed, **options)


def refit(table, **options):
    model = mixture(warm_start=True).fit(X).set_params(**options)
    return model.fit(table).predict_proba(table)


def shared(**options):
    model = SharedMixtureClassifier(2, random_state=0).set_params(**options)
    return model.fit(X, y).predict_proba(X)


def trained(**options):
    return shared(**{"training": "conditional", **options})


def with_error(**options):
    return classify(training="error", **options)


def parts(name, *values, make=shared, **more):
    return option(name, *values, make=make, **more)


COUNT = "must be a whole number >= 1.*; got"
STRUCTURE = "covariance must be one of EII, .*; got"

CLASSIFIER = [
    *refused(
        ValueError, f"n_components {COUNT}", option("n_components", 0, -1, 1.5, None, True, nan, [1], {0: 1, 1: 0})
    ),
    *refused(
        ValueError, "n_components must be a whole number >= 1, or 'auto'; got", option("n_components", "many", "1")
    ),
    *refused(ValueError, "n_components: no entry for class", option("n_components", {}, {0: 1})),
    *refused(ValueError, "n_components: unknown class", option("n_components", {"0": 1, "1": 1}, {0: 1, 1: 1, 2: 1})),
    *refused(ValueError, STRUCTURE, option("covariance", "XYZ", "", None, 3, ("VVV", "EEE"), {0: "VVV", 1: "no"})),
    *refused(ValueError, "Did you mean 'VVV'", option("covariance", "vvv", b"VVV")),
    *refused(
        ValueError, "needs n_components='auto'; set it, or pass one", option("covariance", ["VVV"], ["VVV", "EEE"])
    ),
    *refused(ValueError, "covariance: no entry for class 1", option("covariance", {0: "VVV"})),
    *refused(ValueError, STRUCTURE, option("covariance", ["VVV", "no"], [None], None, 5, make=searched)),
    *refused(ValueError, "covariance is an empty list", option("covariance", [], make=searched)),
    *refused(
        ValueError, "by class needs n_components by class", option("covariance", {0: "VVV", 1: "EII"}, make=searched)
    ),
    *refused(
        ValueError,
        "needs one covariance structure for all",
        option("across_classes", True, covariance={0: "VVV", 1: "EII"}),
    ),
    *refused(ValueError, "prior must be 'auto', None .*; got", option("prior", 0, -1, nan, inf, "none", [1], True)),
    *refused(
        ValueError,
        "class_prior must be 'empirical' or 2 positive numbers, one per class; got 'even'",
        option("class_prior", "even"),
    ),
    *refused(
        ValueError,
        "class_prior must be 'empirical' or 2 positive numbers, one per class; got",
        option(
            "class_prior",
            None,
            3,
            [1],
            [1, 1, 1],
            [0, 1],
            [-1, 2],
            [nan, 1],
            [inf, 1],
            [[0.5, 0.5]],
            ["a", "b"],
            {0: 0.5, 1: -0.5},
        ),
    ),
    *refused(
        ValueError,
        "init must be one of 'kmeans..', 'random', or responsibilities; got",
        option("init", "best", None, 0),
    ),
    *refused(ValueError, f"max_components {COUNT}", option("search__max_components", 0, 1.5, "x")),
    *refused(
        ValueError,
        "cv must be a whole number >= 2, a splitter or a list of splits; got",
        option("search__cv", 1, 0, -1, 2.5, None, True, nan, "x"),
    ),
    *refused(
        ValueError,
        "cv must give pairs .train, test. of the 80 labelled rows",
        option("search__cv", [([0, 1], [1000])], [(1, 2, 3)], [None], KFold(100), make=searched),
    ),
    *refused(
        ValueError,
        "cv gives no split, or one that holds out no row",
        option("search__cv", [([0, 1], [])], make=searched),
    ),
    *refused(ValueError, "(cv gives no split|cv must give pairs)", option("search__cv", [], make=searched)),
    *refused(ValueError, "tol must be a number >= 0; got", option("tol", -1, nan, inf, "x", None)),
    *refused(ValueError, f"max_iter {COUNT}", option("max_iter", 0, -1, 1.5, None, "x")),
    *refused(ValueError, "smoothing must be a number > 0; got", option("prior__smoothing", 0, -1, nan, inf, "x", None)),
    *refused(
        ValueError,
        "categorical must be 'auto' or a list of column names or positions; got",
        option("categorical", None, "c", 5, nan, make=mixed_table),
    ),
    *refused(
        ValueError, "categorical must list column names", option("categorical", [1.5], [True], [None], make=mixed_table)
    ),
    *refused(
        ValueError,
        "categorical names .* (X does not have|X has 3)",
        option("categorical", ["zz"], [9], make=mixed_table),
    ),
    *refused(
        ValueError, "(cannot be used to seed|Seed must be between)", option("random_state", -1, 1.5, "x", 2**40, [1])
    ),
    *refused(
        ValueError,
        "n_jobs must be None, -1 or a positive number of threads; got",
        option("n_jobs", 0, -2, 1.5, "x", True),
    ),
    *refused(
        TypeError,
        "unexpected keyword argument",
        {
            "misspelt option": lambda: MixtureClassifier(n_component=1),
            "misspelt option, clusters": lambda: GaussianMixture(covariances="VVV"),
            "misspelt argument of fit": lambda: classifier().fit(X, y, weights=y),
            "fit without labels": (lambda: classifier().fit(X), "missing .*'y'"),
        },
    ),
    *refused(ValueError, "Invalid parameter 'nonsense'", {"set_params": lambda: classifier().set_params(nonsense=1)}),
    *defined(
        useful,
        {
            **option("prior", 1e-300, 1e300),
            **option("tol", 0, 1e10),
            **option("class_prior", [2, 6]),
            **option("n_jobs", -1, 64),
            **option("n_components", np.int64(1)),
        },
    ),
    *defined(
        probabilities,
        {
            **option("class_prior", [1e-300, 1]),
            **option("prior__smoothing", 1e-300, 1e300, make=mixed_table),
            **option("categorical", [0, 0], [-1], make=mixed_table),
            **option("search__cv", 1000, [([0, 1], [2, 3])], make=searched, covariance="EII", prior=1),
        },
    ),
    *defined(
        useful, option("max_iter", 1, n_components=2), (ConvergenceWarning, "max_iter was reached first; raise it")
    ),
    *defined(
        probabilities,
        {"more components than rows of a class": lambda: classify(X[:4], [0, 0, 1, 1], n_components=4)},
        (ConvergenceWarning, "starved"),
    ),
]

CLUSTERS = [
    *refused(ValueError, f"n_components {COUNT}", clusters("n_components", 0, 1.5, None, True, "x", {0: 1})),
    *refused(ValueError, "n_components=41 needs at least as many rows; X has 40", clusters("n_components", 41)),
    *refused(ValueError, STRUCTURE, clusters("covariance", "XYZ", None, 7, ["VVV", 3], {0: "VVV"})),
    *refused(ValueError, "covariance is an empty list", clusters("covariance", [])),
    *refused(
        ValueError,
        "init must be one of 'kmeans..', 'random', or a dict of parameters",
        clusters("init", "best", None),
    ),
    *refused(
        ValueError,
        r"responsibilities of shape \(40, 2\); got",
        clusters("init", np.ones((3, 2)), np.ones((40, 3))),
    ),
    *refused(
        ValueError,
        "init responsibilities must be finite, >= 0",
        clusters("init", -np.ones((40, 2)), np.full((40, 2), nan), np.zeros((40, 2))),
    ),
    *refused(ValueError, "init must be .* a table of responsibilities", clusters("init", [["a", "b"]] * 40)),
    *refused(
        ValueError,
        "set n_components to their number",
        {"cluster: init for any number": lambda: cluster(init=np.ones((40, 2)), n_components="auto")},
    ),
    *refused(ValueError, f"n_init {COUNT}", clusters("n_init", 0, -1, 2.5, None)),
    *refused(
        ValueError,
        "criterion must be one of 'bic', 'icl', 'cv', or None; got",
        clusters("search__criterion", "aic", "BIC", 1),
    ),
    *refused(
        ValueError, "search must be one of None, 'cv'", {**option("search", "x", 1), **clusters("search", "x", 1)}
    ),
    *refused(ValueError, f"max_components {COUNT}", clusters("search__max_components", 0, 1.5, n_components="auto")),
    *refused(ValueError, "prior must be 'auto', None", clusters("prior", 0, nan)),
    *refused(ValueError, "tol must be a number >= 0", clusters("tol", -1, nan)),
    *refused(ValueError, f"max_iter {COUNT}", clusters("max_iter", 0, "x")),
    *refused(ValueError, "smoothing must be a number > 0", clusters("prior__smoothing", 0, nan)),
    *refused(ValueError, "n_jobs must be None", clusters("n_jobs", 0, "x")),
    *refused(
        ValueError,
        "(cannot be used to seed|Seed must be between)",
        {"cluster: random_state='x'": lambda: GaussianMixture(random_state="x").fit(X)},
    ),
    *defined(
        probabilities,
        {
            **clusters("init", np.ones((40, 2))),
            "warm start, other columns": lambda: refit(X[:, :2]),
            "warm start, other components": lambda: refit(X, n_components=3),
            "warm start, other structure": lambda: refit(X, covariance="EII"),
            "warm start, other kinds of columns": lambda: refit(mixed),
            "warm start, other scale": lambda: refit(X * 1e100),
        },
    ),
]

HELD_OUT = "validation must be None or the share of rows to hold out, between 0 and 1; got"
ANCHOR = "anchor must be 'auto' or a positive number of pseudo-rows per component; got"

SHARED = [
    *refused(ValueError, f"n_components {COUNT}", parts("n_components", 0, -1, 1.5, None, True, nan, [1], {0: 1})),
    *refused(ValueError, "n_components=41 needs at least as many rows; X has 40", parts("n_components", 41)),
    *refused(ValueError, STRUCTURE, parts("covariance", "XYZ", "", None, 3)),
    *refused(
        ValueError, "needs n_components='auto'; set it, or pass one", parts("covariance", ["VVV"], ("VVV", "EEE"))
    ),
    *refused(
        ValueError,
        "covariance must be one structure, since all classes share",
        parts("covariance", {0: "VVV", 1: "EII"}),
    ),
    *refused(ValueError, f"n_init {COUNT}", parts("n_init", 0, -1, 2.5, None)),
    *refused(
        ValueError,
        "training must be one of 'likelihood', 'conditional', 'error', or .*; got",
        {**parts("training", "map", "", None, 1), **option("training", "map", None)},
    ),
    *refused(
        ValueError,
        "blend must be between 0 .* and 1",
        parts("training__blend", -1, 1.1, nan, inf, "x", None, make=trained),
    ),
    *refused(ValueError, "sharpness must be", option("training__sharpness", 0, 0.9, nan, "x", None, make=with_error)),
    *refused(ValueError, ANCHOR, parts("training__anchor", 0, -1, nan, inf, "none", None, [1], True, make=trained)),
    *refused(
        ValueError, "solver must be one of 'ebw', 'lbfgs'; got", parts("training__solver", "sgd", None, make=trained)
    ),
    *refused(ValueError, HELD_OUT, parts("training__validation", 0.0, 1.0, -0.5, 1, True, nan, "x", make=trained)),
    *refused(
        ValueError,
        "is a parameter of .*; set training='",
        {
            **parts("training__blend", 0.5, "x", None),
            **parts("training__sharpness", 2.0),
            **parts("training__anchor", 3, None),
            **parts("training__solver", "lbfgs"),
            **parts("training__validation", 0.2),
        },
    ),
    *refused(
        ValueError,
        "forgetting must be a share, at least 0 and less than 1; got",
        {**parts("forgetting", -1, 1, nan, "x", None), **clusters("forgetting", 1.5, None)},
    ),
    *refused(
        ValueError,
        "growth must be one of 'restart', 'incremental'; got",
        {**parts("search__growth", "x", None), **clusters("search__growth", "x", None)},
    ),
    *defined(
        useful,
        {
            **parts("training__blend", 0, 0.0, 1, np.float32(0.5), make=trained),
            **parts("training__anchor", 1e-300, 1e300, 5, make=trained),
            **option("training__sharpness", 1, 50.0, make=with_error),
            **parts("training__validation", 0.5, np.float64(0.2), make=trained),
            **parts("training__solver", "lbfgs", make=trained),
            **parts("forgetting", 0, 0.99),
        },
    ),
    *defined(
        probabilities,
        {
            **parts("n_components", 1, make=trained),
            **parts("training__sharpness", 1e300, training="error"),
            "shared: as many components as rows": lambda: shared(n_components=40, max_iter=3, tol=1e10),
        },
    ),
]

CASES = CLASSIFIER + CLUSTERS + SHARED
