"""Sections of the page for documents 000, 002 and 003: mixtures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from benchmarks.tables.accuracy import ACCURACY
from benchmarks.tables.beside import WORDS, Part, mean_text, pair_words, part_lines, significance
from benchmarks.tables.incremental import (
    BY_DIC,
    CLAIMS,
    DEFAULT,
    GROWN_BIC,
    GROWN_DIC,
    INCREMENTAL,
    RESTART_BIC,
    RESTART_DIC,
    ROBUST,
)
from benchmarks.tables.markdown import table_lines
from benchmarks.tables.section import Section
from benchmarks.tables.show import Found
from benchmarks.tables.waveform import LIKELIHOOD, MODELS, OBJECTIVES, WAVEFORM, name_of

# --- document 000 -----------------------------------------------------------------------------------------------------


def waveform_lines(result: Found) -> Iterator[str]:
    for metric, title, digits in (("error", "Error %", 1), ("log_loss", "Log-loss", 3)):
        rows = [
            [f"{setting.train_rows} rows", model, *_row(by, model, metric, digits)]
            for setting, by in result.items()
            for model in MODELS
            if by.get(name_of(model, LIKELIHOOD))
        ]
        yield from (f"{title}, mean ± s.e. over the splits:", "")
        yield from table_lines(["training", "components", *OBJECTIVES], rows)
    yield from _waveform_words(result)


def _row(by: Mapping[str, list[dict]], model: str, metric: str, digits: int) -> list[str]:
    cells = [by.get(name_of(model, objective), []) for objective in OBJECTIVES]
    return [mean_text(records, metric, digits) if records else "–" for records in cells]


def _waveform_words(result: Found) -> Iterator[str]:
    """The document holds that the conditional likelihood is what matters: is it so on new rows?"""
    texts = []
    for metric, name in (("error", "error"), ("log_loss", "log-loss")):
        for trained in ("conditional", "conditional, early stop", "error"):
            pairs = [
                (by.get(name_of(m, trained), []), by.get(name_of(m, LIKELIHOOD), []))
                for by in result.values()
                for m in MODELS
            ]
            outcomes = Counter(significance(*pair, metric) for pair in pairs)
            counts = ", ".join(f"{word} in {outcomes[word]}" for word in WORDS)
            texts.append(f"*{trained}*, {name}: {counts}")
    yield f"**Against likelihood, same splits**, over models and sizes. {'; '.join(texts)}."
    yield ""


# --- document 002 -----------------------------------------------------------------------------------------------------

FOUR = {RESTART_BIC: "restart BIC", RESTART_DIC: "restart DIC", GROWN_BIC: "grown BIC", GROWN_DIC: "grown DIC"}
OURS_OF_002 = {BY_DIC: "grown DIC, strictly", ROBUST: "grown robust DIC", DEFAULT: "our default"}


def incremental_lines(result: Found) -> Iterator[str]:
    yield from ("Error %, ours (printed):", "")
    yield from part_lines(result, Part(INCREMENTAL, FOUR | OURS_OF_002, document="Table 1"))
    yield from ("Means and variances, 2dK, ours (printed):", "")
    yield from part_lines(result, Part(INCREMENTAL, FOUR | OURS_OF_002, "n_means_variances", 0, document="Table 2"))
    yield from _claims(result)


def _claims(result: Found) -> Iterator[str]:
    """The document concludes that DIC is more accurate, and grown needs fewer parameters."""
    part = Part(INCREMENTAL, FOUR)
    texts = [pair_words(result, part, *pair) for pair in CLAIMS.values()]
    if any(texts):
        yield f"**The document's comparisons, in error.** {' '.join(t for t in texts if t)}"
        yield ""
    sizes = [pair_words(result, Part(INCREMENTAL, FOUR, "n_means_variances"), *pair) for pair in CLAIMS.values()]
    if any(sizes):
        yield f"**In number of parameters (better: fewer).** {' '.join(t for t in sizes if t)}"
        yield ""


# --- document 003 and the marks ---------------------------------------------------------------------------------------

DEFAULTS = {"mixent": "MixtureClassifier", "maxent": "MaxEntClassifier", "mixent 1 VVV": "one Gaussian"}
PEERS = {"QDA-reg": "QDA-reg", "GMM BIC": "GMM BIC", "GMM tuned": "GMM tuned", "LR": "LR", "linear SVM": "linear SVM"}
PAIRS = (("mixent", "QDA-reg"), ("mixent", "GMM tuned"), ("mixent", "LR"), ("maxent", "LR"))


def accuracy_lines(result: Found) -> Iterator[str]:
    columns = DEFAULTS | PEERS
    yield from ("Error %; in brackets what a document printed (first column) or ACCURACY.md measured (peers):", "")
    yield from part_lines(result, Part(ACCURACY, columns, pairs=PAIRS, document="the documents and ACCURACY.md"))
    yield from ("Log-loss:", "")
    yield from part_lines(result, Part(ACCURACY, columns, "log_loss", 3, pairs=PAIRS, document="ACCURACY.md"))
    yield from (
        "The marks of ACCURACY.md, set by set (number: ratio to logistic regression, share of the gap closed):",
        "",
    )
    rows = [[s.name, *(mark(by) for mark in ACCURACY.marks.values())] for s, by in result.items()]
    yield from table_lines(["set", *ACCURACY.marks], rows)
    yield from _marks(rows)


def _marks(rows: list[list[str]]) -> Iterator[str]:
    texts = []
    for j, name in enumerate(ACCURACY.marks, 1):
        outcomes = [row[j].split()[0] for row in rows if row[j] != "-"]
        missed = [row[0] for row in rows if row[j].startswith("miss")]
        tail = f" (missed: {', '.join(missed)})" if missed else ""
        texts.append(f"({name}) passed on {outcomes.count('pass')} of {len(outcomes)}{tail}")
    yield f"**Marks.** {'; '.join(texts)}."
    yield ""


def _sections() -> Iterable[Section]:
    yield Section(
        "Training for the posterior (000, section IV)",
        "Document 000 prints theorems and no table of numbers. Its orchestra (section V) is an example of ours, "
        "[discriminative.md](discriminative.md) and `python examples/orchestra.py`. What training for the posterior "
        "(Theorem 4.2) brings is measured here on waveform, whose Bayes error is 14 %: ten random splits with 300 and "
        "ten with 2500 training rows, all others for testing, diagonal covariances.",
        WAVEFORM,
        waveform_lines,
    )
    yield Section(
        "Tables 1 and 2: grown or restarted mixtures, BIC or DIC (002)",
        "Ten folds; the criterion chooses in each of nine inner folds, and of these choices the one with the least "
        "held-out error is fitted to all training rows, as in the document. Heart is either of two sets, of which the "
        "document does not state which. Diagonal covariances but for our default.",
        INCREMENTAL,
        incremental_lines,
    )
    yield Section(
        "Mixtures with Bayes' rule, and the marks of ACCURACY.md (003)",
        "Document 003 prints a table of covariance structures and no result; its classifier is `MixtureClassifier`. "
        "Stratified folds, the same for all methods; satimage and horse_colic keep their own split, so that their "
        "standard errors are over test rows. Sets from hepatitis on have categories and missing values: ours take them "
        "as they are, the peers one-hot and imputed.",
        ACCURACY,
        accuracy_lines,
    )


WAVEFORM_SECTION, INCREMENTAL_SECTION, ACCURACY_SECTION = _sections()
