"""`mixent explain`: why each row is said to be of its class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, named, session, shown
from mixent.cli.data import STDOUT, check_output, harmless, listed, read_for, write_table
from mixent.cli.predict import model_columns

MOST_LINES, MOST_PARTS, MOST_LOUD = 30, 15, 3
FEW_ROWS = 3  # more are told in a line each, unless asked for


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
        Path,
        typer.Argument(metavar="MODEL", help="Model file written by `mixent fit` or `novelty`.", show_default=False),
    ],
    data: opt.Data,
    row: Annotated[
        list[str],
        typer.Option(
            "--row",
            "--rows",
            metavar="N|A-B",
            help="Row to explain in full, the first is 0, or rows A to B; repeat for more. Without it all rows, more "
            "than three in a line each.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    label: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Class to explain; the most probable of each row unless given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write all parts: .csv, .tsv, .parquet or .json; - prints CSV." + opt.ESCAPED,
        ),
    ] = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Say of each row why it is of its class rather than of the strongest other.

    The log-odds log p(class | row) / p(rival | row), in nats, is a sum: of the average row's, and of a part for each
    column (maximum entropy), component (mixtures) or classifier (stacks). Positive parts speak for the class. The parts
    add up exactly.

    Of a novelty detector it says what each column adds to the row's score: the score less what it would be without the
    column's value. The lowest make the row unusual; these parts do not add up.

    \b
    Examples:
      mixent explain m.mixent new.csv --row 3
      mixent explain m.mixent new.csv --rows 0-4 --label yes
      mixent explain m.mixent new.csv -o why.csv
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug, to_stderr=output == STDOUT) as screen:
        from mixent import load
        from mixent.data.files import ENDINGS

        asked = _rows(row)
        if output is not None and output != STDOUT:
            check_output(output, [model, data], (*ENDINGS, ".json"))
        fitted = load(model)
        if hasattr(fitted, "rule_"):
            raise ValueError(
                f"{model} holds a fusion; `mixent predict --explain` tells the loudest source of each item, and "
                "`mixent fuse --report` the decisions against the majority"
            )
        detects = hasattr(fitted, "offset_")
        if detects and label is not None:
            raise typer.BadParameter(f"--label has no effect: {model} holds a novelty detector, which has no classes")
        if not detects and not hasattr(fitted, "explain"):
            why = "which has no classes to explain; fit a classifier: give `mixent fit` a --target"
            if hasattr(fitted, "classes_"):
                why = "which explains nothing; fit a mixture, --model maxent or stack"
            raise ValueError(f"{model} holds a {type(fitted).__name__}, {why}")
        frame = read_for(fitted, data)
        rows = asked or list(range(len(frame)))
        beyond = [n for n in rows if n >= len(frame)]
        if beyond:
            raise ValueError(f"{data} has {count(len(frame), 'row')}, numbered from 0; there is no row {beyond[0]}")
        X = model_columns(fitted, frame.iloc[rows], data)
        if detects:
            _explain_scores(screen, fitted, X, rows, bool(asked) or len(rows) <= FEW_ROWS, output)
            return
        cases = read_cases(fitted, X, rows, None if label is None else _label(label, fitted.classes_))
        if output == STDOUT:
            screen.say(f"{count(len(cases), 'row')} explained")
        elif asked or len(cases) <= FEW_ROWS:
            for case in cases:
                show_case(screen, case)
        else:
            show_lines(screen, cases)
        if output is not None:
            write_cases(screen, cases, output, fitted.classes_)
        if output not in (None, STDOUT):
            screen.say(f"Wrote [bold]{shown(output)}[/]")


def _explain_scores(screen: Screen, fitted: Any, X: Any, rows: list[int], full: bool, output: Path | None) -> None:
    from mixent.cli.novelty import explain_scores

    lines = explain_scores(screen, fitted, X, rows, full and output != STDOUT)
    if output is None:
        return
    if output.name.lower().endswith(".json"):
        import json

        output.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    else:
        import pandas as pd

        write_table(screen, pd.DataFrame(lines), output)
    if output != STDOUT:
        screen.say(f"Wrote [bold]{shown(output)}[/]")


def _rows(texts: list[str]) -> list[int]:
    """Row numbers from N or A-B, each once."""
    found: list[int] = []
    for text in texts:
        first, dash, last = text.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
            raise typer.BadParameter(f"--row must be a row number >= 0, or a range such as 0-4; got {text!r}")
        found += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(found))


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
    values, cases = why.values(), []
    for i, n in enumerate(rows):
        found = [(why.baseline_name, "", float(why.baseline[i])), *zip(why.names, values[i], why.parts[i].tolist())]
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
    most = MOST_PARTS if len(case.parts) > MOST_PARTS + 1 else len(case.parts)  # one alone takes no less room unnamed
    for name, value, size in case.parts[:most]:
        table.add_row(shown(name), f"{size:+.3f}", shown(value))
    rest = case.parts[most:]
    if rest:
        table.add_row(count(len(rest), "other"), f"{sum(size for _, _, size in rest):+.3f}", "")
    table.add_row("[bold]total[/]", f"[bold]{case.log_odds:+.3f}[/]", "")
    screen.show(table)
    screen.say()


def show_lines(screen: Screen, cases: list[Case]) -> None:
    """Print a line for each row: class, probability, rival, and the parts that speak loudest."""
    from mixent.evaluate.displays.explanation import probability_text

    table = grid("row", "class", "probability", "rival")
    for place in (1, 3):
        table.columns[place].justify, table.columns[place].no_wrap = "left", False
    table.add_column("loudest parts, log-odds in nats", overflow="fold")
    for case in cases[:MOST_LINES]:
        loud = ", ".join(f"{shown(name)} {size:+.2f}" for name, _, size in case.parts[:MOST_LOUD])
        table.add_row(str(case.row), shown(case.label), probability_text(case.probability), shown(case.rival), loud)
    screen.show(table)
    more = len(cases) - MOST_LINES
    if more > 0:
        screen.say(f"... and {count(more, 'row')} more; write all with -o")
    screen.say("Choose a row with --row to see all its parts.")


def write_cases(screen: Screen, cases: list[Case], path: Path, classes: Any) -> None:
    """One line for each row and part, or a JSON list of rows, with the same names."""
    heads = [
        {
            "row": case.row,
            "class": case.label,
            "probability": case.probability,
            "rival": case.rival,
            "log_odds": case.log_odds,
        }
        for case in cases
    ]
    parts = [[dict(zip(("part", "value", "part_log_odds"), part)) for part in case.parts] for case in cases]
    if path.name.lower().endswith(".json"):
        import json

        told = [head | {"parts": mine} for head, mine in zip(heads, parts)]
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        return
    import pandas as pd

    lines = [head | part for head, mine in zip(heads, parts) for part in mine]
    write_table(screen, pd.DataFrame(lines), path, harmless(classes))
