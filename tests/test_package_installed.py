"""The wheel in clean environments, outside the repository: alone, and with every extra.

Slow (an environment takes half a minute), and the only tests here that need a package index; the quick siblings in
`test_package.py` build and read the same wheel and run its copy beside the libraries of this environment.
"""

import csv
import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

import mixent

ROOT = Path(__file__).parent.parent
EXTRAS = {"matplotlib", "pyarrow", "skops"}

pytestmark = pytest.mark.slow


class Clean:
    """A new environment that holds the wheel, and an empty folder to work in."""

    def __init__(self, folder, requirement):
        self.bin, self.work = folder / "env" / "bin", folder / "work"
        self.work.mkdir()
        venv.create(folder / "env", with_pip=True)
        self.python("-m", "pip", "install", "--quiet", "--no-compile", requirement)  # only what is used

    def run(self, *command):
        """Run a command that knows nothing of the repository or of this environment."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return subprocess.run(command, cwd=self.work, env={**kept, "COLUMNS": "200"}, capture_output=True, text=True)

    def python(self, *arguments):
        done = self.run(str(self.bin / "python"), *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def mixent(self, *arguments):
        return self.run(str(self.bin / "mixent"), *arguments)

    def libraries(self):
        lines = self.python("-m", "pip", "list", "--format", "freeze").splitlines()
        return {line.partition("==")[0].lower() for line in lines}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory):
    return Clean(tmp_path_factory.mktemp("core"), str(wheel))


@pytest.fixture(scope="module")
def full(wheel, tmp_path_factory):
    return Clean(tmp_path_factory.mktemp("full"), f"{wheel}[all]")


def write_table(path, n=80, seed=0):
    """Two kinds of rows told apart by a number and a color, with gaps."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["size", "color", "kind"])
        for i in range(n):
            size = "" if i % 11 == 0 else f"{rng.normal() + 4 * (i % 2):.3f}"
            out.writerow([size, ["blue", "red"][i % 2 if rng.random() < 0.9 else 1 - i % 2], ["no", "yes"][i % 2]])


EVERY_NAME = """
import mixent, pathlib, sys
assert pathlib.Path(mixent.__file__).is_relative_to(sys.prefix), mixent.__file__
assert (pathlib.Path(mixent.__file__).parent / "py.typed").exists()
for name in mixent.__all__:
    getattr(mixent, name)
print(mixent.__version__)
"""

ARRAYS_AND_LISTS = """
import numpy as np
from sklearn.datasets import load_wine
import mixent
X, y = load_wine(return_X_y=True)
model = mixent.MixtureClassifier(1).fit(X, y)
assert np.array_equal(model.predict_proba(X), mixent.MixtureClassifier(1).fit(X.tolist(), y.tolist()).predict_proba(X))
mixent.save(model, "wine.mixent")
assert np.array_equal(mixent.load("wine.mixent").predict_proba(X), model.predict_proba(X))
print(model.score(X, y))
"""


def test_alone_it_brings_no_extra_and_every_name_is_there(core):
    assert not core.libraries() & {*EXTRAS, "pytest", "polars"}
    assert core.python("-W", "error", "-c", EVERY_NAME).strip() == mixent.__version__
    assert core.mixent("--version").stdout.strip() == f"mixent {mixent.__version__}"


def test_alone_it_fits_predicts_saves_and_loads(core):
    assert float(core.python("-W", "error", "-c", ARRAYS_AND_LISTS)) > 0.95


def test_alone_the_command_line_reads_csv(core):
    """Fit a CSV and predict it; `compare` runs, too, also where the best method could not be saved."""
    write_table(core.work / "t.csv")
    for command in (
        ["fit", "t.csv", "-t", "kind", "--set", "n_components=1", "-o", "m.mixent"],
        ["predict", "m.mixent", "t.csv", "-o", "p.csv"],
        ["compare", "t.csv", "-t", "kind", "--method", "parzen,naive Bayes", "--folds", "2", "--no-page"],
    ):
        done = core.mixent(*command)
        assert done.returncode == 0, done.stderr
    assert len((core.work / "p.csv").read_text().splitlines()) == 81


def test_alone_a_command_says_what_to_install(core):
    (core.work / "t.parquet").write_bytes(b"PAR1")
    done = core.mixent("fit", "t.parquet", "-t", "kind", "-o", "m.mixent")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: pyarrow is needed") and line.endswith('pip install "mixent[parquet]"')


def test_with_all_extras_the_way_from_a_file_to_a_page(full):
    """Fit a CSV, predict it, score it, write the page with its figures."""
    assert full.libraries() >= EXTRAS
    write_table(full.work / "t.csv")
    for command in (
        ["fit", "t.csv", "-t", "kind", "--set", "n_components=1", "-o", "m.mixent"],
        ["predict", "m.mixent", "t.csv", "-o", "p.parquet"],
        ["predict", "m.mixent", "t.csv", "-o", "p.csv"],
        ["compare", "t.csv", "-t", "kind", "--method", "parzen", "--folds", "2", "--report", "page.html"],
    ):
        done = full.mixent(*command)
        assert done.returncode == 0, done.stderr
    with (full.work / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 80
    assert "<svg" in (full.work / "page.html").read_text()
