"""Tables of features: shapes, values, types, containers, names, and what comes at predict."""

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from mixent.data import DataWarning

from .cases import (
    X,
    classifier,
    classify,
    cluster,
    defined,
    even,
    every,
    finite,
    frame,
    inf,
    mixture,
    nan,
    probabilities,
    put,
    refused,
    rng,
    rows,
    trained,
    useful,
    word,
    y,
)

FOUR = [0, 1, 0, 1]
tall = rng.normal(size=(4, 60))
twice = np.column_stack([X, 2 * X[:, 0] + 1])  # collinear
flat = (ConvergenceWarning, "use a prior")
starved = (ConvergenceWarning, "starved")


def names(*given):
    return lambda: classify(pd.DataFrame(X, columns=list(given)))


def as_matrix(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(values)


def column(values):
    """A frame with this column beside two good ones."""
    return lambda: classify(frame(d=values))


SHAPES = refused(
    ValueError,
    "Expected 2D array",
    {
        "one dimension": lambda: classify(X[:, 0]),
        "three dimensions": (lambda: classify(X[:, :, None]), "dim 3, while dim <= 2"),
        "no rows": (lambda: classify(X[:0], y[:0]), "0 sample"),
        "no columns": (lambda: classify(X[:, :0]), "0 feature"),
        "frame without rows": (lambda: classify(frame().iloc[:0], []), "0 sample"),
        "frame without columns": (lambda: classify(frame()[[]]), "0 feature"),
        "ragged list": (lambda: classify([[1, 2], [3]], [0, 1]), "row 0 has 2 values, row 1 has 1"),
        "ragged list, short first": (lambda: classify([[1], [2, 3]], [0, 1]), "row 0 has 1 values, row 1 has 2"),
        "a number": lambda: classify(3.0),
        "a word": lambda: classify("table"),
        "None": lambda: classify(None),
        "a dict": lambda: classify({"a": [1, 2]}, [0, 1]),
        "a set": lambda: classify({1, 2}, [0, 1]),
        "a generator": lambda: classify((i for i in range(4)), FOUR),
        "a list of dicts": lambda: classify([{"a": 1}, {"a": 2}], [0, 1]),
        "an empty list": lambda: classify([], []),
        "rows without cells": (lambda: classify([[], []], [0, 1]), "0 feature"),
        "lists three deep": (lambda: classify([[[1], [2]], [[3], [4]]], [0, 1]), "dim 3"),
        "a series": (lambda: classify(pd.Series(X[:, 0])), "2-dimensional container"),
        "a polars series": lambda: classify(pl.Series(X[:, 0])),
        "clusters of one dimension": lambda: cluster(X[:, 0]),
        "clusters of no rows": (lambda: cluster(X[:0]), "0 sample"),
    },
)

huge = (DataWarning, r"infinite or huge values \(beyond 1e\+150\) are treated as missing: column '(x0|x1|b|c)'")
empty = (DataWarning, "without values, and therefore ignored: column '(x3|d)'$")
numbers = (DataWarning, "text is read as numbers: column 'd'")
VALUES = [
    *defined(
        probabilities,
        {
            "inf": lambda: classify(put(inf)),
            "-inf": lambda: classify(put(-inf)),
            "inf in clusters": lambda: cluster(put(inf)),
            "1e155": lambda: classify(put(1e155)),
            "1e300": lambda: classify(put(1e300)),
            "-1e300": lambda: classify(put(-1e300)),
            "1e300 in clusters": lambda: cluster(put(1e300)),
            "long double beyond double": lambda: classify(put(np.longdouble("1e400"), dtype=np.longdouble)),
            "integer of 400 digits": lambda: classify([[10**400, 1], [1, 2], [3, 1], [2, 5]], FOUR),
            "Decimal beyond double": lambda: classify(
                [[Decimal(1)], [Decimal("1e999")], [Decimal(2)], [Decimal(3)]], FOUR
            ),
            "infinite category": lambda: classify(frame(c=every(1.5, inf)), categorical=["c"]),
        },
        huge,
    ),
    *refused(
        ValueError,
        "column 'x0' varies by only .* rescale",
        {
            "1e-300 throughout": lambda: classify(X * 1e-300),
            "1e-160 in clusters": lambda: cluster(X * 1e-160),
            "denormals": lambda: classify(X * 5e-321),
            "one column of 1e-200": (lambda: classify(X * [1, 1e-200, 1]), "column 'x1' varies by only"),
        },
    ),
    *defined(
        useful,
        {
            "one 1e-300": lambda: classify(put(1e-300)),
            "1e149 throughout": lambda: classify(X * 1e149),
            "1e-140 throughout": lambda: classify(X * 1e-140),
            "1e140 beside 1e-130": lambda: classify(X * [1e-130, 1e140, 1]),
            "offset of 1e8": lambda: classify(X + 1e8),
            "float16": lambda: classify(X.astype(np.float16)),
            "float32": lambda: classify(X.astype(np.float32)),
            "long double": lambda: classify(X.astype(np.longdouble)),
            "big endian": lambda: classify(X.astype(">f8")),
            "column order": lambda: classify(np.asfortranarray(X)),
            "a memory view": lambda: classify(memoryview(np.ascontiguousarray(X))),
            "objects that are numbers": lambda: classify(X.astype(object)),
            "Decimal cells": lambda: classify([[Decimal(str(v)) for v in row] for row in X]),
            "uint64 up to its maximum": lambda: classify(np.where(X > 1, np.uint64(2**64 - 1), np.uint64(0))),
            "int64 down to its minimum": lambda: classify(np.where(X > 1, -(2**63), 1)),
            "bool cells": lambda: classify(X > 1),
            "bool and numbers in a column": column(every(True, 2.5, 0.1)),
            "constant column": lambda: classify(np.column_stack([X, np.ones(40)])),
            "constant column with gaps": lambda: classify(np.column_stack([X, np.where(rows % 3, 1.0, nan)])),
            "all-missing row at fit": lambda: classify(np.where((rows == 3)[:, None], nan, X)),
            "a column missing in one class": lambda: classify(
                np.where((y == 0)[:, None] & (np.arange(3) == 1), nan, X)
            ),
            "collinear": lambda: classify(twice),
            "a category of one value": column(every("u")),
        },
    ),
    *defined(
        probabilities,
        {
            "one 1e150": lambda: classify(put(1e150)),
            "one 1e100 in clusters": lambda: cluster(put(1e100)),
            "float16 at its maximum": lambda: classify(put(65504, dtype=np.float16)),
            "signalling NaN": lambda: classify([[Decimal(1)], [Decimal("sNaN")], [Decimal(2)], [Decimal(3)]], FOUR),
            "fractions and None": lambda: classify([[Fraction(1, 3)], [Fraction(2)], [None], [Fraction(0)]], FOUR),
            "blank text in a column of numbers": lambda: classify([[1, " "], [2, 3.0], [None, 1.5], [4, ""]], FOUR),
            "all-missing row in clusters": lambda: cluster(np.where((rows == 3)[:, None], nan, X)),
            "columns never seen together": lambda: cluster(np.where(rows[:, None] % 3 != np.arange(3), nan, X)),
            "a class without any value": lambda: classify(np.where((y == 0)[:, None], nan, X)),
            "two distinct rows": lambda: classify(np.tile(X[:2], (20, 1))),
            "as many components as rows": lambda: cluster(X[:3], n_components=3),
            "one row of clusters": lambda: cluster(X[:1], n_components=1),
            "auto on three rows": lambda: cluster(X[:3], n_components="auto"),
            "one-row classes": lambda: classify(X[:2], [0, 1]),
            "one-row classes, auto": lambda: classify(X[:2], [0, 1], n_components="auto"),
            "two-row classes of 60 columns": lambda: classify(tall, [0, 0, 1, 1]),
            "two-row classes of 60 columns, auto": lambda: classify(tall, [0, 0, 1, 1], n_components="auto"),
            "collinear clusters": lambda: cluster(twice),
            "unpaired surrogate": lambda: classify([[1.0, "\ud800"], [2.0, "b"]] * 2, FOUR),
            "categories of 100000 letters": column(every("x" * 100_000, "y" * 100_000)),
            "control characters": column(every("\0", "\n", "\x1b[31m")),
            "numbers as categories": lambda: classify(frame(c=every(1, 2, 7)), categorical=["c"]),
            "numbers as categories, with gaps": lambda: classify(frame(c=every(1.5, nan)), categorical=["c"]),
        },
    ),
    *defined(
        probabilities,
        {
            "text that spells numbers": column([str(v) for v in rows]),
            "60 numbers as text": lambda: classify(pd.DataFrame({"d": [str(v) for v in range(60)]}), np.arange(60) % 2),
            "a marker among numbers": lambda: classify(
                pd.DataFrame({"d": [*map(str, range(59)), "n/a"]}), np.arange(60) % 2
            ),
        },
        numbers,
    ),
    *defined(
        probabilities,
        {
            "a stray word among numbers": lambda: classify(
                pd.DataFrame({"d": [*map(str, range(59)), "soon"]}), np.arange(60) % 2
            )
        },
        (DataWarning, r"values that are not numbers \('soon'\), in 1 of 60 rows; they are treated as missing"),
    ),
    *defined(
        useful,
        {"every row a category": column([f"v{i}" for i in rows])},
        (DataWarning, "text of which hardly two rows are equal, .* ignored unless .*: column 'd' .such as 'v0'.$"),
    ),
    *defined(
        probabilities,
        {
            "a category of 5000 values": lambda: classify(
                pd.DataFrame({"c": [f"v{i // 2}" for i in range(10_000)]}), np.arange(10_000) % 2
            )
        },
        (DataWarning, r"column 'c' has 5000 categories; the 999 most frequent are kept, all others are '\(other\)'"),
    ),
    *defined(
        even,
        {
            "only constant columns": lambda: classify(np.ones((40, 2))),
            "only a category of one value": lambda: classify(pd.DataFrame({"c": every("u")})),
        },
    ),
    *defined(probabilities, {"identical rows in two clusters": lambda: cluster(np.tile(X[:1], (40, 1)))}, starved),
    *defined(
        probabilities,
        {
            "collinear, no prior": lambda: classify(twice, prior=None),
            "collinear clusters, no prior": lambda: cluster(twice, prior=None),
            "one constant class, no prior": lambda: classify(np.where(y == 0, 1.0, X[:, 0])[:, None], prior=None),
            "60 columns, no prior": lambda: classify(tall, [0, 0, 1, 1], prior=None),
        },
        flat,
    ),
    *defined(
        useful,
        {
            "all-missing column": lambda: classify(np.column_stack([X, np.full(40, nan)])),
            "all None": column([None] * 40),
            "all blank": column(every("", "  ")),
            "all NA": column(pd.array([None] * 40, dtype="Int64")),
            "polars column of nulls": lambda: classify(pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "d": [None] * 40})),
            "pyarrow column of nulls": lambda: classify(pa.table({"a": X[:, 0], "b": X[:, 1], "d": pa.nulls(40)})),
        },
        empty,
    ),
    *refused(
        ValueError,
        "no column of X can be used: 'x0', 'x1' have no values",
        {
            "all-missing table": lambda: classify(np.full((40, 2), nan)),
            "more components than rows": (lambda: cluster(X[:3], n_components=5), "n_components=5 .* X has 3"),
            "a billion components": (lambda: classify(n_components=10**9), "n_components=1000000000 .* X has 40"),
            "one-row classes, no prior": (
                lambda: classify(X[:2], [0, 1], prior=None),
                "class 0 has 1 row.*; use prior='auto'",
            ),
        },
    ),
]

TYPES = [
    *refused(
        ValueError,
        "neither numbers, dates nor categories",
        {
            "timedeltas": column(pd.to_timedelta(rows, "D")),
            "times of day": column(every(datetime.time(12))),
            "polars lists": lambda: classify(pl.DataFrame({"d": [[1]] * 40})),
            "polars structs": lambda: classify(pl.DataFrame({"d": [{"z": 1}] * 40})),
            "array of timedeltas": (lambda: classify(np.zeros((4, 1), "m8[D]"), FOUR), "array of type timedelta64"),
            "array of bytes": (lambda: classify(np.array([[b"a"]] * 4), FOUR), "array of type .S1"),
            "record array": (lambda: classify(np.zeros((4, 1), [("a", float)]), FOUR), "array of type .*'a'"),
            "bytes in a column": (column(every(b"x")), "column 'd' holds bytes; decode"),
            "complex numbers": (lambda: classify(X + 1j), "Complex data not supported"),
            "complex column": (column(X[:, 0] + 1j), "Complex data not supported: column 'd'"),
        },
    ),
    *refused(
        TypeError,
        "column 'd', row 0 holds a .*: convert the column",
        {
            "lists in cells": column(every([1])),
            "dicts in cells": column(every({})),
            "arrays in cells": column(every(np.zeros(2))),
            "periods": column(pd.period_range("2020", periods=40, freq="D")),
            "intervals": column(pd.interval_range(0, 40)),
            "categories that are intervals": column(pd.cut(X[:, 0], 3)),
            "any objects": lambda: classify(pl.DataFrame({"d": pl.Series(every(object()), dtype=pl.Object)})),
            "sparse matrix": (lambda: classify(sp.csr_matrix(X)), "Sparse data.*toarray"),
            "sparse array in clusters": (lambda: cluster(sp.csr_array(X)), "Sparse data.*toarray"),
            "numpy matrix": (lambda: classify(as_matrix(X)), "np.matrix is not supported.*asarray"),
            "lazy frame": (lambda: classify(pl.LazyFrame({"a": X[:, 0]})), "LazyFrame.*collect"),
        },
    ),
    *defined(
        useful,
        {
            "text and numbers": column(every("u", 1)),
            "text and bool": column(every("u", True)),
            "categories of text and numbers": column(pd.Categorical(every("u", 1))),
            "datetimes": column(pd.date_range("2020", periods=40)),
            "datetimes with a zone": column(pd.date_range("2020", periods=40, tz="UTC")),
            "dates as objects": column(every(datetime.date(2020, 1, 1))),
            "categories that are dates": column(pd.Categorical(every(*pd.date_range("2020", periods=4)))),
        },
    ),
    *defined(
        probabilities,
        {
            "polars dates": lambda: classify(pl.DataFrame({"d": pl.Series(rows).cast(pl.Date)})),
            "pyarrow timestamps": lambda: classify(pa.table({"d": pa.array(rows, pa.timestamp("s"))})),
            "array of dates": lambda: classify(np.zeros((4, 1), "M8[D]"), FOUR),
            "masked array": lambda: classify(np.ma.array(X, mask=X > 3)),
            "masked integers": lambda: classify(np.ma.array((5 * X).astype(int), mask=X > 3)),
            "sparse columns of a frame": lambda: classify(
                pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(np.where(X > 0, X, 0)))
            ),
            "Int64 with NA": column(pd.array(every(1, None, 4), dtype="Int64")),
            "Float64 with NA": column(pd.array(every(1.5, None, 2), dtype="Float64")),
            "boolean with NA": column(pd.array(every(True, None, False), dtype="boolean")),
            "string with NA": column(pd.array(every("u", None, "v"), dtype="string")),
            "arrow integers with null": column(pd.array(every(1, None, 3), dtype="int64[pyarrow]")),
            "polars nulls": lambda: classify(pl.DataFrame({"a": X[:, 0], "d": every(1, None), "e": every(None, "u")})),
            "polars Enum with null": lambda: classify(
                pl.DataFrame({"a": X[:, 0], "d": pl.Series(every("u", None), dtype=pl.Enum(["u", "v"]))})
            ),
            "pyarrow nulls": lambda: classify(pa.table({"a": X[:, 0], "d": every("u", None)})),
            "pyarrow dictionary": lambda: classify(pa.table({"d": pa.array(every("u", None)).dictionary_encode()})),
            "record batch": lambda: classify(pa.RecordBatch.from_pydict({"a": X[:, 0]})),
        },
    ),
]

NAMES = [
    *refused(
        ValueError,
        "column names must be unique; 'a' names 2 columns; rename",
        {
            "names used twice": names("a", "a", "b"),
            "names used twice, pyarrow": lambda: classify(
                pa.Table.from_arrays([pa.array(X[:, 0]), pa.array(X[:, 1])], names=["a", "a"])
            ),
            "names of two levels": (
                lambda: classify(pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], [1, 2, 3]]))),
                "several levels of names.*flatten",
            ),
        },
    ),
    *refused(
        TypeError,
        "string names.*astype",
        {"text and numbers as names": names(0, "b", 2), "a nameless column": names(None, "b", "c")},
    ),
    *defined(
        useful,
        {
            "numbers as names": names(0, 1, 2),
            "dates as names": lambda: classify(pd.DataFrame(X, columns=pd.date_range("2020", periods=3))),
            "names beyond ASCII": names("größe", "日本", "😀"),
            "an empty name": names("", "b", "c"),
            "names that are markup and formulas": names("[bold]", "=cmd()", "c\nd"),
            "a name of 10000 letters": names("a" * 10_000, "b", "c"),
            "an index used twice": lambda: classify(frame().set_axis(every(0))),
        },
    ),
]

good = frame(c=word)
PREDICT = [
    *refused(
        ValueError,
        "feature names should match",
        {
            "most columns are missing": (trained(good, good[["a"]]), "now missing:\n- b\n- c"),
            "columns in another order": (trained(good, good[["b", "a", "c"]]), "same order"),
            "array too narrow": (trained(X, X[:, :2]), "X has 2 features, but MixtureClassifier is expecting 3"),
            "array too wide": (trained(X[:, :2], X), "X has 3 features, but MixtureClassifier is expecting 2"),
            "one row as one dimension": (trained(X, X[0]), "Expected 2D array"),
            "no rows at predict": (trained(X, X[:0]), "0 sample"),
            "complex at predict": (trained(X, X + 1j), "Complex data not supported"),
        },
    ),
    *defined(
        probabilities,
        {"a column is missing": trained(good, good[["a", "b"]])},
        (DataWarning, "X lacks the column 'c' of fit, so that all its values are missing$"),
    ),
    *defined(
        probabilities,
        {"a column too many": trained(good, good.assign(e=1))},
        (DataWarning, "X has the column 'e' that fit did not have; ignored$"),
    ),
    *defined(
        probabilities,
        {"a column renamed": trained(good, good.rename(columns={"b": "B"}))},
        (DataWarning, "X lacks the column 'b' of fit, .*; X has the column 'B' that fit did not have"),
    ),
    *defined(
        probabilities,
        {
            "text where numbers were": trained(good, good.assign(b="big")),
            "dates where numbers were": trained(good, good.assign(b=pd.date_range("2020", periods=40))),
            "array cells, other names": trained(X, put("big", dtype=object)),
        },
        (DataWarning, "column '(b|x1)' has values that are not numbers .'(big|dates)'.*treated as missing"),
    ),
    *defined(
        probabilities,
        {
            "inf at predict": trained(good, good.assign(b=inf)),
            "1e300 at predict": trained(X, put(1e300)),
            "inf where text was": trained(good, good.assign(c=inf)),
        },
        huge,
    ),
    *refused(
        TypeError, "column 'c', row 0 holds a set", {"sets as categories": trained(good, good.assign(c=every({1})))}
    ),
    *defined(
        probabilities,
        {
            "missing rows": trained(X, np.full((2, 3), nan)),
            "missing row in clusters": lambda: mixture().fit(X).predict_proba(np.full((1, 3), nan)),
            "numbers as text where numbers were": trained(good, good.assign(b="1.5")),
            "bool where numbers were": trained(good, good.assign(b=True)),
            "None for every category": trained(good, good.assign(c=None)),
            "truth values as text": trained(frame(c=every(True, False)), frame(c=every("true", "FALSE"))),
            "1e149 at predict": trained(X, X * 1e149),
            "1e149 in clusters": lambda: mixture().fit(X).predict_proba(X * 1e149),
            "tiny values at predict": trained(X, X * 1e-300),
            "beyond every density": trained(X * 1e-100, X * 1e149),
            "beyond every density, in clusters": lambda: mixture().fit(X * 1e-100).predict_proba(X * 1e149),
            "beyond every density, with gaps": lambda: (
                mixture().fit(X * 1e-100).predict_proba(np.where(np.arange(3) == 1, nan, X * 1e149))
            ),
            "constant column changes": trained(
                np.column_stack([X, np.ones(40)]), np.column_stack([X, 5 * np.ones(40)])
            ),
        },
    ),
    *defined(
        probabilities,
        {
            "unseen category": trained(good, good.assign(c="w")),
            "numbers where text was": trained(good, good.assign(c=1.0)),
            "other words for true and false": trained(frame(c=every(True, False)), frame(c=every("yes", "no"))),
        },
        (UserWarning, "column 'c' has values not seen at fit .*treated as missing"),
    ),
    *defined(
        useful, {"array for a frame": trained(frame(), X[:, :2])}, (UserWarning, "does not have valid feature names")
    ),
    *defined(useful, {"frame for an array": trained(X[:, :2], frame())}, (UserWarning, "fitted without feature names")),
    *defined(finite, {"density far out": lambda: mixture().fit(X).score_samples(X * 1e140)}),
    *defined(
        finite, {"gaps far out": lambda: classifier().fit(X, y).impute(np.where(np.arange(3) == 1, nan, X * 1e140))}
    ),
]

CASES = SHAPES + VALUES + TYPES + NAMES + PREDICT
