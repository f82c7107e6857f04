"""`mixent report`: the page of a saved model."""

import re

import numpy as np
import pandas as pd
import pytest


def headings(path):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", path.read_text(encoding="utf-8"))


def test_a_classifier_and_its_labels(mixent, tmp_path):
    done = mixent("report", "{stock}/model.mixent", "{stock}/data.csv", "-t", "class", "-o", "page.html")
    assert done.exit_code == 0, done.output
    assert "60 rows of" in " ".join(done.stdout.split()) and "open it in a browser" in done.stdout
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Scores" in headings(tmp_path / "page.html") and "model.mixent on data.csv" in text
    assert "mixent report" in text and "-o page.html" in text  # what was typed


def test_without_labels_and_with_a_title(mixent, tmp_path):
    assert mixent("report", "{stock}/model.mixent", "{stock}/data.csv", "-o", "p.html", "--title", "<T>").exit_code == 0
    assert "Predictions" in headings(tmp_path / "p.html") and "&lt;T&gt;" in (tmp_path / "p.html").read_text()


def test_weights_clusters_and_silence(mixent, tmp_path):
    done = mixent(
        *("report", "{stock}/model.mixent", "{stock}/data.csv", "-t", "class", "--weight", "w", "-o", "p.html", "-q")
    )
    assert done.exit_code == 0 and done.stdout == ""
    assert "the scores above are weighted" in (tmp_path / "p.html").read_text()
    assert mixent("report", "{stock}/clusters.mixent", "{stock}/data.csv", "-o", "c.html").exit_code == 0
    assert "Log-likelihood" in headings(tmp_path / "c.html")


@pytest.fixture
def votes(mixent, tmp_path):
    truth = np.where(np.arange(60) % 2 == 0, "no", "yes")
    said = {name: np.where(np.arange(60) % k == 0, "yes", truth) for name, k in (("a", 7), ("b", 5), ("c", 9))}
    pd.DataFrame(said).to_csv("votes.csv", index=False)
    pd.DataFrame({**said, "truth": truth}).to_csv("known.csv", index=False)
    done = mixent("fuse", "votes.csv", "-o", "fused.csv", "--save", "f.mixent", "-q")
    assert done.exit_code == 0, done.output
    return tmp_path


def test_a_fusion_alone_and_on_a_table(mixent, votes):
    assert mixent("report", "f.mixent", "-o", "p.html").exit_code == 0
    assert "Class priors" in headings(votes / "p.html") and "Scores" not in headings(votes / "p.html")
    assert mixent("report", "f.mixent", "votes.csv", "-o", "p.html").exit_code == 0
    assert "Items of this table" in headings(votes / "p.html")
    assert mixent("report", "f.mixent", "known.csv", "-t", "truth", "-o", "p.html").exit_code == 0
    assert "Scores" in headings(votes / "p.html")


def test_sequences(mixent, fails, tmp_path):
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(20), 6)
    label = np.array(["a", "b"])[who % 2]
    steps = pd.DataFrame({"who": who, "x": rng.normal(size=120) + 2 * (label == "b"), "y": label})
    steps.to_csv("steps.csv", index=False)
    fit = (
        "fit",
        "steps.csv",
        "-t",
        "y",
        "--model",
        "hmm",
        "--set",
        "n_states=1",
        "--sequence",
        "who",
        "-o",
        "h.mixent",
        "-q",
    )
    assert mixent(*fit).exit_code == 0
    done = mixent("report", "h.mixent", "steps.csv", "-t", "y", "--sequence", "who", "-o", "p.html")
    assert done.exit_code == 0, done.output
    assert "20 sequences" in (tmp_path / "p.html").read_text()
    assert "--sequence is needed" in fails("report", "h.mixent", "steps.csv", "-o", "p.html", status=2)
