"""Trees, Bayes nets, hidden Markov models and novelty detectors in words and tables: for `fit` and `info`."""

from __future__ import annotations

from typing import Any

from mixent.base.text import count
from mixent.cli.console import Screen, grid, named, shown

MOST_CLASSES, MOST_STATES = 30, 12


def has_structure(model: Any) -> bool:
    """Is it one of these kinds?"""
    from mixent.report.structures import DESCRIBED

    return isinstance(model, DESCRIBED)


def describe_structures(model: Any) -> dict[str, Any]:
    """Edges, states, thresholds and the rest, in plain values."""
    from mixent.report.structures import describe_structure

    return describe_structure(model)


def show_structures(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None = None) -> None:
    """Print what `describe_structures` found."""
    from mixent.report.structures import structure_in_words

    if "classes" in about:
        _show_classes(screen, about, n_rows)
    first, *rest = structure_in_words(about, see="see mixent evaluate")
    screen.say(shown(first))
    if "trees" in about or "nets" in about:
        _show_edges(screen, about)
    if "chains" in about:
        _show_chains(screen, about)
    for text in rest:
        screen.say(shown(text))


def _show_classes(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None) -> None:
    support = "support" in about and about["objective"] == "margin"
    table = grid("class", *(["rows"] if n_rows else []), "prior", *(["support"] if support else []))
    for entry in about["classes"][:MOST_CLASSES]:
        rows = [f"{n_rows.get(entry['class'], 0):g}"] if n_rows else []
        last = [str(entry["support"])] if support else []
        table.add_row(shown(entry["class"]), *rows, f"{entry['prior']:.3f}", *last)
    screen.show(table)
    _more(screen, len(about["classes"]), MOST_CLASSES)
    screen.say()


def _show_edges(screen: Screen, about: dict[str, Any]) -> None:
    from mixent.report.structures import edges_in_words

    trees = about.get("trees")
    mixed, sure = trees is not None and "component" in trees[0], about["objective"] == "likelihood"
    chance = trees is not None and not sure
    table = grid("class", *(["tree", "share"] if mixed else []), *(["probability"] if chance else []))
    head = "edges from parent to child" if trees is None else "tree of highest likelihood"
    table.add_column("most probable tree, each edge's probability" if chance else head, overflow="fold")
    lines = edges_in_words(about)
    for i, (label, edges) in enumerate(lines[:MOST_CLASSES]):
        tree = {} if trees is None else trees[i]
        cells = [str(tree["component"]), f"{tree['share']:.2f}"] if mixed else []
        cells += [f"{tree['probability']:.2g}"] if chance else []
        table.add_row("all" if label is None else shown(label), *cells, shown(edges))
    screen.show(table)
    _more(screen, len(lines), MOST_CLASSES)
    screen.say()


def _show_chains(screen: Screen, about: dict[str, Any]) -> None:
    from mixent.report.structures import emission_in_words

    for chain in about["chains"][:MOST_CLASSES]:
        screen.say()
        if chain["class"] is not None:
            screen.say(f"[bold]{named(chain['class'])}[/]")
        table = grid("state", "first", "share", "stays")
        table.add_column("then", overflow="fold")
        table.add_column("emits", overflow="fold")
        for state in chain["states"][:MOST_STATES]:
            table.add_row(
                str(state["state"]),
                f"{state['first']:.2f}",
                *("" if state[key] is None else f"{state[key]:.2f}" for key in ("share", "stays")),
                _next(chain["transitions"], state["state"]),
                shown(emission_in_words(state["emits"])),
            )
        screen.show(table)
        _more(screen, len(chain["states"]), MOST_STATES)
    _more(screen, len(about["chains"]), MOST_CLASSES)
    screen.say()


def _next(transitions: list, state: int, most: int = 3) -> str:
    """Which other states follow, the most probable first; nothing where every step has transitions of its own."""
    if transitions and transitions[0] and isinstance(transitions[0][0], list):
        return "by step"
    row = sorted(((p, s) for s, p in enumerate(transitions[state]) if s != state and p >= 0.005), reverse=True)
    return ", ".join(f"{s}: {p:.2f}" for p, s in row[:most]) + (", ..." if len(row) > most else "")


def _more(screen: Screen, n: int, most: int) -> None:
    if n > most:
        screen.say(f"... and {count(n - most, 'more').removesuffix('s')}")
