"""Wording of fusion, answers."""

import numpy as np
import pandas as pd
import pytest

from mixent import DataWarning
from mixent.fusion import Calibration, Fuser, Source, long_answers
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
            "of all sources must have the same length; got {'voter'",
        ),
        (TWO, {}, "the answers must contain at least one source; got an empty dict"),
        (TWO, [["no"]], r"column for each of the 2 sources 'voter', 'judge'; got shape \(1, 1\)"),
        (TWO, ["no", "yes"], r"must be a dict or a table .*; got shape \(2,\)"),
        (
            TWO,
            pd.DataFrame({"voter": ["no"]}),
            r"the answers of source 'judge' must be in a column 'judge' \(or probabilities in columns "
            "'judge:symbol'\\); the columns of the table are 'voter'. For a source without answers, add a blank column",
        ),
        (TWO, {"voter": ["no", "maybe"]}, "must be among 'no', 'unsure', 'yes'; got 'maybe' for item 1; leave"),
        (TWO, {"voter": [{"no"}]}, "the answers of 'voter' must be labels; unhashable type"),
        (
            {"a": NUMBERS},
            {"a": ["1"]},
            r"got '1' for item 0 \(the answer is of type str, the symbols are of type int\)",
        ),
        (TWO, {"voter": [1]}, "the answers of 'voter' must be among 'no', 'unsure', 'yes'; got 1 for item 0; leave"),
        (TWO, {"judge": np.ones((2, 3)) / 3}, "must have probabilities of its 2 symbols 'no', 'yes'; got 3 columns"),
        (TWO, {"judge": [[0.5, 0.6]]}, r"the probabilities of 'judge' must be >= 0 and sum to 1, .* row 0 has \[0.5"),
        (TWO, {"judge": {"yes": [1.5]}}, "the probabilities of 'judge' must be >= 0 and sum to 1"),
        (TWO, {"judge": {"maybe": [0.5]}}, "of its symbols 'no', 'yes'; got a probability of 'maybe'"),
        (
            {"judge": JUDGE},
            pd.DataFrame({"judge:no": ["x"], "judge:yes": [0.5]}),
            "column 'judge:no' must contain numbers; could not convert",
        ),
        ({"scorer": SCORER}, {"scorer": ["high"]}, "column 'scorer' must contain numbers; could not convert"),
        ({"line": LINE}, {"line": [1.0, np.inf]}, "the scores of source 'line' must be finite; row 1 has inf"),
        (TWO, {"voter": ["no"], "voter@": ["left"]}, "the answers of source 'voter' have cells, but its calibration"),
        ({"cells": CELLS}, {"cells": ["no"]}, "was calibrated with cells; add the cells of its answers as 'cells@'"),
        (
            {"cells": CELLS},
            {"cells": ["no"], "cells@": ["top"]},
            "the answers of 'cells@' must be among 'left', 'right'; got 'top' for item 0",
        ),
    ],
)
def test_what_cannot_be_read_is_named(sources, table, message):
    with pytest.raises(ValueError, match=message):
        read(sources, table, unknown="error")


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([1, 2], {}, "a long table must be a DataFrame; got list"),
        (
            pd.DataFrame({"item": [1], "value": [2]}),
            {},
            "the long table must have a column 'source'; its columns are 'item', 'value'",
        ),
        (pd.DataFrame(LONG), {"probability": "p"}, "the long table must have a column 'p'"),
        (
            pd.DataFrame({"item": ["a", None], "source": ["x", "x"], "value": [1, 1]}),
            {},
            "column 'item' of the long table must not have blanks; row 1 is blank",
        ),
        (
            pd.DataFrame({"item": ["a", "a"], "source": ["x", "x"], "value": [1, 1]}),
            {},
            "source 'x' has more than one answer to item 'a'; keep one of them",
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
        (lambda: Layout.of({}), "sources must be a non-empty dict of name -> Calibration or Source; got {}"),
        (lambda: Layout.of([VOTER]), "sources must be a non-empty dict of name -> Calibration or Source"),
        (lambda: Layout.of({"a": 3}), "source 'a' must be a Calibration or a Source; got int"),
        (
            lambda: Layout.of({"a": Calibration.from_counts([[1, 2], [2, 1]], CLASSES, copy_of="b")}),
            "copy_of of source 'a' must be the name of another source, one of 'a'; got 'b'",
        ),
        (
            lambda: Layout.of({"a": Calibration.from_counts([[1, 2], [2, 1]], CLASSES, copy_of="a")}),
            "copy_of of source 'a' must be the name of another source",
        ),
        (
            lambda: Layout.of({"a": Calibration.from_counts([[1, 0], [0, 1]], CLASSES, smoothing=0)}),
            "source 'a' has a rate of zero and smoothing=0, .* use smoothing > 0",
        ),
        (
            lambda: Layout.of({"a": VOTER, "b": NUMBERS}),
            "the classes of all sources must be strings, or all numbers; got 1, 2, 'no', 'yes'",
        ),
    ],
)
def test_messages_of_sources(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_notes_on_unforeseen_answers():
    numbers = {"a": Calibration.from_counts([[8, 2, 3], [1, 9, 3]], [0, 1], [0, 1, 2])}
    cases = [
        (
            TWO,
            {"voter": ["no", "maybe"]},
            "1 answer of 'voter' ('maybe'), first for item 1, is not among 'no', 'unsure', "
            "'yes' and is used as no answer",
        ),
        (
            TWO,
            {"voter": ["No", " yes"]},
            "2 answers of 'voter' ('No', ' yes'), first for item 0, are not among 'no', "
            "'unsure', 'yes' and are used as no answer ('No' differs from 'no' only in case or blanks)",
        ),
        (
            numbers,
            {"a": [7, 8, 9, 6]},
            "4 answers of 'a' (7, 8, 9, ...), first for item 0, are not among 0, 1, 2 and are used as "
            "no answer (if the answers are scores, calibrate with `from_scores`, or `mixent calibrate --score a`)",
        ),
    ]
    for sources, table, message in cases:
        with pytest.warns(DataWarning) as caught:
            read(sources, table)
        assert str(caught[0].message) == message


def test_a_list_of_class_priors_needs_one_order():
    turned = Calibration.from_counts([[8, 2], [1, 9]], ["yes", "no"])
    message = (
        "class_prior must be a dict of label -> probability, because the calibrations have the classes in different "
    )
    with pytest.raises(ValueError, match=message + "orders: 'no', 'yes' and 'yes', 'no'"):
        Fuser({"a": JUDGE, "b": turned}, class_prior=[0.2, 0.8]).fit({"a": ["no"]})
    with pytest.raises(ValueError, match="unknown must be one of 'ignore', 'symbol', 'error'; got 'drop'"):
        Fuser({"a": JUDGE}, unknown="drop").fit({"a": ["no"]})
