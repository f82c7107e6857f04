"""The page of a novelty detector."""

import numpy as np
import pytest

import mixent as mx
from mixent.report import model_report


def test_the_page_counts_outliers_and_describes_the_detector(tmp_path, read):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 2)), np.vstack([rng.normal(size=(8, 2)), [[9.0, 9.0]]])
    model = mx.MEDNoveltyDetector().fit(X)
    page = read(model_report(tmp_path / "r.html", model, new, data_notes=["a <note>"]))
    sections = ["summary", "the-model-on-these-rows", "columns", "data-problems", "the-model", "how-to-reproduce"]
    assert page.sections == sections and "A <note>." in page.text
    assert f"{int((model.predict(new) < 0).sum())} of 9 rows are outliers" in page.words
    with pytest.raises(ValueError, match="y is only used with a classifier; MEDNoveltyDetector has no classes"):
        model_report(tmp_path / "r.html", model, new, np.zeros(9))
