"""Wording of studies, displays."""

import numpy as np
import pytest

from mixent.displays import EnsembleSizeDisplay


def test_methods_that_failed_are_left_out(curves):
    from dataclasses import replace

    some = [r | ({"failed": "oh", "error": np.nan} if r["method"] == "bagged" else {}) for r in curves.records]
    assert list(EnsembleSizeDisplay.from_curves(replace(curves, records=some)).mean["error"]) == ["$boosted_"]
    with pytest.raises(ValueError, match="every method failed in some fold: .*oh"):
        EnsembleSizeDisplay.from_curves(replace(curves, records=[r | {"failed": "oh"} for r in curves.records]))
    with pytest.raises(ValueError, match="metric must be one of 'error', 'log_loss'; got 'brier'"):
        EnsembleSizeDisplay.from_curves(curves, metric="brier")


def test_what_is_not_a_result_of_size_curves_is_refused():
    with pytest.raises(TypeError, match="curves must be the result of size_curves; got a dict"):
        EnsembleSizeDisplay.from_curves({})
