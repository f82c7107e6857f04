"""Table "incremental": Tables 1 and 2 of document 002, mixtures grown or restarted, chosen by BIC or DIC.

Every method but the last has diagonal covariances, a number of components for each class, and the document's nested
protocol: the criterion chooses in each of nine folds, and of these choices the one with the least held-out error is
fitted to all training rows. The document leaves the most components open; here they are 8. "by DIC" is its Algorithm 1
to the letter: of the candidates for a new component, that of the best DIC joins. Elsewhere it is that of the highest
likelihood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.counted import Counted
from benchmarks.tables.data import Dataset
from benchmarks.tables.printed import tables_of_002
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Printed, Setting, Table
from mixent import MixtureClassifier
from mixent.options import Search

MOST = 8  # components of a class
SETS = ("breast_w", "heart_statlog", "heart_cleveland", "glass", "iris", "new_thyroid", "wine", "zoo")
RESTART_BIC, RESTART_DIC, GROWN_BIC, GROWN_DIC = "restart BIC", "restart DIC", "grown BIC", "grown DIC"
BY_DIC = "grown DIC, by DIC"
ROBUST, DEFAULT = "grown robust DIC (ours)", "default (ours)"
MEASURED = ("error", "n_means_variances")
CLAIMS = {
    "DIC - BIC, restart": (RESTART_DIC, RESTART_BIC),
    "DIC - BIC, grown": (GROWN_DIC, GROWN_BIC),
    "grown - restart, BIC": (GROWN_BIC, RESTART_BIC),
    "grown - restart, DIC": (GROWN_DIC, RESTART_DIC),
}


def chosen_by(growth: str, criterion: str, grow_by: str = "likelihood") -> Make:
    def make(data: Dataset) -> Counted:
        search = Search(criterion, MOST, growth=growth, grow_by=grow_by, per_class=True, nested=9)
        return Counted(MixtureClassifier("auto", "VVI", search=search, random_state=0, n_jobs=1))

    return make


def default(data: Dataset) -> Counted:
    return Counted(MixtureClassifier(random_state=0, n_jobs=1))


def n_components(model: Any) -> float:
    return float(model.n_components_.sum())


def n_means_variances(model: Any) -> float | None:
    """2 d per component, which is how 7 classes with 16 columns come to 224; only where covariances are diagonal."""
    diagonal = all(name == "VVI" for name in model.covariance_)
    return 2.0 * model.n_features_in_ * n_components(model) if diagonal else None


def printed_values() -> dict[tuple[str, str, str], Printed]:
    """Theirs beside ours; what they call incremental DIC stands beside both readings of it."""
    result = tables_of_002((RESTART_BIC, RESTART_DIC, GROWN_BIC, GROWN_DIC))
    again = {(name, BY_DIC, metric): value for (name, method, metric), value in result.items() if method == GROWN_DIC}
    return result | again


def show(table: Table, result: Found, code: str, console: Console) -> None:
    some = {setting: by for setting, by in result.items() if any(by.values())}
    console.print(_methods(table, some))
    console.print(_claims(some))
    print_notes(table, result, code, console)


def _methods(table: Table, result: Found) -> Grid:
    grid = Grid("set", "method", "acc. %", "002", "2d K", "002", "free", "K", "log-loss", "M eval.", "s / fit")
    grid.title = f"{table.name}: mean (sd) over folds; 2d K: means and variances; free: n_parameters_; K: all classes'"
    for setting, by in result.items():
        grid.add_section()
        for method, records in by.items():
            if records:
                grid.add_row(setting.name, method, *_cells(table, setting, method, records))
    return grid


def _cells(table: Table, setting: Setting, method: str, records: list[dict]) -> list[str]:
    error, sd, folds = mean_sd(records, "error")
    if not folds:
        return ["failed"]
    accuracy = f"{100 - error:.1f} ({sd:.1f})"
    counts = [_mean_sd(records, metric) for metric in ("n_means_variances", "n_parameters")]
    theirs = [_printed(table.printed.get((setting.name, method, m)), m) for m in MEASURED]
    components, loss, evaluations, seconds = (
        mean_sd(records, metric)[0] for metric in ("n_components", "log_loss", "evaluations", "fit_seconds")
    )
    rest = (f"{components:.1f}", f"{loss:.3f}", f"{evaluations / 1e6:.2f}", f"{seconds:.2f}")
    return [accuracy, theirs[0], counts[0], theirs[1], counts[1], *rest]


def _mean_sd(records: list[dict], metric: str) -> str:
    mean, sd, folds = mean_sd(records, metric)
    return f"{mean:.1f} ({sd:.1f})" if folds == sum(not r["failed"] for r in records) else "-"


def _printed(printed: Printed | None, metric: str) -> str:
    if printed is None:
        return ""
    value = 100 - printed.value if metric == "error" else printed.value
    return f"{value:.1f} ({printed.sd:.1f})"


def _claims(result: Found) -> Grid:
    """What the document concludes, on our folds."""
    grid = Grid("set", *(f"{name}: {what}" for name in CLAIMS for what in ("error", "2d K")))
    grid.title = "the document's comparisons, same folds: mean ± s.e. (Nadeau-Bengio), * p < 0.05 two-sided"
    for setting, by in result.items():
        grid.add_row(setting.name, *(_gap(by, *pair, m) for pair in CLAIMS.values() for m in MEASURED))
    return grid


def _gap(by: Mapping[str, list[dict]], first: str, second: str, metric: str) -> str:
    gap = difference(by[first], by[second], metric)
    return f"{gap.mean:+.1f} ± {gap.se:.1f}{'*' if gap.p_value < 0.05 else ''}"


INCREMENTAL = Table(
    name="incremental",
    settings=tuple(Setting(name, repeats=1) for name in SETS),
    methods={
        RESTART_BIC: chosen_by("restart", "bic"),
        RESTART_DIC: chosen_by("restart", "dic"),
        GROWN_BIC: chosen_by("incremental", "bic"),
        GROWN_DIC: chosen_by("incremental", "dic"),
        BY_DIC: chosen_by("incremental", "dic", "criterion"),
        ROBUST: chosen_by("incremental", "dic_robust"),
        DEFAULT: default,
    },
    measures={
        "n_parameters": lambda model: float(model.n_parameters_),
        "n_means_variances": n_means_variances,
        "n_components": n_components,
        "evaluations": lambda model: float(model.evaluations_),
    },
    printed=printed_values(),
    quick=("zoo",),
    view=show,
)
