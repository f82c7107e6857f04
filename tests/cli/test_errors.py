"""Bad input ends in one line on standard error and a status, never in a traceback."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROWS = "x,c,y\n1,a,p\n2,b,q\n3,a,p\n4.5,b,q\n"
FILES = {
    "good.csv": ROWS,
    "empty.csv": "",
    "header.csv": "x,y\n",
    "blank.csv": "\n\n\n",
    "one_class.csv": "x,y\n1,p\n2,p\n3,p\n",
    "no_labels.csv": "x,y\n1,\n2,\n",
    "all_missing.csv": "x,z,y\n1,,p\n2,,q\n3,,p\n",
    "duplicate.csv": "x,x,y\n1,2,p\n3,4,q\n",
    "ragged.csv": "x,y\n1,p\n2,q,3\n",
    "semicolon.csv": "x;y\n1;p\n2;q\n",
    "no_header.csv": "1,2\n3,4\n",
    "nameless.csv": ",x,y\n0,1,p\n1,2,q\n",
    "mixed.csv": "x,y\n1,p\n2,3\n",
    "real_target.csv": "x,y\n1,0.5\n2,0.25\n3,0.75\n",
    "infinite.csv": "x,y\n1,p\ninf,q\n3,p\n",
    "huge.csv": "x,y\n1,p\n1e200,q\n3,p\n",
    "weights.csv": "x,w,y\n1,1,p\n2,-1,q\n3,1,p\n4,1,q\n",
    "zero_weights.csv": "x,w,y\n1,0,p\n2,0,q\n3,0,p\n4,0,q\n",
    "gap_weights.csv": "x,w,y\n1,,p\n2,1,q\n3,1,p\n4,1,q\n",
    "target_only.csv": "y\np\nq\n",
    "numbers.csv": "size,count,color\nbig,1,red\n",
    "short.csv": "size,coumt,color\n1,1,red\n",
    "clash.csv": "size,count,color,predicted\n1,1,red,x\n",
    "costs_text.csv": "said,no,yes\nno,0,much\nyes,1,0\n",
    "costs_gap.csv": "said,no,yes\nno,0,\nyes,1,0\n",
    "costs_classes.csv": "said,no,maybe\nno,0,1\nyes,1,0\n",
    "costs_rows.csv": "said,no,yes\nno,0,1\n",
    "fake.mixent": "this is no model",
    "fake.parquet": "this is no table",
    "book.xlsx": "PK",
}


@pytest.fixture(autouse=True)
def bad_files(mixent, stock):
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("latin.csv").write_bytes("x,y\n1,é\n2,q\n".encode("latin-1"))
    Path("binary.csv").write_bytes(b"x,y\n\x00\x01,p\n")
    Path("folder.csv").mkdir()
    whole = (stock / "model.mixent").read_bytes()
    Path("cut.mixent").write_bytes(whole[: len(whole) // 2])
    Path("flipped.mixent").write_bytes(whole[:200] + bytes(b ^ 0xFF for b in whole[200:230]) + whole[230:])


BAD_TABLES = [
    ("missing.csv", "no such file: missing.csv"),
    ("goood.csv", "did you mean 'good.csv'?"),
    ("empty.csv", "the file is empty"),
    ("header.csv", "no rows below the header"),
    ("blank.csv", "the file is empty"),
    ("folder.csv", "is a folder"),
    ("book.xlsx", "unknown kind of file '.xlsx'"),
    ("fake.parquet", "not a readable Parquet file"),
    ("latin.csv", "not UTF-8 text"),
    ("binary.csv", "binary data"),
    ("duplicate.csv", "the column name 'x' appears 2 times"),
    ("ragged.csv", "line 3 has 3 values"),
    ("semicolon.csv", "separate the columns by ','"),
    ("no_header.csv", "a header line with column names is needed"),
    ("nameless.csv", "column 1 has no name"),
]
BAD_FITS = [
    ("one_class.csv", "a classifier needs at least 2 classes; y has 1 class: 'p'"),
    ("no_labels.csv", "every label in y is absent"),
    ("all_missing.csv", "column 'z' has no values"),
    ("real_target.csv", "Unknown label type"),
    ("infinite.csv", "column 'x', row 1 holds inf"),
    ("huge.csv", "too large"),
    ("target_only.csv", "'y' is the only column"),
]


@pytest.mark.parametrize(("name", "message"), BAD_TABLES + BAD_FITS)
def test_bad_table(fails, name, message):
    assert message in fails("fit", name, "-t", "y", "-o", "m.mixent")
    assert not Path("m.mixent").exists()


@pytest.mark.parametrize(("name", "message"), BAD_TABLES[:5])
def test_bad_table_at_compare(fails, name, message):
    assert message in fails("compare", name, "-t", "y", "-o", "m.mixent")


@pytest.mark.parametrize(("name", "message"), BAD_TABLES)
def test_bad_table_at_predict(fails, name, message):
    assert message in fails("predict", "{stock}/model.mixent", name, "-o", "out.csv")
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-t", "Y"], "has no column 'Y'; the columns are 'x', 'c', 'y'"),
        (["-t", "yy"], "has no column 'yy'; did you mean 'y'?"),
        (["-t", "[bold]"], "has no column '[bold]'"),
        (["-t", "y", "--ignore", "xx"], "has no column 'xx'; did you mean 'x'?"),
        (["-t", "y", "--ignore", "x", "--ignore", "c"], "'y' is the only column"),
        (["--ignore", "x", "--ignore", "c", "--ignore", "y"], "no column is left to fit"),
        (["-t", "y", "--ignore", "y"], "'y' is the --target and cannot be given to --ignore too"),
        (["-t", "y", "--weight", "y"], "cannot be given to --weight too"),
        (["-t", "y", "--weight", "v"], "has no column 'v'"),
        (["-t", "y", "--weight", "c"], "column 'c' (--weight) must hold numbers; row 0 holds 'a'"),
        (["-t", "y", "--categorical", "cc"], "has no column 'cc'; did you mean 'c'?"),
        (["-t", "y", "--categorical", "x", "--ignore", "x"], "has no column 'x'"),
    ],
)
def test_bad_columns(fails, options, message):
    assert message in fails("fit", "good.csv", *options, "-o", "m.mixent")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weights.csv", "must be >= 0; row 1 has -1"),
        ("zero_weights.csv", "non-zero"),
        ("gap_weights.csv", "must be finite; row 0"),
    ],
)
def test_bad_weights(fails, name, message):
    line = fails("fit", name, "-t", "y", "--weight", "w", "-o", "m.mixent")
    assert "column 'w' (--weight)" in line and message in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "n_components"], "--set must be KEY=VALUE"),
        (["--set", "components=2"], "unknown parameter 'components' of mixture; did you mean 'n_components'?"),
        (["--model", "mixtur"], "unknown model 'mixtur'; did you mean 'mixture'?"),
        (["--seed", "-1"], "--seed"),
        (["--jobs", "0"], "--jobs"),
        (["--nonsense"], "--nonsense"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_bad_options_are_usage_errors(fails, options, message):
    assert message in fails("fit", "good.csv", "-t", "y", "-o", "m.mixent", *options, status=2)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("n_components=0", "n_components must be"),
        ("n_components=two", "n_components must be"),
        ("covariance=XYZ", "XYZ"),
        ("prior=-1", "prior"),
    ],
)
def test_bad_values_are_refused_by_the_estimator(fails, setting, message):
    assert message in fails("fit", "good.csv", "-t", "y", "-o", "m.mixent", "--set", setting)


@pytest.mark.parametrize(
    "args",
    [
        ["fit"],
        ["fit", "good.csv"],
        ["nonsense"],
        ["compare", "good.csv"],
        ["compare", "good.csv", "-t", "y", "--folds", "1"],
        ["predict", "{stock}/model.mixent", "good.csv"],
        ["predict", "{stock}/model.mixent", "good.csv", "-o", "out.csv", "--reject", "nan"],
        ["predict", "{stock}/clusters.mixent", "{stock}/data.csv", "-o", "out.csv", "--reject", "1"],
        ["predict", "{stock}/clusters.mixent", "{stock}/data.csv", "-o", "out.csv", "--adjust-priors"],
        ["predict", "{stock}/clusters.mixent", "{stock}/data.csv", "-o", "out.csv", "--explain"],
    ],
)
def test_usage(fails, args):
    fails(*args, status=2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.mixent", "missing.mixent: No such file or directory"),
        ("folder.csv", "folder.csv: Is a directory"),
        ("empty.csv", "not a mixent file"),
        ("fake.mixent", "not a mixent file"),
        ("cut.mixent", "not a mixent file"),
        ("flipped.mixent", "flipped.mixent"),
        ("good.csv", "not a mixent file"),
    ],
)
def test_bad_model(fails, name, message):
    assert message in fails("predict", name, "good.csv", "-o", "out.csv")
    assert message in fails("info", name)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["numbers.csv"], "column 'size' held numbers at fit, but row 0 now holds the text 'big'"),
        (["short.csv"], "short.csv has no column 'count'; did you mean 'coumt'?"),
        (["good.csv"], "good.csv has no columns 'size', 'count', 'color'"),
        (["clash.csv", "--keep", "predicted"], "has a column 'predicted' too"),
        (["clash.csv", "--keep-all"], "has a column 'predicted' too"),
        (["clash.csv", "--keep", "nope"], "has no column 'nope'"),
        (["clash.csv", "--costs", "missing.csv"], "no such file"),
        (["clash.csv", "--costs", "costs_text.csv"], "every cost must be a finite number"),
        (["clash.csv", "--costs", "costs_gap.csv"], "every cost must be a finite number"),
        (["clash.csv", "--costs", "costs_classes.csv"], "needs one column for each class 'no', 'yes'"),
        (["clash.csv", "--costs", "costs_rows.csv"], "needs one row for each class 'no', 'yes'"),
    ],
)
def test_bad_predict(fails, args, message):
    assert message in fails("predict", "{stock}/model.mixent", *args, "-o", "out.csv")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("folder.csv", "it is a folder"),
        ("nowhere/out.csv", "folder 'nowhere' does not exist"),
        ("good.csv/out.csv", "does not exist"),
        ("out.xlsx", "unknown kind of file '.xlsx'"),
        ("clash.csv", "it is an input of this command"),
    ],
)
def test_output_that_cannot_be_written(fails, output, message):
    assert message in fails("predict", "{stock}/model.mixent", "clash.csv", "-o", output)
    assert Path("clash.csv").read_text() == FILES["clash.csv"]


def test_outputs_of_the_other_commands(fails):
    assert "it is an input" in fails("fit", "good.csv", "-t", "y", "-o", "good.csv")
    assert "does not exist" in fails("fit", "good.csv", "-t", "y", "-o", "nowhere/m.mixent")
    assert "does not exist" in fails("compare", "good.csv", "-t", "y", "--report", "nowhere/r.html")
    assert "unknown kind" in fails("compare", "good.csv", "-t", "y", "--report", "r.pdf")
    assert "unknown kind" in fails("compare", "good.csv", "-t", "y", "--scores", "scores.txt")
    assert "does not exist" in fails("demo", "--out", "nowhere/d.html")


def test_no_permission(fails, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anywhere
    assert "cannot write m.mixent: no permission" in fails("fit", "good.csv", "-t", "y", "-o", "m.mixent")


def test_too_few_rows_for_the_folds(fails):
    more = ("--folds", "7", "--method", "parzen", "--no-baselines")
    assert "folds" in fails("compare", "good.csv", "-t", "y", *more)


def test_overwriting_an_output_is_fine(mixent):
    Path("out.csv").write_text("old")
    assert mixent("predict", "{stock}/model.mixent", "clash.csv", "-o", "out.csv").exit_code == 0
    assert "old" not in Path("out.csv").read_text()


def test_quiet_still_tells_errors(fails):
    assert "no such file" in fails("fit", "missing.csv", "-t", "y", "-o", "m.mixent", "--quiet")


def test_unforeseen_errors_are_one_line_too(fails, monkeypatch):
    def broken(*args, **more):
        raise KeyError("a [bold] surprise\nin two lines")

    monkeypatch.setattr(import_module("mixent.cli.fit"), "read_data", broken)
    line = fails("fit", "good.csv", "-t", "y", "-o", "m.mixent")
    assert "unexpected KeyError" in line and "[bold] surprise" in line and "--debug" in line


def test_debug_shows_the_error_itself(mixent):
    result = mixent("fit", "missing.csv", "-t", "y", "-o", "m.mixent", "--debug")
    assert isinstance(result.exception, FileNotFoundError)


def test_interrupt(fails, monkeypatch):
    def interrupted(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("mixent.cli.fit"), "fit_with_bar", interrupted)
    assert "interrupted" in fails("fit", "good.csv", "-t", "y", "-o", "m.mixent", status=130)
    assert not Path("m.mixent").exists()


# the installed command, as a person meets it


def shell(*args, **more):
    command = [sys.executable, "-c", "from mixent.cli import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)


def test_installed_command_errors(stock):
    result = shell("fit", "nothing-like-it.csv", "-t", "y", "-o", "m.mixent")
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "Error: no such file: nothing-like-it.csv\n")


def test_installed_command_to_a_pipe_without_unicode(stock, tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    args = (
        stock / "data.csv",
        "-t",
        "class",
        "--ignore",
        "id",
        "--method",
        "parzen",
        "--folds",
        "2",
        "--no-baselines",
        "--no-page",
    )
    result = shell("compare", *args, env=environment, cwd=tmp_path)
    assert result.returncode == 0 and "Traceback" not in result.stderr and result.stdout.isascii()


def test_ctrl_c(stock):
    program = (
        "import signal, sys\n"
        "import mixent.data as tables\n"
        "tables.read_frame = lambda path, text: signal.raise_signal(signal.SIGINT)\n"
        "from mixent.cli import main\n"
        "main()"
    )
    command = [sys.executable, "-c", program, "fit", str(stock / "data.csv"), "-t", "class", "-o", "m.mixent"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 130
    assert result.stderr == "Error: interrupted\n"


def test_a_reader_that_goes_away(stock):
    python = f"{sys.executable} -c 'from mixent.cli import main; main()'"
    command = f"{python} predict {stock}/model.mixent {stock}/data.csv -o - -q | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout == "predicted,p(no),p(yes)\n" and "Traceback" not in result.stderr


def test_an_option_given_twice_is_an_error(mixent):
    for command in (["fit", "good.csv", "-o", "m.mixent"], ["compare", "good.csv"]):
        result = mixent(*command, "-t", "y", "--seed", "1", "--seed=2")
        assert result.exit_code == 2 and "--seed was given 2 times and takes one value" in result.stderr
