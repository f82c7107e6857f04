"""Figures are drawn without a screen and closed after each test; BLAS uses one thread."""

import os
import sys

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
# before numpy is imported: when every core already runs a test, the threads of OpenBLAS wait for each other in busy
# loops, and many small matrices take up to thirty times as long
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def plain_em(monkeypatch):
    """EM of mixtures without extrapolated steps."""
    monkeypatch.setattr("mixent.mixtures.fit_plan.Delayed", lambda *_: None)
