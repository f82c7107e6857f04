"""From the options of a command to estimators; what would have no effect is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import typer

from mixent.cli.models_classical import CLASSICAL, classical
from mixent.cli.models_ensemble import ENSEMBLES, bases_of, ensemble, fit_to_columns, taken
from mixent.cli.models_med import KERNELS, MED, QUANTILES, belongs_to_others, check_words, discrimination
from mixent.cli.models_structures import OF_MODELS, hidden_markov
from mixent.cli.parsing import name_lists, one_of, read_prior, refuse_idle, share, word_or

KINDS = ("mixture", "shared", "maxent", "joint", *MED, *CLASSICAL, "hmm", *ENSEMBLES)
MIXTURES = ("mixture", "shared")
HIDDEN = ("union", "class", "pooled")
LATENT = (*HIDDEN, "quantize", "moments")
ENTROPIES = ("maxent", "joint")
SERVES = {  # option: the models it does anything for, where that is not all of them
    "--components": (*MIXTURES, "med-tree"),
    "--covariance": (*MIXTURES, "hmm"),
    "--objective": (*MIXTURES, *OF_MODELS, "parzen"),
    "--prior": (*MIXTURES, *ENTROPIES, *QUANTILES, "hmm", *ENSEMBLES),
    "--alpha": (*MIXTURES, *QUANTILES),
    "--validation": (*MIXTURES, "maxent"),
    "--growth": MIXTURES,
    "--select": (*MIXTURES, "maxent"),
    "--max-components": (*MIXTURES, *ENTROPIES, *ENSEMBLES),
    "--per-class": (*MIXTURES, "parzen"),
    "--latent": ("maxent", *ENSEMBLES),
    "--bins": ("maxent",),
    "--n-bins": ("maxent",),
    "--no-means": ("maxent",),
    "--groups": ("maxent",),
    "--pairs": ("maxent",),
    "--selection": ("maxent",),
    "--solver": (*ENTROPIES, *ENSEMBLES),
    "--probabilistic": ("maxent",),
    **dict.fromkeys(("--kernel", "--gamma", "--degree", "--n-features"), (*KERNELS, "kernel-fisher")),
    "--bandwidth": ("parzen",),
    "--shrinkage": ("kernel-fisher",),
    **dict.fromkeys(("--c", "--margin", "--bias", "--calibration"), MED),
    "--structure": OF_MODELS,
    **dict.fromkeys(("--tables", "--numbers"), ("med-tree",)),
    **dict.fromkeys(("--states", "--topology"), ("hmm",)),
    "--transitions": ("hmm", *ENSEMBLES),
    **dict.fromkeys(("--bases", "--outputs"), ("stack",)),
    **dict.fromkeys(("--base", "--stages"), ("boost", "weightboost")),
    **dict.fromkeys(("--combine", "--constraints", "--decisions"), ENSEMBLES),
}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The options of a model as they were typed; None, False and empty where they were not."""

    components: str = "auto"
    covariance: str = "auto"
    prior: str = "auto"
    objective: str | None = None
    alpha: float | None = None
    validation: float | None = None
    growth: str = "restart"
    select: str | None = None
    max_components: int | None = None
    per_class: bool = False
    latent: str | None = None
    bins: str | None = None
    n_bins: int | None = None
    no_means: bool = False
    groups: str | None = None
    pairs: str | None = None
    selection: str | None = None
    solver: str | None = None
    probabilistic: tuple[str, ...] = ()
    kernel: str | None = None
    c: str | None = None
    margin: str | None = None
    bias: str | None = None
    gamma: str | None = None
    degree: int | None = None
    calibration: str | None = None
    n_features: int | None = None
    bandwidth: str | None = None
    shrinkage: str | None = None
    structure: str | None = None
    tables: str | None = None
    numbers: str | None = None
    states: int | None = None
    topology: str | None = None
    transitions: str | None = None
    bases: str | None = None
    outputs: tuple[str, ...] = ()
    base: str | None = None
    stages: int | None = None
    combine: str | None = None
    constraints: str | None = None
    decisions: str | None = None

    @classmethod
    def typed_in(cls, params: dict[str, Any]) -> Choices:
        """From the parameters of a command, which has these among others."""
        given = {f.name: params[f.name] for f in fields(cls)}
        return cls(**given | {name: tuple(given[name]) for name in ("probabilistic", "outputs")})

    @classmethod
    def untyped(cls, name: str) -> Any:
        """What an option is where it was not given."""
        return next(f.default for f in fields(cls) if f.name == name)

    def searched(self, clusters: bool) -> bool:
        """Is there anything to select?"""
        wide = clusters and self.covariance.lower() == "auto"  # clusters try all structures whatever their number
        return wide or self.components.lower() == "auto"

    def typed(self) -> list[str]:
        """Names of the options that were given, as they are typed."""
        return ["--" + f.name.replace("_", "-") for f in fields(self) if getattr(self, f.name) != f.default]

    def of(self, kind: str, kinds: Sequence[str]) -> Choices:
        """What concerns a model of this kind; other options belong to those it is compared with."""
        if kind in ENSEMBLES:
            return self._without(self._of_others(kind, kinds))
        foreign = [name for name in self.typed() if kind not in SERVES.get(name, KINDS)]
        if self.select is not None and (self.select == "forward") != (kind == "maxent"):
            foreign.append("--select")
        if kind == "maxent" and set(kinds) & set(MIXTURES):
            foreign += ["--validation"] * (self.selection != "validation")
            foreign += ["--max-components"] * (self.latent in ("quantize", "moments"))
        if kind in MIXTURES and "maxent" in kinds and self.objective in (None, "likelihood"):
            foreign.append("--validation")
        foreign += belongs_to_others(kind, kinds, self)
        return self._without(foreign)

    def _of_others(self, kind: str, kinds: Sequence[str]) -> list[str]:
        """Options that neither an ensemble nor its bases take, but another of these models does."""
        bases, own, others = set(bases_of(kind, self)), taken(kind, self), set(kinds) - {kind}
        others |= {base for other in others & set(ENSEMBLES) for base in bases_of(other, self)}
        theirs = [name for name in self.typed() if others & set(SERVES.get(name, KINDS))]
        return [name for name in theirs if name not in own and not bases & set(SERVES.get(name, KINDS))]

    def _without(self, options: Sequence[str]) -> Choices:
        names = {name.removeprefix("--").replace("-", "_") for name in options}
        untyped: dict[str, Any] = {f.name: f.default for f in fields(self) if f.name in names}
        return replace(self, **untyped)


def make_models(
    kinds: Sequence[str], chosen: Choices, *, target: str | None, categorical: list[str], seed: int, jobs: int | None
) -> dict[str, Any]:
    """The unfitted estimators these options describe, by kind; an option that serves none of them is refused."""
    for kind in kinds:
        one_of("--model", kind, KINDS)
    every = list(dict.fromkeys([*kinds, *(b for kind in kinds if kind in ENSEMBLES for b in bases_of(kind, chosen))]))
    for name in chosen.typed():
        serves = SERVES.get(name, KINDS)
        if not set(serves) & set(every):
            raise typer.BadParameter(
                f"{name} has no effect with --model {' and '.join(kinds)}; it serves --model {' and '.join(serves)}"
            )
    _check_select(every, chosen, target is None)
    check_words(every, chosen)
    parts = {kind: chosen.of(kind, kinds) for kind in kinds}
    for name in chosen.typed():
        if not any(name in part.typed() for part in parts.values()):
            raise typer.BadParameter(
                f"{name} has no effect on any of these models with the other options; leave it out"
            )
    common = {"categorical": categorical or "auto", "random_state": seed, "n_jobs": jobs}
    given: dict[str, Any] = {"target": target, "categorical": categorical, "seed": seed, "jobs": jobs}

    def make(words: Sequence[str], options: Choices) -> dict[str, Any]:
        """Bases of an ensemble."""
        return make_models(words, options, **given)

    return {
        kind: ensemble(kind, part, target, common, make) if kind in ENSEMBLES else _made(kind, part, target, common)
        for kind, part in parts.items()
    }


def _made(kind: str, chosen: Choices, target: str | None, common: dict[str, Any]) -> Any:
    if kind in MED:
        return discrimination(kind, chosen, target, common)
    if kind in CLASSICAL:
        return classical(kind, chosen, target, common)
    if kind == "hmm":
        return hidden_markov(chosen, target, common)
    if kind in MIXTURES:
        return _mixture(kind, chosen, target is None, common)
    return _maxent(chosen, target, common) if kind == "maxent" else _joint(chosen, target, common)


def name_codes(estimator: Any, categorical: list[str], columns: list[str]) -> None:
    """Tell an estimator, and models inside it, which of its columns hold codes."""
    if hasattr(estimator, "estimators"):  # a stack
        fit_to_columns(estimator, columns, categorical, name_codes)
        return
    named = [name for name in estimator.get_params() if name.split("__")[-1] == "categorical"]
    estimator.set_params(**dict.fromkeys(named, categorical or "auto"))


def _check_select(kinds: Sequence[str], chosen: Choices, clusters: bool) -> None:
    from mixent.mixtures.options import CRITERIA

    if chosen.select is None:
        return
    choices: tuple[str, ...] = ()
    if set(kinds) & set(MIXTURES):
        choices += ("bic", "icl", "cv") if clusters else CRITERIA
    one_of("--select", chosen.select, (*choices, "forward") if "maxent" in kinds else choices)


def _maxent(chosen: Choices, target: str | None, common: dict[str, Any]) -> Any:
    from mixent import MaxEntClassifier
    from mixent.maxent.options import STRATEGIES
    from mixent.maxent.solvers import SOLVERS

    if target is None:
        raise typer.BadParameter("--model maxent needs --target: clusters have no classes; without one, --model joint")
    latent = chosen.latent or "union"
    for option, value, choices in (
        ("--latent", latent, LATENT),
        ("--bins", chosen.bins, STRATEGIES),
        ("--selection", chosen.selection, ("bic", "validation")),
        ("--solver", chosen.solver, SOLVERS),
    ):
        if value is not None:
            one_of(option, value, choices)
    _refuse_idle_maxent(chosen, latent)
    options: dict[str, Any] = {
        "features": _numeric(latent, chosen),
        "selection": _forward(chosen),
        "solver": chosen.solver,
        "probabilistic": _probabilistic(chosen.probabilistic),
    }
    options = {name: value for name, value in options.items() if value is not None}
    if chosen.pairs is not None:
        pairs = name_lists("--pairs", chosen.pairs, ("auto", "none"), exactly=2)
        options["pairs"] = None if pairs == "none" else pairs
    return MaxEntClassifier(**options, prior=read_prior(chosen.prior), **common)


def _numeric(latent: str, chosen: Choices) -> Any:
    from mixent.maxent import BinFeatures, ComponentFeatures

    if latent == "moments":
        return "moments"
    given: dict[str, Any] = {"n_bins": chosen.n_bins}
    if latent != "quantize":
        groups = None if chosen.groups is None else name_lists("--groups", chosen.groups, ("auto",))
        given = {"max_components": chosen.max_components, "groups": groups, "means": False if chosen.no_means else None}
    given = {name: value for name, value in given.items() if value is not None}
    return (
        BinFeatures(chosen.bins or "quantile", **given) if latent == "quantize" else ComponentFeatures(latent, **given)
    )


def _forward(chosen: Choices) -> Any:
    from mixent.maxent import ForwardSelection

    if chosen.select is None:
        return None
    given = {} if chosen.validation is None else {"validation": share("--validation", chosen.validation)}
    return ForwardSelection(chosen.selection or "bic", **given)


def _refuse_idle_maxent(chosen: Choices, latent: str) -> None:
    """As `_refuse_idle`, for maximum entropy."""
    forward, held = chosen.select == "forward", chosen.selection == "validation"
    numbers = f"has no effect with --latent {latent}; it serves"
    refuse_idle(
        (chosen.bins is not None and latent != "quantize", f"--bins {numbers} --latent quantize"),
        (chosen.n_bins is not None and latent != "quantize", f"--n-bins {numbers} --latent quantize"),
        (chosen.no_means and latent not in HIDDEN, f"--no-means {numbers} --latent union, class or pooled"),
        (chosen.groups is not None and latent not in HIDDEN, f"--groups {numbers} --latent union, class or pooled"),
        (
            chosen.max_components is not None and latent not in HIDDEN,
            f"--max-components {numbers} --latent union, class or pooled",
        ),
        (chosen.selection is not None and not forward, "--selection has no effect without --select forward"),
        (
            chosen.validation is not None and not (forward and held),
            "--validation has no effect with --model maxent without --select forward --selection validation",
        ),
        (
            (chosen.pairs or "").lower() in ("auto", "none") and chosen.pairs is not None and not forward,
            f"--pairs {chosen.pairs} has no effect without --select forward; to constrain pairs, name them: A,B;C,D",
        ),
        (
            latent == "moments" and chosen.solver == "iis",
            "--solver iis cannot take --latent moments, which may be negative; use auto, bohning or lbfgs",
        ),
    )


def _joint(chosen: Choices, target: str | None, common: dict[str, Any]) -> Any:
    from mixent import MaxEntJoint
    from mixent.maxent.joint_problem import SOLVERS

    if chosen.solver is not None:
        one_of("--solver", chosen.solver, SOLVERS)
    options = {"max_components": chosen.max_components, "solver": chosen.solver}
    options = {name: value for name, value in options.items() if value is not None}
    return MaxEntJoint(**options, prior=read_prior(chosen.prior), **common)


def _mixture(kind: str, chosen: Choices, clusters: bool, common: dict[str, Any]) -> Any:
    from mixent import Conditional, GaussianMixture, MinimumError, MixtureClassifier, Search, SharedMixtureClassifier
    from mixent.mixtures.options import GROWTHS

    chosen = replace(chosen, objective=chosen.objective or "likelihood")
    one_of("--objective", str(chosen.objective), ("likelihood", "conditional", "error"))
    one_of("--growth", chosen.growth, GROWTHS)
    _refuse_idle(kind, chosen, clusters)
    options: dict[str, Any] = {
        "n_components": word_or("--components", chosen.components, int),
        "covariance": read_covariance(chosen.covariance),
        "search": Search(chosen.select, chosen.max_components, growth=chosen.growth, per_class=chosen.per_class),
        "prior": read_prior(chosen.prior),
        **common,
    }
    if clusters:
        return GaussianMixture(**options)
    held = None if chosen.validation is None else share("--validation", chosen.validation)
    if chosen.objective == "conditional":
        options["training"] = Conditional(1.0 if chosen.alpha is None else chosen.alpha, validation=held)
    elif chosen.objective == "error":
        options["training"] = MinimumError(validation=held)
    return SharedMixtureClassifier(**options) if kind == "shared" else MixtureClassifier(**options)


def _probabilistic(texts: Sequence[str]) -> dict[str, list[str]] | None:
    found: dict[str, list[str]] = {}
    for text in texts:
        name, _, columns = text.partition("=")
        names = [column.strip() for column in columns.split(",")]
        if not name.strip() or not all(names) or len(names) < 2:
            raise typer.BadParameter(
                f'--probabilistic must be a name and at least two columns, such as "shape=round,square"; got {text!r}'
            )
        if name.strip() in found:
            raise typer.BadParameter(f"--probabilistic names the feature {name.strip()!r} twice; give it once")
        found[name.strip()] = names
    return found or None


def _refuse_idle(kind: str, chosen: Choices, clusters: bool) -> None:
    """An option that would have no effect is a misunderstanding: say so."""
    auto, trained = chosen.components.lower() == "auto", chosen.objective != "likelihood"
    no_classes = "needs --target: clusters have no classes"
    fixed = f"has no effect with --components {chosen.components}; it serves --components auto"
    other = f"has no effect with --objective {chosen.objective}; it serves --objective conditional"
    refuse_idle(
        (kind == "shared" and clusters, f"--model shared {no_classes}"),
        (trained and clusters, f"--objective {chosen.objective} {no_classes}"),
        (chosen.per_class and clusters, f"--per-class {no_classes}"),
        (
            chosen.per_class and kind == "shared",
            "--per-class has no effect with --model shared: one set of components",
        ),
        (chosen.per_class and not auto, f"--per-class {fixed}"),
        (chosen.select is not None and not chosen.searched(clusters), f"--select {fixed}"),
        (chosen.max_components is not None and not auto, f"--max-components {fixed}"),
        (chosen.alpha is not None and chosen.objective != "conditional", f"--alpha {other}"),
        (chosen.validation is not None and not trained, f"--validation {other} or error"),
    )


def read_covariance(name: str) -> str:
    """The structure's name, or auto."""
    from mixent.families.gaussian.structures import get_structure

    if name.lower() == "auto":
        return "auto"
    for spelling in (name.upper(), name.lower(), name):
        try:
            return get_structure(spelling).name
        except (ValueError, KeyError) as error:
            trouble = error
    raise typer.BadParameter(f"--covariance: {trouble}")
