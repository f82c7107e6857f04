"""Calibrations updated with the labelled items of the batch, and default calibrations where none are given."""

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
    """The layout with the labelled items added to the calibration of every source."""
    labelled = np.flatnonzero(batch.labels >= 0)
    layout = batch.layout
    if not len(labelled):
        return layout
    classes = layout.classes.tolist()
    truths = np.zeros((layout.n_classes, batch.n_patterns))
    truths[batch.labels[labelled], labelled] = batch.weight[labelled]
    label_counts = batch.expected(truths)  # (S, K)
    sources = []
    for j, source in enumerate(layout.sources):
        calibration, added = source.calibration, label_counts[layout.slices[j]].T
        rows = [classes.index(label) for label in calibration.classes]
        if calibration.line is not None or calibration.scale is not None:  # these have fixed classes
            counts, prior = calibration.counts + added[rows], calibration.class_prior
            sources.append(replace(source, calibration=replace(calibration, counts=counts, priors=prior)))
            continue
        rows += [k for k in range(len(classes)) if k not in rows]  # its own classes first, in their order
        n_own = len(calibration.classes)
        counts = added[rows].reshape(len(classes), *calibration.counts.shape[1:])
        counts[:n_own] += calibration.counts
        prior = np.zeros(len(classes))
        prior[:n_own] = calibration.class_prior  # the probabilities contain the class priors of the training
        updated = replace(calibration, classes=tuple(classes[k] for k in rows), counts=counts, priors=prior)
        sources.append(replace(source, calibration=updated))
    return replace(layout, sources=tuple(sources))


def default_calibrations(columns: Mapping[str, Column], y: ArrayLike | None) -> dict[str, Calibration]:
    """`Calibration.guess` for every source, with all labels among the answers and in y as classes."""
    distinct: set = set()
    for name, values in columns.items():
        if isinstance(values, Mapping) or np.ndim(values) == 2:
            raise ValueError(
                f"source {name!r} gives probabilities, which need a calibration; without calibrations, the answers "
                "must be labels"
            )
        distinct.update(np.asarray(values, dtype=object).tolist())
    if y is not None:
        distinct.update(np.asarray(y, dtype=object).tolist())
    labels = sorted_labels({v for v in distinct if not is_missing(v)})
    if len(labels) < 2:
        raise ValueError(f"the answers must contain at least two different labels; got {labels!r}")
    return {str(name): Calibration.guess(labels) for name in columns}
