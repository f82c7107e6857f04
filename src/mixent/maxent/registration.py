"""Registration of the estimators in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mixent.base.few_rows import few_rows, predictions
from mixent.base.recipes import Recipe
from mixent.base.registry import register, sizes_of
from mixent.base.saved_state import Part, Several, Sizes, free, index, positive, real, shares
from mixent.core.driver import Run
from mixent.data import Schema
from mixent.maxent.classifier import MaxEntClassifier
from mixent.maxent.describe import describe_classifier
from mixent.maxent.describe_joint import describe_joint, joint_on_rows
from mixent.maxent.forward_selection import SelectionStep
from mixent.maxent.joint import MaxEntJoint
from mixent.maxent.joint_problem import Pairwise
from mixent.maxent.joint_terms import Category, Constant, Hidden
from mixent.maxent.layout import Layout
from mixent.maxent.options import KINDS, BinFeatures, ComponentFeatures, ForwardSelection, MomentFeatures
from mixent.maxent.problem import Multipliers
from mixent.maxent.products import ProductLayout
from mixent.maxent.purified import Margins
from mixent.maxent.terms import (
    Binned,
    Coded,
    Crossed,
    CrossedDense,
    Grouped,
    Knots,
    Latent,
    Moments,
    Probabilistic,
    Slope,
)
from mixent.mixtures import GaussianMixture, MixtureClassifier

# --- files: C classes, c continuous and m categorical columns, S cells of the terms ----------------------------------


def coded_values(term: Coded | Category, known: Sizes) -> Sizes:
    """Every category of the column has a cell."""
    if not 0 <= term.column < known["m"] or len(term.values) != known["categories"][term.column]:
        raise ValueError(f"{term.name} has {len(term.values)} values, which are not those of a column")
    return {}


def constant_column(term: Constant, known: Sizes) -> Sizes:
    """The column exists."""
    if not 0 <= term.column < known["m" if term.discrete else "c"]:
        raise ValueError(f"{term.name} is not a column")
    return {}


def increasing(term: Binned, known: Sizes) -> Sizes:
    """The bins are in order."""
    if not (np.diff(term.edges) > 0).all():
        raise ValueError("edges are not increasing")
    return {}


def increasing_knots(term: Knots, known: Sizes) -> Sizes:
    """There are at least two knots, in order."""
    if len(term.knots) < 2 or not (np.diff(term.knots) > 0).all():
        raise ValueError("knots are not increasing")
    return {}


def mixture_of_each_class(term: Latent, known: Sizes) -> Sizes:
    """A mixture has a share, and one for each class a class."""
    if term.kind not in KINDS or (term.kind != "pooled" and len(term.mixtures) != known["C"]):
        raise ValueError(f"{term.name} has {len(term.mixtures)} mixtures of kind {term.kind!r}")
    return {"mixtures": len(term.mixtures)}


def n_values(term: Any) -> int:
    """The number of values of a term, without naming them: a pair of features may have too many."""
    if isinstance(term, Crossed | CrossedDense):
        if isinstance(term.first, Crossed | CrossedDense) or isinstance(term.second, Crossed | CrossedDense):
            raise ValueError("a pair of features is a pair of pairs")
        return _n_paired(term.first) * _n_paired(term.second)
    slopes = len(term.slopes) if isinstance(term, Latent | Grouped) else 0
    return slopes + _n_paired(term)


def _n_paired(term: Any) -> int:
    if isinstance(term, Latent):
        return sum(len(mixture.means) for mixture in term.mixtures)
    if isinstance(term, Grouped):
        return int(term.mixture.params_.n_components)
    return len(term.edges) + 1 if isinstance(term, Binned) else len(term.values)


def cells_of_terms(layout: Layout, known: Sizes) -> Sizes:
    """The terms have S cells."""
    n_cells = sum(map(n_values, layout.terms))
    if n_cells != known["S"]:
        raise ValueError(f"the terms have {n_cells} cells, and {known['S']} have multipliers")
    return {}


def solved_sizes(model: Any) -> dict[str, Any]:
    """S rows of multipliers; the layout must have as many cells."""
    return {**sizes_of(model), "S": len(model.params_.cells)}


def margins_of_pairs(model: MaxEntClassifier) -> dict[str, Any]:
    """Every pair has margins, with a row for each value of its features and for a missing one; none in older files."""
    pairs = [term for term in model.layout_.terms if isinstance(term, Crossed | CrossedDense)]
    margins = list(model.margins_)
    if margins and [(len(m.first), len(m.second)) for m in margins] != [
        (_n_paired(pair.first) + 1, _n_paired(pair.second) + 1) for pair in pairs
    ]:
        raise ValueError("margins_ do not have the values of the pairs")
    return solved_sizes(model)


SOLVED = {"params_": Multipliers, "run_": Run, "class_prior_": shares("C")}
TERMS: dict[type, Any] = {
    Binned: Part({"column": index("", below="c"), "edges": "B"}, increasing),
    Coded: Part({}, coded_values),
    Crossed: {},
    CrossedDense: {},
    Grouped: {"columns": index("g", below="c")},
    Latent: Part({"column": index("", below="c"), "shares": positive("mixtures")}, mixture_of_each_class),
    Knots: Part({"column": index("", below="c"), "knots": "B"}, increasing_knots),
    Layout: Part({}, cells_of_terms),
    Margins: {"first": "first C", "second": "second C"},
    Moments: {"column": index("", below="c"), "scale": positive("")},
    Multipliers: {"bias": "C", "cells": "S C"},
    Probabilistic: {
        "columns": index("v", below="c"),
        "value_class": index("v", below="C", low=-1),
    },
    ProductLayout: Part({}, cells_of_terms),
    Slope: {"scale": positive("")},
}


def predictions_with_probabilities(model: MaxEntClassifier) -> Iterator[tuple[str, Any]]:
    """The answers to a few rows; the columns of a probabilistic feature have equal probabilities."""
    rows = few_rows(model.schema_)
    for term in model.layout_.single_terms():
        if isinstance(term, Probabilistic):
            rows.X[:, list(term.columns)] = 1.0 / len(term.columns)
    return predictions(model, rows)


def mixtures_of_groups(model: MaxEntClassifier) -> list[GaussianMixture | MixtureClassifier]:
    """The mixtures of groups of columns."""
    mixtures = [term.mixture for term in model.layout_.single_terms() if isinstance(term, Grouped)]
    if not all(isinstance(mixture, GaussianMixture | MixtureClassifier) for mixture in mixtures):
        raise ValueError("a group of columns has no mixture")
    return mixtures


def joint_sizes(model: MaxEntJoint) -> dict[str, Any]:
    """S cells of all columns that vary."""
    cells = [len(term.values) for term in model.terms_ if not isinstance(term, Constant)]
    return {**sizes_of(model), "columns": len(model.schema_.columns), "S": sum(cells)}


register(
    "maxent",
    task="classification",
    title="Maximum entropy classifier",
    describe=describe_classifier,
    state={"schema_": Schema, "classes_": np.ndarray, "layout_": Layout, **SOLVED},
    parts={
        **TERMS,
        BinFeatures: {},
        ComponentFeatures: {},
        ForwardSelection: {},
        MomentFeatures: {},
        SelectionStep: {"expected_gain": free(""), "gain": free(""), "score": free("")},
    },
    sizes=margins_of_pairs,
    predictions=predictions_with_probabilities,
    from_file=mixtures_of_groups,
    recipes=(
        Recipe(
            "maximum entropy",
            "constraints on classes and values; variance of the prior chosen by cross-validation",
            lambda setting: MaxEntClassifier(**setting.common),
            1.0,
        ),
    ),
)(MaxEntClassifier)
register(
    "joint",
    task="joint",
    title="Joint maximum entropy model of all columns",
    describe=describe_joint,
    on_rows=joint_on_rows,
    state={
        "schema_": Schema,
        "terms_": Several(Category | Constant | Hidden, "columns"),
        "params_": Pairwise,
        "run_": Run,
        "shares_": real("S", 0.0),
    },
    parts={
        Category: Part({}, coded_values),
        Constant: Part({}, constant_column),
        Hidden: {"column": index("", below="c")},
        Pairwise: {"single": "S", "pairs": "S S"},
    },
    sizes=joint_sizes,
)(MaxEntJoint)
