"""Wording of data, files."""

import builtins
import gzip

import numpy as np
import pandas as pd
import pytest

from mixent.data import read_frame, split_target, to_frame, write_frame
from mixent.data.schema import Column, Schema
from mixent.data.text_format import TextFormat
from mixent.warn import DataWarning

from ...data.test_files import written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; a table needs a header"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "no rows below the header"),
        ("a,b\n1,2\n3\n", "line 3 has 1 values, the header has 2; fix the line"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 values, the header has 2"),
        ("a,b\n1,2,3\n4,5,6\n", "line 2 has 3 values, the header has 2"),
        ("1,2\n3,4\n", "the first line holds only numbers; a header line"),
        ("a,,\n1,2,3\n", "the first line names 1 of 3 columns; delete the lines above the header"),
        ("Sales\na;b;c\n1;2;3\n", r"line 2 has 3 values, the header has 1; delete the lines above .*\(--sep\)"),
        ("a,b;c\nx,y;z\n", r"',' or ';' may separate the columns; give the separator \(--sep\)"),
        (
            "a,b\n1,\x81\n".encode("latin-1"),
            r"line 2 is neither UTF-8 nor Latin-1 .*\(--encoding\)",
        ),
        (("a,b\n" + "ä,1\n" * 3).encode() + b"\xe9,1\n", "UTF-8 text, except line 5; correct the line, or give"),
        (b"a\x00b,c\n1,2\n", "holds binary data, not text; save the table as CSV text"),
        (b"a,b\n1,\x00\n", "holds binary data, not text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "holds binary data, not text"),
        ('a,b\n1,"2\n3,4\n', "t.csv: (line 3 has 2|not a readable table)"),
        ("a,b\n" + "x" * 200_000 + ",1\n", "not a readable table .*field larger than field limit"),
    ],
)
def test_bad_text_files(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_frame(written(tmp_path, text))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"sep": ";;"}, r"sep \(--sep\) must be one character, or tab; got ';;'"),
        ({"decimal": ";"}, r"decimal \(--decimal\) must be . or ,; got ';'"),
        ({"encoding": "klingon"}, r"unknown encoding \(--encoding\) 'klingon'; use utf-8, cp1252"),
        ({"encoding": "ascii"}, r"not ascii text .*; give the encoding \(--encoding\), or save the file as UTF-8"),
        ({"sep": ",", "decimal": ","}, r"',' separates the columns, so it cannot be the decimal sign \(--decimal\)"),
    ],
)
def test_bad_formats(tmp_path, how, message):
    with pytest.raises(ValueError, match=message):
        read_frame(written(tmp_path, "a,b\n1,é\n"), **how)


@pytest.mark.parametrize("ending", [".xlsx", ".parquet"])
def test_formats_are_of_text_files(tmp_path, ending):
    with pytest.raises(ValueError, match=rf"sep \(--sep\) is only used with text files; t{ending} is none"):
        read_frame(written(tmp_path, "a", f"t{ending}"), sep=",")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (",a\n0,1\n1,2\n", "the first column has no name: it is taken for names of the rows and left out"),
        ("a,,b\n1,2,3\n", "columns without a name are called 'column 2'"),
        ("a,b,a\n1,2,3\n", "repeated column names: the later columns are called 'a.1'"),
    ],
)
def test_notes_on_names(tmp_path, text, note):
    with pytest.warns(DataWarning, match=note):
        read_frame(written(tmp_path, text))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (TextFormat(), ""),
        (TextFormat(";", ",", "cp1252"), "semicolon-separated, decimal comma, Latin-1 (cp1252)"),
        (TextFormat("\t", ".", "utf-16"), "tab-separated, UTF-16"),
        (TextFormat("|"), "pipe-separated"),
        (TextFormat("#", encoding="cp437"), "'#'-separated, cp437"),
    ],
)
def test_differences_from_a_plain_file(form, text):
    assert form.differences() == text
    assert TextFormat("\t").differences("\t") == ""


def test_excel_files(tmp_path, monkeypatch):
    path = written(tmp_path, "PK", "t.xlsx")
    monkeypatch.setattr("mixent.data.files.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"t.xlsx is an Excel file: save it as CSV, or install openpyxl"):
        read_frame(path)
    with pytest.raises(ValueError, match=r"unknown kind of file '.xls': save it as .xlsx or CSV; use one of .csv"):
        read_frame("t.xls")


def test_bad_binary_files(tmp_path):
    with pytest.raises(ValueError, match="not a whole gzip file"):
        read_frame(written(tmp_path, "a,b\n1,2\n", "t.csv.gz"))
    cut = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-9]
    with pytest.raises(ValueError, match="not a whole gzip file"):
        read_frame(written(tmp_path, cut, "u.csv.gz"))
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        read_frame(written(tmp_path, "a,b\n1,2\n", "t.parquet"))
    pd.DataFrame({"a": []}).to_parquet(tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="no rows below the header"):
        read_frame(tmp_path / "none.parquet")


def test_bad_paths(tmp_path):
    written(tmp_path, "a\n1\n", "data.csv")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*dta.csv; did you mean 'data.csv'\?"):
        read_frame(tmp_path / "dta.csv")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_frame(tmp_path / "nowhere" / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder; give a file"):
        read_frame(str(tmp_path / "folder.csv"))
    with pytest.raises(ValueError, match=r"unknown kind of file '.json'; use one of .csv"):
        read_frame("t.json")
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(ValueError, match="unknown kind of file"):
        write_frame(frame, tmp_path / "t.txt")
    with pytest.raises(TypeError, match="only a DataFrame can be written; got a list"):
        write_frame([1], tmp_path / "t.csv")
    with pytest.raises(FileNotFoundError, match="folder .* does not exist; create it first"):
        write_frame(frame, tmp_path / "nowhere" / "t.csv")
    with pytest.raises(IsADirectoryError, match="it is a folder; give a file name"):
        write_frame(frame, tmp_path / "folder.csv")


def test_absent_libraries_name_the_extra(tmp_path, monkeypatch):
    path = written(tmp_path, "a\n1\n", "t.parquet")
    real = builtins.__import__

    def without(*names):
        def fake(name, *args, **kwargs):
            if name in names:
                raise ImportError(name)
            return real(name, *args, **kwargs)

        return fake

    monkeypatch.setattr(builtins, "__import__", without("pyarrow"))
    with pytest.raises(ImportError, match=r'pyarrow is needed for t.parquet; .*pip install "mixent\[parquet\]"'):
        read_frame(path)
    monkeypatch.setattr(builtins, "__import__", without("pandas"))
    for use in (
        lambda: read_frame(path),
        lambda: write_frame(None, path),
        lambda: to_frame(Schema((Column("a", "continuous"),), True), np.ones((1, 1))),
    ):
        with pytest.raises(ImportError, match="pandas is needed to .*; install it with: pip install pandas"):
            use()


def test_split_target():
    frame = pd.DataFrame({"size": [1], "class": ["a"]})
    features, y = split_target(frame, "class")
    assert list(features.columns) == ["size"] and y.tolist() == ["a"]
    with pytest.raises(ValueError, match=r"unknown column 'clas'; did you mean 'class'\?"):
        split_target(frame, "clas")
    with pytest.raises(ValueError, match="unknown column 'zzz'; the columns are 'size', 'class'"):
        split_target(frame, "zzz")
    with pytest.raises(ValueError, match=r"the columns are 'c0', .*, 'c9', ... \(19 in all\)$"):
        split_target(pd.DataFrame(columns=[f"c{j}" for j in range(19)]), "zzz")
    with pytest.raises(ValueError, match="'class' is the only column; features are needed"):
        split_target(frame[["class"]], "class")
