"""The table that fills while methods run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mixent.evaluate.runner import Runner


@contextmanager
def watching(progress: Any) -> Iterator[Callable[[Runner], None]]:
    """True: a table on the terminal; a callable: it is told (done, total, text); a rich Console: the table there."""
    if callable(progress):
        yield lambda runner: progress(runner.n_done, runner.n_total, _latest(runner))
    elif progress is None or progress is False:
        yield lambda runner: None
    else:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True) if progress is True else progress
        with Live(console=console, transient=True, refresh_per_second=4) as live:
            yield lambda runner: live.update(table_of(runner))


def _latest(runner: Runner) -> str:
    done = [name for name in runner.methods if len(runner.outcomes[name]) == len(runner.splits)]
    return f"{len(done)} of {len(runner.methods)} methods done"


def table_of(runner: Runner) -> Any:
    """Folds done, error, log-loss and seconds of every method, as far as they are known."""
    from rich.table import Table

    total = len(runner.splits)
    left = "" if runner.budget is None else f", {max(runner.left, 0):.0f} s left"
    table = Table(
        box=None, title=f"{runner.n_done} of {runner.n_total} folds{left}", title_justify="left", title_style=""
    )
    table.add_column("method", no_wrap=True)
    for heading in ("folds", "error %", "log-loss", "s / fold"):
        table.add_column(heading, justify="right")
    means = {name: _mean(runner, name, "log_loss") for name in runner.methods}
    finite = [value for value in means.values() if np.isfinite(value)]
    for name in runner.methods:
        done = len(runner.outcomes[name])
        loss = _shown(means[name], 3)
        style = "dim" if name in runner.dropped else "bold green" if finite and means[name] == min(finite) else None
        error, seconds = _shown(100 * _mean(runner, name, "error"), 1), _shown(runner.seconds(name), 2) if done else ""
        table.add_row(
            name, "left out" if name in runner.dropped else f"{done} / {total}", error, loss, seconds, style=style
        )
    return table


def _mean(runner: Runner, name: str, metric: str) -> float:
    values = [o.record[metric] for o in runner.outcomes[name]]
    return float(np.mean(values)) if values else float("nan")


def _shown(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""
