"""Options that several commands share, and the words they take."""

from __future__ import annotations

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
Model = Annotated[str, typer.Option("--model", metavar="NAME", help="Kind of model: mixture.", rich_help_panel="Model")]
Components = Annotated[
    str, typer.Option("--components", "-k", metavar="auto|N", help="Components of each class.", rich_help_panel="Model")
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


def make_model(
    kind: str,
    components: str,
    covariance: str,
    prior: str,
    *,
    clusters: bool,
    categorical: list[str],
    seed: int,
    jobs: int | None,
) -> Any:
    """The unfitted estimator these options describe."""
    from mixent import GaussianMixture, MixtureClassifier

    _one_of("--model", kind, ("mixture",))
    kinds = {
        "n_components": _auto_or("--components", components, int),
        "covariance": _structure(covariance),
        "prior": None if prior.lower() == "none" else _auto_or("--prior", prior, float),
        "categorical": categorical or "auto",
        "random_state": seed,
        "n_jobs": jobs,
    }
    return GaussianMixture(**kinds) if clusters else MixtureClassifier(**kinds)


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
