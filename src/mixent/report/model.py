"""The report of one fitted model on a table: what it says of the rows, how good that is, why, how its fit ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixent.base.document import Content, Paragraph, Section, can_draw
from mixent.base.labels import as_labels, encode, labelled_rows
from mixent.base.text import count
from mixent.evaluate.validate import aligned_proba
from mixent.report.cases import cases_section
from mixent.report.certificates import certificates, unwrapped
from mixent.report.classification import Said, calibration, errors, roc
from mixent.report.common import reproduce
from mixent.report.data import classes_table, columns_section, fingerprint, problems_section
from mixent.report.html import write_report
from mixent.report.joint import joint_section
from mixent.report.maps import pair_map, plane_map
from mixent.report.mixture import mixture_section
from mixent.report.models import foreign_section, has_section, model_section, without_comparison
from mixent.report.novelty import novelty_report
from mixent.report.rows import clusters, densities, predicted, unusual
from mixent.report.scores import scored
from mixent.report.structures import describe_structure

PER_ROW = ("label_posterior_", "multipliers_", "scores_", "_fit_X", "labels_")  # what some models keep of each row


def model_report(
    path: Any,
    model: Any,
    X: Any,
    y: Any = None,
    *,
    title: str = "",
    data_notes: Sequence[str] = (),
    commands: str = "",
    sample_weight: Any = None,
    groups: Any = None,
) -> Path:
    """Write the report of a fitted model on a table as one HTML file and return its path.

    Parameters
    ----------
    path : where to write
    model : fitted estimator
        A classifier (of this library or any other with `predict_proba`), a `GaussianMixture`, `HiddenMarkovModel` or
        `MaxEntJoint`; a `MEDNoveltyDetector` or a `Fuser` gets its own page, as by `novelty_report`, `fusion_report`.
    X : table of n rows (of a `Fuser` answers)
    y : (n,) labels, optional
        With them decisions are scored; rows without a label are not. Without, the page tells what the model says.
    title : heading of the page
    data_notes : sentences on what was found in the data
    commands : what to type to get this again
    sample_weight : (n,) array, optional
        Of the rows in every score.
    groups : (n,) array, optional
        Of a model of sequences with a row for each step: which sequence each row is of; y and sample_weight are then
        of sequences.
    """
    if hasattr(model, "rule_") and hasattr(model, "trust_"):
        from mixent.report.fusion import fusion_report

        given = {"fuser": model, "data_notes": data_notes, "commands": commands, "answers": X, "y": y}
        return fusion_report(path, title=title or "Fusion of sources", **given)
    if hasattr(model, "offset_") and hasattr(model, "schema_"):
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight have no effect on the page of a novelty detector; leave them out")
        given = {"model": model, "X": X, "data_notes": data_notes, "commands": commands}
        return novelty_report(path, title=title or "Unusual rows", **given)
    name = type(unwrapped(model)).__name__
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"a {name} predicts no probabilities, so that there is nothing to report; give a classifier")
    classifier = hasattr(model, "classes_")
    if (y is not None or sample_weight is not None) and not classifier:
        raise ValueError(f"y and sample_weight have no effect: a {name} has no classes; leave them out")
    if sample_weight is not None and y is None:
        raise ValueError("sample_weight has no effect without y: it is for the scores")
    page = _Page(name, model, X, y, list(data_notes), sample_weight, groups)
    sections = page.of_classifier() if classifier else page.of_rows()
    sections.append(Section("How the fit ended", without_comparison(certificates(name, model))))
    again = reproduce(commands, data=fingerprint(X, y), code=_code(y, groups))
    sections.append(Section("How to reproduce", again))
    return write_report(path, title or f"{name} on a table", [section for section in sections if section.content])


def likely_seen(model: Any, n_rows: int) -> bool:
    """Does the model keep something of as many training rows? Then these may well be they."""
    kept = [getattr(unwrapped(model), name, None) for name in PER_ROW]
    return any(one is not None and np.ndim(one) and len(one) == n_rows for one in kept)


class _Page:
    """What all sections of one page look at."""

    def __init__(self, name: str, model: Any, X: Any, y: Any, notes: list[str], weight: Any, groups: Any) -> None:
        self.name, self.model, self.X, self.notes, self.groups = name, model, X, notes, groups
        self.what = "row" if groups is None else "sequence"
        self.y = None if y is None else as_labels(y)
        self.weight = None if weight is None else np.asarray(weight, dtype=float)

    def of_classifier(self) -> list[Section]:
        asked = {} if self.groups is None else {"groups": self.groups}
        proba = np.asarray(self.model.predict_proba(self.X, **asked)) if asked else self._proba()
        known = np.zeros(len(proba), dtype=bool) if self.y is None else labelled_rows(self.y)
        if self.y is not None:
            _check_labels(self.y, known, self.model.classes_, len(proba))
        out = self._opening(known, proba)
        if known.any():
            out += self._scored(Said(self.name, *self._known(known, proba), f"{self.what}s of this table"))
        else:
            out.append(Section("What it says", predicted(self.model.classes_, proba, self.what)))
        out += self._maps(known, proba)
        rows = None if self.groups is not None else self.X
        out += self._model(rows)
        if rows is not None:
            told = cases_section(self.name, self.model, rows, self.y, rows="") if np.shape(rows)[1] > 1 else []
            out.append(Section("Typical and odd rows", without_comparison(told)))
            out.append(Section("Unusual rows", unusual(self.model, rows)))
        return out

    def _proba(self) -> np.ndarray:
        return aligned_proba(self.model, self.X, np.asarray(self.model.classes_))

    def _known(self, known: np.ndarray, proba: np.ndarray) -> tuple[Any, Any, Any, Any]:
        weight = None if self.weight is None else self.weight[known]
        assert self.y is not None
        return self.y[known], proba[known], np.asarray(self.model.classes_), weight

    def _opening(self, known: np.ndarray, proba: np.ndarray) -> list[Section]:
        said = f"{self.name}, {len(self.model.classes_)} classes, asked about {count(len(proba), self.what)}"
        content: list[Content] = []
        if known.any():
            assert self.y is not None
            wrong = Said(self.name, *self._known(known, proba)).wrong
            said += f": {int(wrong.sum())} of {int(known.sum())} with a label are decided wrongly"
            said += f" ({100 * wrong.mean():.1f}\u00a0%)"
            content = [Paragraph(f"{said}.", lead=True), Paragraph(_trust(likely_seen(self.model, len(proba))))]
            content.append(classes_table(self.y))
        else:
            content = [Paragraph(f"{said}, without labels: nothing here says how often it is right.", lead=True)]
        columns = columns_section(self.X)
        problems = problems_section(self.X, None, self.notes)
        return [
            Section("In short", content),
            Section("The columns", columns),
            Section("Problems found", problems),
        ]

    def _scored(self, said: Said) -> list[Section]:
        out = [Section("Scores on this table", scored(said))]
        if can_draw():
            out.append(Section("Calibration", calibration([said])))
            out.append(Section("Classes found", roc([said])))
            out.append(Section("Errors", errors(said)))
        return out

    def _maps(self, known: np.ndarray, proba: np.ndarray) -> list[Section]:
        if not can_draw() or self.groups is not None:
            return []
        y = self.y if known.any() else np.asarray(self.model.classes_)[proba.argmax(axis=1)]
        what = "rows of this table" if known.any() else "rows of this table, coloured by what it says of them,"
        pair = without_comparison(pair_map({self.name: self.model}, self.name, self.X, y))
        plane = plane_map(self.name, self.X, y, proba, self.model.classes_, what, labelled=bool(known.any()))
        return [Section("Map of two columns", pair), Section("Map of the rows", plane)]

    def _model(self, rows: Any) -> list[Section]:
        model = unwrapped(self.model)
        if not has_section(model):
            return [Section("The model", without_comparison(foreign_section(self.name, self.model)))]
        labels = self.y if self._was_fitted_to_these() else None
        heading, content = model_section(self.name, model, rows if labels is not None else None, labels, cases=False)
        return [Section(heading, without_comparison(content))]

    def _was_fitted_to_these(self) -> bool:
        """Only then may pictures of training rows be made of these."""
        return self.y is not None and self.groups is None and likely_seen(self.model, len(self.y))

    def of_rows(self) -> list[Section]:
        """Of a model without classes."""
        n, d = np.shape(self.X)
        n = n if self.groups is None else len(set(np.asarray(self.groups).tolist()))
        words = f"{self.name}, asked about {count(n, self.what)} of {count(d, 'column')}"
        asked = {} if self.groups is None else {"groups": self.groups}
        scores = np.asarray(self.model.score_samples(self.X, **asked)) if hasattr(self.model, "score_samples") else None
        out = [Section("The columns", columns_section(self.X))]
        out.append(Section("Problems found", problems_section(self.X, None, self.notes)))
        if scores is not None:
            joint = hasattr(self.model, "terms_")
            density = "log pseudo-likelihood" if joint else "log density"
            words += f": mean {density} {scores.mean():.4g} nats a {self.what}"
            out.append(Section(f"How probable the {self.what}s are", densities(scores, density)))
        if hasattr(self.model, "terms_"):
            out.append(Section("The joint model", joint_section(self.name, self.model, self.X)))
        elif hasattr(self.model, "chain_"):
            out.append(Section("The hidden Markov model", [Paragraph(f"{describe_structure(self.model)['words']}.")]))
        else:
            out.append(Section("Clusters", clusters(self.model, self.X)))
            out.append(Section("The mixture model", without_comparison(mixture_section(self.name, self.model, self.X))))
        if self.groups is None:
            out.append(Section("Unusual rows", unusual(self.model, self.X)))
        return [Section("In short", [Paragraph(f"{words}.", lead=True)]), *out]


def _check_labels(y: np.ndarray, known: np.ndarray, classes: Any, n_rows: int) -> None:
    if len(y) != n_rows:
        raise ValueError(f"y must have one label for each of {n_rows} rows; it has {len(y)}")
    encode(y[known], classes)  # says which row has a label that is no class of the model


def _trust(seen: bool) -> str:
    better = "Cross-validation tells what to expect of new rows: mixent.compare, mixent.evaluate.cross_validate."
    if seen:
        return f"These are as many rows as the model was fitted to. If they are the same, scores flatter it. {better}"
    return f"If the model was fitted to these rows, the scores on this page flatter it. {better}"


def _code(y: Any, groups: Any) -> str:
    labels = ", y" if y is not None else ""
    more = ", groups=groups" if groups is not None else ""
    lines = ["from mixent.report import model_report", "", f'model_report("page.html", model, X{labels}{more})']
    return "\n".join(["import mixent", *lines[:1], "", 'model = mixent.load("model.mixent")', *lines[2:]])
