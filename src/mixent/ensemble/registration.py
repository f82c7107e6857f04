"""Registration of the estimators in this folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.background import Background
from mixent.base.recipes import Recipe, Setting
from mixent.base.registry import find, register, sizes_of, sizes_of_columns
from mixent.base.saved_state import Part, Several, Sizes, Values, flags, free, index, maybe, positive, real, shares
from mixent.core.driver import Run
from mixent.data import Column, Schema
from mixent.data.formats import PLAIN, Format
from mixent.ensemble.adaboost import AdaBoostM1Classifier
from mixent.ensemble.describe import describe_columns, describe_hmm_stack, describe_stack, describe_tuned
from mixent.ensemble.describe_boosting import boosting_on_rows, describe_boosting
from mixent.ensemble.encoding import ColumnEncoding
from mixent.ensemble.hmm_stacking import HMMStackingClassifier
from mixent.ensemble.maxent_stacking import MaxEntStackingClassifier
from mixent.ensemble.members import EnsembleMembers, Members, NamedMembers
from mixent.ensemble.options import InputRegions
from mixent.ensemble.output_columns import OutputColumns
from mixent.ensemble.regions import RegionMixture
from mixent.ensemble.stacking import BaseStacking
from mixent.ensemble.tuned import TunedClassifier
from mixent.ensemble.weightboost import BinaryBoosting, WeightBoostClassifier
from mixent.hmm.fitting import FittedChain
from mixent.maxent import MaxEntClassifier
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.med import MEDClassifier
from mixent.mixtures import GaussianMixture, MixtureClassifier

CLASSES = {"classes_": np.ndarray, "class_prior_": shares("C"), "background_": Background | None}
BOOSTING = {"schema_": Schema, **CLASSES, "prior_shift_": "C"}
STACKING = {
    **CLASSES,
    "members_": Members,
    "base_classes_": Several(np.ndarray, "J"),
    "base_names_": Several(str, "J"),
    "base_errors_": free("J"),
}
STAGES = {"alphas": "M", "errors": "M", "bound": free("M")}
CONSTRAINTS = 2_000  # margin constraints beyond which the kernel classifier of a stack is fitted once, on landmarks


# --- files ------------------------------------------------------------------------------------------------------------


def stages(model: Any) -> list[Any]:
    """The fitted stages of a boosted classifier."""
    if isinstance(model, WeightBoostClassifier):
        boostings = model.binary_boostings_
        if not boostings or not all(isinstance(boosting, BinaryBoosting) for boosting in boostings):
            raise ValueError("binary_boostings_ must hold BinaryBoosting objects")
        runs = [(boosting.estimators, boosting.alphas) for boosting in boostings]
    else:
        runs = [(model.estimators_, model.alphas_)]
    for fitted, alphas in runs:
        if not fitted or len(fitted) != len(alphas) or not all(hasattr(stage, "predict") for stage in fitted):
            raise ValueError("a stage is missing or is not a classifier")
    return [stage for fitted, _ in runs for stage in fitted]


def combined(model: BaseStacking) -> list[Any]:
    """The fitted classifiers of a stacking model, and the mixtures of its regions."""
    fitted, listed = getattr(model, "fitted_", None), isinstance(model.members_, NamedMembers)
    bases = fitted if isinstance(fitted, list) else [fitted]
    sizes = len(bases), len(model.base_names_), len(model.base_classes_)
    if listed != isinstance(fitted, list) or (listed and len(set(sizes)) > 1):
        raise ValueError("fitted_ does not hold the combined classifiers")
    if not all(hasattr(base, "predict") for base in bases):
        raise ValueError("a classifier is missing or is not a classifier")
    regions = getattr(model, "regions_", ())
    mixtures = GaussianMixture | MixtureClassifier
    if not all(isinstance(region, RegionMixture) and isinstance(region.mixture, mixtures) for region in regions):
        raise ValueError("regions_ has no mixture")
    return [*bases, *(region.mixture for region in regions)]


def stacked_sizes(model: BaseStacking) -> dict[str, Any]:
    """J classifiers, whose outputs, and regions, are the c columns of the combining model; X has `features`."""
    regions = {id(region): region.mixture.params_.n_components for region in vars(model).get("regions_", ())}
    outputs = sum(map(len, model.base_classes_)) + sum(regions.values())
    sizes = {**sizes_of(model), "J": len(model.base_names_), "features": model.n_features_in_}
    sizes |= {"c": outputs, "m": 0, "R": 0, "categories": ()}
    return sizes | ({"S": len(model.params_.cells)} if "params_" in vars(model) else {})


def encoded_columns(encoding: ColumnEncoding, known: Sizes) -> Sizes:
    """The columns are those of the table."""
    if sizes_of_columns(encoding.schema)["categories"] != known["categories"]:
        raise ValueError("the encoding has other columns than the table")
    return {"columns": known["c"] + known["m"]}


# --- columns ----------------------------------------------------------------------------------------------------------


def columns_of_members(model: BaseStacking) -> Schema:
    """The columns of the table, each with the type that the first classifier uses it as."""
    named = hasattr(model, "feature_names_in_")
    names = [str(n) for n in model.feature_names_in_] if named else [f"x{j}" for j in range(model.n_features_in_)]
    known: dict[str, tuple[Format, list[Column]]] = {}
    for base in model.fitted_ if isinstance(model.fitted_, list) else [model.fitted_]:
        schema = _columns_of(base, names)
        for given in schema.inputs:
            known.setdefault(given.name, (given.format, [schema.columns[j] for j in given.columns]))
    read = [(name, *known.get(name, (PLAIN, [Column(name, "continuous")]))) for name in names]
    return Schema.of(read, named)


def _columns_of(base: Any, names: list[str]) -> Schema:
    if isinstance(base, OutputColumns):
        used = [names[c] if isinstance(c, int) else str(c) for c in base.used]
        kind: tuple[Any, ...] = ("categorical", tuple(base.classes_.tolist())) if len(used) == 1 else ("continuous",)
        return Schema(tuple(Column(name, *kind) for name in used), named=True)
    for model in (base, *(step for _, step in getattr(base, "steps", ()))):  # the steps of a pipeline
        entry = find(type(model))
        schema = None if entry is None else entry.columns(model)
        if schema is not None:
            return schema
    return Schema((), named=True)


# --- compare ----------------------------------------------------------------------------------------------------------


def make_stack(setting: Setting) -> MaxEntStackingClassifier:
    """A stack of four different models without hyperparameter search: each is fitted once for every fold."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    med: dict[str, Any] = {"C": 3.0}
    if setting.shape.n_constraints > CONSTRAINTS:  # without calibration by further fits: the stack calibrates
        med = {"C": 10.0, "kernel__n_landmarks": 100, "calibration": None}
    forest = RandomForestClassifier(200, min_samples_leaf=2, n_jobs=1)
    boosting = HistGradientBoostingClassifier(learning_rate=0.05, max_iter=150, max_leaf_nodes=15)
    options: dict[str, Any] = {"categorical": setting.categorical, "random_state": setting.seed}
    parts = [
        ("mixture", MixtureClassifier(1, **setting.common)),
        ("med", MEDClassifier("rbf", **setting.common).set_params(**med)),
        ("forest", TunedClassifier(forest, None, encoding="codes", **options)),
        ("boosting", TunedClassifier(boosting, None, encoding="codes", **options)),
    ]
    return MaxEntStackingClassifier(parts, random_state=setting.seed, n_jobs=1)


def _members() -> list[Any]:
    return [MixtureClassifier(), MaxEntClassifier()]


# --- the estimators ---------------------------------------------------------------------------------------------------

register(
    "adaboost",
    task="classification",
    title="AdaBoost.M1",
    describe=describe_boosting,
    on_rows=boosting_on_rows,
    state={
        **BOOSTING,
        "estimators_": list,
        **{f"{name}_": shape for name, shape in STAGES.items()},
        "stopped_": str | None,
    },
    holds=("estimator", "estimators_"),
    from_file=stages,
)(AdaBoostM1Classifier)
register(
    "weightboost",
    task="classification",
    title="Input-dependent boosting",
    describe=describe_boosting,
    on_rows=boosting_on_rows,
    state={**BOOSTING, "binary_boostings_": tuple},
    parts={BinaryBoosting: {**STAGES, "share": Values("", low=0.0), "beta": real("", 0.0)}},
    holds=("estimator", "binary_boostings_"),
    from_file=stages,
)(WeightBoostClassifier)
register(
    "stack",
    task="classification",
    title="Classifiers combined by maximum entropy",
    describe=describe_stack,
    state={**STACKING, "regions_": tuple, "layout_": Layout, "params_": Multipliers, "run_": Run},
    parts={
        RegionMixture: {"columns": index("g", below="features"), "classes": index("classes", below="C")},
        InputRegions: {},
        NamedMembers: {},
        EnsembleMembers: {},
    },
    sizes=stacked_sizes,
    holds=("members_", "estimators", "fitted_", "regions_"),  # members first: they have names
    columns=columns_of_members,
    from_file=combined,
    recipes=(Recipe("stack", "mixture, MED, forest and boosting combined by maximum entropy", make_stack, 2.5),),
    example=lambda: MaxEntStackingClassifier(_members()),
)(MaxEntStackingClassifier)
register(
    "hmm-stack",
    task="classification",
    title="Classifiers combined by a hidden Markov model for each class",
    describe=describe_hmm_stack,
    state={**STACKING, "chains_": Several(FittedChain, "C"), "temperature_": positive("")},
    sizes=stacked_sizes,
    holds=("members_", "estimators", "fitted_"),
    columns=columns_of_members,
    from_file=combined,
    example=lambda: HMMStackingClassifier(_members()),
)(HMMStackingClassifier)
register(
    "tuned",
    task="classification",
    title="Tuned classifier on encoded columns",
    describe=describe_tuned,
    state={
        "schema_": Schema,
        **CLASSES,
        "columns_": ColumnEncoding,
        "model_": object,
        "prior_shift_": maybe("C"),
    },
    parts={
        ColumnEncoding: Part({"mean": "c", "scale": positive("c"), "has_missing": flags("columns")}, encoded_columns)
    },
    holds=("estimator", "model_"),
    adapter=True,
)(TunedClassifier)
register(
    "output-columns",
    task="classification",
    title="Predictions given as columns of the table",
    describe=describe_columns,
    state={"classes_": np.ndarray},
    listed=False,
    example=lambda: OutputColumns(0),
)(OutputColumns)
