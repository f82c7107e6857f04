"""Wording of med, tree tables."""

import pytest

from mixent.med import tree_columns

from ...med.test_tree_tables import columns_of, words


def test_too_many_values_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(tree_columns, "MAX_CELLS", 8)
    with pytest.raises(ValueError, match="pairwise tables allow at most 8 values over all columns; got 9"):
        columns_of(words())
