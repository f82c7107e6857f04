"""Files in and out: what is read, what is refused and why, what a spreadsheet cannot run."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mixent.data import read_cells, read_frame, write_frame

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
    text = "n,k,w,b\n1.5,3,a,True\nNA,?,?,\nnan,4,NA,False\nnull,5,none,True\n"
    frame = read_frame(written(tmp_path, text))
    assert [str(kind) for kind in frame.dtypes][:3] == ["float64", "Int64", TEXT]
    assert frame["n"].isna().tolist() == [False, True, True, True]
    assert frame["w"].tolist()[3] == "none" and frame["w"].isna().sum() == 2
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


RETURNS = ["note\r=cmd|' /C calc'!A0", "\r", "a\rb", "a\r\nb", "\r\n", "plain", 'a "b"\r', "1\r"]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
def test_a_carriage_return_ends_no_row(tmp_path, ending):
    """No row begins inside a cell, where a formula would run; mixent reads the cells as they were."""
    frame = pd.DataFrame({"c": RETURNS, "n": np.arange(len(RETURNS)) / 4, "h\rh": "x"})
    write_frame(frame, tmp_path / f"t{ending}")
    back = read_frame(tmp_path / f"t{ending}", text=["c"])
    assert back["n"].tolist() == frame["n"].tolist() and list(back.columns) == list(frame.columns)
    assert len(read_cells(tmp_path / f"t{ending}")) == len(RETURNS)
    raw = pd.read_csv(tmp_path / f"t{ending}", sep="\t" if "tsv" in ending else ",", keep_default_na=False)
    assert raw["c"].tolist() == [f"'{cell}" if cell == "\r\n" else cell for cell in RETURNS]


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
