"""The table of intermediate results that is shown while the methods run."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np

from mixent.base.progress import notebook_output
from mixent.base.text import count
from mixent.evaluate.runner import Runner

STEPS = 10  # lines in a log
STAGE_STEPS = 4  # lines of each stage, within a budget


@contextmanager
def watching(progress: Any, problems: Sequence[str] = ()) -> Iterator[Callable[[Runner], None]]:
    """True: problems of the data, then a table of results, on standard error or in the notebook.

    A rich Console: the table there; the command line has printed the problems. A callable of (done, total, text): only
    called.
    """
    if callable(progress):
        yield lambda runner: progress(runner.n_done, runner.n_total, _latest(runner))
        return
    if progress is None or progress is False:
        yield lambda runner: None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True) if progress is True else progress
    for problem in problems if progress is True else ():
        console.print(f"Check first: {problem}", markup=False, highlight=False, soft_wrap=True)
    if console.is_jupyter:
        with notebook_output() as update:
            yield lambda runner: update(_html(table_of(runner)))
    elif console.is_terminal:
        with Live(console=console, transient=True, refresh_per_second=4) as live:
            yield lambda runner: live.update(table_of(runner))
    else:
        yield _lines_on(console)


def _lines_on(console: Any) -> Callable[[Runner], None]:
    """A line whenever another tenth of the folds is done, or within a budget another quarter of a stage."""
    shown: dict[Any, int] = {}  # by stage and, since methods may be added to it later, their number

    def show(runner: Runner) -> None:
        done, total = (runner.n_done, runner.n_total) if runner.rung is None else _of_stage(runner)
        share = done * (STEPS if runner.rung is None else STAGE_STEPS) // max(total, 1)
        stage = None if runner.rung is None else (runner.rung, total)
        if share > shown.get(stage, 0) or runner.refitted:
            shown[stage] = share
            folds = "" if runner.rung is not None or runner.refitted else f"{done} of {total} folds, "
            console.print(f"{folds}{_latest(runner)}", markup=False, highlight=False, soft_wrap=True)

    return show


def _html(table: Any) -> str:
    """A table of rich as text of fixed width."""
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=100, force_jupyter=False, force_terminal=False, color_system=None).print(table)
    return f"<pre>{escape(text.getvalue())}</pre>"


def _of_stage(runner: Runner) -> tuple[int, int]:
    """Methods that are done with the split that runs now, and all that are to run on it."""
    names = [name for name, split in runner.planned if split == runner.rung]
    return sum(runner.rung in runner.outcomes[name] or name in runner.dropped for name in names), len(names)


def _stage(runner: Runner, rung: int) -> str:
    """The split that runs now, in words."""
    sample, n_folds = runner.splits[rung].sample, sum(split.sample is None for split in runner.splits)
    return f"fold {rung + 1} of {n_folds}" if sample is None else f"one fold of a sample of {sample} rows"


def _latest(runner: Runner) -> str:
    if runner.refitted:
        return f"fitting {runner.refitted} to all rows{_time_left(runner)}"
    if runner.rung is not None:
        done, total = _of_stage(runner)
        return f"{_stage(runner, runner.rung)}: {done} of {count(total, 'method')} done{_time_left(runner)}"
    planned = {name: {split for n, split in runner.planned if n == name} for name in runner.racing}
    done = len(runner.methods) - sum(not planned[n] or bool(planned[n] - set(runner.outcomes[n])) for n in planned)
    left = _time_left(runner)
    return f"{done} of {len(runner.methods)} methods done{left}"


def _time_left(runner: Runner) -> str:
    """The time that is left of the budget, or that the folds to come will roughly take."""
    if np.isfinite(runner.end):
        return f", {max(runner.end - time.monotonic(), 0):.0f} s of the budget left"
    seconds = runner.seconds_left
    if not seconds > 1:  # unknown, or nearly done
        return ""
    return f", about {seconds:.0f} s left" if seconds < 100 else f", about {seconds / 60:.0f} min left"


def table_of(runner: Runner) -> Any:
    """Finished folds, error, log-loss and seconds of every method so far."""
    from rich.table import Table

    total = sum(split.sample is None for split in runner.splits)
    title = f"{runner.n_done} of {runner.n_total} folds{_time_left(runner)}"
    title = _latest(runner) if runner.rung is not None or runner.refitted else title
    table = Table(box=None, title=title, title_justify="left", title_style="")
    table.add_column("method", no_wrap=True)
    for heading in ("folds", "error %", "log-loss", "s / fold"):
        table.add_column(heading, justify="right")
    means = {name: _mean(runner, name, "log_loss") for name in runner.methods}
    finite = [value for value in means.values() if np.isfinite(value)]
    for name in runner.methods:
        done = sum(runner.splits[split].sample is None for split in runner.outcomes[name])
        loss = _formatted(means[name], 3)
        style = "dim" if name in runner.dropped else "bold green" if finite and means[name] == min(finite) else None
        error = _formatted(100 * _mean(runner, name, "error"), 1)
        seconds = _formatted(runner.seconds(name), 2) if runner.outcomes[name] else ""
        table.add_row(name, f"{done} / {total}", error, loss, seconds, style=style)
    return table


def _mean(runner: Runner, name: str, metric: str) -> float:
    """Mean over the folds without an error; of the largest sample, where there is no fold yet."""
    done = {split: o.record[metric] for split, o in runner.outcomes[name].items() if not o.record["failed"]}
    values = [value for split, value in done.items() if runner.splits[split].sample is None]
    values = values or [done[split] for split in sorted(done)[-1:]]
    return float(np.mean(values)) if values else float("nan")


def _formatted(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""
