"""Wording of core, stats."""

import numpy as np
import pytest

from mixent.core.stats import tree_sum

from ...core.test_stats import Inner, Outer, outer


def test_statistics_about_different_things_do_not_add():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="cannot be added: one is about 'center', the other about 'means'"):
        outer(rng) + outer(rng, "means")
    with pytest.raises(ValueError, match="cannot be added"):
        Outer(None, (), 1, 1.0) + outer(rng)
    with pytest.raises(ValueError, match="argument 2"):
        Outer(None, (1.0,), 1, 1.0) + Outer(None, (), 1, 1.0)
    with pytest.raises(TypeError):
        Inner(np.zeros(2), "a") + Outer(None, (), 1, 1.0)


def test_nothing_to_sum_says_so():
    with pytest.raises(ValueError, match="the source has no blocks"):
        tree_sum([])
