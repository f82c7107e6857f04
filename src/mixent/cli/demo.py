"""`mixent demo`: the main job on data that comes with scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.cli import options as opt
from mixent.cli.data import check_output
from mixent.cli.evaluate import show_scores
from mixent.cli.screen import session, shown

DELETED = 0.2  # share of the cells
GAPS = ", 20 % gaps"


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
        check_output(out, [], (".html", ".htm"))
        from mixent import MixtureClassifier, SharedMixtureClassifier
        from mixent.cli.baselines import baselines
        from mixent.evaluate import cross_validate
        from mixent.report import comparison_report

        X, y = load_data()
        gaps = with_gaps(X)
        screen.say(f"Wine: {len(X)} wines, {X.shape[1]} measurements, {len(set(y))} growers. Who made which wine?")
        ours = MixtureClassifier(max_components=2, random_state=0)  # 178 rows carry no more
        shared = SharedMixtureClassifier(4, objective="conditional", random_state=0)
        whole = {
            "mixture per class": ours,
            "shared mixture": shared,
            "one Gaussian per class": MixtureClassifier(1, random_state=0),
            **baselines(),
        }
        holed = {"mixture per class" + GAPS: ours, "logistic regression" + GAPS: baselines()["logistic regression"]}
        with screen.progress("cross-validation") as show:
            first, second = _share(show, len(whole), len(holed))
            cv = cross_validate(whole, X, y, progress=first)
            cv_gaps = cross_validate(holed, gaps, y, progress=second)  # same seed and labels: same folds
        cv = replace(cv, records=cv.records + cv_gaps.records, proba={**cv.proba, **cv_gaps.proba})
        show_scores(screen, cv)
        with screen.progress("fitting on all rows") as show:
            ours.set_params(progress=show).fit(X, y).set_params(progress=False)
            shared.fit(X, y)
        comparison_report(
            out,
            title="mixent demo: who made which wine?",
            cv=cv,
            data_notes=[
                "In the methods marked '20 % gaps', a fifth of all cells was deleted at random before training and "
                "testing; mixtures integrate gaps out exactly, logistic regression gets column means.",
                "The four components of the shared mixture belong to all growers, trained for p(grower | wine).",
            ],
            models={"mixture per class": ours, "shared mixture": shared},
            X=X,
            y=y,
            commands="mixent demo",
        )
        screen.say(f"Wrote [bold]{shown(out.resolve())}[/]; open it in a browser.")
        screen.say("Next, with a table of your own:  mixent evaluate data.csv --target COLUMN")


def load_data() -> tuple[Any, Any]:
    """Wine as a DataFrame, and the growers by name."""
    from sklearn.datasets import load_wine

    from mixent.tables.files import need_pandas

    need_pandas("to show the demonstration's tables")
    wine = load_wine(as_frame=True)
    return wine.data, wine.target_names[wine.target]


def with_gaps(X: Any) -> Any:
    """A copy with some cells deleted at random."""
    import numpy as np

    return X.mask(np.random.default_rng(0).random(X.shape) < DELETED)


def _share(show: Any, first: int, second: int) -> tuple[Any, Any]:
    """One bar for two pieces of work of known shares."""

    def of_first(done: int, total: int, text: str) -> None:
        show(done, total * (first + second) // first, text)

    def of_second(done: int, total: int, text: str) -> None:
        show(done + total * first // second, total * (first + second) // second, text)

    return of_first, of_second
