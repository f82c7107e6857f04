"""Problems in a table that make a comparison unreliable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.comparison.shape import read_table
from mixent.data import Categorical, Labels, Table, few_numbers, listed, problems, read_labels
from mixent.data.checks import LOOKS_LIKE, drop_it
from mixent.warn import warn_notes

FEW_ROWS = 10  # a class with fewer rows is reported
IMBALANCE = 20  # a larger ratio of the largest to the smallest class is reported
LEAKING = 0.99  # a single column that predicts at least this share of the labels is reported
DUPLICATED = 0.02  # share of duplicated rows from which they are reported
LEAK = "possible leak"
MOST_ROWS = 20_000  # rows of a sample in which leaks and copies are looked for
FEW_NUMBERS = 20  # fewer different numbers are no identifier
LAST_DIGIT = 27.9  # 99.9 % quantile of chi-square with 9 degrees of freedom
ASSOCIATED = 1e-4  # significance level of the association of missing values with the class, Bonferroni-adjusted


def data_problems(X: Any, y: Any, *, categorical: Categorical = "auto") -> list[str]:
    """Problems in a table: questionable columns, duplicated rows, leaks, rare classes.

    Parameters
    ----------
    X : array or DataFrame (n, d)
    y : (n,) labels
        None, NaN or "" for unlabelled rows.
    categorical : "auto" or list
        Columns to treat as categories, whatever their type.

    Returns
    -------
    list of str
        One sentence for each problem, with a recommendation; empty if there are none.
    """
    table = read_table(X, categorical)
    labels = read_labels(y, table.n_rows)
    warn_notes((*table.notes, *labels.notes))
    return table_problems(table, labels, categorical)


def table_problems(table: Table, labels: Labels, categorical: Categorical = "auto") -> list[str]:
    """The same as `data_problems`, for a table and labels that have been read; leaks are looked for in a sample."""
    assert labels.codes is not None
    known, classes = np.flatnonzero(labels.known), labels.classes
    if len(known) > MOST_ROWS:
        known = np.sort(np.random.default_rng(0).choice(known, MOST_ROWS, replace=False))
    codes = labels.codes[known]
    names = [str(label) for label in classes]
    labelled = table.take(known)
    numbers = identifiers(table)
    columns = problems(table, () if isinstance(categorical, str) else [str(c) for c in categorical])
    return [
        *columns,
        *_identifiers(table, [name for name in numbers if not any(repr(name) in text for text in columns)]),
        *_coded_columns(table, categorical),
        *_equal_columns(table),
        *_duplicates(labelled, codes, numbers),
        *_leaks(labelled, codes, len(classes)),
        *_informative_missing(labelled, codes, len(classes)),
        *_class_sizes(labels.codes[labels.known], names),
    ]


def leaks(sentences: list[str]) -> list[str]:
    """The sentences about columns that may leak the class."""
    return [sentence for sentence in sentences if LEAK in sentence]


def identifiers(table: Table) -> list[str]:
    """Columns of whole numbers that are different in all rows but copies, and consecutive or long codes."""
    names = []
    for place, j in enumerate(table.schema.continuous):
        column, values = table.schema.columns[j], table.X[:, place]
        if column.kind != "integer" or table.n_rows < FEW_NUMBERS or np.isnan(values).any():
            continue
        different = np.unique(values)
        copies = table.n_rows - len(different)
        if copies and copies > table.n_rows - len(np.unique(_matrix(table), axis=0)):
            continue
        if len(different) >= FEW_NUMBERS and ((np.diff(different) == 1).all() or _are_codes(different)):
            names.append(column.name)
    return names


def _are_codes(values: np.ndarray) -> bool:
    """Whether whole numbers have one length of five digits or more, whose last digit is any: no measured quantity."""
    digits = np.floor(np.log10(np.maximum(np.abs(values), 1)))
    spread = np.ptp(values) > 0.5 * 10 ** digits[0]
    last = np.bincount((np.abs(values) % 10).astype(int), minlength=10)
    uniform = ((last - len(values) / 10) ** 2).sum() / (len(values) / 10) < LAST_DIGIT
    return bool((digits == digits[0]).all() and digits[0] >= 4 and spread and uniform)


def _identifiers(table: Table, names: list[str]) -> list[str]:
    return [
        f"column {name!r} {LOOKS_LIKE} an identifier (a different whole number for every item); "
        f"{drop_it(table.schema, name)}"
        for name in names
    ]


def _matrix(table: Table, without: Sequence[str] = ()) -> np.ndarray:
    """All columns as numbers, but for some; missing values are infinite."""
    numbers = [i for i, j in enumerate(table.schema.continuous) if table.schema.columns[j].name not in without]
    codes = np.zeros((table.n_rows, 0)) if table.codes is None else table.codes
    return np.hstack([np.nan_to_num(table.X[:, numbers], nan=np.inf), codes])


def _coded_columns(table: Table, categorical: Categorical) -> list[str]:
    """Numeric columns that may be codes of categories."""
    if not isinstance(categorical, str):
        return []
    few = few_numbers(table)
    if not few:
        return []
    return [
        f"{'columns' if len(few) > 1 else 'column'} {listed(list(few))} hold{'s' * (len(few) == 1)} only a few whole "
        "numbers: if these are codes, list them as categorical"
    ]


def _equal_columns(table: Table) -> list[str]:
    """Columns that are equal to another column."""
    sentences: list[str] = []
    first: dict[tuple, str] = {}
    columns = [(table.schema.columns[j].name, table.X[:, i]) for i, j in enumerate(table.schema.continuous)]
    if table.codes is not None:
        columns += [(table.schema.columns[j].name, table.codes[:, i]) for i, j in enumerate(table.schema.categorical)]
    for name, values in columns:
        key = (values.dtype.str, values.tobytes())
        if key in first and not (values == values[0]).all():
            sentences.append(f"columns {first[key]!r} and {name!r} are equal in every row; drop one of them")
        first.setdefault(key, name)
    return sentences


def _duplicates(table: Table, codes: np.ndarray, identifiers: Sequence[str]) -> list[str]:
    """Duplicated rows, which make scores optimistic if copies are in training and test rows; numbers of rows differ."""
    matrix = _matrix(table, identifiers)
    if not matrix.shape[1]:
        return []
    group = np.unique(matrix, axis=0, return_inverse=True)[1].ravel()
    counts = np.bincount(group)
    n_repeated = int((counts[group] > 1).sum())
    if n_repeated < max(2.0, DUPLICATED * len(codes)):
        return []
    labels = np.zeros((len(counts), codes.max() + 1), dtype=int)
    np.add.at(labels, (group, codes), 1)
    n_errors = int((counts - labels.max(axis=1)).sum())
    text = f"{n_repeated} of {len(codes)} rows have the same values as another row"
    if n_errors:
        least = f"{100 * n_errors / len(codes):.2g} %"
        text += f", {n_errors} of them with another label, so the error of any model is at least {least}"
    return [
        f"{text}; if they are copies of one item, keep one: copies in training and test rows make scores optimistic"
    ]


def _leaks(table: Table, codes: np.ndarray, n_classes: int) -> list[str]:
    """Columns that predict the class alone, by their categories or by a few thresholds."""
    sentences = []
    base = np.bincount(codes).max() / len(codes)
    for name, values, categorical in _columns(table):
        if categorical and values.max(initial=-1) + 1 <= len(codes) / 5:
            accuracy = _majority_accuracy(values, codes, n_classes)
        elif not categorical:
            accuracy = _threshold_accuracy(values, codes, n_classes)
        else:
            continue
        if accuracy >= LEAKING and base < LEAKING:
            sentences.append(
                f"{LEAK}: column {name!r} alone predicts {100 * accuracy:.1f} % of the classes; drop it unless it is "
                "known before the class"
            )
    return sentences


def _columns(table: Table) -> Any:
    """Name and values of each column, and whether it is categorical (codes from 1, 0 where missing)."""
    for i, j in enumerate(table.schema.continuous):
        yield table.schema.columns[j].name, table.X[:, i], False
    for i, j in enumerate(table.schema.categorical):
        yield table.schema.columns[j].name, table.codes[:, i] + 1, True  # type: ignore[index]


def _majority_accuracy(values: np.ndarray, codes: np.ndarray, n_classes: int) -> float:
    """Accuracy of predicting the most frequent class of each category."""
    counts = np.zeros((int(values.max()) + 1, n_classes))
    np.add.at(counts, (values, codes), 1)
    return float(counts.max(axis=1).sum() / len(codes))


def _threshold_accuracy(values: np.ndarray, codes: np.ndarray, n_classes: int) -> float:
    """Accuracy of a decision tree on one column with as many leaves as there are classes."""
    from sklearn.tree import DecisionTreeClassifier

    column = values[:, None]
    tree = DecisionTreeClassifier(max_leaf_nodes=max(n_classes, 2), random_state=0)
    return float(tree.fit(column, codes).score(column, codes))


def _informative_missing(table: Table, codes: np.ndarray, n_classes: int) -> list[str]:
    """Columns that are missing significantly more often in some classes than in others."""
    from scipy.stats import chi2_contingency

    sentences = []
    columns = [
        (name, (values == 0) if categorical else np.isnan(values)) for name, values, categorical in _columns(table)
    ]
    for name, missing in columns:
        counts = np.array([np.bincount(codes[missing == side], minlength=n_classes) for side in (False, True)])
        counts = counts[:, counts.sum(axis=0) > 0]
        if not missing.any() or missing.all() or counts.shape[1] < 2:
            continue
        if chi2_contingency(counts).pvalue * len(columns) < ASSOCIATED:
            sentences.append(
                f"column {name!r} is missing far more often in some classes than in others; find out why. Densities "
                "treat missing values as uninformative: add a column that indicates whether the value is missing"
            )
    return sentences


def _class_sizes(codes: np.ndarray, names: list[str]) -> list[str]:
    counts = np.bincount(codes, minlength=len(names))
    rare = [f"{names[c]} ({counts[c]})" for c in np.flatnonzero(counts < FEW_ROWS)]
    if rare:
        few = "classes with" if len(rare) > 1 else "a class with"
        return [f"{few} fewer than {FEW_ROWS} rows: {', '.join(rare)}; scores of so few rows are uncertain"]
    if counts.max() > IMBALANCE * counts.min():
        return [
            f"class {names[counts.argmax()]} has {counts.max()} rows, class {names[counts.argmin()]} only "
            f"{counts.min()}; use the balanced error or the log-loss rather than the error"
        ]
    return []
