"""A small table with categories, gaps and weights, and models of it."""

from functools import partial

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mixent.cli import app

mpl.use("Agg")
if tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1):  # older ones round the last digit unless told
    pd.read_csv = partial(pd.read_csv, float_precision="round_trip")


def make_frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    label = np.array(["no", "yes"])[np.arange(n) % 2]
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "size": rng.normal(size=n) + 3 * (label == "yes"),
            "count": rng.poisson(5, n).astype(float),
            "colour": np.where(rng.random(n) < 0.8, np.where(label == "yes", "red", "blue"), "green"),
            "w": rng.random(n) + 0.5,
            "class": label,
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::9, "count"] = np.nan
    frame.loc[::11, "colour"] = None
    return frame


@pytest.fixture(scope="session")
def stock(tmp_path_factory):
    """A folder that tests may read: data.csv, model.mixent (classes), clusters.mixent."""
    folder = tmp_path_factory.mktemp("stock")
    make_frame().to_csv(folder / "data.csv", index=False)
    fit = ["fit", str(folder / "data.csv"), "--ignore", "id", "--ignore", "w", "-q", "-k", "1", "--covariance", "VVV"]
    for more in (
        ["-t", "class", "-o", str(folder / "model.mixent")],
        ["--ignore", "class", "-o", str(folder / "clusters.mixent")],
    ):
        result = CliRunner().invoke(app, [*fit, *more])
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def mixent(tmp_path, monkeypatch, stock):
    """Run a command in an empty folder; `{stock}` in an argument is the folder of ready files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*args):
        result = CliRunner().invoke(app, [str(a).replace("{stock}", str(stock)) for a in args])
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def fails(mixent):
    """Run a command that must end in one line on standard error; returns that line."""

    def run(*args, status=1):
        result = mixent(*args)
        assert result.exit_code == status, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("Warning: ")]
        if status == 1:
            assert len(lines) == 1 and lines[0].startswith("Error: "), result.stderr
        return lines[-1]

    return run
