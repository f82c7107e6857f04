"""`mixent predict`: a model and a table in, predictions out; what they are depends on the model's task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, named, session
from mixent.cli.data import IDENTIFIERS, listed, names_of, need_columns, read_as_written, read_table
from mixent.cli.output import STDOUT, check_table_output, harmless, write_table
from mixent.cli.parsing import refuse
from mixent.cli.rows import Rows, read_rows
from mixent.warn import NotesTogether

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator

USES = {  # task -> options that do something for its models
    "classification": ("--costs", "--reject", "--adjust-priors", "--density", "--explain", "--no-proba", "--sequence"),
    "clustering": ("--density", "--no-proba"),
    "density": ("--sequence",),
    "joint": ("--target", "--no-proba"),
    "novelty": ("--explain",),
    "fusion": ("--adjust-priors", "--explain", "--no-proba", "--item"),
}
NEEDS = {"--adjust-priors": "shifted_priors", "--density": "density", "--explain": "explanations"}
MOST_LABELS = 10


@dataclass(frozen=True)
class Wanted:
    """The options of the command."""

    proba: bool
    costs: Path | None
    reject: float | None
    adjust_priors: bool
    density: bool
    explain: bool
    target: str | None
    sequence: str | None
    item: str | None

    @property
    def given(self) -> list[str]:
        """Options that were given, as they are typed."""
        on = {"--costs": self.costs, "--reject": self.reject, "--target": self.target, "--sequence": self.sequence}
        on |= {"--item": self.item}
        given = [name for name, value in on.items() if value is not None]
        flags = {"--adjust-priors": self.adjust_priors, "--density": self.density, "--explain": self.explain}
        return [*given, *(name for name, value in flags.items() if value), *([] if self.proba else ["--no-proba"])]


@opt.reads_table
def predict(
    model: opt.ModelFile,
    data: opt.Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write: .csv, .tsv or .parquet; - prints CSV." + opt.ESCAPED,
            show_default=False,
        ),
    ],
    keep: Annotated[
        list[str],
        typer.Option(
            "--keep",
            metavar="COL",
            help="Input column to copy to the output, or several: A,B. Repeatable. (Default: identifiers.)",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Copy all input columns.")] = False,
    proba: Annotated[bool, typer.Option(help="Write a probability per class.")] = True,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of costs: a row per decision (named in the first column), a column per true class.",
        ),
    ] = None,
    reject: Annotated[
        float | None,
        typer.Option(metavar="COST", help="Cost of not deciding; costlier rows are undecided."),
    ] = None,
    adjust_priors: Annotated[
        bool, typer.Option("--adjust-priors", help="Estimate the class priors of this table first.")
    ] = False,
    density: Annotated[bool, typer.Option("--density", help="Write the log density, low for unusual rows.")] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Write the strongest other class (rival), the log-odds against it in nats, and its largest part (of a "
            "novelty detector: of the score). All parts: mixent explain.",
        ),
    ] = False,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Column that a joint model predicts [its last]."),
    ] = None,
    sequence: opt.Sequence = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column that names the items of a fusion."),
    ] = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Predict classes and probabilities for new rows; with a model of `mixent novelty`, find unusual rows.

    Columns are found by name; new ones are ignored, with a note. Identifiers are copied to the output: columns that
    were called so (or row numbers) at fit, and unused ones of text or whole numbers, different in every row. Missing
    cells and new categories are allowed.

    \b
    Examples:
      mixent predict m.mixent new.csv -o out.parquet --keep id --density
      mixent predict m.mixent new.csv -o out.csv --costs costs.csv --reject 0.2
      mixent predict table.mixent new.csv -o out.csv --target color   (a joint model)
      mixent predict detector.mixent new.csv -o scored.csv --explain   (a model of mixent novelty)
      mixent predict fusion.mixent votes.csv -o out.csv                (a model of mixent fuse)

    A novelty detector writes score (expected log-probability, nats), decision (score less threshold) and outlier
    (decision < 0).

    With --costs or --reject, `predicted` is the most probable class, and `decision` the class whose expected cost is
    lowest, blank where not deciding is cheaper (`rejected`).

    \b
    costs.csv:   predicted,benign,malignant
                 benign,0,10
                 malignant,1,0
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug, to_stderr=output == STDOUT) as screen:
        from mixent import load
        from mixent.base.registry import entry_of

        if reject is not None and not abs(reject) < float("inf"):
            raise typer.BadParameter(f"--reject must be a finite cost; got {reject}")
        check_table_output(output, [model, data])
        fitted = load(model)
        wanted = Wanted(proba, costs, reject, adjust_priors, density, explain, target, sequence, item)
        task = entry_of(fitted).task
        _check_uses(fitted, task, model, wanted)
        refuse((keep_all and sequence is not None, "--keep-all is not used with --sequence; name columns by --keep"))
        with NotesTogether():
            rows, columns, labels = _of_task(screen, fitted, task, data, model, wanted)
            names = list(rows.frame.columns) if keep_all else names_of(keep, rows.frame.columns)
            names = list(dict.fromkeys([*([] if item is None else [item]), *names]))
            if not names and sequence is None:
                names = [name for name in identifiers(rows) if name not in columns]
            rows.note_extra(names)
        kept = _kept(rows, data, output, [*dict.fromkeys([*([sequence] if sequence else []), *names])])
        _write(screen, data, kept, columns, output, labels)
        _print_predicted(screen, fitted, task, columns)
        if output != STDOUT:
            screen.wrote(output)


def _check_uses(fitted: BaseEstimator, task: str, model: Path, wanted: Wanted) -> None:
    """Refuse a model that predicts nothing, and options that its task or its capabilities have no use for."""
    from mixent.base.capabilities import cells_of

    kind = type(fitted).__name__
    if task not in USES:
        raise ValueError(f"{model} holds a {kind}, which predicts nothing by itself; fit a classifier with it")
    cells = cells_of(fitted)
    for option in wanted.given:
        tasks = [name for name, options in USES.items() if option in options]
        cell = cells[NEEDS[option]] if option in NEEDS else None
        note = "" if cell is None or not cell.note else f" ({cell.note})"
        refuse(
            (task not in tasks, f"{option} is only used with models for {', '.join(tasks)}; {model} holds a {kind}"),
            (cell is not None and not cell.able, f"{option} is not used: {model} holds a {kind}, which has none{note}"),
        )


def _of_task(
    screen: Screen, fitted: BaseEstimator, task: str, data: Path, model: Path, wanted: Wanted
) -> tuple[Rows, dict[str, np.ndarray], Iterable[Hashable]]:
    """The table, the columns to write by name, and labels that are written as they are."""
    if task == "fusion":
        from mixent.cli.fuse import predicted

        return predicted(
            screen,
            fitted,
            data,
            item=wanted.item,
            adjust=wanted.adjust_priors,
            proba=wanted.proba,
            explain=wanted.explain,
        )
    target = _column(fitted, wanted.target, model) if task == "joint" else None
    rows = read_rows(fitted, data, model, absent=target, sequence=wanted.sequence)
    if task == "novelty":
        from mixent.cli.novelty import scored

        return rows, scored(fitted, rows.X, explain=wanted.explain), ()
    if task == "density":
        return rows, {"log_density": fitted.score_samples(rows.X, **rows.more)}, ()
    if task == "joint":
        return rows, _values(fitted, rows.X, target, wanted.proba), fitted.values(target)
    if task == "clustering":
        return rows, _components(fitted, rows.X, wanted), ()
    return rows, _classes(screen, fitted, rows, wanted), fitted.classes_


def _classes(screen: Screen, fitted: BaseEstimator, rows: Rows, wanted: Wanted) -> dict[str, np.ndarray]:
    from mixent.base.classifier import least_cost

    if wanted.adjust_priors:
        fitted = fitted.adjust_priors(rows.X, **rows.more)
        print_priors(screen, fitted.classes_, fitted.class_prior_)
    probabilities = fitted.predict_proba(rows.X, **rows.more)
    columns: dict[str, np.ndarray] = {"predicted": fitted.classes_[probabilities.argmax(axis=1)]}
    if wanted.costs is not None or wanted.reject is not None:
        costs = None if wanted.costs is None else _read_costs(wanted.costs, fitted.classes_)
        decision = least_cost(probabilities, fitted.classes_, costs, wanted.reject)
        columns |= {"decision": decision.labels, "expected_cost": decision.expected_cost, "rejected": decision.rejected}
    if wanted.proba:
        columns |= {f"p({label})": probabilities[:, j] for j, label in enumerate(fitted.classes_)}
    if wanted.density:
        columns["log_density"] = fitted.score_samples(rows.X, **rows.more)
    return columns | (_explanation(fitted, rows.X) if wanted.explain else {})


def _explanation(fitted: BaseEstimator, X: pd.DataFrame | np.ndarray) -> dict[str, np.ndarray]:
    import numpy as np

    why = fitted.explain(X)
    columns = {"rival": why.rival, "log_odds": why.log_odds}
    if not why.names:
        return columns
    names = np.array(why.names, dtype=object)
    return columns | {"feature": names[why.parts.argmax(axis=1)], "feature_part": why.parts.max(axis=1)}


def _components(fitted: BaseEstimator, X: pd.DataFrame | np.ndarray, wanted: Wanted) -> dict[str, np.ndarray]:
    probabilities = fitted.predict_proba(X)
    columns = {"component": fitted.predict(X)}  # -1 for noise
    if wanted.proba:
        names = [*range(fitted.n_components_), "noise"]
        columns |= {f"p({name})": values for name, values in zip(names, probabilities.T)}
    return columns | ({"log_density": fitted.score_samples(X)} if wanted.density else {})


def _column(fitted: BaseEstimator, target: str | None, model: Path) -> str:
    """The column a joint model is to predict."""
    names = list(fitted.schema_.names)
    need_columns(model, names, [] if target is None else [target])
    return names[-1] if target is None else target


def _values(
    fitted: BaseEstimator, X: pd.DataFrame | np.ndarray, target: str | None, proba: bool
) -> dict[str, np.ndarray]:
    """The target's most probable (or expected) value, and probabilities of its values."""
    columns = {"predicted": fitted.predict(X, target=target)}
    if proba:
        values = fitted.values(target).tolist()
        names = [f"p({v:.4g})" if isinstance(v, float) else f"p({v})" for v in values]
        columns |= dict(zip(names, fitted.predict_proba(X, target=target).T))
    return columns


def _read_costs(path: Path, classes: np.ndarray) -> np.ndarray:
    """The matrix costs[decision, true class] in the model's order of classes."""
    import numpy as np

    table = read_table(path, is_data=False)
    names = [str(c) for c in classes]
    decisions = [str(value) for value in table.iloc[:, 0]]
    for what, have in (("row", decisions), ("column", list(table.columns[1:]))):
        if sorted(have) != sorted(names):
            raise ValueError(f"{path}: needs one {what} for each class {listed(names)}; has {listed(have)}")
    try:
        values = table[names].to_numpy(dtype=float, na_value=float("nan"))
    except (TypeError, ValueError):
        values = np.full((1, 1), np.nan)
    if not np.isfinite(values).all():
        raise ValueError(f"{path}: every cost must be a finite number")
    return values[[decisions.index(name) for name in names]]


# --- output -----------------------------------------------------------------------------------------------------------


def identifiers(rows: Rows) -> list[str]:
    """Columns that identified the rows at fit, and others: text or whole numbers, none missing, all different."""
    known = rows.about.get(IDENTIFIERS, ())
    others = {name for name in rows.frame.columns if name not in rows.used}
    return [
        name for name in rows.frame.columns if name in known or (name in others and _differs_by_row(rows.frame[name]))
    ]


def _differs_by_row(column: pd.Series) -> bool:
    words_or_counts = column.dtype.kind in "iu" or column.map(type).eq(str).all()
    return bool(words_or_counts and column.notna().all() and column.is_unique)


def _kept(rows: Rows, data: Path, output: Path, names: list[str]) -> pd.DataFrame:
    """Input columns for the output, a line for each row or sequence; from text to text, as they are written."""
    need_columns(data, rows.frame.columns, names)
    cells = None if not names or output.suffix.lower() == ".parquet" else read_as_written(data)
    return (rows.frame if cells is None else cells)[names].iloc[rows.first_steps]


def _write(
    screen: Screen,
    data: Path,
    kept: pd.DataFrame,
    columns: dict[str, np.ndarray],
    output: Path,
    labels: Iterable[Hashable],
) -> None:
    import pandas as pd

    clash = [name for name in columns if name in kept.columns]
    if clash:
        raise ValueError(f"{data} has a column {clash[0]!r} too, as the output has; rename it, or do not keep it")
    frame = pd.concat([kept.reset_index(drop=True), pd.DataFrame(columns)], axis=1)
    write_table(screen, frame, output, harmless(labels))


def print_priors(screen: Screen, classes: np.ndarray, priors: np.ndarray) -> None:
    """Print the class priors of a table."""
    shares = ", ".join(f"{named(c)}: {p:.3f}" for c, p in zip(classes, priors))
    screen.print(f"Class priors of this table: {shares}")


def _print_predicted(screen: Screen, fitted: BaseEstimator, task: str, columns: dict[str, np.ndarray]) -> None:
    if task == "novelty":
        from mixent.cli.novelty import print_scored

        print_scored(screen, fitted, columns)
    else:
        _print_counts(screen, columns)


def _print_counts(screen: Screen, columns: dict[str, np.ndarray]) -> None:
    """How often each class was predicted, or the range of numbers."""
    name, values = next(iter(columns.items()))
    n_rows = count(len(values), "row")
    if "rejected" in columns:
        values = columns["decision"][~columns["rejected"]]
    if values.dtype.kind == "f":
        screen.print(f"{n_rows}; {name}: {values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}")
        return
    tally: dict[Hashable, int] = {}
    for value in values.tolist():
        tally[value] = tally.get(value, 0) + 1
    most = sorted(tally.items(), key=lambda item: -item[1])
    text = (lambda k: f"in component {k}" if k >= 0 else "noise") if name == "component" else named
    counts = [f"{n} {text(label)}" for label, n in most[:MOST_LABELS]] + ["..."] * (len(most) > MOST_LABELS)
    if "rejected" in columns:
        counts.append(f"{int(columns['rejected'].sum())} undecided")
    screen.print(f"{n_rows}: {', '.join(counts)}")
    if "rejected" in columns:
        screen.print(f"Expected cost per row {columns['expected_cost'].mean():.3g}")
