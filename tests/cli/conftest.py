"""A small table with categories, missing values and weights, models of it, and an estimator registered for a test."""

from functools import partial

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin
from typer.testing import CliRunner

from mixent.base.describe import document
from mixent.base.options import Estimator, Options, one_of
from mixent.base.registry import register, unregister
from mixent.cli import app

mpl.use("Agg")
if tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1):  # older ones round the last digit by default
    pd.read_csv = partial(pd.read_csv, float_precision="round_trip")
FEATURES = ["size", "count", "color"]


def make_frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    label = np.array(["no", "yes"])[np.arange(n) % 2]
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "size": rng.normal(size=n) + 3 * (label == "yes"),
            "count": rng.poisson(5, n).astype(float),
            "color": np.where(rng.random(n) < 0.8, np.where(label == "yes", "red", "blue"), "green"),
            "w": rng.random(n) + 0.5,
            "class": label,
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::9, "count"] = np.nan
    frame.loc[::11, "color"] = None
    return frame


@pytest.fixture(scope="session")
def stock(tmp_path_factory):
    """A folder that tests may read: data.csv, some.csv (not all rows labelled), and models."""
    folder = tmp_path_factory.mktemp("stock")
    frame = make_frame()
    frame.to_csv(folder / "data.csv", index=False)
    frame.assign(**{"class": frame["class"].where(frame.index % 6 > 0)}).to_csv(folder / "some.csv", index=False)
    quick = ["--set", "n_components=1", "--set", "covariance=VVV"]
    for name, more in {
        "model": ["-t", "class", *quick],
        "clusters": ["--ignore", "class", *quick],
        "maxent": ["-t", "class", "--model", "maxent", "--set", "prior_variance=1.0"],
        "joint": ["--model", "joint", "--set", "prior_variance=1.0"],
    }.items():
        args = ["fit", str(folder / "data.csv"), "--ignore", "id,w", "-q", "-o", str(folder / f"{name}.mixent")]
        result = CliRunner().invoke(app, [*args, *more])
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


# --- an estimator of another package ----------------------------------------------------------------------------------


class Few(Options):
    """A few candidates.

    Parameters
    ----------
    most : int
        Most candidates. Not too many.
    """

    short_forms = {"few": {}, "many": {"most": 9}}

    def __init__(self, most=2):
        self.most = most


class All(Options):
    """All candidates.

    Parameters
    ----------
    order : "up" or "down"
        Which comes first.
    """

    short_forms = {"all": {}}

    def __init__(self, order="up"):
        self.order = order


class Majority(ClassifierMixin, Estimator):
    """Answers the most frequent class.

    Parameters
    ----------
    strength : float or None
        Pseudo-rows of each class.
    search : "few", "many", "all", Few, All or None
        What is tried.
    random_state
        See `Few`.

    Attributes
    ----------
    share_ : array
        Not a parameter.
    """

    _groups = {"search": one_of(Few, All, optional=True)}

    def __init__(self, strength=1.0, search="few", random_state=None):
        self.strength = strength
        self.search = search
        self.random_state = random_state

    def fit(self, X, y):
        if not isinstance(self.strength, float):
            raise ValueError(f"strength must be a float; got {self.strength!r}")
        self._group("search")
        self.classes_, counts = np.unique(np.asarray(y, dtype=str), return_counts=True)
        self.share_ = (counts + self.strength) / (counts + self.strength).sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))


@pytest.fixture
def majority():
    register(
        "majority",
        task="classification",
        title="Most frequent class",
        describe=lambda model: document(
            model, f"Answers {model.classes_[model.share_.argmax()]}.", facts={"share": model.share_.tolist()}
        ),
        state={"classes_": np.ndarray, "share_": np.ndarray},
        parts=(Few, All),
    )(Majority)
    yield Majority
    unregister(Majority)
