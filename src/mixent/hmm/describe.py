"""Descriptions of fitted hidden Markov models: text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.displays import computed
from mixent.base.document import Content, Document, Figure, Number, Paragraph, Section, Table
from mixent.base.text import class_name, count, percent, plain
from mixent.data import as_labels, take_rows
from mixent.hmm.displays import StatesDisplay
from mixent.hmm.states import states_of

if TYPE_CHECKING:
    from mixent.hmm.classifier import HMMClassifier
    from mixent.hmm.estimators import HiddenMarkovModel

CLASSES = 6  # classes whose states are listed
STATES = 12  # states listed and drawn
VALUES = 3  # categories, variables and next states listed
MIN_PROBABILITY = 0.005  # of a next state that is listed


def describe_model(model: HiddenMarkovModel) -> Document:
    """Describe a hidden Markov model without classes: states, convergence."""
    facts = {"n_parameters": int(model.n_parameters_), **_facts(model), "chains": [_chain(None, model)]}
    lead = f"A hidden Markov model of {_kind(model)}."
    section = Section("States", _states(facts["chains"][0], model))
    return document(model, lead, [section], facts=facts, schema=model.schema_, runs=[model.run_])


def describe_classifier(model: HMMClassifier) -> Document:
    """Describe a classifier with a hidden Markov model for each class: states, convergence."""
    models = model.models_
    chains = [_chain(plain(label), class_model) for label, class_model in zip(model.classes_, models)]
    facts = {
        "n_parameters": int(sum(class_model.n_parameters_ for class_model in models)),
        "classes": class_facts(model.classes_, model.class_prior_),
        **_facts(model),
        "chains": chains,
    }
    lead = f"A hidden Markov model for each of {count(len(models), 'class')}, of {_kind(model)}."
    sections = [
        Section(f"States of {class_name(chain['class'])}", _states(chain, class_model))
        for chain, class_model in zip(chains[:CLASSES], models)
    ]
    if len(models) > CLASSES:
        sections.append(Section("", [Paragraph(f"States of {len(models) - CLASSES} more classes are not listed.")]))
    runs = {class_name(label): run for label, run in zip(model.classes_, model.runs_)}
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, sections, facts=facts, classes=classes, schema=model.schema_, runs=runs)


# --- facts and sentences ----------------------------------------------------------------------------------------------


def _facts(model: HiddenMarkovModel | HMMClassifier) -> dict[str, Any]:
    fitted = model.emissions == "fitted"
    return {
        "variables": [str(column.name) for column in model.variables_.columns],
        "topology": model.topology,
        "transitions": model.transitions,
        "covariance": model.covariance if fitted and model.variables_.continuous else None,
    }


def _chain(label: Any, model: HiddenMarkovModel) -> dict[str, Any]:
    return {"class": label, "states": states_of(model), "transitions": model.transitions_.tolist()}


def _kind(model: HiddenMarkovModel | HMMClassifier) -> str:
    """Return number of states, topology and layout of the data as text."""
    n = len(model.variables_.columns)
    steps = (
        f"each row is a sequence of {model.n_features_in_} steps"
        if model.by_row_
        else f"each row is a step with {count(n, 'column')}"
    )
    topology = ", left to right" if model.topology == "left-right" else ""
    matrices = ", with a transition matrix for each step" if model.transitions == "per_step" else ""
    return f"{count(model.n_states, 'state')}{topology}{matrices}; {steps}"


def emission_text(emits: Mapping[str, Mapping[str, float]]) -> str:
    """Return the emissions of a state as text."""
    parts = []
    for name, emission in list(emits.items())[:VALUES]:
        if set(emission) == {"mean", "sd"}:
            parts.append(f"{name} {emission['mean']:.3g} ± {emission['sd']:.2g}")
        else:
            top = sorted(emission.items(), key=lambda pair: -pair[1])[:VALUES]
            parts.append(f"{name} " + ", ".join(f"{value} {percent(p)}" for value, p in top))
    return "; ".join(parts) + ("; ..." if len(emits) > VALUES else "")


def _next_states(transitions: list, state: int) -> str:
    """Return the most probable next states as text; empty with a transition matrix for each step."""
    if not transitions or isinstance(transitions[0][0], list):
        return ""
    row = sorted(
        ((p, s) for s, p in enumerate(transitions[state]) if s != state and p >= MIN_PROBABILITY), reverse=True
    )
    return ", ".join(f"{s}: {p:.2f}" for p, s in row[:VALUES]) + (", ..." if len(row) > VALUES else "")


# --- tables and figures -----------------------------------------------------------------------------------------------


def _states(chain: Mapping[str, Any], model: HiddenMarkovModel) -> list[Content]:
    """Return a table with a row for each state, and a figure of transitions and emissions."""
    rows: list[list[Any]] = []
    for state in chain["states"][:STATES]:
        shares = [None if state[key] is None else Number(f"{state[key]:.2f}") for key in ("first", "share", "stays")]
        rows.append(
            [
                str(state["state"]),
                *shares,
                _next_states(chain["transitions"], state["state"]),
                emission_text(state["emits"]),
            ]
        )
    caption = (
        "States: probability at the start, share of the steps, probability of remaining in the state, transitions to "
        "other states, and emissions (mean ± standard deviation, or the most probable values)"
    )
    n_states = len(chain["states"])
    caption += f"; the first {STATES} of {n_states}" if n_states > STATES else ""
    table = Table(caption, ["state", "start", "share", "remain", "next states", "emissions"], rows)
    return [table, *([_figure(chain, model)] if n_states <= STATES else [])]


def _figure(chain: Mapping[str, Any], model: HiddenMarkovModel) -> Figure:
    stays = ", ".join(f"{s['state']}: {s['stays']:.2f}" for s in chain["states"] if s["stays"] is not None)
    alt = f"Transitions and emissions of {count(len(chain['states']), 'state')}."
    alt += f" Probabilities of remaining in the state: {stays}." if stays else ""
    caption = "Transition probabilities from each state (rows) to the next, and emissions of the states."
    return Figure(lambda: computed(StatesDisplay.from_estimator, model).picture(), alt, caption)


def model_on_rows(model: HiddenMarkovModel, X: Any, y: Any) -> list[Content]:
    """Return a figure of the first sequence with its most probable path of states, if each row is a sequence."""
    return [_path_figure(model, take_rows(X, np.arange(1)), "")] if _drawn(model) else []


def classifier_on_rows(model: HMMClassifier, X: Any, y: Any) -> list[Content]:
    """Return a figure of the first sequence of each class with its most probable path, if each row is a sequence."""
    if not _drawn(model):
        return []
    labels = [str(label) for label in (model.predict(X) if y is None else as_labels(y))]
    figures: list[Content] = []
    for label, class_model in list(zip(model.classes_, model.models_))[:CLASSES]:
        if str(label) in labels:
            row = np.array([labels.index(str(label))])
            figures.append(_path_figure(class_model, take_rows(X, row), f" of {class_name(label)}"))
    return figures


def _drawn(model: HiddenMarkovModel | HMMClassifier) -> bool:
    return bool(model.by_row_) and model.n_states <= STATES


def _path_figure(model: HiddenMarkovModel, sequence: Any, of: str) -> Figure:
    def draw() -> Any:
        return computed(StatesDisplay.from_estimator, model, sequence).picture()

    caption = f"The first sequence{of} in these rows, with its most probable path of states."
    return Figure(draw, f"Values and states of the first sequence{of}.", caption)
