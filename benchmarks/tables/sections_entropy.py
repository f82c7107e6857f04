"""Sections of the page for chapters 2 and 3 of document 004: maximum entropy, and ensembles."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.tables import ensembles as boosted
from benchmarks.tables import inference, maxent
from benchmarks.tables.beside import Part, against, besides, mean_text, pair_words, part_lines
from benchmarks.tables.compare import mean_sd
from benchmarks.tables.ensembles_combiners import SIZES
from benchmarks.tables.markdown import grid_lines, table_lines
from benchmarks.tables.section import Section
from benchmarks.tables.show import Found
from benchmarks.tables.table import Table

# --- chapter 2 --------------------------------------------------------------------------------------------------------

KINDS = {
    "union": "union",
    "union, no means": "no means",
    "class": "class",
    "class, IIS": "class, IIS",
    "pooled": "pooled",
    "quantize": "quantize",
    "moments": "moments",
    "union, groups": "union, groups",
    "class, groups": "class, groups",
    "union, forward": "forward",
}
PEERS = {"LR": "LR", "boosting": "boosting"}
LATENT = {m: head for m, head in KINDS.items() if m not in ("union, no means", "union, forward", "class, IIS")}


def table_21(result: Found) -> Iterator[str]:
    yield from _kinds(result, maxent.CONTINUOUS, "Table 2.1")
    yield from _only_printed(result, maxent.CONTINUOUS)


def table_22(result: Found) -> Iterator[str]:
    yield from _kinds(result, maxent.MIXED, "Table 2.2")
    yield from _only_printed(result, maxent.MIXED)


def _kinds(result: Found, table: Table, document: str) -> Iterator[str]:
    pairs = (("union", "LR"), ("union", "boosting"), ("union", "class"), ("union", "union, no means"))
    yield from ("Error %, ours (printed):", "")
    yield from part_lines(result, Part(table, LATENT | PEERS, pairs=pairs[:3], document=document))
    yield from ("Other ways to fit, error %:", "")
    others = {m: head for m, head in KINDS.items() if m not in LATENT}
    yield from part_lines(result, Part(table, {"union": "union", **others}, pairs=pairs[3:], document=document))
    yield from ("Log-loss:", "")
    yield from part_lines(result, Part(table, LATENT | PEERS, "log_loss", 3, pairs=pairs[:2]))


def _only_printed(result: Found, table: Table) -> Iterator[str]:
    texts = [
        f"{s.name} {method} {table.printed[s.name, method, 'error'].value:g}"
        for s in result
        for method in (maxent.BEST, maxent.SVM)
        if (s.name, method, "error") in table.printed
    ]
    if texts:
        yield from (f"Printed beside, of other methods: {'; '.join(texts)}. {maxent.NOTES[1]}", "")


def table_23(result: Found) -> Iterator[str]:
    names = {inference.JOINT: "joint", "joint, IIS": "joint, IIS", inference.BAYES: "naive Bayes", **PEERS}
    texts = []
    for criterion, metric in inference.CRITERIA.items():
        part = Part(inference.INFERENCE, names, metric, 2, document="Table 2.3")
        yield from (f"Criterion {criterion}, error % (printed):", "")
        yield from part_lines(result, part)
        texts += [pair_words(result, part, inference.JOINT, inference.BAYES)]
    if any(texts):
        yield from (f"**Criteria 1, 2, 3.** {' '.join(t for t in texts if t)}", "")


# --- chapter 3 --------------------------------------------------------------------------------------------------------


def ensembles_lines(result: Found) -> Iterator[str]:
    whole = {s: by for s, by in result.items() if not boosted.is_halved(s)}
    halved = {s: by for s, by in result.items() if boosted.is_halved(s)}
    yield from ("**Tables 3.3, 3.4 and 3.7**, error % by number of stages, ours (printed):", "")
    for setting, by in whole.items():
        yield from (f"*{setting.name}:*", "")
        rows = [_sizes(setting.name, method, records) for method, records in by.items() if records]
        yield from table_lines(["method", *map(str, SIZES), "s.e.", "log-loss", "folds"], rows)
    yield from _ensemble_words(whole)
    if halved:
        yield from ("**Table 3.5**, the 5x2cv F test:", "")
        yield from grid_lines(boosted.f_tests(halved))
        yield from _f_words(halved)
    yield (
        "**Table 3.6**, minutes of a trial, is measured beside scikit-learn's stacking by "
        "`python -m benchmarks.speed --case ensembles`."
    )
    yield ""


def _sizes(name: str, method: str, records: list[dict]) -> list[str]:
    cells = []
    for n in SIZES:
        mean = mean_sd(records, f"error_{n}")[0]
        printed = boosted.ENSEMBLES_TABLE.printed.get((name, method, f"error_{n}"))
        text = f"{mean:.1f}" if mean == mean else "–"
        cells.append(f"{text} ({printed.value:.1f})" if printed else text)
    spread = mean_text(records, f"error_{SIZES[-1]}", 1).partition("± ")[2]
    loss = "" if method in boosted.HARD else f"{mean_sd(records, 'log_loss')[0]:.3f}"
    return [method, *cells, spread, loss, str(len(records))]


def _ensemble_words(result: Found) -> Iterator[str]:
    """At the largest size; the other sizes are of the same folds."""
    names = [m for m in boosted.methods_at(SIZES) if m != boosted.SKLEARN]
    part = Part(boosted.ENSEMBLES_TABLE, {m: m for m in names}, f"error_{SIZES[-1]}")
    text = besides(result, part)
    if text:
        yield from (f"**Against the print, {SIZES[-1]} stages.** {against(text, 'these tables')}", "")
    last = Part(boosted.ENSEMBLES_TABLE, {}, "error")
    pairs = (boosted.LVME, boosted.ADA), (boosted.SIME, boosted.ADA), (boosted.LVME_004, boosted.ADA)
    more = (boosted.SIME_004, boosted.ADA), (boosted.SIME, boosted.STACKING), (boosted.SIME, boosted.HMM)
    outputs = [pair_words(result, last, *pair) for pair in (*pairs, *more)]
    if any(outputs):
        yield from (f"**Same folds, {SIZES[-1]} stages.** {' '.join(t for t in outputs if t)}", "")


def _f_words(result: Found) -> Iterator[str]:
    agree, n = 0, 0
    for setting, by in result.items():
        for method, ours in (("SiME", boosted.SIME_004), ("LvME", boosted.LVME_004)):
            for rival, printed in zip(boosted.RIVALS, boosted.F_TESTS[setting.dataset][method]):
                f = boosted.f_test(by.get(ours, []), by.get(rival, []))
                if f is not None and printed is not None:
                    n += 1
                    agree += (f.f > boosted.TESTED) == (printed > boosted.TESTED)
    if n:
        yield f"**Against the print.** Whether F is above {boosted.TESTED} agrees in {agree} of {n} printed tests."
        yield ""


CONTINUOUS_SECTION = Section(
    "Table 2.1: continuous columns",
    "What continuous columns become: components of a mixture that knows all classes (union, our default, which also "
    "constrains the columns' means), of one per class (class, the document's), of one that knows none (pooled), bins "
    f"(quantize), moments. {' '.join(maxent.NOTES[i] for i in (0, 2, 5, 6))}",
    maxent.CONTINUOUS,
    table_21,
)
MIXED_SECTION = Section(
    "Table 2.2: mixed columns",
    "The same on tables with categories and missing values, which stay as they are.",
    maxent.MIXED,
    table_22,
)
INFERENCE_SECTION = Section(
    "Table 2.3: any column from the rest",
    "Criterion 1 is the error of the class, 2 the mean error over columns, 3 over every two. "
    f"{' '.join(inference.NOTES)}",
    inference.INFERENCE,
    table_23,
)
ENSEMBLES_SECTION = Section(
    "Tables 3.3 to 3.7: combining boosted classifiers",
    'Boosted Gaussian naive Bayes and its combiners. "004": the combiner learns from outputs of stages on their own '
    "training rows, as in the document; without a mark: out of fold. The document has ten times ten folds. "
    f"{' '.join(boosted.NOTES[1:9])}",
    boosted.ENSEMBLES_TABLE,
    ensembles_lines,
)
