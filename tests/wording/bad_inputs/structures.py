"""Trees, Bayes nets, hidden Markov models and novelty detectors: options, tables, labels."""

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from mixent import HMMClassifier, MEDBayesNetClassifier, MEDNoveltyDetector, MEDTreeClassifier
from mixent.data import DataWarning

from .cases import X, defined, finite, frame, inf, nan, probabilities, put, refused, useful, word, y

mixed = frame(c=word)
gaps = put(nan)
one_blank = np.where(np.arange(40) == 5, "", np.array(["p", "q"])[y])


def fair(proba):
    """Two numbers, or one, tell the classes apart: not as well as three."""
    probabilities(proba)
    assert np.mean(proba.argmax(axis=1) == y) >= 0.7


def tree(table=mixed, labels=y, weight=None, **options):
    return _fit(MEDTreeClassifier, table, labels, weight, **{"C": 0.5, "cv": 2, "random_state": 0, **options})


def net(table=mixed, labels=y, weight=None, **options):
    return _fit(MEDBayesNetClassifier, table, labels, weight, **{"C": 0.5, "cv": 2, "random_state": 0, **options})


def hmm(table=X, labels=y, weight=None, **options):
    return _fit(HMMClassifier, table, labels, weight, **{"n_states": 2, "random_state": 0, **options})


def detect(table=mixed, weight=None, **options):
    return MEDNoveltyDetector().set_params(**options).fit(table, sample_weight=weight).score_samples(table)


def _fit(make, table, labels, weight, **options):
    return make().set_params(**options).fit(table, labels, sample_weight=weight).predict_proba(table)


def option(make, name, *values, **more):
    """The option at each of these values."""
    told = "".join(f", {key}={value}" for key, value in more.items())
    return {f"{make.__name__}: {name}={repr(v)[:40]}{told}": lambda v=v: make(**{name: v}, **more) for v in values}


COUNT = "must be a whole number >= 1; got"
STRUCTURE = "structure must be 'naive', a list of .parent, child., a function of the column names, or a dict"

DISCRIMINATIONS = [
    case
    for make in (tree, net)
    for case in (
        *refused(
            ValueError, "C must be a number > 0, or 'auto'; got", option(make, "C", 0, -1, nan, inf, "much", None)
        ),
        *refused(ValueError, "margin must be one of 'expon", option(make, "margin", "hinge", None, 1)),
        *refused(ValueError, "objective must be one of 'margin', 'likelihood'", option(make, "objective", "map", None)),
        *refused(ValueError, "target of the margin must be", option(make, "margin__target", 0, -1, nan, "x")),
        *refused(ValueError, "quantile of the margin must", option(make, "margin__quantile", -0.1, 1.1, nan, "x")),
        *refused(
            ValueError,
            "ess must be a number > 0; got",
            option(make, "tables__ess" if make is tree else "ess", 0, -1, nan, inf, "x", None),
        ),
        *refused(ValueError, "bias must be 'flat', or the variance", option(make, "bias", 0, -1, nan, "no", None)),
        *refused(ValueError, "calibration must be one of 'tem", option(make, "calibration", "platt", 1, True)),
        *refused(ValueError, f"max_iter {COUNT}", option(make, "max_iter", 0, 1.5, None)),
        *refused(ValueError, "tol must be a number > 0; got", option(make, "tol", 0, -1, nan, None)),
        *refused(
            ValueError,
            "relaxation must be the step size of label updates",
            option(make, "relaxation", 0, 1.1, nan, None),
        ),
        *defined(
            probabilities,
            {
                f"{make.__name__}: likelihood with c": lambda make=make: make(objective="likelihood"),
                f"{make.__name__}: likelihood with a quantile": lambda make=make: make(
                    objective="likelihood", C="auto", margin__quantile=0.3
                ),
            },
            warns=(UserWarning, "only used with objective='margin'"),
        ),
        *refused(
            ValueError,
            "",
            {
                f"{make.__name__}: one class": (lambda make=make: make(labels=np.zeros(40)), "at least 2 classes"),
                f"{make.__name__}: no rows": (lambda make=make: make(mixed[:0], y[:0]), "0 sample|no rows|at least"),
                f"{make.__name__}: labels of another length": (lambda make=make: make(labels=y[:7]), "7"),
                f"{make.__name__}: negative weights": (lambda make=make: make(weight=-np.ones(40)), "must be >= 0"),
                f"{make.__name__}: no weight": (lambda make=make: make(weight=np.zeros(40)), "non-zero|weight"),
            },
        ),
        *defined(
            probabilities,
            {
                f"{make.__name__}: an infinite number": lambda make=make: make(put(inf)),
                f"{make.__name__}: a column without values": lambda make=make: make(frame(c=[None] * 40)),
                f"{make.__name__}: every row a category": lambda make=make: make(
                    pd.DataFrame({"C": [f"u{i}" for i in range(40)], "d": word})
                ),
            },
            (DataWarning, "treated as missing|without values|hardly two rows"),
        ),
        *refused(
            NotFittedError,
            "not fitted yet",
            {
                f"{make.__name__}: unfitted": lambda kind=kind: kind().predict_proba(X)
                for kind in ((MEDTreeClassifier,) if make is tree else (MEDBayesNetClassifier,))
            },
        ),
        *defined(
            fair,
            {
                f"{make.__name__}: gaps": lambda make=make: make(gaps),
                f"{make.__name__}: numbers alone": lambda make=make: make(X),
                f"{make.__name__}: a constant column": lambda make=make: make(frame(c=word, k=3.0)),
                f"{make.__name__}: a category of one value": lambda make=make: make(frame(c="u")),
                f"{make.__name__}: far from zero": lambda make=make: make(X + 1e8),
                f"{make.__name__}: a row without a label": lambda make=make: make(labels=one_blank),
                f"{make.__name__}: one column": lambda make=make: make(X[:, :1], C=1.0),
            },
        ),
        *defined(
            probabilities,
            {
                f"{make.__name__}: two rows": lambda make=make: make(mixed[:2], y[:2]),
            },
        ),
    )
]

TREES = [
    *refused(ValueError, "tables must be one of 'fixed', 'integr", option(tree, "tables", "loose", None)),
    *refused(ValueError, "trees must be one of 'separate', 'shared'", option(tree, "trees", "naive", None)),
    *refused(ValueError, "structure_prior must be one of", option(tree, "trees__structure_prior", "flat", None)),
    *refused(ValueError, "continuous must be one of 'auto', 'gau", option(tree, "tables__continuous", "binned", None)),
    *refused(ValueError, f"n_trees {COUNT}", option(tree, "trees__n_trees", 0, 1.5, None, "auto", True)),
    *refused(
        ValueError,
        "needs tables='fixed'; got tables='integrated'",
        {
            **option(tree, "trees", "shared", tables="integrated"),
            **option(tree, "tables__continuous", "gaussian", tables="integrated"),
        },
    ),
    *refused(
        ValueError,
        "needs n_trees=1; got n_trees=2",
        {
            **option(tree, "trees", "shared", trees__n_trees=2),
            **option(tree, "tables__continuous", "gaussian", trees__n_trees=2),
        },
    ),
    *refused(
        ValueError,
        "a mixture of trees needs the label of every row; give them all, or set n_trees=1",
        {"tree: a mixture, and a row without a label": lambda: tree(labels=one_blank, trees__n_trees=2)},
    ),
]

NETS = [
    *refused(ValueError, STRUCTURE, option(net, "structure", "tree", 3, None)),
    *refused(ValueError, "must list pairs .parent, child.; got", option(net, "structure", ["ab"], [("a",)], [1, 2])),
    *refused(
        ValueError,
        "",
        {
            "net: no such column": (lambda: net(structure=[("a", "z")]), "names a column 'z' that X does not have"),
            "net: no such position": (lambda: net(structure=[(0, 9)]), "names position 9, but X has 3 columns"),
            "net: a cycle": (lambda: net(structure=[("a", "b"), ("b", "a")]), "structure has a cycle, b -> a -> b"),
            "net: its own parent": (lambda: net(structure=[("a", "a")]), "structure has a cycle"),
            "net: a class that is none": (
                lambda: net(structure={0: [], 1: [], 2: []}),
                "edges for class 2, which y does not contain",
            ),
            "net: a class left out": (lambda: net(structure={0: []}), "a dict without the class 1; add its edges"),
            "net: a function of nothing": (lambda: net(structure=lambda names: None), "must return a list of"),
        },
    ),
    *defined(
        fair,
        {
            **option(net, "structure", [], [("a", "c"), ("b", "c")], [(0, 1), (1, 2)], [("a", "b"), ("a", "b")]),
            "net: edges of each class": lambda: net(structure={0: [("a", "b")], 1: "naive"}),
        },
    ),
]

SEQUENCES = [
    *refused(ValueError, f"n_states {COUNT}", option(hmm, "n_states", 0, 1.5, None, "auto")),
    *refused(ValueError, "topology must be one of 'full', 'left-right'", option(hmm, "topology", "ring", None)),
    *refused(ValueError, "transitions must be one of 'shared', 'per_step'", option(hmm, "transitions", "all", None)),
    *refused(ValueError, "init must be 'auto' or 'random'", option(hmm, "init", {"start": [1.0, 0.0]})),
    *refused(
        ValueError,
        "",
        {
            "hmm: one class": (lambda: hmm(labels=np.zeros(40)), "at least 2 classes"),
            "hmm: a row without a label": (lambda: hmm(labels=one_blank), "needs one known label per sequence"),
            "hmm: numbers and words": (lambda: hmm(mixed), "all columns are steps of one variable"),
            "hmm: a class without weight": (
                lambda: hmm(weight=1.0 * y),
                "class 0 has no sequence with positive weight",
            ),
        },
    ),
    *defined(useful, {"hmm: an infinite number": lambda: hmm(put(inf))}, (DataWarning, "treated as missing")),
    *defined(useful, {"hmm: gaps": lambda: hmm(gaps), "hmm: far from zero": lambda: hmm(X + 1e8)}),
    *defined(
        probabilities,
        {"hmm: one step": lambda: hmm(X[:, :1])},
        (DataWarning, "every row is a sequence of one step"),
    ),
    *defined(
        probabilities,
        {
            "hmm: words": lambda: hmm(pd.DataFrame({"a": word, "b": word[::-1]})),
            "hmm: more states than steps": lambda: hmm(n_states=5),
        },
    ),
]

KINDS = "density must be one of 'auto', 'product', 'tree', 'gaussian', 'mixture', 'hmm'; got"
NOVELTY = [
    *refused(ValueError, KINDS, option(detect, "density", "forest", None, 3)),
    *refused(ValueError, f"n_hidden {COUNT}", option(detect, "n_hidden", 0, 1.5, None, density="mixture")),
    *defined(finite, option(detect, "n_hidden", 2), warns=(UserWarning, "n_hidden=2 has no effect")),
    *refused(ValueError, "objective must be one of 'margin', 'bayes'", option(detect, "objective", "map", None)),
    *refused(ValueError, "margin must be one of", option(detect, "margin", "fixed", "hinge", None)),
    *refused(ValueError, "quantile of the margin must be", option(detect, "margin__quantile", -0.1, 2, nan, "x")),
    *refused(ValueError, "C must be a number > 0; got", option(detect, "C", 0, -1, nan, inf, "auto", None)),
    *refused(ValueError, "ess must be a number from 1e-6 to 1e5", option(detect, "ess", 0, -1, nan, None)),
    *refused(
        ValueError, "contamination must be a number from 0", option(detect, "contamination", -0.1, 0.6, nan, "auto")
    ),
    *defined(finite, option(detect, "C", 2.0, objective="bayes"), warns=(UserWarning, "C=2.0 has no effect")),
    *refused(
        ValueError,
        "",
        {
            "detect: no weight": (lambda: detect(weight=np.zeros(40)), "non-zero|weight"),
            "detect: 101 numbers jointly": (
                lambda: detect(np.random.default_rng(0).normal(size=(40, 101)), density="gaussian"),
                "takes at most 100 continuous columns; got 101. Select columns, or set density='product'",
            ),
            "detect: numbers and words in a sequence": (lambda: detect(density="hmm"), "all columns are steps of one"),
        },
    ),
    *defined(
        finite,
        {
            "detect: an infinite number": lambda: detect(put(inf)),
            "detect: a column without values": lambda: detect(frame(c=[None] * 40)),
        },
        (DataWarning, "treated as missing|without values"),
    ),
    *refused(NotFittedError, "not fitted yet", {"detect: unfitted": lambda: MEDNoveltyDetector().predict(X)}),
    *defined(
        finite,
        {
            "detect: gaps": lambda: detect(gaps),
            "detect: a row without values": lambda: detect(np.where(np.arange(40)[:, None] == 3, nan, X)),
            "detect: a constant column": lambda: detect(frame(c=word, k=3.0)),
            "detect: far from zero": lambda: detect(X + 1e8),
            "detect: two rows": lambda: detect(mixed[:2]),
            "detect: one column": lambda: detect(X[:, :1]),
            "detect: 101 numbers": lambda: detect(np.random.default_rng(0).normal(size=(40, 101))),
            "detect: words never seen": lambda: MEDNoveltyDetector("tree").fit(mixed).score_samples(frame(c="w")),
            "detect: a number far out": lambda: MEDNoveltyDetector().fit(X).score_samples([[1e100, 0.0, 0.0]]),
            **{f"detect: {kind}": lambda kind=kind: detect(density=kind) for kind in ("product", "tree", "mixture")},
            **option(detect, "contamination", 0, 0.5),
            **option(detect, "margin__quantile", 0, 1),
        },
    ),
]

CASES = DISCRIMINATIONS + TREES + NETS + SEQUENCES + NOVELTY
