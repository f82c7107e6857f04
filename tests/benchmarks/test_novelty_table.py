"""Table "novelty": its splits, scores and view, on made-up rows."""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.tables import __main__ as program
from benchmarks.tables.data import load
from benchmarks.tables.novelty import (
    BAYES,
    BINS,
    LETTERED,
    MIXTURE,
    MRE,
    NOVELTY,
    NUMERIC,
    PEERS,
    Detector,
    Predictive,
    Typical,
    auc,
    both,
    columns_of,
    encoded,
    methods_of,
    name_of,
    paired,
    ranks,
    roc,
    train,
)
from benchmarks.tables.splice import CONSENSUS, RATES, WINDOW
from benchmarks.tables.store import Store
from benchmarks.tables.table import Setting
from scipy.special import logsumexp
from scipy.stats import ttest_rel
from sklearn.metrics import roc_auc_score

from mixent import MEDNoveltyDetector

SETTINGS = {s.name: s for s in NOVELTY.settings}
SIZE = {"repeat": 0, "n_train": 40, "n_test": 100, "failed": None}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Sites whose letters tell a little, some repeated; two overlapping groups of numbers with gaps."""
    folder = tmp_path_factory.mktemp("novelty")
    rng = np.random.default_rng(0)
    site = np.repeat(["IE", "EI", "N"], [80, 60, 90])
    letters = pd.DataFrame(rng.choice(list("ACGT"), (230, 25)), columns=list(WINDOW))
    for names, label in ((CONSENSUS["IE"], "IE"), (CONSENSUS["EI"], "EI"), (WINDOW[:3], "IE")):
        letters.loc[site == label, list(names)] = np.where(
            rng.random((np.sum(site == label), len(names))) < 0.9, "A", "G"
        )
    letters.insert(0, "pm30", rng.choice(list("ACGT"), 230))
    letters.loc[:4, "pm30"] = "C"
    letters.iloc[200, 1] = "N"
    sites = letters.assign(**{"class": site})
    pd.concat([sites, sites.iloc[:5].assign(pm30="A")]).to_csv(folder / "splice.csv", index=False)
    label = np.arange(120) % 2
    numbers = rng.standard_normal((120, 3)) * (1 + label[:, None]) + 2 * label[:, None]
    numbers[rng.random(numbers.shape) < 0.03] = np.nan
    frame = pd.DataFrame(numbers, columns=list("abc")).assign(**{"class": np.where(label, "malignant", "benign")})
    frame.to_csv(folder / "breast_w.csv", index=False)
    entries = [
        {"name": name, "file": f"{name}.csv", "features": [{"name": c, "kind": kind} for c in columns]}
        for name, columns, kind in (("splice", ("pm30", *WINDOW), "discrete"), ("breast_w", "abc", "continuous"))
    ]
    (folder / "manifest.json").write_text(json.dumps({"datasets": entries}))
    return folder


def test_table_novelty(tables, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    given = ["--table", "novelty", "--folds", "2", "--quiet", "--data", str(tables), "--results", str(tmp_path)]
    sets = ["IE", "IE_without_consensus", "breast_w_malignant"]
    some = [name_of("auto", MRE), name_of("auto", BAYES), MIXTURE, *PEERS]
    assert program.main([*given, "--sets", sets[2], "--methods", *some]) == 0
    assert program.main([*given, "--sets", *sets[:2], "--picture", str(tmp_path / "a.png")]) == 0
    shown = capsys.readouterr().out
    for text in (*PEERS, MIXTURE, "auto, margin", "MRE - Bayes", "mean rank", "product, predictive", "malignant"):
        assert text in shown
    assert (tmp_path / "a.png").stat().st_size > 10_000
    store = Store("novelty", tmp_path)
    for name in sets:
        records = list(store.load(name).values())
        assert len(records) == 2 * (4 if name in sets[:2] else len(some)) and all(r["failed"] is None for r in records)
        for r in records:
            assert (r["n_train"], r["n_test"]) == ((40, 130) if name in sets[:2] else (30, 90))
            assert 0.3 < r["auc"] <= 1 and (r["gap"] is None) == (r["support"] is None) == (MRE not in r["method"])
            assert len(r["roc"]) == (len(RATES) if name in sets[:2] else 0)
            assert sum(r["train"]) == pytest.approx(1 if name in sets[:2] else 0, abs=1e-3)
    means = [np.mean([r["auc"] for r in store.load(name).values()]) for name in sets[:2]]
    assert means[0] > means[1] > 0.6  # the consensus gives sites away


def test_half_of_a_class_is_for_training_and_repeats_are_left_out(tables):
    data = load("splice", tables, mixed=True)
    for window, n in ((True, 80), (False, 85)):  # the repeats differ outside the window
        rows, test = Typical("IE", None, window)(data, 0)
        assert set(data.y[rows]) == {"IE"} and set(data.y[test]) == {"IE", "EI", "N"}
        assert len(rows) == n // 2 and len(set(rows) | set(test)) == n + 150
    _, test = Typical("IE", ("N",), window=True)(data, 0)
    assert set(data.y[test]) == {"IE", "N"}


def test_other_classes_are_cut_down(tables, monkeypatch):
    monkeypatch.setattr("benchmarks.tables.novelty.MOST", 7)
    data = load("breast_w", tables, mixed=True)
    _, test = Typical("benign")(data, 0)
    assert np.sum(data.y[test] == "malignant") == 7


def test_sets_have_their_own_columns_and_methods(tables):
    data = load("splice", tables, mixed=True)
    assert set(WINDOW) - set(columns_of(SETTINGS["EI_without_consensus"], data)) == set(CONSENSUS["EI"])
    assert columns_of(SETTINGS["splice25_N"], data) == columns_of(SETTINGS["IE"], data) == list(WINDOW)
    assert columns_of(SETTINGS["splice_N"], data) == ["pm30", *WINDOW]
    for name, setting in SETTINGS.items():
        of = methods_of(setting)
        assert (name_of("hmm", MRE) in of) == name.startswith("splice")
        assert (name_of("tree", MRE) in of) == (setting.dataset in NUMERIC)
        assert all(p in of for p in PEERS) == (name.rpartition("_")[0] in NUMERIC | LETTERED)
    assert both(SETTINGS["mushroom_e"], {"auto, margin": [SIZE]})["tree, margin"] == [SIZE]


def test_letters_that_are_none_count_as_missing(tables):
    data = load("splice", tables, mixed=True)
    given = Detector(None, list(WINDOW), letters=True)._rows(data.X)
    assert given.isna().to_numpy().sum() == 1 and given.isna().iloc[200, 0]


def test_predictive_scores_are_logarithms_of_mean_probabilities(tables):
    """E theta by its definition: the mean of draws from the Dirichlet distributions found."""
    data = load("splice", tables, mixed=True)
    rows, test = Typical("IE", ("N",), window=True)(data, 0)
    columns = list(WINDOW[:4])
    model = Predictive(MEDNoveltyDetector("product"), columns, letters=True).fit(data.X.iloc[rows], data.y[rows])
    tables_ = model.model.distribution_.parts[1].parts[0]
    rng = np.random.default_rng(0)
    drawn = rng.gamma(tables_.T, size=(20_000, len(tables_.T)))
    sums = np.stack([drawn[:, tables_.group == g].sum(axis=1) for g in range(4)], axis=1)
    log_theta = np.log(drawn / sums[:, tables_.group])
    complete = test[~model._rows(data.X.iloc[test]).isna().any(axis=1).to_numpy()][:20]
    scores = model.scores(data.X.iloc[complete])
    for row, score in zip(complete, scores):
        cells = [
            list(np.flatnonzero(tables_.group == g))[list(model.model.schema_.columns[g].categories).index(letter)]
            for g, letter in enumerate(data.X[columns].iloc[row])
        ]
        assert score == pytest.approx(logsumexp(log_theta[:, cells].sum(axis=1)) - np.log(20_000), abs=0.03)
    assert model.train_scores() == pytest.approx(model.scores(data.X.iloc[rows]))


def test_gaps_are_filled_and_new_categories_are_zeros():
    X = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["u", "u", None]})
    ready = encoded(type("Data", (), {"discrete": ("b",)}), ["a", "b"]).fit(X)
    assert np.array_equal(ready.transform(X)[:, :1], np.ones((3, 1))) and ready.transform(X)[1, 1] == 0
    assert np.array_equal(ready.transform(pd.DataFrame({"a": [2.0], "b": ["w"]})), [[0.0, 0.0]])


class Fixed:
    classes_, letters = np.array(["IE"]), True

    class model:  # noqa: N801
        density = "product"

    def scores(self, X):
        return X

    def train_scores(self):
        return np.array([-70.0, -1.5, -1.2, -0.5])


def test_auc_roc_and_histogram_are_those_of_the_scores():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.3, "IE", "N")
    scores = rng.standard_normal(300) + (y == "IE")
    assert auc(Fixed(), scores, y) == roc_auc_score(y == "IE", scores)
    for rate, hits in zip(RATES, roc(Fixed(), scores, y)):
        best = [np.mean(scores[y == "IE"] >= t) for t in scores if np.mean(scores[y == "N"] >= t) <= rate]
        assert hits == pytest.approx(max(best, default=0), abs=1e-5)
    shares = train(Fixed(), scores, y)
    assert len(shares) == len(BINS) - 1 and (shares[0], shares[-2], shares[-1]) == (0.25, 0.5, 0.25)


def test_differences_are_paired_over_the_splits():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 12))
    first, second = ([SIZE | {"fold": i, "auc": x} for i, x in enumerate(v)] for v in (a, b))
    cells = paired(first, second[::-1])
    interval = ttest_rel(a, b).confidence_interval(0.95)
    text = f"{interval.low:+.4f} to {interval.high:+.4f} ({ttest_rel(a, b).pvalue:.2g})"
    assert cells[:2] == [f"{(a - b).mean():+.4f}", text]
    wider = np.array([[float(x) for x in cell.split(" (")[0].split(" to ")] for cell in cells[1:]])
    assert wider[1, 0] < wider[0, 0] < wider[0, 1] < wider[1, 1]


def test_ranks_weigh_sets_and_not_classes():
    values = {"a_1": (0.9, 0.8, 0.7), "a_2": (0.7, 0.8, 0.9), "b_1": (0.6, 0.6, 0.5)}
    methods = [name_of("auto", MRE), name_of("auto", BAYES), MIXTURE]
    results = {
        Setting(name): {m: [SIZE | {"fold": 0, "auc": x}] for m, x in zip(methods, of)} for name, of in values.items()
    }
    results[Setting("b_1")][name_of("hmm", MRE)] = [SIZE | {"fold": 0, "auc": 1.0}]  # not on all
    named, areas, places = ranks(results)
    assert named == methods
    assert areas == pytest.approx(np.array([[0.8, 0.8, 0.8], [0.6, 0.6, 0.5]]))
    assert places == pytest.approx(np.array([[2, 2, 2], [1.5, 1.5, 3]]))
