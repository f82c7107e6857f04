"""What `compare` found over the sets: our best family beside scikit-learn's best, ranks, tests, marks.

The best of several means is a little too good, for either side and more so for the side with more methods. So the sides
are compared twice: by the best in hindsight, and by the one that the other folds would have chosen, fold by fold,

    score(side) = mean_f s(f, argmin_m mean_{g != f} s(g, m)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks.tables.accuracy import ALLOWED, BEHIND, HEARTS
from benchmarks.tables.beside import LEVEL, significance
from benchmarks.tables.compare import UNIT, difference, mean_sd
from benchmarks.tables.comparison import N_SETS, NAME, Compared, sheet_path
from benchmarks.tables.markdown import table_lines
from benchmarks.tables.printed import BEST, DOCUMENTS, TODAY
from benchmarks.tables.section import Inputs, provenance
from benchmarks.tables.store import Store
from mixent.evaluate import compare_over_sets, signed_rank_test

OURS, THEIRS, CLASSICAL = "mixent", "scikit-learn", "classical"
METRICS = {"error": ("error %", 1), "log_loss": ("log-loss", 3)}
LOGISTIC, STACK = "logistic regression", "stack"
LIKE_LOGISTIC = ("maximum entropy", "linear MED")  # mark (d)
MATCHED = (*HEARTS, "pima")
Sets = Mapping[str, Compared]
Score = Callable[[Compared, list[str], str], float]

# --- scores of a side -------------------------------------------------------------------------------------------------


def best(run: Compared, methods: list[str], metric: str) -> str | None:
    """The method with the lowest mean."""
    return min(methods, key=lambda m: mean_sd(run.by_method[m], metric)[0], default=None)


def in_hindsight(run: Compared, methods: list[str], metric: str) -> float:
    name = best(run, methods, metric)
    return float("nan") if name is None else mean_sd(run.by_method[name], metric)[0]


def by_other_folds(run: Compared, methods: list[str], metric: str) -> float:
    """Mean over the folds of the method that is best on all other folds."""
    table = scores_of(run, methods, metric)
    if not table.size:
        return float("nan")
    others = (table.sum(axis=0) - table) / max(1, len(table) - 1)
    return float(table[np.arange(len(table)), others.argmin(axis=1)].mean())


def scores_of(run: Compared, methods: list[str], metric: str) -> np.ndarray:
    """(folds, methods) in the table's unit."""
    columns = [{(r["repeat"], r["fold"]): r[metric] for r in run.by_method[m]} for m in methods]
    places = sorted(columns[0]) if columns else []
    return UNIT.get(metric, 1.0) * np.array([[column[place] for column in columns] for place in places])


WAYS: dict[str, Score] = {"best in hindsight": in_hindsight, "chosen on the other folds": by_other_folds}

# --- lines ------------------------------------------------------------------------------------------------------------


def lines(matches: Sets, results: Path | None = None) -> list[str]:
    """Summary, sets, methods, marks."""
    matches = {name: run for name, run in matches.items() if run.methods(OURS) and run.methods(THEIRS)}
    if not matches:
        return [f"Not run yet: `python -m benchmarks.tables --table {NAME}`.", ""]
    texts = [*summary_lines(matches), *set_lines(matches), *method_lines(matches), *mark_lines(matches)]
    if results is not None:
        store = Store(NAME, results)
        records = [r for run in matches.values() for rs in run.by_method.values() for r in rs]
        texts += [*provenance(NAME, records, [sheet_path(store, name) for name in matches]), ""]
    return texts


def summary_lines(result: Sets) -> Iterator[str]:
    """Wins and tests of the two sides."""
    sides = {"all of ours": None, "ours without the stack": STACK}
    rows = [
        [head, way, METRICS[metric][0], *_sides(result, score, metric, left_out)]
        for head, left_out in sides.items()
        for way, score in WAYS.items()
        for metric in METRICS
    ]
    heads = ["families", "each side's method", "by", "ahead", "level", "behind", "mean ours", "mean theirs", "p"]
    n = f"{len(result)} of the {N_SETS} sets"
    yield f"**Ours against scikit-learn's six over {n}** (p: signed-rank test over the sets):"
    yield ""
    yield from table_lines(heads, rows)
    yield from _beyond_noise(result)
    taken = [run.sheet.kinds.get(str(run.sheet.recommended)) for run in result.values()]
    yield (
        f"`compare` recommends (lowest mean log-loss) one of ours on {taken.count(OURS)} sets, one of scikit-learn's "
        f"on {taken.count(THEIRS)}, a classical one on {taken.count(CLASSICAL)}. Our stack has scikit-learn's forest "
        "and boosting among its parts, so the lines without it show what our own models do alone."
    )
    yield ""


def _sides(result: Sets, score: Score, metric: str, left_out: str | None) -> list[str]:
    ours, theirs = [], []
    for run in result.values():
        mine = [m for m in run.methods(OURS) if m != left_out]
        pair = score(run, mine, metric), score(run, run.methods(THEIRS), metric)
        if np.isfinite(pair).all():
            ours.append(pair[0])
            theirs.append(pair[1])
    if not ours:
        return []
    test = signed_rank_test(ours, theirs, names=("ours", "theirs"))
    digits = METRICS[metric][1] + 1
    means = [f"{np.mean(side):.{digits}f}" for side in (ours, theirs)]
    return [str(test.wins), str(test.ties), str(test.losses), *means, f"{test.p_value:.3f}"]


def _beyond_noise(result: Sets) -> Iterator[str]:
    """Set by set, paired over the folds: the two that are best in hindsight."""
    for metric, (head, _) in METRICS.items():
        by: dict[str, list[str]] = {}
        for name, run in result.items():
            ours, theirs = (run.by_method[str(best(run, run.methods(kind), metric))] for kind in (OURS, THEIRS))
            by.setdefault(significance(ours, theirs, metric) or "unknown", []).append(name)
        named = {word: f" ({', '.join(by[word])})" if by.get(word) else "" for word in ("better", "worse")}
        yield (
            f"By {head}, set by set over the folds: ours better beyond noise on {len(by.get('better', []))}"
            f"{named['better']}, worse on {len(by.get('worse', []))}{named['worse']}, "
            f"not significantly different on {len(by.get('within noise', []))} (Nadeau-Bengio, p < {LEVEL:g})."
        )
        yield ""


def set_lines(result: Sets) -> Iterator[str]:
    yield from (
        "**The best of each side, set by set**, in hindsight; differences ± corrected s.e., * beyond noise.",
        "",
    )
    for metric, (head, _) in METRICS.items():
        last = "printed" if metric == "error" else "recommended"
        heads = ["set", "rows", "ours", head, "scikit-learn", head, "ours - theirs", last]
        rows = [[name, str(run.sheet.n_rows), *_set_cells(run, metric)] for name, run in result.items()]
        ends = [_printed(name) if metric == "error" else str(run.sheet.recommended) for name, run in result.items()]
        yield from table_lines(heads, [[*row, end] for row, end in zip(rows, ends)])


def _set_cells(run: Compared, metric: str) -> list[str]:
    digits = METRICS[metric][1]
    names = [str(best(run, run.methods(kind), metric)) for kind in (OURS, THEIRS)]
    gap = difference(run.by_method[names[0]], run.by_method[names[1]], metric)
    text = f"{gap.mean:+.{digits}f} ± {gap.se:.{digits}f}" + "*" * bool(gap.p_value < LEVEL)
    cells = [(name, f"{mean_sd(run.by_method[name], metric)[0]:.{digits}f}") for name in names]
    return [*cells[0], *cells[1], text]


def _printed(name: str) -> str:
    return ", ".join(f"{value:g} ({source})" for source, value in DOCUMENTS.get(name, ()))


def method_lines(result: Sets) -> Iterator[str]:
    """Every single method: mean rank among those that ran, and how it stands to logistic regression."""
    kinds = {m: kind for run in result.values() for m, kind in run.sheet.kinds.items() if m in run.methods()}
    ranks = {metric: {name: _ranks(run, metric) for name, run in result.items()} for metric in METRICS}
    rows = [_method_row(result, ranks, m, kind) for m, kind in kinds.items()]
    rows.sort(key=lambda row: float(row[5]))
    heads = ["method", "of", "sets", "least error on", "mean rank, error", "mean rank, log-loss", "least log-loss on"]
    yield from ("**Every method alone**: nothing chosen by looking; ranks among all that ran on the set, 1 best:", "")
    yield from table_lines([*heads, "log-loss / logistic", "s / fit"], rows)
    yield from _over_sets(result)


def _ranks(run: Compared, metric: str) -> dict[str, float]:
    from scipy.stats import rankdata

    methods = run.methods()
    return dict(zip(methods, rankdata([mean_sd(run.by_method[m], metric)[0] for m in methods])))


def _method_row(result: Sets, ranks: Mapping[str, Mapping[str, Mapping[str, float]]], m: str, kind: str) -> list[str]:
    own = {metric: [by[m] for by in ranks[metric].values() if m in by] for metric in METRICS}
    first = {metric: sum(by.get(m) == min(by.values()) for by in ranks[metric].values()) for metric in METRICS}
    ran = [run for run in result.values() if m in run.methods()]
    ratios = [_ratio(run, m) for run in ran if LOGISTIC in run.methods()]
    seconds = np.median([mean_sd(run.by_method[m], "fit_seconds")[0] for run in ran])
    ratio = f"{np.exp(np.mean(np.log(ratios))):.2f}" if ratios else ""
    means = [f"{np.mean(own[metric]):.1f}" for metric in METRICS]
    return [m, kind, str(len(ran)), str(first["error"]), *means, str(first["log_loss"]), ratio, f"{seconds:.1f}"]


def _ratio(run: Compared, method: str) -> float:
    """Of mean log-losses; below a thousandth of a nat they count as that, or nothing would be divided by nothing."""
    loss, other = (max(1e-3, mean_sd(run.by_method[m], "log_loss")[0]) for m in (method, LOGISTIC))
    return loss / other


def _over_sets(result: Sets) -> Iterator[str]:
    """Friedman and Holm over the methods that ran on all sets."""
    common = [m for m in next(iter(result.values())).methods() if all(m in run.methods() for run in result.values())]
    if len(common) < 3 or len(result) < 2:
        return
    for metric, (head, _) in METRICS.items():
        scores = {m: [mean_sd(run.by_method[m], metric)[0] for run in result.values()] for m in common}
        text = str(compare_over_sets(scores)).split("\n")
        yield f"By {head}, methods that ran on all sets. {text[1]} {text[3]}"
        yield ""


# --- marks ------------------------------------------------------------------------------------------------------------


def mark_lines(result: Sets) -> Iterator[str]:
    """(a) to (d) of ACCURACY.md, as far as these methods can show."""
    yield from ("**The marks of ACCURACY.md on these folds:**", "")
    yield (
        "* (a) Mixtures not worse than regularized QDA and the tuned mixture: these two are no baselines of `compare`; "
        "see the table of marks under document 003."
    )
    yield f"* (b) Log-loss within {ALLOWED:g} times that of logistic regression: {_mark_b(result)}."
    gap = "Half of the gap between today's mixtures and the best peer (as measured in ACCURACY.md) closed, in error"
    yield f"* (c) {gap}: {_mark_c(result)}."
    matched = ", ".join(MATCHED)
    yield f"* (d) Maximum entropy and MED not worse than logistic regression on {matched}: {_mark_d(result)}."
    yield ""


def _mark_b(result: Sets) -> str:
    texts = []
    methods = list(dict.fromkeys(m for run in result.values() for m in run.methods(OURS)))
    for m in methods:
        ran = {name: _ratio(run, m) for name, run in result.items() if {m, LOGISTIC} <= set(run.methods())}
        missed = [f"{name} {ratio:.2f}" for name, ratio in ran.items() if ratio > ALLOWED]
        tail = f" (missed: {', '.join(missed)})" if missed else ""
        texts.append(f"{m} {len(ran) - len(missed)} of {len(ran)}{tail}")
    return "; ".join(texts)


def _mark_c(result: Sets) -> str:
    texts = []
    for name in (n for n in BEHIND if n in result):
        run = result[name]
        scores = {"best": in_hindsight, "chosen on other folds": by_other_folds}
        shares = [closed(name, score(run, run.methods(OURS), "error")) for score in scores.values()]
        word = "passed" if shares[1] >= 0.5 else "missed"
        texts.append(f"{name} {word}, {shares[0]:.2f} by the best of ours, {shares[1]:.2f} chosen on the other folds")
    return "; ".join(texts) or "none of these sets was run"


def closed(name: str, error: float) -> float:
    """Share of the gap between the mixtures and the best peer of ACCURACY.md; 1: all of it."""
    return (TODAY[name] - error) / (TODAY[name] - BEST[name][1])


def _mark_d(result: Sets) -> str:
    texts = []
    for name in (n for n in MATCHED if n in result):
        run = result[name]
        for m in (m for m in LIKE_LOGISTIC if {m, LOGISTIC} <= set(run.methods())):
            differences = [difference(run.by_method[m], run.by_method[LOGISTIC], metric) for metric in METRICS]
            word = "worse" if any(gap.worse for gap in differences) else "not worse"
            texts.append(f"{name} {m} {word} ({differences[0].mean:+.1f} points, {differences[1].mean:+.3f} nats)")
    return "; ".join(texts) or "none of these sets was run"


class CompareSection:
    """The first section of the page."""

    title = "`mixent.compare` over all sets"

    def lines(self, inputs: Inputs) -> list[str]:
        from benchmarks.tables.comparison import read_sets

        intro = (
            "Every feature table of the manifest with its categories and missing values; 5 stratified folds "
            "(3 beyond 2000 rows), the same for all; "
            "every method chooses its settings inside the training part. Defaults of several of our families were "
            "looked at on some of these sets while they were made (see the guides), the baselines' grids were not."
        )
        result = read_sets(Store(NAME, inputs.results))
        return [f"## {self.title}", "", intro, "", *lines(result, inputs.results)]
