"""`mixent demo`: a comparison on data that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixent.cli import options as opt
from mixent.cli.compare import live_on, print_comparison
from mixent.cli.console import session
from mixent.cli.output import PAGE, check_output

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

DELETED = 0.2  # share of the cells
METHODS = ("mixture", "maximum entropy", "linear MED")  # beside scikit-learn's


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="HTML page to write.")] = Path(
        "mixent-demo.html"
    ),
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Compare classifiers on bundled data; write a page.

    \b
    Examples:
      mixent demo
      mixent demo --out /tmp/demo.html
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        check_output(out, [], PAGE)
        X, y = load_data()
        from mixent import compare

        screen.print(f"Wine: {len(X)} wines, {X.shape[1]} measurements, {len(set(y))} growers. Who made which wine?")
        screen.print("A fifth of all cells was deleted at random; mixtures integrate such cells out, others fill them.")
        comparison = compare(with_missing(X), y, methods=list(METHODS), progress=live_on(screen))
        print_comparison(screen, comparison)
        comparison.report(out, title="mixent demo: who made which wine?", commands="mixent demo")
        screen.wrote(out.resolve(), "; open it in a browser.")
        screen.print("Next, with a table of your own:  mixent compare data.csv --target COLUMN")


def load_data() -> tuple[pd.DataFrame, np.ndarray]:
    """Wine as a DataFrame, and the growers by name."""
    from sklearn.datasets import load_wine

    from mixent.data.files import need_pandas

    need_pandas("to show the demonstration's tables")
    wine = load_wine(as_frame=True)
    return wine.data, wine.target_names[wine.target]


def with_missing(X: pd.DataFrame) -> pd.DataFrame:
    """A copy with some cells deleted at random."""
    import numpy as np

    return X.mask(np.random.default_rng(0).random(X.shape) < DELETED)
