"""Accuracy of default mixtures on all class sets of ../shared/data, before and after a change.

    python -m benchmarks.default_accuracy                   25 sets, "mixture" and "shared mixture"
    python -m benchmarks.default_accuracy --beside FILE     with the store of the code before a change
    python -m benchmarks.default_accuracy --show            the tables of the store, without a run
    python -m benchmarks.default_accuracy --methods "logistic regression" "linear MED" --peer "logistic regression"

With `--peer`, a table has the log-loss of the methods beside that of one of them, on the folds in which both worked.
The mark is 1.5 times the peer's, or .02 nats above it, whichever is larger.

Five stratified folds, and two of sets with more than 3,000 rows (splice, dna_statlog, waveform, satimage, mushroom);
all columns, with categories and missing values. Stores are described in `stored_folds`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.stored_folds import Key, Record, Stores, Trial, failures, parser_of, run, stores_of
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.comparison import names_of
from benchmarks.tables.data import Dataset, load, manifest
from benchmarks.tables.markdown import table_lines
from mixent.base.folds import stratified_folds
from mixent.evaluate.runner import splits_of

METHODS = ("mixture", "shared mixture")
FOLDS, LONG, FEWER = 5, 3_000, 2
TIMES_PEER, ABOVE_PEER = 1.5, 0.02  # the mark: times, or nats above, the log-loss of a peer
METRICS = {"error": ("error, %", 1), "log_loss": ("log-loss", 3), "cpu_seconds": ("processor s", 1)}


def trials_of(data: Dataset, n_folds: int) -> Iterator[Trial]:
    """The folds of a set."""
    for split in splits_of(stratified_folds(data.y, folds=n_folds)):
        place = {"set": data.name, "kind": "clean", "level": 0, "n_folds": n_folds, "fold": split.fold}
        yield Trial(place, data.X, data.y, split)


def common_folds(stores: Stores, method: str) -> dict[str, list[list[Record]]]:
    """By set, the records of a method in each store, of the folds in which it worked in all of them."""
    worked = [
        {k: r for k, r in store.items() if r["method"] == method and not r["failed"]} for store in stores.values()
    ]
    common: dict[str, list[list[Record]]] = {}
    for key in worked[0]:
        if all(key in store for store in worked):
            by_store = common.setdefault(key[0], [[] for _ in worked])
            for records, store in zip(by_store, worked):
                records.append(store[key] | {"repeat": store[key]["n_folds"]})  # `difference` pairs by repeat and fold
    return common


def table(stores: Stores, method: str) -> list[str]:
    """Means over the folds of each set and over the sets, and the differences of two stores with standard errors."""
    rows, all_means = [], []
    for name, records in common_folds(stores, method).items():
        means = np.array([[mean_sd(of_store, metric)[0] for of_store in records] for metric in METRICS])
        differences = [str(difference(records[-1], records[0], metric)) for metric in METRICS]
        rows.append([name, str(len(records[0])), *_cells(means, differences)])
        all_means.append(means)
    if rows:
        means = np.mean(all_means, axis=0)  # (metrics, stores)
        rows.append([f"mean of {len(rows)} sets", "", *_cells(means, [f"{m[-1] - m[0]:+.3f}" for m in means])])
    names = [f", {name}" for name in stores] + [", difference"] if len(stores) > 1 else [""]
    heads = [title + name for title, _ in METRICS.values() for name in names]
    return [f"Default {method}", "", *table_lines(["set", "folds", *heads], rows)]


def peer_table(stores: Stores, methods: list[str], peer: str) -> list[str]:
    """Log-loss of every method and, in brackets, of the peer on the same folds; and how many sets miss the mark.

    A dash stands where no fold of both worked.
    """
    heads = [f"{method}, {name}" if len(stores) > 1 else method for method in methods for name in stores]
    columns = [_beside_peer(store, method, peer) for method in methods for store in stores.values()]
    sets = list(dict.fromkeys(key[0] for store in stores.values() for key in store))
    rows = [[name, *(_beside(column[name]) if name in column else "-" for column in columns)] for name in sets]
    means = [np.mean(list(column.values()), axis=0) if column else np.full(2, np.nan) for column in columns]
    rows.append(["mean", *(f"{mine:.3f} ({other:.3f}), {len(c)} sets" for (mine, other), c in zip(means, columns))])
    rows.append(["sets that miss the mark", *(str(sum(_missed(*pair) for pair in c.values())) for c in columns)])
    return [f"Log-loss, beside {peer}", "", *table_lines(["set", *heads], rows)]


def _beside_peer(store: dict[Key, Record], method: str, peer: str) -> dict[str, tuple[float, float]]:
    """By set, the mean log-loss of a method and of the peer."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for key, record in store.items():
        other = store.get((*key[:-1], peer))
        if key[-1] == method and other is not None and not record["failed"] and not other["failed"]:
            pairs.setdefault(key[0], []).append((record["log_loss"], other["log_loss"]))
    return {name: tuple(np.mean(of_folds, axis=0)) for name, of_folds in pairs.items()}


def _missed(mine: float, other: float) -> bool:
    return mine > max(TIMES_PEER * other, other + ABOVE_PEER)


def _beside(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.3f} ({pair[1]:.3f})" + (" missed" if _missed(*pair) else "")


def _cells(means: np.ndarray, differences: list[str]) -> Iterator[str]:
    """The means of every metric, followed by their difference where there are two stores."""
    for of_stores, change, (_, digits) in zip(means, differences, METRICS.values()):
        yield from (f"{mean:.{digits}f}" for mean in of_stores)
        if len(of_stores) > 1:
            yield change


def main(arguments: list[str] | None = None) -> list[str]:
    """Run what the store does not have; print and return the lines of the tables."""
    parser = parser_of(__doc__.splitlines()[0], "default_accuracy.jsonl")
    parser.add_argument("--peer", metavar="METHOD", help="the method whose log-loss is the mark for the others")
    asked = parser.parse_args(arguments)
    methods = asked.methods or METHODS
    if not asked.show:
        sizes = {name: manifest(asked.data)[name].get("rows", 0) for name in asked.sets or names_of(asked.data)}
        for name in sorted(sizes, key=sizes.__getitem__):
            data = load(name, asked.data, mixed=True)
            n_folds = asked.folds or (FEWER if len(data.y) > LONG else FOLDS)
            run(trials_of(data, n_folds), methods, asked.out, asked.limit)
    stores = stores_of(asked)
    lines = [line for method in methods for line in table(stores, method)]
    if asked.peer is not None:
        lines += peer_table(stores, [method for method in methods if method != asked.peer], asked.peer)
    lines += failures(stores)
    print("\n".join(lines))
    return lines


if __name__ == "__main__":
    main()
