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
        for fields in (told, wanted):
            if fields["reliability"] is not None:
                assert fields["reliability"].pop(0) in (None, "healthy", "ill")
        for key in (
            "counts",
            "priors",
            "edges",
            "line",
            "scale",
            "reliability",
        ):  # a table's digits are not all of a number's
            if wanted[key] is not None:
                np.testing.assert_allclose(told.pop(key), wanted.pop(key), rtol=1e-9)
        assert told == wanted
    text = " ".join(result.stdout.split())
    assert "Wrote v.json" in text
    for source in found.values():
        assert answer_type(source) in text


def test_scales_of_probabilities(files):
    result = files(*CALIBRATE)
    assert result.exit_code == 0, result.stderr
    made = load_calibrations("v.json")
    assert made["A"].scale is None and abs(made["C"].scale[0] - 2) < 0.6  # its odds are the square roots of honest ones


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
    assert "Replaced: B" in result.stdout
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


CALIBRATE = ("calibrate", "lab.csv", "-t", "truth", "-o", "v.json", "--item", "case")


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
        assert " ".join(result.output.split()).count(" ".join(warning[1:].split())) == 1
    page = Path("f.html").read_text()
    assert (
        "Fusion of new.csv" in page
        and "mixent fuse new.csv --calibration v.json" in page
        and re.search(r"c\d{3}( \(and [^)]*\))?: majority ", page)
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
    found = pd.read_csv("p.csv")
    assert list(found) == ["case", "predicted", "rival", "log_odds", "source", "source_part"]
    post = fuser.update_prior(NEW).predict_proba(NEW)
    # a posterior of "min-divergence" can be zero
    np.testing.assert_allclose(1 / (1 + np.exp(-found["log_odds"])), post.max(axis=1), rtol=1e-9)
    assert 0 < (post.max(axis=1) < 1).sum() < len(post) and (found["log_odds"] >= 0).all()
    assert (found["rival"] != found["predicted"]).all() and set(found["source"]) <= {"A", "B", "priors"}
    assert files("predict", "m.mixent", "votes.csv", "-o", "p.csv", "--keep-all").exit_code == 0
    assert list(pd.read_csv("p.csv"))[:3] == ["case", "A", "B"]
    text = " ".join(files("info", "m.mixent").stdout.split())
    assert "Fuser, written by mixent" in text and " ".join(mx.load("m.mixent").summary().text(80).split()) in text
    facts = json.loads(files("info", "m.mixent", "--json").stdout)
    assert facts["class"] == "Fuser" and facts["method"] == "min-divergence"


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
    assert "product" in result.stderr  # of a single source
    assert len(result.stdout.splitlines()) == 151


def test_many_classes_and_sources_are_cut_short(files):
    LABELLED[["truth"]].assign(**{f"s{j}": LABELLED["A"] for j in range(61)}).to_csv("many.csv", index=False)
    assert "... and 1 more" in files("calibrate", "many.csv", "-t", "truth", "-o", "v.json").stdout
    many = pd.DataFrame({"A": [f"k{i % 9}" for i in range(90)], "t": [f"k{i % 9}" for i in range(90)]})
    many.to_csv("many.csv", index=False)
    text = " ".join(files("calibrate", "many.csv", "-t", "t", "-o", "v.json").stdout.split())
    assert "k7: 10, ..." in text and "k8" not in text


# --- what is recognized ---------------------------------------------------------------------------------------------


def graded(n, prior, seed, classes=LABELS):
    """Two grades (of which the second falls with the class), words in an order, and a vote."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prior).astype(int)
    frame = pd.DataFrame({"case": np.arange(1000, 1000 + n)})
    frame["grade"] = np.clip(np.round(4.5 + 1.5 * (2 * y - 1) + 2 * rng.normal(size=n)), 0, 9).astype(int)
    frame["stars"] = np.clip(np.round(3 - 0.8 * (2 * y - 1) + rng.normal(size=n)), 1, 5).astype(int)
    pain = np.clip(np.round(1 + 0.6 * (2 * y - 1) + 0.7 * rng.normal(size=n)), 0, 2).astype(int)
    frame["pain"] = np.array(["none", "some", "severe"])[pain]
    frame["vote"] = np.asarray(classes)[np.where(rng.random(n) < 0.8, y, 1 - y)]
    return frame.assign(truth=np.asarray(classes)[y])


@pytest.fixture
def grades(mixent):
    for name, classes in (("words", LABELS), ("codes", [0, 1])):
        graded(200, 0.5, 1, classes).to_csv(f"{name}.csv", index=False)
        graded(150, 0.2, 2, classes).drop(columns="truth").to_csv(f"new_{name}.csv", index=False)
    return mixent


GRADED = ("-t", "truth", "-o", "v.json", "--item", "case")


@pytest.mark.parametrize("name", ["words", "codes"])
def test_whole_numbers_that_are_no_classes_are_ordered_scores(grades, name):
    result = grades("calibrate", f"{name}.csv", *GRADED, "--ordinal", "pain=none,some,severe")
    assert result.exit_code == 0, result.output
    made, frame = load_calibrations("v.json"), pd.read_csv(f"{name}.csv")
    more = {"calibration_set": f"{name}.csv", "ordinal": True}
    for column in ("grade", "stars"):
        assert made[column] == Calibration.from_scores(frame["truth"], frame[column], **more)
    words = ["none", "some", "severe"]
    assert made["pain"] == Calibration.from_predictions(frame["truth"], frame["pain"], words, **more)
    assert not made["vote"].ordinal and made["vote"].symbols == made["vote"].classes
    assert "'grade'" in result.stdout and "'vote'" not in result.stdout
    result = grades("fuse", f"new_{name}.csv", "-c", "v.json", "-o", "f.csv", "--item", "case")
    assert result.exit_code == 0, result.output
    expected = Fuser(made).fit(pd.read_csv(f"new_{name}.csv"))
    np.testing.assert_allclose(pd.read_csv("f.csv").iloc[:, 2:4], expected.posterior_, rtol=1e-9)


def test_a_long_table_of_grades_is_the_wide_one(grades):
    frame = pd.read_csv("codes.csv")
    rows = frame.melt(id_vars=["case", "truth"], value_vars=["grade", "stars", "pain", "vote"], var_name="who")
    rows.sort_values("case", kind="stable").to_csv("long.csv", index=False)
    result = grades("calibrate", "long.csv", "-t", "truth", "-o", "l.json", "--long", "case,who,value", "--name", "x")
    assert result.exit_code == 0, result.output
    assert grades("calibrate", "codes.csv", *GRADED, "--name", "x").exit_code == 0
    wide, long = load_calibrations("v.json"), load_calibrations("l.json")
    for name in ("grade", "stars"):  # a 1 is a grade, in a column in which others write words, too
        assert long[name].ordinal and long[name].symbols == wide[name].symbols
        np.testing.assert_array_equal(long[name].counts, wide[name].counts)
    assert long["vote"].symbols == ("0", "1")


def test_kinds_that_are_given(grades):
    def kinds(*more, table="codes.csv"):
        result = grades("calibrate", table, *GRADED, "--drop", "pain", *more)
        assert result.exit_code == 0, result.output
        return {name: answer_type(made) for name, made in load_calibrations("v.json").items()}, result

    found, result = kinds("--label", "grade,stars")
    assert found == dict.fromkeys(("grade", "stars", "vote"), "labels") and not result.stderr
    found, _ = kinds("--score", "all")
    assert found["stars"] == "ordered scores (5 values)" and found["vote"] == "labels"  # two values have no order
    assert "bins" in kinds("--score", "grade", "--bins", "4")[0]["grade"]
    assert kinds("--ratio", "grade")[0]["grade"] == "scores (logistic)"
    LABELLED.to_csv("lab.csv", index=False)
    result = grades("calibrate", "lab.csv", "-t", "truth", "-o", "w.json", "--item", "case", "--ordinal", "S")
    assert result.exit_code == 0, result.output
    made = load_calibrations("w.json")
    assert made["S"].ordinal and len(made["S"].symbols) == 10 and not made["R"].ordinal


def test_sources_with_rows_of_their_own_share_none(grades):
    frame = pd.read_csv("words.csv").astype(object)
    frame.loc[:99, ["grade", "stars"]] = None
    frame.loc[90:, "vote"] = None
    frame.to_csv("own.csv", index=False)
    assert grades("calibrate", "own.csv", *GRADED, "--drop", "pain").exit_code == 0
    made = load_calibrations("v.json")
    assert made["grade"].calibration_set == made["stars"].calibration_set != made["vote"].calibration_set
    assert grades("calibrate", "own.csv", *GRADED).exit_code == 0  # everyone shares most rows with pain
    assert {one.calibration_set for one in load_calibrations("v.json").values()} == {"own.csv"}


def test_classes_without_calibrations(grades):
    frame = pd.read_csv("new_words.csv")[["case", "vote"]].assign(other=lambda t: t["vote"].where(t.index % 5 > 0))
    frame.loc[3, "other"] = "unsure"
    frame.to_csv("votes.csv", index=False)
    fuse = ("fuse", "votes.csv", "-o", "f.csv", "--item", "case", "--classes", "healthy,ill")
    result = grades(*fuse, "--class-prior", "healthy=0.9,ill=0.1", "--save", "m.mixent")
    assert result.exit_code == 0 and "'unsure'" in result.stderr, result.output
    fuser = mx.load("m.mixent")
    assert fuser.classes_.tolist() == ["healthy", "ill"] and fuser.class_prior == {"healthy": 0.9, "ill": 0.1}
    result = grades(*fuse, "--unknown", "symbol", "--save", "m.mixent")
    assert result.exit_code == 0 and "'unsure'" not in result.stderr, result.output
    assert mx.load("m.mixent").confusion_["other"].shape == (2, 3)
    assert grades(*fuse, "--unknown", "error").exit_code == 1
    long = frame.melt(id_vars="case", var_name="who").dropna()
    long.to_csv("long.csv", index=False)
    tail = ("--long", "case,who,value", "--classes", "healthy,ill", "--unknown", "symbol")
    assert grades("fuse", "long.csv", "-o", "l.csv", *tail).exit_code == 0
    wide = pd.read_csv("f.csv") if grades(*fuse, "--unknown", "symbol").exit_code == 0 else None
    pd.testing.assert_frame_equal(pd.read_csv("l.csv"), wide)
    codes = pd.DataFrame({"a": [0, 1, None] * 20, "b": [1, 0, 1] * 20})
    codes.to_csv("codes.csv", index=False)
    result = grades("fuse", "codes.csv", "-o", "f.csv", "--classes", "0,1")
    assert result.exit_code == 0 and "not among" not in result.stderr, result.output


def test_the_items_of_a_prediction(files):
    fuse = ("fuse", "votes.csv", "-c", "ab.json", "--item", "case", "-o", "f.csv", "--save", "m.mixent", "-q")
    assert files(*fuse).exit_code == 0
    table = pd.read_csv("votes.csv").assign(case=["007", "7"] * 75, more=range(150))
    table.to_csv("new.csv", index=False)
    result = files("predict", "m.mixent", "new.csv", "-o", "p.csv", "--item", "case", "--keep", "more")
    assert result.exit_code == 0, result.output
    found = pd.read_csv("p.csv", dtype={"case": str})
    assert list(found)[:3] == ["case", "more", "predicted"] and found["case"].tolist() == table["case"].tolist()
    assert files("predict", "m.mixent", "new.csv", "-o", "p.csv", "--item", "case").exit_code == 0
    assert list(pd.read_csv("p.csv"))[:2] == ["case", "predicted"]
    assert files("predict", "m.mixent", "new.csv", "-o", "p.csv", "--item", "A").exit_code == 1


# --- a folder of tables -----------------------------------------------------------------------------------------------


@pytest.fixture
def days(files):
    """Three tables with some labels and weights, and the same items as one table."""
    whole = NEW.assign(known=NEW["truth"].where(np.arange(150) % 10 == 0), w=1 + np.arange(150) % 2)
    Path("days").mkdir()
    for name, rows in (("1.csv", slice(0, 40)), ("2.csv", slice(40, 110)), ("3.csv", slice(110, 150))):
        whole.iloc[rows].drop(columns="truth").to_csv(f"days/{name}", index=False)
    Path("days/notes.md").write_text("no table")
    whole.drop(columns="truth").to_csv("whole.csv", index=False)
    assert files("calibrate", "lab.csv", "-t", "truth", "--item", "case", "-o", "all.json").exit_code == 0
    return files


FOLDER = ("-c", "all.json", "--item", "case", "--labels", "known", "--weight", "w")


def test_a_folder_is_fused_as_one_table(days):
    one = days("fuse", "whole.csv", *FOLDER, "-o", "whole_out.csv")
    folder = days("fuse", "days", *FOLDER, "-o", "out", "--save", "f.mixent", "--report", "page.html")
    assert one.exit_code == folder.exit_code == 0, folder.output
    assert sorted(path.name for path in Path("out").iterdir()) == ["1.csv", "2.csv", "3.csv"]
    parts = pd.concat([pd.read_csv(f"out/{day}.csv") for day in (1, 2, 3)], ignore_index=True)
    pd.testing.assert_frame_equal(parts, pd.read_csv("whole_out.csv"), rtol=1e-6)
    assert mx.load("f.mixent").n_items_ == 150 and Path("page.html").exists()


def test_parquet_files_have_parquet_results(days):
    for day in (1, 2, 3):
        pd.read_csv(f"days/{day}.csv").to_parquet(f"days/{day}.parquet")
        Path(f"days/{day}.csv").unlink()
    assert days("fuse", "days", *FOLDER, "-o", "out").exit_code == 0
    assert len(pd.read_parquet("out/2.parquet")) == 70


def test_folders_that_cannot_be_fused_are_refused(days):
    Path("empty").mkdir()
    Path("twice").mkdir()
    for ending in ("csv", "tsv"):
        Path(f"twice/a.{ending}").write_text("A\n")
    for arguments in (
        ("days", "-o", "out"),
        ("empty", *FOLDER, "-o", "out"),
        ("twice", *FOLDER, "-o", "out"),
        ("days", *FOLDER, "-o", "whole.csv"),
        ("days", *FOLDER, "-o", "days"),
        ("days", *FOLDER, "-o", "no/out"),
    ):
        assert days("fuse", *arguments).exit_code not in (0, 3)
        assert not Path("out").exists()
