"""A fusion in words and tables: for `fuse` and `info`."""

from __future__ import annotations

from typing import Any

from mixent.cli.console import Screen, grid, shown

MOST_CLASSES, MOST_SOURCES = 30, 40


def show_fusion(screen: Screen, about: dict[str, Any]) -> None:
    """Print what `describe_fusion` found: classes with their priors, sources, and the method."""
    from mixent.report.fusion_words import fusion_in_words

    _show_priors(screen, about)
    screen.say()
    _show_sources(screen, about)
    screen.say()
    for text in fusion_in_words(about)[1:]:  # the first is the size, which has been told
        screen.say(shown(text))


def _show_priors(screen: Screen, about: dict[str, Any]) -> None:
    level = f"{100 * about['confidence']:.3g} %"
    table = grid("class", "training", "this batch", f"interval, {level}", "in posteriors")
    for entry in about["classes"][:MOST_CLASSES]:
        interval = f"{entry['low']:.3f} to {entry['high']:.3f}"
        numbers = (f"{entry['training']:.3f}", f"{entry['estimate']:.3f}", interval, f"{entry['prior']:.3f}")
        table.add_row(shown(entry["class"]), *numbers)
    screen.show(table)
    if len(about["classes"]) > MOST_CLASSES:
        screen.say(f"... and {len(about['classes']) - MOST_CLASSES} more")


def _show_sources(screen: Screen, about: dict[str, Any]) -> None:
    trusted = about["sources"][0]["trust"] is not None
    table = grid("source", "answered", *(["trust"] if trusted else []), "drift p")
    table.add_column("", no_wrap=True)
    for entry in about["sources"][:MOST_SOURCES]:
        trust = [f"{entry['trust']:.2f}"] if trusted else []
        p = "-" if entry["drift_p"] is None else f"{entry['drift_p']:.2g}"
        alarm = "[yellow]drifted[/]" if entry["drifted"] else ""
        table.add_row(shown(entry["name"]), f"{entry['answered']:.0%}", *trust, p, alarm)
    screen.show(table)
    if len(about["sources"]) > MOST_SOURCES:
        screen.say(f"... and {len(about['sources']) - MOST_SOURCES} more")
