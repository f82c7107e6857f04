"""`mixent explain`: parts of the log-odds, printed and written."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.data import read_frame

from .conftest import FEATURES


@pytest.fixture
def X(stock):
    return read_frame(stock / "data.csv")[FEATURES]


def test_explain_adds_up_and_is_sorted(mixent, stock, X):
    model = mx.load(stock / "maxent.mixent")
    text = mixent("explain", "{stock}/maxent.mixent", "{stock}/data.csv", "--row", "3", "-o", "why.json").stdout
    why = model.explain(X.iloc[[3]])
    p = model.predict_proba(X.iloc[[3]]).max()
    head = f"Row 3: {why.label[0]}, probability"
    assert head in text and f"rather than {why.rival[0]}" in text and "Wrote why.json" in text
    (case,) = json.loads(Path("why.json").read_text())
    assert (case["row"], case["class"], case["rival"], case["probability"]) == (3, why.label[0], why.rival[0], p)
    sizes = [part["part_log_odds"] for part in case["parts"]]
    assert sum(sizes) == pytest.approx(case["log_odds"]) and sizes == sorted(sizes, key=abs, reverse=True)
    parts = {part["part"]: part for part in case["parts"]}
    assert parts["average row"]["part_log_odds"] == why.baseline[0]
    assert [parts[name]["part_log_odds"] for name in why.names] == why.parts[0].tolist()
    assert parts["color"]["value"] == X["color"][3] and parts["size"]["value"] == f"{X['size'][3]:.6g}"


def test_explain_a_discriminant_by_its_terms(mixent, stock, X):
    y = read_frame(stock / "data.csv")["class"]
    model = mx.MEDClassifier(C=1.0, calibration=None).fit(X, y)
    mx.save(model, "m.mixent")
    text = " ".join(mixent("explain", "m.mixent", "{stock}/data.csv", "--row", "3").stdout.split())
    why = model.explain(X.iloc[[3]])
    assert why.method == "exact" and f"{why.log_odds[0]:+.3f}" in text and why.about.split(".")[0] in text


def test_explain_a_label_and_several_rows(mixent, stock, X):
    args = ("explain", "{stock}/maxent.mixent", "{stock}/data.csv", "--row", "0", "--row", "1", "--label", "no")
    result = mixent(*args, "-o", "why.csv")
    assert result.exit_code == 0 and result.stdout.count("no, probability") == 2
    out = pd.read_csv("why.csv", keep_default_na=False)
    assert out["row"].unique().tolist() == [0, 1] and set(out["class"]) == {"no"}
    total = out.groupby("row")["part_log_odds"].sum()
    np.testing.assert_allclose(total, out.groupby("row")["log_odds"].first())
    assert "missing" in out["value"].tolist()
    assert mixent(*args, "-q").output == ""


def test_explain_many_rows_in_a_line_each(mixent, stock):
    first = pd.read_csv(stock / "data.csv").head(4)
    first.to_csv("four.csv", index=False)
    first.head(3).to_csv("three.csv", index=False)
    args = ("explain", "{stock}/maxent.mixent")
    lines = mixent(*args, "four.csv", "-o", "why.csv").stdout.splitlines()
    assert lines[0].split()[:3] == ["row", "class", "probability"] and "more" not in "".join(lines)
    why = pd.read_csv("why.csv", keep_default_na=False)
    for n in range(4):
        mine = why[why["row"] == n]
        loud = ", ".join(f"{name} {size:+.2f}" for name, size in zip(mine["part"][:3], mine["part_log_odds"][:3]))
        assert lines[1 + n].split()[:2] == [str(n), mine["class"].iloc[0]] and lines[1 + n].rstrip().endswith(loud)
        assert mine["rival"].iloc[0] in lines[1 + n]
    assert mixent(*args, "three.csv").stdout.count("total") == 3
    for asked in (["--rows", "0-3"], ["--row", "0", "--row", "1-2", "--row", "2-3"]):
        assert mixent(*args, "four.csv", *asked).stdout.count("total") == 4


def test_explain_to_stdout_only_the_table(mixent):
    args = ("explain", "{stock}/maxent.mixent", "{stock}/data.csv")
    assert mixent(*args, "-o", "why.csv", "-q").exit_code == 0
    result = mixent(*args, "-o", "-")
    assert result.stdout == Path("why.csv").read_text() and result.stderr == "60 rows explained\n"
    assert mixent(*args, "-o", "why.json", "--row", "0", "-q").exit_code == 0
    (case,) = json.loads(Path("why.json").read_text())
    names = [*(key for key in case if key != "parts"), *case["parts"][0]]
    assert result.stdout.splitlines()[0].split(",") == names


def test_explain_a_mixture_by_component(mixent, stock, X):
    model = mx.load(stock / "model.mixent")
    args = ("explain", "{stock}/model.mixent", "{stock}/data.csv", "--row", "2")
    result = mixent(*args, "-o", "why.json", "--by", "component")
    assert "mostly of class" in result.stdout and "component 0" in result.stdout and "no (100 %)" in result.stdout
    (case,) = json.loads(Path("why.json").read_text())
    assert sum(part["part_log_odds"] for part in case["parts"]) == pytest.approx(model.explain(X.iloc[[2]]).log_odds[0])


def test_many_parts_are_pooled(capsys):
    from mixent.cli.console import Screen
    from mixent.cli.explain import Case, print_case

    print_case(Screen(False), Case(0, "a", 0.9, "b", 20.0, "column", "", [(f"[c{i}]", "", 1.0) for i in range(20)]))
    out = capsys.readouterr().out
    assert "5 others" in out and "+5.000" in out and "[c0]" in out and "[c15]" not in out
    print_case(Screen(False), Case(0, "a", 0.9, "b", 16.0, "column", "", [(f"[c{i}]", "", 1.0) for i in range(16)]))
    out = capsys.readouterr().out
    assert "other" not in out and "[c15]" in out  # one alone is named
    print_case(Screen(False), Case(0, "a", 0.9, "b", 17.0, "column", "", [(f"[c{i}]", "", 1.0) for i in range(17)]))
    assert "2 others" in capsys.readouterr().out
