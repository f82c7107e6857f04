"""Descriptions of the search for components and of their growth: facts, text, table and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixent.base.displays import computed
from mixent.base.document import Cell, Content, Figure, Number, Paragraph, Section, Table
from mixent.base.text import class_name, count, plain, readable
from mixent.mixtures.displays import GrowthDisplay, SelectionDisplay
from mixent.mixtures.options import by_likelihood

LISTED = 8  # entries of a search in the table
NAMED = 12  # classes in the text
SAME = ("log_loss", "error", "temperature")  # entries that agree in these are the same model
LEFT_OUT = ("chosen", "evaluations", "log_loss_raw")
IF_DIFFERENT = ("across_classes", "prior_rows", "prior_target", "noise", "temperature", "folds", "converged")
NAMES = {"dic_robust": "robust DIC", "cbic": "conditional BIC", "cv": "-2 times the held-out log density"}

Entry = Mapping[str, Any]


def search_facts(model: Any) -> dict[str, Any]:
    """Return the criterion, number of models and chosen models of a search, and the stages of growth."""
    facts: dict[str, Any] = {}
    if model.search_:
        chosen = [{key: _plain(value) for key, value in entry.items()} for entry in _chosen(model.search_)]
        facts["search"] = {"criterion": model._group("search").criterion, "tried": len(model.search_), "chosen": chosen}
    if model.path_:
        facts["path"] = [
            {**({} if label is None else {"class": label}), **_stage(stage)}
            for label, stages in _paths(model).items()
            for stage in stages
        ]
    return facts


def search_sections(model: Any) -> list[Section]:
    """Describe the search for the number of components, and their growth."""
    sections = []
    if model.search_:
        content: list[Content] = [Paragraph(search_text(model)), search_table(model)]
        if "log_loss" not in model.search_[0]:
            content.append(_selection_figure(model))
        sections.append(Section("Search", content))
    if model.path_:
        sections.append(Section("Growth", [Paragraph(_growth_text(model)), _growth_figure(model)]))
    return sections


def search_text(model: Any) -> str:
    """Describe the criterion of the search and the chosen model."""
    search, settings = model.search_, model._group("search")
    best, tried = _chosen(search), count(len(search), "model")
    first = best[0]
    if "log_loss" in first:
        text = f"Chosen from {tried} by cross-validation within the training rows"
        if settings.nested is not None:
            by = f"{criterion_name(settings.criterion)} in {count(first['folds'], 'fold')}"
            text = f"Chosen by held-out error from {tried} selected by {by}"
        text += f": log-loss {first['log_loss']:.3f} nats, error {100 * first['error']:.1f} %."
    elif "class" in first:
        models = ", ".join(f"{class_name(e['class'])} {e['n_components']} {e['covariance']}" for e in best[:NAMED])
        by = criterion_name(settings.criterion)
        text = f"Chosen for each class, from {tried} in total, by {by} (lower is better): {models}."
    else:
        value = f"{first[settings.criterion]:.6g}"
        text = f"Chosen from {tried} by {criterion_name(settings.criterion)} ({value}; lower is better)."
    return text if _scored_as_trained(model) else f"{text} These are the values before the discriminative training."


def _scored_as_trained(model: Any) -> bool:
    """Whether the models of the search were trained like the final one: only shared components, with criterion "cv"."""
    if by_likelihood(getattr(model, "training", "likelihood")):
        return True
    return model._group("search").criterion == "cv" and isinstance(model.covariance_, str)


def criterion_name(criterion: str) -> str:
    """Return the name of a criterion in a sentence."""
    return NAMES.get(criterion, criterion.upper())


def _chosen(search: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in search if entry.get("chosen")] or list(search[:1])


# --- the table --------------------------------------------------------------------------------------------------------


def search_table(model: Any) -> Table:
    """Return the table of the chosen and the best other models of a search, without duplicates."""
    settings, held = model._group("search"), "log_loss" in model.search_[0]
    entries = _different(model.search_, settings.criterion, held)
    shown, first = entries[:LISTED], model.search_[0]
    same = [key for key in IF_DIFFERENT if key in first and len({_key(entry.get(key)) for entry in shown}) == 1]
    keys = [key for key in first if key not in LEFT_OUT and key not in same]
    rows = [["chosen" if entry.get("chosen") else "", *(_cell(entry.get(key), key) for key in keys)] for entry in shown]
    if held:
        order = "held-out error" if settings.nested is not None else "held-out log-loss"
    else:
        order = f"{criterion_name(settings.criterion)}, lower is better"
    caption = f"Models tried ({len(shown)} of {len(entries)}, the chosen first, then by {order})"
    n_duplicates = len(model.search_) - len(entries)
    caption += f". Not shown: {n_duplicates} with the same predictions as another" if n_duplicates else ""
    common = [f"{key.replace('_', ' ')} {_text(shown[0][key])}" for key in same if shown[0][key]]
    caption += f". The same in all: {', '.join(common)}" if common else ""
    if any(entry.get("across_classes") for entry in shown):
        caption += '. Across classes: "equal" in the structure refers to all classes'
    return Table(caption, ["", *(key.replace("_", " ") for key in keys)], rows)


def _different(search: Sequence[Entry], criterion: str, held: bool) -> list[Entry]:
    """Return the chosen entries, then the best others, without duplicates."""
    ranked = search if held or criterion not in search[0] else sorted(search, key=lambda entry: entry[criterion])
    entries: dict[Any, Entry] = {}
    for entry in sorted(ranked, key=lambda entry: not entry.get("chosen", False)):  # stable: others remain ranked
        entries.setdefault(tuple(_key(entry.get(key)) for key in SAME) if held else id(entry), entry)
    return list(entries.values())


def _key(value: Any) -> str:
    """Return a text by which two values are compared."""
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)


def _cell(value: Any, key: str) -> Cell:
    if isinstance(value, list | tuple):
        return f"{value[0]} each" if len(value) > 1 and len(set(value)) == 1 else ", ".join(map(str, value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        digits = 3 if key in IF_DIFFERENT else 5
        return Number(f"{value:.3f}" if key in ("log_loss", "error") else readable(float(value), digits))
    return _text(value) if isinstance(value, bool | np.bool_ | str) else plain(value)


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return readable(float(value), 3) if isinstance(value, float | np.floating) else str(value)


def _plain(value: Any) -> Any:
    return [plain(item) for item in value] if isinstance(value, list | tuple) else plain(value)


# --- figures and growth -----------------------------------------------------------------------------------------------


def _selection_figure(model: Any) -> Figure:
    display = computed(SelectionDisplay.from_estimator, model)
    best = "; ".join(
        (f"{class_name(entry['class'])} " if "class" in entry else "")
        + f"{entry['covariance']}, {entry['n_components']}"
        for entry in display.picks
    )
    alt = f"{criterion_name(display.criterion)} against the number of components; chosen: {best}."
    return Figure(display.picture, alt, "The criterion of each number of components and covariance structure.")


def _paths(model: Any) -> dict[Any, list]:
    """Return the stages of each class, or of all rows."""
    if isinstance(model.path_[0], list):
        return dict(zip(map(plain, model.classes_), model.path_))
    return {None: model.path_}


def _stage(stage: Any) -> dict[str, Any]:
    return {
        "n_components": int(stage.n_components),
        "covariance": stage.covariance,
        "log_likelihood": float(stage.log_likelihood),
        "n_free": int(stage.n_free),
    }


def _growth_text(model: Any) -> str:
    chosen = np.atleast_1d(model.n_components_)
    texts = [
        f"{'' if label is None else f'{class_name(label)} '}up to {count(stages[-1].n_components, 'component')}, "
        f"{int(k)} chosen"
        for (label, stages), k in zip(_paths(model).items(), chosen)
    ]
    more = f"; and {len(texts) - NAMED} more classes" if len(texts) > NAMED else ""
    return f"Components were added one at a time: {'; '.join(texts[:NAMED])}{more}."


def _growth_figure(model: Any) -> Figure:
    display = computed(GrowthDisplay.from_estimator, model, "bic")
    caption = "Log-likelihood per training row against the number of components."
    alt = "Log-likelihood per row against the number of components."
    return Figure(lambda: display.picture(quantity="log_likelihood"), alt, caption)
