"""One self-contained HTML file: headings, text, tables and figures; no script, no network, everything escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from mixent.base.document import Section
from mixent.report.page import PAGE, STYLE


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


def _section(name: str, section: Section) -> str:
    inside = "\n".join(part.html() for part in section.content)
    heading = f'<h2 id="{name}-title">{escape(section.title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{heading}\n{inside}\n</section>'
