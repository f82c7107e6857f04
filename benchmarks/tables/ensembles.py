"""Table "ensembles": Tables 3.3, 3.4, 3.5 and 3.7 of document 004, boosted Gaussian naive Bayes and its combiners.

Each combiner stands in two settings. "004": it learns from the outputs of the stages on their own training rows, as in
the document. Without a mark: out of fold, in five inner folds, which is the default. The document has ten times ten
folds; how many were run stands in the table. A setting "5x2" is five times two folds, for the F test of Table 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.ensembles_combiners import (
    SEED,
    SIZES,
    Combiner,
    OnOutputs,
    Peer,
    Stack,
    Votes,
    adaboost,
    hmm,
    lvme,
    sime,
    weightboost,
)
from benchmarks.tables.printed import ENSEMBLES, F_TESTS, HMM_BOOSTING
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Printed, Setting, Table
from mixent.evaluate.paired import five_by_two_f
from mixent.evaluate.scores import log_loss

ADA, SKLEARN, MLP, SVM, STACKING = "Ada", "AdaBoost, sklearn", "MLP, 004", "SVM, 004", "stacking, sklearn"
SIME, LVME, SIME_004, LVME_004 = "SiME", "LvME", "SiME, 004", "LvME, 004"
LVME_CLASS, LVME_POOLED = "LvME by class, 004", "LvME pooled, 004"
IDB, IDB_SIME, IDB_LVME = "IdB", "SiME of IdB", "LvME of IdB"
IDB_SIME_004, IDB_LVME_004 = "SiME of IdB, 004", "LvME of IdB, 004"
HMM, HMM_004 = "HMM", "HMM, 004"
HIDDEN = 16
TESTED = 4.74  # 95 % point of F(10, 5)
SETS = {"pima": 2, "bupa": 2, "sonar": 2, "ionosphere": 2, "wine": 2, "segment": 1, "satimage": 1}  # repeats
HALVED = ("pima", "sonar", "ionosphere", "segment")
TWO_CLASSES = ("pima", "bupa", "sonar", "ionosphere")
HARD = (SVM,)  # no probabilities
RIVALS = (ADA, IDB, MLP, SVM)
TABLE_3_3, TABLE_3_4, TABLE_3_7 = "document 004, table 3.3", "document 004, table 3.4", "document 004, table 3.7"
NOTES = (
    "error % at each ensemble size, mean over folds, beside the printed; log-loss of the largest.",
    f"{SKLEARN}: SAMME on weights; {STACKING}: its LogisticRegression on the stages' out-of-fold probabilities, one",
    "boosting being cut to each size. IdB: WeightBoost, the default beta; the document took the best of the test rows.",
    f"{MLP}: {HIDDEN} hidden units, cross-entropy (document: 8 to 25, by test error; squared error). {SVM}: C = 1.",
    "LvME: one mixture per class, responsibilities over the components of all. By class: within each class's mixture,",
    "for its own multipliers alone, as in the document. Pooled: one mixture of all rows, without their classes.",
    "Ours have a prior on multipliers, chosen in folds at 10, 20 and 100 stages (50 and 70 take the last one's); the",
    "document stops IIS by hand.",
    "minus Ada: over the same folds, largest size, ± s.e. corrected for shared rows (Nadeau-Bengio); p two-sided.",
    "mixture alone: the classifier that LvME's cells are components of. agreement: how often two stages decide alike.",
    "Table 3.7 prints no ensemble size, and its sonar and liver look swapped; it stands beside size 100.",
)


# --- methods ----------------------------------------------------------------------------------------------------------


def network() -> Any:
    return MLPClassifier((HIDDEN,), max_iter=500, random_state=SEED)


def machine() -> Any:
    return LinearSVC(random_state=SEED)


def logistic() -> Any:
    return LogisticRegression(max_iter=1000)


def methods_at(sizes: Sequence[int]) -> dict[str, Callable[[], Combiner]]:
    """In the order of the document's tables, which is that of their cost; AdaBoost's stages, then WeightBoost's."""
    at: dict[str, Any] = {"sizes": sizes}
    made: dict[str, Callable[[], Combiner]] = {
        ADA: partial(Votes, adaboost, **at),
        SKLEARN: partial(Peer, **at),
        MLP: partial(OnOutputs, adaboost, network, held=False, **at),
        SVM: partial(OnOutputs, adaboost, machine, held=False, **at),
        STACKING: partial(OnOutputs, adaboost, logistic, held=True, **at),
        SIME_004: partial(sime, adaboost, held=False, **at),
        SIME: partial(sime, adaboost, held=True, **at),
        LVME_004: partial(lvme, adaboost, held=False, **at),
        LVME: partial(lvme, adaboost, held=True, **at),
        LVME_CLASS: partial(lvme, adaboost, held=False, regions="class", **at),
        LVME_POOLED: partial(lvme, adaboost, held=False, regions="pooled", **at),
        HMM: partial(hmm, adaboost, held=True, **at),
        HMM_004: partial(hmm, adaboost, held=False, **at),
        IDB: partial(Votes, weightboost, **at),
        IDB_SIME_004: partial(sime, weightboost, held=False, **at),
        IDB_SIME: partial(sime, weightboost, held=True, **at),
        IDB_LVME_004: partial(lvme, weightboost, held=False, **at),
        IDB_LVME: partial(lvme, weightboost, held=True, **at),
    }
    return made


def named(made: Mapping[str, Callable[[], Combiner]]) -> dict[str, Make]:
    return {name: _ignoring_data(make) for name, make in made.items()}


def _ignoring_data(make: Callable[[], Combiner]) -> Make:
    return lambda data: make()


FOR_F = (ADA, IDB, MLP, SVM, SIME_004, SIME, LVME_004, LVME)


# --- measures ---------------------------------------------------------------------------------------------------------


def error_at(size: int) -> Callable[[Combiner, Any, np.ndarray], float | None]:
    return lambda model, X, y: model.error(size, X, y)


def n_cells(model: Combiner) -> float | None:
    cells = model.cells if isinstance(model, Stack) else None
    return None if cells is None else float(len(cells.names))


def mixture_log_loss(model: Combiner, X: Any, y: np.ndarray) -> float | None:
    """Of the mixtures alone, as a classifier; None where they know of no classes."""
    cells = model.cells if isinstance(model, Stack) else None
    if cells is None or cells.component_class is None:
        return None
    mixture = cells.mixture
    return float(log_loss(y, mixture.predict_proba(X[:, list(cells.columns)]), mixture.classes_))


def mixture_error(model: Combiner, X: Any, y: np.ndarray) -> float | None:
    """Likewise, in %."""
    cells = model.cells if isinstance(model, Stack) else None
    if cells is None or cells.component_class is None:
        return None
    return 100.0 * float(np.mean(cells.mixture.predict(X[:, list(cells.columns)]) != y))


def agreement(model: Combiner, X: Any, y: np.ndarray) -> float | None:
    """How often two stages decide alike, in %; of votes only, since it is the same for all that combine them."""
    if not isinstance(model, Votes):
        return None
    proba = model.outputs.of(X)
    counts = np.eye(proba.shape[2])[proba.argmax(axis=2)].sum(axis=0)  # (n, C) stages for each class
    m = len(proba)
    return 100.0 * float(np.mean((counts * (counts - 1)).sum(axis=1) / (m * (m - 1)))) if m > 1 else 100.0


def printed_values() -> dict[tuple[str, str, str], Printed]:
    """Beside both settings of a method, where it has two."""
    beside = {"Ada": (ADA, SKLEARN), "MLP": (MLP,), "SVM": (SVM,), "SiME": (SIME, SIME_004)}
    beside |= {
        "LvME": (LVME, LVME_004, LVME_CLASS, LVME_POOLED),
        "IdB": (IDB,),
        "SiME of IdB": (IDB_SIME, IDB_SIME_004),
        "LvME of IdB": (IDB_LVME, IDB_LVME_004),
    }
    results: dict[tuple[str, str, str], Printed] = {}
    for name, by_method in ENSEMBLES.items():
        for method, values in by_method.items():
            source = TABLE_3_4 if "IdB" in method else TABLE_3_3
            for ours in beside[method]:
                results |= {(name, ours, f"error_{n}"): Printed(v, source) for n, v in zip(SIZES, values)}
    for name, (_, value) in HMM_BOOSTING.items():
        results |= {(name, ours, f"error_{SIZES[-1]}"): Printed(value, TABLE_3_7) for ours in (HMM, HMM_004)}
    return results


# --- view -------------------------------------------------------------------------------------------------------------


def show(table: Table, result: Found, code: str, console: Console) -> None:
    whole = {s: by for s, by in result.items() if not is_halved(s) and any(by.values())}
    halved = {s: by for s, by in result.items() if is_halved(s) and any(by.values())}
    for setting, by in whole.items():
        console.print(_sizes(table, setting, by))
    if whole:
        console.print(_ahead(whole))
    if halved:
        console.print(f_tests(halved))
    for note in NOTES:
        console.print(f"* {note}", markup=False, highlight=False)
    print_notes(table, result, code, console)


def is_halved(setting: Setting) -> bool:
    return setting.name.endswith("_5x2")


def _sizes(table: Table, setting: Setting, by: Mapping[str, list[dict]]) -> Grid:
    """Table 3.3 and 3.4: errors beside the printed."""
    columns = [text for n in SIZES for text in (str(n), "004")]
    grid = Grid("method", *columns, "sd", "log-loss", "minus Ada", "p", "folds")
    grid.title = f"{setting.name}: error % by ensemble size"
    for method, records in by.items():
        if records:
            grid.add_row(method, *_errors(table, setting.name, method, records), *_rest(method, records, by))
    return grid


def _errors(table: Table, name: str, method: str, records: list[dict]) -> list[str]:
    cells = []
    for n in SIZES:
        mean = mean_sd(records, f"error_{n}")[0]
        printed = table.printed.get((name, method, f"error_{n}"))
        cells += [f"{mean:.2f}" if mean == mean else "", f"{printed.value:.2f}" if printed else ""]
    return cells


def _rest(method: str, records: list[dict], by: Mapping[str, list[dict]]) -> list[str]:
    mean, _, n = mean_sd(records, "log_loss")
    loss = "" if method in HARD or not n else f"{mean:.3f}"
    spread = mean_sd(records, f"error_{SIZES[-1]}")[1]
    failed = len(records) - mean_sd(records, "error")[2]
    folds = str(len(records)) + f", {failed} failed" * bool(failed)
    gap = difference(records, by.get(ADA, []), "error")
    if method == ADA or not by.get(ADA) or gap.df < 1:
        return [f"{spread:.2f}", loss, "", "", folds]
    return [f"{spread:.2f}", loss, f"{gap.mean:+.2f} ± {gap.se:.2f}", f"{gap.p_value:.3f}", folds]


def _ahead(result: Found) -> Grid:
    """Where LvME is not ahead of AdaBoost, and what there is to be seen."""
    heads = ("LvME - Ada", "LvME, 004 - Ada", "SiME - Ada", "stages", "agreement %", "cells", "mixture alone")
    grid = Grid("set", *heads, "its log-loss", "LvME log-loss", "SiME log-loss", "LvME ahead")
    grid.title = f"the largest size ({SIZES[-1]})"
    for setting, by in result.items():
        ada = by.get(ADA, [])
        differences = {m: difference(by.get(m, []), ada, "error") for m in (LVME, LVME_004, SIME)}
        texts = [f"{gap.mean:+.2f} ± {gap.se:.2f}" if gap.mean == gap.mean else "" for gap in differences.values()]
        seen = [_mean(ada, "stages", 0), _mean(ada, "agreement", 1), _mean(by.get(LVME, []), "cells", 1)]
        seen += [_mean(by.get(LVME, []), "mixture_error", 2), _mean(by.get(LVME, []), "mixture_log_loss", 3)]
        losses = [_mean(by.get(m, []), "log_loss", 3) for m in (LVME, SIME)]
        grid.add_row(setting.name, *texts, *seen, *losses, verdict(differences[LVME].mean, differences[LVME].p_value))
    return grid


def verdict(mean: float, p_value: float) -> str:
    if mean != mean:
        return ""
    return ("yes" if mean < 0 else "no") + (", beyond noise" if p_value < 0.05 else ", within noise")


def _mean(records: list[dict], metric: str, digits: int) -> str:
    mean, _, n = mean_sd(records, metric)
    return f"{mean:.{digits}f}" if n else ""


@dataclass(frozen=True)
class Tested:
    """An F statistic of error rates, and who was ahead."""

    f: float
    mean: float  # difference of errors, points

    def __str__(self) -> str:
        return f"{self.f:.2f}{'*' if self.f > TESTED else ''} ({self.mean:+.1f})"


def f_test(first: list[dict], second: list[dict]) -> Tested | None:
    """5x2cv F; None until all ten folds are there."""
    differences = np.full((5, 2), np.nan)
    errors = [{(r["repeat"], r["fold"]): r["error"] for r in records if not r["failed"]} for records in (first, second)]
    for place in errors[0].keys() & errors[1].keys():
        differences[place] = 100.0 * (errors[0][place] - errors[1][place])
    if np.isnan(differences).any():
        return None
    return Tested(five_by_two_f(differences).f, float(differences.mean()))


def f_tests(result: Found) -> Grid:
    """Table 3.5: printed statistics below ours."""
    grid = Grid("set", "method", *(f"- {rival}" for rival in RIVALS))
    grid.title = f"5x2cv F (mean difference of errors), * above {TESTED}; the printed F below"
    for setting, by in result.items():
        grid.add_section()
        for method in (SIME_004, SIME, LVME_004, LVME):
            cells = [f_test(by.get(method, []), by.get(rival, [])) for rival in RIVALS]
            grid.add_row(setting.name, method, *("" if cell is None else str(cell) for cell in cells))
        for method, values in F_TESTS[setting.dataset].items():
            grid.add_row("", f"{method}, printed", *("-" if v is None else f"{v:.2f}" for v in values))
    return grid


class EnsemblesTable(Table):
    """Halves are for the F test alone, at one size; chains are for two classes, as in the document."""

    def methods_of(self, setting: Setting) -> Mapping[str, Make]:
        if is_halved(setting):
            made = methods_at(SIZES[-1:])
            return named({m: made[m] for m in FOR_F})
        absent = () if setting.name in TWO_CLASSES else (HMM, HMM_004)
        return named({m: make for m, make in methods_at(SIZES).items() if m not in absent})


ENSEMBLES_TABLE = EnsemblesTable(
    name="ensembles",
    settings=(
        *(Setting(name, 1 if name == "satimage" else 10, repeats) for name, repeats in SETS.items()),
        *(Setting(f"{name}_5x2", 2, 5, data=name) for name in HALVED),
    ),
    methods=named(methods_at(SIZES)),
    measures={"stages": lambda model: float(model.n_stages), "cells": n_cells},
    scores={
        **{f"error_{n}": error_at(n) for n in SIZES},
        "mixture_error": mixture_error,
        "mixture_log_loss": mixture_log_loss,
        "agreement": agreement,
    },
    printed=printed_values(),
    quick=("wine",),
    view=show,
    peers=(SKLEARN, MLP, SVM, STACKING),
)
