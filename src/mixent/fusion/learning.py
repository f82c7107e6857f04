"""What a few labels, or none at all, tell of sources: calibrations with common labels added, and guesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mixent.data.values import is_missing
from mixent.fusion.batch import Batch
from mixent.fusion.calibration import Calibration
from mixent.fusion.reading import sorted_labels
from mixent.fusion.sources import Layout


def with_labels(batch: Batch) -> Layout:
    """The layout with the items of known class added to every source's calibration."""
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
        if one.line is not None or one.scale is not None:  # of these classes, and no others
            added = counted[layout.slices[j]].T[rows]
            kept = replace(one, counts=one.counts + added, priors=one.class_prior)
            sources.append(replace(source, calibration=kept))
            continue
        counts = np.zeros((len(classes), *one.counts.shape[1:]))
        counts[rows] = one.counts
        counts += counted[layout.slices[j]].T.reshape(counts.shape)
        prior = np.zeros(len(classes))
        prior[rows] = one.class_prior  # its probabilities keep the priors of its training
        sources.append(replace(source, calibration=replace(one, classes=tuple(classes), counts=counts, priors=prior)))
    return Layout(layout.names, tuple(sources), layout.mute)


def guesses(columns: Mapping[str, Any], y: Any) -> dict[str, Calibration]:
    """A guess for every source, over all labels that anybody said or that are known."""
    said: set = set()
    for name, values in columns.items():
        if isinstance(values, Mapping) or np.ndim(values) == 2:
            raise ValueError(f"source {name!r} gives probabilities; without a calibration only labels can be fused")
        said.update(v for v in np.asarray(values, dtype=object).tolist() if not is_missing(v))
    if y is not None:
        said.update(v for v in np.asarray(y, dtype=object).tolist() if not is_missing(v))
    labels = sorted_labels(said)
    if len(labels) < 2:
        raise ValueError(f"the sources must use at least two labels; they said {labels!r}")
    return {str(name): Calibration.guess(labels) for name in columns}
