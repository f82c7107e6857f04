"""The page of a novelty detector: how many rows are outliers, which these are, what the detector is."""

from __future__ import annotations

import numpy as np

from mixent.base.document import Paragraph, Section
from mixent.base.text import count
from mixent.report.sections import Subject


def novelty_sections(subject: Subject) -> list[Section]:
    """The sections of the page, without how to reproduce it."""
    outliers = int(np.sum(np.asarray(subject.model.predict(subject.X)) < 0))
    n = np.shape(subject.X)[0]
    text = f"{subject.name}: {outliers} of {count(n, 'row')} are outliers ({100 * outliers / n:.1f}\u00a0%)."
    on_rows, about = reversed(subject.model_sections())
    return [Section("Summary", [Paragraph(text, lead=True)]), on_rows, *subject.data_sections(), about]
