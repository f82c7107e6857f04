"""Table "fusion": Tables 4.2 to 4.7 and 6.1 of document 004, five classifiers fused on a batch of other priors.

Five naive Bayes classifiers (Gaussian, or of categories), each on columns drawn at random, five times two halves; the
test half is drawn again with replacement at other priors, and as large as it was. Satellite keeps its own split, and
its test rows are drawn ten times. "004": confusions measured on the training rows, as the document does; without a mark
out of fold, in five inner folds, which is what we recommend.

What could not be known:

* which columns were drawn: they are drawn anew for every training half, in the printed numbers (Table 4.1). The
  document has 7 columns of Diabetes and 33 of Satellite, and five classes of that; ours have 8, 36 and six. Ionosphere
  is not in Table 4.1: 29 to 33 of its 34;
* the priors: the mismatch M is all that is printed. Of two classes it leaves two priors. For Diabetes the text gives
  that class 1 gains (.2, .8); elsewhere that class gains whose fixed rules come nearer to the printed errors, row by
  row, since no one side explains all tables (Sonar, Liver). Of more classes the shares of the set are tilted,
  p_k ~ share_k exp(t r_k), with r the ranks of the classes in an order drawn once, and t solved for M;
* M is of the shares in the whole set, the halves being stratified; printed values near each other (2.53 to 2.58) are
  one batch here;
* how categories never seen in a class were treated: as 1e-6 of a row;
* when the document's descent had been stopped: ours go on to the minimum of R (gap 1e-4), the maximum of the
  likelihood.

SVMs are linear, C = 1, on scaled columns; a mean of their hard decisions is a vote. The copied classifier is the second
weakest on the test rows, as there, but over ten halves, where the document has one split for each number of copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tables.fusion_cases import (
    AUTO,
    CASES,
    COPIES,
    EXT_I,
    EXT_I_004,
    EXT_II,
    EXT_II_004,
    EXTENDED,
    IT,
    IT_004,
    POOL,
    SPLIT,
    TILDE,
    TILDE_004,
    Case,
    batch,
    level_of,
)
from benchmarks.tables.fusion_show import show
from benchmarks.tables.fusion_sources import Fused
from benchmarks.tables.printed_fusion import (
    BATCH_PERCENT,
    MISSING,
    SUBSPACES,
    TABLE_42,
    TABLE_43,
    TABLE_44,
    TABLE_46,
    TABLE_47,
    TABLE_61,
)
from benchmarks.tables.table import Make, Printed, Setting, Table

# --- methods ----------------------------------------------------------------------------------------------------------

MAKE: dict[str, dict[str, Any]] = {
    "sum": {"method": "sum", "scaled": False},
    "product": {"method": "product", "scaled": False},
    "ml-sum": {"method": "ml-sum", "scaled": False},
    "ml-product": {"method": "ml-product", "scaled": False},
    "composite": {"method": "composite"},
    IT_004: {"method": "min-divergence", "held": False},
    IT: {"method": "min-divergence"},
    POOL: {"method": "pool"},
    AUTO: {"method": "auto"},
    "dawid-skene": {"method": "dawid-skene"},
    EXT_I_004: {"method": "min-divergence", "held": False, "cells": "I"},
    EXT_I: {"method": "min-divergence", "cells": "I"},
    EXT_II_004: {"method": "min-divergence", "held": False, "cells": "II"},
    EXT_II: {"method": "min-divergence", "cells": "II"},
    "majority": {"method": "majority"},
    TILDE_004: {"method": "min-divergence", "held": False, "options": {"missing_class_safe": False}},
    TILDE: {"method": "min-divergence", "options": {"missing_class_safe": False}},
}
SOFT = ("sum", "product", "ml-sum", "ml-product", "composite", IT_004, IT, POOL, AUTO, "dawid-skene")
EXTENSIONS = (EXT_I_004, EXT_I, EXT_II_004, EXT_II)
HARD = ("majority", IT_004, IT, "ml-product", "composite", POOL, AUTO, "dawid-skene")
ABSENT = ("sum", "product", "ml-product", IT_004, TILDE_004, IT, TILDE, POOL, AUTO)
REPEATED = ("ml-sum", "ml-product", "composite", IT_004, IT, POOL, AUTO)
PARTS = ("ml-sum", "ml-product", IT_004, IT, POOL, AUTO)


def names_of(case: Case) -> tuple[str, ...]:
    if case.kind == "shift":
        return SOFT + EXTENSIONS * (case.name in EXTENDED)
    return {"svm": HARD, "missing": ABSENT, "copies": REPEATED, "batches": PARTS}[case.kind]


class FusionTable(Table):
    """Methods by what is asked of a batch."""

    def methods_of(self, setting: Setting) -> Mapping[str, Make]:
        case = CASES[setting.name]
        local = "svm" if case.kind == "svm" else "categorical" if setting.mixed else "gaussian"
        return {name: _maker(case.kind, local, SUBSPACES[case.data], MAKE[name]) for name in names_of(case)}


def _maker(kind: str, local: str, sizes: tuple[int, ...], options: dict[str, Any]) -> Make:
    return lambda data: Asked(local, sizes, **options, kind=kind)


@dataclass
class Asked(Fused):
    """The same, knowing what is to be measured."""

    kind: str = "shift"


# --- measures ---------------------------------------------------------------------------------------------------------


def prior_error(model: Asked, X: Any, y: np.ndarray) -> float:
    """Half the sum of the priors' distances from the shares in the batch, in %."""
    share = np.array([np.mean(y == label) for label in model.classes_])
    return 50.0 * float(np.abs(model.fuser.prior_ - share).sum())


def missing_prior(model: Asked, X: Any, y: np.ndarray) -> float | None:
    """Mean posterior of the classes that the batch does not have; None where it has all."""
    absent = ~np.isin(model.classes_, y)
    return float(model.fuser.posterior_.mean(axis=0)[absent].sum()) if absent.any() else None


def members_error(model: Asked, X: Any, y: np.ndarray) -> float:
    """Mean over the classifiers alone, in %."""
    return float(model.members_error(X, y).mean())


def copies_error(k: int, declared: bool) -> Callable[[Asked, Any, np.ndarray], float | None]:
    return lambda model, X, y: model.copies_error(X, y, k, declared=declared) if model.kind == "copies" else None


def batches_error(percent: int) -> Callable[[Asked, Any, np.ndarray], float | None]:
    return lambda model, X, y: model.batches_error(X, y, percent) if model.kind == "batches" else None


# --- printed ----------------------------------------------------------------------------------------------------------

COLUMNS = {
    "4.3": (TABLE_43, ((IT_004, IT), ("sum",), ("product",))),
    "4.2": (TABLE_42, (("ml-sum",), ("sum",), ("ml-product",), ("product",))),
    "4.4": (TABLE_44, ((IT_004, IT), ("ml-sum",), ("ml-product",))),
    "6.1": (TABLE_61, ((EXT_I_004, EXT_I), (IT_004, IT), ("sum",), ("product",))),
}


def printed_values() -> dict[tuple[str, str, str], Printed]:
    """By set, method, metric; where several tables have a value, that of the first, the others in its source."""
    results: dict[tuple[str, str, str], Printed] = {}

    def put(name: str, method: str, metric: str, value: float, number: str) -> None:
        before = results.get((name, method, metric))
        source = f"document 004, table {number}" if before is None else f"{before.source}; {number}: {value:g}"
        results[name, method, metric] = Printed(value if before is None else before.value, source)

    for number, (table, columns) in COLUMNS.items():
        for data, rows in table.items():
            for m, gains, errors, _ in rows:
                for methods, value in zip(columns, errors, strict=True):
                    for method in methods:
                        put(level_of(data, gains, m), method, "error", value, number)
    for data, hard in TABLE_46.items():
        for m, gains, alone, it, vote, _ in hard:
            name = Case("svm", data, gains, m).name
            put(name, "majority", "members_error", alone, "4.6")
            for method, value in ((IT_004, it), (IT, it), ("majority", vote)):
                put(name, method, "error", value, "4.6")
    for data, (label, safe, other) in MISSING.items():
        name = Case("missing", data, label).name
        for methods, (prior, error) in (((IT_004, IT), safe), ((TILDE_004, TILDE), other)):
            for method in methods:
                put(name, method, "error", error, "of section 4.4")
                put(name, method, "missing_prior", prior, "of section 4.4")
    for case in CASES.values():
        if case.kind == "batches":
            for method, values in TABLE_47[case.data][1].items():
                for ours in (IT_004, IT) if method == "min-divergence" else (method,):
                    for percent, value in zip(BATCH_PERCENT, values, strict=True):
                        put(case.name, ours, "error" if percent == 100 else f"batch_{percent}", value, "4.7")
    return results


def setting_of(case: Case) -> Setting:
    folds, repeats = (10, 1) if case.data == SPLIT else (2, 5)
    categories = case.data == "mushroom"
    splits = partial(batch, case=case)
    return Setting(case.name, folds, repeats, categories, categories, data=case.data, splits=splits)


FUSION = FusionTable(
    name="fusion",
    settings=tuple(map(setting_of, CASES.values())),
    methods={},
    measures={},
    scores={
        "prior_error": prior_error,
        "missing_prior": missing_prior,
        "members_error": members_error,
        **{f"copies_{k}": copies_error(k, False) for k in COPIES},
        **{f"declared_{k}": copies_error(k, True) for k in COPIES},
        **{f"batch_{percent}": batches_error(percent) for percent in BATCH_PERCENT[:-1]},
    },
    printed=printed_values(),
    quick=("pima_1_2.57", "pima_without_1"),
    view=show,
)
