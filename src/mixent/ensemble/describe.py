"""Descriptions of stacked classifiers and of tuned classifiers of other libraries: text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Bullets, Content, Document, Figure, Number, Paragraph, Section, Table, canvas
from mixent.base.foreign import changed_parameters, column_weights, iterations_text, last_step
from mixent.base.style import FAINT, color, tidy
from mixent.base.style import plain as drawn_text
from mixent.base.text import class_name, count, with_library
from mixent.core.driver import Run
from mixent.ensemble.output_columns import OutputColumns
from mixent.ensemble.tuned import TunedClassifier
from mixent.maxent.describe import entropy_document, entropy_facts, features_section

if TYPE_CHECKING:
    from mixent.ensemble.hmm_stacking import HMMStackingClassifier
    from mixent.ensemble.maxent_stacking import MaxEntStackingClassifier
    from mixent.ensemble.stacking import BaseStacking

LISTED = 12  # classifiers, settings or classes in a table
DRAWN = 36  # classifiers in a figure
ERROR_ROWS = {"train": "on their training rows", "prefit": "on the rows that the stacking model was fitted to"}
OUTPUTS = {"hard": ", using their labels only", "soft": ", using their probabilities", "auto": ""}
REGIONS = {
    "union": "hidden components of mixtures, one mixture per class",
    "class": "hidden components of each class's own mixture",
    "pooled": "hidden components of one mixture",
}


def describe_stack(model: MaxEntStackingClassifier) -> Document:
    """Classifiers combined by maximum entropy: their errors and strengths, and contributions of their labels."""
    facts = {**member_facts(model), **entropy_facts(model), "constraints_of": model.constraints}
    facts["regions"] = [len(cells.names) for cells in dict.fromkeys(model.regions_)]
    for entry, strengths in zip(facts["classifiers"], _strengths(model)):
        entry |= strengths
    diagonal = ", each on a class and the same label" if model.constraints == "diagonal" else ""
    lead = (
        f"{count(len(model.base_names_), 'classifier')} combined by maximum entropy{OUTPUTS[model.decisions]}; "
        f"{count(facts['constraints'], 'constraint')}{diagonal}.{_regions_text(model)}"
    )
    sections = [_members_section(facts), features_section(model, "Contributions")]
    return entropy_document(model, lead, sections, facts, inner=inner_runs(model))


def describe_hmm_stack(model: HMMStackingClassifier) -> Document:
    """Classifiers combined by one hidden Markov model per class of their sequence of decisions."""
    stays = [float(np.einsum("...ii->...i", trans).mean()) if trans.size else None for trans in model.transitions_]
    names = [str(label) for label in model.classes_]
    chains = [
        {"class": label, "first": dict(zip(names, first)), "stays": stay}
        for label, first, stay in zip(model.classes_.tolist(), model.start_.tolist(), stays)
    ]
    facts = {
        **member_facts(model),
        "classes": class_facts(model.classes_, model.class_prior_),
        "transitions": model.transitions,
        "chains": chains,
        "temperature": float(model.temperature_),
    }
    steps = "one transition matrix for each step" if model.transitions == "per_step" else "one transition matrix"
    lead = (
        f"{count(len(names), 'hidden Markov model')}, one for each class, of the sequence of decisions of "
        f"{count(len(model.base_names_), 'classifier')}{OUTPUTS[model.decisions]}; {steps}."
    )
    scale = f"Temperature {model.temperature_:.3g}: the log-likelihood of a sequence is multiplied by it"
    scale += "; it was fitted on held-out rows." if model.calibration else "."
    content: list[Content] = [_chains_table(chains, names), Bullets([scale])]
    runs = dict(zip(map(class_name, model.classes_), model.runs_))
    classes = classes_table(model.classes_, model.class_prior_)
    sections = [_members_section(facts), Section("Hidden Markov models", content)]
    return document(model, lead, sections, facts=facts, classes=classes, runs=runs, inner=inner_runs(model))


# --- the classifiers that are combined --------------------------------------------------------------------------------


def member_facts(model: BaseStacking) -> dict[str, Any]:
    """Names, types and errors of the combined classifiers."""
    members = zip(model.base_names_, _kinds(model), model.base_classes_, model.base_errors_)
    classifiers = [
        {"name": name, "kind": kind, "labels": len(labels), "error": float(error) if np.isfinite(error) else None}
        for name, kind, labels, error in members
    ]
    return {"classifiers": classifiers, "errors": _error_rows(model), "decisions": model.decisions}


def _error_rows(model: BaseStacking) -> str:
    """The rows on which the errors of the classifiers were computed."""
    if isinstance(model.cv, str):
        return ERROR_ROWS[model.cv]
    given = isinstance(model.fitted_, list) and all(isinstance(base, OutputColumns) for base in model.fitted_)
    return "of the outputs in the table" if given else "out of fold"


def _kinds(model: BaseStacking) -> list[str]:
    if isinstance(model.fitted_, list):
        return [kind_of(base) for base in model.fitted_]
    stages = getattr(model.fitted_, "estimators_", [None])
    stage = stages[0][0] if isinstance(stages[0], list) else stages[0]
    return [kind_of(stage)] * len(model.base_names_)


def kind_of(base: Any) -> str:
    """The type of a classifier: the class of its last step, or the columns that hold its outputs."""
    if isinstance(base, OutputColumns):
        return f"column{'s' * (len(base.used) > 1)} {', '.join(map(str, base.used))}"
    return type(base.model_ if isinstance(base, TunedClassifier) else last_step(base)).__name__


def inner_runs(model: BaseStacking) -> dict[str, Run]:
    """Runs of the optimizer of the combined classifiers that have one, by name."""
    members = zip(model.base_names_, model.fitted_) if isinstance(model.fitted_, list) else ()
    runs = {name: getattr(last_step(base), "run_", None) for name, base in members}
    return {name: run for name, run in runs.items() if isinstance(run, Run)}


def _strengths(model: MaxEntStackingClassifier) -> list[dict[str, float]]:
    """Standard deviation over rows of each classifier's contribution to the log-odds, and of that of its regions."""
    strength = model.constraint_table().strength
    entries = [{"strength": strength[name]} for name in model.base_names_]
    if not model.regions_:
        return entries
    crossed = {term.first.name: strength[term.name] for term in model.layout_.terms if hasattr(term, "first")}
    return [entry | {"strength_of_region": crossed.get(name, 0.0)} for entry, name in zip(entries, model.base_names_)]


def _regions_text(model: MaxEntStackingClassifier) -> str:
    if not model.regions_:
        return ""
    sizes = [len(cells.names) for cells in dict.fromkeys(model.regions_)]
    regions = f"{' and '.join(map(str, sizes))} region{'s' * (sizes != [1])} of the input space"
    return f" Their weights depend on {regions}, which are {REGIONS[model.regions_[0].kind]}."


def _members_section(facts: Mapping[str, Any]) -> Section:
    entries = facts["classifiers"]
    errors = [entry["error"] for entry in entries if entry["error"] is not None]
    numbers = {"strength": "strength (nats)", "strength_of_region": "strength of region (nats)"}
    more = [name for name in numbers if name in entries[0]]
    rows = [
        [entry["name"], entry["kind"], _error(entry["error"], errors), *(Number(f"{entry[n]:.3f}") for n in more)]
        for entry in entries[:LISTED]
    ]
    some = f" (the first {LISTED} of {len(entries)})" if len(entries) > LISTED else ""
    caption = f"Combined classifiers{some}: error {facts['errors']}"
    caption += "; strength: standard deviation over rows of the contribution to the log-odds" if more else ""
    caption += "; strength of region: the same for the additional contribution of the region" if len(more) > 1 else ""
    table = Table(caption, ["classifier", "kind", "error (%)", *(numbers[name] for name in more)], rows)
    return Section("Classifiers", [table, *([_errors_figure(facts)] if errors else [])])


def _error(error: float | None, errors: Sequence[float]) -> Number | None:
    return None if error is None else Number(f"{100 * error:.1f}", best=error == min(errors))


def _errors_figure(facts: Mapping[str, Any]) -> Figure:
    shown = [entry for entry in facts["classifiers"] if entry["error"] is not None][:DRAWN]

    def draw() -> Any:
        errors, y = 100 * np.array([entry["error"] for entry in shown]), np.arange(len(shown))
        figure = canvas(6.4, 1.1 + 0.28 * len(shown))
        ax = figure.subplots()
        ax.hlines(y, 0, errors, color=FAINT, lw=1.2, zorder=1)
        ax.plot(errors, y, ls="none", marker="o", ms=6, color=color(0), zorder=3)
        ax.set_yticks(y, [drawn_text(entry["name"], 30) for entry in shown], fontsize="small")
        ax.set(xlabel="Error (%)", xlim=(0, None), ylim=(len(shown) - 0.5, -0.5))
        ax.margins(x=0.08)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        return figure

    text = ", ".join(f"{entry['name']} {100 * entry['error']:.1f} %" for entry in shown[:LISTED])
    return Figure(draw, f"Errors of the classifiers: {text}.", f"Error of each classifier, {facts['errors']}.")


def _chains_table(chains: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    first = names[:LISTED]
    rows = [
        [
            class_name(chain["class"]),
            *(Number(f"{chain['first'][name]:.2f}") for name in first),
            None if chain["stays"] is None else Number(f"{chain['stays']:.2f}"),
        ]
        for chain in chains[:LISTED]
    ]
    caption = (
        "The model of each class: probabilities of the first decision, and the probability that a classifier makes the "
        "same decision as the previous one, averaged over steps and decisions"
    )
    return Table(caption, ["class", *(f"first {name}" for name in first), "same decision"], rows)


# --- classifiers of other libraries -----------------------------------------------------------------------------------


def describe_tuned(model: TunedClassifier) -> Document:
    """A classifier of another library: its parameters, the settings tried, weights of the encoded columns."""
    inner = last_step(model.model_)
    chosen = {**model.best_params_, **changed_parameters(inner)}
    parameters = {name: repr(value) for name, value in chosen.items()}
    facts = {
        "classes": class_facts(model.classes_, model.class_prior_),
        "estimator": type(inner).__name__,
        "parameters": parameters,
        "tried": [{"params": str(entry["params"]), "log_loss": entry["log_loss"]} for entry in model.search_],
    }
    lead = f"{with_library(inner)} on encoded columns."
    if model.search_:
        best = model.search_[0]["log_loss"]
        lead += f" Chosen from {len(model.search_)} settings by cross-validated log-loss, {best:.3f} nats."
    values = [f"{name} = {value}" for name, value in parameters.items()]
    sections = [Section("Parameters", [Bullets(values)])] if values else []
    sections += [Section("Settings tried", [_settings_table(model)])] if model.search_ else []
    weights, iterations = column_weights(model.model_, model.columns_.names), iterations_text(inner)
    sections += [] if weights is None else [Section("Weights of the columns", [weights])]
    sections += [Section("Convergence", [Paragraph(iterations)])] if iterations else []
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, sections, facts=facts, classes=classes, schema=model.schema_)


def _settings_table(model: TunedClassifier) -> Table:
    names = list(dict.fromkeys(name for entry in model.search_ for name in entry["params"]))
    rows: list[list[Any]] = [
        [*(str(entry["params"].get(name, "")) for name in names), Number(f"{entry['log_loss']:.3f}")]
        for entry in model.search_[:LISTED]
    ]
    some = f"the {len(rows)} best of {len(model.search_)}" if len(model.search_) > len(rows) else "the best first"
    return Table(f"Settings tried, {some}", [*names, "log-loss (nats)"], rows)


def describe_columns(model: OutputColumns) -> Document:
    """Outputs of a classifier that are columns of the table."""
    labels = [str(label) for label in model.classes_]
    lead = f"The outputs of a classifier, read from {kind_of(model)}. Its labels are {', '.join(labels)}."
    return document(model, lead, facts={"columns": [str(column) for column in model.used], "labels": labels})
