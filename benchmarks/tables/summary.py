"""From raw records to the one result format: set, method, metric, mean, sd, folds, printed, source."""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchmarks.tables.compare import METRICS, mean_sd
from benchmarks.tables.store import Key, Store, key_of
from benchmarks.tables.table import Setting, Table

FIELDS = ("set", "method", "metric", "mean", "sd", "folds", "printed", "source")


def planned_records(store: Store, setting: Setting, keys: list[Key]) -> dict[str, list[dict]]:
    """Stored records of the plan, by method."""
    wanted = set(keys)
    by_method: dict[str, list[dict]] = {key[1]: [] for key in keys}
    for record in store.load(setting.name).values():
        if key_of(record) in wanted:
            by_method[record["method"]].append(record)
    return by_method


def summarize(table: Table, setting: Setting, by_method: Mapping[str, list[dict]]) -> list[dict]:
    """Result records of a set. Error is in %, log-loss in nats; a missing number is null."""
    return [
        _result(table, setting.name, method, metric, records)
        for method, records in by_method.items()
        for metric in (*METRICS, "fit_seconds", *table.measures, *table.scores)
        if records
    ]


def _result(table: Table, name: str, method: str, metric: str, records: list[dict]) -> dict:
    mean, sd, folds = mean_sd(records, metric)
    printed = table.printed.get((name, method, metric))
    tail = (printed.value, printed.source) if printed else (None, None)
    return dict(zip(FIELDS, (name, method, metric, _number(mean), _number(sd), folds, *tail)))


def _number(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
