"""The page of a comparison: what to use, what was compared, and how to reproduce it."""

import html
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import mixent as mx
from mixent.evaluate import CrossValidation
from mixent.evaluate.displays.projection import encoded
from mixent.report import comparison_report, scores
from mixent.report.cases import select_cases
from mixent.report.data import with_categories
from mixent.report.maps import plane_map

RNG = np.random.default_rng(0)
CODE = RNG.integers(30, size=160)
Y = np.where((CODE % 2 == 1) ^ (RNG.random(160) < 0.1), "odd", "even")
FRAME = pd.DataFrame({"code": CODE.astype(float), "x": RNG.normal(size=160)})
OWN = {"naive <Bayes>": GaussianNB(), "logistic": LogisticRegression()}


@pytest.fixture(scope="module")
def found():
    return mx.compare(FRAME, Y, methods=OWN, baselines=False, folds=3, n_jobs=1)


def page_of(found, tmp_path):
    return found.report(tmp_path / "r.html").read_text()


def code_on(page):
    (text,) = [text for text in re.findall("<pre><code>(.*?)</code></pre>", page, re.DOTALL) if "compare" in text]
    return html.unescape(text)


# --- the page ---------------------------------------------------------------------------------------------------------

SECTIONS = [
    *("recommendation", "what-was-compared", "columns", "data-problems", "scores", "significant-differences"),
    *("observed-and-expected-errors", "calibration", "roc-curves", "errors-of-the-recommended-method"),
    *("map-of-the-rows", "the-model", "explained-rows", "how-to-reproduce"),
]


def test_the_sections_of_the_page(found, tmp_path, read):
    path = found.report(tmp_path / "r.html", commands="mixent compare <x>")
    page = read(path)
    assert page.sections == SECTIONS and found.recommendation.headline in page.text
    assert "mixent compare <x>" in page.text and found.fingerprint in page.words
    assert {"naive <Bayes>", "logistic"} <= set(page.text)
    assert found.report(tmp_path / "2.html", commands="mixent compare <x>").read_bytes() == path.read_bytes()


def test_without_a_winner_or_figures(found, tmp_path, read, without_matplotlib):
    alone = replace(found, winner=None, skipped={"slow": "too <slow>"})
    page = read(comparison_report(tmp_path / "r.html", alone, data_notes=["a <note>"]))
    drawn = {"significant-differences", "calibration", "roc-curves", "map-of-the-rows"}
    assert page.sections == [name for name in SECTIONS if name not in drawn | {"the-model", "explained-rows"}]
    assert "img" not in page.tags and "A <note>." in page.text and "Left out: slow: too <slow>." in page.text


def test_unlabelled_rows_weights_and_failures_are_counted(tmp_path, read):
    y = Y.astype(object)
    y[::10] = None
    methods = {**OWN, "svc": LinearSVC()}
    weight = np.linspace(0.5, 1.5, 160)
    found = mx.compare(FRAME, y, methods=methods, baselines=False, folds=2, n_jobs=1, sample_weight=weight)
    page = read(found.report(tmp_path / "r.html"))
    (text,) = [text for text in page.text if text.startswith("16 rows without a label")]
    assert all(name in text for name in OWN) and "Rows are weighted" in page.words


# --- how to reproduce -----------------------------------------------------------------------------------------------


def called_with(code, monkeypatch):
    """The options of `compare` when the code on the page is run."""
    calls = []

    class Nothing:
        def report(self, path):
            assert path == "page.html"

    monkeypatch.setattr(mx, "compare", lambda X, y, **options: calls.append(options) or Nothing())
    exec(code, {"X": FRAME, "y": Y, "methods": OWN, "weight": "the weights", "print": lambda found: None})
    (options,) = calls
    return options


USUAL = {"folds": 5, "repeats": 1, "random_state": 0, "metric": "log_loss", "budget": None, "methods": "auto"}
USUAL |= {"baselines": True, "categorical": "auto"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"methods": ["mixture", 'a "quoted" name'], "baselines": False, "budget": 90.0},
        {"folds": 10, "repeats": 3, "random_state": 7, "metric": "brier"},
        {"categorical": ["code", np.str_("Größe"), 3], "random_state": np.int64(2)},
    ],
)
def test_the_code_on_the_page_makes_the_same_call(found, tmp_path, monkeypatch, given):
    page = page_of(replace(found, options=USUAL | given), tmp_path)
    assert called_with(code_on(page), monkeypatch) == given
    assert ("depends on the machine" in page) == ("budget" in given) and "np." not in code_on(page)


def test_own_classifiers_are_named(found, tmp_path, monkeypatch):
    code = code_on(page_of(replace(found, options=USUAL | {"methods": "own"}), tmp_path))
    assert '"naive <Bayes>", "logistic"' in code
    assert called_with(code, monkeypatch) == {"methods": OWN}


def test_what_is_not_known_of_the_call_is_taken_from_its_folds(found, tmp_path, monkeypatch):
    weighted = replace(found, options={}, cv=replace(found.cv, sample_weight=np.ones(160)), metric="error")
    options = called_with(code_on(page_of(weighted, tmp_path)), monkeypatch)
    assert options == {"folds": 3, "metric": "error", "sample_weight": "the weights"}


# --- columns that are categories by the user's word -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_listed_columns_are_read_as_categories(kind):
    gaps = FRAME.assign(code=FRAME["code"].where(RNG.random(160) > 0.1))
    X = {"pandas": gaps, "polars": pl.from_pandas(gaps), "array": gaps.to_numpy()}[kind]
    Z, names = encoded(with_categories(X, [0]))
    common = [c for c in range(30) if np.mean(gaps["code"] == c) >= 0.01]
    assert sorted(float(n.partition(" = ")[2].strip("'")) for n in names[1:]) == sorted(common) and len(common) > 20
    for name, column in zip(names[1:], Z.T[1:]):
        hit = (gaps["code"] == float(name.partition(" = ")[2].strip("'"))).to_numpy(dtype=float)
        np.testing.assert_allclose(column, hit - hit.mean(), atol=1e-12)
    assert with_categories(X, "auto") is X
    assert with_categories("no table", [0]) == "no table"


def test_the_plane_and_typical_rows_go_by_them(found):
    proba, classes = found.cv.proba[found.recommended], found.cv.classes
    kept = []
    for categorical in ("auto", ["code"]):
        (figure,) = plane_map("m", FRAME, Y, proba, classes, "rows", categorical=categorical)
        kept.append(int(re.search(r"for (\d+)\s% of the rows", figure.caption)[1]))
    assert kept[0] < 70 < 80 < kept[1]  # odd and even are no matter of size
    cases = [select_cases(found.winner, FRAME, Y, proba, categorical=c) for c in ("auto", ["code"])]
    Z = encoded(with_categories(FRAME, ["code"]))[0]
    for case in cases[1]:
        if case.why.startswith("A typical row"):
            mine = case.label == Y
            right = mine & (classes[proba.argmax(axis=1)] == Y)
            far = ((Z - Z[mine].mean(axis=0)) ** 2).sum(axis=1)
            assert case.row == np.where(right, far, np.inf).argmin()
    assert [case.row for case in cases[0]] != [case.row for case in cases[1]]


def test_the_page_hands_on_what_was_listed(found, tmp_path, monkeypatch):
    seen = []
    for name in ("columns_section", "plane_map", "cases_section"):
        monkeypatch.setattr(
            f"mixent.report.comparison.{name}",
            lambda *given, categorical="auto", **more: seen.append(categorical) or [],
        )
    page_of(replace(found, options={"categorical": ["code"]}), tmp_path)
    assert seen == [["code"]] * 3


# --- scores ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["log_loss", "error", "balanced_error", "brier"])
def test_the_metric_of_the_comparison_has_its_diagram_first(found, metric):
    figures = scores.differences(replace(found, metric=metric))
    shown = [re.search(r"Methods by mean (.*), best first", figure.alt)[1] for figure in figures]
    first = scores.MethodScoresDisplay.from_comparison(found, metric=metric).heading
    assert shown[0] == first and len(shown) == len(set(shown))
    assert {"Log-loss (nats)", "Error (%)"} <= set(shown) and len(shown) <= 3
    assert figures[1].caption == scores.MethodScoresDisplay.from_comparison(found, metric=shown_metric(shown[1])).text()


def shown_metric(heading):
    return next(metric for metric, (name, _, _) in scores.SCALES.items() if name.lower() == heading.lower())


def made(values):
    """A cross-validation of methods (k, J) with this error in every fold."""
    blank = dict.fromkeys(("balanced_error", "log_loss", "brier", "calibration", "fit_seconds", "predict_seconds"), 0.5)
    records = [
        {"method": f"m{i}", "repeat": 0, "fold": f, "n_train": 80, "n_test": 20, **blank, "error": value}
        | {"labelled_only": False, "failed": None}
        for i, row in enumerate(values)
        for f, value in enumerate(row)
    ]
    none = np.zeros((0, 2))
    return CrossValidation(records, {}, np.array(["a", "b"]), none[:, 0], np.zeros((1, 0), dtype=int))


def test_scores_that_differ_by_rounding_are_both_best():
    row = np.array([0.03, 0.05, 0.04])
    table = scores.methods_table(made([row, row + 1e-17 + np.array([1e-16, 0, 0]), row + 1e-6]))
    place = list(table.header).index("error (%)")
    marked = {cells[0]: cells[place].best for cells in table.rows}
    assert marked == {"m0": True, "m1": True, "m2": False}
    means = [made([r]).values("m0", "error").mean() for r in (row, row + 1e-17 + np.array([1e-16, 0, 0]))]
    assert means[0] != means[1]  # or nothing was tested
