"""Table "splice": section 5.2 of document 001, what rows without labels bring.

True splice sites (IE, EI) against rows that are none (N): 25 letters, positions -12 to +13, each letter four bits. Of
500 true and 500 false training rows all labels are known, or those of 100 rows chosen at random with the other 900 as
they are, or these 100 rows are all there is. The document's sites are its own; these are the 3190 of UCI, where 262 of
1535 true windows repeat another: repeats are left out, or test rows would have been seen. That leaves 637 (IE) or 636
(EI) true rows, so 137 or 136 for testing beside 1154 false ones. Letters that are none of A, C, G, T count as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from scipy.special import stdtrit
from sklearn.metrics import roc_auc_score, roc_curve

from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.table import Make, Setting, Splits, Table
from mixent import MEDClassifier

WINDOW = (*(f"pm{i}" for i in range(12, 0, -1)), *(f"pp{i}" for i in range(1, 14)))
# all but constant in true sites: A 99.6 % and G 99.7 % of IE, G 99.7 % and T 99.0 % of EI; the next is at most 86 %
CONSENSUS = {"IE": ("pm2", "pm1"), "EI": ("pp1", "pp2")}
FALSE = "N"
TRAIN, LABELLED = 500, 0.1  # rows of each class; share of them with a label
C = 5.0
KERNELS = {"linear": "linear", "unit linear": "unit", "RBF": "rbf"}
ALL, SEMI, FEW = "all labels", "10 % + unlabelled", "10 % only"
RATES = np.concatenate([[0.0], np.geomspace(0.002, 1.0, 60)])  # false alarms at which ROC curves are kept
COLORS = {ALL: "#0072B2", SEMI: "#D55E00", FEW: "#009E73"}  # Okabe and Ito
DASHES = {ALL: "-", SEMI: "-.", FEW: "--"}  # those of the document
NOTES = (
    f"MED with C = {C:g}, exponential margin, no calibration; 500 + 500 training rows, 100 of them labelled.",
    "unit linear: the same kernel over the number of letters, so that k(x, x) = 1 as for RBF; 001 gives no scale.",
    "gain: AUC of 10 % + unlabelled minus that of 10 % only, 95 % interval of the paired t-test over splits.",
    "recovered: gain / (AUC of all labels - AUC of 10 % only), of the means; 1 would be all that labels bring.",
    "Rows whose 25 letters and class repeat another's are left out; ambiguous letters count as missing.",
)


class Sites:
    """A classifier of some columns, given the labels of all training rows, of the first tenth, or that tenth alone."""

    def __init__(self, model: Any, columns: list[str], known: str) -> None:
        self.model, self.columns, self.known = model, columns, known

    def fit(self, X: Any, y: np.ndarray) -> Sites:
        n = round(LABELLED * len(y))
        if self.known == FEW:
            X, y = X.iloc[:n], y[:n]
        elif self.known == SEMI:
            y = np.where(np.arange(len(y)) < n, y.astype(object), None)
        self.model.fit(self._letters(X), y)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model.predict_proba(self._letters(X))

    def scores(self, X: Any) -> np.ndarray:
        """Higher for true sites: N is the last class."""
        return -self.model.decision_function(self._letters(X))

    def _letters(self, X: Any) -> Any:
        frame = X[self.columns]
        return frame.where(frame.isin(list("ACGT")), None)


@dataclass(frozen=True)
class UnitLinear:
    """The linear kernel of rows brought to length 1: a row of bits has as many ones as letters."""

    n_letters: int

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return A @ B.T / self.n_letters


def discriminator(site: str, without: bool, kernel: str, known: str) -> Make:
    columns = [c for c in WINDOW if not (without and c in CONSENSUS[site])]

    def make(data: Dataset) -> Sites:
        options = {"C": C, "margin": "exponential", "calibration": None, "random_state": 0, "n_jobs": 1}
        return Sites(MEDClassifier(UnitLinear(len(columns)) if kernel == "unit" else kernel, **options), columns, known)

    return make


def sites_of(site: str) -> Splits:
    """Training rows in random order, so the first tenth is one chosen at random; all other rows for testing."""

    def splits(data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
        first = ~(data.X[list(WINDOW)].assign(site=data.y).duplicated().to_numpy())
        rng = np.random.default_rng(seed)
        rows = [rng.permutation(np.flatnonzero(first & (data.y == c))) for c in (site, FALSE)]
        train, test = (np.concatenate([part[at] for part in rows]) for at in (slice(TRAIN), slice(TRAIN, None)))
        return rng.permutation(train), test

    return splits


def auc(model: Sites, X: Any, y: np.ndarray) -> float:
    return float(roc_auc_score(y != FALSE, model.scores(X)))


def roc(model: Sites, X: Any, y: np.ndarray) -> list[float]:
    """True positive rate at `RATES`."""
    false_alarms, hits, _ = roc_curve(y != FALSE, model.scores(X))
    last = np.searchsorted(false_alarms, RATES, side="right") - 1
    return hits[last].round(5).tolist()


def belief(model: Sites) -> float | None:
    """Share of true sites the rows without a label are taken for; half of them are."""
    if model.known != SEMI:
        return None
    posterior = model.model.label_posterior_
    return float(posterior[round(LABELLED * len(posterior)) :, 0].mean())


def name_of(kernel: str, known: str) -> str:
    return f"{kernel}, {known}"


def name_of_set(site: str, without: bool) -> str:
    return f"{site}_without_consensus" if without else site


# --- view -------------------------------------------------------------------------------------------------------------


def show(table: Table, result: Found, code: str, console: Console) -> None:
    grid = Grid("set", "kernel", *(f"AUC {known}" for known in (ALL, SEMI, FEW)), "gain", "95 %", "p", "recovered")
    for column in ("error % all / semi / few", "taken for true", "s / fit, semi", "splits"):
        grid.add_column(column)
    grid.title = f"{table.name}: test AUC, mean (sd) over splits"
    for setting, by in result.items():
        grid.add_section()
        for kernel in KERNELS:
            of = same_splits(kernel, by)
            if any(of.values()):
                grid.add_row(setting.name, kernel, *cells(of))
    console.print(grid)
    for note in NOTES:
        console.print(f"* {note}", markup=False, highlight=False)
    print_notes(table, result, code, console)


def same_splits(kernel: str, by: Mapping[str, list[dict]]) -> dict[str, list[dict]]:
    """A kernel's records, by what was known, of the splits that all of those that were run have finished."""
    of = {known: [r for r in by.get(name_of(kernel, known), []) if not r["failed"]] for known in (ALL, SEMI, FEW)}
    finished = [{(r["repeat"], r["fold"]) for r in records} for records in of.values() if records]
    common = set.intersection(*finished) if finished else set()
    return {known: [r for r in records if (r["repeat"], r["fold"]) in common] for known, records in of.items()}


def cells(of: Mapping[str, list[dict]]) -> list[str]:
    """A kernel's row."""
    means = {known: mean_sd(records, "auc") for known, records in of.items()}
    texts = [f"{mean:.4f}" + f" ({sd:.4f})" * (n > 1) if n else "-" for mean, sd, n in means.values()]
    gap = difference(of[SEMI], of[FEW], "auc", corrected=False)
    if gap.df < 1:
        return texts
    half = gap.se * stdtrit(gap.df, 0.975)
    share = gap.mean / difference(of[ALL], of[FEW], "auc").mean
    errors = " / ".join(f"{mean_sd(of[known], 'error')[0]:.1f}" for known in (ALL, SEMI, FEW))
    taken, seconds = mean_sd(of[SEMI], "taken_for_true")[0], mean_sd(of[SEMI], "fit_seconds")[0]
    texts += [f"{gap.mean:+.4f}", f"{gap.mean - half:+.4f} to {gap.mean + half:+.4f}", f"{gap.p_value:.3f}"]
    return [*texts, f"{share:+.2f}", errors, f"{taken:.3f}", f"{seconds:.2f}", str(means[SEMI][2])]


def picture(result: Found, path: Path) -> None:
    """Figure 10: mean ROC curves, a panel for each set and kernel."""
    from matplotlib.figure import Figure

    some = {setting: by for setting, by in result.items() if any(by.values())}
    figure = Figure(figsize=(3.4 * len(KERNELS), 3.1 * len(some)), layout="constrained")
    axes = figure.subplots(len(some), len(KERNELS), squeeze=False, sharex=True, sharey="row")
    for row, (setting, by) in zip(axes, some.items()):
        for ax, kernel in zip(row, KERNELS):
            _panel(ax, kernel, by)
            ax.set_title(f"{setting.name.replace('_', ' ')}, {kernel} kernel", fontsize=9)
        row[0].set_ylabel("true sites found")
    for ax in axes[-1]:
        ax.set_xlabel("false alarms (share of N, log scale)")
    figure.savefig(path, dpi=130)


def _panel(ax: Any, kernel: str, by: Mapping[str, list[dict]]) -> None:
    shown = RATES > 0
    for known, records in same_splits(kernel, by).items():
        curves = np.array([r["roc"] for r in records])
        if len(curves):
            area = mean_sd(records, "auc")[0]
            label = f"{known} (AUC {area:.3f})"
            style = {"color": COLORS[known], "linestyle": DASHES[known], "label": label}
            ax.plot(RATES[shown], curves.mean(axis=0)[shown], **style)
    ax.set_xscale("log")
    ax.set_xlim(RATES[1], 1.0)
    ax.set_ylim(top=1.005)
    if ax.lines:
        ax.legend(fontsize=7, loc="lower right", frameon=False)
    ax.spines[["top", "right"]].set_visible(False)


def methods_of(site: str, without: bool) -> dict[str, Make]:
    return {
        name_of(kernel, known): discriminator(site, without, option, known)
        for kernel, option in KERNELS.items()
        for known in (ALL, FEW, SEMI)
    }


class SpliceTable(Table):
    """The columns a method sees depend on the set."""

    def methods_of(self, setting: Setting) -> Mapping[str, Make]:
        return methods_of(setting.name[:2], setting.name.endswith("consensus"))


SPLICE = SpliceTable(
    name="splice",
    settings=tuple(
        Setting(name_of_set(site, without), 5, 2, mixed=True, data="splice", splits=sites_of(site))
        for site in ("IE", "EI")
        for without in (False, True)
    ),
    methods=methods_of("IE", False),
    measures={"taken_for_true": belief},
    scores={"auc": auc},
    curves={"roc": roc},
    quick=("IE",),
    view=show,
    picture=picture,
)
