"""Trees, Bayes nets, hidden Markov models and novelty detectors in plain values and in words: for tables and pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.text import count
from mixent.evaluate.discrimination import in_words, margin_facts
from mixent.hmm import HiddenMarkovModel, HMMClassifier
from mixent.hmm.states import states_of
from mixent.med import MEDBayesNetClassifier, MEDNoveltyDetector, MEDTreeClassifier
from mixent.med.novelty_models import NoveltyChain, NoveltyMixture, NoveltyTrees

OF_MODELS = (MEDTreeClassifier, MEDBayesNetClassifier)
DESCRIBED = (*OF_MODELS, HMMClassifier, HiddenMarkovModel, MEDNoveltyDetector)
MOST_EDGES = 12  # told of a tree or net in a sentence


def describe_structure(model: Any) -> dict[str, Any]:
    """A fitted model of one of these kinds in values that JSON can hold."""
    if isinstance(model, HMMClassifier | HiddenMarkovModel):
        return _sequences(model)
    return _novelty(model) if isinstance(model, MEDNoveltyDetector) else _discrimination(model)


def structure_in_words(about: dict[str, Any], *, see: str) -> list[str]:
    """What `describe_structure` found, a sentence each without its full stop; `see`: where errors are told."""
    if "chains" in about:
        return [about["words"]]
    if "level" in about:
        return [about["words"], *_novelty_in_words(about)]
    if about["objective"] == "likelihood":
        return [about["words"], in_words(about, see=see)[-1]]  # how scores become probabilities
    return [about["words"], *in_words(about, see=see)]


# --- trees and Bayes nets -------------------------------------------------------------------------------------------


def _discrimination(model: Any) -> dict[str, Any]:
    """As `describe_discrimination`, and the structures in place of a kernel."""
    about = {**margin_facts(model, _margin(model)), "objective": model.objective}
    return about | (_trees(model) if isinstance(model, MEDTreeClassifier) else _nets(model))


def _margin(model: Any) -> dict[str, Any]:
    margin = {"prior": type(model.margin_).__name__.lower(), "about": float(model.margin_.at)}
    quantile = model._quantile_in_use()
    return margin if quantile is None else margin | {"quantile": quantile}


def _trees(model: Any) -> dict[str, Any]:
    """The most probable tree of each class (of all, where they share it; of each component), and its edges."""
    names, classes = list(model.column_names_), model.classes_.tolist()
    owners, numbers = model.model_.class_of.tolist(), [0] * len(model.model_.class_of)
    for i, owner in enumerate(owners):
        numbers[i] = owners[:i].count(owner)
    shared = len(model.joint_.parts) < len(owners)
    found = []
    for i, (edges, marginal, part) in enumerate(zip(model.trees_, model.edge_marginals_, model.joint_.parts)):
        whose: dict[str, Any] = {"class": None if shared else classes[owners[i]]}
        if model.model_.mixed:
            whose |= {"component": numbers[i], "share": float(np.exp(model.model_.log_shares[i]))}
        told: list[dict[str, Any]] = [
            {"between": [a, b], "probability": float(marginal[names.index(a), names.index(b)])} for a, b in edges
        ]
        found.append(whose | {"probability": _whole(part), "edges": sorted(told, key=lambda e: -e["probability"])})
    return {"trees": found, "words": _trees_in_words(model, shared)}


def _whole(part: Any) -> float:
    """Probability of the most probable tree as a whole."""
    trees = getattr(part, "trees", None)
    return 1.0 if trees is None else float(np.exp(trees.tree_weights.sum() - trees.log_partition))


def _trees_in_words(model: Any, shared: bool) -> str:
    n = len(model.column_names_)
    each = "one for all classes" if shared else "of each class"
    if model.model_.mixed:
        each = f"{model._group('trees').n_trees} of each class"
    kinds = {type(column).__name__ for column in model.model_.columns.columns}
    numbers = "; numbers are Gaussian" if "PowersColumn" in kinds else ""
    numbers = "; numbers are probabilities of a mixture's components" if "SoftColumn" in kinds else numbers
    if model.objective == "likelihood":
        return f"The tree of highest likelihood over {count(n, 'column')}, {each}{numbers}"
    tables = "Dirichlet tables, learned with the structure" if model.model_.tables is None else "known tables"
    return f"Distributions over all trees of {count(n, 'column')}, {each}, with {tables}{numbers}"


def _nets(model: Any) -> dict[str, Any]:
    found = [{"class": c, "edges": [list(e) for e in es]} for c, es in zip(model.classes_.tolist(), model.edges_)]
    n, cells = len(model.column_names_), [net.n_cells for net in model.model_.nets]
    alike = all(net["edges"] == found[0]["edges"] for net in found)
    edges = count(len(found[0]["edges"]), "edge") + " in each class" if alike else "edges of each class its own"
    if alike and not found[0]["edges"]:
        edges = "no edges: columns depend on the class alone"
    what = "Bayes nets learned from each class's rows alone" if model.objective == "likelihood" else "Bayes nets"
    words = f"{what} over {count(n, 'column')}, {edges}; {count(max(cells), 'table cell')} at most"
    return {"nets": found, "n_cells": cells, "words": words}


def edges_in_words(about: dict[str, Any]) -> list[tuple[Any, str]]:
    """(class or None for all, the edges in a line) of the most probable trees, or of the nets."""
    if "nets" in about:
        nets = about["nets"]
        same = all(net["edges"] == nets[0]["edges"] for net in nets)
        shown = [{**nets[0], "class": None}] if same else nets
        return [(net["class"], _listed([f"{a} -> {b}" for a, b in net["edges"]]) or "no edges") for net in shown]
    out = []
    for tree in about["trees"]:
        sure = about["objective"] == "likelihood"
        told = [" - ".join(e["between"]) + ("" if sure else f" {_percent(e['probability'])}") for e in tree["edges"]]
        out.append((tree["class"], _listed(told) or "no edges: one column"))
    return out


def _listed(told: list[str]) -> str:
    more = len(told) - MOST_EDGES
    return ", ".join(told[:MOST_EDGES]) + (f", and {more} more" if more > 0 else "")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%" if 0.01 <= share <= 0.99 or share in (0.0, 1.0) else f"{100 * share:.1f}\u00a0%"


# --- hidden Markov models -------------------------------------------------------------------------------------------


def _sequences(model: Any) -> dict[str, Any]:
    """The states of each class: how often, what follows them, what they emit."""
    of_classes = isinstance(model, HMMClassifier)
    labels, models = (model.classes_.tolist(), model.models_) if of_classes else ([None], [model])
    chains = [
        {"class": c, "states": states_of(one), "transitions": one.transitions_.tolist()}
        for c, one in zip(labels, models)
    ]
    variables = [column.name for column in model.variables_.columns]
    rows = f"{model.n_features_in_} steps in a row" if model.by_row_ else f"steps of {count(len(variables), 'column')}"
    way = ", never back (left-right)" if model.topology == "left-right" else ""
    per = ", transitions of every step apart" if model.transitions == "per_step" else ""
    each = " of each class" if of_classes else ""
    words = f"A hidden Markov model{each}, {count(model.n_states, 'state')}{way}{per}; {rows}"
    about: dict[str, Any] = {"chains": chains, "variables": variables, "words": words}
    if of_classes:
        about["classes"] = [{"class": c, "prior": float(p)} for c, p in zip(labels, model.class_prior_)]
    return about | {"topology": model.topology, "covariance": _covariance(model)}


def _covariance(model: Any) -> str | None:
    given = getattr(model, "emissions", "fitted") == "precomputed"
    return model.covariance if model.variables_.continuous and not given else None


def emission_in_words(emits: dict[str, Any], most: int = 3) -> str:
    """What a state emits, in a line."""
    told = []
    for name, found in list(emits.items())[:most]:
        if set(found) == {"mean", "sd"}:
            told.append(f"{name} {found['mean']:.3g} ± {found['sd']:.2g}")
        else:
            top = sorted(found.items(), key=lambda pair: -pair[1])[:most]
            told.append(f"{name} " + ", ".join(f"{v} {_percent(p)}" for v, p in top))
    return "; ".join(told) + ("; ..." if len(emits) > most else "")


# --- novelty --------------------------------------------------------------------------------------------------------


def _novelty(model: Any) -> dict[str, Any]:
    scores = model.scores_
    outside = int(np.sum(scores < model.offset_))
    return {
        "model": what_is_typical(model)[0],
        "words": what_is_typical(model)[1],
        "objective": model.objective,
        "level": {"value": float(model.level_), "quantile": model._quantile()},
        "threshold": {"value": float(model.offset_), "contamination": float(model.contamination)},
        "scores": {
            "lowest": float(scores.min()),
            "median": float(np.median(scores)),
            "highest": float(scores.max()),
            "outside": outside,
            "rows": len(scores),
        },
        "margin": None if model.margin_ is None else type(model.margin_).__name__.lower(),
        "c": None if model.margin_ is None else float(model.C),
        "counted": {"rows": len(model.support_), "most": float(model.multipliers_.max(initial=0.0))},
        "relative_entropy": float(model.relative_entropy_),
        "gap": None if model.gap_ is None else float(model.gap_),
    }


def what_is_typical(model: Any) -> tuple[str, str]:
    """The kind of model of a novelty detector, and in words."""
    found, n = model.model_, len(model.schema_.columns)
    if isinstance(found, NoveltyTrees):
        return "tree", f"All trees over {count(n, 'column')}, with Dirichlet tables"
    if isinstance(found, NoveltyChain):
        return "hmm", f"A hidden Markov model of {count(found.n_states, 'state')}; {n} steps in a row"
    assert isinstance(found, NoveltyMixture)
    joint = found.emission.joint and found.emission.d > 0
    each = "numbers jointly Gaussian" if joint else "columns independent of each other"
    if found.n_components > 1:
        return "mixture", f"A mixture of {count(found.n_components, 'component')} over {count(n, 'column')}, {each}"
    return ("gaussian" if joint else "product"), f"{count(n, 'column')}, {each}"


def _novelty_in_words(about: dict[str, Any]) -> list[str]:
    level, threshold, scores, counted = about["level"], about["threshold"], about["scores"], about["counted"]
    at = f"{level['value']:.4g} nats, the {level['quantile']:g} quantile under the Bayesian fit"
    told = []
    if about["objective"] == "bayes":
        told.append("Bayesian fit: every row counts once")
    else:
        told.append(f"Every row is to be as probable as {at} (margin prior {about['margin']}, C {about['c']:g})")
        some = (
            f"{counted['rows']} of {count(scores['rows'], 'training row')} count, at most {counted['most']:.3g} times"
        )
        told.append(f"{some}; the others are typical anyway")
    told.append(
        f"Threshold {threshold['value']:.4g} nats: {scores['outside']} of {count(scores['rows'], 'training row')} lie "
        f"below (contamination {threshold['contamination']:g})"
    )
    told.append(f"Training scores {scores['lowest']:.4g} to {scores['highest']:.4g}, median {scores['median']:.4g}")
    if about["gap"] is not None:
        told.append(f"Certificate: at most {about['gap']:.1g} nats from the optimum")
    return told
