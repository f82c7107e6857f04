"""`mixent compare`: which method for this table, how good it is on rows held out, and the model itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, session, shown
from mixent.cli.data import Data, Roles, read_data
from mixent.cli.fit import words_in
from mixent.cli.output import PAGE, check_output, check_table_output, write_records
from mixent.cli.parsing import names_in, one_of, read_settings, refuse, unknown
from mixent.cli.settings import KINDS, check_columns, make_estimator, models, parameters_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from sklearn.base import BaseEstimator

    from mixent.comparison import Comparison

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
HEADINGS = {  # of the metrics, on two lines
    "error": "error\n%",
    "balanced_error": "balanced\nerror %",
    "log_loss": "log-loss\nnats",
    "brier": "Brier\nscore",
    "calibration": "calib.\nerror %",
    "auc": "\nAUC",
}
Methods: TypeAlias = "str | dict[str, BaseEstimator | None]"  # as `mixent.compare` takes them
METRICS = ("log_loss", "error", "balanced_error", "brier", "auc")


@opt.reads_table
def compare(
    ctx: typer.Context,
    data: opt.Data,
    target: opt.Target,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Recommended model [DATA-winner.mixent]."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Page with all results [DATA-comparison.html].")
    ] = None,
    page: Annotated[bool, typer.Option(help="Whether to write the page.")] = True,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Scores of all folds: .csv, .tsv or .parquet.")
    ] = None,
    methods: Annotated[
        list[str],
        typer.Option(
            "--method",
            metavar="NAMES",
            help="Only these: models (see mixent models) or methods of the output. Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Parameter of every --method that has it, or NAME.KEY=VALUE, of one of them. Repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    baselines: Annotated[
        bool, typer.Option(help="Also run classifiers of scikit-learn, and the class frequencies.")
    ] = True,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help=f"What the recommendation is by: {', '.join(METRICS)}.")
    ] = "log_loss",
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="Folds of the rows.")] = 5,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Repetitions.")] = 1,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Such as 90s, 10m or 2h; methods are tried on a sample of the rows, the promising ones on more.",
        ),
    ] = None,
    limit: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Longest time of a fold, or none; auto: ten times the median, at least 60 s.",
        ),
    ] = "auto",
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Finished folds, from which the same command resumes after a stop [DATA.compare.jsonl].",
        ),
    ] = None,
    ignore: opt.Ignore = [],  # noqa: B006
    categorical: opt.Categorical = [],  # noqa: B006
    weight: opt.Weight = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Rows of the same value, such as one patient, are kept in the same fold."),
    ] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Compare methods on a table by cross-validation; recommend one, with the reason, and save it.

    All methods have the same folds and choose their settings within the training rows. The best is fitted to all rows
    and saved; a page shows the comparison.

    \b
    Examples:
      mixent compare data.csv --target class
      mixent compare data.csv -t class --budget 10m -o model.mixent --report page.html
      mixent compare data.csv -t class --method mixture,med-tree --set med-tree.tables=integrated
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        one_of("--metric", metric, METRICS)
        seconds = None if budget is None else read_time(budget)
        longest = read_limit(limit)
        refuse((report is not None and not page, "--report is not used with --no-page; leave one of them out"))
        given = read_settings(settings)
        chosen = chosen_methods(names_in(methods), given, seed)
        files = Files.of(data, output, report, page, scores, journal)
        files.check(data)
        roles = Roles(target, ignore, categorical, weight, group=group)
        table = read_data(data, roles, screen=screen, named=words_in(given))
        _check_words(chosen, table)
        options: dict[str, Any] = {"methods": chosen, "baselines": baselines, "metric": metric}
        options |= {"folds": folds, "repeats": repeats, "budget": seconds, "limit": longest}
        options |= {"n_jobs": jobs, "random_state": seed}
        comparison = _compared(screen, table, files, options)
        print_comparison(screen, comparison)
        _write(screen, comparison, files, f"{target} in {data.name}", ctx.obj or "")
        if _save_winner(screen, comparison, files.model, table.about):
            screen.print(f"Next:  mixent predict {shown(files.model)} new.csv -o predicted.csv")


@dataclass(frozen=True)
class Files:
    """Files that the command writes."""

    model: Path
    page: Path | None
    scores: Path | None
    journal: Path
    keeps_journal: bool  # it was asked for: it must be of this table, and stays

    @classmethod
    def of(
        cls, data: Path, model: Path | None, report: Path | None, page: bool, scores: Path | None, journal: Path | None
    ) -> Files:
        """The files as they were given, or named after the table."""
        stem = data.name.removesuffix(".gz").rpartition(".")[0] or data.name
        return cls(
            model or Path(f"{stem}-winner.mixent"),
            (report or Path(f"{stem}-comparison.html")) if page else None,
            scores,
            journal or Path(f"{stem}.compare.jsonl"),
            journal is not None,
        )

    def check(self, data: Path) -> None:
        """Refuse before the work what could not be written after it."""
        check_output(self.model, [data])
        check_output(self.page, [data, self.model], PAGE)
        check_table_output(self.scores, [data, self.model])
        check_output(self.journal if self.keeps_journal else None, [data, self.model])


def chosen_methods(names: Sequence[str], settings: Mapping[str, Any], seed: int) -> Methods:
    """What `mixent.compare` takes as methods: names to classifiers, or to None for its own method of that name."""
    if not names:
        refuse((bool(settings), "--set needs --method: name the model whose parameters these are"))
        return "auto"
    chosen, unused = {}, set(settings)
    for name in dict.fromkeys(names):
        own = _settings_of(name, settings)
        unused -= {key for key in settings if key in own or key.removeprefix(f"{name}.") in own}
        chosen[name] = _method(name, own, seed)
    if unused:
        known = [key for name in names if name in models() for key in parameters_of(models()[name].make())]
        raise unknown("parameter", min(unused), list(dict.fromkeys(known)), ", ".join(names))
    return chosen


def _settings_of(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of one method: those with its name, and those of all methods that it has a parameter for."""
    if name not in models():
        return {}
    first = {key.partition("__")[0] for key in models()[name].make().get_params()}
    shared = {key: value for key, value in settings.items() if key.partition(".")[0] in first}
    mine = {key.removeprefix(f"{name}."): v for key, v in settings.items() if key.startswith(f"{name}.")}
    return shared | mine


def _method(name: str, settings: Mapping[str, Any], seed: int) -> BaseEstimator | None:
    """The classifier; None where `mixent.compare` has a method of this name, which nothing changes."""
    from mixent.base.registry import entries

    entry = models().get(name)
    recipes = {recipe.name for other in entries() for recipe in other.recipes}
    if entry is None or (name in recipes and not settings):
        return None
    refuse((entry.task != "classification", f"--method takes classifiers; {name} is {KINDS[entry.task]}"))
    return make_estimator(name, settings, {"random_state": seed, "n_jobs": 1})  # methods run in parallel already


def read_time(text: str, option: str = "--budget", others: str = "") -> float:
    """Seconds of 90, 90s, 10m, 1.5h."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip().lower())
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(f"{option} must be a time such as 90s, 10m or 2h{others}; got {text!r}")
    return float(match[1]) * UNITS[match[2]]


def read_limit(text: str) -> float | str | None:
    """Seconds, "auto", or None for "none"."""
    known = {"auto": "auto", "none": None}
    return known[text] if text in known else read_time(text, "--limit", ", or auto, or none")


def _check_words(chosen: Methods, table: Data) -> None:
    """Refuse words in the settings of a method that name neither a model nor a column."""
    for name, estimator in {} if isinstance(chosen, str) else chosen.items():
        if estimator is not None:
            check_columns(estimator, name, table.X.columns)


def _compared(screen: Screen, table: Data, files: Files, options: dict[str, Any]) -> Comparison:
    """Run the comparison; only a journal that was given must be of this table and these options."""
    from mixent import compare as run
    from mixent.evaluate.journal import OtherJournalError

    journal = files.journal
    options = options | {"sample_weight": table.weight, "categorical": table.categorical or "auto"}
    options |= {"groups": table.groups, "journal": journal, "progress": live_on(screen)}
    if journal.exists():
        screen.print(f"Finished folds are read from [bold]{shown(journal)}[/]; delete it to start again")
    try:
        try:
            return run(table.X, table.y, **options)
        except OtherJournalError:
            if files.keeps_journal:
                raise
            screen.print("They are of another table or other options: starting again")
            journal.unlink()
            return run(table.X, table.y, **options)
    except KeyboardInterrupt:
        screen.err.print(
            f"Stopped; finished folds are in {shown(journal)}: run the same command again to resume", soft_wrap=True
        )
        raise


def live_on(screen: Screen) -> bool | Console:
    """Where a comparison shows its progress."""
    return False if screen.err.quiet else screen.err


def print_comparison(screen: Screen, comparison: Comparison) -> None:
    """The table of scores, best method first, methods stopped, left out or failed, and the recommendation."""
    cv = comparison.cv
    weighted = "; rows are weighted" if cv.sample_weight is not None else ""
    screen.print()
    screen.print(f"Mean scores of {cv.design}, settings chosen inside{weighted}")
    screen.print()
    screen.table(_scores(comparison))
    if any(candidate.from_mixent for candidate in comparison.candidates.values()):
        screen.print("* of mixent")
    screen.print()
    for note in comparison.skipped_notes:
        screen.print(shown(note))
    for name, message in cv.failures.items():
        screen.warn(f"{name} failed: {message}")
    screen.print()
    screen.print(f"[bold]{shown(comparison.recommendation.headline)}[/]")
    for point in comparison.recommendation.points:
        screen.print(f"- {shown(point)}")
    screen.print()


def _scores(comparison: Comparison) -> Table:
    from mixent.evaluate.row_losses import best_of

    cv, ranking = comparison.cv, comparison.ranking()
    means = {(entry["method"], entry["metric"]): entry["mean"] for entry in cv.means()}
    best = {metric: best_of(cv, metric, ranking) for metric in HEADINGS}
    table = grid("\nmethod", *HEADINGS.values(), "fit\ns")
    for method in [*ranking, *(m for m in cv.methods if m not in ranking)]:
        cells = [_score(means[method, metric], metric, method in best[metric]) for metric in HEADINGS]
        seconds = means[method, "fit_seconds"]
        star = " *" if comparison.candidates[method].from_mixent else ""
        table.add_row(shown(cv.label(method)) + star, *cells, f"{seconds:.2f}" if seconds == seconds else "")
    return table


def _score(mean: float, metric: str, best: bool) -> str:
    from mixent.evaluate.scores import SCALES

    if mean != mean:
        return "failed"
    text = SCALES[metric].text(mean)
    return f"[bold green]{text}[/]" if best else text


def _write(screen: Screen, comparison: Comparison, files: Files, title: str, commands: str) -> None:
    if files.scores is not None:
        write_records(screen, comparison.cv.records, files.scores)
        screen.wrote(files.scores)
    if files.page is not None:
        comparison.report(files.page, title=title, commands=commands)
        screen.wrote(files.page, "; open it in a browser")
    if not files.keeps_journal:
        files.journal.unlink(missing_ok=True)


def _save_winner(screen: Screen, comparison: Comparison, path: Path, about: Mapping[str, Any]) -> bool:
    """Save the recommended model; not one of another library without skops, which is only a warning."""
    from mixent.persistence.files import save_with

    if comparison.winner is None:
        return False
    try:
        save_with(comparison.winner, path, about, foreign="skops")
    except ImportError as error:
        screen.warn(f"{comparison.recommended} was not saved: {error}")
        return False
    screen.wrote(path, f": {comparison.recommended}, fitted to all rows")
    return True
