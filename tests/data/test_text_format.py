"""How text files are written: separator, decimal sign and encoding by the content, headers that are not plain."""

import csv
import io
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixent.data import read_cells, read_frame, text_format
from mixent.data.text_format import MOST_LINES, TextFormat
from mixent.warn import DataWarning, config_context

TABLE = pd.DataFrame(
    {
        "Größe": [1.5, -0.25, 1e-3, 80.0],
        "count": [3, 4, 5, 6],
        "text": ["a, b", "Käse; mild", "x|y", 'say "hi"\nthere'],
        "code": ["007", "01", "1e3", "12"],
    }
)
SEPARATORS = ",;\t|"
ENCODINGS = {"utf-8": "utf-8", "utf-8-sig": "utf-8", "latin-1": "cp1252", "utf-16": "utf-16"}


def write(folder, rows, sep=",", decimal=".", encoding="utf-8", name="t.csv", end="\r\n"):
    """Write rows as a program with these settings does; numbers get the decimal sign."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=sep, lineterminator=end)
    writer.writerows(
        [repr(cell).replace(".", decimal) if isinstance(cell, float) else cell for cell in row] for row in rows
    )
    path = folder / name
    path.write_bytes(buffer.getvalue().encode(encoding))
    return path


def rows_of(frame):
    return [list(frame.columns), *frame.astype(object).values.tolist()]


def frame_of(folder, content, **how):
    path = folder / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_frame(path, **how)


@pytest.mark.parametrize(
    ("sep", "decimal", "encoding"),
    [case for case in itertools.product(SEPARATORS, ".,", ENCODINGS) if case[:2] != (",", ",")],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_table_in_every_format(tmp_path, sep, decimal, encoding, end):
    path = write(tmp_path, rows_of(TABLE), sep, decimal, encoding, end=end, name="t.txt")
    assert text_format(path) == TextFormat(sep, decimal, ENCODINGS[encoding])
    frame = read_frame(path, text=["code"])
    pd.testing.assert_frame_equal(frame.astype(TABLE.dtypes), TABLE, check_exact=True)
    cells = read_cells(path)
    assert cells["code"].tolist() == TABLE["code"].tolist()
    assert [float(cell) for cell in cells["Größe"]] == TABLE["Größe"].tolist()


TEXTS = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    sep=st.sampled_from(SEPARATORS),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from([*ENCODINGS]),
    width=st.integers(2, 5),
    n_rows=st.integers(1, 6),
)
def test_rows_and_columns_are_found_whatever_the_cells_hold(
    tmp_path_factory, data, sep, decimal, encoding, width, n_rows
):
    decimal = "." if sep == "," else decimal
    cells = st.lists(st.one_of(TEXTS, st.floats(-1e3, 1e3).map(lambda v: round(v, 2))), min_size=width, max_size=width)
    body = data.draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    path = write(tmp_path_factory.mktemp("t"), [[f"c{j}" for j in range(width)], *body], sep, decimal, encoding)
    frame = read_frame(path)
    assert list(frame.columns) == [f"c{j}" for j in range(width)] and len(frame) == n_rows


@pytest.mark.parametrize(
    ("text", "sep", "decimal"),
    [
        ("a;b\n1,5;2\n", ";", ","),
        ("a;b\n1,234;2\n", ";", ","),  # thousands are not written with semicolons
        ("a;b\n1,234;2.5\n", ";", "."),
        ("a;b\n1,234,567;2\n", ";", "."),
        ("a;b\n1.234,5;1.234\n", ";", ","),
        ("a;b\n1.234;01.02.2024\n", ";", "."),
        ("a\tb\n1,234\t2\n", "\t", "."),  # thousands, perhaps: the text is left to the model
        ("a\tb\n1,25\t2\n", "\t", ","),
        ("name, first\tage, years\nA, B\t1\n", "\t", "."),
        ('a,b\n"1;2;3",4\n"x;y;z",5\n', ",", "."),
        ("a;b;\n1;2;\n3;4;\n", ";", "."),
        ("a,b,c\n1,2,\n,,3\n", ",", "."),
        ("one\n1\n2\n", ",", "."),
        ("one\n1;2\n2\n3\n", ",", "."),
        ("sep=;\na;b\n1;2,5\n", ";", ","),
        ("a;b\n\n1;2\n   \n", ";", "."),
    ],
)
def test_what_decides(tmp_path, text, sep, decimal):
    (tmp_path / "t.csv").write_text(text)
    form = text_format(tmp_path / "t.csv")
    assert (form.sep, form.decimal) == (sep, decimal)
    header = text.removeprefix("sep=;\n").partition("\n")[0].rstrip(sep)
    assert list(read_frame(tmp_path / "t.csv").columns) == header.split(sep)


def test_lines_beyond_the_sample_are_read(tmp_path):
    text = "a;b\n" + "1,5;2\n" * (MOST_LINES + 100)
    assert frame_of(tmp_path, text)["a"].tolist() == [1.5] * (MOST_LINES + 100)
    with pytest.raises(ValueError, match="line 2102"):
        frame_of(tmp_path, text + "1;2;3\n")


def test_what_is_given_is_not_detected(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name, first;age\nA, B;1\n")
    with pytest.raises(ValueError, match="--sep"):
        read_frame(path)
    assert list(read_frame(path, sep=";").columns) == ["name, first", "age"]
    assert list(read_frame(path, sep=",").columns) == ["name", "first;age"]
    assert text_format(path, sep="|", decimal=",", encoding="latin-1") == TextFormat("|", ",", "latin-1")
    path.write_text("a\tb\n1\t2,5\n")
    assert read_frame(path, sep="tab")["b"].tolist() == [2.5]
    assert read_frame(path, decimal=".")["b"].tolist() == ["2,5"]
    path.write_bytes("a,b\nä,1\n".encode("cp437"))
    assert read_frame(path, encoding="cp437")["a"].tolist() == ["ä"]


@pytest.mark.parametrize("marker", ["", "?", "NA", "N/A", "n/a", "None", "NULL", "null", "#N/A", "<NA>", "nan", "NaN"])
def test_missing_markers_are_those_of_pandas(tmp_path, marker):
    frame = frame_of(tmp_path, f"n,w,c\n1,x,01\n{marker},{marker},{marker}\n2,y,02\n", text=["c"])
    assert frame.isna().any(axis=1).tolist() == [False, True, False] and frame.isna().to_numpy()[1].all()
    assert str(frame["n"].dtype) == "Int64"
    assert read_cells(tmp_path / "t.csv")["w"][1] == marker


def test_every_marker_of_pandas_is_one_here():
    from pandas._libs.parsers import STR_NA_VALUES

    from mixent.data.files import MISSING_MARKERS

    assert set(MISSING_MARKERS) == {*STR_NA_VALUES, "?"}


@pytest.mark.parametrize(
    "text", ["a,b,\n1,2,\n3,4,\n", "a,b,,,\n1,2,,,\n3,4,,,\n", "a,b\n1,2,\n3,4,,\n", "a,,b\n1,,2\n3,,4\n"]
)
def test_columns_without_name_and_values_are_left_out(tmp_path, text):
    frame = frame_of(tmp_path, text)
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"a": [1, 3], "b": [2, 4]}))
    assert read_cells(tmp_path / "t.csv").to_dict("list") == {"a": ["1", "3"], "b": ["2", "4"]}


def test_the_index_of_pandas_is_left_out(tmp_path):
    frame = pd.DataFrame({"a": [1, 3], "b": ["x", "y"]}, index=["r1", "r2"])
    with pytest.warns(DataWarning):
        back = frame_of(tmp_path, frame.to_csv())
    pd.testing.assert_frame_equal(back, frame.reset_index(drop=True), check_dtype=False)
    with config_context(strict=True), pytest.raises(ValueError, match="first column"):
        frame_of(tmp_path, frame.to_csv())


def test_other_columns_get_a_name(tmp_path):
    with pytest.warns(DataWarning):
        frame = frame_of(tmp_path, "a,,b,a,a.1,a\n1,2,3,4,5,6\n")
    assert list(frame.columns) == ["a", "column 2", "b", "a.2", "a.1", "a.3"]
    assert frame.iloc[0].tolist() == [1, 2, 3, 4, 5, 6]
    assert list(read_cells(tmp_path / "t.csv").columns) == list(frame.columns)


def test_half_a_file_in_another_encoding_is_refused(tmp_path):
    lines = ["a,b\n", *(f"ä{k},1\n" for k in range(5))]
    text = "".join(lines).encode()
    assert len(frame_of(tmp_path, text)) == 5
    with pytest.raises(ValueError, match="line 7"):
        frame_of(tmp_path, text + "é,1\n".encode("latin-1"))


def test_excel(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"n": [1.5, None, 2], "k": [1, 2, None], "w": ["x", "N/A", "z"]})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    back = read_frame(tmp_path / "t.xlsx")
    assert [str(kind) for kind in back.dtypes][:2] == ["float64", "Int64"] and back["w"].isna().tolist()[1]
    assert read_cells(tmp_path / "t.xlsx") is None


def test_cells_of_excel(tmp_path, monkeypatch):
    """As openpyxl gives them: typed, with blank lines, columns and names."""
    import mixent.data.files as files

    cells = [[None] * 5, [" a ", "b", None, "a", None], [1, "x", None, 2.5, None], [2, None, None, None, None]]
    monkeypatch.setattr(files, "find_spec", lambda name: True)
    monkeypatch.setattr(pd, "read_excel", lambda path, **how: pd.DataFrame(cells, dtype=object))
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.warns(DataWarning):
        frame = read_frame(tmp_path / "t.xlsx", text=["a"])
    assert list(frame.columns) == ["a", "b", "a.1"] and frame["a"].tolist() == ["1", "2"]
    assert frame["a.1"].tolist()[0] == 2.5 and frame.isna().sum().tolist() == [0, 1, 1]
    assert np.issubdtype(frame["a.1"].dtype, np.floating)
