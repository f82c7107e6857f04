"""Ensembles in words and tables: for `fit` and `info`."""

from __future__ import annotations

from typing import Any

from mixent.cli.console import Screen, grid, shown
from mixent.cli.summary_maxent import _certificate, _prior, _prior_in_words

MOST_CLASSES, MOST_LINES = 30, 12


def is_ensemble(model: Any) -> bool:
    """Is it a stack or a boosting?"""
    from mixent.report.ensembles import ENSEMBLES

    return isinstance(model, ENSEMBLES)


def describe_ensembles(model: Any) -> dict[str, Any]:
    """Classifiers or stages, errors, prior and certificate, in plain values."""
    from mixent.report.ensembles import describe_ensemble

    about = describe_ensemble(model)
    return about | ({"prior": _prior(model)} if about.get("combination") == "maxent" else {})


def show_ensemble(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None = None) -> None:
    """Print what `describe_ensembles` found."""
    from mixent.report.ensembles import ensemble_in_words

    table = grid("class", *(["rows"] if n_rows else []), "prior")
    for entry in about["classes"][:MOST_CLASSES]:
        rows = [f"{n_rows.get(entry['class'], 0):g}"] if n_rows else []
        table.add_row(shown(entry["class"]), *rows, f"{entry['prior']:.3f}")
    screen.show(table)
    _more(screen, about["classes"], MOST_CLASSES)
    screen.say()
    first, *rest = ensemble_in_words(about)
    screen.say(shown(first))
    if "boosting" in about:
        for run in about["boosting"]:
            _show_stages(screen, run)
    else:
        _show_classifiers(screen, about)
    for text in rest:
        screen.say(shown(text))
    if "certificate" in about:
        screen.say(_prior_in_words(about["prior"]))
        screen.say(_certificate(about["certificate"]))
        without = f"{about['entropy_of_classes']:.3f} without it"
        screen.say(f"Entropy of the class given what is said {about['entropy']:.3f} nats, {without}")


def _show_classifiers(screen: Screen, about: dict[str, Any]) -> None:
    entries = about["classifiers"]
    strength, place = "strength" in entries[0], "strength_of_place" in entries[0]
    heads = ["error %", *["strength\nnats"] * strength, *["of place\nnats"] * place]
    table = grid("classifier", *heads)
    table.add_column("kind", overflow="fold")
    for entry in entries[:MOST_LINES]:
        numbers = ["" if entry["error"] is None else f"{100 * entry['error']:.1f}"]
        numbers += [f"{entry['strength']:.3f}"] if strength else []
        numbers += [f"{entry['strength_of_place']:.3f}"] if place else []
        table.add_row(shown(entry["name"]), *numbers, shown(entry["kind"]))
    screen.show(table)
    _more(screen, entries, MOST_LINES)
    screen.say(f"Errors are {about['errors']}")


def _show_stages(screen: Screen, run: dict[str, Any]) -> None:
    head = "stage" if run["class"] is None else f"{run['class']}: stage"
    table = grid(shown(head), "error %\nof the weight", "vote", "bound %")
    for m, stage in enumerate(run["stages"][:MOST_LINES]):
        bound = "" if stage["bound"] is None else f"{100 * stage['bound']:.1f}"
        numbers = f"{100 * stage['error']:.1f}", f"{stage['alpha']:.3f}", bound
        table.add_row(str(m + 1), *numbers)
    screen.show(table)
    _more(screen, run["stages"], MOST_LINES)


def _more(screen: Screen, entries: list, most: int) -> None:
    if len(entries) > most:
        screen.say(f"... and {len(entries) - most} more")
