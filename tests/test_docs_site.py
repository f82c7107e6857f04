"""The code in the pages of the site (start, comparing, mathematics, fusion for a manager) runs as printed."""

import re

import pytest

from .pages import BLOCK, run


def test_the_first_page(capsys):
    names, _, text, _ = run("index.md", capsys)
    assert names["model"].predict(names["X"][:3]).tolist() == [0, 0, 0]
    shown = re.findall(r"\]\(([\w-]+)\.md\)", text)
    assert {"start", "choosing", "capabilities", "faq", "fusion-manager", "mathematics", "tables"} <= set(shown)


def test_ten_minutes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed, text, drawn = run("start.md", capsys)
    comparison, model, loaded = names["comparison"], names["model"], names["loaded"]
    assert drawn == 1 and comparison.recommended in names["methods"] and comparison.winner is not None
    output = " ".join(" ".join(printed).split())
    quoted = [" ".join(line.split()) for line in BLOCK.sub("", text).splitlines() if line.startswith("    ")]
    quoted[1:5] = [line.rpartition(" ")[0] for line in quoted[1:5]]  # without the times
    assert len(quoted) > 20 and [line for line in quoted if line not in output] == []
    assert model.classes_.tolist() == ["fine", "worn"] and (names["probability"][:, 1] > 0.5).tolist() == [
        True,
        False,
        False,
    ]
    shares = (names["state"] == "worn").mean()
    assert names["probability"][2, 1] == pytest.approx(shares, abs=0.05)  # only the maker is known
    assert (loaded.predict_proba(names["new"]) == names["probability"]).all()
    assert {"pumps.csv", "pumps.mixent", "pumps.html"} <= {path.name for path in tmp_path.iterdir()}


def test_the_mathematics(capsys):
    names, printed, text, _ = run("mathematics.md", capsys)
    assert printed == ["True True"] and "    True True\n" in text
    assert names["early"].gap_ > names["done"].gap_


def test_fusion_for_a_manager(capsys):
    names, printed, text, _ = run("fusion-manager.md", capsys)
    page = " ".join(text.split())
    assert len(printed) == 10 and not [line for line in printed if " ".join(line.split()) not in page]
    assert re.search(r"270 +\| +30", text) and round(100 * (0.95 * 0.1 + 0.05 * 0.8)) == 14  # the table, and "about 14"
    assert round(100 * (0.85 * 0.1 + 0.15 * 0.8)) == 20
    assert names["fusion"].method_ == "discounted"


def test_the_page_on_studies(capsys):
    names, printed, text, drawn = run("studies.md", capsys)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert drawn == 2 and len(printed) == 29 and not [line for line in printed if " ".join(line.split()) not in lines]
    study, report = names["study"], names["report"]
    assert study.mean("adjusted", "log_loss")[2] < 0.5 * study.mean("as trained", "log_loss")[2]
    assert report.dcf < 0.1 * report.trivial_dcf and names["curves"].failures == {}


def test_comparing(capsys):
    _, printed, text, drawn = run("comparing.md", capsys)
    page = " ".join(text.split())
    assert len(printed) >= 7 and drawn == 1
    for line in printed[:7]:  # both tests on iris, the comparison, the chosen pair
        assert " ".join(line.split()) in page, line


def test_capabilities(capsys):
    names, printed, _, _ = run("capabilities.md", capsys)
    assert names["table"]["MaxEntClassifier", "explanations"].note == "by column"
    assert any("MEDClassifier" in line for line in printed)
