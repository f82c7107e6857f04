"""Table "fusion" on the terminal: a grid for each printed table, the printed values in brackets behind ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables.compare import mean_sd
from benchmarks.tables.ensembles import TESTED, Tested, f_test
from benchmarks.tables.fusion_cases import (
    AUTO,
    CASES,
    COPIES,
    EXT_I,
    EXT_I_004,
    EXT_II,
    EXT_II_004,
    IT,
    IT_004,
    POOL,
    TILDE,
    TILDE_004,
    Case,
    level_of,
)
from benchmarks.tables.printed_fusion import (
    BATCH_PERCENT,
    MISSING,
    TABLE_42,
    TABLE_43,
    TABLE_44,
    TABLE_45,
    TABLE_46,
    TABLE_47,
    TABLE_61,
    Shifted,
)
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Table

Records = Mapping[str, Mapping[str, list[dict]]]  # by case and method
NOTES = (
    "error %, mean over ten halves (Satellite: ten batches), the document's in brackets; F: 5x2cv F, ours and theirs,",
    f"* above {TESTED}. 004: confusions of the training rows, as there; without a mark: out of fold.",
    "gains: the class whose share grows; of more than two classes all shares are tilted. M: ours, and the printed.",
    "Columns drawn and, but for Diabetes, priors are not in the document: see the head of benchmarks/tables/fusion.py.",
    "prior: half the summed distance of the estimated priors from the batch's shares, in %.",
    "document, Diabetes at M 2.58: IT estimates .29 of .2, which is 9 %.",
)


def show(table: Table, result: Found, code: str, console: Console) -> None:
    records = {setting.name: by for setting, by in result.items() if any(by.values())}
    for grid in grids(records):
        if grid.row_count:
            console.print(grid)
    for note in NOTES:
        console.print(f"* {note}", markup=False, highlight=False)
    print_notes(table, result, code, console)


def grids(records: Records) -> Iterable[Grid]:
    against_fixed = (("ml-sum", "sum"), ("ml-sum", "product"), ("ml-product", "sum"), ("ml-product", "product"))
    ml = ("ml-sum", "sum", "ml-product", "product")
    yield shifted(records, "4.2: ML and fixed rules", TABLE_42, ml, against_fixed)
    fixed = ((IT_004, "sum"), (IT_004, "product"))
    yield shifted(records, "4.3: IT and fixed rules", TABLE_43, (IT_004, "sum", "product"), fixed, (IT,))
    others = (IT, "composite", POOL, AUTO, "dawid-skene")
    like = ((IT_004, "ml-sum"), (IT_004, "ml-product"))
    yield shifted(records, "4.4: IT and ML", TABLE_44, (IT_004, "ml-sum", "ml-product"), like, others)
    yield copies(records)
    yield hard(records)
    yield missing(records)
    yield batches(records)
    extended = (EXT_I, EXT_II_004, EXT_II, IT)
    versus = ((EXT_I_004, IT_004), (EXT_I, IT))
    yield shifted(records, "6.1: Extensions", TABLE_61, (EXT_I_004, IT_004, "sum", "product"), versus, extended)
    for metric, title, digits in (("error", "error %", 2), ("log_loss", "log-loss", 3), ("prior_error", "prior", 1)):
        yield every(records, metric, title, digits)


def beside(ours: float, printed: float | None = None, digits: int = 2) -> str:
    text = f"{ours:.{digits}f}" if ours == ours else "-"
    return text if printed is None else f"{text} ({printed:.{digits}f})"


def error(records: Records, name: str, method: str, metric: str = "error") -> float:
    return mean_sd(records.get(name, {}).get(method, []), metric)[0]


def f_of(records: Records, name: str, pair: tuple[str, str]) -> Tested | None:
    """None where there are not five times two halves."""
    first, second = (records.get(name, {}).get(method, []) for method in pair)
    halves = {(r["n_folds"], r["repeat"] < 5) for r in [*first, *second]}
    return f_test(first, second) if halves == {(2, True)} else None


def shifted(
    records: Records,
    title: str,
    printed: Mapping[str, tuple[Shifted, ...]],
    methods: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    more: Sequence[str] = (),
) -> Grid:
    """A printed table of mismatches: its methods, then those of ours it does not have, then F statistics."""
    grid = Grid("set", "gains", "M", *methods, *more, *(f"F {a} / {b}" for a, b in pairs))
    grid.title = f"Table {title}"
    for data, rows in printed.items():
        grid.add_section()
        for m, gains, errors, statistics in rows:
            name = level_of(data, gains, m)
            if name not in records:
                continue
            cells = [beside(error(records, name, m), value) for m, value in zip(methods, errors, strict=True)]
            cells += [beside(error(records, name, m)) for m in more]
            text = statistics or (None,) * len(pairs)
            cells += [f_cell(f_of(records, name, pair), value) for pair, value in zip(pairs, text, strict=True)]
            grid.add_row(data, gains or "", f"{CASES[name].mismatch:g} ({m:g})", *cells)
    return grid


def f_cell(result: Tested | None, printed: float | None) -> str:
    text = "-" if result is None else f"{result.f:.2f}{'*' if result.f > TESTED else ''}"
    return text if printed is None else f"{text} ({printed:g})"


def copies(records: Records) -> Grid:
    """Table 4.5; the document has another split for each number of copies, and so another error without any."""
    heads = [text for k in COPIES for text in (f"+{k}", f"+{k} declared")]
    grid = Grid("set", "method", "5", *heads)
    grid.title = "Table 4.5: copies of the second weakest classifier (document: error without -> with)"
    for case in CASES.values():
        if case.kind != "copies" or case.name not in records:
            continue
        grid.add_section()
        for method, record in records[case.name].items():
            if record:
                printed = TABLE_45[case.data].get("min-divergence" if method == IT_004 else method)
                cells = [_copies(record, k, printed[i] if printed else None) for i, k in enumerate(COPIES)]
                grid.add_row(case.data, method, beside(mean_sd(record, "error")[0]), *(c for two in cells for c in two))
    return grid


def _copies(results: list[dict], k: int, printed: tuple[float, float] | None) -> tuple[str, str]:
    text = beside(mean_sd(results, f"copies_{k}")[0])
    if printed is not None:
        text += f" ({printed[0]:.2f} -> {printed[1]:.2f})"
    return text, beside(mean_sd(results, f"declared_{k}")[0])


def hard(records: Records) -> Grid:
    """Table 4.6; a mean of hard decisions is a vote."""
    more = (IT, "ml-product", "composite", POOL, AUTO, "dawid-skene")
    grid = Grid(
        "set", "gains", "M", "one SVM", IT_004, "majority", *more, f"F {IT_004} / majority", "F auto / majority"
    )
    grid.title = "Table 4.6: hard decisions of linear SVMs"
    for data, rows in TABLE_46.items():
        for m, gains, alone, it, vote, statistic in rows:
            name = Case("svm", data, gains, m).name
            if name not in records:
                continue
            cells = [beside(error(records, name, "majority", "members_error"), alone)]
            cells += [beside(error(records, name, m), value) for m, value in ((IT_004, it), ("majority", vote))]
            cells += [beside(error(records, name, m)) for m in more]
            cells += [f_cell(f_of(records, name, (IT_004, "majority")), statistic)]
            cells += [f_cell(f_of(records, name, (AUTO, "majority")), None)]
            grid.add_row(data, gains, f"{m:g}", *cells)
    return grid


def missing(records: Records) -> Grid:
    """The text of section 4.4."""
    grid = Grid("set without", "method", "error", "prior of the missing class", "log-loss")
    grid.title = "Missing classes: R (4.13) and R~ (4.11)"
    for data, (label, safe, other) in MISSING.items():
        grid.add_section()
        printed = {IT_004: safe, TILDE_004: other, IT: safe, TILDE: other}
        name = Case("missing", data, label).name
        for method, folds in records.get(name, {}).items():
            if folds:
                prior, wrong = printed.get(method, (None, None))
                texts = [beside(mean_sd(folds, "error")[0], wrong), beside(mean_sd(folds, "missing_prior")[0], prior)]
                grid.add_row(f"{data}: {label}", method, *texts, beside(mean_sd(folds, "log_loss")[0], None, 3))
    return grid


def batches(records: Records) -> Grid:
    grid = Grid("set", "method", *(f"{percent} %" for percent in BATCH_PERCENT))
    grid.title = "Table 4.7: size of the batch, as a share of the test half"
    for case in CASES.values():
        if case.kind != "batches" or case.name not in records:
            continue
        grid.add_section()
        printed = TABLE_47[case.data][1]
        for method, record in records[case.name].items():
            if record:
                values = printed.get("min-divergence" if method == IT_004 else method, (None,) * len(BATCH_PERCENT))
                metrics = [f"batch_{percent}" for percent in BATCH_PERCENT[:-1]] + ["error"]
                texts = [beside(mean_sd(record, metric)[0], v) for metric, v in zip(metrics, values, strict=True)]
                grid.add_row(case.data, method, *texts)
    return grid


def every(records: Records, metric: str, title: str, digits: int) -> Grid:
    """Ours alone: all methods on all shifted batches, and the means of those that were run on all."""
    names = [name for name in records if CASES[name].kind == "shift"]
    methods = list(dict.fromkeys(method for name in names for method, record in records[name].items() if record))
    grid = Grid("case", *methods)
    grid.title = f"All methods: {title}"
    rows = {name: [error(records, name, method, metric) for method in methods] for name in names}
    for name, values in rows.items():
        grid.add_row(name, *("" if v != v else f"{v:.{digits}f}" for v in values))
    if len(names) > 1:
        grid.add_section()
        means = np.mean(list(rows.values()), axis=0)  # NaN where a method was not run on some
        grid.add_row("mean", *("" if v != v else f"{v:.{digits}f}" for v in means))
    return grid
