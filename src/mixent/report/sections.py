"""What the pages of all models share: the model and its rows, its description, how to reproduce the page."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from mixent.base.describe import COLUMNS, describe
from mixent.base.document import Code, Content, Heading, Paragraph, Section
from mixent.base.foreign import last_step
from mixent.base.registry import find
from mixent.data.formats import PLAIN
from mixent.report.data import Categorical, columns_section, problems_section


@dataclass(frozen=True)
class Subject:
    """A fitted model and the rows that a page shows it on."""

    model: Any
    X: Any
    y: np.ndarray | None = None  # labels
    weight: np.ndarray | None = None
    groups: Any = None  # of a model of sequences with a row for each step: the sequence of each row
    notes: Sequence[str] = ()  # on the data

    @property
    def name(self) -> str:
        """What figures and tables call the model."""
        return type(last_step(self.model)).__name__

    @property
    def what(self) -> str:
        """What is predicted."""
        return "row" if self.groups is None else "sequence"

    @property
    def options(self) -> dict[str, Any]:
        """What `predict_proba` and `score_samples` take beside the rows."""
        return {} if self.groups is None else {"groups": self.groups}

    @property
    def categorical(self) -> Categorical:
        """The columns that the model reads as categories; "auto" where it does not know its columns."""
        entry = find(type(self.model))
        schema = None if entry is None else entry.columns(self.model)
        if schema is None or len(schema.inputs) != np.shape(self.X)[1]:
            return "auto"
        coded = [i for i, given in enumerate(schema.inputs) if {*given.columns} & {*schema.categorical}]
        coded = [i for i in coded if schema.inputs[i].format == PLAIN]
        return [schema.inputs[i].name if schema.named else i for i in coded]

    def data_sections(self) -> list[Section]:
        """The columns, and what may be wrong with them."""
        return [
            Section("Columns", columns_section(self.X, categorical=self.categorical)),
            Section("Data problems", problems_section(self.X, None, self.notes, categorical=self.categorical)),
        ]

    def model_sections(self) -> list[Section]:
        """What the model is, and what it shows on the rows."""
        return [
            Section("The model", model_content(self.model)),
            Section("The model on these rows", [] if self.groups is not None else on_rows(self.model, self.X, self.y)),
        ]


def model_content(model: Any) -> list[Content]:
    """The description of a fitted model as the content of one section."""
    document = describe(model)
    content: list[Content] = [Heading(document.title)]
    for section in document.sections:
        if section.title != COLUMNS:  # a page has a table of the columns with their values
            content += [*([Heading(section.title)] if section.title else []), *section.content]
    return content


def on_rows(model: Any, X: Any, y: Any) -> list[Content]:
    """Figures and tables of a registered model on rows; nothing without rows."""
    entry = find(type(model))
    return [] if entry is None or X is None else entry.on_rows(model, X, y)


def reproduce(commands: str, random_state: Any = None, *, data: str = "", code: str = "") -> Section:
    """Versions, the seed of the folds, a fingerprint of the data, and what to type to get a page again."""
    from mixent import __version__  # of the code that runs; what was installed may be older

    versions = [f"Python {platform.python_version()}", f"mixent {__version__}"]
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    seed = f" Random seed of the folds: {random_state}." if isinstance(random_state, int) else ""
    mark = f" Fingerprint of the table: {data}; it changes with any value, name or order." if data else ""
    content: list[Content] = [Paragraph(f"Made with {', '.join(versions)}.{seed}{mark}")]
    return Section("How to reproduce", [*content, *(Code(text) for text in (commands, code) if text)])
