"""One description, several renderings: plain text for a terminal, HTML for a page and a notebook."""

import numpy as np

from mixent.base import document as module
from mixent.base.document import Bullets, Code, Document, Figure, Heading, Number, Paragraph, Section, Table
from mixent.base.text import class_name, count, listing, one_line, percent

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def drawn():
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(2, 1))
    canvas.subplots().plot([0, 1])
    return canvas


EVERYTHING = Document(
    "A model",
    [
        Section("", [Paragraph("What it is.", lead=True)]),
        Section(
            "Parts",
            [
                Heading("Inner"),
                Bullets(["first", "second"]),
                Table("Caption", ["name", "value"], [["a", Number("1.50")], ["long name", 2]]),
                Code("x = 1\ny = 2"),
                Figure(drawn, "A line."),
            ],
        ),
    ],
    {"n": 1},
)


def test_lines_keep_to_the_width():
    text = Document("T", [Section("S", [Paragraph("word " * 60), Table("", ["a", "b"], [["x", "word " * 40]])])])
    assert max(map(len, text.text(50).splitlines())) <= 50


def test_a_long_table_is_cut_and_counted():
    lines = Table("", ["n"], [[i] for i in range(100)]).lines(80)
    assert lines[-1] == "... and 70 more" and len(lines) == 32


def test_html_holds_everything_escaped():
    html = EVERYTHING.html()
    for part in ("<h2>Parts</h2>", "<li>first</li>", "<caption>Caption</caption>", "data:image/svg+xml;base64,"):
        assert part in html
    page = Document(HOSTILE, [Section(HOSTILE, [Paragraph(HOSTILE), Bullets([HOSTILE]), Code(HOSTILE)])])
    assert "<script" not in page._repr_html_()
    assert "\x1b" not in page.text()


def test_without_matplotlib_figures_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert "<img" not in EVERYTHING.html() and "<h2>Parts</h2>" in EVERYTHING.html()


def test_small_texts():
    assert [count(n, "pass") for n in (0, 1, 1.0, 2, 2.5)] == ["0 passes", "1 pass", "1 pass", "2 passes", "2.5 passes"]
    assert count(np.int64(3), "class") == "3 classes" and count(2, "box", "boxes") == "2 boxes"
    assert (
        one_line("a\n b\x07 5\u00a0%") == "a b\\x07 5\u00a0%"
        and class_name(3) == "class 3"
        and class_name("ash") == "ash"
    )
    assert listing(list("abcd"), 2) == "a, b, and 2 more"
    assert [percent(p).replace("\u00a0", " ") for p in (0.0, 0.004, 0.5, 0.999, 1.0)] == [
        "0 %",
        "0.4 %",
        "50 %",
        "99.9 %",
        "100 %",
    ]


def test_a_notebook_gets_a_style_for_this_document_only():
    html = EVERYTHING._repr_html_()
    style = html[html.index("<style>") + len("<style>") : html.index("</style>")]
    assert html.startswith('<div class="mixent-document">') and html.endswith("</div>")
    selectors = [part for rule in style.splitlines() for part in rule.partition("{")[0].split(",")]
    assert selectors and all(part.strip().startswith(".mixent-document ") for part in selectors)
