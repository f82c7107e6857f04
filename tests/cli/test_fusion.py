"""`mixent calibrate` and `mixent fuse`: from labelled answers to fused ones, and what is refused on the way."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.fusion import Calibration, Fuser, load_calibrations, long_answers, save_calibrations
from mixent.fusion.facts import answer_type

LABELS = np.array(["healthy", "ill"])


def make(n, prior, seed):
    """Two sources of labels (one unsure, one silent at times), one of probabilities, two of scores."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prior).astype(int)
    frame = pd.DataFrame({"case": [f"c{i:03d}" for i in range(n)]})
    frame["A"] = LABELS[np.where(rng.random(n) < 0.9, y, 1 - y)]
    b = LABELS[np.where(rng.random(n) < 0.75, y, 1 - y)].astype(object)
    b[rng.random(n) < 0.1] = "unsure"
    b[rng.random(n) < 0.1] = None
    frame["B"] = b
    p = 1 / (1 + np.exp(-rng.normal(2 * y - 1)))
    frame["C:healthy"], frame["C:ill"] = 1 - p, p
    frame["S"], frame["R"] = rng.normal(1.5 * y), rng.normal(1.5 * y)
    return frame.assign(truth=LABELS[y])


LABELLED, NEW = make(200, 0.5, 1), make(150, 0.2, 2)


def longer(frame, names=("A", "B", "S")):
    rows = frame.melt(id_vars=["case", "truth"], value_vars=list(names), var_name="who", value_name="says")
    return rows.dropna().sort_values("case", kind="stable")


@pytest.fixture
def files(mixent):
    LABELLED.to_csv("lab.csv", index=False)
    NEW.drop(columns="truth").to_csv("new.csv", index=False)
    LABELLED[["A", "B", "truth"]].to_csv("ab.csv", index=False)
    NEW[["case", "A", "B"]].to_csv("votes.csv", index=False)
    save_calibrations({n: Calibration.from_predictions(LABELLED["truth"], LABELLED[n]) for n in "AB"}, "ab.json")
    return mixent


# --- calibrate ------------------------------------------------------------------------------------------------------


def test_calibrations_of_all_kinds(files):
    result = files(
        *("calibrate", "lab.csv", "-t", "truth", "--item", "case", "-o", "v.json", "--ratio", "R", "--bins", "5"),
        *("--copy", "B=A", "--priors", "C:healthy=0.9,ill=0.1"),
    )
    assert result.exit_code == 0, result.output
    found = load_calibrations("v.json")
    truth = LABELLED["truth"]
    more = {"calibration_set": "lab.csv"}
    soft = LABELLED[["C:healthy", "C:ill"]].to_numpy()
    expected = {
        "A": Calibration.from_predictions(truth, LABELLED["A"], **more),
        "B": Calibration.from_predictions(truth, LABELLED["B"], copy_of="A", **more),
        "C": Calibration.from_predictions(truth, soft, priors=[0.9, 0.1], **more),
        "S": Calibration.from_scores(truth, LABELLED["S"], bins=5, **more),
        "R": Calibration.from_scores(truth, LABELLED["R"], ratio=True, **more),
    }
    assert list(found) == list(expected)
    for name, one in expected.items():
        told, wanted = found[name].to_json(), one.to_json()
        for key in ("counts", "priors", "edges", "line"):  # a table's digits are not all of a number's
            if wanted[key] is not None:
                np.testing.assert_allclose(told.pop(key), wanted.pop(key), rtol=1e-9)
        assert told == wanted
    text = " ".join(result.stdout.split())
    assert "lab.csv: 200 rows of known class, 5 sources" in text and "Wrote v.json" in text
    for source in found.values():
        assert answer_type(source) in text


def test_scales_of_probabilities(files):
    for how in ("all", "C"):
        result = files(*CALIBRATE, "--scaled", how)
        assert result.exit_code == 0, result.stderr
        made = load_calibrations("v.json")
        assert (
            made["A"].scale is None and abs(made["C"].scale[0] - 2) < 0.6
        )  # its odds are the square roots of honest ones


def test_a_long_table_is_the_wide_one(files):
    longer(LABELLED).to_csv("long.csv", index=False)
    wide = ("calibrate", "lab.csv", "-t", "truth", "-o", "w.json", "--ignore", "case,R", "--ignore", "C:healthy,C:ill")
    assert files(*wide, "--name", "rows").exit_code == 0
    long = ("calibrate", "long.csv", "-t", "truth", "-o", "l.json", "--long", "case,who,says", "--name", "rows", "-q")
    result = files(*long)
    assert (result.exit_code, result.output) == (0, "")
    assert json.loads(Path("l.json").read_text()) == json.loads(Path("w.json").read_text())
    assert files(*long, "--drop", "B,S").exit_code == 0 and list(load_calibrations("l.json")) == ["A"]


def test_a_long_table_of_probabilities(files):
    rows = LABELLED.melt(id_vars=["case", "truth"], value_vars=["C:healthy", "C:ill"], value_name="p")
    rows["says"], rows["who"] = rows.pop("variable").str[2:], "C"
    rows.to_csv("long.csv", index=False)
    result = files("calibrate", "long.csv", "-t", "truth", "-o", "l.json", "--long", "case,who,says,p")
    assert result.exit_code == 0, result.output
    soft = LABELLED[["C:healthy", "C:ill"]].to_numpy()
    expected = Calibration.from_predictions(LABELLED["truth"], soft, calibration_set="long.csv")
    assert load_calibrations("l.json")["C"].to_json() == expected.to_json()


def test_sources_are_added_to_a_file(files):
    add = ("calibrate", "ab.csv", "-t", "truth", "-o", "v.json", "--add", "--name", "two")
    assert files(*add, "--drop", "B").exit_code == 0  # there is no file yet
    assert files(*add, "--ignore", "A").exit_code == 0
    result = files(*add, "--ignore", "A")
    assert "Replaced: B" in result.stdout and "Wrote v.json; kept 1 source it held" in result.stdout
    assert list(load_calibrations("v.json")) == ["A", "B"]
    assert files("calibrate", "ab.csv", "-t", "truth", "-o", "v.json", "--drop", "A").exit_code == 0
    assert list(load_calibrations("v.json")) == ["B"]


def test_numbers_as_labels_and_words_among_them(files):
    codes = pd.DataFrame({"A": [0, 1] * 20, "B": [0, 1, 1, None] * 10, "t": [0, 1] * 20})
    codes.to_csv("codes.csv", index=False)
    assert files("calibrate", "codes.csv", "-t", "t", "-o", "v.json").exit_code == 0
    assert load_calibrations("v.json")["B"].symbols == (0, 1)
    codes.astype({"A": str}).assign(A=["0", "1", "unsure", "1"] * 10).to_csv("codes.csv", index=False)
    assert files("calibrate", "codes.csv", "-t", "t", "-o", "v.json").exit_code == 0
    found = load_calibrations("v.json")
    assert found["A"].symbols == ("0", "1", "unsure") and found["A"].classes == ("0", "1")
    assert found["B"].symbols == ("0", "1")
    result = files("fuse", "codes.csv", "-c", "v.json", "-o", "f.csv", "--ignore", "t")
    assert result.exit_code == 0, result.output


def test_cells_and_contexts(files):
    frame = LABELLED[["A", "B", "truth"]].assign(**{"A@": ["day", "night"] * 100})
    frame = frame.assign(**{"B@x": np.linspace(0, 1, 200), "B@y": np.linspace(1, 0, 200)})
    frame.to_csv("cells.csv", index=False)
    result = files("calibrate", "cells.csv", "-t", "truth", "-o", "v.json", "--context", "A")
    assert result.exit_code == 0, result.output
    found = load_calibrations("v.json")
    assert found["A"].cells == ("day", "night") and found["A"].context
    assert found["B"].cells == ("x", "y") and not found["B"].context
    assert all(answer_type(source) in result.stdout for source in found.values())
    frame.drop(columns="truth").to_csv("new.csv", index=False)
    assert files("fuse", "new.csv", "-c", "v.json", "-o", "f.csv").exit_code == 0


def test_warnings_of_thin_calibrations(files):
    frame = LABELLED[["A", "truth"]][:30].copy()
    frame.loc[:3, "truth"] = None
    frame.to_csv("few.csv", index=False)
    result = files("calibrate", "few.csv", "-t", "truth", "-o", "v.json")
    assert "4 rows without a class in the target are left out" in result.stderr
    assert "'A' was calibrated on few rows of healthy (" in result.stderr


CALIBRATE = ("calibrate", "lab.csv", "-t", "truth", "-o", "v.json", "--item", "case")
BAD_CALIBRATIONS = [
    (("--bins", "1"), 2, "--bins"),
    (("--ratio", "Q"), 2, "--score Q: unknown source; the sources are 'A', 'B', 'C', 'S', 'R'"),
    (("--score", "A"), 1, "column 'A' must hold scores; it holds 'healthy'"),
    (("--ratio", "C"), 2, "--score and --ratio are not used: 'C' gives probabilities"),
    (("--scaled", "A"), 2, "--scaled is not used: 'A' gives labels"),
    (("--scaled", "Q"), 2, "--scaled Q: unknown source"),
    (("--scaled", "all", "--ignore", "C:healthy,C:ill"), 2, "--scaled is not used: no source gives probabilities"),
    (("--context", "Q"), 2, "--context Q: unknown source"),
    (("--context", "A"), 2, "--context is not used: 'A' has no cells (column 'A@')"),
    (("--bins", "4", "--ratio", "S,R"), 2, "--bins is not used: no source gives scores to be put into bins"),
    (("--copy", "B"), 2, "--copy must be NAME=ORIGINAL; got 'B'"),
    (("--copy", "Q=A"), 2, "--copy Q: unknown source"),
    (("--copy", "A=Q"), 1, "copy_of of source 'A' must be another of the sources"),
    (("--priors", "healthy"), 2, "--priors must be classes with their shares"),
    (("--priors", "healthy=1,healthy=2"), 2, "--priors must be classes with their shares"),
    (("--priors", "healthy=-1,ill=2"), 2, "--priors must be classes with their shares"),
    (("--priors", "healthy=0.5,sick=0.5"), 2, "a share for each of the classes healthy, ill; 'sick' is none of them"),
    (("--priors", "A:healthy=0.5"), 2, "'ill' has none"),
    (("--ignore", "Q"), 1, "lab.csv has no column 'Q'"),
    (("--ignore", "truth"), 1, "'truth' is the --target and cannot be given to --ignore or --item too"),
    (("--ignore", "A,B,C:healthy,C:ill,S,R"), 1, "no column is left to calibrate; a source needs one"),
    (("--ignore", "C:ill"), 1, "hold probabilities of source 'C', but there is none of class 'ill'; add 'C:ill'"),
    (("--long", "case,who"), 2, "--long must be three columns, as item,source,value, or four"),
    (("--long", "case,who,says"), 2, "--item is not used with --long"),
]


@pytest.mark.parametrize(("more", "status", "message"), BAD_CALIBRATIONS)
def test_bad_calibrations(files, fails, more, status, message):
    result = files(*CALIBRATE, *more)
    assert result.exit_code == status
    assert message in " ".join(result.stderr.replace("│", " ").split()), result.stderr
    assert not Path("v.json").exists()


def test_bad_tables_to_calibrate_from(files, fails):
    tail = ("-t", "truth", "-o", "v.json")
    assert "no such file: none.csv" in fails("calibrate", "none.csv", *tail)
    assert "has no column 'Truth'; did you mean 'truth'?" in fails(
        "calibrate", "lab.csv", "-t", "Truth", "-o", "v.json"
    )
    assert "unknown kind of file '.csv'" in fails("calibrate", "lab.csv", "-t", "truth", "-o", "v.csv")
    line = fails("calibrate", "lab.csv", *tail)
    assert "column 'case' holds 200 different values in 200 rows" in line and "--item case" in line
    LABELLED.assign(A=None).to_csv("blank.csv", index=False)
    assert "source 'A' has no answers: its column is blank" in fails("calibrate", "blank.csv", *tail, "--item", "case")
    LABELLED[["A"]].assign(truth="ill").to_csv("one.csv", index=False)
    assert "2 classes" in fails("calibrate", "one.csv", *tail) or "two classes" in fails("calibrate", "one.csv", *tail)
    LABELLED[["truth"]].assign(**{"C:healthy": "much", "C:ill": 0.5}).to_csv("text.csv", index=False)
    assert "column 'C:healthy' must hold probabilities; it holds 'much'" in fails("calibrate", "text.csv", *tail)
    LABELLED[["truth"]].assign(**{"C:healthy": 2.0, "C:ill": 0.5}).to_csv("two.csv", index=False)
    assert "source 'C': " in fails("calibrate", "two.csv", *tail)
    LABELLED[["truth", "S"]].assign(**{"S@": "x"}).to_csv("cell.csv", index=False)
    assert "source 'S': scores cannot have cells" in fails("calibrate", "cell.csv", *tail)
    Path("v.json").write_text("[]")
    assert "v.json must hold an object" in fails("calibrate", "ab.csv", *tail, "--add")


def test_bad_long_tables_to_calibrate_from(files, fails):
    rows = longer(LABELLED)
    rows.to_csv("long.csv", index=False)
    long = ("calibrate", "long.csv", "-t", "truth", "-o", "v.json", "--long")
    assert "has no column 'where'" in fails(*long, "case,where,says")
    assert "'truth' is the --target and cannot be in --long too" in files(*long, "case,who,truth").stderr
    assert "no row is of source 'Q' (--ignore)" in fails(*long, "case,who,says", "--ignore", "Q")
    assert "no source is left; ignore fewer" in fails(*long, "case,who,says", "--ignore", "A,B,S")
    rows.iloc[1, rows.columns.get_loc("truth")] = "?!"
    rows.to_csv("long.csv", index=False)
    line = fails(*long, "case,who,says")
    assert "row 1: column 'truth' (--target) must be the same in all rows of an item" in line and "'c000'" in line


# --- fuse -----------------------------------------------------------------------------------------------------------


def test_fusion_of_all_kinds_with_report_and_model(files):
    assert files("calibrate", "lab.csv", "-t", "truth", "--item", "case", "-o", "v.json", "--ratio", "R").exit_code == 0
    outputs = ("-o", "f.csv", "--report", "f.html", "--save", "m.mixent")
    result = files("fuse", "new.csv", "--calibration", "v.json", "--item", "case", *outputs)
    assert result.exit_code == 0, result.output
    expected = Fuser(load_calibrations("v.json")).fit(NEW)
    found = pd.read_csv("f.csv")
    assert list(found) == ["case", "predicted", "p(healthy)", "p(ill)", "majority", "changed"]
    assert found["case"].tolist() == NEW["case"].tolist()
    assert found["predicted"].tolist() == expected.labels_.tolist()
    np.testing.assert_allclose(found[["p(healthy)", "p(ill)"]], expected.posterior_, rtol=1e-12)
    other = found["majority"].notna() & (found["majority"] != found["predicted"])
    assert found["changed"].tolist() == other.tolist() and other.any()
    text = " ".join(result.stdout.split())
    summary = expected.summary()
    assert "new.csv: 150 items, 5 sources" in text and " ".join(summary.text(80).split()) in text
    for warning in summary.facts["warnings"]:
        assert " ".join(result.output.split()).count(warning[1:]) == 1
    page = Path("f.html").read_text()
    assert (
        "Fusion of new.csv" in page
        and "mixent fuse new.csv --calibration v.json" in page
        and re.search(r"c\d{3}( \(and \d+ alike\))?: majority ", page)
    )
    np.testing.assert_array_equal(mx.load("m.mixent").posterior_, expected.posterior_)


def test_the_saved_fusion_predicts_and_is_shown(files):
    fuse = ("fuse", "votes.csv", "-c", "ab.json", "--item", "case", "-o", "f.csv", "--save", "m.mixent", "-q")
    result = files(*fuse, "--method", "min-divergence")
    assert (result.exit_code, result.output) == (0, "")
    fuser = mx.load("m.mixent")
    result = files("predict", "m.mixent", "votes.csv", "-o", "p.csv", "--keep", "case")
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(
        pd.read_csv("p.csv"), pd.read_csv("f.csv")[["case", "predicted", "p(healthy)", "p(ill)"]]
    )
    result = files("predict", "m.mixent", "votes.csv", "-o", "p.csv", "--no-proba", "--explain", "--adjust-priors")
    assert "Class priors of this table: healthy:" in result.stdout
    found = pd.read_csv("p.csv")
    assert list(found) == ["predicted", "rival", "log_odds", "source", "source_part"]
    post = fuser.update_prior(NEW).predict_proba(NEW)
    np.testing.assert_allclose(found["log_odds"], np.abs(np.log(post[:, 0] / post[:, 1])))
    assert (found["rival"] != found["predicted"]).all() and set(found["source"]) <= {"A", "B", "priors"}
    assert files("predict", "m.mixent", "votes.csv", "-o", "p.csv", "--keep-all").exit_code == 0
    assert list(pd.read_csv("p.csv"))[:3] == ["case", "A", "B"]
    text = " ".join(files("info", "m.mixent").stdout.split())
    assert "Fuser, written by mixent" in text and " ".join(mx.load("m.mixent").summary().text(80).split()) in text
    facts = json.loads(files("info", "m.mixent", "--json").stdout)
    assert facts["class"] == "Fuser" and facts["method"] == "min-divergence"


def test_what_a_saved_fusion_does_not_do(files, fails):
    files("fuse", "votes.csv", "-c", "ab.json", "--item", "case", "-o", "f.csv", "--save", "m.mixent", "-q")
    predict = ("predict", "m.mixent", "votes.csv", "-o", "p.csv")
    for option in (("--costs", "c.csv"), ("--reject", "0.1"), ("--density",), ("--target", "A"), ("--sequence", "A")):
        result = files(*predict, *option)
        assert result.exit_code == 2
        assert f"{option[0]} is only used with models for " in " ".join(result.stderr.split())
    NEW[["case", "A"]].to_csv("a.csv", index=False)
    line = fails("predict", "m.mixent", "a.csv", "-o", "p.csv")
    assert "a.csv has no column 'B'" in line and "one without answers needs a blank column" in line
    assert "has no column 'Q'" in fails(*predict, "--keep", "Q")
    assert "m.mixent holds a fusion; fuse the new items together with the old" in fails(
        "update", "m.mixent", "votes.csv"
    )
    assert "m.mixent holds a fusion; `mixent predict --explain`" in fails("explain", "m.mixent", "votes.csv")
    assert "m.mixent holds a Fuser" in fails("impute", "m.mixent", "votes.csv", "-o", "q.csv")


def test_long_and_wide_tables_fuse_alike(files):
    longer(NEW, "AB").drop(columns="truth").to_csv("long.csv", index=False)
    assert files("fuse", "votes.csv", "-c", "ab.json", "--item", "case", "-o", "w.csv", "-q").exit_code == 0
    result = files("fuse", "long.csv", "-c", "ab.json", "--long", "case,who,says", "-o", "l.csv", "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert Path("l.csv").read_text() == Path("w.csv").read_text()
    assert files("fuse", "long.csv", "--long", "case,who,says", "-o", "l.csv", "--ignore", "B").exit_code == 0
    fuser = Fuser().fit(long_answers(longer(NEW, "A"), item="case", source="who", value="says"))
    np.testing.assert_allclose(pd.read_csv("l.csv")["p(ill)"], fuser.posterior_[:, 1], rtol=1e-9)


def test_labels_weights_and_priors(files):
    some = NEW[["A", "B"]].assign(known=NEW["truth"].where(NEW.index < 20), w=np.arange(150) % 3 + 1)
    some.to_csv("some.csv", index=False)
    more = ("--labels", "known", "--weight", "w", "--class-prior", "healthy=0.7,ill=0.3", "--confidence", "0.8")
    result = files("fuse", "some.csv", "-c", "ab.json", "-o", "f.parquet", "--method", "ml-product", *more)
    assert result.exit_code == 0, result.output
    fuser = Fuser(load_calibrations("ab.json"), method="ml-product", class_prior=[0.7, 0.3], confidence=0.8)
    fuser.fit(some, y=some["known"], sample_weight=some["w"])
    found = pd.read_parquet("f.parquet")
    np.testing.assert_array_equal(found[["p(healthy)", "p(ill)"]], fuser.posterior_)
    assert found["row"].tolist() == list(range(150)) and found["predicted"].tolist()[:20] == NEW["truth"].tolist()[:20]
    long = longer(NEW, "AB").merge(some.assign(case=NEW["case"])[["case", "known", "w"]], on="case")
    long.drop(columns="truth").to_csv("long.csv", index=False)
    result = files("fuse", "long.csv", "--long", "case,who,says", "-c", "ab.json", "-o", "l.csv", *more)
    assert result.exit_code == 0, result.output
    assert files("fuse", "some.csv", "-c", "ab.json", "-o", "u.csv", "--class-prior", "uniform").exit_code == 0


def test_guesses_without_calibrations_and_standard_output(files):
    result = files("fuse", "votes.csv", "--item", "case", "-o", "-", "--ignore", "B")
    assert result.exit_code == 0, result.output
    head, first = result.stdout.splitlines()[:2]
    assert head == "case,predicted,p(healthy),p(ill),majority,changed" and first.startswith("c000,")
    assert "dawid-skene" in result.stderr and result.stderr.count("The sources have not been calibrated") == 1
    assert len(result.stdout.splitlines()) == 151


def test_columns_of_no_source_are_named(files):
    result = files("fuse", "new.csv", "-c", "ab.json", "-o", "f.csv", "--report", "f.html")
    assert "columns of no source: 'case', 'C:healthy', 'C:ill', 'S', 'R'" in " ".join(result.stdout.split())
    assert "Columns of no source" in Path("f.html").read_text()


def test_many_classes_and_sources_are_cut_short(files):
    LABELLED[["truth"]].assign(**{f"s{j}": LABELLED["A"] for j in range(61)}).to_csv("many.csv", index=False)
    assert "... and 1 more" in files("calibrate", "many.csv", "-t", "truth", "-o", "v.json").stdout
    many = pd.DataFrame({"A": [f"k{i % 9}" for i in range(90)], "t": [f"k{i % 9}" for i in range(90)]})
    many.to_csv("many.csv", index=False)
    text = " ".join(files("calibrate", "many.csv", "-t", "t", "-o", "v.json").stdout.split())
    assert "k7: 10, ..." in text and "k8" not in text


BAD_FUSIONS = [
    (("--method", "vote"), 2, "--method must be one of auto, majority"),
    (("--confidence", "1"), 2, "--confidence must be a share"),
    (("--class-prior", "flat"), 2, "--class-prior must be classes with their shares"),
    (
        ("--class-prior", "healthy=1"),
        2,
        "--class-prior needs a share for each of the classes healthy, ill; 'ill' has none",
    ),
    (("--class-prior", "healthy=0,ill=1"), 1, "class_prior must be 'training', 'uniform' or 2 positive numbers"),
    (("--long", "case,who,says,p,q"), 2, "--long must be three columns"),
    (("--item", "A"), 1, "'A' is a source, and cannot be given to --item, --labels or --weight"),
    (("--item", "Case"), 1, "has no column 'Case'; did you mean 'case'?"),
    (("--labels", "case"), 1, "column 'case' (--labels): "),
    (("--weight", "case"), 1, "(--weight) must hold numbers"),
    (("--report", "f.txt"), 1, "unknown kind of file '.txt'"),
    (("--report", "votes.csv"), 1, "unknown kind of file '.csv'"),
    (("--save", "ab.json"), 1, "it is an input of this command"),
    (("--ignore", "A,B"), 1, "ab.json: no source is left; ignore fewer"),
    (("--calibration", "none.json"), 2, "--calibration was given 2 times"),
]


@pytest.mark.parametrize(("more", "status", "message"), BAD_FUSIONS)
def test_bad_fusions(files, more, status, message):
    result = files("fuse", "votes.csv", "-c", "ab.json", "-o", "f.csv", *more)
    assert result.exit_code == status, result.output
    assert message in " ".join(result.stderr.replace("│", " ").split()), result.stderr
    assert not Path("f.csv").exists()


def test_bad_answers(files, fails):
    tail = ("-c", "ab.json", "-o", "f.csv")
    assert "no such file: none.json; make it by `mixent calibrate`" in fails(
        "fuse", "votes.csv", "-c", "none.json", "-o", "f.csv"
    )
    NEW[["A"]].to_csv("a.csv", index=False)
    line = fails("fuse", "a.csv", *tail)
    assert "a.csv has no column 'B'" in line and "nor probabilities of this source in columns 'B:...'" in line
    assert "is left out by --ignore" in line
    assert files("fuse", "a.csv", *tail, "--ignore", "B").exit_code == 0
    NEW[["A", "B"]].replace("ill", "sick").to_csv("sick.csv", index=False)
    assert "answers 'sick' to item" in fails("fuse", "sick.csv", *tail)
    Path("bad.json").write_text("{")
    assert "bad.json is not a JSON file" in fails("fuse", "votes.csv", "-c", "bad.json", "-o", "f.csv")
    NEW.rename(columns={"case": "majority"}).to_csv("clash.csv", index=False)
    assert "the column of the items is called 'majority'" in fails("fuse", "clash.csv", *tail, "--item", "majority")
    both = {"A": load_calibrations("ab.json")["A"]}
    both["B"] = Calibration.from_counts(both["A"].counts, classes=["healthy", "ill"], copy_of="A")
    save_calibrations(both, "copy.json")
    line = fails("fuse", "votes.csv", "-c", "copy.json", "-o", "f.csv", "--ignore", "A")
    assert "'A' (--ignore) is the original of 'B'; ignore 'B' too, or neither" in line


def test_bad_guesses(files, fails):
    tail = ("-o", "f.csv")
    assert "column 'case' holds 150 different values in 150 rows" in fails("fuse", "votes.csv", *tail)
    assert "no column is left to fuse" in fails("fuse", "votes.csv", *tail, "--ignore", "case,A,B")
    assert "has no column 'Q'" in fails("fuse", "votes.csv", *tail, "--ignore", "Q")
    pd.DataFrame({"A": np.arange(300) % 60}).to_csv("many.csv", index=False)
    line = fails("fuse", "many.csv", *tail)
    assert "column 'A' holds 60 different values: without --calibration only labels can be fused" in line
    result = files("fuse", "votes.csv", *tail, "--class-prior", "healthy=1,ill=1", "--item", "case")
    assert result.exit_code == 2 and "needs --calibration to know the classes" in " ".join(result.stderr.split())
    result = files("fuse", "votes.csv", *tail, "--long", "case,A,B", "--item", "case")
    assert result.exit_code == 2 and "--item is not used with --long" in " ".join(result.stderr.split())
