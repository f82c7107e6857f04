"""Bad input ends in one line on standard error and a status, never in a traceback."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROWS = "x,c,y\n1,a,p\n2,b,q\n3,a,p\n4.5,b,q\n"
pytestmark = pytest.mark.usefixtures("bad_files")

FILES = {
    "good.csv": ROWS,
    "empty.csv": "",
    "header.csv": "x,y\n",
    "blank.csv": "\n\n\n",
    "one_class.csv": "x,y\n1,p\n2,p\n3,p\n",
    "no_labels.csv": "x,y\n1,\n2,\n",
    "all_missing.csv": "x,z,y\n1,,p\n2,,q\n3,,p\n",
    "ragged.csv": "x,y\n1,p\n2,q,3\n",
    "no_header.csv": "1,2\n3,4\n",
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


@pytest.fixture
def bad_files(mixent, stock):
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("binary.csv").write_bytes(b"x,y\n\x00\x01,p\n")
    Path("folder.csv").mkdir()
    whole = (stock / "model.mixent").read_bytes()
    Path("cut.mixent").write_bytes(whole[: len(whole) // 2])
    Path("flipped.mixent").write_bytes(whole[:200] + bytes(b ^ 0xFF for b in whole[200:230]) + whole[230:])


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
        "tables.read_frame = lambda path, **how: signal.raise_signal(signal.SIGINT)\n"
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
    assert result.stdout == "id,predicted,p(no),p(yes)\n" and "Traceback" not in result.stderr
