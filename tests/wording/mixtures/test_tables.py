"""Wording of mixtures, tables."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def mixed():
    """Two classes that differ in size, color and count; a fifth of the cells is empty."""
    rng = np.random.default_rng(0)
    n = 300
    y = rng.integers(2, size=n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 2.0 * y,
            "color": np.where(rng.random(n) < np.where(y, 0.8, 0.3), "red", rng.choice(["blue", "green"], size=n)),
            "weight": rng.normal(size=n) * np.where(y, 2.0, 0.5),
            "new": rng.random(n) < 0.5,
        }
    )
    gaps = rng.random((n, 4)) < 0.2
    frame["new"] = frame["new"].astype("boolean")
    return frame.mask(pd.DataFrame(gaps, columns=frame.columns)), y


def test_color_has_values_not_seen_at_fit(mixed, model):
    frame, _ = mixed
    odd, gap = frame.iloc[:5].copy(), frame.iloc[:5].copy()
    odd["color"], gap["color"] = "violet", None
    with pytest.warns(UserWarning, match="'color' has values not seen at fit"):
        model.predict_proba(odd)
