"""From the options of a command to classifiers by maximum entropy discrimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from mixent.cli.models_classical import KERNELS as FISHERS
from mixent.cli.models_classical import OBJECTIVES as SCORES
from mixent.cli.models_structures import OBJECTIVES, OF_MODELS, of_models
from mixent.cli.parsing import one_of, read_prior, refuse_idle, word_or

if TYPE_CHECKING:
    from mixent.cli.models import Choices

KERNELS = ("med", "med-gaussian")
MED = (*KERNELS, *OF_MODELS)
QUANTILES = ("med-gaussian", *OF_MODELS)  # --alpha is a quantile of margins
TAKES = {  # option: the words each model takes
    "--kernel": {
        "med": ("linear", "poly", "rbf", "fisher"),
        "med-gaussian": ("poly", "rbf"),
        "kernel-fisher": FISHERS,
    },
    "--margin": {
        "med": ("exponential", "laplace", "gaussian", "fixed"),
        "med-gaussian": ("exponential", "laplace", "gaussian"),
        **dict.fromkeys(OF_MODELS, ("exponential", "laplace", "gaussian", "fixed")),
    },
    "--calibration": {
        "med": ("temperature", "affine", "none"),
        "med-gaussian": ("temperature", "affine", "predictive", "none"),
        "med-tree": ("temperature", "affine", "none"),
        "med-bayes-net": ("temperature", "affine", "predictive", "none"),
    },
    "--objective": {
        **dict.fromkeys(("mixture", "shared"), ("likelihood", "conditional", "error")),
        **dict.fromkeys(OF_MODELS, OBJECTIVES),
        "parzen": SCORES,
    },
}


def check_words(kinds: Sequence[str], chosen: Choices) -> None:
    """Refuse a word that none of these models takes."""
    for option, takes in TAKES.items():
        word = getattr(chosen, option.removeprefix("--"))
        words = dict.fromkeys(w for kind in kinds for w in takes.get(kind, ()))
        if word is not None and words:
            one_of(option, word, tuple(words))


def belongs_to_others(kind: str, kinds: Sequence[str], chosen: Choices) -> list[str]:
    """Options that, among these models, do nothing for this one."""
    foreign = []
    for option, takes in TAKES.items():
        word = getattr(chosen, option.removeprefix("--"))
        if word is not None and kind in takes and word not in takes[kind]:
            foreign.append(option)
    if kind in ("med", *OF_MODELS) and chosen.margin == "fixed" and "med-gaussian" in kinds:
        foreign.append("--c")
    if kind not in MED and set(QUANTILES) & set(kinds) and chosen.objective != "conditional":
        foreign.append("--alpha")
    if kind in OF_MODELS and chosen.objective == "likelihood" and set(KERNELS) & set(kinds):
        foreign += ["--c", "--margin", *(["--alpha"] * ("med-gaussian" in kinds))]
    if "--structure" in chosen.typed() and set(kinds) >= set(OF_MODELS):  # of trees, or of nets
        words = ("separate", "shared") if kind == "med-tree" else ("naive",)
        theirs = str(chosen.structure).lower() in ("separate", "shared", "naive")
        if (theirs and str(chosen.structure).lower() not in words) or (not theirs and kind == "med-tree"):
            foreign.append("--structure")
    return foreign


def discrimination(kind: str, chosen: Choices, target: str | None, common: dict[str, Any]) -> Any:
    """The unfitted classifier."""
    from mixent import MEDClassifier, MEDGaussianClassifier

    if target is None:
        raise typer.BadParameter(f"--model {kind} needs --target: clusters have no classes")
    if kind in OF_MODELS:
        return of_models(kind, chosen, common)
    _refuse_idle(kind, chosen)
    options: dict[str, Any] = {
        "kernel": chosen.kernel,
        "C": None if chosen.c is None else word_or("--c", chosen.c, float),
        "margin": chosen.margin,
        "bias": None if chosen.bias is None else word_or("--bias", chosen.bias, float, "flat"),
        "kernel__gamma": None if chosen.gamma is None else word_or("--gamma", chosen.gamma, float, "scale"),
        "kernel__degree": chosen.degree,
        ("n_kernel_components" if kind == "med-gaussian" else "kernel__n_landmarks"): chosen.n_features,
    }
    if kind == "med-gaussian":
        options |= {"margin__quantile": chosen.alpha, "prior": read_prior(chosen.prior, none=0)}
    options = {name: value for name, value in options.items() if value is not None}  # else the estimator's own
    if chosen.calibration is not None:
        options["calibration"] = None if chosen.calibration == "none" else chosen.calibration
    if kind == "med-gaussian":
        return MEDGaussianClassifier(**common).set_params(**options)
    if chosen.kernel == "fisher":
        options["kernel"] = _fisher(common)
    return MEDClassifier(**common).set_params(**options)


def _fisher(common: dict[str, Any]) -> Any:
    from mixent import FisherKernel, GaussianMixture

    return FisherKernel(GaussianMixture("auto", **common), random_state=common["random_state"])


def _refuse_idle(kind: str, chosen: Choices) -> None:
    kernel = chosen.kernel or ("linear" if kind == "med" else None)
    told = "has no effect " + (f"with --kernel {kernel}" if kernel else "without --kernel") + "; it serves --kernel"
    fixed = kind == "med" and chosen.margin == "fixed"
    refuse_idle(
        (chosen.degree is not None and kernel != "poly", f"--degree {told} poly"),
        (chosen.gamma is not None and kernel not in ("poly", "rbf"), f"--gamma {told} poly and rbf"),
        (chosen.n_features is not None and kernel not in ("poly", "rbf"), f"--n-features {told} poly and rbf"),
        (fixed and chosen.c is not None, "--c has no effect with --margin fixed, where every margin is kept"),
    )
    c: Any = "auto" if chosen.c is None else word_or("--c", chosen.c, float)
    if kind == "med" and chosen.margin == "exponential" and c != "auto" and c <= 1:
        raise typer.BadParameter(
            f"--c must be more than 1 with --margin exponential, which with less asks for no margin; got {chosen.c}. "
            "Take more, or --margin laplace"
        )
