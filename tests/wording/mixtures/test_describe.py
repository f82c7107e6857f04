"""Wording of mixtures, describe."""

import numpy as np
import pytest

from mixent import GaussianMixture, MixtureClassifier
from mixent.base.document import Bullets, Table
from mixent.mixtures.describe_search import search_table

from ...mixtures.test_describe import X, Y, blocks, chosen, text


def test_equal_among_the_components_of_all_classes():
    tied = MixtureClassifier(1, "EEE", across_classes=True).fit(X, Y)
    assert any("refers to the components of all classes" in str(b.items) for b in blocks(tied.summary(), Bullets))


def test_many_columns_and_components_are_cut_and_zero_is_written_as_zero():
    rng = np.random.default_rng(0)
    wide = 20850 + 3000 * rng.normal(size=(80, 7))
    wide[:, 0] = np.tile([-1.0, 1.0], 40)
    table = blocks(GaussianMixture(1).fit(wide).summary(), Table)[0]
    assert len(table.header) == 7 and "the first 5 of 7 numeric columns" in table.caption
    assert text(table.rows[0][2]).startswith("0 ± 1") and "e+" not in table.html()
    many = GaussianMixture(32, "EII", max_iter=1, random_state=0)
    with pytest.warns(UserWarning, match="did not converge"):
        table = blocks(many.fit(rng.normal(size=(200, 1))).summary(), Table)[0]
    assert len(table.rows) == 30 and "the first 30 of 32 components" in table.caption


def test_of_the_chosen_first_then_by_bic():
    table = search_table(chosen(search__criterion="bic", search__per_class=True))
    [float(text(row[table.header.index("bic")])) for row in table.rows]
    assert "4 of 4, the chosen first, then by BIC" in table.caption
