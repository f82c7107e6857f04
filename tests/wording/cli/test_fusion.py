"""Wording of cli, fusion."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mixent.fusion import Calibration, load_calibrations, save_calibrations

from ...cli.test_fusion import CALIBRATE, GRADED, LABELLED, NEW, longer


def test_lab_csv_rows_of_known_class_sources(files):
    result = files(
        *("calibrate", "lab.csv", "-t", "truth", "--item", "case", "-o", "v.json", "--ratio", "R", "--bins", "5"),
        *("--copy", "B=A", "--priors", "C:healthy=0.9,ill=0.1"),
    )
    text = " ".join(result.stdout.split())
    assert "lab.csv: 200 rows of known class, 5 sources" in text


def test_wrote_v_json(files):
    add = ("calibrate", "ab.csv", "-t", "truth", "-o", "v.json", "--add", "--name", "two")
    assert files(*add, "--ignore", "B").exit_code == 0
    result = files(*add, "--ignore", "A")
    assert "Wrote v.json; kept 1 source it held" in result.stdout


def test_warnings_of_thin_calibrations(files):
    frame = LABELLED[["A", "truth"]][:30].copy()
    frame.loc[:3, "truth"] = None
    frame.to_csv("few.csv", index=False)
    result = files("calibrate", "few.csv", "-t", "truth", "-o", "v.json")
    assert "4 rows without a class in the target are left out" in result.stderr
    assert "'A' was calibrated on few rows of healthy (" in result.stderr


BAD_CALIBRATIONS = [
    (("--bins", "1"), 2, "--bins"),
    (("--ratio", "Q"), 2, "--score Q: unknown source; the sources are 'A', 'B', 'C', 'S', 'R'"),
    (("--score", "A"), 1, "column 'A' must hold scores; it holds 'healthy'"),
    (("--ratio", "C"), 2, "--score and --ratio are not used: 'C' gives probabilities"),
    (("--context", "Q"), 2, "--context Q: unknown source"),
    (("--context", "A"), 2, "--context is not used: 'A' has no cells (column 'A@')"),
    (("--bins", "4", "--ratio", "S,R"), 2, "--bins is not used: no source gives scores to be put into bins"),
    (("--copy", "B"), 2, "--copy must be NAME=ORIGINAL; got 'B'"),
    (("--copy", "Q=A"), 2, "--copy Q: unknown source"),
    (("--copy", "A=Q"), 1, "copy_of of source 'A' must be the name of another source"),
    (("--priors", "healthy"), 2, "--priors must be classes with their shares"),
    (("--priors", "healthy=1,healthy=2"), 2, "--priors must be classes with their shares"),
    (("--priors", "healthy=-1,ill=2"), 2, "--priors must be classes with their shares"),
    (("--priors", "healthy=0.5,sick=0.5"), 2, "a share for each of the classes healthy, ill; 'sick' is none of them"),
    (("--priors", "A:healthy=0.5"), 2, "'ill' has none"),
    (("--ignore", "Q"), 1, "lab.csv has no column 'Q'"),
    (("--ignore", "truth"), 1, "'truth' is the --target and cannot be given to --ignore or --item too"),
    (("--ignore", "A,B,C:healthy,C:ill,S,R"), 1, "no column is left to calibrate; a source needs one"),
    (("--ignore", "C:ill"), 1, "hold probabilities of source 'C', but there is none of class 'ill'; add 'C:ill'"),
    (("--ordinal", "Q"), 2, "--ordinal Q: unknown source"),
    (("--ordinal", "A"), 1, "column 'A' must hold scores; it holds 'healthy'; give its words in increasing order"),
    (("--ordinal", "S=1,2"), 1, "column 'S' holds numbers, whose order is known; give --ordinal S"),
    (("--ordinal", "A=healthy,sick"), 1, "must be among the symbols 'healthy', 'sick'; got 'ill'"),
    (("--label", "Q"), 2, "--label Q: unknown source"),
    (("--label", "C"), 2, "--label is not used: 'C' gives probabilities"),
    (("--score", "all", "--ignore", "S,R"), 2, "--score is not used: no column has numbers"),
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
    assert "v.json must contain an object" in fails("calibrate", "ab.csv", *tail, "--add")


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


def test_class_priors_of_this_table(files):
    fuse = ("fuse", "votes.csv", "-c", "ab.json", "--item", "case", "-o", "f.csv", "--save", "m.mixent", "-q")
    result = files(*fuse, "--method", "min-divergence")
    result = files("predict", "m.mixent", "votes.csv", "-o", "p.csv", "--keep", "case")
    result = files("predict", "m.mixent", "votes.csv", "-o", "p.csv", "--no-proba", "--explain", "--adjust-priors")
    assert "Class priors of this table: healthy:" in result.stdout


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


def test_warning_the_sources_have_not_been_calibrated(files):
    result = files("fuse", "votes.csv", "--item", "case", "-o", "-", "--ignore", "B")
    assert result.stderr.count("The sources are not calibrated") == 1


def test_columns_of_no_source_are_named(files):
    result = files("fuse", "new.csv", "-c", "ab.json", "-o", "f.csv", "--report", "f.html")
    assert "columns of no source: 'case', 'C:healthy', 'C:ill', 'S', 'R'" in " ".join(result.stdout.split())
    assert "Columns of no source" in Path("f.html").read_text()


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
    (("--unknown", "drop"), 2, "--unknown must be one of ignore, symbol, error"),
    (("--classes", "healthy,ill"), 2, "--classes is not used with --calibration, which names the classes"),
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


def test_folders_that_cannot_be_fused(files, fails):
    Path("days").mkdir()
    tail = ("-c", "ab.json", "-o", "out")
    assert "days: the folder has no table (a file ending in one of .csv" in fails("fuse", "days", *tail)
    NEW[["A", "B"]].to_csv("days/a.csv", index=False)
    assert "a folder of tables needs --calibration" in " ".join(files("fuse", "days", "-o", "out").stderr.split())
    assert "cannot write votes.csv: the results of a folder need a folder" in fails(
        "fuse", "days", *tail[:3], "votes.csv"
    )
    assert "cannot write days: it is the folder of the tables" in fails("fuse", "days", *tail[:3], "days")
    assert "folder 'no' does not exist; create it first" in fails("fuse", "days", *tail[:3], "no/out")
    NEW[["A", "B"]].to_csv("days/a.tsv", index=False, sep="\t")
    assert "two tables would have their results in a.csv; rename one of them" in fails("fuse", "days", *tail)
    Path("days/a.tsv").unlink()
    assert "Wrote out" in files("fuse", "days", *tail).stdout


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
    assert "got 'sick' for item" in fails("fuse", "sick.csv", *tail, "--unknown", "error")
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
    assert result.exit_code == 2 and "needs --calibration or --classes to know the classes" in " ".join(
        result.stderr.split()
    )
    result = files("fuse", "votes.csv", *tail, "--long", "case,A,B", "--item", "case")
    assert result.exit_code == 2 and "--item is not used with --long" in " ".join(result.stderr.split())
    for classes in ("a", "a,a"):
        result = files("fuse", "votes.csv", *tail, "--classes", classes)
        assert result.exit_code == 2 and "--classes must be two or more different classes" in " ".join(
            result.stderr.split()
        )
    assert "no column is left to fuse" in fails("fuse", "votes.csv", *tail, "--classes", "a,b", "--drop", "case,A,B")


# --- what is assumed, and warnings of calibrate ---------------------------------------------------------------------


def plain(text):
    return " ".join(text.split())


def test_what_was_assumed_is_said(grades):
    result = grades("calibrate", "codes.csv", *GRADED)
    text = plain(result.stdout)
    assert "Assumed: 'grade' gives ordered scores from 0 to 9 (--label, if they are labels)" in text
    assert "Assumed: 'stars' gives ordered scores from 1 to 5 (--label, if they are labels)" in text
    frame = pd.read_csv("codes.csv").drop(columns=["stars", "pain"]).assign(vote=lambda t: t["vote"].replace(0, 2))
    frame.assign(time=np.arange(200) / 7).to_csv("two.csv", index=False)
    text = plain(grades("calibrate", "two.csv", *GRADED).stdout)
    assert "Assumed: 'vote' gives labels, of which 2 is no class (--score)" in text
    assert "Assumed: 'time' gives scores (--label, if they are labels)" in text
    new = ("fuse", "new_codes.csv", "-o", "f.csv", "--item", "case", "--drop", "pain,stars")
    text = plain(grades(*new, "--drop", "vote").stdout)
    assert (
        "the classes are the answers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (--classes, if they are others; scores need" in text
    )
    assert "the classes are the answers 0, 1 (--classes, if they are others)" in plain(
        grades(*new, "--drop", "grade").stdout
    )


def test_an_identifier_is_no_source(grades, fails):
    tail = ("-t", "truth", "-o", "v.json")
    line = fails("calibrate", "words.csv", *tail)
    assert "column 'case' holds 200 different whole numbers in 200 rows, which looks like an identifier" in line
    assert "--item case" in line and "if it is a score, give --score case" in line
    assert grades("calibrate", "words.csv", *tail, "--score", "case").exit_code == 0
    frame = pd.read_csv("words.csv").assign(patient=[f"p{i // 3}" for i in range(200)])
    frame.to_csv("visits.csv", index=False)
    line = fails("calibrate", "visits.csv", *tail, "--item", "case")
    assert "column 'patient' holds 67 different values in 200 rows, which looks like a name of the items" in line
    result = grades("calibrate", "visits.csv", *tail, "--item", "patient", "--drop", "case")
    assert "133 rows of 200 repeat an item of column 'patient'; rows of one item are counted as if they were" in plain(
        result.stderr
    )


def test_a_source_that_is_wrong_more_often_than_chance(grades):
    frame = pd.read_csv("words.csv")
    frame["vote"] = np.where(frame["vote"] == "ill", "healthy", "ill")
    frame.to_csv("swapped.csv", index=False)
    text = plain(grades("calibrate", "swapped.csv", *GRADED).stderr)
    assert "%, significantly less often than by chance (50 %); check whether its answers are swapped or spelt" in text
    assert text.count("by chance") == 1 and "'vote' is right on" in text


def test_priors_that_do_not_sum_to_one(grades):
    result = grades("calibrate", "words.csv", *GRADED, "--priors", "vote:healthy=1,ill=3")
    assert "the shares of --priors sum to 4 and are divided by it" in plain(result.stderr)
    assert load_calibrations("v.json")["vote"].priors.tolist() == [0.25, 0.75]
    result = grades("calibrate", "words.csv", *GRADED, "--priors", "vote:healthy=0.333,ill=0.667")
    assert not result.stderr
    fuse = ("fuse", "new_words.csv", "-c", "v.json", "-o", "f.csv", "--item", "case")
    result = grades(*fuse, "--class-prior", "healthy=2,ill=1")
    assert "the shares of --class-prior sum to 3 and are divided by it" in plain(result.stderr)


def test_what_a_new_file_overwrites(grades):
    assert not grades("calibrate", "words.csv", *GRADED).stderr
    assert not grades("calibrate", "words.csv", *GRADED).stderr  # nothing is lost
    result = grades("calibrate", "words.csv", *GRADED, "--drop", "pain,vote")
    assert "v.json is overwritten; it held 'pain', 'vote', which --add would keep" in plain(result.stderr)
    Path("v.json").write_text("notes")
    result = grades("calibrate", "words.csv", *GRADED)
    assert "v.json is overwritten; it did not hold calibrations" in plain(result.stderr)
    frame = pd.read_csv("words.csv").replace("ill", "Ill")
    frame.to_csv("other.csv", index=False)
    result = grades("calibrate", "other.csv", *GRADED, "--add", "--drop", "grade,pain")
    assert "the classes 'Ill', 'healthy' differ from those in v.json, 'healthy', 'ill'; check the spelling" in plain(
        result.stderr
    )
    assert not grades("calibrate", "words.csv", "-t", "truth", "-o", "w.json", "--item", "case", "--add").stderr


def test_unknown_answers_are_named(files):
    frame = NEW[["case", "A", "B"]].copy()
    frame.loc[[3, 9], "A"], frame.loc[5, "A"], frame.loc[7, "B"] = "Ill ", "sick", "no idea"
    frame.to_csv("odd.csv", index=False)
    result = files("fuse", "odd.csv", "-c", "ab.json", "-o", "f.csv", "--item", "case", "--save", "m.mixent")
    text = plain(result.stderr)
    assert (
        "3 answers of 'A' ('Ill ', 'sick'), first for item 3, are not among 'healthy', 'ill' and are used as no answer "
        "('Ill ' differs from 'ill' only in case or blanks)" in text
    )
    assert (
        "1 answer of 'B' ('no idea'), first for item 7, is not among 'healthy', 'ill', 'unsure' and is used as no "
        "answer" in text
    )
    result = files("predict", "m.mixent", "odd.csv", "-o", "p.csv", "--item", "case")
    assert "3 answers of 'A' ('Ill ', 'sick')" in plain(result.stderr)


def test_an_unknown_number_may_be_a_score(grades):
    assert grades("calibrate", "codes.csv", *GRADED, "--label", "stars", "--drop", "pain,grade").exit_code == 0
    pd.read_csv("new_codes.csv").assign(stars=7).to_csv("new.csv", index=False)
    result = grades("fuse", "new.csv", "-c", "v.json", "-o", "f.csv", "--item", "case")
    assert "(if the answers are scores, calibrate with `from_scores`, or `mixent calibrate --score stars`)" in plain(
        result.stderr
    )


def test_sources_whose_probabilities_are_not_calibrated_are_printed(files):
    result = files("calibrate", "lab.csv", "-t", "truth", "-o", "v.json", "--ignore", "case")
    text = " ".join(result.stdout.split()).replace("\u00a0", " ")
    assert "Source 'C' states 74 % on average and is right on 89 %" in text
    assert "; its probabilities are rescaled." in text
