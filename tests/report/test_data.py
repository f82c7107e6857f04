"""What stands in a table, on a page."""

import numpy as np
import pandas as pd
import pytest

from mixent.base.document import Bar, Spark
from mixent.report import Heading, Paragraph, Section, Table, write_report
from mixent.report.data import classes_table, columns_section, columns_table, fingerprint, problems_section, read_table

FRAME = pd.DataFrame(
    {
        "size": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0],
        "<color>": ["red", "red", None, "blue", "green", "white"],
        "always": [3.0] * 6,
        "never": [np.nan] * 6,
    }
)


def test_columns_are_told_by_kind():
    text, table = columns_section(FRAME)
    assert text.text.endswith(": never.")
    cells = [[getattr(cell, "text", cell) for cell in row] for row in table.rows]
    assert [row[:4] for row in cells] == [
        ["size", "number", "1 to 6; 3.6 ± 1.85", "16.7"],
        ["<color>", "category", "red 40 %, blue 20 %, green 20 % and 1 more", "16.7"],
        ["always", "number", "always 3", "0.0"],
    ]
    assert isinstance(cells[0][4], Spark) and cells[0][4].shares == pytest.approx([0.2] * 5)  # as many as values
    assert cells[1][4].shares == pytest.approx([0.4, 0.2, 0.2, 0.2]) and cells[2][4] == ""
    assert "&lt;color&gt;" in table.html() and "<color>" not in table.html()


def test_many_columns_and_arrays():
    table = columns_table(read_table(np.random.default_rng(0).normal(size=(50, 60))))
    assert len(table.rows) == 40 and "the first 40 of 60" in table.caption
    assert table.rows[3][0] == "column 3" and len(table.rows[3][4].shares) == 16
    assert sum(table.rows[3][4].shares) == pytest.approx(1)
    assert columns_section(object()) == []


def test_problems_are_found_or_given():
    assert problems_section(FRAME[["size"]], [])[0].text
    told = problems_section(FRAME, None, ["as noted"])[0].items
    assert any("always" in text for text in told) and told[-1] == "As noted."
    noted = [text[0].upper() + text[1:] + "." for text in read_table(FRAME).notes]
    assert noted and problems_section(FRAME, ["one", "one", "two."])[0].items == ["One.", "Two.", *noted]


def test_classes_are_counted():
    table = classes_table(["b", "a", "b", None])
    assert [row[:2] for row in table.rows] == [["b", 2], ["a", 1]] and table.rows[0][2].text == "66.7"
    many = classes_table([str(i) for i in range(40)])
    assert len(many.rows) == 30 and "the 30 largest of 40" in many.caption


def test_a_fingerprint_changes_with_anything_that_matters(tmp_path):
    one = fingerprint(FRAME, list("aabbcc"))
    assert one == fingerprint(FRAME.copy(), np.array(list("aabbcc"))) and len(one) == 16
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert one == fingerprint(pd.read_csv(tmp_path / "t.csv"), list("aabbcc"))
    other = FRAME.copy()
    other.loc[0, "size"] = np.nextafter(1.0, 2.0)
    changed = [other, FRAME.rename(columns={"size": "s"}), FRAME[FRAME.columns[::-1]], FRAME.iloc[::-1], FRAME[1:]]
    prints = [
        one,
        fingerprint(FRAME),
        fingerprint(FRAME, list("aabbca")),
        *(fingerprint(f, list("aabbcc")) for f in changed),
    ]
    assert len(set(prints)) == len(prints)
    assert fingerprint(np.array([[-0.0, 1]])) == fingerprint(np.array([[0, 1]]))


def test_small_pictures_in_cells():
    spark = Spark([0.0, 0.5, 1.0], '<"alt">')
    assert spark.html().count("<rect") == 3  # two that are not empty, and the line
    assert 'aria-label="&lt;&quot;alt&quot;&gt;"' in spark.html() and 'height="22.0"' in spark.html()
    assert Spark([], "none").html().count("<rect") == 1
    right, left, none = Bar(2.0, 4.0).html(), Bar(-4.0, 4.0).html(), Bar(0.0, 0.0).html()
    assert 'class="more" x="50.0"' in right and 'width="24.0"' in right
    assert 'class="less" x="2.0"' in left and 'width="48.0"' in left and 'aria-label="-4.00"' in left
    assert 'width="0.0"' in none


def test_leads_headings_and_long_cells(tmp_path):
    parts = [
        Paragraph("<first>", lead=True),
        Heading("<one>"),
        Table("c", ["a", "b"], [["x" * 12, "y" * 40], ["z", ""]]),
    ]
    text = write_report(tmp_path / "r.html", "t", [Section("s", parts)]).read_text()
    assert '<p class="lead">&lt;first&gt;</p>' in text and "<h3>&lt;one&gt;</h3>" in text
    assert '<th scope="row" class="name">' in text and '<td class="long">' in text and "<td></td>" in text


def test_listed_categories_are_found_beside_empty_columns():
    frame = pd.DataFrame({"empty": [None] * 4, "code": [1, 2, 1, 2], "x": [0.5, 1.5, 2.5, 3.5]})
    table = read_table(frame, ["empty", "code"])
    assert [column.name for column in table.schema.columns] == ["code", "x"] and list(table.schema.categorical) == [0]
