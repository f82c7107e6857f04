"""Bad and odd inputs, by the hundred: each ends in a clear error or in a defined result, at every door.

The tables of cases are in `bad_inputs/`: a name, what is done, and what must come of it.
"""

import os
import re
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mixent.cli import app

from .bad_inputs import classical, commands, features, files, labels, methods, options, structures

mpl.use("Agg")

SECONDS = 5  # for one case; none should need one
TABLES = {
    "features": features,
    "labels": labels,
    "options": options,
    "methods": methods,
    "structures": structures,
    "classical": classical,
    "files": files,
}
CASES = {f"{kind}: {case.name}": case for kind, table in TABLES.items() for case in table.CASES}
ALL_FILES = {
    "good.csv": files.ROWS,
    **files.FITS,
    **commands.FILES,
    **{name: content for name, (content, _) in {**files.NO_TABLES, **files.NO_FITS}.items()},
}


def test_the_tables_are_long():
    in_python = [name for name in CASES if not name.startswith("files")]
    with_files = [name for name in CASES if name.startswith("files")]
    at_the_shell = [*commands.REFUSED, *commands.PREDICTED, *commands.SCORED, *commands.ROUND_TRIPS]
    assert len(CASES) == sum(len(table.CASES) for table in TABLES.values()), "two cases of one name"
    assert len(in_python) >= 200 and len(with_files) >= 50 and len(at_the_shell) >= 100


@contextmanager
def in_time():
    """A case that hangs is stopped where the system can do that, and fails anywhere."""
    can_stop = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
    if can_stop:
        before = signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, 4 * SECONDS)
    began = time.process_time()
    try:
        yield
    finally:
        if can_stop:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert time.process_time() - began < SECONDS


def _too_long(number, stack):
    raise TimeoutError(f"still at it after {4 * SECONDS} seconds")


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("name", CASES)
def test_python(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    with in_time():
        if case.error is not None:
            assert case.match, "the message is part of the outcome"
            with pytest.raises(case.error, match=case.match):
                case.run()
        else:
            expected = nullcontext() if case.warns is None else pytest.warns(case.warns[0], match=case.warns[1])
            with expected:
                result = case.run()
            case.check(result)


# the command line


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Model files to predict with, by the name that stands for them in a command."""
    folder = tmp_path_factory.mktemp("models")
    data = files.make(folder / "good.csv", files.ROWS)
    for name, more in (("model", ["-t", "y"]), ("clusters", ["--ignore", "y"])):
        result = CliRunner().invoke(
            app, ["fit", str(data), "-o", str(folder / name), "--set", "n_components=1", "-q", *more]
        )
        assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["novelty", str(data), "-o", str(folder / "detector"), "--ignore", "y", "-q"])
    assert result.exit_code == 0, result.output
    return {name: folder / name for name in ("model", "clusters", "detector")}


@pytest.fixture
def mixent(models, tmp_path, monkeypatch):
    """Run a command in a folder that holds the files it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    files.make("good.csv", files.ROWS)
    Path("folder.csv").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")

    def run(*args):
        for name in args:
            if name in ALL_FILES:
                files.make(name, ALL_FILES[name])
            elif name in files.BAD_MODELS:
                files.make(name, files.BAD_MODELS[name][0]())
        before = sorted(Path().iterdir())
        with in_time():
            result = CliRunner().invoke(app, [arg.format(**models) if arg[:1] == "{" else arg for arg in args])
        assert "Traceback" not in result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        if result.exit_code:
            assert sorted(Path().iterdir()) == before, "a command that fails leaves nothing behind"
        return result

    return run


@pytest.mark.parametrize("name", commands.REFUSED)
def test_command_refused(mixent, name):
    args, status, message = commands.REFUSED[name]
    result = mixent(*args)
    assert result.exit_code == status, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    rest = [line for line in result.stderr.splitlines() if not line.startswith(("Error: ", "Warning: "))]
    assert len(errors) == 1 and (status == 2 or not rest), result.stderr
    assert re.search(message, errors[0]), errors[0]
    assert "unexpected" not in errors[0] or status == 2


@pytest.mark.parametrize("name", commands.PREDICTED)
def test_command_predicts(mixent, name):
    result = mixent(*commands.PREDICTED[name])
    assert result.exit_code == 0, result.output
    check_written(pd.read_csv("out.csv"))


@pytest.mark.parametrize("name", commands.SCORED)
def test_command_scores(mixent, name):
    result = mixent(*commands.SCORED[name])
    assert result.exit_code == 0, result.output
    table = pd.read_csv("out.csv")
    assert np.isfinite(table["score"]).all() and np.isfinite(table["decision"]).all()
    assert (table["outlier"] == (table["decision"] < 0)).all()


@pytest.mark.parametrize("name", commands.ROUND_TRIPS)
def test_command_fits_and_predicts(mixent, name):
    result = mixent("fit", name, "-t", "y", "-o", "m.mixent", "--set", "n_components=1", *commands.ROUND_TRIPS[name])
    assert result.exit_code == 0, result.output
    result = mixent("predict", "m.mixent", name, "-o", "out.csv")
    assert result.exit_code == 0, result.output
    check_written(pd.read_csv("out.csv"))


def check_written(table):
    """Every probability is there, and each row's sum to one."""
    proba = table[[name for name in table.columns if name.startswith("p(")]].to_numpy(dtype=float)
    assert proba.shape[1] and np.isfinite(proba).all() and (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
    for name in {"log_density", "expected_cost"} & set(table.columns):
        assert np.isfinite(table[name]).all()
