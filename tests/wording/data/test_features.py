"""Wording of data, features."""

import numpy as np
import pandas as pd
import pytest

from mixent import GaussianMixture
from mixent.data import DataWarning, config_context, problems

from ...data.test_features import GOOD, fit, frame_with, predict


def test_unseen_categories_warn_once_and_are_missing(mixed):
    with pytest.warns(UserWarning, match="column 'shape'") as seen:
        table = predict(mixed, frame_with(shape=["flat", "oval"]))
    assert table.codes.tolist() == [[-1, 1], [1, 1]]
    assert [str(w.message) for w in seen] == [
        "column 'shape' has values not seen at fit ('flat'), in 1 of 2 rows; they are treated as missing"
    ]
    many = pd.DataFrame({"size": [1.0] * 5, "shape": list("vwxyz"), "new": [True] * 5})
    with pytest.warns(UserWarning, match=r"not seen at fit \('v', 'w', 'x', \.\.\.\), in 5 of 5 rows"):
        predict(mixed, many)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (frame_with()[["shape", "size", "new"]], "must be in the same order"),
        (frame_with()[["new"]], "seen at fit time, yet now missing:\n- shape"),
    ],
)
def test_errors_at_predict(mixed, X, message):
    with pytest.raises(ValueError, match=message):
        predict(mixed, X)


@pytest.mark.parametrize(
    ("X", "note"),
    [
        (
            frame_with(size=["big", "1"]),
            "column 'size' has values that are not numbers ('big'), in 1 of 2 rows; they are treated as missing",
        ),
        (frame_with()[["size", "new"]], "X lacks the column 'shape' of fit, so that all its values are missing"),
        (frame_with(extra=[1, 2]), "X has the column 'extra' that fit did not have; ignored"),
        (
            frame_with(size=[1.0, np.inf]),
            "infinite or huge values (beyond 1e+150) are treated as missing: column 'size' (1 row)",
        ),
        (
            frame_with(size=[-1e200, -np.inf]),
            "infinite or huge values (beyond 1e+150) are treated as missing: column 'size' (2 rows)",
        ),
        (
            frame_with(a=[1, 2], b=[1, 2], shape=["flat", "oval"]).drop(columns="size"),
            "X lacks the column 'size' of fit, so that all its values are missing; X has the columns 'a', 'b' that "
            "fit did not have; ignored; column 'shape' has values not seen at fit ('flat'), in 1 of 2 rows; they are "
            "treated as missing",
        ),
    ],
)
def test_notes_at_predict(mixed, X, note):
    with pytest.warns(DataWarning) as seen:
        predict(mixed, X)
    assert [str(w.message) for w in seen] == [note]


def test_another_number_of_columns():
    model, _ = fit(np.eye(3) + 0.5)
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3 features as input"):
        predict(model, np.eye(2))


def test_a_container_in_a_category_cell(mixed):
    with pytest.raises(TypeError, match="column 'shape', row 1 holds a list"):
        predict(mixed, frame_with(shape=pd.Series(["long", ["oval"]], dtype=object)))


def test_sparse_is_refused_by_scikit_learn():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        GaussianMixture().fit(sparse.csr_matrix(GOOD))


@pytest.mark.parametrize(
    ("categorical", "message"),
    [
        ("all", "categorical must be 'auto' or a list .* got 'all'"),
        (None, "categorical must be 'auto' or a list .* got None"),
        (["sise"], "names a column 'sise' that X does not have; did you mean 'size'"),
        (["zzz"], "X does not have; the columns are 'size', 'shape'"),
        ([2], "names position 2, but X has 2 columns"),
        ([True], "column names or positions; got True"),
        ([1.5], "column names or positions; got 1.5"),
    ],
)
def test_bad_categorical(categorical, message):
    with pytest.raises(ValueError, match=message):
        fit(pd.DataFrame({"size": [1.5, 2.5], "shape": [1, 2]}), categorical=categorical)


def test_problems_name_the_column_and_the_remedy():
    n = 100
    frame = pd.DataFrame(
        {
            "fine": np.arange(n) / 3,
            "flat": np.full(n, 2.5),
            "gappy": [0.5, 1.5] + [np.nan] * (n - 2),
            "id": [f"u{min(i, 59)}" for i in range(n)],
            "one": ["a"] * n,
        }
    )
    assert problems(fit(frame)[1]) == [
        "column 'gappy' is 98 % missing: it will contribute little",
        "column 'id' has 60 categories in 100 rows: group the rare ones, or drop it if it is an identifier",
    ]
    assert problems(fit(frame[["fine"]])[1]) == []


def test_problems_of_a_table_without_values(mixed):
    assert problems(predict(mixed, frame_with(size=[None, None])))[0] == "column 'size' has no values: drop it"


def test_problems_of_a_column_of_which_most_values_are_numbers():
    """Too few for numbers, too many for chance."""
    cells = [f"{v:.1f}" for v in np.arange(30) / 10] + ["abc"] * 5
    table = fit(pd.DataFrame({"length": cells, "x": np.arange(35) / 3}), categorical=["length"])[1]
    assert problems(table) == [
        "column 'length' is text because of 'abc'; 30 of its 31 values are numbers; correct them, or list it as "
        "categorical"
    ]
    assert problems(table, ["length"])[0].startswith("column 'length' has 31 categories")


@pytest.mark.parametrize(
    ("column", "note"),
    [
        ([None] * 40, "without values, and therefore ignored: column 'c'"),
        (["$1,204", "$950"] * 20, "text is read as numbers: column 'c' ('$1,204' is 1204)"),
        (
            [*map(str, range(38)), "soon", "soon"],
            "text is read as numbers: column 'c' ('0' is 0; 'soon' in a column of its own)",
        ),
        (
            [*map(str, range(39)), "soon"],
            "column 'c' has values that are not numbers ('soon'), in 1 of 40 rows; they are treated as missing",
        ),
        (["1.2.2024", "3.4.2024"] * 20, "text is read as dates: column 'c' (day, month, year)"),
        (
            ["1/2/2024", "3/4/2024"] * 20,
            "column 'c' holds dates whose order is unclear ('1/2/2024', '3/4/2024') and is read as categories; convert "
            "the column to dates to change this",
        ),
        (
            ["1,234", "5,678"] * 20,
            "column 'c' holds numbers whose separator may be a decimal sign or not ('1,234', '5,678') and is read as "
            "categories; convert the column to numbers to change this",
        ),
        (
            [f"u{i}" for i in range(40)],
            "text of which hardly two rows are equal, like an identifier, is ignored unless listed in categorical=: "
            "column 'c' (such as 'u0')",
        ),
        (
            ["Yes", "yes "] * 20,
            "column 'c' has spellings that differ by case or blanks only: 'Yes', 'yes '. They are kept as different "
            "categories; spell them alike if they mean the same",
        ),
        (
            ["Yes", "yes ", "NO", "no"] * 10,
            "column 'c' has spellings that differ by case or blanks only: 'Yes', 'yes ' (and 1 more). They are kept as "
            "different categories; spell them alike if they mean the same",
        ),
        (
            [np.inf, 1.5] * 20,
            "infinite or huge values (beyond 1e+150) are treated as missing: column 'c' (20 rows)",
        ),
        (["a"] * 40, "constant; kept, but can be dropped: column 'c'"),
        ([None] + [2.5] * 39, "constant; kept, but can be dropped: column 'c'"),
    ],
)
def test_notes_at_fit(column, note):
    assert note in fit(pd.DataFrame({"c": column, "x": np.arange(40) / 3}))[1].notes


def test_notes_on_many_columns_are_one_sentence():
    frame = pd.DataFrame({f"c{j}": ["1.5", "2"] for j in range(7)})
    assert fit(frame)[1].notes == (
        "text is read as numbers: columns 'c0' ('1.5' is 1.5), 'c1' ('1.5' is 1.5), 'c2' ('1.5' is 1.5), "
        "'c3' ('1.5' is 1.5), 'c4' ('1.5' is 1.5), ... (7 in all)",
    )


def test_notes_are_errors_on_request():
    with config_context(strict=True), pytest.raises(ValueError, match="column 'c'.*an error because of strict=True"):
        GaussianMixture(1).fit(pd.DataFrame({"c": [np.inf, 1.5, 2.5], "x": [1.0, 2, 4]}))
