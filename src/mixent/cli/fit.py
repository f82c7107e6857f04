"""`mixent fit`: a table in, a model file out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixent.base.text import count, percent
from mixent.cli import options as opt
from mixent.cli.console import Screen, session, shown
from mixent.cli.data import Data, Roles, read_data
from mixent.cli.output import check_output
from mixent.cli.parsing import read_settings, refuse
from mixent.cli.settings import (
    DEFAULTS,
    KINDS,
    check_can_save,
    check_columns,
    make_estimator,
    model_entry,
    models,
    set_common,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from mixent.base.registry import Entry


@opt.reads_table
def fit(
    data: opt.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Column of class labels; without it, clusters are fitted."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Model to fit; `mixent models` lists them (default: {DEFAULTS[True]}; without --target "
            f"{DEFAULTS[False]}).",
        ),
    ] = None,
    settings: opt.Set = [],  # noqa: B006  (typer reads it, nobody writes it)
    sequence: opt.Sequence = None,
    ignore: opt.Ignore = [],  # noqa: B006
    categorical: opt.Categorical = [],  # noqa: B006
    weight: opt.Weight = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Keep a checkpoint in FILE.checkpoint while fitting, and resume from it."),
    ] = False,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fit a model to a table and save it.

    Text columns are categories. Empty cells, ? and markers such as NA, N/A, None and NULL are missing values in every
    column and need no filling in; rows where the target is missing have no label, and the output states what the model
    does with them.

    \b
    Examples:
      mixent fit iris.csv --target species -o iris.mixent
      mixent fit data.csv -t class -o m.mixent --ignore id --categorical zip
      mixent fit data.csv -t class -o m.mixent --set n_components=1 --set covariance=VVV   (QDA)
      mixent fit data.csv -t class -o m.mixent --model med-tree --set tables=integrated
      mixent fit data.csv -t class -o m.mixent --model med-bayes-net --set "structure=age,dose;sex,dose"
      mixent fit data.csv -t class -o m.mixent --model stack --set estimators=mixture,med --set med.C=2
      mixent fit steps.csv -t class -o m.mixent --model hmm --sequence id   (a step of a sequence per row)
      mixent fit data.csv -o clusters.mixent                                (no target: clusters)
      mixent fit data.csv -o table.mixent --model joint                     (any column from the others)
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        name = model or DEFAULTS[target is not None]
        _check_target(model_entry(name), target)
        roles = Roles(target, ignore, categorical, weight, sequence)
        fit_model(screen, data, output, name, settings, roles, seed=seed, jobs=jobs, resume=resume)


def _check_target(entry: Entry, target: str | None) -> None:
    only = f"--target is only used with classifiers; {entry.name} is {KINDS[entry.task]}"
    hint = ": give --target to `mixent predict`, for any column" if entry.task == "joint" else ""
    refuse(
        (entry.task == "fusion", f"--model {entry.name} is fitted by `mixent fuse`"),
        (entry.task == "classification" and target is None, f"--model {entry.name} is a classifier and needs --target"),
        (entry.task != "classification" and target is not None, only + hint),
    )


def fit_model(
    screen: Screen,
    data: Path,
    output: Path,
    name: str,
    settings: Sequence[str],
    roles: Roles,
    *,
    seed: int,
    jobs: int | None,
    resume: bool = False,
) -> tuple[BaseEstimator, Data]:
    """Fit the model of this name, save and describe it; returns it with its table."""
    from mixent.persistence.files import save_with

    given = read_settings(settings)
    estimator = make_estimator(name, given, {"random_state": seed, "n_jobs": jobs})
    check_use(name, estimator, weight=roles.weight, sequence=roles.sequence)
    check_can_save(estimator)
    check_output(output, [data])
    checkpoint = _checkpoint(screen, name, estimator, output) if resume else None
    table = read_data(data, roles, screen=screen, named=words_in(given))
    check_columns(estimator, name, table.X.columns)
    if table.categorical:
        set_common(estimator, {"categorical": table.categorical})
    if table.groups is not None:
        screen.print(f"{count(len(set(table.groups)), 'sequence')}: rows with the same {shown(roles.sequence)}")
    if note := absent_labels(table, roles.target, estimator):
        screen.warn(note)
    try:
        seconds = fit_with_bar(screen, estimator, table)
    except KeyboardInterrupt:
        if checkpoint is not None:
            screen.print(f"The state of the fit is in {shown(checkpoint)}: run the same command again to resume")
        raise
    save_with(estimator, output, table.about, foreign="skops")
    screen.print(f"Fitted in {seconds:.1f} s")
    _print_fitted(screen, model_entry(name), estimator, table)
    screen.wrote(output, f" ({output.stat().st_size / 1000:.0f} kB)")
    return estimator, table


def _checkpoint(screen: Screen, name: str, estimator: BaseEstimator, output: Path) -> Path:
    """Let the estimator keep a checkpoint beside the model file; the name of the checkpoint."""
    having = [other for other, entry in models().items() if "checkpoint" in entry.make().get_params(deep=False)]
    refuse((name not in having, f"--resume is only used with {', '.join(having)}; got --model {name}"))
    path = output.with_name(f"{output.name}.checkpoint")
    estimator.set_params(checkpoint=path)
    if path.exists():
        screen.print(f"Resuming from {shown(path)}")
    return path


def words_in(value: object) -> Iterator[str]:
    """All words inside settings: some may be names of columns."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from words_in(item)


def check_use(name: str, estimator: BaseEstimator, *, weight: str | None, sequence: str | None) -> None:
    """Refuse options that the model has no use for."""
    from sklearn.utils.validation import has_fit_parameter

    from mixent.base.capabilities import cells_of

    sequences = [other for other, entry in models().items() if has_fit_parameter(entry.cls, "groups")]
    refuse(
        (weight is not None and not cells_of(estimator)["weights"].able, f"--weight is not used: {name} takes none"),
        (
            sequence is not None and name not in sequences,
            f"--sequence is only used with models of sequences ({', '.join(sequences)}); got --model {name}",
        ),
    )


def absent_labels(table: Data, target: str | None, estimator: BaseEstimator) -> str | None:
    """What is done with rows without a label, where there are any."""
    from mixent.base.capabilities import LEFT_OUT, cells_of
    from mixent.data import read_labels

    if table.y is None or not (n_absent := read_labels(table.y, len(table.y)).n_absent):
        return None
    cell = cells_of(estimator)["absent_labels"]
    note = (cell.note or "they are used") if cell.able else LEFT_OUT.note
    return f"{n_absent} of {count(len(table.y), 'row')} have no label in {target!r}: {note}"


def fit_with_bar(screen: Screen, estimator: BaseEstimator, table: Data) -> float:
    """Fit under a progress bar; the seconds it took."""
    began = time.perf_counter()
    table = _usable(estimator, table)
    given = {"y": table.y, "sample_weight": table.weight, "groups": table.groups}
    shows = "progress" in estimator.get_params(deep=False)
    with screen.progress("fitting") as show:
        if shows:
            estimator.set_params(progress=show)
        estimator.fit(table.X, **{name: value for name, value in given.items() if value is not None})
    if shows:
        estimator.set_params(progress=False)  # a model file holds no screens
    return time.perf_counter() - began


def _usable(estimator: BaseEstimator, table: Data) -> Data:
    """Without the rows that have no label, where the model cannot take them."""
    from mixent.base.capabilities import cells_of
    from mixent.data.labels import labelled_rows

    if table.y is None or cells_of(estimator)["absent_labels"].able:
        return table
    known = labelled_rows(table.y)
    steps = table.of_steps(known)
    groups = None if table.groups is None else table.groups[steps]
    weight = None if table.weight is None else table.weight[known]
    return replace(table, X=table.X[steps], y=table.y[known], weight=weight, groups=groups)


def _print_fitted(screen: Screen, entry: Entry, estimator: BaseEstimator, table: Data) -> None:
    """The model, and how it does on the rows it was fitted to."""
    screen.print()
    screen.text(entry.describe(estimator).text(screen.width))
    screen.print()
    _print_training_rows(screen, entry, estimator, table)


def _print_training_rows(screen: Screen, entry: Entry, estimator: BaseEstimator, table: Data) -> None:
    """Scores of a classifier, or what another model shows of the rows it was fitted to."""
    if entry.task == "classification":
        _print_scores(screen, estimator, table)
        return
    blocks = [] if table.groups is not None else entry.on_rows(estimator, table.X, None)
    texts = [text for block in blocks if (text := "\n".join(block.lines(screen.width)))]
    if texts:
        screen.text("\n\n".join(["On the training rows\n--------------------", *texts]))
        screen.print()


def _print_scores(screen: Screen, estimator: BaseEstimator, table: Data) -> None:
    from mixent.data.labels import labelled_rows
    from mixent.evaluate import score_table
    from mixent.warn import DataWarning

    assert table.y is not None
    known = labelled_rows(table.y)
    more = {} if table.groups is None else {"groups": table.groups}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # shown when the model was fitted
        proba = estimator.predict_proba(table.X, **more)[known]
    weight = None if table.weight is None else table.weight[known]
    if weight is not None and not weight.sum() > 0:
        return
    score = score_table(table.y[known], proba, estimator.classes_, weight)
    screen.print(
        f"On the training rows: log-loss {score['log_loss']:.3f} nats, error {percent(score['error'], 1)} (optimistic; "
        "`mixent compare` scores rows that were held out)"
    )
