"""`mixent compare`: which method for this table, and the model itself."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, session, shown
from mixent.cli.data import Data, check_output, parts, read_data, write_table
from mixent.cli.evaluate import COLUMNS, _score
from mixent.cli.parsing import one_of

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
MANY = 20  # rows from which a column of different texts is one of names
STEPS = 10  # lines of progress in a pipe
METRICS = ("log_loss", "error", "balanced_error", "brier")


def compare(
    ctx: typer.Context,
    data: opt.Data,
    target: opt.Target,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The recommended model, fitted to all rows [DATA-winner.mixent]."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page with all of it [DATA-comparison.html].")
    ] = None,
    page: Annotated[bool, typer.Option(help="Whether to write the page.")] = True,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the scores of every fold: .csv, .tsv or .parquet.")
    ] = None,
    methods: Annotated[
        list[str],
        typer.Option(
            "--method",
            metavar="NAMES",
            help='Only these of mixent\'s and the classical ones, such as "mixture,maximum entropy". Repeatable.',
        ),
    ] = [],  # noqa: B006
    baselines: Annotated[bool, typer.Option(help="Run six classifiers of scikit-learn beside them.")] = True,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help=f"What the recommendation is by: {', '.join(METRICS)}.")
    ] = "log_loss",
    folds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Parts the rows are cut into; each is predicted from the others.")
    ] = 5,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Times the whole is repeated with other folds.")] = 1,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Such as 90s, 10m or 2h: methods that would not finish are left out."),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep finished folds here. Otherwise they are kept in DATA.compare.jsonl until the end; after a stop "
            "the same command goes on from there.",
        ),
    ] = None,
    ignore: opt.Ignore = [],  # noqa: B006
    categorical: opt.Categorical = [],  # noqa: B006
    weight: opt.Weight = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Try the right methods on a table; recommend one, with its reason, and save it.

    Every method chooses its settings inside each training part, all see the same folds, and every score is on rows that
    neither had seen. The best is fitted to all rows and saved; a page shows the comparison.

    \b
    Examples:
      mixent compare data.csv --target class
      mixent compare data.csv -t class --budget 10m -o model.mixent --report page.html
      mixent compare data.csv -t class --method "mixture,maximum entropy" --no-baselines
      mixent compare data.csv -t class --metric balanced_error --categorical zip,sex
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        one_of("--metric", metric, METRICS)
        seconds = None if budget is None else read_time(budget)
        output = output or Path(f"{_stem(data)}-winner.mixent")
        report = _page_of(report, page, data)
        named = [name for text in methods for name in parts(text)]
        _check_outputs(data, output, report, scores, journal)
        _check_can_save(named, baselines)
        table = read_data(
            data, target, ignore=ignore, weight=weight, categorical=categorical, screen=screen, models=["mixture"]
        )
        table = without_names(screen, table)
        kept = journal or Path(f"{_stem(data)}.compare.jsonl")
        found = _compared(
            screen,
            table,
            kept,
            journal is not None,
            methods=named or "auto",
            baselines=baselines,
            folds=folds,
            repeats=repeats,
            metric=metric,
            budget=seconds,
            n_jobs=jobs,
            random_state=seed,
            categorical=table.categorical or "auto",
        )
        show_comparison(screen, found)
        _write(screen, found, output, report, scores, f"{target} in {data.name}", ctx.obj or "")
        if journal is None:
            kept.unlink(missing_ok=True)
        screen.say(f"Next:  mixent predict {shown(output)} new.csv -o predicted.csv")


def read_time(text: str) -> float:
    """Seconds of 90, 90s, 10m, 1.5h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip().lower())
    if found is None or float(found[1]) == 0:
        raise typer.BadParameter(f"--budget must be a time such as 90s, 10m or 2h; got {text!r}")
    return float(found[1]) * UNITS[found[2]]


def _stem(data: Path) -> str:
    return data.name.removesuffix(".gz").rpartition(".")[0] or data.name


def _page_of(report: Path | None, page: bool, data: Path) -> Path | None:
    if report is not None and not page:
        raise typer.BadParameter("--report has no effect with --no-page; leave one of them out")
    return None if not page else report or Path(f"{_stem(data)}-comparison.html")


def _check_outputs(data: Path, output: Path, report: Path | None, scores: Path | None, journal: Path | None) -> None:
    """Before the work, not after it."""
    from mixent.data.files import ENDINGS

    check_output(output, [data])
    if report is not None:
        check_output(report, [data, output], (".html", ".htm"))
    if scores is not None:
        check_output(scores, [data, output], ENDINGS)
    if journal is not None:
        check_output(journal, [data, output])


def _check_can_save(named: list[str], baselines: bool) -> None:
    """Find out before the work that a winner of scikit-learn could not be written."""
    from importlib.util import find_spec

    if (baselines or not named or "stack" in named) and find_spec("skops") is None:
        raise typer.BadParameter(
            "the winner may be of scikit-learn, and the package skops is needed to save it; install it with: "
            'pip install "mixent[skops]", or take --no-baselines and --method'
        )


def _compared(screen: Screen, table: Data, journal: Path, named: bool, **options: Any) -> Any:
    """Run it with a table that fills; when stopped, say how to go on. Only a journal that was named must fit."""
    from mixent import compare as run
    from mixent.evaluate.journal import OtherJournalError

    options |= {"sample_weight": table.weight, "journal": journal, "progress": live_on(screen)}
    if journal.exists():
        screen.say(f"Finished folds are read from [bold]{shown(journal)}[/]; delete it to begin anew")
    try:
        try:
            return run(table.X, table.y, **options)
        except OtherJournalError:
            if named:
                raise
            screen.say("They are of another table or other options: beginning anew")
            journal.unlink()
            return run(table.X, table.y, **options)
    except KeyboardInterrupt:
        told = f"Stopped; finished folds are in {shown(journal)}: the same command goes on from there"
        screen.err.print(told, soft_wrap=True)
        raise


def without_names(screen: Screen, table: Data) -> Data:
    """Leave out text that is another in every row: a name, from which nothing can be learned."""
    values = {name: table.X[name].dropna() for name in table.X.columns if name not in table.categorical}
    names = [
        name
        for name, column in values.items()
        if len(column) > MANY and column.map(type).eq(str).all() and column.is_unique
    ]
    if not names or len(names) == table.X.shape[1]:
        return table
    told = ", ".join(map(shown, names))
    screen.say(f"Left out: {told}: another text in every row; to keep it, name it in --categorical")
    return replace(table, X=table.X.drop(columns=names))


def live_on(screen: Screen) -> Any:
    """The table that fills, on a terminal; in a pipe a line now and then."""
    if screen.err.quiet:
        return False
    if screen.err.is_terminal:
        return screen.err
    shares = iter(range(1, STEPS + 1))
    following = [next(shares)]

    def tell(done: int, total: int, text: str) -> None:
        if following and done * STEPS >= following[0] * total:
            screen.err.print(f"{done} of {total} folds, {text}", soft_wrap=True)
            following[:] = [share for share in shares if done * STEPS < share * total][:1]

    return tell


def show_comparison(screen: Screen, found: Any) -> None:
    """The table of scores, best method first, what was left out and failed, and the recommendation."""
    cv = found.cv
    repeats, n_folds = len(cv.folds), int(cv.folds.max()) + 1
    often = f", {repeats} times" if repeats > 1 else ""
    screen.say()
    screen.say(f"{n_folds}-fold cross-validation{often}, settings chosen inside: means over the folds")
    screen.say()
    means = {(entry["method"], entry["metric"]): entry for entry in cv.summary()}
    ranking = found.ranking()
    best = {metric: min(means[m, metric]["mean"] for m in ranking) for metric in COLUMNS}
    rows = grid("\nmethod", *(heading for heading, _, _ in COLUMNS.values()), "fit\ns")
    for method in [*ranking, *(m for m in cv.methods if m not in ranking)]:
        cells = [_score(means[method, metric] | {"sd": float("nan")}, metric, best[metric]) for metric in COLUMNS]
        seconds = means[method, "fit_seconds"]["mean"]
        star = " *" if found.candidates[method].ours else ""
        rows.add_row(shown(method) + star, *cells, f"{seconds:.2f}" if seconds == seconds else "")
    screen.show(rows)
    screen.say("* of mixent")
    screen.say()
    for name, why in found.skipped.items():
        screen.say(f"Left out: {shown(name)}: {shown(why)}.")
    for name, message in cv.failures.items():
        screen.warn(f"{name} failed: {message}")
    for problem in found.problems:
        screen.warn(problem)
    screen.say()
    screen.say(shown(found.reason))
    screen.say()


def _write(
    screen: Screen, found: Any, output: Path, report: Path | None, scores: Path | None, title: str, commands: str
) -> None:
    import pandas as pd

    from mixent import save

    if found.winner is not None:
        save(found.winner, output, foreign="skops")
        screen.say(f"Wrote [bold]{shown(output)}[/]: {shown(found.recommended)}, fitted to all rows")
    if scores is not None:
        write_table(screen, pd.DataFrame(found.cv.records), scores)
        screen.say(f"Wrote [bold]{shown(scores)}[/]")
    if report is not None:
        found.report(report, title=title, commands=commands)
        screen.say(f"Wrote [bold]{shown(report)}[/]; open it in a browser")
