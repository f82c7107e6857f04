"""The page docs/tables.md, written from the stores; a section without records stays as it is on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.tables.comparison_show import CompareSection
from benchmarks.tables.data import ROOT
from benchmarks.tables.markdown import anchor
from benchmarks.tables.section import NOT_RUN, Inputs
from benchmarks.tables.sections_discrimination import (
    DISCRIMINATION_SECTION,
    NOVELTY_SECTION,
    SPLICE_SECTION,
    TREES_SECTION,
)
from benchmarks.tables.sections_entropy import (
    CONTINUOUS_SECTION,
    ENSEMBLES_SECTION,
    INFERENCE_SECTION,
    MIXED_SECTION,
)
from benchmarks.tables.sections_fusion import CROWDS_SECTION, FUSION_SECTION, JUDGES_SECTION, VOTES_SECTION
from benchmarks.tables.sections_mixtures import ACCURACY_SECTION, INCREMENTAL_SECTION, WAVEFORM_SECTION

PAGE = ROOT / "docs" / "tables.md"


class Part(Protocol):
    """What the page is made of."""

    @property
    def title(self) -> str: ...

    def lines(self, inputs: Inputs) -> list[str]: ...


CHAPTERS: dict[str, Sequence[Part]] = {
    "Document 000: shared components": (WAVEFORM_SECTION,),
    "Document 001: maximum entropy discrimination": (
        *(DISCRIMINATION_SECTION, TREES_SECTION),
        *(NOVELTY_SECTION, SPLICE_SECTION),
    ),
    "Document 002: growing mixtures": (INCREMENTAL_SECTION,),
    "Document 003: mixtures and Bayes' rule": (ACCURACY_SECTION,),
    "Document 004, chapter 2: maximum entropy": (CONTINUOUS_SECTION, MIXED_SECTION, INFERENCE_SECTION),
    "Document 004, chapter 3: ensembles": (ENSEMBLES_SECTION,),
    "Document 004, chapters 4 to 6: fusion": (FUSION_SECTION,),
    "Beyond the documents: fusion": (JUDGES_SECTION, VOTES_SECTION, CROWDS_SECTION),
}
HEAD = """# Tables of the documents, ours beside theirs

Written by `make tables` from the records of its runs (`make tables SHOW=1`: without running anything; `make tables
QUICK=1`: a small piece, elsewhere). Do not edit by hand.

How to read it. Cells are mean ± standard error over the folds, with the term of Nadeau and Bengio (2003) for training
rows that folds share; over the test rows where there is one split. What a document printed stands in brackets. Printed
numbers are single runs, some of them chosen on test rows, and were not tuned to; *within noise* means within two
standard errors of the difference of two such runs. *Same folds* are paired tests (two-sided, 5 %, each set alone, not
adjusted for their number). Error in %, log-loss in nats. Folds are those that were run so far: where they are fewer
than the document's, `make tables` goes on. *Source* names the versions of `src/mixent` (a hash) behind the numbers;
several of them mean that parts were run at different times.
"""


def page_lines(inputs: Inputs, previous: Sequence[str] = ()) -> list[str]:
    """Lines of the page; `previous` are those of the page that it replaces."""
    sections = sections_of(previous)
    first = CompareSection()
    contents = [f"* [{first.title}](#{anchor(first.title)})"]
    for chapter, parts in CHAPTERS.items():
        contents.append(f"* [{chapter}](#{anchor(chapter)})")
        contents += [f"  * [{part.title}](#{anchor(part.title)})" for part in parts]
    lines = [*HEAD.splitlines(), "", *contents, "", *_current(first.lines(inputs), sections)]
    for chapter, parts in CHAPTERS.items():
        lines += [f"## {chapter}", ""]
        for part in parts:
            lines += _current(part.lines(inputs), sections)
    return lines


def sections_of(lines: Iterable[str]) -> dict[str, list[str]]:
    """Heading -> lines of its section, the heading first."""
    sections: dict[str, list[str]] = {}
    heading = ""
    for line in lines:
        if line.startswith("#"):
            heading = line
        sections.setdefault(heading, []).append(line)
    return sections


def _current(lines: list[str], previous: Mapping[str, list[str]]) -> list[str]:
    """The lines of a section, or those of the previous page if there are no records."""
    return previous.get(lines[0], lines) if any(line.startswith(NOT_RUN) for line in lines) else lines


def write_page(path: Path, inputs: Inputs) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    previous = path.read_text().splitlines() if path.exists() else []
    path.write_text("\n".join(page_lines(inputs, previous)).rstrip() + "\n")
    return path
