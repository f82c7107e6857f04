"""The former section of a mixture."""

import numpy as np
import pandas as pd
import pytest

from mixent.base import document
from mixent.report import mixture, search


@pytest.fixture(scope="module")
def orchestra():
    from mixent.datasets import make_orchestra

    return make_orchestra(200, random_state=0)


def test_the_chosen_model_heads_the_search_and_duplicates_are_left_out():
    losses = [0.1, 0.1 + 1e-15, 0.2, 0.3, 0.3]
    tried = [
        {"covariance": f"S{i}", "log_loss": loss, "error": 0.5, "temperature": 1.0, "across_classes": False}
        | {"chosen": i == 4}
        for i, loss in enumerate(losses)
    ]
    table = search.search_table(tried)
    assert list(table.header)[:3] == ["", "covariance", "log loss"]
    assert [row[:2] for row in table.rows] == [["chosen", "S4"], ["", "S0"], ["", "S2"]]
    assert "3 of 3, the chosen one first, then by held-out log-loss" in table.caption
    assert "across classes" not in table.header  # none of them: nothing to tell
    assert table.caption.endswith("The same in all: temperature 1")
    tried[0]["across_classes"] = True
    table = search.search_table(tried)
    assert "across classes" in table.header and "all classes share what the structure calls equal" in table.caption


def test_the_search_table_has_few_digits():
    one = {"n_components": [3, 3], "covariance": "VVV", "prior_rows": 0.8, "log_loss": 0.39642012, "log_loss_raw": 0.4}
    other = {"n_components": [3, 1], "covariance": ["VVV", "VVI"], "prior_rows": 12.3456, "log_loss": 0.5}
    table = search.search_table([one | {"chosen": True}, other])
    assert list(table.header) == ["", "n components", "covariance", "prior rows", "log loss"]
    cells = [[getattr(cell, "text", cell) for cell in row] for row in table.rows]
    assert cells == [["chosen", "3 each", "VVV", "0.8", "0.396"], ["", "3, 1", "VVV, VVI", "12.3", "0.500"]]


def test_components_are_readable_and_count_from_0():
    import mixent as mx

    rng, y = np.random.default_rng(0), np.arange(80) % 2
    frame = pd.DataFrame(20850 + 3000 * rng.normal(size=(80, 6)), columns=list("abcdef"))
    frame["colour"] = np.where(rng.random(80) < 0.9, np.where(y == 1, "red", "blue"), "green")
    table = mixture.components_table(mx.MixtureClassifier(1).fit(frame, y), frame)
    assert "first 5 of 6 numeric columns" in table.caption and "most probable value" in table.caption
    assert list(table.header) == ["component", "class", "weight", *"abcde", "colour"]
    assert [row[0] for row in table.rows] == ["0", "1"]
    assert table.rows[0][-1].startswith("blue (") and table.rows[1][-1].startswith("red (")
    assert "e+" not in table.html() and "± 3" in table.html()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"search__criterion": "bic"}, "BIC against the number of components; chosen: VVI"),
        ({"search__criterion": "dic", "search__growth": "incremental"}, "DIC against the number of components"),
        ({"search__criterion": "cbic", "search__per_class": True}, "chosen: for metal VVI"),
        ({"search__criterion": "cv", "search__per_class": True}, "then by held-out log-loss"),
        ({"search__criterion": "cv", "training": "conditional"}, "by likelihood; the chosen one was then trained"),
        ({"search__criterion": "icl", "search__nested": 2}, "then by held-out error"),
    ],
)
def test_every_selection_is_shown(orchestra, options, told, monkeypatch):
    import mixent as mx

    model = mx.MixtureClassifier("auto", "VVI", search=mx.Search(max_components=2), random_state=0).set_params(
        **options
    )
    model.fit(orchestra.X, orchestra.y)
    content = mixture.mixture_section("m", model, orchestra.X)
    captions = [part.caption for part in content if isinstance(part, document.Table | document.Figure)]
    assert sum(told in caption for caption in captions) == 1
    assert any("added one at a time" in caption for caption in captions) == ("search__growth" in options)
    monkeypatch.setattr(document, "find_spec", lambda name: None)
    plain = [part for part in mixture.mixture_section("m", model, orchestra.X) if isinstance(part, document.Table)]
    assert any("What the search tried (" in part.caption for part in plain) and all(part.html() for part in plain)


def test_a_search_without_pictures_is_a_table(orchestra):
    import mixent as mx

    model = mx.GaussianMixture("auto", "VVI", search=mx.Search("cv", 2), random_state=0).fit(orchestra.X)
    assert (
        "2 of 2, the chosen one first, then by -2 x held-out log density"
        in search.search_table(model.search_, model._group("search").criterion).caption
    )
    model = mx.MixtureClassifier("auto", "VVI", search=mx.Search("bic", 2, per_class=True), random_state=0)
    table = search.search_table(model.fit(orchestra.X, orchestra.y).search_, "bic")
    assert "4 of 4, those chosen first, then by BIC, lower is better" in table.caption
    assert [row[0] for row in table.rows] == ["chosen", "chosen", "", ""]
