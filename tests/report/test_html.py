import base64

import pytest
from matplotlib.figure import Figure as Canvas

from mixent.base.text import readable
from mixent.report import Bullets, Code, Figure, Number, Paragraph, Section, Table, write_report
from mixent.report.html import section_ids

ATTACK = "<script>alert(1)</script>\"'&$title"


def figure(label="x"):
    canvas = Canvas(figsize=(2, 1))
    canvas.subplots().set_xlabel(label)
    return canvas


def sections(text="plain"):
    return [
        Section(text, [Paragraph(text), Bullets([text, text]), Code(text)]),
        Section("Second", [Table(text, [text, "n"], [[text, 1.5], ["b", Number("2 ± 1", best=True)]])]),
        Section("Third", [Figure(figure(text.replace("$", "")), text, text)]),
    ]


def test_everything_is_escaped(tmp_path, read):
    page = read(write_report(tmp_path / "r.html", ATTACK, sections(ATTACK), note=ATTACK))
    # title, h1, note, contents, heading, paragraph, 2 bullets, code, caption, header, cell, figure caption
    assert sum(text == ATTACK for text in page.text) == 13
    assert ("img", "alt", ATTACK) in page.attributes


def test_svg_holds_no_script_and_no_date(tmp_path, read):
    page = read(write_report(tmp_path / "r.html", "t", sections("<script>alert(1)</script>")))
    (data,) = [value for tag, name, value in page.attributes if name == "src"]
    svg = base64.b64decode(data.split(",")[1]).decode()
    assert "<script" not in svg and "&lt;script" in svg
    assert "date>" not in svg


def test_same_input_same_bytes(tmp_path):
    one = write_report(tmp_path / "1.html", "t", sections()).read_bytes()
    assert one == write_report(tmp_path / "2.html", "t", sections()).read_bytes()


def test_numbers_stand_right_and_the_best_is_marked(tmp_path):
    rows = [["a", 0.123456, 7, None], ["b", Number("1 ± 2", best=True), 1200, 3]]
    text = write_report(tmp_path / "r.html", "t", [Section("s", [Table("c", list("wxyz"), rows)])]).read_text()
    assert (
        '<th scope="row">a</th><td class="number">0.1235</td><td class="number">7</td><td class="number">–</td>' in text
    )
    assert '<td class="number best"><strong>1 ± 2</strong></td><td class="number">1200</td>' in text
    assert '<th scope="col">w</th><th scope="col" class="number">x</th>' in text
    with pytest.raises(ValueError, match="1 cells"):
        write_report(tmp_path / "r.html", "t", [Section("s", [Table("c", ["a", "b"], [["x"]])])])


def test_numbers_have_no_exponent_below_a_million():
    values = (20850.4, 999999.4, 2e6, 0.12345, -31234.0)
    assert [readable(v) for v in values] == ["20850", "999999", "2e+06", "0.1235", "-31234"]
    assert readable(1234.0, 3) == "1234"


def test_ids_are_fixed_unique_and_plain():
    assert section_ids(["A b", "A  b!", "Größe", "漢字", "漢", "a-b-2"]) == [
        "a-b",
        "a-b-2",
        "groe",
        "section",
        "section-2",
        "a-b-2-2",
    ]


def test_page_has_structure(tmp_path, read):
    page = read(write_report(tmp_path / "r.html", "t", sections()))
    assert page.tags.count("h1") == 1 and page.tags.count("h2") == 3
    assert {"main", "nav", "header", "section", "caption", "figcaption", "thead", "tbody"} <= set(page.tags)
    assert ("html", "lang", "en") in page.attributes
    text = (tmp_path / "r.html").read_text()
    assert "prefers-color-scheme: dark" in text and "@media print" in text and "width=device-width" in text
    assert "nav" not in read(write_report(tmp_path / "r.html", "t", sections()[:1])).tags


def test_foreign_letters_draw_without_warning(tmp_path, read):
    read(write_report(tmp_path / "r.html", "漢字", [Section("漢字", [Figure(figure("漢字"), "漢字")])]))


def test_sections_without_visible_content_are_left_out(tmp_path, read, without_matplotlib):
    parts = [Section("Empty", []), Section("Drawn", [Figure(figure, "x")]), Section("Text", [Paragraph("p")])]
    assert read(write_report(tmp_path / "r.html", "t", parts)).sections == ["text"]
