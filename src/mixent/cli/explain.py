"""`mixent explain`: why each row has its class."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, named, session, shown
from mixent.cli.data import listed
from mixent.cli.output import STDOUT, check_table_output, harmless, write_records
from mixent.cli.rows import read_rows

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator

MOST_LINES, MOST_PARTS, MOST_LARGEST = 30, 15, 3
FEW_ROWS = 3  # more are printed in a line each, unless asked for


@dataclass(frozen=True)
class Case:
    """One row: its class, and the parts of its log-odds, largest first."""

    row: int
    label: Hashable
    probability: float
    rival: Hashable
    log_odds: float  # nats
    by: str  # "component", "column", "classifier" or "edge"
    about: str  # how the parts were computed
    parts: list[tuple[str, str, float]]  # name, what the row holds (or the class of a component), nats

    @property
    def head(self) -> dict[str, Any]:
        """The row as a record, without its parts."""
        names = ("row", "class", "probability", "rival", "log_odds")
        return dict(zip(names, (self.row, self.label, self.probability, self.rival, self.log_odds)))

    @property
    def records(self) -> list[dict[str, Any]]:
        """The parts as records."""
        return [dict(zip(("part", "value", "part_log_odds"), part)) for part in self.parts]


@opt.reads_table
def explain(
    model: opt.ModelFile,
    data: opt.Data,
    row: Annotated[
        list[str],
        typer.Option(
            "--row",
            "--rows",
            metavar="N|A-B",
            help="Row to explain in full, the first is 0, or rows A to B. Repeatable. (Default: all rows, more than "
            "three in a line each.)",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    label: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Class to explain (default: the most probable of each row).")
    ] = None,
    by: Annotated[
        Literal["column", "component", "classifier", "edge"],
        typer.Option(help="What contributes: columns, components (mixtures), classifiers (stack) or edges (trees)."),
    ] = "column",
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
    """Explain why each row has its class rather than the strongest other one.

    The log-odds log p(class | row) / p(rival | row), in nats, is a sum: that of the average training row (of mixtures:
    of the class priors), and a part for each column. Positive parts are evidence for the class, negative parts against
    it. The parts add up exactly. Maximum entropy models are sums of such parts; for other models they are Shapley
    values, and a line below the tables states how they were computed.

    For a novelty detector: what each column adds to the row's score, which is the score less what it would be without
    the column's value. The lowest make the row unusual; these parts do not add up.

    \b
    Examples:
      mixent explain m.mixent new.csv --row 3
      mixent explain m.mixent new.csv --rows 0-4 --label yes
      mixent explain m.mixent new.csv --by component
      mixent explain m.mixent new.csv -o why.csv
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug, to_stderr=output == STDOUT) as screen:
        from mixent import load
        from mixent.base.registry import entry_of

        asked = _rows(row)
        check_table_output(output, [model, data], ".json")
        fitted = load(model)
        task = entry_of(fitted).task
        _check_explains(fitted, task, model, label, by)
        rows = read_rows(fitted, data, model)
        rows.note_extra()
        numbers = asked or list(range(len(rows.frame)))
        _check_rows(numbers, len(rows.frame), data)
        in_full = bool(asked) or len(numbers) <= FEW_ROWS
        if task == "novelty":
            _explain_scores(screen, fitted, rows.some(numbers), numbers, in_full, output)
        else:
            named_class = None if label is None else _label(label, fitted.classes_)
            cases = read_cases(fitted, rows.some(numbers), numbers, named_class, by)
            _print_cases(screen, cases, in_full, output)
            if output is not None:
                write_cases(screen, cases, output, fitted.classes_)
        if output not in (None, STDOUT):
            screen.wrote(output)


def _check_explains(fitted: BaseEstimator, task: str, model: Path, label: str | None, by: str) -> None:
    from mixent.base.capabilities import cells_of, is_able

    if task == "novelty":
        if label is not None:
            raise typer.BadParameter(f"--label is not used: {model} holds a novelty detector, which has no classes")
        if by != "column":
            raise typer.BadParameter(f"--by must be column: {model} holds a novelty detector; got {by}")
        if is_able(fitted, "explanations"):
            return
    if task == "fusion":
        raise ValueError(
            f"{model} holds a fusion; `mixent predict --explain` writes the source with the largest part for each item"
        )
    cell = cells_of(fitted)["explanations"]
    if not cell.able:
        why = "has no classes" if cell.able is None else f"has no explanations{f' ({cell.note})' if cell.note else ''}"
        raise ValueError(f"{model} holds a {type(fitted).__name__}, which {why}; explain takes a classifier of rows")
    if by not in cell.note:
        raise typer.BadParameter(f"--by must be column: {model} holds a {type(fitted).__name__}; got {by}")


def _rows(texts: list[str]) -> list[int]:
    """Row numbers from N or A-B, each once."""
    numbers: list[int] = []
    for text in texts:
        first, dash, last = text.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
            raise typer.BadParameter(f"--row must be a row number >= 0, or a range such as 0-4; got {text!r}")
        numbers += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(numbers))


def _check_rows(numbers: list[int], n_rows: int, data: Path) -> None:
    beyond = [n for n in numbers if n >= n_rows]
    if beyond:
        raise ValueError(f"{data} has {count(n_rows, 'row')}, numbered from 0; got row {beyond[0]}")


def _label(text: str, classes: np.ndarray) -> Hashable:
    """The class that is written like this."""
    names = {str(c): c for c in classes.tolist()}
    if text not in names:
        raise ValueError(f"--label must be one of the classes {listed(list(names))}; got {text!r}")
    return names[text]


def read_cases(
    fitted: BaseEstimator, X: pd.DataFrame | np.ndarray, rows: list[int], label: Hashable | None, by: str = "column"
) -> list[Case]:
    """Explain rows of X, whose numbers are `rows`."""
    more = {} if by == "column" else {"by": by}
    why, proba = fitted.explain(X, label=label, **more), fitted.predict_proba(X)
    classes = {c: i for i, c in enumerate(fitted.classes_.tolist())}
    values, cases = why.values(), []
    for i, n in enumerate(rows):
        parts = [(why.baseline_name, "", float(why.baseline[i])), *zip(why.names, values[i], why.parts[i].tolist())]
        parts.sort(key=lambda part: -abs(part[2]))
        ours, theirs = why.label.tolist()[i], why.rival.tolist()[i]
        probability = float(proba[i, classes[ours]])
        cases.append(Case(n, ours, probability, theirs, float(why.log_odds[i]), why.by, why.about, parts))
    return cases


def _explain_scores(
    screen: Screen,
    fitted: BaseEstimator,
    X: pd.DataFrame | np.ndarray,
    rows: list[int],
    in_full: bool,
    output: Path | None,
) -> None:
    from mixent.cli.novelty import explain_scores

    records = explain_scores(screen, fitted, X, rows, in_full and output != STDOUT)
    if output is not None:
        write_records(screen, records, output)


# --- output -----------------------------------------------------------------------------------------------------------


def _print_cases(screen: Screen, cases: list[Case], in_full: bool, output: Path | None) -> None:
    if output == STDOUT:
        screen.print(f"{count(len(cases), 'row')} explained")
    elif in_full:
        for case in cases:
            print_case(screen, case)
    else:
        print_lines(screen, cases)
    if cases and output != STDOUT:
        screen.print(f"Positive parts are evidence for the class. {cases[0].about}")


def print_case(screen: Screen, case: Case) -> None:
    """Print one row: its class, and a table of the parts."""
    from mixent.evaluate.displays.explanation import probability_text

    screen.print(
        f"[bold]Row {case.row}: {named(case.label)}[/], probability {probability_text(case.probability)}, rather than "
        f"{named(case.rival)}"
    )
    table = grid(case.by)
    table.add_column("mostly of class" if case.by == "component" else "value", overflow="fold")
    table.add_column("log-odds\nnats", justify="right")
    table.add_column("evidence")
    most = MOST_PARTS if len(case.parts) > MOST_PARTS + 1 else len(case.parts)  # one alone takes no less room unnamed
    for name, value, size in case.parts[:most]:
        table.add_row(shown(name), shown(value), f"{size:+.3f}", evidence(size))
    rest = case.parts[most:]
    if rest:
        pooled = sum(size for _, _, size in rest)
        table.add_row(count(len(rest), "other"), "", f"{pooled:+.3f}", evidence(pooled))
    table.add_row("[bold]total[/]", "", f"[bold]{case.log_odds:+.3f}[/]", evidence(case.log_odds))
    screen.table(table)
    screen.print()


def evidence(size: float) -> str:
    """Whether a part is evidence for or against the class; blank where it is shown as 0."""
    return "" if abs(size) < 0.0005 else "for" if size > 0 else "against"


def print_lines(screen: Screen, cases: list[Case]) -> None:
    """Print a line for each row: class, probability, rival, and the largest parts."""
    from mixent.evaluate.displays.explanation import probability_text

    table = grid("row", "class", "probability", "rival")
    for place in (1, 3):
        table.columns[place].justify, table.columns[place].no_wrap = "left", False
    table.add_column("largest parts, log-odds in nats", overflow="fold")
    for case in cases[:MOST_LINES]:
        largest = ", ".join(f"{shown(name)} {size:+.2f}" for name, _, size in case.parts[:MOST_LARGEST])
        table.add_row(str(case.row), shown(case.label), probability_text(case.probability), shown(case.rival), largest)
    screen.table(table)
    more = len(cases) - MOST_LINES
    if more > 0:
        screen.print(f"... and {count(more, 'row')} more; write all with -o")
    screen.print("Choose a row with --row to see all its parts.")


def write_cases(screen: Screen, cases: list[Case], path: Path, classes: np.ndarray) -> None:
    """One line for each row and part, or a JSON list of rows, with the same names."""
    if path.name.lower().endswith(".json"):
        write_records(screen, [case.head | {"parts": case.records} for case in cases], path)
        return
    write_records(screen, [case.head | part for case in cases for part in case.records], path, harmless(classes))
