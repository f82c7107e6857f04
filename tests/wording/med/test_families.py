"""Wording of med, families."""

import numpy as np
import pytest
from scipy.special import logsumexp

from mixent.core.driver import OutsideDomainError
from mixent.med.families import Dirichlets, TreeDistribution

from ...med.test_families import every_tree


def test_edge_weights_of_a_tree_are_not_finite():
    rng = np.random.default_rng(0)
    T, prior = rng.normal(size=(2, 10)) * 2
    place = {edge: e for e, edge in enumerate(zip(*np.triu_indices(5, 1)))}
    member = np.array([[edge in tree for edge in place] for tree in every_tree(5)], dtype=float)

    def probability(T):
        return np.exp(member @ T - logsumexp(member @ T))

    ours, _before, _p, _q = TreeDistribution(T), TreeDistribution(prior), probability(T), probability(prior)
    with pytest.raises(OutsideDomainError, match="the edge weights of a tree are not finite"):
        ours.with_natural_parameters(np.where(np.arange(10) == 3, np.inf, T))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_dirichlet_counts_are_positive(bad):
    good = Dirichlets(np.ones(3), np.array([0, 0, 1]))
    with pytest.raises(OutsideDomainError, match="a count is not positive"):
        good.with_natural_parameters(np.array([1.0, bad, 1.0]))
