"""`mixent calibrate`: answers of sources to rows whose class is known in, their calibrations out."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.answers import (
    ALL,
    FEW_ROWS,
    Forms,
    Given,
    as_objects,
    as_text,
    column_given,
    looks_labelled,
    of_items,
    wide_sources,
)
from mixent.cli.console import Screen, current_screen, grid, session, shown
from mixent.cli.data import listed, names_of, need_columns, read_table
from mixent.cli.output import check_output
from mixent.cli.parsing import by_class, column_names, long_columns, names_in, refuse, shares_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from mixent.fusion import Calibration

MOST_ROWS, MOST_CLASSES = 60, 8
SHARED = 0.5  # share of their rows that two sources of one calibration set have in common


@opt.reads_table
def calibrate(
    data: opt.Data,
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COL", help="Column of the true classes.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Calibrations to write: .json.", show_default=False)
    ],
    item: opt.Item = None,
    ignore: Annotated[list[str], opt.LEFT_OUT] = [],  # noqa: B006
    long: opt.Long = None,
    score: Annotated[
        list[str],
        typer.Option(
            "--score",
            metavar="NAME",
            help="Source of scores, or several: A,B; 'all' for all numbers that are no classes.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    ordinal: Annotated[
        list[str],
        typer.Option(
            "--ordinal",
            metavar="NAME[=WORDS]",
            help="Source of ordered answers: numbers, or words as pain=none,some,severe. Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    label: Annotated[
        list[str],
        typer.Option(
            "--label",
            metavar="NAME",
            help="Source whose numbers are labels, or several: A,B.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    ratio: Annotated[
        list[str],
        typer.Option(
            "--ratio",
            metavar="NAME",
            help="Source whose score is read as a log-likelihood ratio on a line (two classes) instead of in bins.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    bins: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Bins of scores (default: 10)."),
    ] = None,
    context: Annotated[
        list[str],
        typer.Option(
            "--context",
            metavar="NAME",
            help="Source whose cells (column NAME@) are circumstances and not part of its answer.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    set_name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of these rows; sources that answered the same rows share their calibration error (default: the "
            "file's name).",
        ),
    ] = None,
    copy: Annotated[
        list[str],
        typer.Option(
            "--copy",
            metavar="NAME=ORIGINAL",
            help="Source that is a copy of another: they share one vote. Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    priors: Annotated[
        list[str],
        typer.Option(
            "--priors",
            metavar="[NAME:]SHARES",
            help="Class priors in the training of a source, or of all, as A:healthy=0.9,ill=0.1, which its "
            "probabilities contain (default: those of the rows).",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    add: Annotated[bool, typer.Option("--add", help="Keep other sources that FILE holds already.")] = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Calibrate sources on rows whose class is known: count their answers, as `mixent fuse` needs.

    Every column but the target is a source: of labels, or of scores where it holds numbers that are no classes (up to
    20 whole numbers are ordered answers, others are put into bins); columns NAME:CLASS for all classes are the
    probabilities of one source, which are rescaled by these rows. A blank is no answer. NAME@ is the cell of the
    input that a source was asked about, if there are such cells.

    \b
    Examples:
      mixent calibrate labelled.csv --target truth -o vendors.json
      mixent calibrate b.csv -t truth -o vendors.json --add --name ward-b
      mixent calibrate scores.csv -t client -o gates.json --ratio face --bins 20
      mixent calibrate grades.csv -t truth -o judges.json --score all
      mixent calibrate long.csv -t truth -o judges.json --long item,source,value
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        check_output(output, [data], (".json",))
        forms = Forms(names_in(score), names_in(ratio), names_in(label), _orders(ordinal), bins is not None)
        truth, given = _read(data, target, item, long, ignore, forms)
        sets = _calibration_sets(set_name or data.name, truth, given)
        reading = Reading(forms, _priors(priors, given, _classes(truth)), context, bins, sets)
        reading.check(given)
        made = {name: reading.calibration(name, truth, source) for name, source in given.items()}
        made = _with_copies(made, copy)
        before = _before(screen, output, made, add=add)
        _write(screen, data, truth, before, made, output)
        _print_sources(screen, made, _probabilistic(given))
        _print_assumed(screen, given)
        _print_stated(screen, made)
        _print_changes(screen, before, made, output)


@dataclass(frozen=True)
class Reading:
    """How the answers of sources are read: names of sources, as the options give them."""

    forms: Forms
    priors: Mapping[str, list[float]]  # class priors in the training of some sources
    context: Sequence[str]
    bins: int | None
    sets: Mapping[str, str]  # calibration set of each source

    def check(self, given: dict[str, Given]) -> None:
        """Refuse options for sources that do not exist, or that give something else."""
        forms = self.forms
        scores = [name for name in (*forms.scores, *forms.lines) if name != ALL]
        for option, names in (
            ("--score", scores),
            ("--ordinal", list(forms.ordinal)),
            ("--label", forms.labels),
            ("--context", self.context),
        ):
            _check_names(option, names, given)
        kinds = {name: source.kind for name, source in given.items()}
        numbers = ("scores", "ordinal")
        binned = [name for name, kind in kinds.items() if kind == "scores" and name not in forms.lines]
        refuse(
            (self.bins is not None and not binned, "--bins is not used: no source gives scores to be put into bins"),
            (
                ALL in forms.scores and not set(kinds.values()) & {*numbers},
                "--score is not used: no column has numbers",
            ),
            *((kinds[n] not in numbers, f"--score and --ratio are not used: {n!r} gives {kinds[n]}") for n in scores),
            *((kinds[n] != "ordinal", f"--ordinal is not used: {n!r} gives {kinds[n]}") for n in forms.ordinal),
            *((kinds[n] != "labels", f"--label is not used: {n!r} gives {kinds[n]}") for n in forms.labels),
            *(
                (given[name].cells is None, f"--context is not used: {name!r} has no cells (column {name + '@'!r})")
                for name in self.context
            ),
        )

    def calibration(self, name: str, truth: pd.Series, given: Given) -> Calibration:
        """The calibration of a source by its answers to rows of known class."""
        try:
            scored = given.kind in ("scores", "ordinal") and given.symbols is None
            made = self._scores(name, truth, given) if scored else self._answers(name, truth, given)
        except ValueError as error:
            raise ValueError(f"source {name!r}: {error}") from error
        return made if given.cell_names is None else replace(made, cells=given.cell_names)

    def _scores(self, name: str, truth: pd.Series, given: Given) -> Calibration:
        from mixent.fusion import Calibration

        if given.cells is not None:
            raise ValueError("scores cannot have cells; give it labels or probabilities")
        how: dict[str, Any] = {} if self.bins is None else {"bins": self.bins}
        how = {"ratio": True} if name in self.forms.lines else how | {"ordinal": given.kind == "ordinal"}
        how |= {"calibration_set": self.sets[name], "priors": self.priors.get(name)}
        return Calibration.from_scores(as_objects(truth), given.values, **how)

    def _answers(self, name: str, truth: pd.Series, given: Given) -> Calibration:
        from mixent.fusion import Calibration

        return Calibration.from_predictions(
            as_objects(truth),
            given.values,
            given.symbols,
            cells=given.cells,
            context=name in self.context,
            calibration_set=self.sets[name],
            ordinal=given.kind == "ordinal",
            priors=self.priors.get(name),
        )


def _orders(texts: Sequence[str]) -> dict[str, tuple]:
    """Words of ordinal sources in increasing order, by source; empty for sources that give numbers."""
    return {name: tuple(column_names(words)) for name, _, words in (text.partition("=") for text in texts)}


def _calibration_sets(set_name: str, truth: pd.Series, given: dict[str, Given]) -> dict[str, str]:
    """Name of the calibration rows of each source; sources with most of their rows in common have the same.

    Two sources are joined if half of the rows that the one with fewer rows answered were answered by the other, too.
    """
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    answered = np.stack([source.answered for source in given.values()])[:, truth.notna().to_numpy()].astype(float)
    common = answered @ answered.T
    rows = np.diag(common)
    joined = common >= np.maximum(np.minimum.outer(rows, rows) * SHARED, 1)
    n_sets, set_of = connected_components(joined, directed=False)
    if n_sets == 1:
        return dict.fromkeys(given, set_name)
    first = {index: name for name, index in reversed(list(zip(given, set_of.tolist())))}
    return {name: f"{set_name}: {first[index]}" for name, index in zip(given, set_of.tolist())}


def _probabilistic(given: dict[str, Given]) -> list[str]:
    return [name for name, source in given.items() if source.kind == "probabilities"]


def _refuse_long(item: str | None, target: str, columns: list[str]) -> None:
    refuse(
        (item is not None, "--item is not used with --long, which names the column of the items"),
        (target in columns, f"{target!r} is the --target and cannot be in --long too"),
    )


def _check_names(option: str, names: Collection[str], given: Collection[str]) -> None:
    strange = [name for name in names if name not in given]
    if strange:
        raise typer.BadParameter(f"{option} {strange[0]}: unknown source; the sources are {listed(list(given))}")


def _read(
    path: Path, target: str, item: str | None, long: str | None, ignore: Sequence[str], forms: Forms
) -> tuple[pd.Series, dict[str, Given]]:
    """The true classes, and the answers of each source."""
    if long is None:
        return _read_wide(path, target, item, ignore, forms)
    columns = long_columns(long)
    _refuse_long(item, target, columns)
    return _read_long(path, target, columns, ignore, forms)


def _read_wide(
    path: Path, target: str, item: str | None, ignore: Sequence[str], forms: Forms
) -> tuple[pd.Series, dict[str, Given]]:
    frame = read_table(path)
    left = _left_out(path, frame, target, item, ignore)
    columns = [name for name in frame.columns if name not in left]
    if not columns:
        raise ValueError(f"{path}: no column is left to calibrate; a source needs one beside the target")
    if frame[target].dtype.kind in "iuf":
        classes, texts = _classes(frame[target]), set(as_text(frame[target]).dropna())
        if any(texts & set(frame[name].dropna()) for name in columns if frame[name].dtype.kind not in "biuf"):
            # 0, 1 and unsure: the classes are words like the answers
            numbers = [name for name in columns if frame[name].dtype.kind in "iu"]
            for name in [target, *(name for name in numbers if looks_labelled(frame[name], name, classes, forms))]:
                frame[name] = as_text(frame[name])
    truth = frame[target]
    if item is not None and (repeated := int(frame[item].dropna().duplicated().sum())):
        current_screen().warn(
            f"{count(repeated, 'row')} of {len(frame)} repeat an item of column {item!r}; rows of one item are counted "
            "as if they were independent"
        )
    return truth, wide_sources(frame, columns, _classes(truth), forms)


def _left_out(path: Path, frame: pd.DataFrame, target: str, item: str | None, ignore: Sequence[str]) -> set[str]:
    ignored = names_of(ignore, frame.columns)
    need_columns(path, frame.columns, [target, *([item] if item else []), *ignored])
    if target in [*ignored, item]:
        raise ValueError(f"{target!r} is the --target and cannot be given to --ignore or --item too")
    return {target, *([item] if item else []), *ignored}


def _classes(truth: pd.Series) -> list[Hashable]:
    from mixent.data import read_labels

    return read_labels(truth, len(truth)).classes.tolist()


def _read_long(
    path: Path, target: str, columns: Sequence[str], ignore: Sequence[str], forms: Forms
) -> tuple[pd.Series, dict[str, Given]]:
    from mixent.fusion import long_answers

    item, source, value, *probability = columns
    frame = read_table(path, [item, source])
    need_columns(path, frame.columns, [target, *columns])
    if frame[value].dtype.kind not in "biuf" and frame[target].dtype.kind in "iuf":
        frame[target] = as_text(frame[target])
    frame = without_sources(path, frame, source, ignore)
    answers = long_answers(frame, item=item, source=source, value=value, probability=next(iter(probability), None))
    truth = of_items(frame, item, target, "--target")
    classes = _classes(truth)
    return truth, {
        name: _of_symbols(values) if probability else _long_given(values, name, classes, forms)
        for name, values in answers.values.items()
    }


def without_sources(path: Path, frame: pd.DataFrame, column: str, ignore: Sequence[str]) -> pd.DataFrame:
    """A long table without the rows of some sources."""
    names = names_of(ignore, frame[column].unique().tolist())
    strange = [name for name in names if not (frame[column] == name).any()]
    if strange:
        raise ValueError(f"{path}: no row is of source {strange[0]!r} (--ignore)")
    frame = frame[~frame[column].isin(names)].reset_index(drop=True)
    if not len(frame):
        raise ValueError(f"{path}: no source is left; ignore fewer")
    return frame


def _of_symbols(values: dict[Hashable, np.ndarray]) -> Given:
    import numpy as np

    return Given("probabilities", np.column_stack(list(values.values())), tuple(values))


def _long_given(values: np.ndarray, name: str, classes: Sequence[Hashable], forms: Forms) -> Given:
    """A source of a long table, in whose column others may write words."""
    import pandas as pd

    column = pd.Series(values).infer_objects()
    if column.dtype.kind not in "biuf":
        numbers = pd.to_numeric(column, errors="coerce")
        whole = numbers.notna().equals(column.notna())
        if whole and not looks_labelled(numbers, name, classes, forms):
            # older pandas finds the numbers but rounds their last digit
            column = column.astype(float) if numbers.dtype.kind == "f" else numbers
    return column_given(column, name, classes, forms)


def _with_copies(made: dict[str, Calibration], copies: Sequence[str]) -> dict[str, Calibration]:
    for text in copies:
        name, _, original = text.partition("=")
        if not name or not original:
            raise typer.BadParameter(f"--copy must be NAME=ORIGINAL; got {text!r}")
        _check_names("--copy", [name], made)
        made[name] = replace(made[name], copy_of=original)
    return made


def _priors(texts: Sequence[str], given: Collection[str], classes: Sequence[Hashable]) -> dict[str, list[float]]:
    """Class priors in the training of the sources that have them, by source."""
    out: dict[str, list[float]] = {}
    for text in texts:
        name, colon, rest = text.partition(":")
        own = colon and name in given
        values = by_class("--priors", shares_of("--priors", rest if own else text), classes)
        out |= dict.fromkeys([name] if own else given, values)
    return out


def _before(screen: Screen, output: Path, made: dict[str, Calibration], *, add: bool) -> dict[str, Calibration]:
    """Calibrations of the file that are kept; warnings of what is lost, and of classes that differ."""
    from mixent.fusion import load_calibrations

    if not output.exists():
        return {}
    if not add:
        try:
            lost = [name for name in load_calibrations(output) if name not in made]
        except (ValueError, OSError):
            screen.warn(f"{output} is overwritten; it did not hold calibrations")
            return {}
        if lost:
            screen.warn(f"{output} is overwritten; it held {listed(lost)}, which --add would keep")
        return {}
    before = load_calibrations(output)
    old = {str(label) for source in before.values() for label in source.classes}
    new = {str(label) for source in made.values() for label in source.classes}
    if before and old != new:
        screen.warn(
            f"the classes {listed(sorted(new))} differ from those in {output}, {listed(sorted(old))}; check the "
            "spelling"
        )
    return before


def _write(
    screen: Screen,
    data: Path,
    truth: pd.Series,
    before: dict[str, Calibration],
    made: dict[str, Calibration],
    output: Path,
) -> None:
    from mixent.fusion import save_calibrations
    from mixent.fusion.sources import Layout

    Layout.of(before | made)  # do they go together?
    save_calibrations(before | made, output)
    n_known = int(truth.notna().sum())
    screen.print(f"[bold]{shown(data)}[/]: {count(n_known, 'row')} of known class, {count(len(made), 'source')}")
    if n_known < len(truth):
        screen.warn(f"{count(len(truth) - n_known, 'row')} without a class in the target are left out")
    screen.print()


def _print_changes(screen: Screen, before: dict[str, Calibration], made: dict[str, Calibration], output: Path) -> None:
    from mixent.fusion.facts import below_chance

    for name, source in made.items():
        right = below_chance(source)
        if right is not None:
            screen.warn(
                f"{name!r} is right on {100 * right:.0f} %, significantly less often than by chance "
                f"({100 / len(source.classes):.0f} %); check whether its answers are swapped or spelt as other classes"
            )
        few = [f"{c} ({n:.0f})" for c, n in zip(source.classes, source.n_rows) if n < FEW_ROWS]
        if few:
            screen.warn(f"{name!r} was calibrated on few rows of {', '.join(few[:MOST_CLASSES])}")
    replaced = [name for name in made if name in before]
    kept = [name for name in before if name not in made]
    if replaced:
        screen.print(shown(f"Replaced: {', '.join(replaced)}"))
    also = f"; kept {count(len(kept), 'source')} it held" if kept else ""
    screen.wrote(output, also)


def _print_assumed(screen: Screen, given: dict[str, Given]) -> None:
    """What was recognized in columns of numbers."""
    names: dict[str, list[str]] = {}
    for name, source in given.items():
        if source.assumed:
            names.setdefault(source.assumed, []).append(name)
    for assumed, sources in names.items():
        screen.print(f"Assumed: {shown(listed(sources))} {'gives' if len(sources) == 1 else 'give'} {shown(assumed)}")


def _print_stated(screen: Screen, made: dict[str, Calibration]) -> None:
    """Sources whose probabilities are not calibrated as they are stated."""
    from mixent.fusion.messages import unreliable

    for text in unreliable(made):
        screen.print(shown(f"{text[0].upper()}{text[1:]}."))


def _print_sources(screen: Screen, made: dict[str, Calibration], soft: Sequence[str]) -> None:
    from mixent.fusion.facts import accuracy, answer_type, information

    table = grid("source")
    table.add_column("gives")
    table.add_column("rows of each class", overflow="fold")
    for heading in ("right", "bits"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, source in list(made.items())[:MOST_ROWS]:
        rows = [f"{c}: {n:.4g}" for c, n in list(zip(source.classes, source.n_rows))[:MOST_CLASSES]]
        rows += ["..."] * (len(source.classes) > MOST_CLASSES)
        right, bits = accuracy(source), information(source)
        table.add_row(
            shown(name),
            answer_type(source, soft=name in soft),
            shown(", ".join(rows)),
            "-" if right is None else f"{100 * right:.1f} %",
            "-" if bits is None else f"{bits:.2f}",
        )
    screen.table(table)
    if len(made) > MOST_ROWS:
        screen.print(f"... and {len(made) - MOST_ROWS} more")
    most = max(math.log2(len(source.classes)) for source in made.values())
    screen.print(
        "right: share of right answers, or mean probability of the true class, averaged over the classes; bits: "
        f"information of an answer about the class, of {most:.2f}"
    )
