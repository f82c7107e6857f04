"""Wording of cli, report."""

import numpy as np
import pandas as pd

from ...cli.test_report import headings


def test_a_detector(mixent, tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"]).to_csv("rows.csv", index=False)
    pd.DataFrame(rng.normal(size=(9, 2)) + 5, columns=["a", "b"]).to_csv("new.csv", index=False)
    assert mixent("novelty", "rows.csv", "-o", "d.mixent", "-q").exit_code == 0
    assert mixent("report", "d.mixent", "new.csv", "-o", "p.html").exit_code == 0
    assert "The model on these rows" in headings(tmp_path / "p.html")
    assert "9 of 9 rows are outliers" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_a_fusion_refuses_what_has_no_effect(fails, votes):
    assert "--weight is not used" in fails("report", "f.mixent", "--weight", "w", "-o", "p.html", status=2)
    assert "--target is only used with DATA" in fails("report", "f.mixent", "-t", "y", "-o", "p.html", status=2)


def test_what_is_refused(fails, tmp_path):
    model, data = "{stock}/model.mixent", "{stock}/data.csv"
    assert "DATA is needed" in fails("report", model, "-o", "p.html", status=2)
    assert "unknown kind of file '.txt'" in fails("report", model, data, "-o", "p.txt")
    assert "has no column 'clas'; did you mean 'class'?" in fails("report", model, data, "-t", "clas", "-o", "p.html")
    assert "--weight is only used with --target" in fails(
        "report", model, data, "--weight", "w", "-o", "p.html", status=2
    )
    assert "--sequence is not used" in fails("report", model, data, "--sequence", "id", "-o", "p.html", status=2)
    clusters = "{stock}/clusters.mixent"
    line = fails("report", clusters, data, "-t", "class", "-o", "p.html", status=2)
    assert "--target is only used with classifiers" in line
    line = fails("report", model, data, "-t", "color", "-o", "p.html")
    assert "column 'color' (--target):" in line and "is not a class of" in line and "classes are 'no', 'yes'" in line
    assert not list(tmp_path.glob("*.html"))
