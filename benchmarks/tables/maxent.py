"""Tables "continuous" and "mixed": Tables 2.1 and 2.2 of document 004, what continuous columns become.

Methods are named by `features` ("quantize" is features="bins").
"class" is the document's, and stands beside its numbers; "class, IIS" is also trained
as there: iterative scaling without a prior, stopped early. Peers are tuned on the training rows only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables import peers
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.printed import POOLED_OF_004, TABLE_21, TABLE_22, table_of_004
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Printed, Setting, Table
from mixent import MaxEntClassifier
from mixent.options import BinFeatures, ComponentFeatures

BEST, SVM = "best of [30]", "RBF SVM of 004"  # printed only
EARLY = 4e-5  # nats per row: a relative change of 1e-4 where the log-loss is 0.4
METHODS: dict[str, dict[str, Any]] = {
    "union": {},
    "union, no means": {"features": ComponentFeatures(means=False)},
    "class": {"features": ComponentFeatures("class", means=False)},
    "class, IIS": {
        "features": ComponentFeatures("class", means=False),
        "solver": "iis",
        "prior_variance": None,
        "tol": EARLY,
    },
    "pooled": {"features": ComponentFeatures("pooled", means=False)},
    "quantize": {"features": BinFeatures("uniform")},
    "moments": {"features": "moments"},
    "union, groups": {"features": ComponentFeatures(groups="auto")},
    "class, groups": {"features": ComponentFeatures("class", means=False, groups="auto")},
    "union, forward": {"selection": "bic"},
}
PEERS: dict[str, Make] = {"LR": peers.logistic, "boosting": peers.boosting}
NOTES = (
    "Folds are stratified, the same for all methods; satimage and horse_colic: their own split, s.e. over rows.",
    f"{BEST}: of 33 methods on other folds; {SVM}: width and cost chosen on the test rows. One run each.",
    "Printed ME-IIS stopped when the log-likelihood changed by less than 1e-4 of itself, a rule chosen on such data.",
    "class, IIS has no prior: a value that never occurs with a class rules it out, which costs log-loss.",
    "Means of the columns are constrained too in union, its groups and its selection; the document has no such thing.",
    "quantize: 8 uniform bins; the document took as many as BIC chose components.",
    "groups: columns correlated within the classes, found on training rows; those of the document are unknown.",
    "LR: one-hot and scaled, penalty by inner log-loss; boosting: early stopping, leaves by inner log-loss.",
)


def classifier(options: dict[str, Any]) -> Make:
    def make(data: Dataset) -> Any:
        return MaxEntClassifier(**options, random_state=0, n_jobs=1)

    return make


def show(table: Table, result: Found, code: str, console: Console) -> None:
    console.print(_methods(table, {setting: by for setting, by in result.items() if any(by.values())}))
    for note in NOTES:
        console.print(f"* {note}", markup=False, highlight=False)
    print_notes(table, result, code, console)


def _methods(table: Table, result: Found) -> Grid:
    ours = table.ours
    grid = Grid("set", "method", "error %", "004", f"- {ours}", "log-loss", f"- {ours}", "free", "s / fit", "folds")
    grid.title = (
        f"{table.name}: means over folds; difference to {ours}, same folds: mean ± s.e. (Nadeau-Bengio), "
        "* p < 0.05 two-sided; free: n_parameters_"
    )
    for setting, by in result.items():
        grid.add_section()
        for method, records in by.items():
            if records:
                grid.add_row(setting.name, method, *_cells(table, setting, method, by))
        for method in (BEST, SVM):
            if (setting.name, method, "error") in table.printed:
                grid.add_row(setting.name, method, "", _printed(table.printed[setting.name, method, "error"]))
    return grid


def _cells(table: Table, setting: Setting, method: str, by: Mapping[str, list[dict]]) -> list[str]:
    records, ours = by[method], by[table.ours]
    theirs = _printed(table.printed.get((setting.name, method, "error")))
    error, _, folds = mean_sd(records, "error")
    if not folds:
        return ["failed", theirs]
    loss, free, seconds = (mean_sd(records, metric)[0] for metric in ("log_loss", "n_parameters", "fit_seconds"))
    differences = ["" if method == table.ours else _gap(records, ours, metric) for metric in ("error", "log_loss")]
    count = f"{free:.0f}" if table.is_ours(method) else ""
    return [f"{error:.2f}", theirs, differences[0], f"{loss:.3f}", differences[1], count, f"{seconds:.2f}", str(folds)]


def _gap(records: list[dict], ours: list[dict], metric: str) -> str:
    gap, digits = difference(records, ours, metric), 2 if metric == "error" else 3
    return f"{gap.mean:+.{digits}f} ± {gap.se:.{digits}f}{'*' if gap.p_value < 0.05 else ''}"


def _printed(printed: Printed | None) -> str:
    return "" if printed is None else f"{printed.value:g}"


def _pooled() -> dict[tuple[str, str, str], Printed]:
    return {(name, "pooled", "error"): Printed(e, "document 004, 2.6.1") for name, e in POOLED_OF_004.items()}


def _table(name: str, settings: tuple[Setting, ...], printed: Mapping[tuple[str, str, str], Printed]) -> Table:
    methods = {method: classifier(options) for method, options in METHODS.items()} | PEERS
    return Table(
        name=name,
        settings=settings,
        methods=methods,
        mixed_methods=methods,
        measures={"n_parameters": n_parameters},
        printed=printed,
        quick=(settings[0].name,),
        view=show,
        peers=tuple(PEERS),
    )


def n_parameters(model: Any) -> float | None:
    return float(model.n_parameters_) if isinstance(model, MaxEntClassifier) else None


CONTINUOUS = _table(
    "continuous",
    (
        *(Setting(name) for name in ("bupa", "pima", "vehicle")),
        Setting("satimage", folds=1),
        *(Setting(name, repeats=1) for name in ("segment", "waveform")),
    ),
    _pooled()
    | table_of_004("2.1", TABLE_21, (("class", "error"), ("class, groups", "error"), (BEST, "error"), (SVM, "error"))),
)
MIXED = _table(
    "mixed",
    (
        *(Setting(name, mixed=True) for name in ("hepatitis", "crx")),
        Setting("horse_colic", folds=1, mixed=True),
        Setting("cmc", mixed=True, repeats=3),
    ),
    table_of_004("2.2", TABLE_22, (("class", "error"), ("quantize", "error"), (BEST, "error"))),
)
