"""Description of a fitted fusion: text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.describe import CONVERGENCE, document, optimality
from mixent.base.displays import ConvergenceDisplay, computed
from mixent.base.document import Bullets, Cell, Content, Document, Figure, Number, Paragraph, Section, Table
from mixent.base.text import class_name, count, listing
from mixent.fusion.answers import AnswersLike, LongAnswers
from mixent.fusion.decisions import Decisions, answer_text, changed_cases, decisions
from mixent.fusion.facts import fusion_facts
from mixent.fusion.messages import fault_text

if TYPE_CHECKING:
    from mixent.fusion.estimator import Fuser

MAX_SOURCES = 60  # of a matrix or a bar chart
MAX_CLASSES = 30  # of a figure
MAX_MATRICES = 8  # confusion matrices
MAX_SYMBOLS = 8  # of a confusion matrix
MIN_PASSES = 4  # of a figure of the objective
MAX_LISTED = 12  # pairs of majority and predicted class; classes of a calibration
REFERENCE = {"training": "those of the training sets", "given": "class_prior", "equal": "equal priors"}
Facts = Mapping[str, Any]


def describe_fusion(fuser: Fuser) -> Document:
    """Class priors, sources, their dependence and drift, and the decisions that differ from the majority."""
    facts = fusion_facts(fuser)
    sections = [
        Section("Warnings", [Bullets([f"{text[0].upper()}{text[1:]}." for text in facts["warnings"]] or ["None."])]),
        Section("Class priors", _priors(fuser, facts)),
        Section("Sources", _sources(fuser, facts)),
        Section("Dependence between sources", _dependence(fuser, facts)),
        Section("Tests of the sources", _tests(fuser, facts)),
        Section("Differences from the majority", _changed(fuser)),
        Section("Calibrations", _calibrations(fuser, facts)),
        Section(CONVERGENCE, _convergence(fuser, facts)),
    ]
    return document(fuser, _lead(facts), [section for section in sections if section.content], facts=facts)


def _lead(facts: Facts) -> str:
    patterns = f" ({count(facts['patterns'], 'pattern')} of answers)" if facts["patterns"] < facts["items"] else ""
    chosen = f" (chosen automatically: {facts['reason']})" if facts["requested_method"] == "auto" else ""
    return (
        f"Answers of {count(len(facts['sources']), 'source')} to {count(facts['items'], 'item')}{patterns}, combined "
        f"without common labels. Method: {facts['method']}{chosen}. The posteriors of the items and the class priors "
        "of the batch are estimated jointly."
    )


def prior_shift_text(facts: Facts) -> str:
    """Result of the test of a prior shift, in a sentence."""
    test = facts["prior_shift"]
    reference = REFERENCE[test["reference"]]
    p = "" if test["p_value"] is None else f" ({_p_value(test['p_value'])})"
    return (
        f"The class priors differ significantly from {reference}{p}."
        if test["significant"]
        else f"The class priors do not differ significantly from {reference}{p}."
    )


def _p_value(value: float) -> str:
    return f"p = {value:.2g}" if value > 1e-300 else "p < 1e-300"


def _priors(fuser: Fuser, facts: Facts) -> list[Content]:
    estimate = fuser.prior_estimate_
    other = not np.allclose(estimate.prior, fuser.prior_)  # a method with assumed priors, or without intervals of them
    rows: list[list[Cell]] = []
    for k, entry in enumerate(facts["classes"]):
        interval = Number(f"{_percent(entry['low'])} to {_percent(entry['high'])}")
        errors = [Number(f"{100 * std[k]:.2g}") for std in (estimate.batch_std, estimate.calibration_std)]
        shares = [Number(_percent(entry[key])) for key in ("training", "estimate", "prior")]
        rows.append([class_name(entry["class"]), *shares[:2], interval, *errors, *shares[2:] * other])
    level = f"{100 * facts['confidence']:.3g} %"
    caption = "Class priors in percent, with the standard errors due to the finite batch and to the finite calibrations"
    caption += (
        ". This batch: estimated from the histograms of the sources; the posteriors use the priors of the last column"
        if other
        else ". The posteriors use those of this batch"
    )
    header = ["class", "training", "this batch", f"{level} interval", "s.e. batch", "s.e. calibration"]
    header += ["in posteriors"] * other
    content: list[Content] = [Paragraph(prior_shift_text(facts)), Table(caption, header, rows)]
    if len(rows) > MAX_CLASSES:
        return content
    alt = "; ".join(f"{class_name(entry['class'])} {_percent(entry['estimate'])} %" for entry in facts["classes"])
    text = "A training prior outside the interval means that the class has become more or less frequent."
    return [*content, Figure(lambda: _display("PriorsDisplay", fuser), f"Class priors of the batch: {alt}.", text)]


def _display(name: str, fuser: Fuser) -> Any:
    """Figure of a display; requires matplotlib."""
    from mixent.fusion import displays

    return computed(getattr(displays, name).from_estimator, fuser).picture()


def _sources(fuser: Fuser, facts: Facts) -> list[Content]:
    sources = facts["sources"]
    weighted = fuser.trust_ is not None
    rows: list[list[Cell]] = []
    for source in sources:
        accuracy = None if source["accuracy"] is None else Number(_percent(source["accuracy"]))
        trust = [Number(f"{source['trust']:.2f}")] if weighted else []
        answered = Number(_percent(source["answered"]))
        bits = [_bits(source["information_bits"]), _bits(source["contribution_bits"])]
        rows.append([source["name"], source["answers"], answered, accuracy, bits[0], *trust, bits[1]])
    caption = (
        "Accuracy: balanced accuracy on the calibration rows. Information: mutual information between answer and class "
        f"at equal class priors, in bits (at most {np.log2(len(facts['classes'])):.2f}). Contribution: expected "
        "information of an answer at the class priors of this batch, in bits, times the trust weight"
    )
    trust_head = ["trust"] if weighted else []
    header = ["source", "answers", "answered (%)", "accuracy (%)", "information", *trust_head, "contribution"]
    content: list[Content] = [Paragraph(contribution_text(facts)), Table(caption, header, rows)]
    if not weighted:
        return content
    content.insert(1, Paragraph(_trust_text(facts["method"])))
    if len(sources) <= MAX_SOURCES and any(source["trust"] != 1 for source in sources):
        alt = ", ".join(f"{source['name']} {source['trust']:.2f}" for source in sources)
        content.append(Figure(lambda: _display("TrustDisplay", fuser), f"Trust weights: {alt}."))
    return content


def _bits(value: float | None) -> Number | None:
    return None if value is None else Number(f"{value:.2f}")


def contribution_text(facts: Facts) -> str:
    """Which source contributes most, and which least, in a sentence."""
    known = [source for source in facts["sources"] if source["contribution_bits"] is not None]
    if not known:
        return "No source answered."
    most, least = (f(known, key=lambda source: source["contribution_bits"]) for f in (max, min))
    text = f"An answer of {most['name']} contributes {most['contribution_bits']:.2f} bits to the posterior on average"
    return text + (
        "." if most is least else f", the most of all sources; one of {least['name']} {least['contribution_bits']:.2f}."
    )


def _trust_text(method: str) -> str:
    if method in ("product", "ml-product"):
        return "Each source has one vote in the product; declared copies share one vote."
    return (
        "The trust weight of a source is the exponent of its likelihood ratio in the posteriors, not its quality: it "
        "is about one for an independent source, and near zero for a source that duplicates others. A source that is "
        "close to chance can have a large weight without any influence."
    )


def _dependence(fuser: Fuser, facts: Facts) -> list[Content]:
    n = len(facts["sources"])
    if n < 2:
        return []
    text = (
        f"The {n} sources are equivalent to about {facts['effective_sources']:.1f} independent ones. Sources that are "
        "independent given the class agree as often as their confusion matrices imply; pairs that agree more often are "
        "dependent."
    )
    content: list[Content] = [Paragraph(text)]
    if facts["pairs"]:
        rows: list[list[Cell]] = [
            [" and ".join(pair["sources"]), Number(f"{pair['z']:.1f}"), Number(f"{pair['correlation']:.2f}")]
            for pair in facts["pairs"]
        ]
        content.append(Table("Excess agreement in standard errors (z)", ["pair", "z", "correlation"], rows))
    if n <= MAX_SOURCES:
        alt = ", ".join(f"{' and '.join(pair['sources'])} {pair['z']:.1f}" for pair in facts["pairs"]) or "none"
        caption = (
            "Above the diagonal: excess agreement in standard errors. Below: correlation of the answers within a "
            "class, shrunk towards that of all pairs."
        )
        if np.isnan(fuser.dependence_.z[np.triu_indices(n, 1)]).any():
            caption += " Gray: not tested (declared copies, or too few items answered by both sources)."
        figure = Figure(lambda: _display("DependenceDisplay", fuser), f"Pairs with excess agreement: {alt}.", caption)
        content.append(figure)
    return content


def _tests(fuser: Fuser, facts: Facts) -> list[Content]:
    if not fuser.drift_:
        return [Paragraph("Not tested, because there are too many sources or classes.")]
    layout = fuser._first_layout
    suspected = {name for fault in fuser.faults_ for name in fault.sources}
    rows: list[list[Cell]] = []
    for name, calibration, source in zip(layout.names, layout.calibrations, facts["sources"]):
        test, agreement, best = fuser.drift_[name], fuser.agreement_[name], name in suspected
        cells: list[Cell] = ["not tested", None, None, None]
        if np.isfinite(test.p_value):
            v = int(np.abs(test.observed - test.expected).argmax())
            shares = [Number(_percent(share), best=best) for share in (test.observed[v], test.expected[v])]
            cells = [answer_text(calibration, v), *shares, Number(f"{test.p_value:.2g}", best=best)]
        agrees: list[Cell] = [None, None]
        if np.isfinite(agreement.p_value):
            agrees = [Number(f"{agreement.z:.1f}", best=best), Number(f"{agreement.p_value:.2g}", best=best)]
        fault = source["fault"]
        verdict = fault["kind"] if fault else "this one or another" if best else ""
        rows.append([name, *cells, *agrees, verdict])
    texts = [fault_text(fuser, fault) for fault in fuser.faults_]
    p_values = [source[f"{test}_p_value"] for source in facts["sources"] for test in ("drift", "agreement")]
    tested = any(p is not None for p in p_values)
    none = (
        "No source contradicts the others significantly." if tested else "No source can be tested against the others."
    )
    text = " ".join(f"{text[0].upper()}{text[1:]}." for text in texts) or none
    caption = (
        "Each source is tested against all others: the shares of its answers (the one that differs most is listed, in "
        "percent; the expected share follows from the calibration at the class priors estimated from the other "
        "sources), and its agreement with their votes (z: in excess of that of independent sources, in standard "
        "errors; p of a smaller agreement). Significance is corrected for the number of tests (Holm)"
    )
    header = ["source", "answer", "observed", "expected", "p", "agreement z", "agreement p", "fault"]
    return [Paragraph(text), Table(caption, header, rows)]


def _changed(fuser: Fuser) -> list[Content]:
    result = decisions(fuser)
    content: list[Content] = [Paragraph(changed_text(result))]
    classes, weight, changed = fuser.classes_.tolist(), result.batch.weight, result.changed
    if not changed.any():
        return content
    pairs = np.zeros((len(classes),) * 2)
    np.add.at(pairs, (result.majority[changed], result.predicted[changed]), weight[changed])
    order = np.argsort(-pairs, axis=None, kind="stable")[:MAX_LISTED]
    rows: list[list[Cell]] = [
        [class_name(classes[m]), class_name(classes[k]), Number(_total(pairs[m, k]))]
        for m, k in zip(*np.unravel_index(order, pairs.shape))
        if pairs[m, k] > 0
    ]
    return [*content, Table("", ["majority", "predicted", "items"], rows)]


def changed_text(result: Decisions) -> str:
    """Number of items whose predicted class is not that of the majority, in a sentence."""
    total, changed = result.n_items(np.ones(len(result.predicted))), result.n_items(result.changed)
    ties = result.n_items(result.majority < 0)
    text = (
        f"The predicted class differs from that of the majority for {_total(changed)} of {count(total, 'item')} "
        f"({_percent(changed / total)} %)"
    )
    return text + (f"; {_total(ties)} have no majority (a tie, or no vote)." if ties else ".")


def on_answers(fuser: Fuser, answers: AnswersLike, y: ArrayLike | None = None) -> list[Content]:
    """Typical items of a table whose predicted class differs from that of the majority, with the reasons.

    Parameters
    ----------
    fuser : fitted Fuser
    answers
        As for `Fuser.fit`. The names of the items are the index of a DataFrame, the items of a long table, or row
        numbers.
    y
        Not used.
    """
    result = decisions(fuser, answers)
    cases = changed_cases(fuser, result)
    content: list[Content] = [Paragraph(changed_text(result))]
    if not cases:
        return content
    pattern_of = np.arange(result.batch.n_patterns) if result.batch.pattern_of is None else result.batch.pattern_of
    first = np.unique(pattern_of, return_index=True)[1]  # item of each pattern
    names, bullets = _item_names(answers, len(pattern_of)), []
    for case in cases:
        more = f" (and {_total(case.n_items - 1)} with the same answers)" if case.n_items > 1 else ""
        bullets.append(f"{names[first[case.pattern]]}{more}: {case}")
    order = "from the most to the least certain" if result.batch.pattern_of is None else "the most frequent first"
    text = (
        f"Typical cases, {order}. In parentheses: the answer of each source and its contribution, in nats, to the "
        "log-odds of the predicted class against the class of the majority. The contributions add up to the log-odds."
    )
    return [*content, Paragraph(text), Bullets(bullets)]


def _item_names(answers: AnswersLike, n_items: int) -> list[str]:
    """Names of the items: those of a long table, the index of a pandas DataFrame, or row numbers."""
    index = answers.items if isinstance(answers, LongAnswers) else getattr(answers, "index", None)
    names = list(range(n_items)) if index is None or callable(index) else list(index)
    return [f"row {name}" for name in names] if names == list(range(n_items)) else [str(name) for name in names]


def _calibrations(fuser: Fuser, facts: Facts) -> list[Content]:
    sources = facts["sources"]
    rows = [listing([f"{class_name(c)} {n:.4g}" for c, n in source["rows"].items()], MAX_LISTED) for source in sources]
    columns = {"source": [source["name"] for source in sources], "rows": rows}
    for key, head in (("calibration_set", "calibration set"), ("copy_of", "copy of")):
        if any(source[key] for source in sources):
            columns[head] = [source[key] or "" for source in sources]
    caption = "Sources with the same calibration set have dependent calibration errors; copies share one vote"
    return [Table(caption if len(columns) > 2 else "", [*columns], [*zip(*columns.values())]), *_matrices(fuser)]


def _matrices(fuser: Fuser) -> list[Content]:
    layout = fuser._first_layout
    if layout.n_sources > MAX_MATRICES:
        return []
    out: list[Content] = []
    for j, (name, calibration) in enumerate(zip(layout.names, layout.calibrations)):
        if len(calibration.symbols) > MAX_SYMBOLS or calibration.cells is not None:
            continue
        relearned = j in fuser._fitted_layout.relearned
        used = fuser._fitted_layout.calibrations[j] if relearned else calibration
        rows: list[list[Cell]] = [
            [class_name(label), *(Number(_percent(p)) for p in rates)]
            for label, rates in zip(used.classes, used.confusion)
        ]
        header, whence = ["class", *map(str, used.symbols)], ", re-estimated from the batch" * relearned
        out.append(Table(f"Confusion matrix of {name}{whence}, in percent of each class", header, rows))
    return out


def _convergence(fuser: Fuser, facts: Facts) -> list[Content]:
    if not fuser.history_:
        return []
    text = f"{count(facts['passes'], 'pass')}, objective {facts['objective']:.8g} nats per item."
    sentences = [text, *optimality(facts["gap"], "nats per item")]
    if (facts["gap"] or 0.0) > fuser.tol:
        sentences.append(
            f"This is more than tol={fuser.tol:g}: the fit did not converge; raise max_iter, or loosen tol."
        )
    content: list[Content] = [Paragraph(" ".join(sentences))]
    if len(fuser.history_) < MIN_PASSES:
        return content

    def picture() -> Any:
        return computed(ConvergenceDisplay.from_trace, fuser.history_).picture()

    return [*content, Figure(picture, f"Objective over {count(facts['passes'], 'pass')}; it never decreases.")]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _total(n: float) -> str:
    """A sum of weights, without decimals if it is a whole number."""
    return f"{n:.0f}" if n == round(n) else f"{n:.1f}"
