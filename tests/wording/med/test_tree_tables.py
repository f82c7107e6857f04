"""Wording of med, tree tables."""

import pytest

from mixent.med import tree_columns

from ...med.test_tree_tables import columns_of, words


def test_too_many_values_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(tree_columns, "MOST_CELLS", 8)
    with pytest.raises(ValueError, match="the columns have 9 values in all, and pairwise tables take at most 8; join"):
        columns_of(words())
