"""A maximum entropy model in words and tables: for `fit` and `info`."""

from __future__ import annotations

from typing import Any

from mixent.base.text import count
from mixent.cli.console import Screen, grid, named, shown

MOST_CLASSES = 30
NEARLY_CERTAIN = 1e-2  # nats per row; where the log-loss is a thousandth, the entropy is below this


def describe_maxent(model: Any) -> dict[str, Any]:
    """Of a classifier: features, prior, certificate, entropy, strongest features and path, in plain values."""
    from mixent.maxent.contributions import strongest_features
    from mixent.maxent.options import numeric_kind

    found, prior = model.constraint_table(), model.class_prior_
    about: dict[str, Any] = {
        "classes": [{"class": c, "prior": float(p)} for c, p in zip(model.classes_.tolist(), prior)],
        "latent": numeric_kind(model._group("features")) if _has_numbers(model) else None,
        "features": list(model.feature_terms_),
        "constraints": len(found.features) * len(found.classes),
        "prior": _prior(model),
        "certificate": {"gap": _number(model.gap_), "residual": float(model.residual_)},
        "entropy": float(model.entropy_),
        "entropy_of_classes": -sum(float(p) * _log(p) for p in prior),
        "strongest": strongest_features(model),
    }
    if model.path_:
        about["selection"] = model._group("selection").criterion
        about["path"] = [
            {"feature": step.name, "gain": float(step.gain), "score": float(step.score), "kept": bool(step.kept)}
            for step in model.path_
        ]
    return about


def describe_joint(model: Any) -> dict[str, Any]:
    """Of a joint model, in plain values."""
    return {"cells": len(model.params_.single), "prior": _prior(model)}


def _has_numbers(model: Any) -> bool:
    """Are there columns of numbers beside those that hold probabilities?"""
    shares = {column for columns in (model.probabilistic or {}).values() for column in columns}
    schema = model.schema_
    return any(not shares & {j, schema.names[j]} for j in schema.continuous)


def endless_multipliers(model: Any) -> str | None:
    """Why the multipliers of a model without a prior have no optimum; None where they have one, or no multipliers."""
    if getattr(model, "prior_", "no multipliers") is not None:
        return None
    found = None
    if hasattr(model, "terms_"):
        found = "pairs of values never occur together" if "no optimum" in model.run_.message else None
    elif hasattr(model, "layout_"):
        truth, mask = model.truth_[1:], model.layout_.mask(len(model.classes_))
        never = (truth == 0) & (truth.sum(axis=1, keepdims=True) > 0)
        if (never if mask is None else never & (mask > 0)).any():
            found = "a value never occurs with a class"
        elif model.entropy_ < NEARLY_CERTAIN:
            found = "the classes look separable"
    return found and (
        f"the gain per row fell below tol, but there is no optimum: {found}, and without a prior multipliers grow "
        "without end; give --prior auto"
    )


def _prior(model: Any) -> dict[str, Any]:
    tried = [dict(entry) for entry in getattr(model, "priors_tried_", [])]
    how = "given"
    if model.prior is None:
        how = "none"
    elif isinstance(model.prior, str):
        how = "held-out rows" if tried or not hasattr(model, "priors_tried_") else "too few labels to choose"
    return {"variance": _number(model.prior_), "how": how, "tried": tried}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _log(p: Any) -> float:
    import math

    return math.log(p) if p > 0 else 0.0


def show_maxent(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None = None) -> None:
    """Print what `describe_maxent` or `describe_joint` found."""
    if "cells" in about:
        n = len(about["columns"])
        screen.say(f"One model of {count(n, 'column')}: {count(about['cells'], 'value')} and all pairs of them")
        screen.say(_prior_in_words(about["prior"]))
        return
    table = grid("class", *(["rows"] if n_rows else []), "prior")
    for entry in about["classes"][:MOST_CLASSES]:
        rows = [f"{n_rows.get(entry['class'], 0):g}"] if n_rows else []
        table.add_row(shown(entry["class"]), *rows, f"{entry['prior']:.3f}")
    screen.show(table)
    if len(about["classes"]) > MOST_CLASSES:
        screen.say(f"... and {len(about['classes']) - MOST_CLASSES} more")
    screen.say()
    _show_strongest(screen, about)
    if "path" in about:
        screen.say(_path_in_words(about))
    screen.say(_prior_in_words(about["prior"]))
    screen.say(_certificate(about["certificate"]))
    without = f"{about['entropy_of_classes']:.3f} without it"
    screen.say(f"Entropy of the class given the row {about['entropy']:.3f} nats, {without}")


def _show_strongest(screen: Screen, about: dict[str, Any]) -> None:
    n, numbers = len(about["features"]), f"; numbers as {about['latent']}" if about["latent"] else ""
    screen.say(f"{count(n, 'feature')}, {count(about['constraints'], 'constraint')}{numbers}")
    if not n:
        return
    table = grid("strongest", "strength\nnats")
    table.add_column("loudest value", overflow="fold")
    for entry in about["strongest"]:
        loud = entry
        says = f"{shown(loud['value'])}: for {named(loud['class'])}, {loud['nats']:.2f}"
        table.add_row(shown(entry["feature"]), f"{entry['strength']:.3f}", says)
    screen.show(table)
    if n > len(about["strongest"]):
        screen.say(f"... and {n - len(about['strongest'])} more")


def _path_in_words(about: dict[str, Any]) -> str:
    kept = [step for step in about["path"] if step["kept"]]
    name = "BIC" if about["selection"] == "bic" else "held-out log-loss"
    if not kept:
        return f"Selection kept no feature: none lowers {name}; every row gets the class priors"
    told = f"{kept[0]['score']:.6g} with the first to {kept[-1]['score']:.6g} with the last"
    return f"Selection tried {len(about['path'])} additions and kept {len(kept)}: {name} from {told}"


def _prior_in_words(prior: dict[str, Any]) -> str:
    if prior["how"] == "none":
        return "No prior on the multipliers"
    text = f"Prior variance of the multipliers {prior['variance']:g}"
    if prior["how"] == "given":
        return f"{text}, as given"
    if prior["how"] != "held-out rows":
        return f"{text}, the usual one: too few labelled rows to choose"
    if not prior["tried"]:
        return f"{text}, chosen by what predicts held-out rows best"
    best = min(entry["log_loss"] for entry in prior["tried"])
    return f"{text}, chosen among {len(prior['tried'])} by cross-validation: log-loss {best:.3f} nats"


def _certificate(certificate: dict[str, Any]) -> str:
    met = f"constraints met within {certificate['residual']:.2g}"
    if certificate["gap"] is None:
        return f"Certificate: {met} (without a prior there is no bound of the optimum)"
    return f"Certificate: at most {certificate['gap']:.1g} nats per row below the optimum; {met}"
