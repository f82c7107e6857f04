"""Ours beside what a document printed: cells with standard errors, and in words what agrees and what does not.

A printed number is the mean of one run of the document's own folds. Ours is taken to agree within two standard
errors of the difference of such means,

    noise^2 = 4 v (1/J + 1/P + 2 n_test/n_train),

v the variance of the metric over our folds, J their number and P the document's: the term of Nadeau and Bengio (2003)
stands for training rows that folds share, and falls away where the print is of one split. With one split of ours v is
that of the test rows, J and P their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.tables.compare import UNIT, difference, mean_sd, values
from benchmarks.tables.markdown import table_lines
from benchmarks.tables.show import Found
from benchmarks.tables.table import Table

LEVEL = 0.05  # two-sided, of differences on the same folds
WITHIN = "within noise"
WORDS = ("better", WITHIN, "worse")


@dataclass(frozen=True)
class Part:
    """A table of the page: sets down, methods across, one metric."""

    table: Table
    methods: Mapping[str, str]  # by name: the head of the column
    metric: str = "error"
    digits: int = 1
    pairs: tuple[tuple[str, str], ...] = ()  # (ours, other): differences described in words
    printed_folds: int | None = None  # of the document; None: as many as ours have in one run
    document: str = "the document"


@dataclass(frozen=True)
class Beside:
    """One of our means beside a printed value; lower is better, so a `gap` above 0 means that ours is worse."""

    place: str
    gap: float
    noise: float

    @property
    def word(self) -> str:
        if not abs(self.gap) > self.noise:
            return WITHIN
        return "worse" if self.gap > 0 else "better"


def std_error(records: list[dict], metric: str) -> float:
    """Of the mean: over folds with the term for shared rows, over the test rows where there is one split."""
    variance, n, overlap = _spread(records, metric)
    return float(np.sqrt(variance * (1 / n + overlap))) if n > 1 else float("nan")


def noise(records: list[dict], metric: str, printed_folds: int | None) -> float:
    """Two standard errors of our mean less a printed one; NaN where ours has no spread."""
    variance, n, overlap = _spread(records, metric)
    if n < 2:
        return float("nan")
    theirs = printed_folds or (n if _one_split(records) else records[0]["n_folds"])
    return 2.0 * float(np.sqrt(variance * (1 / n + 1 / theirs + 2 * overlap * (theirs > 1))))


def _spread(records: list[dict], metric: str) -> tuple[float, int, float]:
    """Variance, how many it is of, share of test to training rows where folds overlap."""
    good = [r for r in records if not r["failed"]]
    if _one_split(good) and metric in good[0].get("rows", {}):
        rows = UNIT.get(metric, 1.0) * np.array(good[0]["rows"][metric])
        return float(rows.var(ddof=1)), len(rows), 0.0
    result = values(good, metric)
    if len(result) < 2:
        return float("nan"), len(result), 0.0
    return float(result.var(ddof=1)), len(result), _overlap(good)


def _overlap(records: list[dict]) -> float:
    """n_test / n_train of three or more folds; 0 for halves, and for random splits, which are as many as one likes."""
    share = float(np.mean([r["n_test"] / r["n_train"] for r in records]))
    n_folds = records[0]["n_folds"]
    return share if n_folds > 2 and abs(share * (n_folds - 1) - 1) < 0.2 else 0.0


def _one_split(records: list[dict]) -> bool:
    return len(records) == 1 and "rows" in records[0]


# --- lines ------------------------------------------------------------------------------------------------------------


def part_lines(result: Found, part: Part) -> list[str]:
    """The table and its summary; nothing where nothing was run."""
    some = {s: by for s, by in result.items() if any(by.get(m) for m in part.methods)}
    if not some:
        return []
    shown = {m: head for m, head in part.methods.items() if any(by.get(m) for by in some.values())}
    rows = [
        [s.name, _folds(by, shown), *(cell(part, s.name, m, by.get(m, [])) for m in shown)] for s, by in some.items()
    ]
    return [*table_lines(["set", "folds", *shown.values()], rows), *words(some, part)]


def _folds(by: Mapping[str, list[dict]], shown: Mapping[str, str]) -> str:
    counts = sorted({len(by[m]) for m in shown if by.get(m)})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def cell(part: Part, name: str, method: str, records: list[dict]) -> str:
    """mean ± s.e. (printed)."""
    printed = part.table.printed.get((name, method, part.metric))
    n = mean_sd(records, part.metric)[2]
    text = mean_text(records, part.metric, part.digits) if n else "failed" if _all_failed(records) else "–"
    return text if printed is None else f"{text} ({printed.value:g})"


def _all_failed(records: list[dict]) -> bool:
    """Whether there is no number because every fit failed, and not because the metric makes no sense here."""
    return bool(records) and all(r["failed"] for r in records)


def mean_text(records: list[dict], metric: str, digits: int) -> str:
    mean, error = mean_sd(records, metric)[0], std_error(records, metric)
    return f"{mean:.{digits}f}" + f" ± {error:.{digits}f}" * bool(np.isfinite(error))


def words(result: Found, part: Part) -> list[str]:
    return [*_beside_print(result, part), *_beside_peers(result, part)]


def besides(result: Found, part: Part) -> list[Beside]:
    """Every number of the table that the document has too."""
    texts = []
    for setting, by in result.items():
        for method in part.methods:
            printed = part.table.printed.get((setting.name, method, part.metric))
            mean, _, n = mean_sd(by.get(method, []), part.metric)
            if printed is not None and n:
                place = f"{setting.name} {part.methods[method]}"
                texts.append(Beside(place, mean - printed.value, noise(by[method], part.metric, part.printed_folds)))
    return texts


def _beside_print(result: Found, part: Part) -> Iterator[str]:
    text = besides(result, part)
    if text:
        yield f"**Against the print.** {against(text, part.document)}"
        yield ""


def against(texts: Sequence[Beside], document: str) -> str:
    """Counts, and the names where the two differ."""
    by = {word: [b.place for b in texts if b.word == word] for word in WORDS}
    n = len(texts)
    text = f"Of {n} number{'s' * (n != 1)} printed in {document}, ours are within noise in {len(by[WITHIN])}, "
    text += f"better in {len(by['better'])}{_named(by['better'])}, worse in {len(by['worse'])}{_named(by['worse'])}."
    return text


def _named(places: Sequence[str]) -> str:
    if not places:
        return ""
    more = f" and {len(places) - 8} more" if len(places) > 8 else ""
    return f" ({'; '.join(places[:8])}{more})"


def _beside_peers(result: Found, part: Part) -> Iterator[str]:
    texts = [text for text in (pair_words(result, part, *pair) for pair in part.pairs) if text]
    if texts:
        yield f"**Same folds.** {' '.join(texts)}"
        yield ""


def significance(first: list[dict], second: list[dict], metric: str) -> str | None:
    """Whether `one` is better than `two` on the same folds; None where there are not two of them."""
    gap = difference(first, second, metric)
    if gap.df < 1:
        return None
    if gap.p_value >= LEVEL:
        return WITHIN
    return "worse" if gap.mean > 0 else "better"


def pair_words(result: Found, part: Part, first: str, second: str) -> str:
    """On how many sets `one` is better than `two`, within noise, worse."""
    words = {s.name: significance(by.get(first, []), by.get(second, []), part.metric) for s, by in result.items()}
    by_word = {word: [name for name, w in words.items() if w == word] for word in WORDS}
    n = sum(map(len, by_word.values()))
    if not n:
        return ""
    names = [part.methods.get(m, m) for m in (first, second)]
    better, within, worse = (by_word[word] for word in WORDS)
    return (
        f"{names[0]} against {names[1]}: better on {len(better)}{_named(better)}, within noise on {len(within)}, "
        f"worse on {len(worse)}{_named(worse)} of {n} sets."
    )
