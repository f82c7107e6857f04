"""`mixent update`: a model is updated with new rows, without the old ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import session, shown
from mixent.cli.data import listed, weights_in
from mixent.cli.output import check_output
from mixent.cli.parsing import read_settings, refuse
from mixent.cli.rows import Rows, class_labels, read_rows
from mixent.cli.settings import apply_settings

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator


@opt.reads_table
def update(
    model: opt.ModelFile,
    data: opt.Data,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Column of class labels; not for clusters."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Model file to write (default: MODEL itself)."),
    ] = None,
    settings: opt.Set = [],  # noqa: B006
    weight: opt.Weight = None,
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="Add labels that are not classes of the model as new classes.")
    ] = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Update a model with new rows, without the rows it was fitted to.

    Columns, classes, components and structures stay as they are; the parameters move with the new rows. With
    `--new-classes`, a class that is new in these rows is added, with a component of its own. `--set` holds for this
    update only. For mixtures that were trained by likelihood.

    \b
    Examples:
      mixent update iris.mixent new.csv --target species
      mixent update iris.mixent more.csv --target species --new-classes
      mixent update m.mixent week2.csv -t class -o m2.mixent --set forgetting=0.1
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load
        from mixent.base.registry import entry_of
        from mixent.persistence.files import save_with

        check_output(output, [data])
        fitted = load(model)
        entry = entry_of(fitted)
        _check_updates(fitted, entry.task, model, target, new_classes)
        rows = read_rows(fitted, data, model, target=target)
        rows.note_extra([weight])
        weights = weights_in(rows.frame, data, weight)
        y, new = None, list[Any]()
        if target is not None:
            y, new = _labels(rows, data, target, fitted.classes_.tolist(), model, new_classes)
        _update(fitted, entry.name, read_settings(settings), rows, y, weights, new)
        save_with(fitted, output or model, rows.about)
        screen.print(f"Updated with {count(len(rows.frame), 'row')} of [bold]{shown(data)}[/]")
        if new:
            screen.print(f"New {'class' if len(new) == 1 else 'classes'}: {listed([str(label) for label in new])}")
        screen.print()
        screen.text(entry.describe(fitted).text(screen.width))
        screen.print()
        screen.wrote(output or model)


def _check_updates(fitted: BaseEstimator, task: str, model: Path, target: str | None, new_classes: bool) -> None:
    """Refuse a model that cannot be updated, and a target that is missing or has no use."""
    from mixent.base.capabilities import cells_of

    cell = cells_of(fitted)["batches"]
    if task == "fusion":
        raise ValueError(f"{model} holds a fusion; fuse the new items together with the old ones: mixent fuse")
    if not cell.able:
        only = f" (only {cell.note})" if cell.note else ""
        what = f"{model} holds a {type(fitted).__name__}, which cannot be updated with new rows"
        raise ValueError(f"{what}{only}; fit it again on all rows")
    classifier = task == "classification"
    refuse(
        (new_classes and not classifier, f"--new-classes is only used with classifiers; {model} holds clusters"),
        (classifier and target is None, f"--target is needed: {model} holds a classifier"),
        (not classifier and target is not None, f"--target is only used with classifiers; {model} holds clusters"),
    )


def _labels(
    rows: Rows, data: Path, target: str, classes: list[Any], model: Path, new_classes: bool
) -> tuple[pd.Series, list[Any]]:
    """The column of labels, and the new classes in it, which are only allowed with `--new-classes`."""
    from mixent.data import classes_of, labelled_rows, split_target

    if not new_classes:
        hint = "add it with --new-classes"
        return class_labels(rows.frame, data, target, classes, model, hint), []
    y = split_target(rows.frame, target)[1]
    present = classes_of(y).tolist() if labelled_rows(y).any() else []
    return y, [label for label in present if label not in classes]


def _update(
    fitted: BaseEstimator,
    name: str,
    settings: dict[str, Any],
    rows: Rows,
    y: pd.Series | None,
    weights: np.ndarray | None,
    new: list[Any],
) -> None:
    """Update the model; the settings hold for this time only."""
    from sklearn.base import clone

    before = clone(fitted).get_params(deep=False)
    apply_settings(fitted, name, settings)
    announced = {"classes": [*fitted.classes_.tolist(), *new]} if new else {}
    fitted.partial_fit(rows.X, y, sample_weight=weights, **announced)
    fitted.set_params(**before)
