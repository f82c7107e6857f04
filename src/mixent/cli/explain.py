"""`mixent explain`: why each row is said to be of its class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.cli import options as opt
from mixent.cli.data import check_output, listed, read_table
from mixent.cli.predict import model_columns
from mixent.cli.screen import Screen, count, grid, named, session, shown

MOST_ROWS, MOST_PARTS = 10, 15


@dataclass(frozen=True)
class Case:
    """One row: its class, and the parts of its log-odds, largest first."""

    row: int
    label: Any
    probability: float
    rival: Any
    log_odds: float  # nats
    parts: list[tuple[str, str, float]]  # name, what the row holds (or whom a component speaks for), nats


def explain(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file written by `mixent fit`.", show_default=False)
    ],
    data: opt.Data,
    row: Annotated[
        list[int], typer.Option(metavar="N", min=0, help="Row to explain, the first is 0; repeat for more; else all.")
    ] = [],  # noqa: B006
    label: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Class to explain; the most probable of each row unless given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all parts: .csv, .tsv, .parquet or .json."),
    ] = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Say of each row why it is of its class rather than of the strongest other.

    The log-odds log p(class | row) / p(rival | row), in nats, is a sum: of the class term, and of a part for each
    column (maximum entropy) or component (mixtures). Positive parts speak for the class. The parts add up exactly.

    \b
    Examples:
      mixent explain m.mixent new.csv --row 3
      mixent explain m.mixent new.csv --row 3 --label yes
      mixent explain m.mixent new.csv -o why.csv
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load
        from mixent.tables.files import ENDINGS

        if output is not None:
            check_output(output, [model, data], (*ENDINGS, ".json"))
        fitted = load(model)
        if not hasattr(fitted, "explain"):
            raise ValueError(
                f"{model} holds a {type(fitted).__name__}, which has no classes to explain; fit a classifier: give "
                "`mixent fit` a --target"
            )
        frame = read_table(data)
        rows = list(dict.fromkeys(row)) or list(range(len(frame)))
        beyond = [n for n in rows if n >= len(frame)]
        if beyond:
            raise ValueError(f"{data} has {count(len(frame), 'row')}, numbered from 0; there is no row {beyond[0]}")
        X = model_columns(fitted, frame.iloc[rows], data)
        cases = read_cases(fitted, X, rows, None if label is None else _label(label, fitted.classes_))
        for case in cases[:MOST_ROWS]:
            show_case(screen, case)
        if len(cases) > MOST_ROWS:
            screen.say(f"... and {count(len(cases) - MOST_ROWS, 'row')} more; choose with --row, or write all with -o")
        if output is not None:
            write_cases(cases, output)
            screen.say(f"Wrote [bold]{shown(output)}[/]")


def _label(text: str, classes: Any) -> Any:
    """The class that is written like this."""
    names = {str(c): c for c in classes.tolist()}
    if text not in names:
        raise ValueError(f"--label must be one of the classes {listed(list(names))}; got {text!r}")
    return names[text]


def read_cases(fitted: Any, X: Any, rows: list[int], label: Any) -> list[Case]:
    """Explain rows of X, which are called `rows`."""
    import numpy as np

    why, proba = fitted.explain(X, label=label), fitted.predict_proba(X)
    classes = {c: i for i, c in enumerate(fitted.classes_.tolist())}
    if hasattr(why, "by_column"):
        from mixent.evaluate.cases import case_values

        parts, first, names, values = why.by_column, "class term", list(why.names), case_values(fitted, X)
    else:
        parts, first = why.by_component, "class priors"
        names = [f"component {k}" for k in range(parts.shape[1])]
        said = [
            f"{fitted.classes_[share.argmax()]} ({100 * share.max():.0f} %)"
            for share in fitted.class_given_component_.T
        ]
        values = [said] * len(rows)
    cases = []
    for i, n in enumerate(rows):
        found = [(first, "", float(why.prior[i])), *zip(names, values[i], parts[i].tolist())]
        order = np.argsort([-abs(size) for _, _, size in found], kind="stable")
        ours, theirs = why.label.tolist()[i], why.rival.tolist()[i]
        p = float(proba[i, classes[ours]])
        cases.append(Case(n, ours, p, theirs, float(why.log_odds[i]), [found[j] for j in order]))
    return cases


def show_case(screen: Screen, case: Case) -> None:
    """Print one row: its class, and a table of the parts."""
    from mixent.evaluate.displays.explanation import probability_text

    screen.say(
        f"[bold]Row {case.row}: {named(case.label)}[/], probability {probability_text(case.probability)}, rather than "
        f"{named(case.rival)}"
    )
    by_component = any(name.startswith("component ") for name, _, _ in case.parts)
    table = grid("part", "log-odds\nnats")
    table.add_column("speaks for" if by_component else "value", overflow="fold")
    for name, value, size in case.parts[:MOST_PARTS]:
        table.add_row(shown(name), f"{size:+.3f}", shown(value))
    rest = case.parts[MOST_PARTS:]
    if rest:
        table.add_row(count(len(rest), "other"), f"{sum(size for _, _, size in rest):+.3f}", "")
    table.add_row("[bold]total[/]", f"[bold]{case.log_odds:+.3f}[/]", "")
    screen.show(table)
    screen.say()


def write_cases(cases: list[Case], path: Path) -> None:
    """One line for each row and part, or a JSON list of rows."""
    if path.name.lower().endswith(".json"):
        import json

        keys = ("part", "value", "log_odds")
        told = [vars(case) | {"parts": [dict(zip(keys, part)) for part in case.parts]} for case in cases]
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        return
    import pandas as pd

    from mixent.tables import write_frame

    lines = [
        {
            "row": case.row,
            "class": case.label,
            "probability": case.probability,
            "rival": case.rival,
            "log_odds": case.log_odds,
            "part": name,
            "value": value,
            "part_log_odds": size,
        }
        for case in cases
        for name, value, size in case.parts
    ]
    write_frame(pd.DataFrame(lines), path)
