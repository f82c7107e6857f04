"""Pictures of comparisons: what is drawn is what was found, and names do not lie over each other."""

import numpy as np
import pytest

from mixent.displays import CriticalDifferenceDisplay
from mixent.evaluate import compare_over_sets

from ..drawing import drawn

LONG = "an ensemble of_very_many $members$ with a name to match"


def comparison(k, n=14, step=0.4, names=None, seed=0):
    scores = np.random.default_rng(seed).normal(size=(n, k)) + step * np.arange(k)
    return compare_over_sets(dict(zip(names or [f"method {j}" for j in range(k)], scores.T)))


def boxes(ax):
    """Where the texts are, in pixels."""
    return {text.get_text(): text.get_window_extent() for text in ax.texts}


def bars(ax):
    return [line for line in ax.lines if line.get_linewidth() == 3.6]


@pytest.mark.parametrize("k", [3, 6, 12])
@pytest.mark.parametrize("tied", [False, True])
def test_texts_do_not_overlap_and_are_inside(k, tied):
    scores = np.random.default_rng(0).normal(size=(14, k)) + 0.4 * np.arange(k)
    if tied:
        scores[:, 1], scores[:, -1] = scores[:, 0], scores[:, -2]
    names = [LONG, "a", *(f"method {j}" for j in range(k - 3)), LONG[::-1]]
    ax = drawn(CriticalDifferenceDisplay.from_comparison(compare_over_sets(dict(zip(names, scores.T)))))
    found, page = list(boxes(ax).values()), ax.figure.bbox
    for i, box in enumerate(found):
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        for other in found[i + 1 :]:
            assert not box.overlaps(other)


def test_ranks_bars_and_the_critical_difference_are_those_found():
    found = comparison(6)
    display = CriticalDifferenceDisplay.from_comparison(found)
    ax = drawn(display)
    said = [text.get_text() for text in ax.texts]
    for name, rank in zip(found.methods, found.mean_ranks):
        assert f"{name}  {rank:.2f}" in said or f"{rank:.2f}  {name}" in said
    assert f"critical difference {found.critical_difference:.2f} at 5 %" in said
    ranks = dict(zip(found.methods, found.mean_ranks))
    assert len(bars(ax)) == len(found.groups) > 1
    ends = sorted(tuple(bar.get_xdata()) for bar in bars(ax))
    for (low, high), group in zip(ends, found.groups):
        assert low == pytest.approx(ranks[group[0]], abs=0.06) and high == pytest.approx(ranks[group[-1]], abs=0.06)
    length = next(line for line in ax.lines if line.get_linewidth() == 1.8)
    assert np.ptp(length.get_xdata()) == pytest.approx(found.critical_difference)
    points = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points, np.sort(found.mean_ranks))


@pytest.mark.parametrize(("second", "levels"), [(2.05, 2), (2.6, 1)])
def test_bars_that_nearly_touch_are_on_two_levels(second, levels):
    ranks = np.array([1.2, 2.0, second, 3.8])
    display = CriticalDifferenceDisplay(list("abcd"), ranks, [[0, 1], [2, 3]], 1.5, 20, 0.01, 0.05)
    assert len({bar.get_ydata()[0] for bar in bars(drawn(display))}) == levels


def test_it_takes_axes_and_shows_itself_in_a_line():
    from matplotlib.figure import Figure

    display = CriticalDifferenceDisplay.from_comparison(comparison(5))
    ax = Figure((9, 4)).subplots()
    assert drawn(display, ax) is ax and len(repr(display)) < 200
    assert all(ax.figure.bbox.x0 < box.x0 and box.x1 < ax.figure.bbox.x1 for box in boxes(ax).values())
