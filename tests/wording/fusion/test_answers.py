"""Wording of fusion, answers."""

import numpy as np
import pandas as pd
import pytest

from mixent.fusion import Calibration, Source, long_answers
from mixent.fusion.sources import Layout

from ...fusion.test_answers import CELLS, CLASSES, JUDGE, LINE, LONG, SCORER, VOTER, read

TWO = {"voter": VOTER, "judge": JUDGE}


NUMBERS = Calibration.from_counts([[8, 2], [1, 9]], [1, 2])


@pytest.mark.parametrize(
    ("sources", "table", "message"),
    [
        (TWO, {"vote": ["no"]}, "unknown source 'vote'; choose one of 'voter', 'judge'"),
        (
            TWO,
            {"voter": ["no"], "judge": ["no", "yes"]},
            "answers to the same items; the lengths are {'voter'",
        ),
        (TWO, {}, "the dict of answers is empty; give the answers of at least one source"),
        (TWO, [["no"]], r"column for each of the 2 sources 'voter', 'judge', or a dict; got shape \(1, 1\)"),
        (TWO, ["no", "yes"], r"or a dict; got shape \(2,\)"),
        (
            TWO,
            pd.DataFrame({"voter": ["no"]}),
            r"the table has no column 'judge' with the answers of source 'judge' \(nor probabilities in columns "
            "'judge:symbol'\\); its columns are 'voter'. A source without answers needs a blank column",
        ),
        (TWO, {"voter": ["no", "maybe"]}, "'voter' answers 'maybe' to item 1, which is none of its symbols 'no', 'uns"),
        (TWO, {"voter": [{"no"}]}, "the answers of 'voter' must be labels; unhashable type"),
        (
            {"a": NUMBERS},
            {"a": ["1"]},
            r"none of its symbols 1, 2 \(the answer is str, the symbols are int\)",
        ),
        (TWO, {"voter": [1]}, "'voter' answers 1 to item 0, which is none of its symbols 'no', 'unsure', 'yes'; leave"),
        (TWO, {"judge": np.ones((2, 3)) / 3}, "'judge' gives 3 probabilities for 2 symbols 'no', 'yes'"),
        (TWO, {"judge": [[0.5, 0.6]]}, r"the probabilities of 'judge' must be >= 0 and sum to 1 .* row 0 has \[0.5"),
        (TWO, {"judge": {"yes": [1.5]}}, "the probabilities of 'judge' must be >= 0 and sum to 1"),
        (TWO, {"judge": {"maybe": [0.5]}}, "'judge' has a probability of 'maybe', which is none of its symbols"),
        (
            {"judge": JUDGE},
            pd.DataFrame({"judge:no": ["x"], "judge:yes": [0.5]}),
            "column 'judge:no' must hold numbers; could not convert",
        ),
        ({"scorer": SCORER}, {"scorer": ["high"]}, "column 'scorer' must hold numbers; could not convert"),
        ({"line": LINE}, {"line": [1.0, np.inf]}, "the scores of 'line' must be finite; row 1 is not"),
        (TWO, {"voter": ["no"], "voter@": ["left"]}, "the answers of source 'voter' have cells, but its calibration"),
        ({"cells": CELLS}, {"cells": ["no"]}, "was calibrated with cells; give them with its answers, as 'cells@'"),
        (
            {"cells": CELLS},
            {"cells": ["no"], "cells@": ["top"]},
            "'the cells of 'cells'' answers 'top' to item 0|\"the cells of 'cells'\" answers 'top' to item 0",
        ),
    ],
)
def test_what_cannot_be_read_is_named(sources, table, message):
    with pytest.raises(ValueError, match=message):
        read(sources, table)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([1, 2], {}, "a long table must be a DataFrame; got list"),
        (
            pd.DataFrame({"item": [1], "value": [2]}),
            {},
            "the long table has no column 'source'; its columns are 'item', 'value'",
        ),
        (pd.DataFrame(LONG), {"probability": "p"}, "the long table has no column 'p'"),
        (
            pd.DataFrame({"item": ["a", None], "source": ["x", "x"], "value": [1, 1]}),
            {},
            "column 'item' of the long table is blank in row 1",
        ),
        (
            pd.DataFrame({"item": ["a", "a"], "source": ["x", "x"], "value": [1, 1]}),
            {},
            "source 'x' answers item 'a' more than once; keep one answer of each",
        ),
    ],
)
def test_messages_of_long_tables(table, options, message):
    with pytest.raises(ValueError, match=message):
        long_answers(table, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Source("x"), "calibration must be a Calibration; got str"),
        (lambda: Source(VOTER, cells="where"), "cells is only used with a calibration that has cells"),
        (lambda: Source(VOTER, as_is=1), "as_is must be True or False; got 1"),
        (lambda: Layout.of({}), "sources must be a dict, name -> Calibration or Source, and not empty; got {}"),
        (lambda: Layout.of([VOTER]), "sources must be a dict, name -> Calibration or Source"),
        (lambda: Layout.of({"a": 3}), "source 'a' must be a Calibration or a Source; got int"),
        (
            lambda: Layout.of({"a": Calibration.from_counts([[1, 2], [2, 1]], CLASSES, copy_of="b")}),
            "copy_of of source 'a' must be another of the sources 'a'; got 'b'",
        ),
        (
            lambda: Layout.of({"a": Calibration.from_counts([[1, 2], [2, 1]], CLASSES, copy_of="a")}),
            "copy_of of source 'a' must be another",
        ),
        (
            lambda: Layout.of({"a": Calibration.from_counts([[1, 0], [0, 1]], CLASSES, smoothing=0)}),
            "source 'a' has a rate of zero and smoothing 0, .* use smoothing > 0",
        ),
        (
            lambda: Layout.of({"a": VOTER, "b": NUMBERS}),
            "the sources' classes must be all text or all numbers; got 1, 2, 'no', 'yes'",
        ),
    ],
)
def test_messages_of_sources(make, message):
    with pytest.raises(ValueError, match=message):
        make()
