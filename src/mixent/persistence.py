"""Save and load fitted mixent models: one file, plain numbers, safe to open."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, get_args

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

import mixent
from mixent import persistence_skops as skops
from mixent.classical import KernelFisherClassifier, ParzenClassifier
from mixent.classical.discriminant import Clouds
from mixent.classical.kernel_fisher import Basis
from mixent.classical.windows import Columns, Encoded, Windows
from mixent.core import serialize
from mixent.core.driver import Run, Status, Step
from mixent.core.starts import Starts
from mixent.data import Column, Schema
from mixent.ensemble import (
    AdaBoostM1Classifier,
    HMMStackingClassifier,
    MaxEntStackingClassifier,
    OutputColumns,
    TunedClassifier,
    WeightBoostClassifier,
)
from mixent.ensemble.latent import InputCells
from mixent.ensemble.members import Listed, Members, Staged
from mixent.ensemble.plain import PlainColumns
from mixent.ensemble.weightboost import Contest
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.fusion import Calibration as SourceCalibration
from mixent.fusion import Dependence, Drift, Fuser, Moved, PriorEstimate, Source
from mixent.fusion.answers import Answers
from mixent.fusion.batch import Batch
from mixent.fusion.frozen import LogLinear, Mean, MeanRatio, Vote, Weighted
from mixent.fusion.sources import Layout as SourceLayout
from mixent.hmm import HiddenMarkovModel, HMMClassifier
from mixent.hmm.fitting import FittedChain
from mixent.hmm.model import SequenceModel
from mixent.hmm.problem import ChainParams, ChainProblem
from mixent.maxent import MaxEntClassifier, MaxEntJoint
from mixent.maxent.induction import Added
from mixent.maxent.joint_cells import Category, Constant, Hidden
from mixent.maxent.joint_problem import Pairwise
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.products import ProductLayout
from mixent.maxent.terms import Binned, Coded, Crossed, CrossedDense, Given, Grouped, Latent, Moments, Slope
from mixent.med import (
    FisherKernel,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
)
from mixent.med.bayes_net import Net, NetModel
from mixent.med.calibration import Calibration
from mixent.med.classifier import Function
from mixent.med.encoding import Encoder
from mixent.med.exponential_family import Joint
from mixent.med.families import CellLayout, Dirichlets, Distribution, OneTree, Product, Trees, TreeTables
from mixent.med.gaussian_classifier import KernelComponents
from mixent.med.gaussians import Ensemble, NormalWishart
from mixent.med.kernels import RBF, Kernel, Linear, Nystrom, Polynomial
from mixent.med.margins import Exponential, Fixed, Gaussian, Laplace, Margin
from mixent.med.novelty_models import Emission, NoveltyChain, NoveltyMixture, NoveltyModel, NoveltyTrees, Scale
from mixent.med.tree_columns import CodedColumn, PowersColumn, SoftColumn, TreeColumns
from mixent.med.tree_tables import EdgeTables
from mixent.med.trees import TreeModel
from mixent.med.wishart import Wishart
from mixent.mixtures import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.mixtures.columns import ColumnMixture
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import Stage
from mixent.mixtures.model import MixtureModel
from mixent.mixtures.online import Kept
from mixent.mixtures.problem import MixtureParams, MixtureProblem

MIXTURES = (GaussianMixture, MixtureClassifier, SharedMixtureClassifier)
KERNELS = (MEDClassifier, MEDGaussianClassifier)
DISCRIMINATIONS = (*KERNELS, MEDTreeClassifier, MEDBayesNetClassifier)
SEQUENCES = (HMMClassifier, HiddenMarkovModel)
BOOSTED = (AdaBoostM1Classifier, WeightBoostClassifier)
STACKED = (MaxEntStackingClassifier, HMMStackingClassifier)
ESTIMATORS = (
    *MIXTURES,
    *SEQUENCES,
    *BOOSTED,
    *STACKED,
    FisherKernel,
    *DISCRIMINATIONS,
    MEDNoveltyDetector,
    MaxEntClassifier,
    MaxEntJoint,
    ParzenClassifier,
    KernelFisherClassifier,
    TunedClassifier,
    Fuser,
)
HELD = (*ESTIMATORS, OutputColumns)  # that other models may hold
HOLDERS = (Contest, InputCells, Listed, Staged)  # parts that hold models
PARTS = (
    Added,
    Basis,
    Binned,
    Calibration,
    CategoricalFamily,
    Categoricals,
    Category,
    CellLayout,
    ChainParams,
    ChainProblem,
    Clouds,
    Coded,
    CodedColumn,
    Column,
    ColumnMixture,
    Columns,
    Components,
    Constant,
    Contest,
    Crossed,
    CrossedDense,
    Dirichlets,
    EdgeTables,
    Emission,
    Encoded,
    Encoder,
    Ensemble,
    Exponential,
    Fitted,
    FittedChain,
    Fixed,
    Function,
    Gaussian,
    GaussianFamily,
    Gaussians,
    Given,
    Group,
    Grouped,
    Hidden,
    InputCells,
    Joint,
    Kept,
    KernelComponents,
    Laplace,
    Latent,
    Layout,
    Linear,
    Listed,
    MixtureParams,
    MixtureProblem,
    Moments,
    Multipliers,
    Net,
    NetModel,
    NormalWishart,
    NoveltyChain,
    NoveltyMixture,
    NoveltyTrees,
    Nystrom,
    OneTree,
    OutputColumns,
    Pairwise,
    PlainColumns,
    Polynomial,
    PowersColumn,
    Prior,
    Product,
    ProductFamily,
    ProductLayout,
    RBF,
    Run,
    Scale,
    Schema,
    Slope,
    SoftColumn,
    Stage,
    Staged,
    Starts,
    Status,
    Step,
    TreeColumns,
    TreeModel,
    TreeTables,
    Trees,
    Windows,
    Wishart,
)
RULES = (LogLinear, Mean, MeanRatio, Vote, Weighted)
FUSED = (  # parts of a fusion, some of which are called as parts of other models
    *RULES,
    Answers,
    Batch,
    Dependence,
    Drift,
    Moved,
    PriorEstimate,
    Source,
    SourceCalibration,
    SourceLayout,
)
MARGINAL = {"schema_": Schema, "calibration_": Calibration, "margin_": Margin, "run_": Run}
CLASSES_ = {"classes_": np.ndarray, "class_prior_": np.ndarray}
BOOSTING = {"schema_": Schema, **CLASSES_, "prior_shift_": np.ndarray}
STACKING = {**CLASSES_, "members_": Members, "alphabets_": tuple, "base_names_": tuple, "base_errors_": np.ndarray}
STATE: dict[type, dict[str, Any]] = {  # what a fitted model cannot do without
    **{
        kind: {"schema_": Schema, "problem_": MixtureProblem, "params_": MixtureParams, "run_": Run}
        for kind in MIXTURES
    },
    HiddenMarkovModel: {"schema_": Schema, "variables_": Schema, "by_row_": bool, "chain_": FittedChain},
    HMMClassifier: {"schema_": Schema, "variables_": Schema, "by_row_": bool, "chains_": tuple},
    MaxEntClassifier: {"schema_": Schema, "layout_": Layout, "params_": Multipliers, "run_": Run},
    MaxEntJoint: {"schema_": Schema, "terms_": tuple, "params_": Pairwise, "run_": Run},
    MEDClassifier: {
        **MARGINAL,
        "function_": Function,
        "encoder_": Encoder | None,
        "kernel_": Kernel | None,
        "map_": Nystrom | FisherKernel | None,
    },
    MEDGaussianClassifier: {
        **MARGINAL,
        "ensemble_": Ensemble,
        "encoder_": Encoder,
        "components_": KernelComponents | None,
    },
    ParzenClassifier: {"schema_": Schema, **CLASSES_, "windows_": Windows, "bandwidth_": float | np.ndarray},
    KernelFisherClassifier: {
        "schema_": Schema,
        **CLASSES_,
        "encoder_": Encoder,
        "basis_": Basis,
        "coefficients_": np.ndarray,
        "intercept_": np.ndarray,
        "clouds_": Clouds,
        "weight_": float,
        "shares_": np.ndarray,
    },
    MEDTreeClassifier: {**MARGINAL, "joint_": Joint, "model_": TreeModel},
    MEDBayesNetClassifier: {**MARGINAL, "joint_": Joint, "model_": NetModel, "shares_": np.ndarray},
    MEDNoveltyDetector: {
        "schema_": Schema,
        "model_": NoveltyModel,
        "distribution_": Distribution,
        "bayes_": Distribution,
        "offset_": float,
        "margin_": Margin | None,
        "run_": Run,
    },
    FisherKernel: {
        "model_": MixtureModel | SequenceModel,
        "information_": np.ndarray,
        "root_": np.ndarray,
        "rank_": int,
    },
    AdaBoostM1Classifier: {
        **BOOSTING,
        "estimators_": list,
        **dict.fromkeys(("alphas_", "errors_", "bound_"), np.ndarray),
        "stopped_": str | None,
    },
    WeightBoostClassifier: {**BOOSTING, "contests_": tuple},
    MaxEntStackingClassifier: {
        **STACKING,
        "cells_": tuple,
        "layout_": Layout,
        "params_": Multipliers,
        "run_": Run,
    },
    HMMStackingClassifier: {**STACKING, "chains_": tuple, "temperature_": float},
    OutputColumns: {"classes_": np.ndarray},
    TunedClassifier: {"schema_": Schema, **CLASSES_, "columns_": PlainColumns, "model_": object},
    Fuser: {
        "classes_": np.ndarray,
        "prior_": np.ndarray,
        "posterior_": np.ndarray | None,
        "rule_": LogLinear | Mean | MeanRatio | Vote | Weighted,
        "method_": str,
        "prior_estimate_": PriorEstimate,
        "dependence_": Dependence,
        "drift_": dict,
        "moved_": Moved,
        "warnings_": list,
        "_batch": Batch,
        "_first_layout": SourceLayout,
        "_fitted_layout": SourceLayout,
    },
}
INSIDE: dict[type, tuple[str, ...]] = {  # where models may hold others
    MEDClassifier: ("kernel", "map_"),
    FisherKernel: ("model", "model_"),
    AdaBoostM1Classifier: ("estimator", "estimators_"),
    WeightBoostClassifier: ("estimator", "contests_"),
    MaxEntStackingClassifier: ("members_", "estimators", "fitted_", "cells_"),  # members first: they have names
    HMMStackingClassifier: ("members_", "estimators", "fitted_"),
    TunedClassifier: ("estimator", "model_"),
}
CLASSES = {cls.__name__: cls for cls in (*ESTIMATORS, *PARTS)} | {f"fusion.{cls.__name__}": cls for cls in FUSED}

SavedFileError = serialize.SavedFileError


def save(model: Any, path: str | os.PathLike[str], *, foreign: str | None = None) -> None:
    """Write a fitted mixent model to one file.

    Parameters
    ----------
    model : fitted mixent estimator
    path : file name, usually ending in .mixent
    foreign : "skops" or None
        What to do with estimators of other libraries in an ensemble: None refuses them by name, "skops" writes them
        with that package (`pip install "mixent[skops]"`), which is needed to load them too.
    """
    if not isinstance(model, ESTIMATORS):
        raise TypeError(
            f"save takes a mixent estimator ({', '.join(c.__name__ for c in ESTIMATORS)}); got {type(model).__name__}"
        )
    if foreign not in (None, "skops"):
        raise ValueError(f"foreign must be 'skops' or None; got {foreign!r}")
    check_is_fitted(model)
    bare = _Bare(refuse=foreign is None)(model, "the model")
    about = {"class": type(model).__name__, "mixent_version": mixent.__version__}
    pack = None if foreign is None else skops.pack
    serialize.save(path, bare, CLASSES, about, shared=(*HELD, *HOLDERS), pack=pack)


class _Bare:
    """Copies without what is of this process alone: functions that show progress, and scikit-learn's wrapping.

    What is held in two places is copied once. What a file cannot hold is refused here, by its name.
    """

    def __init__(self, refuse: bool) -> None:
        self.refuse = refuse  # estimators of other libraries
        self.done: dict[int, tuple[Any, Any]] = {}  # id -> object, kept alive; its copy

    def __call__(self, value: Any, name: str) -> Any:
        if id(value) in self.done:
            return self.done[id(value)][1]
        if isinstance(value, FrozenEstimator):
            return self(value.estimator, name)
        if isinstance(value, (list, tuple)):
            if len(value) == 2 and isinstance(value[0], str):  # a classifier and its name
                name = repr(value[0])
            return type(value)(self(one, name) for one in value)
        if not isinstance(value, (*HELD, *HOLDERS)):
            if self.refuse and hasattr(value, "fit"):
                _refuse_foreign(value, name)
            return value
        found = self._holder(value, name) if isinstance(value, HOLDERS) else self._model(value, name)
        self.done[id(value)] = value, found
        return found

    def _holder(self, holder: Any, name: str) -> Any:
        if isinstance(holder, Listed):
            return replace(holder, bases=tuple(self(b, repr(n)) for n, b in zip(holder.names, holder.bases)))
        if isinstance(holder, Staged):
            return replace(holder, ensemble=self(holder.ensemble, "the ensemble"))
        return replace(holder, **{f.name: self(getattr(holder, f.name), name) for f in fields(holder)})

    def _model(self, model: Any, name: str) -> Any:
        if isinstance(model, KERNELS):
            _check_kernel(model)
        if isinstance(model, MEDBayesNetClassifier):
            _check_structure(model.structure)
        model = copy.copy(model)
        if isinstance(model, Fuser):
            _take_off(model)
        if callable(getattr(model, "progress", None)):
            model.progress = False
        inner = f"the base of {name}" if isinstance(model, BOOSTED) else name
        for part in INSIDE.get(type(model), ()):
            if hasattr(model, part):
                setattr(model, part, self(getattr(model, part), inner))
        return model


def _take_off(fuser: Fuser) -> None:
    """What a fusion can do without: the labels are read off the posteriors, names of items are an array of one type."""
    for name in ("_fitted", "labels_"):
        fuser.__dict__.pop(name, None)
    items = getattr(fuser, "items_", None)
    if items is not None and len({type(item) for item in items.tolist()} - {int, str}) == 0:
        plain = np.array(items.tolist())
        fuser.items_ = plain if plain.tolist() == items.tolist() else items  # numbers among text would become text


def _refuse_foreign(value: Any, name: str) -> None:
    columns = "" if name.startswith("the base of") else ", give what it says as columns of the table (OutputColumns)"
    raise TypeError(
        f"{name} is a {skops.whose(value)}, and a mixent file holds mixent's own models; take mixent bases{columns}, "
        "or save(model, path, foreign='skops')"
    )


def _check_kernel(model: Any) -> None:
    """A file holds numbers, no code: neither the user's functions nor classes that mixent does not know."""
    by_pairs = isinstance(model, MEDGaussianClassifier)  # its kernels are functions of two rows, whatever else they are
    for kernel in (model.kernel, getattr(model, "map_", None)):
        kernel = kernel.estimator if isinstance(kernel, FrozenEstimator) else kernel
        if kernel is None or isinstance(kernel, str if by_pairs else str | FisherKernel | Nystrom):
            continue
        if hasattr(kernel, "transform") and not by_pairs:
            raise TypeError(
                f"the kernel of this model is a {type(kernel).__name__}, which a mixent file cannot hold; transform "
                f"the rows first, fit {type(model).__name__}() to the features and keep the transformer apart, or take "
                "kernel='linear', 'poly', 'rbf' or a FisherKernel"
            )
        other = "" if by_pairs else ", or give the matrix with kernel='precomputed'"
        raise TypeError(
            "the kernel of this model is a function, and a mixent file holds no code; take kernel='rbf' or 'poly'"
            f"{other}"
        )


def _check_structure(structure: Any) -> None:
    """As for kernels."""
    for one in structure.values() if isinstance(structure, dict) else (structure,):
        if callable(one):
            raise TypeError(
                "the structure of this model is a function, and a mixent file holds no code; set structure to the "
                "edges it returned, a list of (parent, child): see edges_"
            )


def load(path: str | os.PathLike[str], *, max_bytes: int = serialize.MAX_BYTES, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` wrote. Safe on files you do not trust: nothing in a file is ever run.

    Parts that were written through skops are built by skops, and only of types it trusts by itself or that you name.

    Parameters
    ----------
    path : file name
    max_bytes : int
        Refuse files that unpack to more.
    trusted : list of str
        For a file with estimators of other libraries: names of types, such as "package.module.Class", that may be built
        besides those of scikit-learn and numpy that skops knows to be harmless.

    Returns
    -------
    The fitted estimator.
    """
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(f"trusted must be a list of names of types; got {trusted!r}")
    model = serialize.load(path, CLASSES, max_bytes=max_bytes, unpack=skops.unpacker(tuple(trusted)))
    if not isinstance(model, ESTIMATORS):
        raise SavedFileError(f"{path} holds a {type(model).__name__}, not a model")
    return _Checked(path)(model)


class _Checked:
    """A whole model, and whole models inside it; each once, however often it is held."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.done: dict[int, Any] = {}

    def __call__(self, model: Any) -> Any:
        if id(model) in self.done:
            return model
        self.done[id(model)] = model
        for name, kind in STATE[type(model)].items():
            if not isinstance(getattr(model, name, ABSENT), kind):
                self._damaged(f"{name} is missing or no {_name_of(kind)}")
        for inner in self._fitted_inside(model):
            if isinstance(inner, HELD):
                self(inner)
        if isinstance(model, Fuser):
            self._fusion(model)
        return _brought_up_to_date(model)

    def _damaged(self, what: str) -> None:
        raise SavedFileError(f"{self.path}: the contents are damaged ({what})")

    def _fitted_inside(self, model: Any) -> list[Any]:
        """Models without which it cannot predict."""
        if isinstance(model, BOOSTED):
            return self._stages(model)
        if isinstance(model, STACKED):
            return [*self._classifiers(model), *self._mixtures(model)]
        if isinstance(model, MaxEntClassifier):
            return self._groups(model)
        parts = INSIDE.get(type(model), ())
        return [getattr(model, name) for name in parts if name.endswith("_")]  # an option need not be fitted

    def _fusion(self, fuser: Fuser) -> None:
        posterior, classes = fuser.posterior_, fuser.classes_
        fits = posterior is None or (posterior.ndim == 2 and posterior.shape[1] == len(classes))
        if not fits or not all(isinstance(one, Drift) for one in fuser.drift_.values()):
            self._damaged("posteriors or drifts do not fit the classes")
        fuser.labels_ = None if posterior is None else classes[posterior.argmax(axis=1)]
        items = getattr(fuser, "items_", None)
        fuser.items_ = items if items is None else items.astype(object)

    def _groups(self, model: Any) -> list[Any]:
        found = [term.mixture for term in _single(model.layout_) if isinstance(term, Grouped)]
        if not all(isinstance(mixture, MIXTURES) for mixture in found):
            self._damaged("a group of columns has no mixture")
        return found

    def _stages(self, model: Any) -> list[Any]:
        if isinstance(model, WeightBoostClassifier):
            if not model.contests_ or not all(isinstance(contest, Contest) for contest in model.contests_):
                self._damaged("contests_ are no contests")
            runs = [(contest.estimators, contest.alphas) for contest in model.contests_]
        else:
            runs = [(model.estimators_, model.alphas_)]
        for stages, alphas in runs:
            if not stages or len(stages) != len(alphas) or not all(hasattr(s, "predict") for s in stages):
                self._damaged("a stage is missing or no classifier")
        return [stage for stages, _ in runs for stage in stages]

    def _classifiers(self, model: Any) -> list[Any]:
        fitted, listed = getattr(model, "fitted_", None), isinstance(model.members_, Listed)
        found = fitted if isinstance(fitted, list) else [fitted]
        sizes = len(found), len(model.base_names_), len(model.alphabets_)
        if listed != isinstance(fitted, list) or (listed and len(set(sizes)) > 1):
            self._damaged("fitted_ are not the classifiers that are combined")
        if not all(hasattr(base, "predict") for base in found):
            self._damaged("a classifier is missing or none")
        return found

    def _mixtures(self, model: Any) -> list[Any]:
        cells = getattr(model, "cells_", ())
        if not all(isinstance(one, InputCells) and isinstance(one.mixture, MIXTURES) for one in cells):
            self._damaged("cells_ have no mixture")
        return [one.mixture for one in cells]


ABSENT = object()


def _name_of(kind: Any) -> str:
    """Of a class, or of several that would do."""
    return getattr(kind, "__name__", None) or " or ".join(getattr(k, "__name__", "None") for k in get_args(kind))


def _single(layout: Layout) -> Iterator[Any]:
    """The features, those of pairs one by one."""
    for term in layout.terms:
        yield from (term.first, term.second) if isinstance(term, Crossed | CrossedDense) else (term,)


RENAMED = {"criterion": "selection"}  # options of mixent 0.1
LATER: dict[str, Any] = {"path_": [], "kept_": None}  # what mixtures fitted before it existed did not have


def _brought_up_to_date(model: Any, done: tuple[Any, ...] = ()) -> Any:
    """A model of an older mixent: its options under their new names, later ones at their defaults."""
    state = vars(model)
    options = inspect.signature(type(model)).parameters
    for old, new in RENAMED.items():
        if old in state and old not in options:
            state[new] = state.pop(old)
    for name, option in options.items():
        state.setdefault(name, option.default)
    for name, value in LATER.items() if isinstance(model, MIXTURES) and "params_" in state else ():
        state.setdefault(name, copy.copy(value))
    for name in INSIDE.get(type(model), ()):  # options too; in ensembles, which are younger, nothing is that old
        inner = state.get(name)
        if isinstance(inner, ESTIMATORS) and not any(inner is one for one in done):
            done = (*done, inner)
            _brought_up_to_date(inner, done)
    return model
