"""Parzen windows, kernel Fisher discriminants and tuned classifiers in words and tables: for `fit` and `info`."""

from __future__ import annotations

from math import isfinite
from typing import Any

from mixent.base.text import count
from mixent.cli.console import Screen, grid, shown

MOST_CLASSES = 30


def is_classical(model: Any) -> bool:
    """Does it tell what it says of rows left out, or is it of another library?"""
    return hasattr(model, "loo_proba_") or hasattr(model, "best_params_")


def describe_classical(model: Any) -> dict[str, Any]:
    """Windows or kernel, what was chosen, and how rows left out fare, in plain values."""
    classes = [{"class": getattr(c, "item", lambda c=c: c)(), "prior": float(p)} for c, p in _priors(model)]
    if hasattr(model, "best_params_"):
        return {"classes": classes, "classical": _tuned(model), "left_out": {"log_loss": None, "error": None}}
    scores = {"log_loss": float(model.loo_log_loss_), "error": float(model.loo_error_)}
    left = {name: value if isfinite(value) else None for name, value in scores.items()}
    about = _windows(model) if hasattr(model, "windows_") else _discriminants(model)
    return {"classes": classes, "classical": about, "left_out": left}


def _tuned(model: Any) -> dict[str, Any]:
    """A classifier of another library, and the settings it got."""
    name, tried = type(model.model_).__name__, len(model.search_)
    taken = {option: str(value) for option, value in model.best_params_.items()}
    words = f"{name} of {type(model.model_).__module__.partition('.')[0]}"
    if tried:
        told = ", ".join(f"{option} {value}" for option, value in taken.items())
        words += f": {told}, chosen among {tried} by log-loss, {model.search_[0]['log_loss']:.3f} nats on rows held out"
    return {"estimator": name, "settings": taken, "tried": tried, "words": words}


def _priors(model: Any) -> Any:
    return zip(model.classes_, model.class_prior_)


def _windows(model: Any) -> dict[str, Any]:
    import numpy as np  # the help page comes without it

    widths = np.unique(np.atleast_1d(model.bandwidth_)).tolist()
    n, tried = len(model.windows_.log_count), len(model.bandwidths_tried_)
    told = ", ".join(f"{h:.3g}" for h in np.atleast_1d(model.bandwidth_))
    chosen = f"chosen among {tried} by leaving each row out ({model.criterion})" if tried else "as given"
    if model.bandwidth == "auto" and not tried:
        chosen = "the usual one: no class has two rows to choose by"
    words = f"{count(n, 'Parzen window')}; bandwidth {told}, {chosen}"
    return {"windows": n, "bandwidth": widths if len(widths) > 1 else widths[0], "tried": tried, "words": words}


def _discriminants(model: Any) -> dict[str, Any]:
    tried, q = len(model.tried_), model.gaussians_.cov.shape[0]
    name = next(iter(model.basis_.kernel.short_forms))
    kernel = f"kernel {name}" + ("" if model.gamma_ is None else f", gamma {model.gamma_:.3g}")
    chosen = f"chosen among {tried} by leaving each row out" if tried > 1 else "as given"
    words = f"{count(q, 'Fisher discriminant')}: {kernel}, shrinkage {model.shrinkage_:.3g}, {chosen}"
    found = {"discriminants": q, "kernel": name, "gamma": model.gamma_, "shrinkage": float(model.shrinkage_)}
    return found | {"tried": tried, "words": words}


def show_classical(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None = None) -> None:
    """Print what `describe_classical` found."""
    table = grid("class", *(["rows"] if n_rows else []), "prior")
    for entry in about["classes"][:MOST_CLASSES]:
        rows = [f"{n_rows.get(entry['class'], 0):g}"] if n_rows else []
        table.add_row(shown(entry["class"]), *rows, f"{entry['prior']:.3f}")
    screen.show(table)
    if len(about["classes"]) > MOST_CLASSES:
        screen.say(f"... and {len(about['classes']) - MOST_CLASSES} more")
    screen.say()
    screen.say(shown(about["classical"]["words"]))
    left = about["left_out"]
    if left["error"] is not None:
        screen.say(f"Each row by all others: log-loss {left['log_loss']:.3f} nats, error {left['error']:.1%}")
