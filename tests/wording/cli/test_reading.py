"""Wording of cli, reading."""

from pathlib import Path

import pytest

from ...cli.test_reading import FORMATS, QUICK, people, write


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("german", "Read d.csv as semicolon-separated, decimal comma, Latin-1 (cp1252)"),
        ("excel", "Read d.csv as tab-separated, UTF-16"),
        ("pipes", "Read d.csv as pipe-separated"),
    ],
)
def test_how_a_file_is_written(mixent, stock, form, line):
    write(stock, "d.csv", FORMATS[form])
    fit = ("fit", "d.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", *QUICK)
    assert mixent(*fit).stdout.splitlines()[0] == line
    Path("d.tsv").write_text("size\tclass\n1\tno\n2\tyes\n")
    assert "Read" not in mixent("fit", "d.tsv", "-t", "class", "-o", "m.mixent", *QUICK).stdout


def test_markers_of_missing_labels(mixent):
    """A class that is called None would vanish without a word."""
    rows = "".join(f"{k},{('p', 'q', 'None', 'NA', '')[k % 5]}\n" for k in range(40))
    Path("d.csv").write_text("x,y\n" + rows)
    fit = ("fit", "d.csv", "-t", "y", "-o", "m.mixent", *QUICK)
    line = "Warning: 'NA' and 'None' in 'y' is read as no label; if it is a class, write it otherwise"
    assert line in mixent(*fit).stderr.splitlines()
    Path("d.csv").write_text("x,y\n" + rows.replace("None", "").replace("NA", "?"))
    assert "no label; if" not in mixent(*fit).stderr


def test_strict(fails):
    Path("d.csv").write_text(",x,y\n" + "".join(f"{k},{k},{'pq'[k % 2]}\n" for k in range(20)))
    line = fails("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--strict")
    assert line == "Error: 1 note above is an error because of --strict; correct the table, or omit --strict"


def test_strict_counts_the_notes_and_repeats_none(fails, mixent):
    """Other warnings come first; with --quiet the notes are printed, too: they are errors."""
    Path("d.csv").write_text("id,pay,same,y\n" + "".join(f"{k},${k}.5,1,{'pq'[k % 2]}\n" for k in range(20)))
    fit = ("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--strict")
    number, constant = "text is read as numbers: column 'pay'", "constant; kept, but can be dropped: column 'same'"
    last = "Error: 2 notes above are errors because of --strict; correct the table, or omit --strict"
    assert fails(*fit) == last
    for quiet in ((), ("-q",)):
        *others, first, second, end = mixent(*fit, *quiet).stderr.splitlines()
        assert number in first and constant in second and end == last
        assert len(others) == (not quiet)


def test_extra_columns_of_new_rows(fails, mixent):
    people().to_csv("d.csv", index=False)
    mixent("fit", "d.csv", "-t", "kind", "-o", "m.mixent", "-q", *QUICK)
    people().drop(columns="age").assign(more=0.5, other="c").to_csv("new.csv", index=False)
    predict = ("predict", "m.mixent", "new.csv", "-o", "o.csv")
    lines = mixent(*predict).stderr.splitlines()
    lacks = "Warning: X lacks the column 'age' of fit, so that all its values are missing"
    extra = "Warning: X has the columns 'more', 'other' that fit did not have; ignored"
    assert lines == [lacks, extra]
    assert fails(*predict, "--strict").startswith("Error: 2 notes above are errors")


def test_columns_with_almost_the_name_of_one_that_is_not_there(mixent, fails):
    people().to_csv("d.csv", index=False)
    mixent("fit", "d.csv", "-t", "kind", "-o", "m.mixent", "-q", *QUICK)
    people().rename(columns={"town": "twon"}).to_csv("new.csv", index=False)
    lines = mixent("predict", "m.mixent", "new.csv", "-o", "o.csv").stderr.splitlines()
    assert "Warning: new.csv has no column 'town', but 'twon'; if that is the same, rename it" in lines
    people()[["name", "town"]].to_csv("new.csv", index=False)
    assert "new.csv has no columns 'age', 'pay', 'born'" in fails("predict", "m.mixent", "new.csv", "-o", "o.csv")


def test_how_to_drop_a_row_number_and_predict_a_number(mixent):
    Path("d.csv").write_text("the row,x,y\n" + "".join(f"{k},{k % 7}.5,{'pq'[k // 2 % 2]}\n" for k in range(40)))
    result = mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", *QUICK)
    line = "Warning: column 'the row' looks like a row number; drop it with --ignore 'the row'"
    assert line in result.stderr.splitlines() and "Hint" not in result.stdout
    result = mixent("fit", "d.csv", "-t", "the row", "-o", "m.mixent", *QUICK)
    assert "to predict a number use `mixent fit --model joint`, else cut it" in " ".join(result.stdout.split())
