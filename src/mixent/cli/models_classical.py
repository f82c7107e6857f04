"""From the options of a command to Parzen windows and the kernel Fisher discriminant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from mixent.cli.parsing import one_of, refuse_idle, word_or

if TYPE_CHECKING:
    from mixent.cli.models import Choices

CLASSICAL = ("parzen", "kernel-fisher")
KERNELS = ("rbf", "linear", "poly")
OBJECTIVES = ("conditional", "likelihood")


def classical(kind: str, chosen: Choices, target: str | None, common: dict[str, Any]) -> Any:
    """The unfitted classifier."""
    if target is None:
        raise typer.BadParameter(f"--model {kind} needs --target: clusters have no classes")
    return _parzen(chosen, common) if kind == "parzen" else _kernel_fisher(chosen, common)


def _parzen(chosen: Choices, common: dict[str, Any]) -> Any:
    from mixent import ParzenClassifier

    bandwidth = "auto" if chosen.bandwidth is None else word_or("--bandwidth", chosen.bandwidth, float)
    given = f"has no effect with --bandwidth {chosen.bandwidth}; it serves --bandwidth auto"
    refuse_idle(
        (bandwidth != "auto" and chosen.objective is not None, f"--objective {given}"),
        (bandwidth != "auto" and chosen.per_class, f"--per-class {given}"),
    )
    options = {} if chosen.objective is None else {"criterion": chosen.objective}
    taken = {name: value for name, value in common.items() if name != "random_state"}  # nothing is drawn
    return ParzenClassifier(bandwidth, per_class=chosen.per_class, **options, **taken)


def _kernel_fisher(chosen: Choices, common: dict[str, Any]) -> Any:
    from mixent import KernelFisherClassifier

    kernel = chosen.kernel or "rbf"
    one_of("--kernel", kernel, KERNELS)
    told = f"has no effect with --kernel {kernel}; it serves --kernel"
    refuse_idle(
        (chosen.degree is not None and kernel != "poly", f"--degree {told} poly"),
        (chosen.gamma is not None and kernel == "linear", f"--gamma {told} poly and rbf"),
        (chosen.n_features is not None and kernel == "linear", f"--n-features {told} poly and rbf"),
    )
    shape = {"gamma": _gamma(chosen.gamma), "degree": chosen.degree, "n_landmarks": chosen.n_features}
    shape = {f"kernel__{name}": value for name, value in shape.items() if value is not None}
    options: dict[str, Any] = {"kernel": kernel}
    if chosen.shrinkage is not None:
        options["shrinkage"] = word_or("--shrinkage", chosen.shrinkage, float)
    return KernelFisherClassifier(**options, **common).set_params(**shape)


def _gamma(text: str | None) -> Any:
    if text is None or text.lower() == "scale":
        return None if text is None else "scale"
    return word_or("--gamma", text, float, wanted="scale or a number > 0")
