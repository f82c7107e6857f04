"""Sections of the page for chapters 4 to 6 of document 004, and for fusion beyond it: judges, votes, crowds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.tables import crowds as people
from benchmarks.tables import fusion_show as views
from benchmarks.tables import fusion_simulated as simulated
from benchmarks.tables import judges as panel
from benchmarks.tables.beside import Beside, against, mean_text, noise
from benchmarks.tables.compare import mean_sd
from benchmarks.tables.fusion import FUSION
from benchmarks.tables.fusion_cases import (
    AUTO,
    BATCHED,
    CASES,
    COPIES,
    EXT_I_004,
    IT,
    IT_004,
    REDUNDANT,
    TILDE_004,
    Case,
    level_of,
)
from benchmarks.tables.markdown import grid_lines, table_lines
from benchmarks.tables.printed_fusion import (
    BATCH_PERCENT,
    MISSING,
    TABLE_42,
    TABLE_43,
    TABLE_44,
    TABLE_45,
    TABLE_46,
    TABLE_47,
    TABLE_61,
    Shifted,
)
from benchmarks.tables.section import Inputs, Section, not_run, provenance
from benchmarks.tables.show import Found
from benchmarks.tables.store import Store

Records = Mapping[str, Mapping[str, list[dict]]]
HALVES = 10  # five times two, of which a printed number is the mean
SOFT = ("sum", "product", "ml-sum", "ml-product", "composite", IT_004, IT, "pool", AUTO, "dawid-skene")

# --- chapters 4 and 6 -------------------------------------------------------------------------------------------------

PRINTED_COLUMNS: dict[str, tuple[Mapping[str, tuple[Shifted, ...]], Sequence[str]]] = {
    "4.2": (TABLE_42, ("ml-sum", "sum", "ml-product", "product")),
    "4.3": (TABLE_43, (IT_004, "sum", "product")),
    "4.4": (TABLE_44, (IT_004, "ml-sum", "ml-product")),
    "6.1": (TABLE_61, (EXT_I_004, IT_004, "sum", "product")),
}


def fusion_lines(result: Found) -> Iterator[str]:
    records = {setting.name: by for setting, by in result.items()}
    for grid in views.grids(records):
        if grid.title and str(grid.title).startswith("All methods"):
            continue
        lines = grid_lines(grid)
        if lines:
            yield from (f"**{grid.title}**", "", *lines[2:])
            number = str(grid.title).removeprefix("Table ")[:3]
            yield from _words(records, number)
    yield from _means(records)


def _words(records: Records, number: str) -> Iterator[str]:
    if number in PRINTED_COLUMNS:
        text = shifted_besides(records, *PRINTED_COLUMNS[number])
        yield from (f"**Against the print.** {against(text, f'Table {number}')} {_same_order(records, number)}", "")
    if number == "4.6":
        yield from (f"**Against the print.** {against(_hard_besides(records), 'Table 4.6')}", "")
    if number in CHANGES:
        yield from (f"**Against the print**, in points, ours (printed). {CHANGES[number](records)}.", "")


def shifted_besides(
    records: Records, printed: Mapping[str, tuple[Shifted, ...]], methods: Sequence[str]
) -> list[Beside]:
    """Every error of a table of mismatches beside ours."""
    texts = []
    for data, rows in printed.items():
        for m, gains, errors, _ in rows:
            name = level_of(data, gains, m)
            for method, value in zip(methods, errors, strict=True):
                texts += _beside(records, name, method, value)
    return texts


def _beside(records: Records, name: str, method: str, value: float, metric: str = "error") -> list[Beside]:
    result = records.get(name, {}).get(method, [])
    mean, _, n = mean_sd(result, metric)
    return [Beside(f"{name} {method}", mean - value, noise(result, metric, HALVES))] if n else []


def _hard_besides(records: Records) -> list[Beside]:
    return [
        beside
        for data, rows in TABLE_46.items()
        for m, gains, _, it, vote, _ in rows
        for method, value in ((IT_004, it), ("majority", vote))
        for beside in _beside(records, Case("svm", data, gains, m).name, method, value)
    ]


def _same_order(records: Records, number: str) -> str:
    """How often the first method is ahead of each other one, in the print and with us."""
    printed, methods = PRINTED_COLUMNS[number]
    texts = []
    for j, other in enumerate(methods[1:], 1):
        theirs = ours = n = 0
        for data, rows in printed.items():
            for m, gains, errors, _ in rows:
                by = records.get(level_of(data, gains, m), {})
                first, second = (mean_sd(by.get(method, []), "error")[0] for method in (methods[0], other))
                if first == first and second == second:
                    n, theirs, ours = n + 1, theirs + (errors[0] < errors[j]), ours + (first < second)
        if n:
            texts.append(f"of {other} in {theirs} of {n} rows there, {ours} here")
    return f"{methods[0]} is ahead {'; '.join(texts)}." if texts else ""


def _copied(records: Records) -> str:
    """What twenty copies cost; the document has a split of its own for each number."""
    texts = []
    for data, by_method in TABLE_45.items():
        for theirs, pairs in by_method.items():
            name, method = Case("copies", data, *REDUNDANT[data]).name, IT_004 if theirs == "min-divergence" else theirs
            ours = _change(records, name, method, "error", f"copies_{COPIES[-1]}")
            texts.append((f"{data} {method}", ours, pairs[-1][1] - pairs[-1][0]))
    return f"With {COPIES[-1]} copies the error changes by: {_listed(texts)}"


def _absent(records: Records) -> str:
    texts = []
    for data, (label, safe, other) in MISSING.items():
        by = records.get(Case("missing", data, label).name, {})
        ours = mean_sd(by.get(TILDE_004, []), "error")[0] - mean_sd(by.get(IT_004, []), "error")[0]
        texts.append((data, ours, other[1] - safe[1]))
    return f"R~ in place of R changes the error by: {_listed(texts)}"


def _batched(records: Records) -> str:
    texts = []
    for data, (_, by_method) in TABLE_47.items():
        for theirs, values in by_method.items():
            name, method = Case("batches", data, *BATCHED[data]).name, IT_004 if theirs == "min-divergence" else theirs
            ours = _change(records, name, method, f"batch_{BATCH_PERCENT[0]}", "error")
            texts.append((f"{data} {method}", ours, values[-1] - values[0]))
    return f"From a tenth of the batch to all of it the error changes by: {_listed(texts)}"


def _change(records: Records, name: str, method: str, before: str, after: str) -> float:
    result = records.get(name, {}).get(method, [])
    return mean_sd(result, after)[0] - mean_sd(result, before)[0]


def _listed(texts: list[tuple[str, float, float]]) -> str:
    """Those that were run."""
    return "; ".join(f"{name} {ours:+.1f} ({printed:+.1f})" for name, ours, printed in texts if ours == ours)


CHANGES = {"4.5": _copied, "Mis": _absent, "4.7": _batched}


def _means(records: Records) -> Iterator[str]:
    """All methods over all shifted batches: ours alone."""
    names = [name for name in records if CASES[name].kind == "shift"]
    methods = [m for m in SOFT if names and all(records[name].get(m) for name in names)]
    if methods:
        rows = []
        for metric, title, digits in (
            ("error", "error %", 1),
            ("log_loss", "log-loss", 3),
            ("prior_error", "prior, %", 1),
        ):
            means = [sum(mean_sd(records[n][m], metric)[0] for n in names) / len(names) for m in methods]
            rows.append([title, *(f"{mean:.{digits}f}" for mean in means)])
        yield from (f"**All methods, means over the {len(names)} shifted batches** (not in the document):", "")
        yield from table_lines(["", *methods], rows)


FUSION_SECTION = Section(
    "Tables 4.2 to 4.7 and 6.1: five classifiers fused on a batch of other priors",
    "Five naive Bayes classifiers on columns drawn at random, five times two halves; the test half is drawn again at "
    "other priors. Which columns and, but for Diabetes, which priors were drawn is not in the document: levels can "
    "differ for that reason alone, and where the side of a shift is not stated that side was taken whose fixed rules "
    "come nearer to the print, so the columns of fixed rules are no independent agreement. "
    f"{' '.join(views.NOTES[:2])} Chapter 5 cannot be rerun (its scores are not public); "
    "[fusion-biometric.md](fusion-biometric.md) has simulated ones of the same sizes.",
    FUSION,
    fusion_lines,
)

# --- beyond the documents ---------------------------------------------------------------------------------------------


def judges_lines(result: Found) -> Iterator[str]:
    names = list(dict.fromkeys(m for by in result.values() for m, records in by.items() if records))
    rows = [[m, *(cell for by in result.values() for cell in _judged(by.get(m, [])))] for m in names]
    heads = [f"{s.name}: {what}" for s in result for what in ("error %", "log-loss")]
    yield from table_lines(["method", *heads], rows)
    for metric, name in (("loss", "log-loss"), ("wrong", "error")):
        texts = [f"{s.name}: {panel.near(by, AUTO, panel.FREE, metric)}" for s, by in result.items() if by.get(AUTO)]
        if texts:
            yield from (f"**`auto` within one s.e. of the best label-free method in {name}?** {'; '.join(texts)}.", "")
    shares = [
        f"{s.name} {100 * mean_sd(by.get(AUTO, []), 'covered')[0]:.0f} %" for s, by in result.items() if by.get(AUTO)
    ]
    yield from (f"The 95 % interval of the priors covered them in: {', '.join(shares)}.", "")


def _judged(records: list[dict]) -> list[str]:
    return [mean_text(records, "wrong", 1), mean_text(records, "loss", 3)] if records else ["–", "–"]


JUDGES_SECTION = Section(
    "Language models as judges",
    "LLMBar: twelve judges of six base models, each calibrated on 100 items of its own; the batch is resampled to "
    "stated priors; 20 splits. No document prints these.",
    panel.JUDGES_TABLE,
    judges_lines,
)


@dataclass(frozen=True)
class VotesSection:
    """Simulated votes, whose records are by case."""

    title: str = "Simulated votes"

    def lines(self, inputs: Inputs) -> list[str]:
        store = Store("votes", inputs.results)
        results = {case: simulated.stored(store, case) for case in simulated.CASES}
        results = {case: by for case, by in results.items() if by}
        intro = (
            "Five sources of accuracies .65 to .85, independent, with 5 or 20 copies of one, or with errors in common "
            "(r). `auto` should be within one point of the better of product and pool. Error %, mean over the repeats."
        )
        lines = [f"### {self.title}", "", intro, ""]
        if not results:
            return [*lines, not_run("votes"), ""]
        heads = ["sources", "K", "N", *simulated.METHODS, "auto - better"]
        rows = [[case.kind, str(case.n_classes), str(case.n_items), *_votes(by)] for case, by in results.items()]
        records = [r for by in results.values() for rs in by.values() for r in rs]
        files = [store.path(case.name) for case in results]
        lines += [*table_lines(heads, rows), *_votes_words(results)]
        return [*lines, *provenance("votes", records, files), ""]


def _votes(by: Mapping[str, list[dict]]) -> list[str]:
    cells = [f"{mean_sd(by.get(m, []), 'error')[0]:.1f}" for m in simulated.METHODS]
    return [*cells, f"{simulated.behind(by):+.1f}"]


def _votes_words(results: Mapping[simulated.Case, Mapping[str, list[dict]]]) -> list[str]:
    far = [case.name for case, by in results.items() if simulated.behind(by) > simulated.POINT]
    cover = [100 * mean_sd(by["auto"], "covered")[0] for by in results.values()]
    repeats = max(len(by["auto"]) for by in results.values())
    text = f"`auto` is more than a point behind in {len(far)} of {len(results)} cases"
    text += f" ({'; '.join(far)})" * bool(far) + f"; its 95 % intervals cover the priors in {min(cover):.1f} to "
    return [f"**{repeats} repeats.** {text}{max(cover):.1f} %.", ""]


@dataclass(frozen=True)
class CrowdsSection:
    """Workers' votes, whose records are by set."""

    title: str = "Votes of crowds"

    def lines(self, inputs: Inputs) -> list[str]:
        store = Store("crowds", inputs.results)
        results = {name: people.stored(store, name) for name in people.SETS}
        results = {name: by for name, by in results.items() if any(by.values())}
        intro = (
            "Labels of workers; a fifth of the items is gold, known to the methods that may use it; errors are of the "
            "others. Error % / log-loss."
        )
        lines = [f"### {self.title}", "", intro, ""]
        if not results:
            return [*lines, not_run("crowds"), ""]
        rows = [[name, *map(_crowd_cell, by.values()), str(len(by[people.MAJORITY]))] for name, by in results.items()]
        records = [r for by in results.values() for rs in by.values() for r in rs]
        lines += table_lines(["set", *people.METHODS, "splits"], rows)
        lines += [*_crowd_words(results)]
        return [*lines, *provenance("crowds", records, [store.path(name) for name in results]), ""]


def _crowd_cell(records: list[dict]) -> str:
    return f"{mean_sd(records, 'error')[0]:.1f} / {mean_sd(records, 'log_loss')[0]:.3f}" if records else "–"


def _crowd_words(results: Mapping[str, Mapping[str, list[dict]]]) -> Iterator[str]:
    texts = []
    for metric, name in (("error", "error"), ("log_loss", "log-loss")):
        for method in (people.ALONE, "calibrated, auto"):
            means = [[mean_sd(by[m], metric)[0] for m in (method, people.MAJORITY)] for by in results.values()]
            texts.append(f"{method} below majority in {name} on {sum(a < b for a, b in means)} of {len(means)} sets")
    yield f"**In short.** {'; '.join(texts)}."
    yield ""


VOTES_SECTION, CROWDS_SECTION = VotesSection(), CrowdsSection()
