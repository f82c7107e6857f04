"""Wording of med, spanning trees."""

import numpy as np
import pytest

from mixent.core.driver import OutsideDomainError
from mixent.med.spanning_trees import SpanningTrees, heaviest_tree


def test_no_tree_spans_a_graph_in_two_pieces():
    log_weights = np.full(6, -np.inf)
    log_weights[[0, 5]] = 0.0  # 0-1 and 2-3
    for ask in (lambda t: t.log_partition, lambda t: t.mean, lambda t: t.best):
        with pytest.raises(OutsideDomainError, match="no tree spans these vertices: too many edges have weight zero"):
            ask(SpanningTrees(log_weights))
    with pytest.raises(OutsideDomainError, match="no tree spans"):
        heaviest_tree(np.full((2, 2), -np.inf))
