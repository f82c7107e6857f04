"""One self-contained HTML file: headings, text, tables and figures; no script, no network, everything escaped."""

from __future__ import annotations

import base64
import io
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from pathlib import Path
from string import Template
from typing import Any

from mixent.report.page import PAGE, STYLE

SHORT = 14  # letters of a cell that stay on one line
NAME = 9  # letters of the head of a row, beyond which it keeps some width


@dataclass(frozen=True)
class Number:
    """A number already written as text (such as a mean and its deviation), right-aligned; `best` sets it off."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Spark:
    """A histogram as high as a line of text; `alt` says what it shows."""

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


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str

    def html(self) -> str:
        return f"<h3>{escape(self.text)}</h3>"


@dataclass(frozen=True)
class Bullets:
    """A list of short texts."""

    items: Sequence[str]

    def html(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in self.items) + "</ul>"


@dataclass(frozen=True)
class Code:
    """A command or other text, kept as it is."""

    text: str

    def html(self) -> str:
        return f"<pre><code>{escape(self.text)}</code></pre>"


@dataclass(frozen=True)
class Table:
    """A table; columns of numbers are right-aligned, the first column of text heads its row."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def html(self) -> str:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"table {self.caption!r}: a row has {len(row)} cells for {len(self.header)} columns")
        numeric = [bool(self.rows) and all(_is_number(row[j]) for row in self.rows) for j in range(len(self.header))]
        head = "".join(f'<th scope="col"{_class(number)}>{escape(h)}</th>' for h, number in zip(self.header, numeric))
        body = "".join("<tr>" + "".join(map(_cell, row, range(len(row)), numeric)) + "</tr>\n" for row in self.rows)
        return (
            f'<div class="wide"><table><caption>{escape(self.caption)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure as an SVG picture inside the page, with the text a screen reader reads and a caption."""

    figure: Any
    alt: str
    caption: str = ""

    def html(self) -> str:
        data, width = svg(self.figure), float(self.figure.get_size_inches()[0]) * 96
        picture = f'<img style="width:{width:.0f}px" alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}">'
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f"<figure>{picture}{caption}</figure>"


Content = Paragraph | Heading | Bullets | Code | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    content: Sequence[Content]


def write_report(path: Any, title: str, sections: Iterable[Section], *, note: str = "") -> Path:
    """Write a report as one HTML file and return its path.

    The page needs nothing else: style and figures are inside, there is no script. All text is escaped. The same input
    gives the same bytes; a date is there only if you put one in `note`. Section ids come from their titles
    (`#comparison-of-methods`), so that links into a page stay good when it is written anew.
    """
    sections = list(sections)
    ids = section_ids(section.title for section in sections)
    index = "".join(f'<li><a href="#{i}">{escape(s.title)}</a></li>\n' for i, s in zip(ids, sections))
    body = "\n".join(_section(i, section) for i, section in zip(ids, sections))
    page = Template(PAGE).substitute(
        title=escape(title),
        style=STYLE,
        note=f'<p class="note">{escape(note)}</p>' if note else "",
        index=f'<nav aria-label="Contents"><ol>\n{index}</ol></nav>' if len(sections) > 1 else "",
        body=body,
    )
    path = Path(path)
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def section_ids(titles: Iterable[str]) -> list[str]:
    """One id per title, made of its letters and digits; a repeated one is numbered."""
    ids: list[str] = []
    for title in titles:
        text = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", text).strip("-") or "section"
        count = 2
        name = base
        while name in ids:
            name, count = f"{base}-{count}", count + 1
        ids.append(name)
    return ids


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


def readable(value: float, digits: int = 4) -> str:
    """A number in a few digits, without an exponent below a million."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e6 else text


def _section(name: str, section: Section) -> str:
    inside = "\n".join(part.html() for part in section.content)
    heading = f'<h2 id="{name}-title">{escape(section.title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{heading}\n{inside}\n</section>'


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
