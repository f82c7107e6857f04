"""`mixent novelty`: a table of typical rows in, a detector of others out; scores of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, session, shown
from mixent.cli.data import Roles
from mixent.cli.fit import fit_model
from mixent.cli.output import PAGE, check_output
from mixent.cli.settings import model_for

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator

MOST_PARTS = 15


@opt.reads_table
def novelty(
    ctx: typer.Context,
    data: opt.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Column of class labels, which is left out."),
    ] = None,
    settings: opt.Set = [],  # noqa: B006
    report: opt.Report = None,
    ignore: opt.Ignore = [],  # noqa: B006
    categorical: opt.Categorical = [],  # noqa: B006
    weight: opt.Weight = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fit a detector of unusual rows to a table of typical ones.

    No class is needed: name a column of classes by --target, and it is left out. Rows may have missing values. `mixent
    predict` scores new rows: a low score means that a row is unlike the training rows, and below the threshold it is
    called an outlier. `mixent explain` shows which columns lower the score. `mixent models novelty` lists the
    parameters.

    \b
    Examples:
      mixent novelty normal.csv -o detector.mixent
      mixent novelty normal.csv -o detector.mixent --target class --set density=mixture --report page.html
      mixent predict detector.mixent new.csv -o scored.csv
      mixent explain detector.mixent new.csv --row 0
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        check_output(report, [data, output], PAGE)
        ignore = [*ignore, *([] if target is None else [target])]
        name, roles = model_for("novelty").name, Roles(None, ignore, categorical, weight)
        estimator, table = fit_model(screen, data, output, name, settings, roles, seed=seed, jobs=jobs)
        if report is not None:
            from mixent.report import model_report

            title, commands = f"Novelty in {data.name}", ctx.obj or ""
            model_report(report, estimator, table.X, title=title, data_notes=table.notes, commands=commands)
            screen.wrote(report, "; open it in a browser")


# --- new rows ---------------------------------------------------------------------------------------------------------


def scored(fitted: BaseEstimator, X: pd.DataFrame | np.ndarray, *, explain: bool) -> dict[str, np.ndarray]:
    """Output columns by name."""
    import numpy as np

    score, decision = fitted.score_samples(X), fitted.decision_function(X)
    columns = {"score": score, "decision": decision, "outlier": decision < 0}
    if explain:
        parts = fitted.contributions(X)
        names = np.array(_column_names(fitted, X), dtype=object)
        columns |= {"feature": names[parts.argmin(axis=1)], "feature_part": parts.min(axis=1)}
    return columns


def _column_names(fitted: BaseEstimator, X: Any) -> list[str]:
    from mixent.base.registry import entry_of

    schema = entry_of(fitted).columns(fitted)
    return list(X.columns if schema is None else schema.input_names)


def print_scored(screen: Screen, fitted: BaseEstimator, columns: dict[str, np.ndarray]) -> None:
    """Print how many rows are outliers."""
    score, n_outliers = columns["score"], int(columns["outlier"].sum())
    screen.print(
        f"{count(len(score), 'row')}; {count(n_outliers, 'outlier')} (score below {fitted.offset_:.4g}); "
        f"scores {score.min():.4g} to {score.max():.4g}, mean {score.mean():.4g}"
    )


def explain_scores(
    screen: Screen, fitted: BaseEstimator, X: pd.DataFrame | np.ndarray, rows: list[int], in_full: bool
) -> list[dict[str, Any]]:
    """Print what each column adds to the scores of rows; returns one record for each row and column."""
    from mixent.base.text import row_texts

    columns, parts, values = scored(fitted, X, explain=False), fitted.contributions(X), row_texts(X)
    names = _column_names(fitted, X)
    if not in_full:
        print_scored(screen, fitted, columns)
        screen.print("Choose a row with --row to see what each column adds, or write all with -o.")
    records: list[dict[str, Any]] = []
    for i, n in enumerate(rows):
        head = {"row": n, "score": float(columns["score"][i]), "outlier": bool(columns["outlier"][i])}
        order = parts[i].argsort(kind="stable")
        mine = [{"column": names[j], "value": values[i][j], "part": float(parts[i, j])} for j in order]
        records += [head | part for part in mine]
        if in_full:
            _print_row(screen, head, float(columns["decision"][i]), mine)
    return records


def _print_row(screen: Screen, head: dict[str, Any], decision: float, parts: list[dict[str, Any]]) -> None:
    kind, side = ("an outlier", "below") if head["outlier"] else ("typical", "above")
    distance = f"{abs(decision):.3f} nats {side} the threshold"
    screen.print(f"[bold]Row {head['row']}: {kind}[/], score {head['score']:.3f}, {distance}")
    table = grid("column", "adds\nnats")
    table.add_column("value", overflow="fold")
    for part in parts[:MOST_PARTS]:
        table.add_row(shown(part["column"]), f"{part['part']:+.3f}", shown(part["value"]))
    if len(parts) > MOST_PARTS:
        table.add_row(count(len(parts) - MOST_PARTS, "other"), "", "")
    screen.table(table)
    screen.print()
