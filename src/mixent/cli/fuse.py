"""`mixent fuse`: answers of several sources to the same items in, posteriors of the items out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.answers import as_objects, check_labels, need_sources, of_items, read_answers, read_wide, worded
from mixent.cli.calibrate import without_sources
from mixent.cli.console import Screen, session, shown
from mixent.cli.data import listed, names_of, need_columns, read_table, weight_column
from mixent.cli.folder import prepare_folder, result_name, tables_in
from mixent.cli.output import PAGE, STDOUT, check_output, check_table_output, harmless, write_table
from mixent.cli.parsing import by_class, column_names, long_columns, one_of, refuse, share, shares_of
from mixent.cli.predict import print_priors
from mixent.cli.rows import Rows
from mixent.cli.settings import model_for

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator

    from mixent.fusion import Calibration
    from mixent.fusion.answers import LongAnswers
    from mixent.fusion.decisions import Decisions

CONTRADICTION = 3  # exit status: everything is written, but a source contradicts the others
MANY_LABELS = 50  # different answers of a column of which nothing is known


@dataclass(frozen=True)
class Answers:
    """A table of answers, as a fusion takes them."""

    answers: pd.DataFrame | LongAnswers
    items: np.ndarray | None  # (n,) names
    item_column: str  # of the output
    y: np.ndarray | None = None
    weight: np.ndarray | None = None
    notes: tuple[str, ...] = ()


@opt.reads_table
def fuse(
    ctx: typer.Context,
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
    calibration: Annotated[
        Path | None,
        typer.Option(
            "--calibration",
            "-c",
            metavar="FILE",
            help="Calibrations of the sources, written by `mixent calibrate` or by hand: .json. Without it, all "
            "sources are assumed to be more often right than wrong.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="auto; ml-product (independent sources), discounted or pool (with trust weights), min-divergence, "
            "composite, dawid-skene (learned anew); majority, sum, product, trimmed-mean, ml-sum to compare.",
        ),
    ] = "auto",
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Without --calibration: the classes, as healthy,ill (default: all answers); other answers are "
            "unknown.",
        ),
    ] = None,
    unknown: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Unforeseen answers: ignore (with a warning), symbol (learned from this table) or error.",
        ),
    ] = "ignore",
    long: opt.Long = None,
    item: opt.Item = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column of the classes of those items whose class is known; blank elsewhere."),
    ] = None,
    class_prior: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Class priors to start from, and to test against: training (default), uniform, or shares as "
            "healthy=0.9,ill=0.1.",
        ),
    ] = None,
    weight: opt.Weight = None,
    ignore: Annotated[list[str], opt.LEFT_OUT] = [],  # noqa: B006
    confidence: Annotated[float, typer.Option(metavar="SHARE", help="Of the intervals and the alarms.")] = 0.95,
    report: opt.Report = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the fusion as a model, for `mixent predict`.")
    ] = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Combine the answers of several sources to the same items, without common labels, at unknown class priors.

    A wide table has a column for each source (columns NAME:CLASS where it gives probabilities), a long one a row for
    each answer. A blank is no answer. The output has a line for each item: the class, a probability of each class, the
    answer of the majority, and whether that is another class.

    If DATA is a folder of tables, so is OUTPUT. The exit code is 3 if a source contradicts the others; all is written.

    \b
    Examples:
      mixent fuse votes.csv --calibration vendors.json -o fused.csv --report fused.html
      mixent fuse votes.parquet -c vendors.json -o fused.parquet --item case --save fusion.mixent
      mixent fuse crowd.csv -o fused.csv --long item,worker,answer
      mixent fuse crowd.csv -o fused.csv --item case --classes healthy,ill --unknown symbol
      mixent fuse days -c vendors.json -o fused_days --item case
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug, to_stderr=output == STDOUT) as screen:
        from mixent.fusion.answers import UNKNOWN
        from mixent.fusion.decisions import decisions
        from mixent.fusion.methods import METHODS

        one_of("--method", method, tuple(METHODS))
        one_of("--unknown", unknown, UNKNOWN)
        share("--confidence", confidence)
        columns = None if long is None else long_columns(long)
        refuse(
            (bool(columns and item), "--item is not used with --long, which names the column of the items"),
            (bool(classes and calibration), "--classes is not used with --calibration, which names the classes"),
        )
        tables = tables_in(data) if data.is_dir() else []
        refuse((bool(tables) and calibration is None, "a folder of tables needs --calibration"))
        _check_outputs(output, report, save, [data, *([calibration] if calibration else [])], tables)
        roles = [name for name in (item, labels, weight) if name is not None]
        if classes is not None:
            sources: dict[str, Calibration] | None = _guessed(data, classes, columns, roles, ignore)
        else:
            sources = None if calibration is None else _sources(calibration, ignore)

        def read(path: Path) -> Answers:
            return _read(path, sources, columns, item, labels, weight, ignore)

        table = read(tables[0] if tables else data)
        prior = _class_prior(class_prior or (None if classes is None else "uniform"), sources)
        fuser = model_for("fusion").cls(
            sources, method=method, class_prior=prior, confidence=confidence, unknown=unknown
        )
        _fit(fuser, map(read, tables) if tables else table, labels)
        if sources is None:
            table = replace(table, notes=(*table.notes, _assumed_classes(fuser.classes_)))
        screen.print(f"[bold]{shown(data)}[/]: {shown('; '.join([_size(fuser), *table.notes]))}")
        if tables:
            for path in tables:
                part = read(path)
                _write(screen, fuser, part, output / result_name(path), decisions(fuser, part.answers, part.y))
        else:
            _write(screen, fuser, table, output, decisions(fuser))
        _describe(screen, fuser)
        if output != STDOUT:
            screen.wrote(output)
        _keep(screen, fuser, table, report, save, data, ctx.obj or "")
        if fuser.faults_:
            raise typer.Exit(CONTRADICTION)


def _check_outputs(
    output: Path, report: Path | None, save: Path | None, inputs: Sequence[Path], tables: Sequence[Path]
) -> None:
    if tables:
        prepare_folder(output, tables)
    else:
        check_table_output(output, inputs)
    check_output(report, [*inputs, output], PAGE)
    check_output(save, [*inputs, output])


def _sources(path: Path, ignore: Sequence[str]) -> dict[str, Calibration]:
    """Calibrations by name, without those to be ignored."""
    from mixent.fusion import load_calibrations

    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}; make it by `mixent calibrate`")
    known = load_calibrations(path)
    left = {name: source for name, source in known.items() if name not in names_of(ignore, known)}
    if not left:
        raise ValueError(f"{path}: no source is left; ignore fewer")
    for name, source in left.items():
        original = source.copy_of
        if original is not None and original not in left and original in known:
            raise ValueError(f"{original!r} (--ignore) is the original of {name!r}; ignore {name!r} too, or neither")
    return left


def _guessed(
    path: Path, classes: str, columns: Sequence[str] | None, roles: Sequence[str], ignore: Sequence[str]
) -> dict[str, Calibration]:
    """Calibrations without rows for all sources of a table."""
    from mixent.fusion import Calibration

    labels = column_names(classes)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise typer.BadParameter(f"--classes must be two or more different classes, as healthy,ill; got {classes!r}")
    frame = read_table(path)
    need_columns(path, frame.columns, columns or ())
    names = list(frame.columns) if columns is None else list(dict.fromkeys(frame[columns[1]].dropna().astype(str)))
    left = [name for name in names if name not in {*names_of(ignore, names), *(roles if columns is None else ())}]
    if not left:
        raise ValueError(f"{path}: no column is left to fuse; a source needs one")
    return {name: Calibration.guess(labels) for name in left}


def _assumed_classes(classes: np.ndarray) -> str:
    """Which answers were taken for classes, as a note."""
    from mixent.fusion.reading import ordered_integers

    labels = classes.tolist()
    scores = "; scores need --calibration" if len(labels) > 3 and ordered_integers(labels, ()) else ""
    return f"the classes are the answers {listed(labels)} (--classes, if they are others{scores})"


def _classes(sources: Mapping[str, Calibration]) -> list[Hashable]:
    from mixent.fusion.sources import Layout

    return Layout.of(sources).classes.tolist()


def _in_words(sources: Mapping[str, Calibration] | None) -> bool:
    """Are the classes words?"""
    return sources is not None and isinstance(_classes(sources)[0], str)


def _class_prior(text: str | None, sources: Mapping[str, Calibration] | None) -> str | dict[Hashable, float]:
    if text is None or text.lower() in ("training", "uniform"):
        return (text or "training").lower()
    shares = shares_of("--class-prior", text)
    if sources is None:
        raise typer.BadParameter("--class-prior needs --calibration or --classes to know the classes; or take uniform")
    classes = _classes(sources)
    return dict(zip(classes, by_class("--class-prior", shares, classes)))


def _read(
    path: Path,
    sources: dict[str, Calibration] | None,
    columns: Sequence[str] | None,
    item: str | None,
    labels: str | None,
    weight: str | None,
    ignore: Sequence[str],
) -> Answers:
    """A wide table, or a long one of these columns."""
    if columns is None:
        return _read_wide(path, sources, item, labels, weight, ignore)
    return _read_long(path, sources, columns, labels, weight, ignore)


def _read_wide(
    path: Path,
    sources: dict[str, Calibration] | None,
    item: str | None,
    labels: str | None,
    weight: str | None,
    ignore: Sequence[str],
) -> Answers:
    named = [name for name in (item, labels if _in_words(sources) else None) if name is not None]
    frame = read_wide(path, sources or {}, named)
    others = [name for name in (item, labels, weight) if name is not None]
    ignored = [name for name in names_of(ignore, frame.columns) if name in frame.columns or sources is None]
    need_columns(path, frame.columns, [*others, *ignored])
    _refuse_twice(others, sources)
    notes: tuple[str, ...] = ()
    if sources is None:
        names = [name for name in frame.columns if name not in [*others, *ignored]]
        _check_guesses(path, frame, names)
        answers = frame[names]
    else:
        need_sources(path, list(frame.columns), sources, "; a source that is not in the table is left out by --ignore")
        answers = frame
        notes = _unused(frame.columns, [*others, *ignored], sources)
    items = None if item is None else as_objects(frame[item])
    y = None if labels is None else as_objects(frame[labels])
    weights = None if weight is None else weight_column(frame[weight], weight)
    if items is not None:
        answers = answers.set_axis(items)  # names of the items on the page
    return Answers(answers, items, item or "row", y, weights, notes)


def _refuse_twice(others: Sequence[str], sources: Mapping[str, Calibration] | None) -> None:
    for name in others:
        if name in (sources or ()):
            raise ValueError(f"{name!r} is a source, and cannot be given to --item, --labels or --weight")


def _unused(columns: Sequence[str], known: Sequence[str], sources: Mapping[str, Calibration]) -> tuple[str, ...]:
    """Columns that belong to no source, in a sentence."""
    mine = {*known, *sources_columns(columns, sources)}
    left = [name for name in columns if name not in mine]
    return (f"columns of no source: {listed(left)}",) if left else ()


def sources_columns(columns: Iterable[str], sources: Iterable[str]) -> list[str]:
    """The columns of some sources: NAME, NAME:CLASS and NAME@CELL."""
    known = set(sources)
    return [c for c in columns if c in known or any(sign in c and c.rsplit(sign, 1)[0] in known for sign in ":@")]


def _check_guesses(path: Path, frame: pd.DataFrame, names: Sequence[str]) -> None:
    if not names:
        raise ValueError(f"{path}: no column is left to fuse; a source needs one")
    for name in names:
        check_labels(frame[name], name)
        different = int(frame[name].nunique())
        if different > MANY_LABELS:
            raise ValueError(
                f"column {name!r} holds {different} different values: without --calibration only labels can be fused; "
                f"leave it out by --ignore {name}"
            )


def _read_long(
    path: Path,
    sources: dict[str, Calibration] | None,
    columns: Sequence[str],
    labels: str | None,
    weight: str | None,
    ignore: Sequence[str],
) -> Answers:
    from mixent.fusion import long_answers

    item, source, value, *probability = columns
    words = [value] * bool(worded(sources or {})) + [str(labels)] * bool(labels and _in_words(sources))
    frame = read_table(path, [item, source, *words])
    others = [name for name in (labels, weight) if name is not None]
    need_columns(path, frame.columns, [*columns, *others])
    there = set(frame[source].unique())
    frame = without_sources(path, frame, source, [n for n in names_of(ignore, there) if n in there or sources is None])
    answers = long_answers(frame, item=item, source=source, value=value, probability=next(iter(probability), None))
    y = None if labels is None else as_objects(of_items(frame, item, labels, "--labels"))
    weights = None if weight is None else weight_column(of_items(frame, item, weight, "--weight"), weight)
    return Answers(answers, answers.items, item, y, weights)


def _fit(fuser: BaseEstimator, table: Answers | Iterable[Answers], labels: str | None) -> None:
    """Fit to one table, or to several, of which only one is in memory at a time."""
    try:
        if isinstance(table, Answers):
            fuser.fit(table.answers, table.y, sample_weight=table.weight)
        else:
            fuser.fit_blocks((part.answers, part.y, part.weight) for part in table)
    except ValueError as error:
        if labels is None or "y " not in str(error):
            raise
        raise ValueError(f"column {labels!r} (--labels): {error}") from error


def _size(fuser: BaseEstimator) -> str:
    return f"{count(fuser.n_items_, 'item')}, {count(fuser._fitted_layout.n_sources, 'source')}"


def _columns(fuser: BaseEstimator, posterior: np.ndarray) -> dict[str, np.ndarray]:
    """Output columns by name: the class, and a probability of each."""
    labels = fuser.classes_.astype(object)
    columns = {"predicted": labels[posterior.argmax(axis=1)]}
    return columns | {f"p({label})": posterior[:, k] for k, label in enumerate(fuser.classes_.tolist())}


def _write(screen: Screen, fuser: BaseEstimator, table: Answers, output: Path, made: Decisions) -> None:
    """Write the line of every item."""
    import numpy as np
    import pandas as pd

    posterior = made.batch.items(made.posterior)
    rows = np.arange(len(posterior)) if table.items is None else table.items
    names = np.array([*fuser.classes_.tolist(), None], dtype=object)  # the last: no majority
    columns = _columns(fuser, posterior)
    columns |= {"majority": made.batch.items(names[made.majority]), "changed": made.batch.items(made.changed)}
    if table.item_column in columns:
        raise ValueError(f"the column of the items is called {table.item_column!r}, as one of the output is; rename it")
    frame = pd.DataFrame({table.item_column: rows} | columns)
    write_table(screen, frame, output, harmless(fuser.classes_))


def _describe(screen: Screen, fuser: BaseEstimator) -> None:
    document = fuser.summary()
    screen.print()
    screen.text(document.text(screen.width))
    screen.print()


def _keep(
    screen: Screen,
    fuser: BaseEstimator,
    table: Answers,
    report: Path | None,
    model: Path | None,
    data: Path,
    commands: str,
) -> None:
    if model is not None:
        from mixent import save

        save(fuser, model)
        screen.wrote(model, f" ({model.stat().st_size / 1000:.0f} kB)")
    if report is not None:
        from mixent.report import model_report

        notes = [f"{note[0].upper()}{note[1:]}" for note in table.notes]
        title = f"Fusion of {data.name}"
        answers = None if data.is_dir() else table.answers  # `table` is the first one of a folder
        model_report(report, fuser, answers, title=title, data_notes=notes, commands=commands)
        screen.wrote(report, "; open it in a browser")


# --- `mixent predict` -------------------------------------------------------------------------------------------------


def predicted(
    screen: Screen,
    fitted: BaseEstimator,
    data: Path,
    *,
    item: str | None = None,
    adjust: bool,
    proba: bool,
    explain: bool,
) -> tuple[Rows, dict[str, np.ndarray], np.ndarray]:
    """The table, the columns to write by name, and the classes."""
    frame = read_answers(fitted, data)
    if item is not None:
        need_columns(data, frame.columns, [item])
        _refuse_twice([item], dict(zip(fitted._fitted_layout.names, fitted._fitted_layout.calibrations)))
    if adjust:
        fitted.update_prior(frame)
        print_priors(screen, fitted.classes_, fitted.prior_)
    columns = _columns(fitted, fitted.predict_proba(frame))
    if not proba:
        columns = {"predicted": columns["predicted"]}
    used = sources_columns(frame.columns, fitted._fitted_layout.names)
    return Rows(frame, frame, used), columns | (_largest_part(fitted, frame) if explain else {}), fitted.classes_


def _largest_part(fitted: BaseEstimator, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """The strongest other class, the log-odds against it, and the source with the largest part for the class."""
    import numpy as np

    parts = fitted.explain(frame)  # (n, J + 1, K)
    order = np.argsort(-parts.sum(axis=1), axis=1, kind="stable")
    row = np.arange(len(parts))
    odds = parts[row, :, order[:, 0]] - parts[row, :, order[:, 1]]  # (n, J + 1)
    names = np.array([*fitted._fitted_layout.names, "priors"], dtype=object)
    largest = odds.argmax(axis=1)
    rivals = fitted.classes_.astype(object)[order[:, 1]]
    return {
        "rival": rivals,
        "log_odds": odds.sum(axis=1),
        "source": names[largest],
        "source_part": odds[row, largest],
    }
