"""`mixent demo`: example files for the other commands, and a comparison of methods on one of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixent.cli import options as opt
from mixent.cli.compare import live_on, print_comparison
from mixent.cli.console import session, shown
from mixent.cli.output import PAGE, check_output

if TYPE_CHECKING:
    import pandas as pd

    from mixent.fusion import Calibration

N_PUMPS, N_LABELLED = 300, 50
N_PATIENTS = 500
MISSING = 0.15  # share of the cells
METHODS = ("mixture", "maximum entropy", "linear MED", "logistic regression", "gradient boosting")
N_FOLDS = 3


def demo(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="HTML page to write; the example files get the same name."),
    ] = Path("mixent-demo.html"),
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write example files, compare methods on one of them, and write the results as a page.

    The files are a table with categories, missing values and few labels (mixent-demo.csv), and the answers of three
    classifiers to unlabelled patients (mixent-demo-votes.csv) with the confusion counts of each of them
    (mixent-demo-vendors.json). All data are simulated.

    \b
    Examples:
      mixent demo
      mixent demo --out /tmp/demo.html
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        table, votes, vendors = out.with_suffix(".csv"), _beside(out, "-votes.csv"), _beside(out, "-vendors.json")
        check_output(out, [], PAGE)
        for path in (table, votes, vendors):
            check_output(path, [])
        from mixent import compare
        from mixent.data.files import need_pandas
        from mixent.fusion import save_calibrations

        need_pandas("to write the example tables")
        pumps, state = make_pumps()
        pumps.assign(state=state).to_csv(table, index=False)
        answers, calibrations = make_votes()
        answers.to_csv(votes, index=False)
        save_calibrations(calibrations, vendors)
        screen.wrote(table, f": {N_PUMPS} pumps, the state of {N_LABELLED} of them is known")
        screen.wrote(votes, f": answers of {len(calibrations)} programs to {N_PATIENTS} patients")
        screen.wrote(vendors, ": confusion counts of each program")
        screen.print(f"\nWhich pumps are worn? {len(METHODS)} methods on {shown(table.name)}:")
        comparison = compare(
            pumps, state, methods=list(METHODS), baselines=False, folds=N_FOLDS, progress=live_on(screen)
        )
        print_comparison(screen, comparison)
        comparison.report(out, title="mixent demo: which pumps are worn?", commands="mixent demo")
        screen.wrote(out.resolve(), "; open it in a browser.")
        screen.print("Next, try all methods on this table, or on your own:")
        screen.text(f"  mixent compare {table} --target state")
        screen.print("Then combine the answers of the three programs, which share no labels:")
        screen.text(f"  mixent fuse {votes} --calibration {vendors} -o fused.csv")


def _beside(page: Path, ending: str) -> Path:
    """The path of the page with another ending."""
    return page.with_name(page.stem + ending)


def make_pumps() -> tuple[pd.DataFrame, pd.Series]:
    """Simulated measurements of pumps with missing values, and the state of each pump, None where it is not known.

    Vibration and temperature depend on the load, so that a worn pump is recognized by several columns together.
    """
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    worn = rng.random(N_PUMPS) < 0.35
    load = rng.normal(60, 15, N_PUMPS).clip(10, 100)
    noise = rng.normal(size=(2, N_PUMPS))
    informative = rng.random(N_PUMPS) < 0.6
    complete = pd.DataFrame(
        {
            "load": load.round(),
            "vibration": (0.05 * load + np.where(worn, 1.8 + 0.6 * noise[0], 0.6 + 0.35 * noise[0])).round(2),
            "temperature": (30 + 0.4 * load + np.where(worn, 10 + 6 * noise[1], 4 * noise[1])).round(),
            "maker": rng.choice(["Alder", "Birch", "Cedar"], N_PUMPS, p=[0.5, 0.3, 0.2]),
            "oil": np.where(
                informative, np.where(worn, "dark", "clear"), rng.choice(["clear", "cloudy", "dark"], N_PUMPS)
            ),
        }
    )
    state = pd.Series(np.where(worn, "worn", "fine"), dtype=object)
    return complete.mask(rng.random(complete.shape) < MISSING), state.where(state.index < N_LABELLED, None)


def make_votes() -> tuple[pd.DataFrame, dict[str, Calibration]]:
    """Simulated answers of three programs to patients, 10 % of them ill, and calibrations at equal class shares."""
    import numpy as np
    import pandas as pd

    from mixent import Calibration
    from mixent.datasets import simulate_votes

    votes = simulate_votes(
        N_PATIENTS,
        priors=(0.9, 0.1),
        accuracy=(0.85, 0.8, 0.75),
        correlation=0.5,
        n_calibration=200,
        n_sources=3,
        abstain=0.05,
        random_state=3,
    )
    label = {0: "healthy", 1: "ill", None: None}
    programs = dict(zip(votes.answers, ("program A", "program B", "program C")))
    answers = {programs[name]: [label[answer] for answer in given] for name, given in votes.answers.items()}
    calibrations = {}
    for name, (truth, given) in votes.labelled.items():
        answered = np.array([answer is not None for answer in given])
        calibrations[programs[name]] = Calibration.from_predictions(
            [label[y] for y in truth[answered]], [label[answer] for answer in given[answered]]
        )
    return pd.DataFrame(answers), calibrations
