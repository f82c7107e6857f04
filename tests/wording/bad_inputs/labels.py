"""Targets and weights."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from .cases import (
    Case,
    X,
    classify,
    cluster,
    defined,
    every,
    inf,
    label,
    nan,
    probabilities,
    refused,
    rows,
    useful,
    weigh,
    y,
)

sure = np.eye(2)[y]
ones = np.ones(40)
half = every("p", "q", None, "p")


def soft(value, row=3, column=slice(None)):
    """Label probabilities with one row or cell changed."""
    spoilt = sure.copy()
    spoilt[row, column] = value
    return label(spoilt)


def at(value, row=3):
    return weigh([value if i == row else 1.0 for i in range(40)])


LABELS = [
    *refused(
        ValueError,
        "Unknown label type",
        {
            "None": (label(None), "requires y"),
            "a number": (label(3), "one label per row; got a single int"),
            "a word": (label("abc"), "one label per row; got a single str"),
            "a generator": (label(v for v in y), "got a single generator"),
            "a dict": (label({"a": 1}), "got a single dict"),
            "one too few": (label(y[:39]), "inconsistent numbers of samples: .40, 39."),
            "one too many": (label([*y, 0]), "inconsistent numbers of samples: .40, 41."),
            "none at all": (label([]), "inconsistent numbers of samples: .40, 0."),
            "three dimensions": (label(y.reshape(40, 1, 1)), "y should be a 1d array.*got shape .40, 1, 1."),
            "no columns": (label(np.empty((40, 0))), "y should be a 1d array.*got shape .40, 0."),
            "lists of unequal lengths": label([[1, 0]] * 39 + [[1]]),
            "one class": (label([1] * 40), "at least 2 classes; y has 1 class: 1; check the target"),
            "one class and absent": (label(every("a", None)), "at least 2 classes; y has 1 class: 'a'"),
            "one class and blank": (label(every("a", " ")), "at least 2 classes; y has 1 class: 'a'"),
            "zero and minus zero": (label(every(0.0, -0.0)), "at least 2 classes"),
            "all None": (label([None] * 40), "every label in y is absent .all 40 rows."),
            "all NaN": (label([nan] * 40), "every label in y is absent"),
            "all blank": (label(every("", "  ")), "every label in y is absent"),
            "all masked": (label(np.ma.array(y, mask=True)), "every label in y is absent"),
            "infinite": (label(every(0.0, 1.0, inf)), "Input y contains infinity: row 2 holds inf"),
            "continuous": (label(X[:, 0]), "Unknown label type: continuous"),
            "halves": (label(every(0.5, 1.5)), "Unknown label type: continuous"),
            "complex": (label(y + 1j), "Complex data not supported"),
            "complex in a list": (label(every(1j, 2j)), "y holds complex values; give text"),
            "dates": (label(every(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1))), "y holds date values"),
            "timestamps": (label(pd.date_range("2020", periods=40)), "y holds Timestamp values"),
            "array of dates": (label(rows.astype("M8[D]")), "array of datetime64"),
            "array of timedeltas": (label(rows.astype("m8[D]")), "array of timedelta64"),
            "bytes": (label(every(b"a", b"b")), "y holds bytes values"),
            "array of bytes": (label(np.array(every(b"a", b"b"))), "array of .S1"),
            "any objects": (label([object() for _ in rows]), "y holds object values"),
            "text and numbers": (label(every("a", 1)), "mixes labels of different types .1, 'a'."),
            "1 and '1'": (label(every(1, "1")), "mixes labels of different types"),
            "bool and numbers": (label(every(True, 2)), "mixes labels of different types"),
            "bool and text": (label(every(True, "a")), "mixes labels of different types"),
            "Decimal": (label(every(Decimal(1), Decimal(2))), r"numbers such as Decimal\('1'\); give them as text"),
            "integers of 31 digits": (label(every(0, 10**30)), "numbers such as 0; give them as text"),
            "pairs": (label(every((1, 2), (3, 4))), "row 0 .0: 1, 1: 2. does not sum to 1"),
        },
    ),
    *refused(TypeError, "Sparse data was passed for y.*toarray", {"sparse": label(sp.csr_matrix(sure))}),
    *defined(
        useful,
        {
            "float16 labels": label(y.astype(np.float16)),
            "bool labels": label(y > 0),
            "uint64 up to its maximum": label(np.where(y, np.uint64(2**64 - 1), np.uint64(0))),
            "numbers as text": label(every("1", "2")),
            "beyond ASCII": label(every("ä", "日本")),
            "unused categories": label(pd.Categorical(every("a", "b"), categories=["a", "b", "c"])),
            "masked labels": label(np.ma.array(y, mask=rows % 5 == 0)),
            "NaN labels": label(np.where(rows % 5 == 0, nan, y)),
            "NaT among text": label(["ab"[v] if i % 5 else pd.NaT for i, v in enumerate(y)]),
            "NA among integers": label(pd.array([int(v) if i % 5 else None for i, v in enumerate(y)], dtype="Int64")),
            "integers beyond 2**53 and gaps": label([2**53 + int(v) if i % 5 else None for i, v in enumerate(y)]),
        },
    ),
    *defined(
        probabilities,
        {
            "None in three of four": label(every("a", None, None, None, "b", None, None, None)),
            "markup and formulas": label(every("[bold]", "=cmd()")),
            "polars nulls": label(pl.Series(half)),
            "pyarrow nulls": label(pa.array(half)),
        },
    ),
    Case("a column", label(y[:, None]), check=useful, warns=(DataConversionWarning, "column-vector")),
    Case("as many classes as rows", label(rows), check=probabilities, warns=(UserWarning, "unique classes")),
]

SOFT = [
    *refused(
        ValueError,
        "does not sum to 1; divide",
        {
            "negative": (soft([1.5, -0.5]), "row 3 .0: 1.5, 1: -0.5. has a negative probability"),
            "row of zeros": (soft(0), "row 3 .0: 0, 1: 0. does not sum to 1"),
            "rows that sum to two": label(2 * sure),
            "infinite probability": soft(inf, column=0),
            "half a row missing": (soft(nan, column=0), "row 3 .* has some probabilities missing"),
            "rows of ones": (label(np.ones((40, 2))), "every label in y is absent"),
            "even rows": (label(np.full((40, 2), 0.5)), "y has no row with a label that favors a class; label some"),
            "one class has it all": (label(np.tile([1.0, 0.0], (40, 1))), "at least 2 classes"),
            "two columns of text": (label(np.array([["a", "b"]] * 40)), "must hold label probabilities.*column 0"),
            "frame of text": (
                label(pd.DataFrame({"a": every("x"), "b": every("y")})),
                "column 'a' does not hold numbers",
            ),
            "too few rows": (label(sure[:30]), "inconsistent numbers of samples: .40, 30."),
            "complex probabilities": (label(sure + 0j), "it holds complex128"),
            "classes named twice": (label(pd.DataFrame(sure, columns=["a", "a"])), "unique; 'a' names 2 columns"),
            "classes of two types": (label(pd.DataFrame(sure, columns=["a", 1])), "mix text and other names"),
            "a class without a name": (label(pd.DataFrame(sure, columns=[1.0, nan])), "column of y has no name"),
            "classes of two levels": (
                label(pd.DataFrame(sure, columns=pd.MultiIndex.from_product([["a"], [1, 2]]))),
                "several levels of names",
            ),
        },
    ),
    *defined(
        probabilities,
        {
            "row of NaN": soft(nan),
            "row of ones": soft(1),
            "bool probabilities": label(sure > 0),
            "None for absent": label([[None, None] if i % 3 == 0 else sure[i].tolist() for i in rows]),
            "a class that never is": label(np.column_stack([sure, np.zeros(40)])),
            "a fourth of the rows even": label(np.where((rows % 4 == 0)[:, None], 0.5, sure)),
            "1e-300 for zero": label(np.maximum(sure, 1e-300)),
        },
    ),
]

WEIGHTS = [
    *refused(
        ValueError,
        "",
        {
            "negative weight": (at(-1), "sample_weight must be >= 0; row 3 has -1"),
            "negative number": (weigh(-1), "sample_weight must be >= 0"),
            "negative weight in clusters": (lambda: cluster(weight=np.where(rows == 3, -1, 1)), "row 3 has -1"),
            "NaN weight": (at(nan), "must be finite; row 3 has nan"),
            "None weight": (at(None), "must be finite; row 3 has nan"),
            "infinite weight": (at(inf), "must be finite; row 3 has inf"),
            "masked weight": (weigh(np.ma.array(ones, mask=rows == 3)), "must be finite; row 3 has nan"),
            "NA weight": (weigh(pd.array([1] * 39 + [None], dtype="Int64")), "must be finite; row 39"),
            "word as weight": (at("heavy"), "must be numbers, one per row; .*'heavy'"),
            "dict of weights": (weigh({"a": 1}), "must be numbers, one per row"),
            "dates as weights": (weigh(rows.astype("M8[D]")), "must be numbers, one per row; got datetime64"),
            "complex weights": (weigh(ones + 1j), "must be numbers, one per row; got complex128"),
            "too few weights": (weigh(ones[:10]), r"one value per row \(40\); its shape is \(10,\)"),
            "too many weights": (weigh(np.ones(41)), r"one value per row \(40\); its shape is \(41,\)"),
            "no weights": (weigh([]), r"its shape is \(0,\)"),
            "a column of weights": (weigh(ones[:, None]), "must have one value per row"),
            "a table of weights": (weigh(np.ones((40, 2))), "must have one value per row"),
            "frame of weights": (weigh(pd.DataFrame({"w": ones})), "must have one value per row"),
            "all zero": (weigh(0 * ones), "at least one non-zero"),
            "all zero in clusters": (lambda: cluster(weight=0 * ones), "at least one non-zero"),
            "the number zero": (weigh(0), "at least one non-zero"),
            "zero for a whole class, no prior": (
                lambda: classify(weight=1.0 * y, prior=None),
                "class 0 has 0 row.*; use prior='auto'",
            ),
            "zero for every labelled row": (
                lambda: classify(labels=every("p", "q", None, None), weight=every(0, 0, 1, 1)),
                "every labelled row has sample_weight 0",
            ),
        },
    ),
    *defined(
        useful,
        {
            "weights as text": weigh(every("1", "2")),
            "bool weights": weigh(rows != 3),
            "a number for all": weigh(2.5),
            "weights of 1e200": weigh(1e200 * ones),
            "polars weights": weigh(pl.Series(ones)),
            "pyarrow weights": weigh(pa.array(ones)),
        },
    ),
    *defined(
        probabilities,
        {
            "zero for a whole class": weigh(1.0 * y),
            "zero for a whole class, auto": lambda: classify(weight=1.0 * y, n_components="auto"),
            "one row has it all": weigh(1.0 * (rows == 4)),
            "1e200 beside 1e-200": weigh(np.where(y, 1e-200, 1e200)),
            "denormal weights": weigh(5e-324 * ones),
            "weights of 1e300 in clusters": lambda: cluster(weight=1e300 * ones),
            "two rows have it all": lambda: cluster(weight=1.0 * (rows < 2)),
            "zero wherever a column is seen": lambda: classify(
                np.where((rows > 3)[:, None] & (np.arange(3) == 1), nan, X), weight=1.0 * (rows > 3)
            ),
        },
    ),
]

CASES = LABELS + SOFT + WEIGHTS
