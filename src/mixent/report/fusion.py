"""The report of a fusion: priors, trust, dependence, drift, and the decisions that are not the majority's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Cell, Content, Figure, Number, Paragraph, Section, Table, can_draw
from mixent.base.document import canvas as figure
from mixent.base.labels import as_labels, labelled_rows
from mixent.base.text import class_name, count
from mixent.displays import ConvergenceDisplay, DependenceDisplay, PriorsDisplay, TrustDisplay
from mixent.fusion.batch import Batch
from mixent.fusion.displays import VOTES
from mixent.fusion.messages import drifted_sources as drift_alarms
from mixent.report.classification import Said, calibration, errors, roc
from mixent.report.common import reproduce
from mixent.report.fusion_words import (
    LISTED,
    Decisions,
    accuracy,
    changed_cases,
    decisions,
    describe_fusion,
    fusion_in_words,
    information,
    kind_of,
    moved_in_words,
    p_in_words,
    parts_in_words,
    said_in_words,
    whole,
)
from mixent.report.html import write_report
from mixent.report.rows import predicted
from mixent.report.scores import scored

__all__ = [
    "Decisions",
    "accuracy",
    "changed_cases",
    "decisions",
    "describe_fusion",
    "fusion_in_words",
    "fusion_report",
    "information",
    "kind_of",
    "parts_in_words",
    "said_in_words",
    "whole",
]

MOST_DRAWN = 60  # sources of a map or of bars
MOST_TOLD = 8  # sources whose confusion matrix is printed
MOST_SYMBOLS = 8
CODE = """import mixent
from mixent.report import fusion_report

fuser = mixent.Fuser(sources).fit(answers)
fusion_report("page.html", title="Fusion", fuser=fuser)"""


def fusion_report(
    path: Any,
    *,
    title: str,
    fuser: Any,
    items: Any = None,
    data_notes: Sequence[str] = (),
    commands: str = "",
    answers: Any = None,
    y: Any = None,
) -> Path:
    """Write the report of a fitted `Fuser` as one HTML file and return its path.

    Parameters
    ----------
    path : where to write
    title : heading of the page
    fuser : fitted Fuser
    items : names of the items, in their order; those of a long table, or row numbers from 0, unless given
    data_notes : sentences on what was found in the data
    commands : what to type to get this again
    answers : answers to other items, optional
        As for `fit`; the page then tells what is said of them too.
    y : (n,) true classes of these items, optional
        With them the decisions are scored; items without one are not.
    """
    if y is not None and answers is None:
        raise ValueError("y has no effect without answers: it is what these items truly are")
    about = describe_fusion(fuser)
    sections = [
        Section("What was done", _done(about, data_notes)),
        Section("What to look at", _warnings(about)),
        *([] if answers is None else _new_items(fuser, answers, y)),
        Section("Class priors", _priors(fuser, about)),
        Section("Trust in the sources", _trust(fuser, about)),
        Section("Sources that err together", _dependence(fuser, about)),
        Section("Drift of sources", _drift(fuser, about)),
        Section("Decisions against the majority", _changed(fuser, about, items)),
        Section("Calibrations", _calibrations(fuser, about)),
        Section("How the posteriors were found", _search(fuser, about)),
        Section("How to reproduce", reproduce(commands, code=CODE)),
    ]
    return write_report(path, title, [section for section in sections if section.content])


def _new_items(fuser: Any, answers: Any, y: Any) -> list[Section]:
    """What is said of other items, and where their classes are known how good that is."""
    proba, classes = np.asarray(fuser.predict_proba(answers)), np.asarray(fuser.classes_)
    if y is None:
        return [Section("The items of this table", predicted(classes, proba, what="item"))]
    y = as_labels(y)
    if len(y) != len(proba):
        raise ValueError(f"y must have one class for each of {len(proba)} items; it has {len(y)}")
    known = labelled_rows(y)
    said = Said("the fusion", y[known], proba[known], classes, rows="items of this table")
    out = [Section("Scores on this table", scored(said))]
    if can_draw():
        out.append(Section("Calibration", calibration([said])))
        out.append(Section("Classes found", roc([said])))
        out.append(Section("Errors", errors(said)))
    return out


def _done(about: dict[str, Any], notes: Sequence[str]) -> list[Content]:
    text = (
        "Answers of several sources to the same items were fused without common labels: each source by how often it "
        "says what of each class, in rows it was calibrated on. Posteriors of the items and class priors of the batch "
        "were found together."
    )
    return [Paragraph(text), Bullets([f"{line}." for line in [*fusion_in_words(about), *notes]])]


def _warnings(about: dict[str, Any]) -> list[Content]:
    told = [f"{text[0].upper()}{text[1:]}." for text in about["warnings"]]
    return [Bullets(told) if told else Paragraph("Nothing: no source has drifted, and no pair agrees too much.")]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _priors(fuser: Any, about: dict[str, Any]) -> list[Content]:
    estimate = fuser.prior_estimate_
    rows: list[list[Cell]] = []
    for k, c in enumerate(about["classes"]):
        interval = Number(f"{_percent(c['low'])} to {_percent(c['high'])}")
        shares = [Number(_percent(c[key])) for key in ("training", "estimate", "prior")]
        errors = [Number(f"{100 * one[k]:.2g}") for one in (estimate.batch_std, estimate.calibration_std)]
        rows.append([class_name(c["class"]), *shares[:2], interval, *errors, shares[2]])
    level = f"{100 * about['confidence']:.3g} %"
    caption = (
        f"Class priors, per cent. The interval ({level}) carries two errors: the items are a sample, and the "
        "calibrations were counted on few rows; both as standard errors. The last column goes with the posteriors"
    )
    header = ["class", "training", "this batch", "interval", "error, batch", "error, calibration", "in the posteriors"]
    saerens = about["moved"]["p_value_of_saerens"]
    beside = (
        ""
        if saerens is None
        else f" The likelihood ratio of independent sources alone would say {p_in_words(saerens)}."
    )
    content: list[Content] = [Paragraph(f"{moved_in_words(about)}.{beside}")]
    if can_draw() and len(rows) <= 30:
        canvas = figure(6.4, 1.4 + 0.4 * len(rows))
        PriorsDisplay.from_estimator(fuser).plot(canvas.subplots())
        told = "; ".join(f"{class_name(c['class'])} {_percent(c['estimate'])} %" for c in about["classes"])
        text = "A training prior outside its interval: the class has become more frequent, or less."
        content.append(Figure(canvas, f"Class priors of the batch: {told}.", text))
    return [*content, Table(caption, header, rows)]


def _trust(fuser: Any, about: dict[str, Any]) -> list[Content]:
    if fuser.trust_ is None:
        return []
    learned = about["fusion"] not in VOTES
    text = (
        "The likelihood ratio of each source enters the posterior to the power of its trust weight. About one: it is "
        "believed as an independent source. Near zero: others say what it says, or it does not keep its calibration."
        if learned
        else "Each source counts as one vote in the product; declared copies share one."
    )
    content: list[Content] = [Paragraph(text)]
    n = len(about["sources"])
    if all(s["trust"] == 1 for s in about["sources"]):
        return content
    if can_draw() and n <= MOST_DRAWN:
        canvas = figure(6.4, min(1.1 + 0.3 * n, 12.0))
        TrustDisplay.from_estimator(fuser).plot(canvas.subplots())
        told = ", ".join(f"{s['name']} {s['trust']:.2f}" for s in about["sources"])
        return [*content, Figure(canvas, f"Trust weights: {told}.")]
    rows: list[list[Cell]] = [[s["name"], Number(f"{s['trust']:.2f}")] for s in about["sources"]]
    return [*content, Table("Trust weights", ["source", "weight"], rows)]


def _dependence(fuser: Any, about: dict[str, Any]) -> list[Content]:
    J = len(about["sources"])
    if J < 2:
        return []
    text = (
        f"{J} sources are worth about {about['effective_sources']:.1f} independent ones. Two sources that are "
        "independent given the class agree as often as their confusion matrices say; the map shows who agrees more."
    )
    content: list[Content] = [Paragraph(text)]
    if can_draw() and J <= MOST_DRAWN:
        display = DependenceDisplay.from_estimator(fuser)
        side = min(max(3.2, 1.6 + 0.48 * J), 8.5)
        canvas = figure(side + 1.5, side)
        display.plot(canvas.subplots())
        told = ", ".join(f"{' and '.join(pair['between'])} {pair['z']:.1f}" for pair in about["pairs"])
        caption = (
            "Above the diagonal, by how many standard errors a pair agrees more than its confusion matrices say; "
            "below, the correlation of what they say within a class. Grey: a source with itself, declared copies "
            "(above), or too few items of both."
        )
        content.append(Figure(canvas, f"Pairs that agree too much: {told or 'none'}.", caption))
    if about["pairs"]:
        rows: list[list[Cell]] = [
            [" and ".join(p["between"]), Number(f"{p['z']:.1f}"), Number(f"{p['correlation']:.2f}")]
            for p in about["pairs"]
        ]
        content.append(Table("Pairs that agree most, in standard errors", ["pair", "z", "correlation"], rows))
    return content


def _drift(fuser: Any, about: dict[str, Any]) -> list[Content]:
    if not fuser.drift_:
        return [Paragraph("There are too many sources for a test of each.")]
    calibrations = dict(zip(fuser._first_layout.names, fuser._first_layout.calibrations))
    rows: list[list[Cell]] = []
    alarms = drift_alarms(fuser)
    for name, found in fuser.drift_.items():
        if not np.isfinite(found.p_value):
            rows.append([name, "not tested", None, None, None, ""])
            continue
        v = int(np.abs(found.observed - found.expected).argmax())
        alarm = name in alarms
        numbers = [Number(_percent(share), best=alarm) for share in (found.observed[v], found.expected[v])]
        p = Number(f"{found.p_value:.2g}", best=alarm)
        rows.append([name, said_in_words(calibrations[name], v), *numbers, p, "drifted" if alarm else ""])
    mislead = ". The clearest comes first: where one has drifted, others can look so" if len(alarms) > 1 else ""
    told = (
        f"Alarm: {', '.join(alarms)} may no longer say what the calibration promises{mislead}."
        if alarms
        else "No alarm: every source says what its calibration promises, as far as the others tell."
    )
    caption = (
        "For each source the answer that is furthest from its expected share, per cent of its items. Expected: its "
        "calibration at the priors the other sources tell. Alarms by Holm's correction over all sources"
    )
    header = ["source", "answer", "said", "expected", "p", "alarm"]
    return [Paragraph(told), Table(caption, header, rows)]


def _changed(fuser: Any, about: dict[str, Any], items: Any) -> list[Content]:
    found = decisions(fuser)
    weight, classes = found.batch.weight, fuser.classes_.tolist()
    total, n_changed = float(weight.sum()), float(weight @ found.changed)
    open_ = float(weight @ (found.majority < 0))
    text = (
        f"{count(whole(n_changed), 'item')} of {whole(total)} ({_percent(n_changed / total)} %) are decided "
        "otherwise than by most of the sources"
        + (f"; of {whole(open_)} there is no majority: a tie, or no vote." if open_ else ".")
    )
    content: list[Content] = [Paragraph(text)]
    if not n_changed:
        return content
    pairs = np.zeros((len(classes),) * 2)
    np.add.at(pairs, (found.majority[found.changed], found.decided[found.changed]), weight[found.changed])
    order = np.argsort(-pairs, axis=None, kind="stable")[:LISTED]
    rows: list[list[Cell]] = [
        [class_name(classes[m]), class_name(classes[d]), Number(whole(pairs[m, d]))]
        for m, d in zip(*np.unravel_index(order, pairs.shape))
        if pairs[m, d] > 0
    ]
    content.append(Table("What they were, and what they are", ["most sources say", "decided", "items"], rows))
    return [*content, *_cases(fuser, found, items)]


def _cases(fuser: Any, found: Decisions, items: Any) -> list[Content]:
    """A line each: a table would leave a phone no room for the reasons."""
    names = _examples(fuser, found.batch, fuser.items_ if items is None else items)
    told = []
    for case in changed_cases(fuser, found):
        n = case["items"]
        like = f" (and {whole(n - 1)} like it)" if n > 1 else ""
        name = count(whole(n), "item") if names is None else f"{names(case['pattern'])}{like}"
        now = f"{class_name(case['decided'])}, {_percent(case['probability'])}\u00a0%"
        told.append(f"{name}: most say {class_name(case['majority'])}, decided {now}: {parts_in_words(case)}")
    alone = found.batch.pattern_of is None
    order = "items, from the surest to the least sure" if alone else "cases, the most frequent first"
    text = (
        f"Typical {order}. In brackets what a source says, and the nats it adds to the log-odds of the class decided "
        "against the majority's; the parts add up to the log-odds."
    )
    return [Paragraph(text), Bullets(told)]


def _examples(fuser: Any, batch: Batch, names: Any) -> Callable[[int], str] | None:
    """What the first item of a pattern is called; None where the items are not those of one table."""
    n = batch.n_patterns if batch.pattern_of is None else len(batch.pattern_of)
    if fuser.posterior_ is None or len(fuser.posterior_) != n:
        return None
    first = np.arange(n)
    if batch.pattern_of is not None:
        first = np.zeros(batch.n_patterns, dtype=np.intp)
        first[batch.pattern_of[::-1]] = np.arange(n - 1, -1, -1)
    return lambda pattern: f"row {first[pattern]}" if names is None else str(names[first[pattern]])


def _calibrations(fuser: Any, about: dict[str, Any]) -> list[Content]:
    rows: list[list[Cell]] = []
    for s in about["sources"]:
        n_rows = ", ".join(f"{class_name(c)} {n:.4g}" for c, n in list(s["rows"].items())[:LISTED])
        right = None if s["right"] is None else Number(_percent(s["right"]))
        bits = None if s["bits"] is None else Number(f"{s['bits']:.2f}")
        answered = Number(_percent(s["answered"]))
        rows.append(
            [s["name"], s["kind"], n_rows, right, bits, answered, s["calibration_set"] or "", s["copy_of"] or ""]
        )
    caption = (
        "What is known of the sources. Right: per cent of its calibration rows, or mean probability of the true class, "
        "classes counting alike. Bits: what an answer tells of the class, of "
        f"{np.log2(len(about['classes'])):.2f} in all, if classes are as frequent. "
        "Sources of one calibration set share their calibration error; copies share a vote"
    )
    header = ["source", "gives", "rows", "right (%)", "bits", "answered (%)", "set", "copy of"]
    return [Table(caption, header, rows), *_matrices(fuser)]


def _matrices(fuser: Any) -> list[Content]:
    layout = fuser._first_layout
    if layout.n_sources > MOST_TOLD:
        return []
    out: list[Content] = []
    for name, one in zip(layout.names, layout.calibrations):
        if len(one.symbols) > MOST_SYMBOLS or one.cells is not None:
            continue
        rows: list[list[Cell]] = [
            [class_name(c), *(Number(_percent(p)) for p in row)] for c, row in zip(one.classes, one.confusion)
        ]
        out.append(Table(f"{name}: per cent of each class of which it says", ["class", *map(str, one.symbols)], rows))
    return out


def _search(fuser: Any, about: dict[str, Any]) -> list[Content]:
    if not fuser.history_:
        return []
    parts = [f"{count(about['passes'], 'pass', 'passes')}, objective {about['objective']:.8g} nats"]
    if about["gap"] is not None:
        parts.append(f"at most {about['gap']:.2g} nats per item above the least divergence there is")
    content: list[Content] = [Paragraph("; ".join(parts) + ".")]
    if can_draw() and len(fuser.history_) >= 4:
        canvas = figure(6.4, 3.2)
        ConvergenceDisplay.from_trace(fuser.history_).plot(canvas.subplots())
        caption = "The objective (of a divergence, its negative), pass by pass: it never falls."
        content.append(Figure(canvas, f"Objective over {about['passes']} passes.", caption))
    return content
