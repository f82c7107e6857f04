"""A classifier by maximum entropy discrimination in words and tables: for `fit` and `info`."""

from __future__ import annotations

from typing import Any

from mixent.cli.console import Screen, grid, named, shown

MOST_CLASSES, MOST_COLUMNS = 30, 8


def describe_med(model: Any) -> dict[str, Any]:
    """Kernel, choice of c, margins, support, gap, calibration and strongest columns, in plain values."""
    from mixent.evaluate.discrimination import describe_discrimination, strongest_columns

    strongest = strongest_columns(model, MOST_COLUMNS)
    about = describe_discrimination(model)
    return about | ({"strongest": strongest, "encoded_columns": len(model.feature_names_)} if strongest else {})


def show_med(screen: Screen, about: dict[str, Any], n_rows: dict[Any, float] | None = None) -> None:
    """Print what `describe_med` found."""
    from mixent.evaluate.discrimination import in_words

    table = grid("class", *(["rows"] if n_rows else []), "prior", "support")
    for entry in about["classes"][:MOST_CLASSES]:
        rows = [f"{n_rows.get(entry['class'], 0):g}"] if n_rows else []
        table.add_row(shown(entry["class"]), *rows, f"{entry['prior']:.3f}", str(entry["support"]))
    screen.show(table)
    if len(about["classes"]) > MOST_CLASSES:
        screen.say(f"... and {len(about['classes']) - MOST_CLASSES} more")
    screen.say()
    screen.say(shown(about["kernel"]["words"]))
    if "strongest" in about:
        _show_strongest(screen, about)
    for text in in_words(about, see="see mixent evaluate"):
        screen.say(shown(text))


def _show_strongest(screen: Screen, about: dict[str, Any]) -> None:
    table = grid("strongest columns", "coefficient")
    table.add_column("more of it speaks for", overflow="fold")
    for entry in about["strongest"]:
        table.add_row(shown(entry["column"]), f"{entry['size']:.3f}", named(entry["class"]))
    screen.show(table)
    if about["encoded_columns"] > len(about["strongest"]):
        screen.say(f"... and {about['encoded_columns'] - len(about['strongest'])} more")
