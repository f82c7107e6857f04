"""Folds of labelled rows, the same for every search."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mixent.base.text import listing
from mixent.data import Labels, read_labels
from mixent.warn import warn

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
    fold = deal_folds(np.where(counted, codes, -1), cv, np.random.default_rng(seed))
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]


def deal_folds(codes: np.ndarray, n_folds: int, rng: np.random.Generator | np.random.RandomState) -> np.ndarray:
    """Fold of each row, (n,); -1 for rows without a label and for rows that are alone in their class.

    Inside a class the shuffled rows are dealt to the folds in turn, the next class going on where the last one stopped:
    sizes of folds differ by one row at most, and a class with m < n_folds rows is in m different folds.

    Parameters
    ----------
    codes : (n,) array of int
        Class of each row, -1 without a label.
    n_folds : int
    rng : random generator
    """
    members = [rng.permutation(np.flatnonzero(codes == c)) for c in range(codes.max(initial=-1) + 1)]
    dealt = np.concatenate([rows for rows in members if len(rows) > 1] or [np.empty(0, dtype=int)])
    fold = np.full(len(codes), -1)
    fold[dealt] = np.arange(len(dealt)) % n_folds
    return fold


def stratified_folds(y: Any, *, folds: int = 5, repeats: int = 1, random_state: Any = 0) -> np.ndarray:
    """Fold that scores each row, (repeats, n); -1 for rows that are never scored (no label, or alone in their class).

    Parameters
    ----------
    y : (n,) labels
    folds, repeats : int
    random_state : int or RandomState

    Returns
    -------
    (repeats, n) array of int, see `deal_folds`
    """
    return assign_folds(read_labels(y, len(y)), folds=folds, repeats=repeats, random_state=random_state)


def assign_folds(
    labels: Labels, *, folds: int, repeats: int, random_state: Any, groups: np.ndarray | None = None
) -> np.ndarray:
    """As `stratified_folds`, of labels that have been read; warns of classes with few rows.

    With `groups`, (n,) numbers, all rows of a group are in one fold, and the classes are spread as far as that allows.
    """
    if folds < 2 or repeats < 1:
        raise ValueError(f"folds must be at least 2 and repeats at least 1; got folds={folds}, repeats={repeats}")
    assert labels.codes is not None
    rng, codes = check_random_state(random_state), labels.codes
    sizes = np.bincount(codes[codes >= 0], minlength=len(labels.classes))
    _warn_small([str(name) for name in labels.classes.tolist()], sizes.tolist(), folds)
    if sizes[sizes > 1].sum() < folds:
        raise ValueError(f"{folds} folds need at least {folds} rows in classes of two rows or more; lower folds")
    if groups is not None:
        return np.stack([_group_folds(codes, groups, folds, rng) for _ in range(repeats)])
    return np.stack([deal_folds(codes, folds, rng) for _ in range(repeats)])


def _group_folds(codes: np.ndarray, groups: np.ndarray, n_folds: int, rng: np.random.RandomState) -> np.ndarray:
    """Fold of each row, (n,); -1 for rows without a label."""
    from sklearn.model_selection import StratifiedGroupKFold  # takes long to import

    known = np.flatnonzero(codes >= 0)
    n_groups = len(np.unique(groups[known]))
    if n_groups < n_folds:
        raise ValueError(f"{n_folds} folds need at least {n_folds} groups with a label; got {n_groups}; lower folds")
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=rng.randint(2**31 - 1))
    fold = np.full(len(codes), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small classes, which `assign_folds` has warned of
        for number, (_, held_out) in enumerate(splitter.split(known, codes[known], groups[known])):
            fold[known[held_out]] = number
    if len(np.unique(fold[known])) < n_folds:
        raise ValueError(f"{n_groups} groups of unequal size do not fill {n_folds} folds; lower folds")
    return fold


def _warn_small(names: list[str], sizes: list[int], folds: int) -> None:
    alone = [name for name, size in zip(names, sizes) if size == 1]
    small = [f"{name} ({size})" for name, size in zip(names, sizes) if 1 < size < folds]
    if alone:
        warn(f"classes with one row stay in training and are never scored: {listing(alone, 10)}; add rows, or merge")
    if small:
        warn(
            f"classes with fewer rows than the {folds} folds are missing from some test folds: {listing(small, 10)}; "
            "lower folds, or raise repeats"
        )


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
