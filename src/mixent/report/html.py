"""One self-contained HTML file: headings, text, tables and figures; no script, no network, everything escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape
from os import PathLike
from pathlib import Path
from string import Template

from mixent.base.document import Section
from mixent.core.writing import write_text

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<header>
<h1>$title</h1>
$note
</header>
$index
<main>
$body
</main>
</body>
</html>
"""

STYLE = """:root { --paper: #ffffff; --ink: #222222; --soft: #5c5c5c; --line: #d9d9d9;
  --link: #0060a0; --best: #e3f0f9; --code: #f4f4f2;
  --more: #0072b2; --less: #d55e00; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #17191c; --ink: #e6e6e6; --soft: #a8a8a8; --line: #3a3d42;
    --link: #7cc0f0; --best: #14364d; --code: #23262a;
    --more: #56b4e9; --less: #e69f00; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.4rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; line-height: 1.3; margin: 1.6rem 0 .3rem; }
p, ul { margin: .6rem 0; max-width: 42rem; }
ul { padding-left: 1.3rem; }
a { color: var(--link); }
.lead { font-size: 1.08rem; padding: .7rem .9rem; background: var(--best); border-left: 4px solid var(--link);
  border-radius: 3px; }
svg.spark { fill: var(--soft); display: block; }
svg.bar { fill: var(--soft); display: block; }
svg.bar .more { fill: var(--more); }
svg.bar .less { fill: var(--less); }
nav ol { margin: 1rem 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap;
  gap: .2rem 1.2rem; font-size: .95rem; }
.note, caption, figcaption { color: var(--soft); }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; overflow-wrap: normal; }
.wide table { min-width: min(26rem, 100%); }
caption { text-align: left; padding-bottom: .4rem; max-width: min(42rem, calc(100vw - 2rem));
  position: sticky; left: 0; overflow-wrap: anywhere; }
th, td { padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--line); }
th:not(:first-child), td:not(:first-child) { padding-left: .4rem; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; white-space: normal; }
tbody th.name { min-width: 7rem; }
tbody th { font-weight: 500; max-width: 16rem; }
td.short { white-space: nowrap; }
td.long { min-width: 13rem; }
.number { text-align: right; }
td.number { white-space: nowrap; }
.best { background: var(--best); }
figure { margin: 1.2rem 0; break-inside: avoid; }
figure img { display: block; max-width: 100%; height: auto; padding: .3rem;
  background: #ffffff; border-radius: 4px; }
figcaption { font-size: .92rem; margin-top: .4rem; max-width: 42rem; }
pre { background: var(--code); padding: .7rem .9rem; border-radius: 4px; overflow-x: auto;
  overflow-wrap: normal; font-size: .88rem; }
@media (max-width: 30rem) {
  tbody th { overflow-wrap: anywhere; min-width: 3.5rem; }
  tbody th.name { min-width: 7.3rem; }
  th, td { padding-right: .5rem; }
  svg.bar { width: 66px; }
  td.long { min-width: 11rem; }
}
@media print {
  :root { --paper: #ffffff; --ink: #000000; --soft: #444444; --line: #bbbbbb;
    --link: #000000; --best: #eeeeee; --code: #f4f4f4;
    --more: #0072b2; --less: #d55e00; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav { display: none; }
  h2, h3, caption { break-after: avoid; }
  tr, pre, figure { break-inside: avoid; }
  thead { display: table-header-group; }
  .wide { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding-right: .4rem; }
  figure img { max-height: 11cm; width: auto !important; }
  svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  pre { white-space: pre-wrap; }
}
"""


def write_report(path: str | PathLike[str], title: str, sections: Iterable[Section], *, note: str = "") -> Path:
    """Write a report as one HTML file and return its path.

    The page needs nothing else: style and figures are inside, there is no script. All text is escaped. The same input
    gives the same bytes; a date is there only if you put one in `note`. Section ids come from their titles
    (`#recommendation`), so that links into a page stay valid when it is written again.

    Parameters
    ----------
    path : where to write
    title : heading of the page
    sections : in their order; one without any visible content is left out
    note : a line under the heading

    Returns
    -------
    Path
    """
    bodies = [(section.title, "\n".join(block.html() for block in section.content)) for section in sections]
    shown = [(heading, body) for heading, body in bodies if body.strip()]
    ids = section_ids(heading for heading, _ in shown)
    index = "".join(f'<li><a href="#{i}">{escape(heading)}</a></li>\n' for i, (heading, _) in zip(ids, shown))
    page = Template(PAGE).substitute(
        title=escape(title),
        style=STYLE,
        note=f'<p class="note">{escape(note)}</p>' if note else "",
        index=f'<nav aria-label="Contents"><ol>\n{index}</ol></nav>' if len(shown) > 1 else "",
        body="\n".join(_section(i, heading, body) for i, (heading, body) in zip(ids, shown)),
    )
    write_text(path, page)
    return Path(path)


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


def _section(name: str, title: str, body: str) -> str:
    heading = f'<h2 id="{name}-title">{escape(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{heading}\n{body}\n</section>'
