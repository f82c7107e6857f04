"""Tables as spreadsheets write them, through the commands: one set of options, the same results, notes once."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command

from mixent.cli import app
from mixent.cli.options import READING
from mixent.data import read_frame

COMMANDS = get_command(app).commands
SHARED = ("sep", "decimal", "encoding", "strict")
FORMATS = {
    "plain": {},
    "german": {"sep": ";", "decimal": ",", "encoding": "cp1252"},
    "excel": {"sep": "\t", "encoding": "utf-16"},
    "bom": {"encoding": "utf-8-sig"},
    "pipes": {"sep": "|"},
}
QUICK = ("--set", "n_components=1", "--set", "covariance=VVV")


def reading(command):
    """Whether a command has a DATA argument."""
    return any(parameter.name == "data" for parameter in command.params)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_reads_a_table_has_the_options(name):
    options = {parameter.name: parameter for parameter in COMMANDS[name].params}
    assert set(SHARED) <= set(options) if reading(COMMANDS[name]) else not set(SHARED) & set(options)


def test_an_option_has_one_meaning():
    """Of each there is one help text, and those of text files are parameters of `read_frame`, too."""
    for name in SHARED:
        meanings = {p.help for c in COMMANDS.values() for p in c.params if p.name == name}
        assert len(meanings) == 1
    assert set(READING) < set(inspect.signature(read_frame).parameters)


def write(stock, name, form):
    frame = pd.read_csv(stock / "data.csv").replace({"red": "röt", "blue": "bl;au", "green": "gr,ün"})
    frame.to_csv(name, index=False, **form)
    return frame


def test_one_table_in_all_formats_gives_one_model(mixent, stock):
    """Predictions agree to the last digit, the identifier is kept, and the cells of the output are plain."""
    written = {}
    for name, form in FORMATS.items():
        write(stock, f"{name}.csv", form)
        fitted = mixent("fit", f"{name}.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", *QUICK)
        assert fitted.exit_code == 0, fitted.output
        result = mixent("predict", "m.mixent", f"{name}.csv", "-o", "o.csv", "--keep", "id,size,color")
        assert result.exit_code == 0, result.output
        assert ("Read " in fitted.stdout) == ("Read " in result.stdout) == (name not in ("plain", "bom"))
        written[name] = pd.read_csv("o.csv", dtype=str)
    for name in FORMATS:
        pd.testing.assert_frame_equal(written[name], written["plain"])


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_filled_tables_are_plain(mixent, stock, form):
    frame = write(stock, "d.csv", form).drop(columns=["id", "w", "class"])
    mixent("fit", "d.csv", "--ignore", "id,w,class", "-o", "m.mixent", "-q", *QUICK)
    assert mixent("impute", "m.mixent", "d.csv", "-o", "full.csv").exit_code == 0
    full = pd.read_csv("full.csv")
    assert full[list(frame)].notna().all(axis=None)
    np.testing.assert_array_equal(full["size"][frame["size"].notna()], frame["size"].dropna())


def test_options_overrule(mixent):
    """Without them the file is refused; they hold for DATA only, and not for the next command."""
    rows = "".join(f"{k % 2},{k};{'pq'[k % 2]},r\n" for k in range(20))
    Path("d.csv").write_text("a,b;c,d\n" + rows)
    fit = ("fit", "d.csv", "-t", "c,d", "-o", "m.mixent", *QUICK)
    assert mixent(*fit).exit_code == 1
    assert mixent(*fit, "--sep", ";", "--decimal", ",").exit_code == 0
    Path("costs.csv").write_text('predicted,"p,r","q,r"\n"p,r",0,1\n"q,r",1,0\n')
    predict = ("predict", "m.mixent", "d.csv", "-o", "o.csv", "--costs", "costs.csv")
    result = mixent(*predict, "--sep", ";", "--decimal", ",")
    assert result.exit_code == 0, result.output
    assert mixent(*predict).exit_code == 1


def test_notes_are_printed_once_and_strict_makes_them_errors(mixent, stock):
    pd.read_csv(stock / "data.csv").drop(columns="id").to_csv("d.csv")
    fit = ("fit", "d.csv", "-t", "class", "--ignore", "w", "-o", "m.mixent", *QUICK)
    result = mixent(*fit)
    assert result.exit_code == 0 and result.stderr.count("first column") == 1
    assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv").stderr.count("first column") == 1
    assert mixent(*fit, "--strict").exit_code == 1


@pytest.mark.parametrize("command", [("fit", *QUICK), ("compare", "--method", "linear MED", "--no-baselines")])
def test_notes_on_labels_and_constant_columns_are_printed_once(mixent, stock, command):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"]).assign(same=1)
    frame.loc[0, "class"] = "only"
    frame.to_csv("d.csv", index=False)
    jobs = ("--jobs", "1", "--folds", "2", "--no-page") if command[0] == "compare" else ()
    result = mixent(command[0], "d.csv", "-t", "class", "-o", "m.mixent", *command[1:], *jobs)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("'only'") == result.stderr.count("column 'same'") == 1


@pytest.mark.parametrize("command", ["fit", "novelty"])
def test_a_class_that_is_named_is_left_out_of_the_features(mixent, command):
    import mixent as mx

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40), "z": rng.normal(size=40), "kind": ["a", "b"] * 20})
    frame.to_csv("d.csv", index=False)
    result = mixent(command, "d.csv", "-t", "kind", "-o", "m.mixent")
    assert result.exit_code == 0, result.output
    assert list(mx.load("m.mixent").schema_.names) == ["x", "z"]


def test_a_leak_is_found_before_the_fit(mixent):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    columns = {"x": rng.normal(size=2000), "leak": y + rng.normal(0, 0.01, 2000), "y": np.array(["n", "p"])[y]}
    pd.DataFrame(columns).to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", *QUICK)
    assert result.exit_code == 0 and "'leak'" in result.stderr and "--ignore" in result.stdout
    result = mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--ignore", "leak", *QUICK)
    assert "leak" not in result.stderr


DIRTY = {
    "trailing separators": "x;c;y;\n" + "".join(f"{k},5;{'ab'[k % 2]};{'pq'[k // 2 % 2]};\n" for k in range(20)),
    "blank lines": "\n\nx,c,y\n" + "".join(f"{k},{'ab'[k % 2]},{'pq'[k // 2 % 2]}\n\n" for k in range(20)),
    "separators in quotes": "x,c,y\n" + "".join(f'{k},"a, {k % 2}",{"pq"[k // 2 % 2]}\n' for k in range(20)),
    "repeated names": "x,x,y\n" + "".join(f"{k},{k % 3},{'pq'[k // 2 % 2]}\n" for k in range(20)),
    "an index": ",x,y\n" + "".join(f"{k},{k * k},{'pq'[k // 2 % 2]}\n" for k in range(20)),
    "a column without a name": "x,,y\n" + "".join(f"{k},{k % 3},{'pq'[k // 2 % 2]}\n" for k in range(20)),
    "a declared separator": "sep=;\nx;y\n" + "".join(f"{k};{'pq'[k // 2 % 2]}\n" for k in range(20)),
}


@pytest.mark.parametrize("text", DIRTY.values(), ids=DIRTY)
def test_from_a_dirty_file_to_predictions(mixent, text):
    Path("d.csv").write_text(text)
    result = mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--set", "n_components=1")
    assert result.exit_code == 0, result.output
    result = mixent("predict", "m.mixent", "d.csv", "-o", "o.csv")
    assert result.exit_code == 0 and len(pd.read_csv("o.csv")) == 20


def test_each_note_has_a_line_of_its_own(mixent):
    Path("d.csv").write_text(",x,x,y\n" + "".join(f"{k},{k},{k % 3},{'pq'[k // 2 % 2]}\n" for k in range(20)))
    result = mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", *QUICK)
    lines = [line for line in result.stderr.splitlines() if "first column" in line or "'x.1'" in line]
    assert len(lines) == 2


def people(n=40):
    rng = np.random.default_rng(0)
    kind = np.array(["a", "b"])[np.arange(n) % 2]
    columns = {"name": [f"person {k}" for k in range(n)], "age": rng.normal(40, 9, n).round(1) + 9 * (kind == "b")}
    columns |= {"pay": [f"${v:,.2f}" for v in rng.normal(4e3, 900, n)], "town": rng.choice(["Aa", "Bo"], n)}
    return pd.DataFrame({**columns, "born": [f"{k % 28 + 1:02}.05.19{60 + k % 30}" for k in range(n)], "kind": kind})


def test_a_name_that_the_model_ignores_identifies_the_rows(mixent):
    people().to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "kind", "-o", "m.mixent", *QUICK)
    assert "1 ignored" in result.stdout and "1 date" in result.stdout and "5 columns" in result.stdout
    people().drop(columns="kind").to_csv("new.csv", index=False)
    assert mixent("predict", "m.mixent", "new.csv", "-o", "o.csv").exit_code == 0
    assert pd.read_csv("o.csv")["name"].tolist() == people()["name"].tolist()


def test_columns_that_are_not_there_are_missing_values(mixent):
    """Predictions are those for blank cells; a table that lacks most columns is refused."""
    people().to_csv("d.csv", index=False)
    mixent("fit", "d.csv", "-t", "kind", "-o", "m.mixent", "-q", *QUICK)
    probabilities = []
    for frame in (people().drop(columns=["pay", "town"]), people().assign(pay=None, town=None)):
        frame.to_csv("new.csv", index=False)
        result = mixent("predict", "m.mixent", "new.csv", "-o", "o.csv")
        assert result.exit_code == 0, result.output
        probabilities.append(pd.read_csv("o.csv")["p(a)"])
    np.testing.assert_array_equal(*probabilities)
    people()[["name", "town"]].to_csv("new.csv", index=False)
    assert mixent("predict", "m.mixent", "new.csv", "-o", "o.csv").exit_code == 1


def test_imputation_adds_columns_that_are_not_there(mixent):
    people().to_csv("d.csv", index=False)
    mixent("fit", "d.csv", "--model", "joint", "-o", "m.mixent", "-q", "--set", "prior_variance=1.0")
    people().drop(columns=["age", "born"]).to_csv("new.csv", index=False)
    assert mixent("impute", "m.mixent", "new.csv", "-o", "full.csv").exit_code == 0
    full = pd.read_csv("full.csv")
    assert full["age"].notna().all() and full["pay"].tolist() == people()["pay"].tolist()
    assert full["born"].str.fullmatch(r"19\d\d-\d\d-\d\d").all()
