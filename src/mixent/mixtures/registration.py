"""Registration of the estimators in this folder."""

from __future__ import annotations

from mixent.base.recipes import Recipe
from mixent.base.registry import register
from mixent.core.driver import Run
from mixent.data import Schema
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.classifier import MixtureClassifier
from mixent.mixtures.clustering import GaussianMixture
from mixent.mixtures.columns import ColumnMixture
from mixent.mixtures.describe import describe_classifier, describe_mixture, describe_shared
from mixent.mixtures.describe_rows import classifier_on_rows, mixture_on_rows
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import Stage
from mixent.mixtures.online import PastStatistics
from mixent.mixtures.options import Conditional, Likelihood, MinimumError, MixturePrior, Search
from mixent.mixtures.problem import MixtureParams, MixtureProblem
from mixent.mixtures.shared import SharedMixtureClassifier

STATE = {"schema_": Schema, "problem_": MixtureProblem, "params_": MixtureParams, "run_": Run}
PARTS = (
    CategoricalFamily,
    Categoricals,
    ColumnMixture,
    Components,
    Conditional,
    Fitted,
    GaussianFamily,
    Gaussians,
    Group,
    PastStatistics,
    Likelihood,
    MinimumError,
    MixtureParams,
    MixturePrior,
    MixtureProblem,
    Prior,
    ProductFamily,
    Search,
    Stage,
)

register(
    "gaussian-mixture",
    task="clustering",
    title="Gaussian mixture",
    describe=describe_mixture,
    on_rows=mixture_on_rows,
    state=STATE,
    parts=PARTS,
)(GaussianMixture)
register(
    "mixture",
    task="classification",
    title="Bayes classifier with a mixture for each class",
    describe=describe_classifier,
    on_rows=classifier_on_rows,
    state=STATE,
    recipes=(
        Recipe(
            "mixture",
            "a mixture for each class, with numbers of components and structure selected by cross-validation",
            lambda setting: MixtureClassifier(**setting.common),
            4.0,
            growth=0.2,
        ),
    ),
)(MixtureClassifier)
register(
    "shared-mixture",
    task="classification",
    title="Bayes classifier with mixture components shared by all classes",
    describe=describe_shared,
    on_rows=classifier_on_rows,
    state=STATE,
    recipes=(
        Recipe(
            "shared mixture",
            "components shared by all classes",
            lambda setting: SharedMixtureClassifier(**setting.common),
            5.0,
            growth=0.2,
        ),
    ),
)(SharedMixtureClassifier)
