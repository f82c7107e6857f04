"""Registration of the estimators in this folder."""

from __future__ import annotations

from mixent.base.recipes import Recipe
from mixent.base.registry import register
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
from mixent.maxent.options import BinFeatures, ComponentFeatures, ForwardSelection, MomentFeatures
from mixent.maxent.problem import Multipliers
from mixent.maxent.products import ProductLayout
from mixent.maxent.terms import (
    Binned,
    Coded,
    Crossed,
    CrossedDense,
    Grouped,
    Latent,
    Moments,
    Probabilistic,
    Slope,
)
from mixent.mixtures import GaussianMixture, MixtureClassifier


def mixtures_of_groups(model: MaxEntClassifier) -> list[GaussianMixture | MixtureClassifier]:
    """The mixtures of groups of columns."""
    mixtures = [term.mixture for term in model.layout_.single_terms() if isinstance(term, Grouped)]
    if not all(isinstance(mixture, GaussianMixture | MixtureClassifier) for mixture in mixtures):
        raise ValueError("a group of columns has no mixture")
    return mixtures


register(
    "maxent",
    task="classification",
    title="Maximum entropy classifier",
    describe=describe_classifier,
    state={"schema_": Schema, "layout_": Layout, "params_": Multipliers, "run_": Run},
    parts=(
        SelectionStep,
        BinFeatures,
        Binned,
        Coded,
        ComponentFeatures,
        Crossed,
        CrossedDense,
        ForwardSelection,
        Probabilistic,
        Grouped,
        Latent,
        Layout,
        MomentFeatures,
        Moments,
        Multipliers,
        ProductLayout,
        Slope,
    ),
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
    state={"schema_": Schema, "terms_": tuple, "params_": Pairwise, "run_": Run},
    parts=(Category, Constant, Hidden, Pairwise),
)(MaxEntJoint)
