"""Calibrations updated by labelled items of the batch, and assumed ones where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mixent.data.values import is_missing
from mixent.fusion.answers import Column
from mixent.fusion.batch import Batch
from mixent.fusion.calibration import Calibration
from mixent.fusion.reading import sorted_labels
from mixent.fusion.sources import Layout


def with_labels(batch: Batch) -> Layout:
    """The layout with the items of known class added to the calibration of every source."""
    known = np.flatnonzero(batch.known >= 0)
    layout = batch.layout
    if not len(known):
        return layout
    classes = layout.classes.tolist()
    truths = np.zeros((layout.n_classes, batch.n_patterns))
    truths[batch.known[known], known] = batch.weight[known]
    counted = batch.expected(truths)  # (S, K)
    sources = []
    for j, source in enumerate(layout.sources):
        one = source.calibration
        rows = [classes.index(label) for label in one.classes]
        if one.line is not None or one.scale is not None:  # these have fixed classes
            added = counted[layout.slices[j]].T[rows]
            kept = replace(one, counts=one.counts + added, priors=one.class_prior)
            sources.append(replace(source, calibration=kept))
            continue
        counts = np.zeros((len(classes), *one.counts.shape[1:]))
        counts[rows] = one.counts
        counts += counted[layout.slices[j]].T.reshape(counts.shape)
        prior = np.zeros(len(classes))
        prior[rows] = one.class_prior  # its probabilities contain the priors of its training
        sources.append(replace(source, calibration=replace(one, classes=tuple(classes), counts=counts, priors=prior)))
    return Layout(layout.names, tuple(sources), layout.unanswered)


def guesses(columns: Mapping[str, Column], y: ArrayLike | None) -> dict[str, Calibration]:
    """An assumed calibration for every source, over all labels among the answers and in y."""
    seen: set = set()
    for name, values in columns.items():
        if isinstance(values, Mapping) or np.ndim(values) == 2:
            raise ValueError(f"source {name!r} gives probabilities; without a calibration only labels can be fused")
        seen.update(v for v in np.asarray(values, dtype=object).tolist() if not is_missing(v))
    if y is not None:
        seen.update(v for v in np.asarray(y, dtype=object).tolist() if not is_missing(v))
    labels = sorted_labels(seen)
    if len(labels) < 2:
        raise ValueError(f"the answers must hold at least two labels; got {labels!r}")
    return {str(name): Calibration.guess(labels) for name in columns}
