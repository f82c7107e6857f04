"""Table "trees": section 3.7 of document 001, distributions over trees for splice sites.

True acceptor sites (IE) against rows that are none (N): 25 letters, positions -12 to +13, with and without the two that
are all but the same in every true site. 200 + 200 training rows, all others for testing, 20 splits. The document's
sites are its own, "400 examples" for testing and "4724" for training; since 61 of 400 multipliers are not zero, it must
be the other way round. With the consensus an error of 12 % would be a bad one, so its false sites probably had it too,
and the set without it is the one to compare.

As in the table "splice", rows whose 25 letters and class repeat another's are left out, or test rows would have been
seen: 131 of 768 IE and 1 of 1655 N. The set with "repeats" keeps them. Letters that are none of A, C, G, T count as
missing (10 of the 3190 rows have some).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from scipy.optimize import linprog
from scipy.special import stdtrit
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.tables import peers
from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.discrimination import median
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.splice import CONSENSUS, FALSE, RATES, WINDOW, roc
from benchmarks.tables.table import Make, Printed, Setting, Splits, Table
from mixent import MEDClassifier, MEDTreeClassifier
from mixent.data import read_features
from mixent.med.spanning_trees import packed, unpacked
from mixent.med.tree_tables import best_tree
from mixent.options import Margin, Trees

SITE, TRAIN, LETTERS = "IE", 200, list("ACGT")
GAMMAS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # nats; the document's is 4
NO_MARGIN = 1e-4  # c: multipliers stay below it, so every tree is as probable as the next
PRECISE, STEADY = 0.02, 0.75  # of the largest margin, nats; how much of the best prices so far is kept
MED, DOCUMENT, INTEGRATED = "MED trees", "MED trees, 001", "MED trees, integrated"
MIXED, SHARED, EVEN = "MED trees, mixture of 2", "MED trees, shared", "all trees alike"
CHOW_LIU, TAN, BAYES, EMPIRICAL = "Chow-Liu", "TAN", "naive Bayes", "naive Bayes, empirical"
LINEAR, LR = "MED linear", "LR"
PAIRS = tuple((ours, peer) for peer in (CHOW_LIU, BAYES, EVEN) for ours in (MED, DOCUMENT, INTEGRATED))
PRINTED = {  # by method: test error, its minimum over thresholds, training error (%), share of multipliers
    DOCUMENT: (12.3, 12.4, 0.0, 61 / 400),
    CHOW_LIU: (14.0, 14.0, 0.5, None),
}
DRAWN = {MED: "#0072B2", DOCUMENT: "#D55E00", CHOW_LIU: "#009E73", BAYES: "#CC79A7"}  # Okabe and Ito
DASHES = {MED: "-", DOCUMENT: "-.", CHOW_LIU: "--", BAYES: ":"}
NOTES = (
    "error %: at the classifier's own threshold; least: at the best threshold for the test rows (Figure 7).",
    f"{DOCUMENT}: margin='fixed' at the largest target of {GAMMAS} that all training rows can keep, uncalibrated.",
    f"{EVEN}: the prior of MED trees, c = {NO_MARGIN:g}: what averaging over trees brings without discrimination.",
    "largest gamma: what can be kept at all, by linear programming over the trees; nats.",
    "Tables of trees are smoothed by 1 row; those of naive Bayes by 1 row in each cell, or (empirical) by none.",
    "001: printed, one split, its own sites: 12.3 in the text, 12.4 in the figure.",
    "95 %: paired t-test over splits. 95 %': corrected for shared training rows (Nadeau-Bengio), whose factor",
    "1/20 + n_test/n_train is meant for folds: with 4.7 times as many test rows as training rows it is far too wide.",
)


class Letters:
    """A classifier of some columns that keeps its training rows: its errors there are asked for too."""

    def __init__(self, model: Any, columns: list[str]) -> None:
        self.model, self.columns = model, columns

    def fit(self, X: Any, y: np.ndarray) -> Letters:
        self.model.fit(self._letters(X), y)
        self.classes_, self.train = self.model.classes_, (X, y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model.predict_proba(self._letters(X))

    def scores(self, X: Any) -> np.ndarray:
        """Higher for true sites: N is the last class."""
        if hasattr(self.model, "decision_function"):
            return -self.model.decision_function(self._letters(X))
        log_proba = self.model.predict_log_proba(self._letters(X))
        return log_proba[:, 0] - log_proba[:, 1]

    def _letters(self, X: Any) -> Any:
        frame = X[self.columns]
        return frame.where(frame.isin(LETTERS), None)


# --- methods ----------------------------------------------------------------------------------------------------------


def trees(**options: Any) -> MEDTreeClassifier:
    return MEDTreeClassifier(**options, random_state=0, n_jobs=1)


class LargestMargin:
    """Section 3.7: every training row keeps a margin for certain, the largest of `GAMMAS` that all of them can."""

    def fit(self, X: Any, y: np.ndarray) -> LargestMargin:
        self.largest = largest_margin(trees(objective="likelihood", calibration=None).fit(X, y), X, y)
        gamma = max((g for g in GAMMAS if g < self.largest), default=GAMMAS[0])
        self.model = trees(margin=Margin("fixed", target=gamma), calibration=None).fit(X, y)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["model"], name)


def largest_margin(known: MEDTreeClassifier, X: Any, y: np.ndarray) -> float:
    """The largest margin that some distributions over trees, with the tables of this model, keep in all rows.

    max m  s.t.  y_t (b + sum_s s <log T_s(x_t)>) >= m.  A linear program in the probabilities of trees: those that
    could raise m are added as they are found. Whatever prices p the rows have, p^T offset and the spanning trees of
    highest p-weighted sum are an upper bound on m; prices near those of the best bound so far are tried, since those
    of the program itself jump about (250 rounds instead of 100).
    """
    model = known.model_
    sign = np.where(y == known.classes_[0], 1.0, -1.0)
    views = model.features(model.columns(read_features(known, X, reset=False)))
    phi = [s * view.to_array().T for s, view in zip((sign, -sign), views)]  # (E, n) what an edge adds to each margin
    offset = sign * (views[0].offset - views[1].offset)
    kept = [(table.likeliest.mean @ f)[None] for table, f in zip(model.tables or (), phi)]  # (trees, n)
    center, value, bound = None, -np.inf, np.inf
    while bound - value > PRECISE:
        prices, value = _prices(kept, sign, offset)
        trial = prices if center is None else STEADY * center + (1 - STEADY) * prices
        added = [best_tree(f @ trial).mean @ f for f in phi]
        kept = [np.vstack([k, a]) for k, a in zip(kept, added)]
        above = float(trial @ (offset + sum(added)))
        if above < bound:
            bound, center = above, trial
    return value


def _prices(kept: list[np.ndarray], sign: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows' prices (n,) and the largest margin with these trees only: `kept` (trees, n) of each class."""
    m, n = sum(map(len, kept)), len(sign)
    rows = np.column_stack([-np.vstack(kept).T, -sign, np.ones(n)])  # margin - kept - sign b <= offset
    owner = np.repeat(np.arange(len(kept)), [len(k) for k in kept])
    sums = np.column_stack([owner == s for s in range(len(kept))]).T.astype(float)
    sums = np.hstack([sums, np.zeros((len(kept), 2))])
    free = [(0, None)] * m + [(None, None)] * 2
    solved = linprog([*np.zeros(m + 1), -1.0], rows, offset, sums, np.ones(len(kept)), free, method="highs")
    return -solved.ineqlin.marginals, -float(solved.fun)


def naive_bayes(alpha: float) -> Any:
    """Missing values, which are few, take the column's most frequent letter."""

    def model(columns: list[str]) -> Any:
        fill = SimpleImputer(strategy="most_frequent")
        code = OrdinalEncoder(categories=[LETTERS] * len(columns))
        return make_pipeline(fill, code, CategoricalNB(alpha=alpha, min_categories=len(LETTERS)))

    return model


MODELS: dict[str, Callable[[Dataset], Any]] = {
    MED: lambda data: trees(),
    DOCUMENT: lambda data: LargestMargin(),
    INTEGRATED: lambda data: trees(tables="integrated"),
    MIXED: lambda data: trees(trees=Trees(n_trees=2)),
    SHARED: lambda data: trees(trees="shared"),
    EVEN: lambda data: trees(C=NO_MARGIN),
    CHOW_LIU: lambda data: trees(objective="likelihood"),
    TAN: lambda data: trees(objective="likelihood", trees="shared"),
    BAYES: lambda data: naive_bayes(1.0)(data.X.columns),
    EMPIRICAL: lambda data: naive_bayes(1e-10)(data.X.columns),
    LINEAR: lambda data: MEDClassifier(random_state=0, n_jobs=1),
    LR: peers.logistic,
}


def methods_of(without: bool) -> dict[str, Make]:
    columns = [c for c in WINDOW if not (without and c in CONSENSUS[SITE])]

    def method(model: Callable[[Dataset], Any]) -> Make:
        return lambda data: Letters(model(replace(data, X=data.X[columns], discrete=tuple(columns))), columns)

    return {name: method(model) for name, model in MODELS.items()}


def sites(repeats: bool) -> Splits:
    """Some rows of each class for training, all others for testing."""

    def splits(data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
        used = np.full(len(data.y), True)
        if not repeats:
            used = ~data.X[list(WINDOW)].assign(site=data.y).duplicated().to_numpy()
        rng = np.random.default_rng(seed)
        rows = [rng.permutation(np.flatnonzero(used & (data.y == c))) for c in (SITE, FALSE)]
        train, test = (np.concatenate([part[at] for part in rows]) for at in (slice(TRAIN), slice(TRAIN, None)))
        return train, test

    return splits


# --- measures ---------------------------------------------------------------------------------------------------------


def train_error(model: Letters) -> float:
    """In %."""
    X, y = model.train
    return 100.0 * float(np.mean(model.classes_[model.predict_proba(X).argmax(axis=1)] != y))


def support(model: Letters) -> float | None:
    """Share of training rows whose multiplier is not zero."""
    rows = getattr(model.model, "support_", None)
    none = getattr(model.model, "objective", None) == "likelihood"
    return None if rows is None or none else len(rows) / len(model.train[1])


def chosen(name: str) -> Callable[[Letters], float | None]:
    def measure(model: Letters) -> float | None:
        value = getattr(model.model, name, None)
        return None if value is None else float(value)

    return measure


def gamma(model: Letters) -> float | None:
    margin = getattr(model.model, "margin_", None)
    none = getattr(model.model, "objective", None) == "likelihood"
    return None if margin is None or none else round(float(margin.target), 3)


def least_error(model: Letters, X: Any, y: np.ndarray) -> float:
    """In %, at the threshold that is best for these rows."""
    scores = model.scores(X)
    order = np.argsort(-scores, kind="stable")
    true = (y != FALSE)[order]
    wrong = np.concatenate(
        [[true.sum()], true.sum() - np.cumsum(true) + np.cumsum(~true)]
    )  # the first k taken for true
    apart = np.concatenate([[True], np.diff(scores[order]) != 0, [True]])  # equal scores are on one side
    return 100.0 * float(wrong[apart].min()) / len(y)


def auc(model: Letters, X: Any, y: np.ndarray) -> float:
    return float(roc_auc_score(y != FALSE, model.scores(X)))


def edges(model: Letters, X: Any, y: np.ndarray) -> list[float]:
    """log W_uv of IE and N, then their I_uv, edge by edge; of the document's model only (Figure 8)."""
    if not isinstance(model.model, LargestMargin):
        return []
    fitted = model.model.model
    return np.concatenate([packed(m) for m in (*fitted.edge_weights_, *fitted.mutual_information_)]).round(4).tolist()


def printed_values(name: str) -> dict[tuple[str, str, str], Printed]:
    metrics = ("error", "least_error", "train_error", "support")
    return {
        (name, method, metric): Printed(value, "document 001, section 3.7" + ", figure 7" * (metric == "least_error"))
        for method, values in PRINTED.items()
        for metric, value in zip(metrics, values)
        if value is not None
    }


# --- view -------------------------------------------------------------------------------------------------------------


def show(table: Table, result: Found, code: str, console: Console) -> None:
    for setting, by in result.items():
        if any(by.values()):
            console.print(_methods(table, setting, by))
            console.print(_pairs(setting, by))
    for note in NOTES:
        console.print(f"* {note}", markup=False, highlight=False)
    print_notes(table, result, code, console)


COLUMNS = {"error": 1, "least_error": 1, "auc": 4, "log_loss": 3, "train_error": 1, "support": 3}  # digits


def _methods(table: Table, setting: Setting, by: Mapping[str, list[dict]]) -> Grid:
    heads = ("error %", "001", "least %", "001", "AUC", "log-loss", "train %", "001", "multipliers", "001")
    grid = Grid("method", *heads, "c", "gamma", "largest", "s / fit", "splits")
    some = [r for records in by.values() for r in records]
    grid.title = f"{setting.name}: {setting.folds} splits, {some[0]['n_train']} training, {some[0]['n_test']} test rows"
    for method, records in by.items():
        if not records:
            continue
        cells = []
        for metric, digits in COLUMNS.items():
            mean, sd, n = mean_sd(records, metric)
            cells.append(f"{mean:.{digits}f} ({sd:.{digits}f})" if n else "")
            if metric in ("error", "least_error", "train_error", "support"):
                printed = table.printed.get((setting.name, method, metric))
                cells.append(f"{printed.value:.{digits}f}" if printed else "")
        margins = [median(records, metric) for metric in ("c", "gamma")]
        mean, sd, n = mean_sd(records, "largest_gamma")
        seconds = f"{mean_sd(records, 'fit_seconds')[0]:.2f}"
        grid.add_row(method, *cells, *margins, f"{mean:.2f} ({sd:.2f})" if n else "", seconds, str(len(records)))
    return grid


def _pairs(setting: Setting, by: Mapping[str, list[dict]]) -> Grid:
    grid = Grid("difference", "metric", "mean", "95 %", "p", "95 %'", "p'")
    grid.title = f"{setting.name}: differences over the same splits"
    for first, second in PAIRS:
        if by.get(first) and by.get(second):
            grid.add_section()
            for metric in ("error", "least_error", "log_loss"):
                grid.add_row(f"{first} - {second}", metric, *paired(by[first], by[second], metric))
    return grid


def paired(first: list[dict], second: list[dict], metric: str) -> list[str]:
    digits = COLUMNS[metric] + 1
    cells = [f"{difference(first, second, metric).mean:+.{digits}f}"]
    for corrected in (False, True):
        gap = difference(first, second, metric, corrected=corrected)
        if gap.df >= 1:
            half = gap.se * stdtrit(gap.df, 0.975)
            cells += [f"{gap.mean - half:+.{digits}f} to {gap.mean + half:+.{digits}f}", f"{gap.p_value:.2g}"]
    return cells


def picture(result: Found, path: Path) -> None:
    """Figure 7: mean ROC curves; Figure 8: what the edges weigh in the first split, beside it."""
    from matplotlib.figure import Figure

    some = {setting: by for setting, by in result.items() if any(by.values())}
    figure = Figure(figsize=(13.0, 3.9 * len(some)), layout="constrained")
    axes = figure.subplots(len(some), 3, squeeze=False, width_ratios=(1.2, 1, 1))
    for row, (setting, by) in zip(axes, some.items()):
        _curves(row[0], by)
        row[0].set_title(setting.name.replace("_", " "), fontsize=10)
        first = next((r for r in by.get(DOCUMENT, []) if not r["failed"] and r["fold"] == 0), None)
        for s, (ax, name) in enumerate(zip(row[1:], (SITE, FALSE))):
            if first is None:
                ax.set_axis_off()
            else:
                _weights(figure, ax, first["edges"], s)
                ax.set_title(f"{name}: log W above, mutual information below the diagonal", fontsize=8)
    figure.savefig(path, dpi=130)


def _curves(ax: Any, by: Mapping[str, list[dict]]) -> None:
    for method, color in DRAWN.items():
        records = [r for r in by.get(method, []) if not r["failed"]]
        if records:
            mean = np.mean([r["roc"] for r in records], axis=0)
            label = f"{method} (least error {mean_sd(records, 'least_error')[0]:.1f} %)"
            ax.plot(RATES[1:], mean[1:], color=color, linestyle=DASHES[method], label=label)
    ax.set_xscale("log")
    ax.set_xlim(RATES[1], 1.0)
    ax.set_ylim(top=1.005)
    ax.set_xlabel("false alarms (share of N, log scale)")
    ax.set_ylabel("true sites found (share of IE)")
    ax.legend(fontsize=7, loc="lower right", frameon=False)
    ax.spines[["top", "right"]].set_visible(False)


def _weights(figure: Any, ax: Any, kept: list[float], s: int) -> None:
    """One class's square, each half with its own scale."""
    four = np.array(kept).reshape(4, -1)
    n = round(0.5 + np.sqrt(0.25 + 2 * four.shape[1]))
    upper = np.triu(np.full((n, n), True), 1)
    names = WINDOW if n == len(WINDOW) else [c for c in WINDOW if c not in CONSENSUS[SITE]]
    for part, here, colors, label in (
        (four[s], upper, "Blues", "log W, nats above the smallest"),
        (four[2 + s], upper.T, "Oranges", "I, nats"),
    ):
        square = unpacked(part - part.min(), n) if here is upper else unpacked(part, n)
        drawn = ax.imshow(np.ma.array(square, mask=~here), cmap=colors, interpolation="nearest")
        bar = figure.colorbar(drawn, ax=ax, shrink=0.8, pad=0.02)
        bar.set_label(label, fontsize=7)
        bar.ax.tick_params(labelsize=6)
    places = range(0, n, 2)
    numbers = [name.replace("pm", "-").replace("pp", "+") for name in names]
    ax.set_xticks(places, [numbers[i] for i in places], fontsize=6, rotation=90)
    ax.set_yticks(places, [numbers[i] for i in places], fontsize=6)
    ax.spines[:].set_visible(False)


class TreesTable(Table):
    """The columns a method sees depend on the set."""

    def methods_of(self, setting: Setting) -> Mapping[str, Make]:
        return methods_of("without" in setting.name)


WITHOUT, REPEATED = f"{SITE}_without_consensus", f"{SITE}_without_consensus_repeats"

TREES = TreesTable(
    name="trees",
    settings=(
        Setting(WITHOUT, 20, 1, mixed=True, data="splice", splits=sites(repeats=False)),
        Setting(SITE, 20, 1, mixed=True, data="splice", splits=sites(repeats=False)),
        Setting(REPEATED, 20, 1, mixed=True, data="splice", splits=sites(repeats=True)),
    ),
    methods=methods_of(False),
    measures={
        "train_error": train_error,
        "support": support,
        "c": chosen("C_"),
        "gamma": gamma,
        "largest_gamma": chosen("largest"),
    },
    scores={"least_error": least_error, "auc": auc},
    curves={"roc": roc, "edges": edges},
    printed={**printed_values(WITHOUT), **printed_values(REPEATED)},
    quick=(WITHOUT,),
    view=show,
    picture=picture,
    peers=(BAYES, EMPIRICAL, LR),
)
