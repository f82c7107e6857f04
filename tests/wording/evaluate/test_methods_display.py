"""Wording of evaluate, methods display."""

import numpy as np
import pytest

from mixent.displays import MethodScoresDisplay

from ...evaluate.test_methods_display import between, made, random_scores


def told(adjusted):
    k = len(adjusted)
    return MethodScoresDisplay([f"m{i}" for i in range(k)], np.ones(k), np.ones((k, 2)), adjusted, "error").text()


def test_those_not_told_from_the_best_need_not_follow_it():
    assert told(between(4, p01=0.01, p03=0.01)) == "Error: m0 does not differ significantly from m2."
    assert told(between(4, p12=0.01)) == "Error: m0 does not differ significantly from any other method."
    assert told(between(3, p01=0.01, p02=0.049)) == "Error: m0 differs significantly from every other method."
    assert told(between(2)) == "Error: no two methods differ significantly."
    assert "m6, and 1 more" in told(between(9, p08=0.01))


def test_log_loss_m_does_not_differ_significantly_from_m():
    base = np.linspace(0.1, 0.12, 8)
    noise = 0.002 * np.outer([0.0, 1.1, -1.0, 1.2], np.tile([1, -1], 4)) + 1e-6 * np.arange(4)[:, None]
    cv = made([base + noise[0], base + noise[1], base + 1 + noise[2], base + 1 + noise[3]])
    display = MethodScoresDisplay.from_comparison(cv)
    assert display.text() == "Log-loss: m0 does not differ significantly from m1."
    apart = MethodScoresDisplay.from_comparison(made([base, base + 1 + noise[1]]))
    assert apart.text() == "Log-loss: m0 differs significantly from every other method."


def test_what_is_refused():
    cv = made(random_scores(0))
    with pytest.raises(TypeError, match="this display needs the result of compare or cross_validate; got 3"):
        MethodScoresDisplay.from_comparison(3)
    with pytest.raises(ValueError, match="metric must be one of 'error', .*; got 'fit_seconds'"):
        MethodScoresDisplay.from_comparison(cv, metric="fit_seconds")
    with pytest.raises(ValueError, match=r"alpha must be between 0 and 1; got 1\.5"):
        MethodScoresDisplay.from_comparison(cv, alpha=1.5)
    with pytest.raises(ValueError, match="needs two methods that worked in every fold; there is 1"):
        MethodScoresDisplay.from_comparison(made([[0.1, 0.2]]))
