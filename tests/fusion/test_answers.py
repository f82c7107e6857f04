"""Answers in every form a user may have them: the same facts, read the same; what cannot be read is named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mixent.fusion import Calibration, Fuser, LongAnswers, Source, long_answers
from mixent.fusion.answers import read_answers
from mixent.fusion.sources import Layout

CLASSES = ["no", "yes"]
VOTER = Calibration.from_counts([[8, 1, 1], [2, 1, 7]], CLASSES, ["no", "unsure", "yes"])
JUDGE = Calibration.from_counts([[70, 30], [20, 80]], CLASSES)
SCORER = Calibration.from_scores([*["no"] * 4, *["yes"] * 4], [1.0, 2, 3, 5, 4, 6, 7, 8], edges=[3.5, 5.5])
LINE = Calibration(("no", "yes"), ("no", "yes"), [[5.0, 2], [1, 6]], line=(2.0, -1.0))
CELLS = Calibration(("no", "yes"), ("no", "yes"), np.arange(1.0, 9).reshape(2, 2, 2), cells=("left", "right"))
ALL = {"voter": VOTER, "judge": JUDGE, "scorer": SCORER, "line": LINE, "cells": CELLS}
SAID = {
    "voter": ["no", "unsure", None, "yes"],
    "judge:no": [0.9, 0.25, np.nan, 0.5],
    "judge:yes": [0.1, 0.75, np.nan, 0.5],
    "scorer": [1.0, 3.5, np.nan, 9.0],
    "line": [0.5, 3.0, np.nan, -2.0],
    "cells": ["no", "yes", "yes", None],
    "cells@": ["left", "right", None, "left"],
}
PMF = np.array([[0.9, 0.1], [0.25, 0.75], [np.nan, np.nan], [0.5, 0.5]])


def read(sources, table, unknown="ignore"):
    layout = Layout.of(sources)
    found = read_answers(layout, table, unknown)
    return dict(zip(layout.names, found.responses))


def as_dict():
    return {**{k: v for k, v in SAID.items() if ":" not in k}, "judge": PMF}


WIDE = {
    "pandas": lambda: pd.DataFrame(SAID),
    "polars": lambda: pl.DataFrame(SAID, strict=False),
    "pyarrow": lambda: pa.Table.from_pandas(pd.DataFrame(SAID)),
    "dict": as_dict,
    "dict of dicts": lambda: {**as_dict(), "judge": {"no": SAID["judge:no"], "yes": SAID["judge:yes"]}},
    "one class left out": lambda: {**as_dict(), "judge": {"yes": SAID["judge:yes"]}},
    "columns in another order": lambda: pd.DataFrame(SAID)[list(reversed(SAID))],
    "with other columns": lambda: pd.DataFrame({"id": range(4), **SAID, "truth": ["no"] * 4}),
}


@pytest.mark.parametrize("form", WIDE)
def test_every_form_of_a_table_is_read_the_same(form):
    said = read(ALL, WIDE[form]())
    assert said["voter"].tolist() == [0, 1, -1, 2]
    np.testing.assert_allclose(said["judge"], np.nan_to_num(PMF), atol=1e-12)
    assert said["scorer"].tolist() == [0, 1, -1, 2]  # a score on a border belongs to the bin above
    ratio = 2 * np.array([0.5, 3.0, -2.0]) - 1
    odds = np.exp(ratio) * (7 / 7)  # its priors are even
    np.testing.assert_allclose(said["line"][[0, 1, 3], 1], odds / (1 + odds), rtol=1e-12)
    assert not said["line"][2].any()
    assert said["cells"].tolist() == [0, 3, -1, -1]  # (symbol, cell) as one; both are needed


def test_a_list_of_rows_is_in_the_order_of_the_sources():
    two = {"voter": VOTER, "scorer": SCORER}
    for rows in ([["no", 1.0], [None, 9.0]], np.array([["no", 1.0], [None, 9.0]], dtype=object)):
        said = read(two, rows)
        assert said["voter"].tolist() == [0, -1] and said["scorer"].tolist() == [0, 2]


def test_a_source_that_is_not_named_in_a_dict_was_silent():
    said = read(ALL, {"voter": ["yes", ""]})
    assert said["voter"].tolist() == [2, -1] and said["judge"].tolist() == [-1, -1]


def test_named_columns():
    table = pd.DataFrame({"V 1": ["no"], "p": [0.3], "q": [0.7], "L": [0.2], "R": [0.8], "where": ["right"]})
    sources = {
        "voter": Source(VOTER, columns="V 1"),
        "listed": Source(JUDGE, columns=["p", "q"]),
        "named": Source(JUDGE, columns={"yes": "q", "no": "p"}),
        "part": Source(JUDGE, columns={"yes": "q"}),
        "latent": Source(CELLS, columns="V 1", cells=["L", "R"]),
        "placed": Source(CELLS, columns=["p", "q"], cells="where"),
    }
    said = read(sources, table)
    for name in ("listed", "named", "part"):
        np.testing.assert_allclose(said[name], [[0.3, 0.7]])
    np.testing.assert_allclose(said["latent"], [[0.2, 0.8, 0, 0]])
    np.testing.assert_allclose(said["placed"], [[0, 0.3, 0, 0.7]])
    split = read({"cells": CELLS}, pd.DataFrame({"cells": ["yes"], "cells@left": [0.5], "cells@right": [0.5]}))
    np.testing.assert_allclose(split["cells"], [[0, 0, 0.5, 0.5]])


BLANKS = [None, np.nan, "", "  ", pd.NA, pd.NaT, float("nan")]


@pytest.mark.parametrize("blank", BLANKS, ids=repr)
def test_a_blank_is_no_answer(blank):
    assert read({"voter": VOTER}, {"voter": ["no", blank]})["voter"].tolist() == [0, -1]
    frame = pd.DataFrame({"voter": pd.Series(["no", blank], dtype=object)})
    assert read({"voter": VOTER}, frame)["voter"].tolist() == [0, -1]


def test_columns_may_have_numbers_for_names():
    frame = pd.DataFrame({0: ["no", "yes"], 1: ["yes", None]})
    said = read({"0": VOTER, "1": JUDGE}, frame)
    assert said["0"].tolist() == [0, 2] and said["1"].tolist() == [1, -1]
    assert Fuser(method="majority").fit(frame).posterior_.tolist() == [[0.5, 0.5], [0, 1]]


def test_labels_of_any_type():
    numbers = Calibration.from_counts([[8, 2], [1, 9]], [1, 2])
    for values in ([1, 2, None], [1.0, 2.0, np.nan], np.array([1, 2, 1])[:2], pd.Series([1, 2], dtype="Int64")):
        assert read({"a": numbers}, {"a": values})["a"].tolist()[:2] == [0, 1]
    flags = Calibration.from_counts([[8, 2], [1, 9]], [False, True])
    assert read({"a": flags}, pl.DataFrame({"a": [True, None, False]}))["a"].tolist() == [1, -1, 0]
    kinds = pd.DataFrame({"voter": pd.Categorical(["no", None, "yes"])})
    assert read({"voter": VOTER}, kinds)["voter"].tolist() == [0, -1, 2]


LONG = {
    "item": ["i1", "i1", "i2", "i3", "i3"],
    "source": ["judge", "voter", "voter", "judge", "voter"],
    "value": ["no", "no", "yes", "yes", None],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_long_tables(make):
    two = {"voter": VOTER, "judge": JUDGE}
    turned = long_answers(make(LONG))
    assert isinstance(turned, LongAnswers) and turned.items.tolist() == ["i1", "i2", "i3"]
    said = read(two, turned)
    assert said["voter"].tolist() == [0, 2, -1] and said["judge"].tolist() == [0, -1, 1]
    other = make({"case": LONG["item"], "who": LONG["source"], "told": LONG["value"]})
    again = read(two, long_answers(other, item="case", source="who", value="told"))
    assert all((again[name] == said[name]).all() for name in said)
    fuser = Fuser(two, method="product").fit(turned)
    assert fuser.items_.tolist() == ["i1", "i2", "i3"]
    assert fuser.fit({"voter": ["no"]}).items_ is None
    assert fuser.partial_fit(turned).items_.tolist() == ["i1", "i2", "i3"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_long_tables_with_probabilities(make):
    table = make(
        {
            "item": [7, 7, 8, 9, 9],
            "source": ["judge"] * 5,
            "value": ["no", "yes", "no", "yes", "no"],
            "p": [0.2, 0.8, 1.0, 0.4, 0.6],
        }
    )
    turned = long_answers(table, probability="p")
    said = read({"judge": JUDGE, "voter": VOTER}, turned)
    np.testing.assert_allclose(said["judge"], [[0.2, 0.8], [1, 0], [0.6, 0.4]])
    assert said["voter"].tolist() == [-1, -1, -1]


def test_what_is_read_can_be_cut_and_joined():
    layout = Layout.of({"voter": VOTER, "judge": JUDGE})
    hard = read_answers(layout, {"voter": ["no", "yes"], "judge": ["no", None]})
    soft = read_answers(layout, {"voter": [None], "judge": [[0.5, 0.5]]})
    assert read_answers(layout, hard) is hard
    for a, b in ((hard, soft), (soft, hard)):
        both = a.joined(b)
        assert both.n_items == 3 and both.responses[0].ndim == 1
        rows = [a.n_items + i for i in range(b.n_items)]
        assert both.part(rows).responses[0].tolist() == b.responses[0].tolist()
    np.testing.assert_allclose(hard.joined(soft).responses[1], [[1, 0], [0, 0], [0.5, 0.5]])
    assert hard.joined(soft).answered().tolist() == [[True, True, False], [True, False, True]]


def test_the_layout_lays_symbols_one_below_the_other():
    more = Calibration.from_counts([[1, 2], [3, 4]], ["maybe", "no"], ["x", "y"])
    layout = Layout.of({"voter": VOTER, "more": more, "cells": CELLS})
    assert layout.classes.tolist() == ["maybe", "no", "yes"] and layout.sizes == (3, 2, 4)
    assert layout.source_of.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    np.testing.assert_allclose(layout.confusion[:3, 1:], VOTER.confusion.T)
    pooled = (VOTER.counts.sum(axis=0) + 0.5) / (20 + 1.5)
    np.testing.assert_allclose(layout.confusion[:3, 0], pooled)  # never calibrated on: tells nothing
    np.testing.assert_allclose(layout.counts[:3, 1:], VOTER.counts.T + 0.5)  # of a Dirichlet distribution
    np.testing.assert_allclose(layout.counts[:3, 0], pooled * 1.5)  # worth the pseudo-counts alone
    np.testing.assert_allclose(layout.counts[5:, 1:], CELLS.counts.reshape(2, 4).T + 0.25)
    assert layout.unconstrained.any(axis=0).tolist() == [True, False, True]
    assert layout.n_rows.tolist() == [[0, 10, 10], [3, 7, 0], [0, 10, 26]]
    np.testing.assert_allclose(layout.training_prior, np.array([3, 27, 36]) / 66)


def test_copies_of_copies_and_rings_are_one_group():
    def one(of=None):
        return Calibration.from_counts([[8, 2], [1, 9]], CLASSES, copy_of=of)

    chain = Layout.of({"a": one(), "b": one("a"), "c": one("b"), "d": one()})
    assert chain.root.tolist() == [0, 0, 0, 3]
    np.testing.assert_allclose(chain.share, [1 / 3, 1 / 3, 1 / 3, 1])
    ring = Layout.of({"a": one(), "b": one("c"), "c": one("b"), "d": one("c")})
    assert ring.root.tolist() == [0, 1, 1, 1]
