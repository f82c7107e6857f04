"""Table "inference": Table 2.3 of document 004, any column, or any two, predicted from the rest.

The class is a column like any other. Criterion 1 is the error of the class; criterion 2 the mean error over columns,
each predicted from all others; criterion 3 that over every two columns, where both must be right. Every column is a
category. The document names no split; half of mushroom is near the 4000 rows it trained with.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables import peers
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.printed import TABLE_23, table_of_004
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Setting, Table
from mixent.maxent.joint import MaxEntJoint

CLASS = "class"
JOINT, BAYES = "joint", "naive Bayes"
CRITERIA = {"1: class": "error", "2: each column": "criterion_2", "3: every two": "criterion_3"}
NOTES = (
    "joint is trained once; naive Bayes anew for each column and every two, with Laplace's one, a gap being a value;",
    "LR and boosting for the class only. 2 and 3 leave out rows whose value to be predicted training never had.",
    "Means over columns count those whose value is known in some test row; a constant column (veil_type) counts, as 0.",
    "Printed: one run; folds or split are not named, nor what became of the missing values of mushroom.",
)


class ClassAsColumn:
    """A joint model as a classifier: the class joins the table as its last column."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: np.ndarray) -> ClassAsColumn:
        self.model.fit(X.assign(**{CLASS: y}))
        self.classes_ = self.model.values(CLASS)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model.predict_proba(X.assign(**{CLASS: self.classes_[0]}), CLASS)

    def mean_error(self, table: Any, n_columns: int) -> float:
        if n_columns == 2:
            return float(np.mean(list(self.model.errors_by_pair(table).values())))
        scores = self.model.accuracy_by_column(table).values()
        return float(np.mean([score.error for score in scores if score.error is not None]))


def joint(**options: Any) -> Make:
    def make(data: Dataset) -> ClassAsColumn:
        return ClassAsColumn(MaxEntJoint(**options, random_state=0, n_jobs=1))

    return make


class BayesInTurn:
    """Naive Bayes for the class; and trained anew with each column, or every two, in the class's place."""

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def fit(self, X: Any, y: np.ndarray) -> BayesInTurn:
        self.model, self.train = peers.naive_bayes(self.data).fit(X, y), X.assign(**{CLASS: y})
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model.predict_proba(X)

    def mean_error(self, table: Any, n_columns: int) -> float:
        """Over all choices of `n_columns` columns, each over the rows with values known, and known to training."""
        errors = [self._error(table, list(columns)) for columns in combinations(table.columns, n_columns)]
        return float(np.mean([error for error in errors if error is not None]))

    def _error(self, table: Any, columns: list[str]) -> float | None:
        train = self.train.dropna(subset=columns)
        test = table[np.all([table[c].isin(train[c].unique()) for c in columns], axis=0)]
        if not len(test):
            return None
        truth, known = (rows[columns[0]].str.cat([rows[c] for c in columns[1:]], sep="|") for rows in (train, test))
        model = peers.naive_bayes(replace(self.data, X=self.train.drop(columns=columns)))
        model.fit(train.drop(columns=columns), truth.to_numpy(dtype=str))
        return float(np.mean(model.predict(test.drop(columns=columns)) != known.to_numpy(dtype=str)))


def each_column(model: Any, X: Any, y: np.ndarray) -> float | None:
    return model.mean_error(X.assign(**{CLASS: y}), 1) if hasattr(model, "mean_error") else None


def every_two(model: Any, X: Any, y: np.ndarray) -> float | None:
    return model.mean_error(X.assign(**{CLASS: y}), 2) if hasattr(model, "mean_error") else None


def show(table: Table, result: Found, code: str, console: Console) -> None:
    columns = [text for criterion in CRITERIA for text in (criterion, "004")]
    grid = Grid("set", "method", *columns, f"1 - {JOINT}", "log-loss", f"- {JOINT}", "s / fit", "folds")
    grid.title = f"{table.name}: errors in %, means over folds; differences on the same folds ± s.e. (Nadeau-Bengio)"
    for setting, by in result.items():
        grid.add_section()
        for method, records in by.items():
            if records:
                grid.add_row(setting.name, method, *_cells(table, setting.name, method, by[table.ours], records))
    console.print(grid)
    for note in NOTES:
        console.print(f"* {note}", markup=False, highlight=False)
    print_notes(table, result, code, console)


def _cells(table: Table, name: str, method: str, ours: list[dict], records: list[dict]) -> list[str]:
    folds = mean_sd(records, "error")[2]
    if not folds:
        return ["failed"]
    cells = []
    for metric in CRITERIA.values():
        mean, _, measured = mean_sd(records, metric)
        printed = table.printed.get((name, method, metric))
        cells += [f"{mean:.2f}" if measured else "", f"{printed.value:.2f}" if printed else ""]
    differences = [difference(records, ours, metric) for metric in ("error", "log_loss")]
    texts = ["", ""] if method == table.ours else [f"{gap}{'*' if gap.p_value < 0.05 else ''}" for gap in differences]
    loss, seconds = (mean_sd(records, metric)[0] for metric in ("log_loss", "fit_seconds"))
    return [*cells, texts[0], f"{loss:.4f}", texts[1], f"{seconds:.2f}", str(folds)]


PEERS: dict[str, Make] = {BAYES: BayesInTurn, "LR": peers.logistic, "boosting": peers.boosting}
METHODS: dict[str, Make] = {JOINT: joint(), "joint, IIS": joint(solver="iis"), **PEERS}
INFERENCE = Table(
    name="inference",
    settings=(
        Setting("zoo", mixed=True, discrete=True),
        Setting("balance_scale", mixed=True, discrete=True),
        Setting("mushroom", folds=2, repeats=1, mixed=True, discrete=True),
    ),
    methods=METHODS,
    mixed_methods=METHODS,
    scores={"criterion_2": each_column, "criterion_3": every_two},
    printed=table_of_004("2.3", TABLE_23, (*((JOINT, metric) for metric in CRITERIA.values()), (BAYES, "error"))),
    quick=("zoo",),
    view=show,
    peers=tuple(PEERS),
)
