"""Table "novelty": section 4 of document 001, level sets of probability models.

Part A, the document's own: true splice sites (IE, or EI) are typical, 25 letters, positions -12 to +13, with and
without the two that are all but the same in every true site. Half of the true rows for training, the other half and all
rows that are none (N) for testing, 20 splits: a product of multinomials whose distribution has the least relative
entropy to the prior (MRE), against the Bayesian fit with the same prior. As in the table "splice", rows whose 25
letters and class repeat another's are left out and letters other than A, C, G, T count as missing.

Part B: five sets, each class typical in turn; half of its rows for training, the other half and rows of the other
classes (at most 3000) for testing. Methods see no label: "error" and the like in the stored records mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from scipy.special import stdtrit
from scipy.stats import rankdata
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import Dataset
from benchmarks.tables.show import Found, print_notes
from benchmarks.tables.splice import CONSENSUS, FALSE, RATES, WINDOW
from benchmarks.tables.table import Make, Setting, Table
from mixent import GaussianMixture, MEDNoveltyDetector
from mixent.data import read_features
from mixent.options import Search

MRE, BAYES = "margin", "bayes"
LETTERS = list("ACGT")
SVM, FOREST, LOF, MIXTURE = "one-class SVM", "isolation forest", "LOF", "GaussianMixture"
MODELS = ("auto", "product", "tree", "mixture", "hmm")
NUMERIC = {"breast_w": ("benign", "malignant"), "ionosphere": ("b", "g"), "satimage": tuple("123457")}
LETTERED = {"splice": ("EI", "IE", "N"), "splice25": ("EI", "IE", "N"), "mushroom": ("e", "p")}
SPLITS = {"satimage": 3, "mushroom": 3, "splice": 5, "splice25": 5}  # 10 otherwise
MOST = 3000  # test rows of other classes
BINS = np.arange(-60.0, 1.0)  # of log-likelihoods, nats
COLORS = {MRE: "#0072B2", BAYES: "#D55E00"}  # Okabe and Ito
DASHES = {MRE: "-", BAYES: "--"}  # those of the document
NOTES = (
    "MRE: objective='margin' with the defaults; Bayes: objective='bayes', the same prior.",
    "predictive: log of the expected probability instead of the expected log-probability (001, footnote 7).",
    "95 %: paired t-test over splits. 95 %': corrected for shared training rows (Nadeau-Bengio), whose factor",
    "1/J + n_test/n_train is meant for folds: with several times as many test rows as training rows it is too wide.",
    "train sd: of training rows' log-likelihoods, MRE / Bayes, nats; counted: share of rows with a multiplier over 0;",
    "gap: by how much J may miss its maximum, nats per row; (318 + 1973): training and test rows of the first split.",
    "auto is gaussian where there are numbers and tree where all columns are categories.",
    "Mean AUC and mean rank (1: best): over the classes of a set, then over sets.",
)


class Detector:
    """A detector of some columns, of which only `scores` count: higher for typical rows."""

    def __init__(self, model: Any, columns: list[str], letters: bool = False) -> None:
        self.model, self.columns, self.letters = model, columns, letters

    def fit(self, X: Any, y: np.ndarray) -> Detector:
        self.classes_, self.n_rows = np.unique(y), len(y)
        self.model.fit(self._rows(X))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.ones((len(X), 1))  # of the only class it has seen

    def scores(self, X: Any) -> np.ndarray:
        return self.model.score_samples(self._rows(X))

    def train_scores(self) -> np.ndarray:
        return self.model.scores_

    def _rows(self, X: Any) -> Any:
        frame = X[self.columns]
        return frame.where(frame.isin(LETTERS), None) if self.letters else frame


class Predictive(Detector):
    """log E p(x) = sum_i log E theta_i, of a product of multinomials."""

    def fit(self, X: Any, y: np.ndarray) -> Predictive:
        super().fit(X, y)
        self.train = self.scores(X)
        return self

    def scores(self, X: Any) -> np.ndarray:
        tables = self.model.distribution_.parts[1].parts[0]  # after the shares of components, of which there is one
        table = read_features(self.model, self._rows(X), reset=False, new=True)
        return self.model.model_.read(table).bits @ np.log(tables.T / tables.totals[tables.group])

    def train_scores(self) -> np.ndarray:
        return self.train


# --- methods ----------------------------------------------------------------------------------------------------------


def encoded(data: Dataset, columns: list[str]) -> Any:
    """Categories one-hot, numbers standardized; missing values at the mean, or the most frequent category."""
    named = [c for c in columns if c in data.discrete]
    numbers = [c for c in columns if c not in data.discrete]
    one_hot = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    standard = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer((one_hot, named), (standard, numbers), sparse_threshold=0)


PEERS: dict[str, Callable[[], Any]] = {
    SVM: lambda: OneClassSVM(gamma="scale", nu=0.1),
    FOREST: lambda: IsolationForest(random_state=0),
    LOF: lambda: LocalOutlierFactor(novelty=True),
}


def name_of(model: str, objective: str) -> str:
    return f"{model}, {objective}"


def methods_of(setting: Setting) -> dict[str, Make]:
    """Part A has products only; "auto" is the tree where all columns are categories."""
    letters = setting.dataset == "splice"
    if not setting.name.startswith("splice") and letters:
        names = [name_of("product", objective) for objective in (MRE, BAYES)]
        made = {name: _detector(name, setting) for name in names}
        return made | {f"{name}, predictive": _detector(name, setting, Predictive) for name in names}
    models = [m for m in MODELS if (m != "tree" or setting.dataset in NUMERIC) and (m != "hmm" or letters)]
    made = {
        name_of(m, objective): _detector(name_of(m, objective), setting) for m in models for objective in (MRE, BAYES)
    }
    return made | {name: _detector(name, setting) for name in (MIXTURE, *PEERS)}


def _detector(name: str, setting: Setting, kind: type[Detector] = Detector) -> Make:
    def make(data: Dataset) -> Detector:
        columns = columns_of(setting, data)
        return kind(_model(name, data, columns), columns, letters=setting.dataset == "splice")

    return make


def _model(name: str, data: Dataset, columns: list[str]) -> Any:
    if name in PEERS:
        return make_pipeline(encoded(data, columns), PEERS[name]())
    if name == MIXTURE:
        return GaussianMixture("auto", ["EEE", "VVI", "VVV"], search=Search(max_components=5), random_state=0, n_jobs=1)
    model, objective = name.split(", ")
    return MEDNoveltyDetector(model, objective=objective)


def columns_of(setting: Setting, data: Dataset) -> list[str]:
    if setting.dataset != "splice" or setting.name.startswith("splice_"):
        return list(data.X.columns)
    without = CONSENSUS[setting.name[:2]] if setting.name.endswith("consensus") else ()
    return [c for c in WINDOW if c not in without]


# --- splits -----------------------------------------------------------------------------------------------------------


class Typical:
    """Half of a class for training; the other half and rows of `others` (None: of all other classes) for testing."""

    def __init__(self, of: str, others: tuple[str, ...] | None = None, window: bool = False) -> None:
        self.of, self.others, self.window = of, others, window
        self._seen: tuple[Dataset, np.ndarray] | None = None  # a look for repeats takes longer than many fits

    def __call__(self, data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
        if self._seen is None or self._seen[0] is not data:
            self._seen = data, self._used(data)
        used = self._seen[1]
        rng = np.random.default_rng(seed)
        inside = rng.permutation(np.flatnonzero(used & (data.y == self.of)))
        outside = data.y != self.of if self.others is None else np.isin(data.y, self.others)
        half = len(inside) // 2
        return inside[:half], np.concatenate([inside[half:], rng.permutation(np.flatnonzero(used & outside))[:MOST]])

    def _used(self, data: Dataset) -> np.ndarray:
        """Rows of splice sites that repeat no other."""
        if data.name != "splice":
            return np.full(len(data.y), True)
        seen = data.X[list(WINDOW)] if self.window else data.X
        return ~seen.assign(site=data.y).duplicated().to_numpy()


def part_a() -> list[Setting]:
    names = [(site, site + end) for site in ("IE", "EI") for end in ("", "_without_consensus")]
    return [
        Setting(name, 20, 1, mixed=True, data="splice", splits=Typical(site, (FALSE,), window=True))
        for site, name in names
    ]


def part_b() -> list[Setting]:
    return [
        Setting(
            f"{name}_{c}",
            SPLITS.get(name, 10),
            1,
            mixed=True,
            data=name.removesuffix("25"),
            splits=Typical(c, None, name == "splice25"),
        )
        for name, classes in (NUMERIC | LETTERED).items()
        for c in classes
    ]


# --- measures ---------------------------------------------------------------------------------------------------------


def auc(model: Detector, X: Any, y: np.ndarray) -> float:
    return float(roc_auc_score(y == model.classes_[0], model.scores(X)))


def roc(model: Detector, X: Any, y: np.ndarray) -> list[float]:
    """Share of typical rows accepted, at `RATES` of the others; of products of multinomials only."""
    if not model.letters or getattr(model.model, "density", None) != "product":
        return []
    accepted, right, _ = roc_curve(y == model.classes_[0], model.scores(X))
    return right[np.searchsorted(accepted, RATES, side="right") - 1].round(5).tolist()


def train(model: Detector, X: Any, y: np.ndarray) -> list[float]:
    """Shares of training rows whose log-likelihoods are in `BINS`; of the same."""
    if not model.letters or getattr(model.model, "density", None) != "product":
        return []
    inside = np.clip(model.train_scores(), BINS[0], BINS[-1])
    return (np.histogram(inside, BINS)[0] / len(inside)).round(5).tolist()


def train_sd(model: Detector) -> float | None:
    """Of the training rows' log-likelihoods, nats."""
    return float(np.std(model.train_scores())) if hasattr(model.model, "scores_") else None


def support(model: Detector) -> float | None:
    """Share of training rows whose multiplier is not zero."""
    return len(model.model.support_) / model.n_rows if getattr(model.model, "objective", None) == MRE else None


def gap(model: Detector) -> float | None:
    """Per row, nats."""
    value = getattr(model.model, "gap_", None)
    return None if value is None else value / model.n_rows


# --- view -------------------------------------------------------------------------------------------------------------


def show(table: Table, result: Found, code: str, console: Console) -> None:
    some = {setting: by for setting, by in result.items() if any(by.values())}
    console.print(_level_sets(some))
    for name in NUMERIC | LETTERED:
        of = {s: both(s, by) for s, by in some.items() if s.name.rpartition("_")[0] == name}
        if of:
            console.print(_set(name, of))
    console.print(_overall({s: both(s, by) for s, by in some.items() if "_" in s.name and "consensus" not in s.name}))
    for note in NOTES:
        console.print(f"* {note}", markup=False, highlight=False)
    print_notes(table, result, code, console)


def both(setting: Setting, by: Mapping[str, list[dict]]) -> dict[str, list[dict]]:
    """Records by method, with those of "auto" under the name of the tree too where it is one."""
    if setting.dataset in NUMERIC:
        return dict(by)
    return {**by, **{name_of("tree", o): by.get(name_of("auto", o), []) for o in (MRE, BAYES)}}


def _level_sets(result: Found) -> Grid:
    """What the level set brings, by set and model."""
    grid = Grid("set", "model", "AUC MRE", "AUC Bayes", "MRE - Bayes", "95 % (p)", "95 %' (p')")
    for column in ("train sd", "counted", "gap", "s / fit", "splits"):
        grid.add_column(column)
    grid.title = "MRE against Bayes: test AUC, mean (sd) over splits"
    for setting, by in result.items():
        grid.add_section()
        for first, records in by.items():
            second = first.replace(MRE, BAYES)
            if first != second and records and by.get(second):
                model = first.replace(f", {MRE}", "")
                rows = f"{records[0]['n_train']} + {records[0]['n_test']}"
                grid.add_row(f"{setting.name} ({rows})", model, *pair_cells(records, by[second]))
    return grid


def pair_cells(first: list[dict], second: list[dict]) -> list[str]:
    aucs = [_mean_sd(records) for records in (first, second)]
    sds = " / ".join(f"{mean_sd(records, 'train_sd')[0]:.2f}" for records in (first, second))
    forms = {"support": ".2f", "gap": ".0e", "fit_seconds": ".2f"}
    rest = [f"{mean_sd(first, metric)[0]:{form}}" for metric, form in forms.items()]
    return [*aucs, *paired(first, second), sds, *rest, str(mean_sd(first, "auc")[2])]


def paired(first: list[dict], second: list[dict]) -> list[str]:
    """The mean difference, its interval and p-value, plain and corrected."""
    cells = [f"{difference(first, second, 'auc').mean:+.4f}"]
    for corrected in (False, True):
        gap = difference(first, second, "auc", corrected=corrected)
        half = gap.se * stdtrit(gap.df, 0.975) if gap.df >= 1 else np.nan
        text = f"{gap.mean - half:+.4f} to {gap.mean + half:+.4f} ({gap.p_value:.2g})"
        cells.append(text if gap.df >= 1 else "")
    return cells


def _mean_sd(records: list[dict]) -> str:
    mean, sd, n = mean_sd(records, "auc")
    return f"{mean:.4f}" + f" ({sd:.4f})" * (n > 1) if n else "-"


def _set(name: str, result: Found) -> Grid:
    """All methods on a set, a column for each typical class."""
    grid = Grid("method", *(s.name.removeprefix(f"{name}_") for s in result), "mean", "s / fit")
    grid.title = f"{name}: test AUC, mean (sd) over splits, by typical class"
    for method in methods_in(result):
        of = [by.get(method, []) for by in result.values()]
        if any(of):
            mean = np.mean([mean_sd(records, "auc")[0] for records in of])
            seconds = np.mean([mean_sd(records, "fit_seconds")[0] for records in of])
            grid.add_row(method, *map(_mean_sd, of), f"{mean:.4f}", f"{seconds:.2f}")
    return grid


def methods_in(result: Found) -> list[str]:
    """Models in the order of `MODELS`, then the others."""
    ours = [name_of(m, o) for m in MODELS for o in (MRE, BAYES)]
    return [*ours, MIXTURE, *PEERS]


def ranks(result: Found) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Methods run on all sets; their mean AUC and rank in each set (sets, methods), averaged over its classes."""
    methods = [m for m in methods_in(result) if all(by.get(m) for by in result.values())]
    auc = np.array([[mean_sd(by[m], "auc")[0] for m in methods] for by in result.values()])
    rank = rankdata(-auc.round(6), axis=1) if methods else auc
    sets = np.array([s.name.rpartition("_")[0] for s in result])
    return methods, *(
        np.array([part[sets == name].mean(axis=0) for name in dict.fromkeys(sets)]) for part in (auc, rank)
    )


def _overall(result: Found) -> Grid:
    names = list(dict.fromkeys(s.name.rpartition("_")[0] for s in result))
    grid = Grid("method", *(f"{name} AUC (rank)" for name in names), "mean AUC", "mean rank", "s / fit")
    grid.title = "all sets, methods that were run on all"
    if result:
        methods, auc, rank = ranks(result)
        for j, method in enumerate(methods):
            cells = [f"{a:.4f} ({r:.1f})" for a, r in zip(auc[:, j], rank[:, j])]
            seconds = np.mean([mean_sd(by[method], "fit_seconds")[0] for by in result.values()])
            grid.add_row(method, *cells, f"{auc[:, j].mean():.4f}", f"{rank[:, j].mean():.2f}", f"{seconds:.2f}")
    return grid


def picture(result: Found, path: Path) -> None:
    """Figure 9, a row for each set of part A: (a) log-likelihoods of training rows, (b) ROC curves."""
    from matplotlib.figure import Figure

    end = ", predictive"
    some = {s: by for s, by in result.items() if any(by.get(name_of("product", o) + end) for o in (MRE, BAYES))}
    figure = Figure(figsize=(8.4, 2.9 * max(1, len(some))), layout="constrained")
    axes = figure.subplots(max(1, len(some)), 2, squeeze=False)
    for (left, right), (setting, by) in zip(axes, some.items()):
        of = {o: [r for r in by.get(name_of("product", o) + end, []) if not r["failed"]] for o in (MRE, BAYES)}
        _histogram(left, of)
        _curves(right, of)
        for ax in (left, right):
            ax.set_title(setting.name.replace("_", " "), fontsize=9)
            ax.legend(fontsize=8, frameon=False, loc="upper left" if ax is left else "lower right")
            ax.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel("log-likelihood of training rows (nats)")
    axes[-1, 1].set_xlabel("false sites accepted (share of N, log scale)")
    figure.savefig(path, dpi=130)


def _histogram(ax: Any, of: Mapping[str, list[dict]]) -> None:
    shares = {o: np.mean([r["train"] for r in records], axis=0) for o, records in of.items() if records}
    for objective, share in shares.items():
        sd = mean_sd(of[objective], "train_sd")[0]
        label = f"{'MRE' if objective == MRE else 'Bayes'} (sd {sd:.2f})"
        ax.stairs(share, BINS, color=COLORS[objective], linestyle=DASHES[objective], linewidth=1.5, label=label)
    total = np.sum(list(shares.values()), axis=0) if shares else np.ones(len(BINS) - 1)
    held = np.flatnonzero(total > 5e-3)  # one true site has hardly a letter that is known: its likelihood is almost 1
    ax.set_xlim(BINS[held[0]] - 1, BINS[held[-1] + 1] + 1)
    ax.set_ylabel("share of rows per nat")


def _curves(ax: Any, of: Mapping[str, list[dict]]) -> None:
    shown = RATES > 0
    for objective, records in of.items():
        if records:
            label = f"{'MRE' if objective == MRE else 'Bayes'} (AUC {mean_sd(records, 'auc')[0]:.4f})"
            mean = np.mean([r["roc"] for r in records], axis=0)[shown]
            ax.plot(RATES[shown], mean, color=COLORS[objective], linestyle=DASHES[objective], label=label)
    ax.set_xscale("log")
    ax.set_xlim(RATES[1], 1.0)
    ax.set_ylim(top=1.005)
    ax.set_ylabel("true sites accepted")


class NoveltyTable(Table):
    """Methods and the columns they see depend on the set."""

    def methods_of(self, setting: Setting) -> Mapping[str, Make]:
        return methods_of(setting)


NOVELTY = NoveltyTable(
    name="novelty",
    settings=(*part_a(), *part_b()),
    methods=methods_of(part_b()[0]),
    measures={"train_sd": train_sd, "support": support, "gap": gap},
    scores={"auc": auc},
    curves={"roc": roc, "train": train},
    quick=("IE", "breast_w_benign"),
    view=show,
    picture=picture,
    peers=tuple(PEERS),
)
