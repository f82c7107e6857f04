"""Table "waveform": what training for the posterior brings, few rows and many.

Ten random splits with 300 training rows and ten with 2500, the other rows for testing; split i is
`default_rng(i).permutation(5000)`. Diagonal covariances, the default prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables.compare import Difference, difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Setting, Table
from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.options import Conditional, MinimumError

MODELS = {
    "3 shared": (SharedMixtureClassifier, 3),
    "6 shared": (SharedMixtureClassifier, 6),
    "1 per class": (MixtureClassifier, 1),
    "2 per class": (MixtureClassifier, 2),
}
LIKELIHOOD = "likelihood"
OBJECTIVES: dict[str, dict[str, Any]] = {
    LIKELIHOOD: {},
    "conditional": {"training": "conditional"},
    "conditional, early stop": {"training": Conditional(validation=0.2)},
    "conditional, L-BFGS": {"training": Conditional(solver="lbfgs")},
    "error": {"training": "error"},
    "error, early stop": {"training": MinimumError(validation=0.2)},
}


def trained(model: type, n_components: int, options: dict[str, Any]) -> Make:
    def make(data: Dataset) -> Any:
        return model(n_components, "VVI", **options, random_state=0, n_jobs=1)

    return make


def name_of(model: str, objective: str) -> str:
    return f"{model}: {objective}"


def show(table: Table, result: Found, code: str, console: Console) -> None:
    for setting, by in result.items():
        if any(by.values()):
            console.print(_splits(setting, by))
    print_notes(table, result, code, console)


def _splits(setting: Setting, by: Mapping[str, list[dict]]) -> Grid:
    columns = ("error %", "- likelihood", "p", "p plain", "log-loss", "- likelihood", "p", "p plain")
    grid = Grid("model", "objective", *columns, "passes", "s / fit")
    grid.title = (
        f"{setting.name}: mean of {setting.folds} splits; difference ± s.e. and p of the paired t-test, "
        "corrected (Nadeau-Bengio) and plain"
    )
    for model in MODELS:
        grid.add_section()
        plain = by.get(name_of(model, LIKELIHOOD), [])
        for objective in OBJECTIVES:
            records = by.get(name_of(model, objective), [])
            if records:
                grid.add_row(model, objective, *_cells(records, None if objective == LIKELIHOOD else plain))
    return grid


def _cells(records: list[dict], plain: list[dict] | None) -> list[str]:
    cells = []
    for metric, digits in (("error", 2), ("log_loss", 4)):
        cells.append(f"{mean_sd(records, metric)[0]:.{digits}f}")
        if plain is None:
            cells += ["", "", ""]
            continue
        differences = [difference(records, plain, metric, corrected=corrected) for corrected in (True, False)]
        cells += [f"{differences[0].mean:+.{digits}f} ± {differences[0].se:.{digits}f}", *map(_p_value, differences)]
    return [*cells, f"{mean_sd(records, 'passes')[0]:.0f}", f"{mean_sd(records, 'fit_seconds')[0]:.2f}"]


def _p_value(gap: Difference) -> str:
    p = gap.p_value
    return f"{p:.3f}" if p >= 0.001 else "<.001" if p < 0.001 else "-"


WAVEFORM = Table(
    name="waveform",
    settings=tuple(Setting(f"waveform_{n}", repeats=1, train_rows=n, data="waveform") for n in (300, 2500)),
    methods={
        name_of(model, objective): trained(*kind, options)
        for model, kind in MODELS.items()
        for objective, options in OBJECTIVES.items()
    },
    measures={"passes": lambda model: float(model.run_.n_passes)},
    quick=("waveform_300",),
    view=show,
)
