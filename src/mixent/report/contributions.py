"""What contributes to the log-odds of one row, for any classifier: by column, see `mixent.explain`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.capabilities import is_able
from mixent.base.explanation import Explanation
from mixent.base.foreign import N_BACKGROUND, explain

MOST_COLUMNS = 400  # of a model without an explanation of its own
Part = tuple[str, str, float]  # column, value, nats


def explanation_of(model: Any, X: Any, row: int, ours: int, rival: int) -> Explanation | None:
    """Contributions of the columns to the log-odds of one class against another; None if there are too many columns.

    Parameters
    ----------
    model : fitted classifier
    X : table of n rows
        If the model keeps no training rows, it is compared with rows of this table.
    row : int
    ours, rival : places of the classes in `model.classes_`
    """
    n, d = np.shape(X)
    background = None
    if not is_able(model, "explanations"):
        if d > MOST_COLUMNS:
            return None
        background = _safe_indexing(X, np.linspace(0, n - 1, min(N_BACKGROUND, n)).astype(int))
    labels = {"label": model.classes_[ours], "rival": model.classes_[rival]}
    return explain(model, _safe_indexing(X, [row]), background, **labels)


def largest_parts(explanation: Explanation) -> list[Part]:
    """Name, value and size of the parts of the first row explained, with its baseline, the largest first."""
    parts = [(explanation.baseline_name, "", float(explanation.baseline[0]))]
    parts += zip(explanation.names, explanation.values()[0], explanation.parts[0].tolist())
    return sorted(parts, key=lambda part: -abs(part[2]))
