"""Folds of labelled rows, the same for every search."""

from __future__ import annotations

from typing import Any

import numpy as np

Fold = tuple[np.ndarray, np.ndarray]  # training rows, held-out rows


def label_folds(codes: np.ndarray, counted: np.ndarray, seed: int, cv: Any) -> list[Fold]:
    """Folds in which rows without a label are always trained on.

    Parameters
    ----------
    codes : (n,) array of int
        Class of each row, -1 without a label.
    counted : (n,) array of bool
        Rows that have a label and a weight: only they are held out.
    seed : int
    cv : int, splitter or list of (train, test) of the labelled rows
        A number spreads each class evenly; a class with a single row is never held out.
    """
    if isinstance(cv, (int, np.integer)):
        return _own_folds(codes, counted, seed, int(cv))
    return _given_folds(codes, cv)


def _own_folds(codes: np.ndarray, counted: np.ndarray, seed: int, cv: int) -> list[Fold]:
    fold = np.full(len(codes), -1)
    rng = np.random.default_rng(seed)
    start = 0
    for c in range(codes.max() + 1):
        rows = rng.permutation(np.flatnonzero(counted & (codes == c)))
        if len(rows) > 1:
            fold[rows] = (start + np.arange(len(rows))) % cv
            start += len(rows)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(min(cv, start))]


def _given_folds(codes: np.ndarray, cv: Any) -> list[Fold]:
    labelled = np.flatnonzero(codes >= 0)
    absent = np.flatnonzero(codes < 0)
    from sklearn.model_selection import check_cv  # takes long to import

    try:
        splits = check_cv(cv, codes[labelled], classifier=True).split(labelled, codes[labelled])
        folds = [(np.concatenate([labelled[train], absent]), labelled[held]) for train, held in splits]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"cv must give pairs (train, test) of the {len(labelled)} labelled rows; {error}") from error
    if not folds or any(len(held) == 0 for _, held in folds):
        raise ValueError("cv gives no split, or one that holds out no row; give at least one row to each test part")
    return folds
