"""The report of a fusion: priors, trust, dependence, drift, and the decisions that are not the majority's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixent.evaluate.displays import ConvergenceDisplay, DependenceDisplay, PriorsDisplay, TrustDisplay
from mixent.evaluate.displays.fusion import VOTES
from mixent.evaluate.displays.palette import class_name
from mixent.fusion import Calibration
from mixent.fusion.batch import Batch
from mixent.fusion.rules import majority
from mixent.fusion.words import drift_alarms
from mixent.report.common import can_draw, count, figure, reproduce
from mixent.report.html import Bullets, Cell, Content, Figure, Number, Paragraph, Section, Table, write_report

CASES = 12  # decisions that are told in words
LOUD = 5  # sources of each
LISTED = 12  # pairs, symbols
MOST_DRAWN = 60  # sources of a map or of bars
MOST_TOLD = 8  # sources whose confusion matrix is printed
MOST_SYMBOLS = 8
SLIGHT = 0.005  # nats
WHY = {
    "dawid-skene": "the calibrations are guesses or thin, so that what the sources are worth is learned from the batch",
    "discounted": "sources agree more than their confusion matrices say, so that each gets a trust weight",
    "ml-product": "sources do not agree more than their confusion matrices say",
}
OLD = {"training": "those of the sources' training", "given": "those given", "equal": "equal shares"}


# --- in plain values ------------------------------------------------------------------------------------------------


def describe_fusion(fuser: Any) -> dict[str, Any]:
    """A fitted `Fuser` in values that JSON can hold."""
    estimate, moved, pairs = fuser.prior_estimate_, fuser.moved_, fuser.dependence_
    training = fuser._fitted_layout.training_prior
    columns = zip(fuser.classes_.tolist(), fuser.prior_, estimate.prior, estimate.low, estimate.high, training)
    return {
        "fusion": fuser.method_,
        "method_asked": fuser.method,
        "why": WHY.get(fuser.method_) if fuser.method == "auto" else None,
        "items": int(fuser.n_items_),
        "patterns": int(fuser.n_patterns_),
        "classes": [
            dict(zip(("class", "prior", "estimate", "low", "high", "training"), (c, *map(float, rest))))
            for c, *rest in columns
        ],
        "confidence": float(estimate.confidence),
        "moved": {
            "moved": bool(moved.moved),
            "p_value": _finite(moved.robust_p_value),
            "p_value_of_saerens": _finite(moved.p_value),
            "from": _old_prior(fuser),
        },
        "sources": _sources(fuser),
        "effective_sources": float(pairs.n_effective),
        "pairs": _pairs(fuser),
        "objective": None if fuser.objective_ is None else float(fuser.objective_),
        "gap": _finite(fuser.gap_),
        "passes": max((step.n_pass for step in fuser.history_), default=0),
        "warnings": list(fuser.warnings_),
    }


def _old_prior(fuser: Any) -> str:
    """What the test of moved priors compares with."""
    if not isinstance(fuser.class_prior, str):
        return "given"
    return "equal" if fuser.class_prior == "uniform" or fuser.sources is None else "training"


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _sources(fuser: Any) -> list[dict[str, Any]]:
    batch, layout, alarms = fuser._batch, fuser._first_layout, drift_alarms(fuser)
    total = batch.weight.sum()
    out = []
    for j, (name, one) in enumerate(zip(layout.names, layout.calibrations)):
        drift = fuser.drift_.get(name)
        out.append(
            {"name": name, "kind": kind_of(one, soft=batch.answers.said[j].ndim == 2)}
            | {"rows": {str(c): float(n) for c, n in zip(one.classes, one.n_rows)}}
            | {"calibration_set": one.calibration_set, "copy_of": one.copy_of}
            | {"right": accuracy(one), "bits": information(one)}
            | {"answered": float(batch.weight @ batch.answered[j] / total)}
            | {"trust": None if fuser.trust_ is None else float(fuser.trust_[name])}
            | {"drift_p": None if drift is None else _finite(drift.p_value), "drifted": name in alarms}
        )
    return out


def kind_of(one: Calibration, *, soft: bool = False) -> str:
    """What a source gives, in a word or two."""
    kind = "scores" if one.edges is not None or one.line is not None else "probabilities" if soft else "labels"
    kind += " (ratio)" if one.line is not None else f" ({len(one.symbols)} bins)" if one.edges is not None else ""
    return kind + ("" if one.cells is None else " in context" if one.context else " with cells")


def accuracy(one: Calibration) -> float | None:
    """Share of right answers, the classes it was calibrated on counting alike; None where it names no class."""
    if one.edges is not None or not set(one.symbols) & set(one.classes):
        return None
    counts = one.counts if one.cells is None else one.counts.sum(axis=2)
    seen = counts.sum(axis=1) > 0
    right = np.array([counts[k, one.symbols.index(c)] if c in one.symbols else 0.0 for k, c in enumerate(one.classes)])
    return float((right[seen] / counts.sum(axis=1)[seen]).mean())


def information(one: Calibration) -> float | None:
    """Bits that an answer tells of the class, if all classes are as frequent; None within contexts."""
    if one.context:
        return None
    A = one.confusion.reshape(len(one.classes), -1)
    log_ratio = np.log2(np.where(A > 0, A / A.mean(axis=0), 1.0))
    return float((A * log_ratio).sum(axis=1).mean())


def _pairs(fuser: Any, most: int = LISTED) -> list[dict[str, Any]]:
    """Pairs of sources that agree too much, the surest first."""
    names, found = fuser._first_layout.names, fuser.dependence_
    z = np.triu(np.nan_to_num(found.z), 1)
    order = np.argsort(-z, axis=None, kind="stable")[:most]
    out = []
    for i, j in zip(*np.unravel_index(order, z.shape)):
        if z[i, j] > 2.0:
            values = {"z": float(z[i, j]), "correlation": float(found.correlation[i, j])}
            out.append({"between": [names[i], names[j]]} | values)
    return out


@dataclass(frozen=True)
class Decisions:
    """The patterns of a batch: what was decided, and what most of the sources say."""

    batch: Batch
    posterior: np.ndarray  # (P, K)
    decided: np.ndarray  # (P,) class
    majority: np.ndarray  # (P,) class; -1: a tie, or no vote

    @property
    def changed(self) -> np.ndarray:
        """(P,) whether they differ; a tie is no majority."""
        return np.asarray((self.majority >= 0) & (self.majority != self.decided))


def decisions(fuser: Any) -> Decisions:
    """What a fitted `Fuser` decided beside what a majority vote would have."""
    first = fuser._batch
    batch = Batch(fuser._fitted_layout, first.answers, first.weight, first.known, first.pattern_of)
    posterior = fuser.rule_.posterior(batch)
    known = np.flatnonzero(batch.known >= 0)
    posterior[known] = np.eye(posterior.shape[1])[batch.known[known]]
    votes = np.sort(shares := majority(batch.votes(), batch.layout.share).posterior, axis=1)
    clear = votes[:, -1] - votes[:, -2] > 1e-9
    return Decisions(batch, posterior, posterior.argmax(axis=1), np.where(clear, shares.argmax(axis=1), -1))


# --- in words -------------------------------------------------------------------------------------------------------


def fusion_in_words(about: dict[str, Any]) -> list[str]:
    """What a fusion found, a sentence each."""
    J, n = len(about["sources"]), about["items"]
    same = f", {count(about['patterns'], 'pattern')} of answers" if about["patterns"] < n else ""
    told = [f"{count(n, 'item')}{same}, {count(J, 'source')}", _method(about)]
    if J > 1:
        told.append(f"{count(J, 'source')} are worth about {about['effective_sources']:.1f} independent ones")
    told.append(_moved(about))
    if about["gap"] is not None:
        told.append(f"Certificate: at most {about['gap']:.2g} nats per item above the least divergence")
    return told


def _method(about: dict[str, Any]) -> str:
    auto = about["method_asked"] == "auto"
    why = f": {about['why']}" if about["why"] else ""
    passes = f" ({count(about['passes'], 'pass', 'passes')})" if about["passes"] else ""
    return f"Method {about['fusion']}{passes}" + (f", taken by auto{why}" if auto else "")


def _moved(about: dict[str, Any]) -> str:
    moved = about["moved"]
    what = OLD[moved["from"]]
    p = "" if moved["p_value"] is None else f" ({_p(moved['p_value'])})"
    return (
        f"The class priors have moved from {what}{p}" if moved["moved"] else f"No sign of priors other than {what}{p}"
    )


def _p(value: float) -> str:
    return f"p = {value:.2g}" if value > 1e-300 else "p < 1e-300"


def said_in_words(calibration: Calibration, said: Any) -> str:
    """What a source said of an item: its code among the symbols, or a pmf over them."""
    n_cells = 1 if calibration.cells is None else len(calibration.cells)
    if np.ndim(said):
        best = int(np.argmax(said))
        return f"{calibration.symbols[best // n_cells]} {100 * said[best]:.0f}\u00a0%"
    symbol = str(calibration.symbols[int(said) // n_cells])
    return symbol if calibration.cells is None else f"{symbol} in {calibration.cells[int(said) % n_cells]}"


def changed_cases(fuser: Any, found: Decisions, most: int = CASES) -> list[dict[str, Any]]:
    """Typical items that were decided against the majority, and what each source added to the log-odds.

    Parameters
    ----------
    fuser : fitted Fuser
    found : of `decisions`
    most : int

    Returns
    -------
    list of dict: pattern, items (how many), majority, decided, probability, parts (a list of dict: source, says, nats;
    the loudest first; None where the method's posteriors are no sum).
    """
    rows = _typical(found, most)
    if not len(rows):
        return []
    classes = fuser.classes_.tolist()
    try:
        parts = fuser.explain(found.batch.answers.part(rows))
    except ValueError:  # the method takes means
        parts = None
    out = []
    for i, row in enumerate(rows.tolist()):
        d, m = int(found.decided[row]), int(found.majority[row])
        known = found.batch.known[row] >= 0
        out.append(
            {"pattern": row, "items": float(found.batch.weight[row]), "majority": classes[m], "decided": classes[d]}
            | {"probability": float(found.posterior[row, d]), "known": bool(known)}
            | {"parts": None if parts is None else _parts(found.batch, row, parts[i, :, d] - parts[i, :, m])}
        )
    return out


def _typical(found: Decisions, most: int) -> np.ndarray:
    """Patterns of most items; where every item is its own, from the surest to the least sure."""
    rows = np.flatnonzero(found.changed)
    weight, p = found.batch.weight[rows], found.posterior[rows].max(axis=1)
    if len(rows) > most and found.batch.pattern_of is None:
        order = np.argsort(-p, kind="stable")
        return rows[order[np.linspace(0, len(rows) - 1, most).astype(int)]]
    return rows[np.lexsort((-p, -weight))[:most]]


def _parts(batch: Batch, row: int, nats: np.ndarray) -> list[dict[str, Any]]:
    names, calibrations = batch.layout.names, batch.layout.calibrations
    told = [
        {"source": names[j], "says": said_in_words(calibrations[j], batch.answers.said[j][row]), "nats": float(nats[j])}
        for j in range(len(names))
        if batch.answered[j, row]
    ]
    told.append({"source": "priors", "says": None, "nats": float(nats[-1])})
    return sorted(told, key=lambda part: -abs(part["nats"]))


def parts_in_words(case: dict[str, Any], most: int = LOUD) -> str:
    """`A (says ill, +2.1), B (says healthy, -0.4), priors (-1.3)`: the loudest, then all others together."""
    if case["known"]:
        return "its class is known"
    if case["parts"] is None:
        return "a mean of the sources' posteriors, which is no sum of parts"
    loud = [part for part in case["parts"] if abs(part["nats"]) >= SLIGHT]
    said = ["" if part["says"] is None else f"says {part['says']}, " for part in loud]
    told = [f"{part['source']} ({says}{_nats(part['nats'])})" for part, says in zip(loud[:most], said)]
    if len(loud) > most:
        rest = sum(part["nats"] for part in loud[most:])
        told.append(f"{count(len(loud) - most, 'other')} ({_nats(rest)})")
    return ", ".join(told)


def _nats(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}"  # + 0.0: not -0.0


# --- the page -------------------------------------------------------------------------------------------------------


def fusion_report(
    path: Any, *, title: str, fuser: Any, items: Any = None, data_notes: Sequence[str] = (), commands: str = ""
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
    """
    about = describe_fusion(fuser)
    sections = [
        Section("What was done", _done(about, data_notes)),
        Section("What to look at", _warnings(about)),
        Section("Class priors", _priors(fuser, about)),
        Section("Trust in the sources", _trust(fuser, about)),
        Section("Sources that err together", _dependence(fuser, about)),
        Section("Drift of sources", _drift(fuser, about)),
        Section("Decisions against the majority", _changed(fuser, about, items)),
        Section("Calibrations", _calibrations(fuser, about)),
        Section("How the posteriors were found", _search(fuser, about)),
        Section("How to reproduce", reproduce(commands)),
    ]
    return write_report(path, title, [section for section in sections if section.content])


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
    beside = "" if saerens is None else f" The likelihood ratio of independent sources alone would say {_p(saerens)}."
    content: list[Content] = [Paragraph(f"{_moved(about)}.{beside}")]
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
        v = int(np.abs(found.said - found.expected).argmax())
        alarm = name in alarms
        numbers = [Number(_percent(share), best=alarm) for share in (found.said[v], found.expected[v])]
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


def whole(n: float) -> str:
    """A sum of weights: without decimals where they are counts."""
    return f"{n:.0f}" if n == round(n) else f"{n:.1f}"


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
        ConvergenceDisplay.from_run(_Traced(fuser.history_)).plot(canvas.subplots())
        caption = "The objective (of a divergence, its negative), pass by pass: it never falls."
        content.append(Figure(canvas, f"Objective over {about['passes']} passes.", caption))
    return content


@dataclass(frozen=True)
class _Traced:
    """A history as the display takes it."""

    trace: tuple
