"""Problems of a table that make a comparison on it unreliable."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.comparison.shape import read_table
from mixent.data import Categorical, Labels, Table, few_numbers, listed, problems, read_labels

FEW_ROWS = 10  # of a class
LOPSIDED = 20  # times as many rows in the largest class as in the smallest
LEAKING = 0.99  # share of the labels that one column predicts
SEEN_TWICE = 0.02  # share of the rows that are copies
LEAK = "possible leak"
ASSOCIATED = 1e-4  # p-value, before it is multiplied by the number of columns


def data_problems(X: Any, y: Any, *, categorical: Categorical = "auto") -> list[str]:
    """Problems of a table: columns, copies of rows, leaks, rare classes; empty where there are none.

    Parameters
    ----------
    X : array or DataFrame (n, d)
    y : (n,) labels
        None, NaN or "" where absent.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.

    Returns
    -------
    list of str, each with what to do
    """
    table = read_table(X, categorical)
    return table_problems(table, read_labels(y, table.n_rows), categorical)


def table_problems(table: Table, labels: Labels, categorical: Categorical = "auto") -> list[str]:
    """As `data_problems`, of a table and labels that have been read."""
    assert labels.codes is not None
    known, classes = np.flatnonzero(labels.known), labels.classes
    codes = labels.codes[known]
    names = [str(label) for label in classes]
    part = table.take(known)
    found = problems(table, () if isinstance(categorical, str) else [str(c) for c in categorical])
    found += _coded(table, categorical)
    found += _same_columns(table)
    found += _copies(part, codes)
    found += _leaks(part, codes, len(classes))
    found += _informative_gaps(part, codes, len(classes))
    return found + _class_sizes(codes, names)


def leaks(found: list[str]) -> list[str]:
    """Of what was found, the columns that may hold the answer."""
    return [sentence for sentence in found if LEAK in sentence]


def _coded(table: Table, categorical: Categorical) -> list[str]:
    if not isinstance(categorical, str):
        return []
    few = few_numbers(table)
    if not few:
        return []
    return [
        f"{'columns' if len(few) > 1 else 'column'} {listed(list(few))} hold{'s' * (len(few) == 1)} only a few whole "
        "numbers: if these are codes, list them as categorical"
    ]


def _same_columns(table: Table) -> list[str]:
    found: list[str] = []
    seen: dict[tuple, str] = {}
    columns = [(table.schema.columns[j].name, table.X[:, i]) for i, j in enumerate(table.schema.continuous)]
    if table.codes is not None:
        columns += [(table.schema.columns[j].name, table.codes[:, i]) for i, j in enumerate(table.schema.categorical)]
    for name, values in columns:
        key = (values.dtype.str, values.tobytes())
        if key in seen and not (values == values[0]).all():
            found.append(f"columns {seen[key]!r} and {name!r} are the same in every row: drop one")
        seen.setdefault(key, name)
    return found


def _copies(table: Table, codes: np.ndarray) -> list[str]:
    """Rows that occur more than once: scores are optimistic where copies are on both sides of a fold."""
    matrix = np.hstack(
        [np.nan_to_num(table.X, nan=np.inf), np.zeros((table.n_rows, 0)) if table.codes is None else table.codes]
    )
    place = np.unique(matrix, axis=0, return_inverse=True)[1].ravel()
    counts = np.bincount(place)
    repeated = int((counts[place] > 1).sum())
    if repeated < max(2.0, SEEN_TWICE * len(codes)):
        return []
    labels = np.zeros((len(counts), codes.max() + 1), dtype=int)
    np.add.at(labels, (place, codes), 1)
    lost = int((counts - labels.max(axis=1)).sum())
    text = f"{repeated} of {len(codes)} rows have the same values as another"
    if lost:
        text += f", {lost} of them with another label: every model errs on at least {100 * lost / len(codes):.2g} %"
    return [text + "; if they are copies of one item, keep one: copies in training and test rows make scores too good"]


def _leaks(table: Table, codes: np.ndarray, n_classes: int) -> list[str]:
    """Columns that predict the class by themselves, with few values or by a few thresholds."""
    found = []
    base = np.bincount(codes).max() / len(codes)
    for name, values, few in _values(table):
        if few and values.max(initial=-1) + 1 <= len(codes) / 5:
            right = _majority(values, codes, n_classes)
        elif not few:
            right = _by_cuts(values, codes, n_classes)
        else:
            continue
        if right >= LEAKING and base < LEAKING:
            found.append(
                f"{LEAK}: column {name!r} alone predicts {100 * right:.1f} % of the classes; drop it unless it is "
                "known before the class"
            )
    return found


def _values(table: Table) -> Any:
    """Name, values (whole numbers from 0 where few), and whether they are few."""
    for i, j in enumerate(table.schema.continuous):
        yield table.schema.columns[j].name, table.X[:, i], False
    for i, j in enumerate(table.schema.categorical):
        yield table.schema.columns[j].name, table.codes[:, i] + 1, True  # type: ignore[index]


def _majority(values: np.ndarray, codes: np.ndarray, n_classes: int) -> float:
    counts = np.zeros((int(values.max()) + 1, n_classes))
    np.add.at(counts, (values, codes), 1)
    return float(counts.max(axis=1).sum() / len(codes))


def _by_cuts(values: np.ndarray, codes: np.ndarray, n_classes: int) -> float:
    """Share right when the values are cut into as many stretches as there are classes, one after the other."""
    from sklearn.tree import DecisionTreeClassifier

    column = values[:, None]
    return float(
        DecisionTreeClassifier(max_leaf_nodes=max(n_classes, 2), random_state=0).fit(column, codes).score(column, codes)
    )


def _informative_gaps(table: Table, codes: np.ndarray, n_classes: int) -> list[str]:
    """Columns that are missing significantly more often in some classes: informative, or a leak."""
    from scipy.stats import chi2_contingency

    found = []
    columns = [(name, (values == 0) if few else np.isnan(values)) for name, values, few in _values(table)]
    for name, gap in columns:
        counts = np.array([np.bincount(codes[gap == side], minlength=n_classes) for side in (False, True)])
        counts = counts[:, counts.sum(axis=0) > 0]
        if not gap.any() or gap.all() or counts.shape[1] < 2:
            continue
        if chi2_contingency(counts).pvalue * len(columns) < ASSOCIATED:
            found.append(
                f"column {name!r} is missing in some classes far more often than in others: find out why; "
                "densities treat missing values as uninformative, so add a column that indicates whether it is missing"
            )
    return found


def _class_sizes(codes: np.ndarray, names: list[str]) -> list[str]:
    counts = np.bincount(codes, minlength=len(names))
    rare = [f"{names[c]} ({counts[c]})" for c in np.flatnonzero(counts < FEW_ROWS)]
    found = []
    if rare:
        few = "classes with" if len(rare) > 1 else "a class with"
        found.append(f"{few} fewer than {FEW_ROWS} rows: {', '.join(rare)}; scores of so few rows are uncertain")
    elif counts.max() > LOPSIDED * counts.min():
        found.append(
            f"class {names[counts.argmax()]} has {counts.max()} rows and {names[counts.argmin()]} {counts.min()}: look "
            "at the balanced error and the log-loss, not at the error"
        )
    return found
