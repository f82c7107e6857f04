"""From the options of a command to classifiers whose classes have trees, Bayes nets or hidden Markov models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from mixent.cli.parsing import name_lists, one_of, read_prior, refuse_idle, word_or

if TYPE_CHECKING:
    from mixent.cli.models import Choices

OF_MODELS = ("med-tree", "med-bayes-net")
OBJECTIVES = ("margin", "likelihood")
TREES = ("separate", "shared")
TABLES = ("fixed", "integrated")
NUMBERS = ("auto", "gaussian", "quantized")


def of_models(kind: str, chosen: Choices, common: dict[str, Any]) -> Any:
    """An unfitted classifier by maximum entropy discrimination with trees or Bayes nets."""
    from mixent import MEDBayesNetClassifier, MEDTreeClassifier

    _refuse_idle(kind, chosen)
    options: dict[str, Any] = {
        "C": None if chosen.c is None else word_or("--c", chosen.c, float),
        "margin": chosen.margin,
        "margin__quantile": chosen.alpha,
        "objective": chosen.objective,
        "bias": None if chosen.bias is None else word_or("--bias", chosen.bias, float, "flat"),
        ("tables__ess" if kind == "med-tree" else "ess"): _rows(kind, chosen.prior),
        **(_trees(chosen) if kind == "med-tree" else _net(chosen)),
    }
    options = {name: value for name, value in options.items() if value is not None}  # else the estimator's own
    if chosen.calibration is not None:
        options["calibration"] = None if chosen.calibration == "none" else chosen.calibration
    made = MEDTreeClassifier if kind == "med-tree" else MEDBayesNetClassifier
    return made(**common).set_params(**options)


def _trees(chosen: Choices) -> dict[str, Any]:
    n = word_or("--components", chosen.components, int)
    return {
        "tables": chosen.tables,
        "trees": chosen.structure,
        "tables__continuous": chosen.numbers,
        "trees__n_trees": None if n == "auto" else n,
    }


def _net(chosen: Choices) -> dict[str, Any]:
    if chosen.structure is None:
        return {}
    found = name_lists("--structure", chosen.structure, ("naive",), exactly=2)
    return {"structure": found if isinstance(found, str) else [tuple(edge) for edge in found]}


def _rows(kind: str, text: str) -> float | None:
    """Pseudo-rows of the tables; None: as the estimator has them."""
    if text.lower() == "none":
        raise typer.BadParameter(
            f"--prior none cannot be with --model {kind}: a table needs some rows; take auto or a number > 0"
        )
    rows = read_prior(text)
    return None if rows == "auto" else rows


def _refuse_idle(kind: str, chosen: Choices) -> None:
    told = "has no effect with --objective likelihood; it serves --objective margin"
    trees = kind == "med-tree"
    many = trees and chosen.components.lower() not in ("auto", "1")
    for option, word, words in (
        ("--tables", chosen.tables, TABLES),
        ("--numbers", chosen.numbers, NUMBERS),
        ("--structure", chosen.structure if trees else None, TREES),
    ):
        if word is not None:
            one_of(option, word, words)
    integrated = chosen.tables == "integrated"
    likelihood = chosen.objective == "likelihood"
    refuse_idle(
        (likelihood and chosen.c is not None, f"--c {told}"),
        (likelihood and chosen.margin is not None, f"--margin {told}"),
        (likelihood and chosen.alpha is not None, f"--alpha {told}"),
        (
            chosen.margin == "fixed" and chosen.c is not None,
            "--c has no effect with --margin fixed, where every margin is kept",
        ),
        (integrated and likelihood, "--objective likelihood needs --tables fixed; got --tables integrated"),
        (integrated and chosen.structure == "shared", "--structure shared needs --tables fixed; got integrated"),
        (integrated and chosen.numbers == "gaussian", "--numbers gaussian needs --tables fixed; got integrated"),
        (
            many and chosen.structure == "shared",
            f"--structure shared needs --components 1; got --components {chosen.components}",
        ),
        (
            many and chosen.numbers == "gaussian",
            f"--numbers gaussian needs --components 1; got --components {chosen.components}",
        ),
    )


def hidden_markov(chosen: Choices, target: str | None, common: dict[str, Any]) -> Any:
    """An unfitted classifier of sequences, one in each row."""
    from mixent import HMMClassifier
    from mixent.cli.models import read_covariance

    if target is None:
        raise typer.BadParameter("--model hmm needs --target: it has a hidden Markov model for each class")
    if chosen.topology is not None:
        one_of("--topology", chosen.topology, ("full", "left-right"))
    if chosen.transitions is not None:
        one_of("--transitions", chosen.transitions, ("shared", "per_step"))
    covariance = read_covariance(chosen.covariance)
    options: dict[str, Any] = {
        "n_states": chosen.states,
        "covariance": None if covariance == "auto" else covariance,
        "topology": chosen.topology,
        "transitions": chosen.transitions,
    }
    options = {name: value for name, value in options.items() if value is not None}
    return HMMClassifier(**options, prior=read_prior(chosen.prior), **common)
