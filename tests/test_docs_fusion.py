"""The code in the pages on fusion runs as printed, and what they print is what the text quotes."""

import re

import numpy as np
import pytest

from .pages import ROOT, run

PVALUE = re.compile(r"p = [\d.e-]+")


def absent_lines(printed, page):
    """Printed lines that the page does not quote; whitespace and p-values may differ."""
    page = PVALUE.sub("p", " ".join(page.split()))
    return [line for line in printed if PVALUE.sub("p", " ".join(line.split())) not in page]


def needs(name):
    path = ROOT.parent / "shared" / "data" / name
    if not path.exists():
        pytest.skip(f"{path} is absent; the data sets are not part of mixent")


def test_the_page_on_fusion(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed, page, drawn = run("fusion.md", capsys)
    assert drawn == 4 and not absent_lines(printed[:7], page)
    assert names["fuser"].method_ == "discounted" and names["vendors"]["B"].symbols == ("healthy", "ill", "unsure")
    np.testing.assert_allclose(names["mixed_fuser"].prior_, [0.9, 0.1], atol=0.03)
    assert (names["mixed_fuser"].labels_ != names["truth"]).mean() < 0.04
    assert names["by_case"].items_.tolist() == [1, 2, 3]
    means = names["means"]
    assert means["5 copies", "auto"][1] < 0.5 * means["5 copies", "ml-product"][1]
    for case in names["cases"]:
        best = min(means[case, method][1] for method in ("ml-product", "discounted"))
        assert means[case, "auto"][1] == pytest.approx(best, abs=0.01)
    np.testing.assert_array_equal(names["helped"].labels_[:20], names["votes"].truth[:20])


def test_the_page_on_the_hospital(capsys):
    names, printed, page, drawn = run("fusion-hospital.md", capsys)
    assert drawn == 1 and not absent_lines(printed, page)
    ill, estimate = (names["hospital"].truth == "ill").mean(), names["estimate"]
    assert estimate.low[1] < ill < estimate.high[1] and names["finer"].low[1] < ill < names["finer"].high[1]
    assert names["second"].drift_["vendor 1"].p_value > 0.05 > names["first"].drift_["vendor 3"].p_value


def test_the_page_on_the_gate(capsys):
    names, printed, page, drawn = run("fusion-biometric.md", capsys)
    assert drawn == 1 and not absent_lines(printed, page.replace(" %", "%") + page)  # " %" in tables
    cost = {name: report.dcf for name, report in names["reports"].items()}
    assert cost["exact"] < cost["line, discounted"] < cost["line, ml-product"]


def test_the_page_on_judges(capsys, monkeypatch):
    needs("llmbar_judges.csv")
    monkeypatch.chdir(ROOT)
    names, printed, page, drawn = run("fusion-judges.md", capsys)
    assert drawn == 2 and not absent_lines(printed, page)
    assert names["fuser"].prior_[1] == pytest.approx(0.8, abs=0.1)


def test_the_page_on_crowds(capsys, monkeypatch):
    needs("crowd_temp.csv")
    monkeypatch.chdir(ROOT)
    names, printed, page, _ = run("fusion-crowds.md", capsys)
    assert not absent_lines(printed, page)
    assert (names["fuser"].labels_ != names["truth"]).mean() < (names["majority"].labels_ != names["truth"]).mean()
