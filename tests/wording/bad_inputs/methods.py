"""What is asked of a model: unfitted ones, samples, marginals, decisions, priors, criteria."""

import numpy as np
from sklearn.exceptions import NotFittedError

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier, save

from .cases import (
    Case,
    X,
    classifier,
    defined,
    finite,
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

mixed = frame(c=word)


class Fitted:
    """The models the cases ask, fitted when the first one does."""

    def __init__(self):
        self.made = {}

    def get(self, name, make):
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    @property
    def classes(self):
        return self.get("classes", lambda: classifier().fit(X, y))

    @property
    def clusters(self):
        return self.get("clusters", lambda: mixture().fit(X))

    @property
    def mixed(self):
        return self.get("mixed", lambda: classifier().fit(mixed, y))


model = Fitted()


def short(value):
    return repr(value).replace("\n", "")[:30]


def unfitted(make, *names):
    return {f"unfitted {make.__name__}.{name}": lambda name=name: getattr(make(), name)(X) for name in names}


def sample(*values):
    return {f"n_samples={short(v)}": lambda v=v: model.clusters.sample(v) for v in values}


def marginal(*values):
    return {f"marginal({short(v)})": lambda v=v: model.mixed.marginal(v) for v in values}


def costs(*values):
    return {f"costs={short(v)}": lambda v=v: model.classes.decision(X, v).expected_cost for v in values}


def reject(*values):
    return {f"reject={short(v)}": lambda v=v: model.classes.decision(X, reject=v).expected_cost for v in values}


def adjust(name, *values):
    return {f"adjust_priors {name}={short(v)}": lambda v=v: model.classes.adjust_priors(X, **{name: v}) for v in values}


def explain(*values):
    return {f"explain label={short(v)}": lambda v=v: model.classes.explain(X, v) for v in values}


def typical(*values):
    return {f"typical_rows {short(v)}": lambda v=v: model.clusters.typical_rows(X, v) for v in values}


def going_on(table=X, labels=y, make=classifier, **more):
    """One batch, then this one."""

    def run():
        fitted = make().partial_fit(X, y)
        return fitted.partial_fit(table, labels, **more).predict_proba(X)

    return run


def shared(n_components=2):
    return SharedMixtureClassifier(n_components, random_state=0)


def all_rejected(cost):
    assert (cost == -1).all()


def none_left(table):
    assert not table.isna().any().any()


CASES = [
    *refused(
        NotFittedError,
        "not fitted yet. Call 'fit'",
        {
            **unfitted(MixtureClassifier, "predict", "predict_proba", "predict_log_proba", "score_samples", "impute"),
            **unfitted(MixtureClassifier, "decision", "adjust_priors", "explain", "typical_rows"),
            **unfitted(SharedMixtureClassifier, "predict", "predict_proba", "impute", "decision", "explain"),
            **unfitted(
                GaussianMixture, "predict", "predict_proba", "score_samples", "impute", "bic", "aic", "icl", "score"
            ),
            "unfitted sample": lambda: GaussianMixture().sample(),
            "unfitted marginal": lambda: MixtureClassifier().marginal([0]),
            "unfitted save": lambda: save(MixtureClassifier(), "never.mixent"),
        },
    ),
    *refused(
        ValueError,
        "n_samples must be a whole number >= 1; got",
        sample(0, -1, 1.5, "x", None, True, nan, [2]),
    ),
    *refused(
        ValueError,
        "(cannot be used to seed|Seed must be between)",
        {
            "sample with a word as seed": lambda: model.clusters.sample(2, random_state="x"),
            "sample with seed -1": lambda: model.clusters.sample(2, random_state=-1),
        },
    ),
    *refused(
        ValueError,
        "unknown column .*; the columns are a, b, c",
        marginal([5], [-4], ["zz"], [None], [1.5], [True], [["a"]]),
    ),
    *refused(ValueError, "columns must be a list of column names or positions; got", marginal("ab", 0, None, slice(2))),
    *refused(ValueError, "at least one column, and none twice; got", marginal([], [0, 0], ["a", 0])),
    *refused(
        ValueError,
        "constant in training; pass at least one column that varies",
        {"marginal of a constant": lambda: classifier().fit(np.column_stack([X, np.ones(40)]), y).marginal([3])},
    ),
    *refused(
        ValueError,
        r"costs must be a 2 x 2 table of numbers, costs\[predicted, true\]; got",
        costs(
            [[0, 1]], np.zeros((3, 3)), 3, [], "x", [["a", "b"], ["c", "d"]], [[0, 1], [1]], {"a": 1}, np.eye(2) + 1j
        ),
    ),
    *refused(
        ValueError,
        r"costs must be finite numbers; costs\[0, 1\] is",
        costs([[0, nan], [1, 0]], [[0, inf], [1, 0]], [[0, None], [1, 0]]),
    ),
    *refused(ValueError, "reject must be a finite cost; got", reject(nan, inf, -inf, "x", [0.1], np.full(40, 0.1), 1j)),
    *refused(ValueError, "max_iter must be a whole number >= 1; got", adjust("max_iter", 0, -1, 1.5, "x")),
    *refused(ValueError, "tol must be a number >= 0; got", adjust("tol", -1, nan, inf, "x")),
    *refused(
        ValueError,
        "",
        {
            "adjust_priors of nothing": (lambda: model.classes.adjust_priors(None), "Expected 2D array"),
            "adjust_priors of no rows": (lambda: model.classes.adjust_priors(X[:0]), "0 sample"),
            "bic of no rows": (lambda: model.clusters.bic(X[:0]), "0 sample"),
            "bic of other columns": (lambda: model.clusters.bic(X[:, :2]), "X has 2 features, .* expecting 3"),
            "score against other labels": (lambda: model.classes.score(X, ["a"] * 40), "Mix of label input types"),
            "score against too few labels": (lambda: model.classes.score(X, y[:3]), "inconsistent numbers"),
        },
    ),
    *defined(
        finite,
        {
            **costs([[0, -1], [1, 0]], np.zeros((2, 2)), [[0, 1e300], [1, 0]], [[False, True], [True, False]]),
            **reject(0, 1e300),
            "adjust_priors of one row": lambda: model.classes.adjust_priors(X[:1]).class_prior_,
            "adjust_priors far out": lambda: model.classes.adjust_priors(X * 1e140).class_prior_,
            "bic of one row": lambda: model.clusters.bic(X[:1]),
            "bic of missing rows": lambda: model.clusters.bic(np.full((2, 3), nan)),
            "icl far out": lambda: model.clusters.icl(X * 1e140),
            "sample of one": lambda: model.clusters.sample(np.int64(1))[0],
            "impute without gaps": lambda: model.classes.impute(X),
            "impute nothing but gaps": lambda: model.classes.impute(np.full((2, 3), nan)),
            "impute None in a list": lambda: model.classes.impute([[None, 1, 2]]),
            "impute a constant column": lambda: (
                classifier().fit(np.column_stack([X, np.ones(40)]), y).impute(np.full((1, 4), nan))
            ),
        },
    ),
    *defined(
        probabilities,
        {
            "after adjust_priors of one row": lambda: model.classes.adjust_priors(X[:1]).predict_proba(X),
            "after adjust_priors of gaps": lambda: model.classes.adjust_priors(np.full((3, 3), nan)).predict_proba(X),
            "after adjust_priors far out": lambda: model.classes.adjust_priors(X * 1e140).predict_proba(X),
            "marginal of a category": lambda: model.mixed.marginal(["c"]).predict_proba(mixed[["c"]]),
            "marginal by negative position": lambda: model.mixed.marginal([-1]).predict_proba(mixed[["c"]]),
        },
    ),
    *defined(
        useful, {"marginal in another order": lambda: model.mixed.marginal(["b", "a"]).predict_proba(mixed[["b", "a"]])}
    ),
    *refused(
        ValueError,
        r"label must be one of the classes .0, 1.; got",
        explain("0", 2, -1, 0.5, nan, [0], "a"),
    ),
    *refused(ValueError, "n_rows must be a whole number >= 1; got", typical(0, -1, 2.5, None, "x", True)),
    *refused(
        ValueError,
        "",
        {
            "batch of other columns": (going_on(X[:, :2]), "X has 2 features, .* expecting 3"),
            "batch of no rows": (going_on(X[:0], y[:0]), "0 sample"),
            "batch of too few labels": (going_on(labels=y[:3]), "inconsistent numbers of samples"),
            "batch of an unknown class": (
                going_on(labels=y + 1, classes=[0, 1]),
                "y holds the label 2, which is none of the classes .0, 1.",
            ),
            "batch with labels of another type": (
                going_on(labels=y.astype(str)),
                "y holds the label '0', which is none of the classes .0, 1.",
            ),
            "batch without labels": (going_on(labels=None), "requires y"),
            "batch of no weight": (
                going_on(sample_weight=np.zeros(40)),
                "Sample weights must contain at least one non-zero number",
            ),
            "batch of other classes": (
                going_on(classes=[0, 2]),
                "classes must include those of the model, .0, 1.; got",
            ),
            "shared batch of an unknown class": (
                going_on(labels=y + 1, classes=[0, 1], make=shared),
                "the label 2, which is none of",
            ),
            "first batch of one class": (
                lambda: classifier().partial_fit(X[y == 0], y[y == 0]),
                "a classifier needs at least 2 classes",
            ),
            "first batch lacks a class": (
                lambda: classifier(n_components=2).partial_fit(X, y, classes=[0, 1, 2]),
                "class 2 has no rows in the first batch, so that its components cannot be initialized",
            ),
            "first batch with a class too many": (
                lambda: classifier().partial_fit(X, y, classes=[0, 5]),
                "y holds the label 1, which is none of the classes .0, 5.",
            ),
        },
    ),
    *refused(
        AttributeError,
        "has no attribute 'partial_fit'",
        {"batches of a trained model": lambda: classifier(training="error").partial_fit(X, y)},
    ),
    *defined(
        useful,
        {
            "the same batch again": going_on(),
            "a batch of one row": going_on(X[:1], y[:1]),
            "a batch of one class": going_on(X[y == 1], y[y == 1]),
            "a shared batch of one row": going_on(X[:1], y[:1], make=shared),
            "a batch of gaps": going_on(np.full((40, 3), nan)),
            "a batch of hardly any weight": going_on(sample_weight=np.full(40, 1e-300)),
            "a batch far out of no weight": going_on(X * 1e6, sample_weight=np.r_[1e-30, np.zeros(39)]),
            "shared, a class that never comes": lambda: shared().partial_fit(X, y, classes=[0, 1, 2]).predict_proba(X),
        },
    ),
    *defined(
        finite,
        {
            "explain far out": lambda: model.classes.explain(X * 1e140).parts,
            "explain nothing but gaps": lambda: model.classes.explain(np.full((2, 3), nan)).parts,
            "explain one row": lambda: model.classes.explain(X[:1]).log_odds,
        },
    ),
    Case("reject below every cost", lambda: model.classes.decision(X, reject=-1).expected_cost, check=all_rejected),
    Case("impute a frame of gaps", lambda: model.mixed.impute(mixed.assign(a=nan, b=nan, c=None)), check=none_left),
    Case(
        "impute an unseen category",
        lambda: model.mixed.impute(mixed.assign(c="w")),
        check=none_left,
        warns=(UserWarning, "column 'c' has values not seen"),
    ),
]
