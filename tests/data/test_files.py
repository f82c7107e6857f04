"""Files in and out: what is read, what is refused and why, what a spreadsheet cannot run."""

import builtins
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mixent.data import read_cells, read_frame, split_target, to_frame, write_frame
from mixent.data.schema import Column, Schema

TEXT = str(pd.Series(["a"]).dtype)  # "str", or "object" before pandas 3
ENDINGS = [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".CSV"]


def written(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def with_none(frame):
    """Every gap as None: before pandas 3, a gap in a column of text is NaN or None, as it came."""
    return frame.astype(object).where(frame.notna(), None)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_digit_of_a_number_is_read(tmp_path, ending):
    values = np.random.default_rng(0).random(200) * 10.0 ** np.arange(-100, 100)
    write_frame(pd.DataFrame({"a": values}), tmp_path / f"t{ending}")
    assert read_frame(tmp_path / f"t{ending}")["a"].tolist() == values.tolist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip(tmp_path, ending):
    frame = pd.DataFrame(
        {
            "part": [0.1, 1 / 3, 1e-300],
            "gap": pd.array([1, None, 3], dtype="Int64"),
            "word": ["a,b", 'say "x"', "é\nü"],
            "yes": [True, False, True],
            "some": ["x", None, "y"],
        }
    )
    write_frame(frame, tmp_path / f"t{ending}")
    back = read_frame(tmp_path / f"t{ending}")
    pd.testing.assert_frame_equal(with_none(back), with_none(frame), check_exact=True)
    assert back.dtypes.tolist() == frame.dtypes.tolist()
    assert list(tmp_path.iterdir()) == [tmp_path / f"t{ending}"]


def test_missing_tokens_and_types(tmp_path):
    text = "n,k,w,b\n1.5,3,a,True\nNA,?,?,\nnan,4,NA,False\nnull,5,None,True\n"
    frame = read_frame(written(tmp_path, text))
    assert [str(kind) for kind in frame.dtypes][:3] == ["float64", "Int64", TEXT]
    assert frame["n"].isna().tolist() == [False, True, True, True]
    assert frame["w"].tolist()[3] == "None" and frame["w"].isna().sum() == 2
    assert frame["b"].tolist()[::2] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\n2,y\n",
        "\ufeffa,b\n1,x\n2,y\n",
        "a,b\r\n1,x\r\n2,y",
        "a, b\n1, x\n2, y\n",
        '"a","b"\n1,"x"\n\n2,"y"\n  \n',
        "\n\na,b\n1,x\n2,y\n",
    ],
)
def test_the_same_table_in_many_hands(tmp_path, text):
    frame = read_frame(written(tmp_path, text))
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))


def test_a_blank_line_in_one_column_is_a_missing_value(tmp_path):
    frame = read_frame(written(tmp_path, "a\n1\n\n3\n"))
    assert len(frame) == 3 and frame["a"].isna().tolist() == [False, True, False]
    frame = read_frame(written(tmp_path, "\n\na \n1\n\n3\n"))
    assert list(frame.columns) == ["a"] and len(frame) == 3


@pytest.mark.parametrize("wide", [10**30, -(10**400), 2**64], ids=["1e30", "-1e400", "2^64"])
def test_whole_numbers_beyond_64_bits_are_numbers(tmp_path, wide):
    path = written(tmp_path, f"x,code\n{wide},{10**30}\n,{10**30}\n3,4\n")
    frame = read_frame(path, text=["code"])
    assert frame["x"][0] == wide and frame["x"].isna()[1] and frame["x"][2] == 3
    assert frame["code"].tolist() == [str(10**30), str(10**30), "4"]


def test_words_beside_a_wide_whole_number_stay_text(tmp_path):
    assert read_frame(written(tmp_path, f"x\n{10**30}\nmany\n"))["x"].tolist() == [str(10**30), "many"]


def test_a_saved_float_column_stays_float(tmp_path):
    assert str(read_frame(written(tmp_path, "a\n1.0\n2.0\n"))["a"].dtype) == "float64"


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


@pytest.mark.parametrize("kind", [object, "category", "str"])
def test_no_cell_runs_as_a_formula(tmp_path, kind):
    cells = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "-1.5", "+2", "safe", "+", "x=1"]
    frame = pd.DataFrame({"=h": pd.Series(cells, dtype=kind), "n": np.arange(-5.0, 6.0)})
    assert write_frame(frame, tmp_path / "t.csv") == 7
    back = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False, lineterminator="\n")
    assert list(back.columns) == ["'=h", "n"]
    assert back["'=h"].tolist() == ["'" + c for c in cells[:6]] + cells[6:]
    assert back["n"][0] == "-5.0"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4), min_size=1, max_size=5)
)
def test_no_text_at_all_runs_as_a_formula(tmp_path, cells):
    write_frame(pd.DataFrame({"k": range(len(cells)), "c": cells}), tmp_path / "t.tsv")
    raw = pd.read_csv(tmp_path / "t.tsv", sep="\t", dtype=str, keep_default_na=False)["c"].tolist()
    for cell in raw:
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and len(cell) > 1:  # a sign alone computes nothing
            float(cell)


def test_some_text_is_plain(tmp_path):
    frame = pd.DataFrame({"c": ["-x", "=y"]})
    assert write_frame(frame, tmp_path / "t.csv", plain={"-x"}) == 1
    assert (tmp_path / "t.csv").read_text() == "c\n-x\n'=y\n"
    assert write_frame(frame, tmp_path / "t.parquet") == 0  # no spreadsheet reads it


def test_codes_are_read_as_text(tmp_path):
    path = written(tmp_path, "zip,n\n01234,1\n1234,2\n?,3\n1e3,4\n")
    frame = read_frame(path, text=["zip", "absent"])
    assert frame["zip"].dropna().tolist() == ["01234", "1234", "1e3"] and frame["zip"].isna().tolist()[2]
    assert frame["n"].tolist() == [1, 2, 3, 4]
    frame.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(with_none(read_frame(tmp_path / "t.parquet", text=["zip"])), with_none(frame))


@pytest.mark.parametrize("text", ["a,b\n007,NA\n\n 38.50, x\n  \n,?\n", "\n\na\n01\n\n+1\n"])
def test_cells_as_they_are_written(tmp_path, text):
    path = written(tmp_path, text)
    cells, frame = read_cells(path), read_frame(path)
    assert cells.shape == frame.shape and list(cells.columns) == list(frame.columns)
    expected = {"a": ["007", "38.50", ""], "b": ["NA", "x", "?"]} if "," in text else {"a": ["01", "", "+1"]}
    assert cells.to_dict("list") == expected
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_cells(tmp_path / "t.parquet") is None


def test_the_frame_written_is_not_changed(tmp_path):
    frame = pd.DataFrame({"=h": ["=x"]})
    write_frame(frame, tmp_path / "t.csv")
    assert frame.columns[0] == "=h" and frame.iloc[0, 0] == "=x"


def test_other_frames_are_written_too(tmp_path):
    write_frame(pl.DataFrame({"a": [1, 2]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a\n1\n2\n"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = written(tmp_path, "old")

    def fail(frame, target, **options):
        target.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        write_frame(pd.DataFrame({"a": [1]}), path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


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
