"""Why a row has its class: the log-odds against another class as a sum of parts, one format for every classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.document import Content, Number, Table
from mixent.base.result import MOST_ROWS, Result
from mixent.core.arrays import Array
from mixent.data import Origin

EXACT, MARGINAL, AGNOSTIC = "exact", "model", "model-agnostic"
INTEGRATED = "Shapley values: the model integrates out the columns that are not yet known"
REPLACED = "the values of training rows take the place of columns that are not yet known"
METHODS = {  # method -> how the contributions were computed, for people
    "exact": "The contributions are terms of the model itself.",
    "Shapley values": f"{INTEGRATED}, over all orders of the columns.",
    "sampled Shapley values": f"{INTEGRATED}, over sampled orders of the columns.",
    "model-agnostic (Shapley values)": f"Model-agnostic (Shapley values): {REPLACED}, over all orders of the columns.",
    "model-agnostic (sampled Shapley values)": f"Model-agnostic (sampled Shapley values): {REPLACED}, over sampled "
    "orders of the columns.",
}


def shapley_name(whose: str, sampled: bool) -> str:
    """The method of Shapley values: MARGINAL or AGNOSTIC, over all orders or over sampled ones."""
    name = "sampled Shapley values" if sampled else "Shapley values"
    return f"{AGNOSTIC} ({name})" if whose == AGNOSTIC else name


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The log-odds of each row's class against a rival, as a sum: log_odds = baseline + parts.sum(axis=1), exactly.

    Attributes
    ----------
    label : (n,) array
        The class explained.
    rival : (n,) array
        The class it is compared with.
    log_odds : (n,) array
        log p(label | x) / p(rival | x), nats. Where `predict_proba` contains a share of the uniform distribution
        (mixtures, maximum entropy discrimination), these are the log-odds without it.
    baseline : (n,) array
        What is there before any part: the log-odds of the class priors, or of the average training row.
    parts : (n, K) array
        Part of each component, column or classifier; a positive part is evidence for the label.
    names : (K,) tuple of str
        Of the parts.
    by : "component", "column", "classifier" or "edge"
        What the parts belong to.
    baseline_name : str
        "class priors" or "average row".
    method : str
        How the parts were computed: "exact" (terms of the model itself), "Shapley values", "sampled Shapley values", or
        one of the latter as "model-agnostic (...)", from predictions alone; see `about`.
    origin : Origin
        Library and row labels of the rows.

    References
    ----------
    .. [1] Shapley, L. S. (1953). A value for n-person games. Contributions to the Theory of Games II, 307-317.
    .. [2] Štrumbelj, E. and Kononenko, I. (2014). Explaining prediction models and individual predictions with feature
       contributions. Knowledge and Information Systems 41, 647-665.
    .. [3] Lundberg, S. M. and Lee, S.-I. (2017). A unified approach to interpreting model predictions. Advances in
       Neural Information Processing Systems 30.
    """

    _title = "Explanation"

    label: np.ndarray
    rival: np.ndarray
    log_odds: Array
    baseline: Array
    parts: Array
    names: tuple[str, ...]
    by: str
    baseline_name: str
    method: str
    _values: Callable[[], list[list[str]]] = field(repr=False, compare=False)
    origin: Origin = field(default=Origin(), compare=False)

    def values(self) -> list[list[str]]:
        """For each row what it holds for every part, as short text; of a component the class it mostly belongs to."""
        return self._values()

    @property
    def about(self) -> str:
        """How the parts were computed, in a sentence."""
        return METHODS[self.method]

    def _brief(self) -> str:
        return f"{len(self.log_odds)} rows, {len(self.names)} {self.by}s, baseline={self.baseline_name!r}"

    def _content(self) -> list[Content]:
        header = ["label", "rival", "log-odds", self.baseline_name, *self.names]
        columns = np.column_stack([self.log_odds, self.baseline, self.parts])[:MOST_ROWS]
        labels = zip(self.label.tolist(), self.rival.tolist())
        rows: list[list[Any]] = [
            [str(a), str(b), *(Number(f"{x:+.2f}") for x in row)] for (a, b), row in zip(labels, columns)
        ]
        caption = f"Contributions of the {self.by}s to the log-odds of label against rival, nats"
        return [Table(f"{caption}. {self.about}", header, rows)]

    def frame(self) -> Any:
        """One row for each row explained, with its index: label, rival, log_odds, baseline, then the parts.

        Returns
        -------
        DataFrame of the library of the rows (of pandas if they are an array)
            A part is called by its name, with " (part)" added if that is the name of one of the first four columns.
        """
        known = {"label": self.label, "rival": self.rival, "log_odds": self.log_odds, "baseline": self.baseline}
        parts = {f"{name} (part)" if name in known else name: part for name, part in zip(self.names, self.parts.T)}
        return self.origin.frame(known | parts)


@dataclass(frozen=True)
class Rivals:
    """The class of each row to explain, and the one it is compared with."""

    classes: np.ndarray  # (C,)
    ours: np.ndarray  # (n,) places
    theirs: np.ndarray  # (n,) places
    origin: Origin  # of the rows

    @classmethod
    def of(cls, log_proba: Array, classes: np.ndarray, label: Any, rival: Any, X: Any) -> Rivals:
        """The classes asked for.

        Parameters
        ----------
        log_proba : (n, C) array
        classes : (C,) array
        label : a class, or None for the most probable class of each row (other than `rival`)
        rival : a class, or None for the most probable other class of each row
        X : the rows
        """
        classes = np.asarray(classes)
        ours = None if label is None else _place("label", label, classes)
        theirs = None if rival is None else _place("rival", rival, classes)
        if ours is not None and ours == theirs:
            raise ValueError(f"rival must be another class than label; both are {label!r}")
        first = _most_probable(log_proba, theirs) if ours is None else np.full(len(log_proba), ours)
        second = _most_probable(log_proba, first) if theirs is None else np.full(len(log_proba), theirs)
        return cls(classes, first, second, Origin.of(X))

    def log_odds(self, log_proba: Array, rows: np.ndarray) -> Array:
        """(N,) log-odds in log probabilities, (N, C), that belong to these rows, (N,)."""
        every = np.arange(len(rows))
        return log_proba[every, self.ours[rows]] - log_proba[every, self.theirs[rows]]

    def explanation(
        self,
        baseline: Array,
        parts: Array,
        names: Sequence[str],
        by: str,
        baseline_name: str,
        method: str,
        values: Callable[[], list[list[str]]],
    ) -> Explanation:
        """The explanation that has these parts."""
        labels = self.classes[self.ours], self.classes[self.theirs]
        odds = baseline + parts.sum(axis=1)
        return Explanation(*labels, odds, baseline, parts, tuple(names), by, baseline_name, method, values, self.origin)


def _most_probable(log_proba: Array, other_than: Any) -> np.ndarray:
    """(n,) places of the most probable class of each row, other than one class, or than one for each row."""
    if other_than is None:
        return log_proba.argmax(axis=1)
    log_proba = np.array(log_proba)
    log_proba[np.arange(len(log_proba)), other_than] = -np.inf
    return log_proba.argmax(axis=1)


def _place(option: str, label: Any, classes: np.ndarray) -> int:
    names = classes.tolist()
    if label not in names:
        raise ValueError(f"{option} must be one of the classes {names}; got {label!r}")
    return names.index(label)
