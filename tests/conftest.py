"""Figures are drawn without a screen and closed after each test."""

import os
import sys

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def plain_em(monkeypatch):
    """EM of mixtures without extrapolated steps."""
    monkeypatch.setattr("mixent.mixtures.fit_plan.Delayed", lambda *_: None)
