"""Sections of the page for document 001: maximum entropy discrimination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.tables import discrimination as med
from benchmarks.tables import novelty, splice, trees
from benchmarks.tables.beside import LEVEL, Part, against, besides, mean_text, pair_words, part_lines
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.markdown import table_lines
from benchmarks.tables.printed import TABLES_OF_001
from benchmarks.tables.section import Section
from benchmarks.tables.show import Found

# --- tables 1 and 2 ---------------------------------------------------------------------------------------------------

OTHERS = "not run here"


def discrimination_lines(result: Found) -> Iterator[str]:
    split = {s: by for s, by in result.items() if s.splits is not None}
    for setting, by in split.items():
        n_train, n_test = next((r["n_train"], r["n_test"]) for records in by.values() for r in records)
        yield from (f"*{setting.name}, {n_train} training and {n_test} test rows, {setting.folds} splits:*", "")
        yield from table_lines(
            ["method", "training errors", "printed", "test errors", "printed", "AUC", "log-loss"],
            [*_methods(setting.name, by), *_only_printed(setting.name)],
        )
    texts = [b for metric in ("train_errors", "test_errors") for b in besides(split, _errors(metric))]
    if texts:
        yield from (f"**Against the print**, which is of one split. {against(texts, 'Tables 1 and 2')}", "")
    yield from _claims(split)
    yield from _folded({s: by for s, by in result.items() if s.splits is None})


def _errors(metric: str) -> Part:
    names = {m: f"{m} ({'training' if metric == 'train_errors' else 'test'})" for m in med.METHODS}
    return Part(med.DISCRIMINATION, names, metric, printed_folds=1)


def _methods(name: str, by: Mapping[str, list[dict]]) -> Iterator[list[str]]:
    for method, records in by.items():
        if records:
            cells = [method]
            for metric in ("train_errors", "test_errors"):
                printed = med.DISCRIMINATION.printed.get((name, method, metric))
                cells += [mean_text(records, metric, 1), f"{printed.value:g}" if printed else ""]
            yield [*cells, mean_text(records, "test_auc", 3), mean_text(records, "log_loss", 3)]


def _only_printed(name: str) -> Iterator[list[str]]:
    run = ("SVM", "Gaussians", "logistic")  # stand beside ours
    for method, (training, test) in TABLES_OF_001[name].items():
        if not any(word in method for word in run):
            yield [f"{method} ({OTHERS})", "", "" if training is None else str(training), "", str(test)]


def _claims(result: Found) -> Iterator[str]:
    """MED Gaussians are no worse than ML Gaussians, and mark (d)."""
    part = Part(med.DISCRIMINATION, {}, "test_errors")
    texts = [pair_words(result, part, *pair) for pair in (*med.PAIRS[:2], (med.LINEAR, med.LR))]
    if any(texts):
        yield from (f"**Same splits** (corrected for shared rows). {' '.join(t for t in texts if t)}", "")
    marks = []
    for setting, by in result.items():
        for method in (med.LINEAR, med.RBF, med.MED, med.MED_K0):
            mean, wanted = mean_sd(by.get(method, []), "test_errors")[0], med.ALLOWED[setting.name]
            if mean == mean:
                word = "reached" if mean <= wanted else "missed"
                marks.append(f"{setting.name}, {method} {mean:.2f} of at most {wanted:g}: {word}")
    if marks:
        yield from (f"**Mark (d).** {'; '.join(marks)}.", "")


def _folded(result: Found) -> Iterator[str]:
    names = {med.LINEAR: "MED linear", med.RBF: "MED RBF", med.LR: "LR", med.TUNED: "linear SVM, tuned"}
    pairs = ((med.LINEAR, med.LR), (med.LINEAR, med.TUNED))
    for metric, title, digits in (("error", "Error %", 1), ("log_loss", "Log-loss", 3)):
        lines = part_lines(result, Part(med.DISCRIMINATION, names, metric, digits, pairs=pairs))
        yield from ([f"{title}, ten folds, for mark (d):", "", *lines] if lines else [])


# --- section 3.7 ------------------------------------------------------------------------------------------------------


def trees_lines(result: Found) -> Iterator[str]:
    heads = ["method", "error %", "printed", "least error %", "AUC", "log-loss", "multipliers", "splits"]
    for setting, by in result.items():
        yield from (f"*{setting.name}:*", "")
        yield from table_lines(heads, [_tree_row(setting.name, m, rs) for m, rs in by.items() if rs])
    texts = [b for metric in ("error", "least_error", "train_error") for b in besides(result, _tree_part(metric))]
    if texts:
        yield from (f"**Against the print**, one split of its own sites. {against(texts, 'section 3.7')}", "")
    part = Part(trees.TREES, {})
    pairs = ((trees.MED, trees.CHOW_LIU), (trees.MED, trees.BAYES), (trees.MED, trees.EVEN))
    outputs = [pair_words(result, part, *pair) for pair in (*pairs, (trees.DOCUMENT, trees.CHOW_LIU))]
    if any(outputs):
        yield from (f"**Same splits** (corrected for shared rows). {' '.join(t for t in outputs if t)}", "")


def _tree_part(metric: str) -> Part:
    return Part(trees.TREES, {m: f"{m}, {metric.replace('_', ' ')}" for m in trees.PRINTED}, metric, printed_folds=1)


def _tree_row(name: str, method: str, records: list[dict]) -> list[str]:
    printed = trees.TREES.printed.get((name, method, "error"))
    theirs = f"{printed.value:g}" if printed else ""
    cells = [mean_text(records, metric, trees.COLUMNS[metric]) for metric in ("least_error", "auc", "log_loss")]
    share = mean_sd(records, "support")
    text = f"{100 * share[0]:.0f} %" if share[2] else ""
    return [method, mean_text(records, "error", 1), theirs, *cells, text, str(len(records))]


# --- section 5.2 ------------------------------------------------------------------------------------------------------


def splice_lines(result: Found) -> Iterator[str]:
    heads = ["set", "kernel", *(f"AUC, {known}" for known in (splice.ALL, splice.SEMI, splice.FEW))]
    rows = [
        [setting.name, kernel, *_splice_cells(splice.same_splits(kernel, by))]
        for setting, by in result.items()
        for kernel in splice.KERNELS
    ]
    rows = [row for row in rows if len(row) > 5]
    yield from table_lines([*heads, "gain", "p", "gap recovered", "splits"], rows)
    most = [f"{row[0]} {row[1]}" for row in rows if float(row[7]) > 0.5]
    yield (
        '**Against the print.** The document draws curves and prints no number: unlabelled rows bring "most of the '
        f'benefit" of labels. Of {len(rows)} cases they recover more than half of the gap in {len(most)}'
        + (f" ({'; '.join(most)})." if most else ".")
    )
    yield ""


def _splice_cells(of: Mapping[str, list[dict]]) -> list[str]:
    if not all(of.values()):
        return []
    texts = [mean_text(of[known], "auc", 4) for known in (splice.ALL, splice.SEMI, splice.FEW)]
    gap = difference(of[splice.SEMI], of[splice.FEW], "auc", corrected=False)
    whole = difference(of[splice.ALL], of[splice.FEW], "auc").mean
    if gap.df < 1:
        return []
    return [*texts, f"{gap.mean:+.4f}", f"{gap.p_value:.3f}", f"{gap.mean / whole:.2f}", str(len(of[splice.SEMI]))]


# --- section 4 --------------------------------------------------------------------------------------------------------


def novelty_lines(result: Found) -> Iterator[str]:
    part_a = {s: by for s, by in result.items() if s.dataset == "splice" and not s.name.startswith("splice")}
    yield from _level_sets(part_a)
    part_b = {s: novelty.both(s, by) for s, by in result.items() if s not in part_a}
    yield from _all_sets(part_b)


def _level_sets(result: Found) -> Iterator[str]:
    names = [novelty.name_of("product", objective) for objective in (novelty.MRE, novelty.BAYES)]
    rows, outputs = [], []
    for setting, by in result.items():
        first, second = (by.get(name, []) for name in names)
        gap = difference(first, second, "auc", corrected=False)
        if gap.df >= 1:
            careful = difference(first, second, "auc")
            sds = [f"{mean_sd(records, 'train_sd')[0]:.2f}" for records in (first, second)]
            cells = [mean_text(records, "auc", 4) for records in (first, second)]
            tests = [f"{gap.mean:+.4f}", f"{gap.p_value:.2g}", f"{careful.p_value:.2g}"]
            rows.append([setting.name, *cells, *tests, *sds, str(len(first))])
            outputs.append(("ahead" if gap.mean > 0 else "behind") if gap.p_value < LEVEL else "level")
    if rows:
        heads = ["set", "AUC, level set", "AUC, Bayes", "difference", "p", "p corrected", "sd, level set", "sd, Bayes"]
        yield from ("The document's experiment, a product of multinomials; sd: of the training log-likelihoods:", "")
        yield from table_lines([*heads, "splits"], rows)
        counts = ", ".join(f"{word} on {outputs.count(word)}" for word in ("ahead", "level", "behind"))
        yield (
            "**Against the print.** Figure 9 is drawn, without numbers: the level set is the better detector and its "
            f"training log-likelihoods lie closer together. Ours is {counts} of {len(outputs)} sets by the plain test."
        )
        yield ""


def _all_sets(result: Found) -> Iterator[str]:
    if not result:
        return
    names = list(dict.fromkeys(s.name.rpartition("_")[0] for s in result))
    methods, auc, rank = novelty.ranks(result)
    rows = [
        [m, *(f"{a:.3f}" for a in auc[:, j]), f"{auc[:, j].mean():.3f}", f"{rank[:, j].mean():.1f}"]
        for j, m in enumerate(methods)
    ]
    if rows:
        splits = sorted({len(by[m]) for by in result.values() for m in methods})
        yield from (f"Each class of five sets typical in turn, mean AUC ({splits[0]} to {splits[-1]} splits):", "")
        yield from table_lines(["method", *names, "mean AUC", "mean rank"], rows)
        best = methods[int(np.argmin(rank.mean(axis=0)))]
        yield from (f"No number of these is in the document. Best mean rank: {best}.", "")


DISCRIMINATION_SECTION = Section(
    "Tables 1 and 2: Gaussians that discriminate (001, section 3.1.1)",
    "Crabs and breast cancer. The document has one split of each and does not state which; these are twenty random "
    f"stratified splits. {' '.join(med.NOTES[1:4])}",
    med.DISCRIMINATION,
    discrimination_lines,
)
TREES_SECTION = Section(
    "Section 3.7: distributions over trees",
    "True acceptor sites (IE) against rows that are none, 25 letters, with and without the two consensus columns, "
    "200 + 200 training rows. The document's sites are its own and not public; with the consensus its error of 12 % "
    "would be a bad one, so the set without it is the one to compare. "
    f"{' '.join(trees.NOTES[:3])}",
    trees.TREES,
    trees_lines,
)
SPLICE_SECTION = Section(
    "Section 5.2: a tenth of the labels and the other rows without",
    "Splice sites again, 4-bit encoding; test AUC with all labels, with a tenth and the rest unlabelled, with a tenth "
    "alone. Repeated windows are left out, or test rows would have been seen.",
    splice.SPLICE,
    splice_lines,
)
NOVELTY_SECTION = Section(
    "Section 4: level sets",
    "Half of the typical rows for training; the other half, and rows of the other classes, for testing. Methods see no "
    f"label. {novelty.NOTES[0]}",
    novelty.NOVELTY,
    novelty_lines,
)
