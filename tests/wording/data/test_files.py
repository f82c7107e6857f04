"""Wording of data, files."""

import builtins
import gzip

import numpy as np
import pandas as pd
import pytest

from mixent.data import read_frame, split_target, to_frame, write_frame
from mixent.data.schema import Column, Schema

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
        ("a,,c\n1,2,3\n", r"column 2 has no name in the header.*index=False"),
        ("a,b,a\n1,2,3\n", "the column name 'a' appears 2 times"),
        ("a;b\n1;2\n", "one column, whose name holds ';'; separate the columns by ','"),
        ("a,b\n1,\xe9\n".encode("latin-1"), r"not UTF-8 text \(byte 0xe9\); save it as UTF-8"),
        (b"a\x00b,c\n1,2\n", "holds binary data, not text; save the table as UTF-8"),
        (b"a,b\n1,\x00\n", "holds binary data, not text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not UTF-8 text"),
        ("a,b\n1,2\n".encode("utf-16"), "not UTF-8 text"),
        ('a,b\n1,"2\n3,4\n', "t.csv: (line 3 has 2|not a readable table)"),
        ("a,b\n" + "x" * 200_000 + ",1\n", "not a readable table .*field larger than field limit"),
    ],
)
def test_bad_text_files(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_frame(written(tmp_path, text))


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
    with pytest.raises(ValueError, match=r"unknown kind of file '.xlsx'; use one of .csv"):
        read_frame("t.xlsx")
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
        with pytest.raises(
            ImportError, match=r'pandas is needed to .*; install it with: pip install "mixent\[pandas\]"'
        ):
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
