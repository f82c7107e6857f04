"""What is known of a model or a comparison, as data: paragraphs, tables, bullets and figures in sections.

A model's `describe` returns a `Document`; the terminal, the page and the notebook render the same one. Every block has
two renderings: `html()` (all text escaped) and `lines(width)` (plain text, no control characters).
"""

from __future__ import annotations

import base64
import io
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from numbers import Real
from typing import Any

from mixent.base.text import one_line, readable
from mixent.show import Short

SHORT = 14  # letters of a cell that stay on one line
NAME = 9  # letters of the head of a row, beyond which it keeps some width
NOTEBOOK_STYLE = (  # for one document only: colors of the notebook's theme, tables to the left
    "h1 { font-size: 1.3em; margin: .4em 0; }",
    "h2 { font-size: 1.1em; margin: 1em 0 .3em; }",
    "h3 { font-size: 1em; margin: .8em 0 .2em; }",
    "p, .mixent-document ul { margin: .3em 0; max-width: 48em; }",
    ".lead { border-left: 4px solid #0072b2; padding-left: .6em; }",
    "table { border-collapse: collapse; margin: .4em 0; font-variant-numeric: tabular-nums; }",
    "caption { text-align: left; opacity: .75; padding-bottom: .3em; caption-side: top; }",
    "th, .mixent-document td { text-align: left; padding: .15em .8em .15em 0; vertical-align: baseline; "
    "border-bottom: 1px solid rgba(128, 128, 128, .3); background: none; }",
    "tbody th { font-weight: 500; }",
    ".number { text-align: right; }",
    ".best { font-weight: bold; }",
    "svg { fill: #808080; }",
    "svg .more { fill: #0072b2; }",
    "svg .less { fill: #d55e00; }",
    "figure { margin: .6em 0; }",
    "img { max-width: 100%; background: #ffffff; }",
    "figcaption { opacity: .75; max-width: 48em; }",
)


@dataclass(frozen=True)
class Number:
    """A number already written as text (such as a mean and its deviation), right-aligned; `best` sets it off."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Spark:
    """A histogram as high as a line of text; `alt` describes what it shows."""

    shares: Sequence[float]
    alt: str

    def html(self) -> str:
        top, wide = max([*self.shares, 0.0]) or 1.0, 96 / max(len(self.shares), 1)
        bars = "".join(
            f'<rect x="{wide * i:.1f}" y="{22 - 22 * s / top:.1f}" width="{max(wide - 1, 1):.1f}" '
            f'height="{22 * s / top:.1f}"/>'
            for i, s in enumerate(self.shares)
            if s > 0
        )
        base = '<rect x="0" y="22.5" width="96" height="0.7"/>'
        return f"{_svg('spark', 96, 24, self.alt)}{bars}{base}</svg>"


@dataclass(frozen=True)
class Bar:
    """A signed number as a bar from the middle, `most` filling its half."""

    value: float
    most: float

    def html(self) -> str:
        share = min(abs(self.value) / self.most, 1.0) if self.most > 0 else 0.0
        x, name = (50.0, "more") if self.value >= 0 else (50.0 - 48 * share, "less")
        bar = f'<rect class="{name}" x="{x:.1f}" y="2" width="{48 * share:.1f}" height="10"/>'
        return f'{_svg("bar", 100, 14, f"{self.value:+.2f}")}{bar}<rect x="49.6" y="0" width="0.8" height="14"/></svg>'


def _svg(name: str, width: int, height: int, alt: str) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg class="{name}" role="img" aria-label="{escape(alt)}" {size}>'


Cell = str | Real | Number | Spark | Bar | None


@dataclass(frozen=True)
class Paragraph:
    """Text; `lead` sets off what a reader in a hurry should see."""

    text: str
    lead: bool = False

    def html(self) -> str:
        opening = '<p class="lead">' if self.lead else "<p>"
        return f"{opening}{escape(self.text)}</p>"

    def lines(self, width: int) -> list[str]:
        return _wrapped(self.text, width)


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str

    def html(self) -> str:
        return f"<h3>{escape(self.text)}</h3>"

    def lines(self, width: int) -> list[str]:
        return _wrapped(self.text, width)


@dataclass(frozen=True)
class Bullets:
    """A list of short texts."""

    items: Sequence[str]

    def html(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in self.items) + "</ul>"

    def lines(self, width: int) -> list[str]:
        return [line for item in self.items for line in _wrapped(item, width, first="- ", rest="  ")]


@dataclass(frozen=True)
class Code:
    """A command or other text, kept as it is."""

    text: str

    def html(self) -> str:
        return f"<pre><code>{escape(self.text)}</code></pre>"

    def lines(self, width: int) -> list[str]:
        return [f"  {one_line(line)}" for line in self.text.splitlines()]


@dataclass(frozen=True)
class Table:
    """A table; columns of numbers are right-aligned, the first column of text heads its row."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"table {self.caption!r}: a row has {len(row)} cells for {len(self.header)} columns")

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [bool(self.rows) and all(_is_number(row[j]) for row in self.rows) for j in range(len(self.header))]

    def html(self) -> str:
        numeric = self.numeric
        head = "".join(f'<th scope="col"{_class(number)}>{escape(h)}</th>' for h, number in zip(self.header, numeric))
        body = "".join("<tr>" + "".join(map(_cell, row, range(len(row)), numeric)) + "</tr>\n" for row in self.rows)
        return (
            f'<div class="wide"><table><caption>{escape(self.caption)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )

    def lines(self, width: int, most: int = 30) -> list[str]:
        """Aligned columns, the last one wrapped to the width; rows beyond `most` are counted."""
        rows = [[one_line(_text(cell)) for cell in row] for row in (self.header, *self.rows[:most])]
        wide = [max(len(row[j]) for row in rows) for j in range(len(self.header))]
        numeric = self.numeric
        left = sum(wide[:-1]) + 2 * (len(wide) - 1)
        wide[-1] = min(wide[-1], max(width - left, 12))
        out = _wrapped(self.caption, width) if self.caption else []
        for row in rows:
            cells = [cell.rjust(w) if number else cell.ljust(w) for cell, w, number in zip(row[:-1], wide, numeric)]
            last = textwrap.wrap(row[-1], wide[-1]) or [""]
            last[0] = last[0].rjust(wide[-1]) if numeric[-1] else last[0]
            out.append("  ".join([*cells, last[0]]).rstrip())
            out += [" " * left + line for line in last[1:]]
        more = len(self.rows) - most
        return [*out, f"... and {more} more"] if more > 0 else out


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure as an SVG picture, with the text a screen reader reads and a caption.

    A function that draws it is called when the page is written: a description costs no drawing, and a terminal or a
    machine without matplotlib leaves the picture out.
    """

    figure: Any  # matplotlib figure, or a function without arguments that returns one
    alt: str
    caption: str = ""

    def html(self) -> str:
        if not can_draw():
            return ""
        drawn = self.figure() if callable(self.figure) else self.figure
        data, width = svg(drawn), float(drawn.get_size_inches()[0]) * 96
        picture = f'<img style="width:{width:.0f}px" alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}">'
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f"<figure>{picture}{caption}</figure>"

    def lines(self, width: int) -> list[str]:
        return []


Content = Paragraph | Heading | Bullets | Code | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading and the blocks under it."""

    title: str
    content: Sequence[Content]


@dataclass(frozen=True, repr=False)
class Document(Short):
    """The description of one model or result: sections, and the same facts as plain values for `--json`."""

    title: str
    sections: Sequence[Section]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def _brief(self) -> str:
        titles = ", ".join(one_line(section.title) for section in self.sections if section.title)
        return repr(one_line(self.title)) + (f", sections: {titles}" if titles else "")

    def text(self, width: int = 100) -> str:
        """Plain text for a terminal."""
        blocks = [[one_line(self.title)]]
        for section in self.sections:
            body = [lines for block in section.content if (lines := block.lines(width))]
            if body:
                blocks += [
                    [one_line(section.title), "-" * len(one_line(section.title))] if section.title else [],
                    *body,
                ]
        return "\n\n".join("\n".join(lines) for lines in blocks if lines)

    def __str__(self) -> str:
        return self.text()

    def html(self) -> str:
        """The sections as HTML, without a page around them."""
        return "\n".join(
            (f"<h2>{escape(section.title)}</h2>\n" if section.title else "")
            + "\n".join(block.html() for block in section.content)
            for section in self.sections
        )

    def _repr_html_(self) -> str:
        style = "\n".join(f".mixent-document {rule}" for rule in NOTEBOOK_STYLE)
        head = f"<style>{style}</style>\n<h1>{escape(self.title)}</h1>"
        return f'<div class="mixent-document">{head}\n{self.html()}</div>'


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def canvas(width: float, height: float) -> Any:
    """An empty matplotlib figure, in inches."""
    from matplotlib.figure import Figure as Canvas  # not pyplot: nothing to close, no window

    return Canvas(figsize=(width, height), layout="constrained")


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(one_line(text), width, initial_indent=first, subsequent_indent=rest) or [""]


def svg(figure: Any) -> str:
    """A matplotlib figure as base64 SVG, the same bytes every time; text stays text, so that any script shows."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    settings: Any = {"svg.hashsalt": "mixent", "svg.fonttype": "none", "font.family": ["sans-serif"]}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser's fonts will have it
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", metadata=metadata, facecolor="white", dpi=150)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _is_number(cell: Cell) -> bool:
    return cell is None or isinstance(cell, Real | Number)


def _class(number: bool, best: bool = False) -> str:
    names = " ".join(name for name, on in (("number", number), ("best", best)) if on)
    return f' class="{names}"' if names else ""


def _cell(cell: Cell, column: int, numeric: bool) -> str:
    if isinstance(cell, Spark | Bar):
        return f"<td>{cell.html()}</td>"
    best = isinstance(cell, Number) and cell.best
    text = escape(_text(cell))
    if column == 0 and not numeric:
        return f'<th scope="row"{_named(text)}>{text}</th>'
    if not numeric and isinstance(cell, str):
        return f'<td class="{"short" if len(text) <= SHORT else "long"}">{text}</td>' if text else "<td></td>"
    return f"<td{_class(numeric, best)}>{'<strong>' + text + '</strong>' if best else text}</td>"


def _named(text: str) -> str:
    return ' class="name"' if len(text) > NAME else ""


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, Number):
        return cell.text
    if isinstance(cell, Real) and not isinstance(cell, int | bool):
        return readable(float(cell))
    return str(cell)
