"""Options that several commands share, and the words they take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Table: .csv, .tsv (also .gz) or .parquet.", show_default=False)
]
Target = Annotated[
    str,
    typer.Option("--target", "-t", metavar="COL", help="Column of class labels; blank cells are rows without a label."),
]
MODEL_HELP = "mixture: a mixture for each class; shared: components that all classes share."
Model = Annotated[str, typer.Option("--model", metavar="NAME", help=MODEL_HELP, rich_help_panel="Model")]
Models = Annotated[
    list[str],
    typer.Option("--model", metavar="NAME", help=MODEL_HELP + " Repeat to compare.", rich_help_panel="Model"),
]
Components = Annotated[
    str,
    typer.Option(
        "--components",
        "-k",
        metavar="auto|N",
        help="Components of each class; of all classes together with --model shared.",
        rich_help_panel="Model",
    ),
]
Covariance = Annotated[
    str,
    typer.Option(
        "--covariance",
        metavar="auto|NAME",
        help="Covariance structure: EII ... VVV, or diag, full, ...",
        rich_help_panel="Model",
    ),
]
PriorRows = Annotated[
    str,
    typer.Option(
        "--prior", metavar="auto|none|ROWS", help="Strength of the prior, in pseudo-rows.", rich_help_panel="Model"
    ),
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="What is trained for: likelihood (of rows and classes), conditional (of classes given rows), or error.",
        rich_help_panel="Model",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        metavar="SHARE",
        min=0.0,
        max=1.0,
        help="For conditional: 1 is the conditional likelihood, 0 the likelihood; 1 unless given.",
        rich_help_panel="Model",
    ),
]
Validation = Annotated[
    float | None,
    typer.Option(
        "--validation",
        metavar="SHARE",
        help="For conditional and error: rows held out to learn when to stop.",
        rich_help_panel="Model",
    ),
]
Growth = Annotated[
    str,
    typer.Option(
        "--growth",
        metavar="NAME",
        help="How components are found: restart (all at once) or incremental (one by one).",
        rich_help_panel="Model",
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="NAME",
        help="How auto chooses: cv, bic, icl, dic, dic_robust or cbic; clusters: bic, icl or cv.",
        rich_help_panel="Model",
    ),
]
MaxComponents = Annotated[
    int | None,
    typer.Option("--max-components", metavar="N", min=1, help="Most that auto tries.", rich_help_panel="Model"),
]
PerClass = Annotated[
    bool,
    typer.Option(
        "--per-class", help="Let auto choose size and structure for each class apart.", rich_help_panel="Model"
    ),
]
Ignore = Annotated[
    list[str], typer.Option("--ignore", metavar="COL", help="Column to leave out; repeat for more.", show_default=False)
]
Categorical = Annotated[
    list[str],
    typer.Option(
        "--categorical", metavar="COL", help="Column of numbers that are codes; repeat for more.", show_default=False
    ),
]
Weight = Annotated[str | None, typer.Option("--weight", metavar="COL", help="Column of row weights.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Same seed, same result.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Threads; all cores unless given.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The options of a model as they were typed; None and False where they were not."""

    components: str
    covariance: str
    prior: str
    objective: str
    alpha: float | None
    validation: float | None
    growth: str
    select: str | None
    max_components: int | None
    per_class: bool

    def searched(self, clusters: bool) -> bool:
        """Is there anything to select?"""
        wide = clusters and self.covariance.lower() == "auto"  # clusters try all structures whatever their number
        return wide or self.components.lower() == "auto"


def make_model(
    kind: str, chosen: Choices, *, clusters: bool, categorical: list[str], seed: int, jobs: int | None
) -> Any:
    """The unfitted estimator these options describe."""
    from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
    from mixent.mixtures.options import GROWTHS, SELECTIONS
    from mixent.mixtures.training import OBJECTIVES

    _one_of("--model", kind, ("mixture", "shared"))
    _one_of("--objective", chosen.objective, OBJECTIVES)
    _one_of("--growth", chosen.growth, GROWTHS)
    if chosen.select is not None:
        _one_of("--select", chosen.select, ("bic", "icl", "cv") if clusters else SELECTIONS)
    _refuse_idle(kind, chosen, clusters)
    options = {
        "n_components": _auto_or("--components", chosen.components, int),
        "covariance": _structure(chosen.covariance),
        "prior": None if chosen.prior.lower() == "none" else _auto_or("--prior", chosen.prior, float),
        "growth": chosen.growth,
        "selection": chosen.select,
        "max_components": chosen.max_components,
        "categorical": categorical or "auto",
        "random_state": seed,
        "n_jobs": jobs,
    }
    options = {
        name: value for name, value in options.items() if value is not None or name in ("prior", "n_jobs")
    }  # the estimator's own defaults for the rest
    if clusters:
        return GaussianMixture(**options)
    options["objective"] = chosen.objective
    if chosen.alpha is not None:
        options["alpha"] = chosen.alpha
    if chosen.validation is not None:
        options["validation"] = _share("--validation", chosen.validation)
    if kind == "shared":
        return SharedMixtureClassifier(**options)
    return MixtureClassifier(**options, per_class=chosen.per_class)


def _refuse_idle(kind: str, chosen: Choices, clusters: bool) -> None:
    """An option that would have no effect is a misunderstanding: say so."""
    auto, trained = chosen.components.lower() == "auto", chosen.objective != "likelihood"
    no_classes = "needs --target: clusters have no classes"
    fixed = f"has no effect with --components {chosen.components}; it serves --components auto"
    other = f"has no effect with --objective {chosen.objective}; it serves --objective conditional"
    for idle, message in (
        (kind == "shared" and clusters, f"--model shared {no_classes}"),
        (trained and clusters, f"--objective {chosen.objective} {no_classes}"),
        (chosen.per_class and clusters, f"--per-class {no_classes}"),
        (chosen.per_class and kind == "shared", "--per-class has no effect with --model shared: one set of components"),
        (chosen.per_class and not auto, f"--per-class {fixed}"),
        (chosen.select is not None and not chosen.searched(clusters), f"--select {fixed}"),
        (chosen.max_components is not None and not auto, f"--max-components {fixed}"),
        (chosen.alpha is not None and chosen.objective != "conditional", f"--alpha {other}"),
        (chosen.validation is not None and not trained, f"--validation {other} or error"),
    ):
        if idle:
            raise typer.BadParameter(message)


def _share(option: str, value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"{option} must be a share, more than 0 and less than 1; got {value:g}")
    return value


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise typer.BadParameter(f"{option} must be one of {', '.join(choices)}; got {value!r}")


def _auto_or(option: str, text: str, kind: type) -> Any:
    """The word auto, or a positive number."""
    if text.lower() == "auto":
        return "auto"
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        what = "a whole number >= 1" if kind is int else "none or a number > 0"
        raise typer.BadParameter(f"{option} must be auto, or {what}; got {text!r}")
    return value


def _structure(name: str) -> str:
    from mixent.families.gaussian.structures import get_structure

    if name.lower() == "auto":
        return "auto"
    for spelling in (name.upper(), name.lower(), name):
        try:
            return get_structure(spelling).name
        except (ValueError, KeyError) as error:
            trouble = error
    raise typer.BadParameter(f"--covariance: {trouble}")
