"""The commands in the pages run, on small files with the names and columns that the pages use.

To be quick, `compare` runs two folds without scikit-learn's methods, and one method where the command names none, and
writes no page. tests/test_readme.py runs `mixent demo` and `mixent compare` as they are.
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import mixent as mx
from mixent.comparison import Comparison

from .pages import ROOT, blocks, commands, run_command

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
N_ROWS = 40


def patients(n=N_ROWS, seed=0):
    """Columns of the guides on classifiers; two classes, missing values, a feature given as probabilities."""
    rng = np.random.default_rng(seed)
    ill = np.arange(n) % 2 == 0
    table = pd.DataFrame(
        {
            "age": np.where(ill, rng.normal(60, 9, n), rng.normal(45, 12, n)).round(),
            "pressure": np.where(ill, rng.normal(100, 9, n), rng.normal(125, 12, n)).round(),
            "pain": np.where(rng.random(n) < 0.7, np.where(ill, "chest", "none"), "other"),
            "smoker": np.where(rng.random(n) < np.where(ill, 0.6, 0.3), "yes", "no"),
            "p_scan": np.where(ill, 0.8, 0.3),
            "p_clear": np.where(ill, 0.2, 0.7),
            "class": np.where(ill, "ill", "well"),
        }
    )
    table.loc[::7, "pressure"] = None
    return table


def write_patients():
    """data.csv and new.csv, without the feature that is given as probabilities."""
    table = patients().drop(columns=["p_scan", "p_clear"])
    table.to_csv("data.csv", index=False)
    table.to_csv("new.csv", index=False)


def write_numbers():
    """data.csv with one numeric column: quick for Gaussians by discrimination."""
    patients(24)[["age", "class"]].to_csv("data.csv", index=False)


def write_features():
    """For maximum entropy: all columns, and a table of numbers."""
    patients().to_csv("data.csv", index=False)
    patients(seed=1).to_csv("new.csv", index=False)
    patients()[["age", "pressure", "class"]].to_csv("wine.csv", index=False)


def write_outputs():
    """For ensembles: a table, and one with the answers of a vendor."""
    numbers = patients()[["age", "pressure", "class"]]
    numbers.rename(columns={"class": "y"}).to_csv("data.csv", index=False)
    answers = numbers.rename(columns={"class": "truth"})
    answers["vendor a"] = answers["truth"].where(answers.index % 4 > 0, "ill")
    answers.to_csv("votes.csv", index=False)


def write_votes():
    """For fusion: labels, scores and probabilities of sources, wide and long."""
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(80) % 2 == 0, "healthy", "ill")

    def votes(accuracy):
        return np.where(rng.random(80) < accuracy, truth, np.where(truth == "ill", "healthy", "ill"))

    wide = pd.DataFrame({"A": votes(0.9), "B": votes(0.8), "C": votes(0.7), "D": votes(0.8)})
    wide.to_csv("votes.csv", index=False)
    wide.to_csv("new.csv", index=False)
    wide.drop(columns="D").assign(truth=truth).to_csv("labelled.csv", index=False)
    wide[["D"]].assign(truth=truth).to_csv("ward_b.csv", index=False)
    client = truth == "ill"
    score = rng.normal(client.astype(float), 1.0)
    pd.DataFrame({"face": score, "voice": -score, "client": client}).to_csv("scores.csv", index=False)
    grade = np.clip(np.round(2 + score), 1, 5).astype(int)
    pd.DataFrame({"E": grade, "F": 6 - grade, "truth": truth}).to_csv("grades.csv", index=False)
    p = np.where(rng.random(80) < 0.8, 0.9, 0.1)
    p = np.where(client, p, 1 - p)
    pd.DataFrame({"M:healthy": 1 - p, "M:ill": p, "truth": truth}).to_csv("models.csv", index=False)
    long = wide.reset_index(names="item").melt("item", var_name="worker", value_name="answer")
    long.to_csv("crowd.csv", index=False)
    judged = long.rename(columns={"worker": "judge", "answer": "verdict"}).assign(confidence=0.8)
    judged.to_csv("judged.csv", index=False)
    judged.assign(truth=truth[judged["item"]]).to_csv("judges.csv", index=False)
    known = ["judges.csv", "--target", "truth", "--long", "item,judge,verdict"]
    run_command(["mixent", "calibrate", *known, "-o", "judges.json"])


def write_pumps():
    patients().drop(columns=["p_scan", "p_clear"]).rename(columns={"class": "state"}).to_csv("pumps.csv", index=False)


PAGES = {
    "docs/classical.md": write_patients,
    "docs/discrimination.md": write_numbers,
    "docs/discriminative.md": write_patients,
    "docs/ensembles.md": write_outputs,
    "docs/fusion.md": write_votes,
    "docs/index.md": lambda: None,
    "docs/maxent.md": write_features,
    "docs/start.md": write_pumps,
}
ELSEWHERE = {"docs/plugins.md"}  # tests/test_plugins.py


@pytest.fixture
def quick_compare(monkeypatch):
    original = mx.compare

    def compare(X, y, **options):
        if options["methods"] == "auto":
            options["methods"] = ["maximum entropy"]
        return original(X, y, **{**options, "baselines": False, "folds": 2, "n_jobs": 1})

    monkeypatch.setattr(mx, "compare", compare)
    monkeypatch.setattr(Comparison, "report", lambda self, path, **options: Path(path).write_text("page"))
    monkeypatch.setattr(import_module("mixent.cli.demo"), "METHODS", ("maximum entropy",))


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch, quick_compare):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    PAGES[page]()
    n_run = 0
    for _, code in blocks(page, "sh"):
        for words in commands(code):
            if words[0] == "mixent":
                run_command(words)
                n_run += 1
            else:
                assert words[:2] == ["pip", "install"], words
    assert n_run > 1


def test_no_page_with_commands_is_left_out():
    pages = (f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
    assert {page for page in pages if blocks(page, "sh")} == PAGES.keys() | ELSEWHERE
