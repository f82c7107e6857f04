import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import GaussianMixture

import mixent
from mixent import MixtureClassifier, Search, SharedMixtureClassifier
from mixent.base.style import OKABE_ITO, plain
from mixent.base.text import class_name
from mixent.displays import (
    CalibrationDisplay,
    ComponentsDisplay,
    ConfusionDisplay,
    ConvergenceDisplay,
    ExplanationDisplay,
    GrowthDisplay,
    RegionsDisplay,
    SelectionDisplay,
    UncertaintyDisplay,
)
from mixent.evaluate import calibration_error

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
NASTY = np.array(["$\\bad", "_hidden", "<script>"])


class Gaussians(QuadraticDiscriminantAnalysis):
    """One Gaussian per class, with what a mixture classifier has."""

    def fit(self, X, y):
        super().fit(X, y)
        self.data_ = X, y
        self.covariances_ = np.array([np.cov(np.asarray(X)[y == c].T) for c in self.classes_])
        self.component_class_ = np.arange(len(self.classes_))
        return self

    def marginal(self, columns):
        X, y = self.data_
        return Gaussians().fit(X.iloc[:, list(columns)] if hasattr(X, "iloc") else X[:, list(columns)], y)


def drawn(display, ax=None):
    shown = display.plot(ax)
    assert shown is display
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()
    return display.ax_


def texts(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()]


def step(n_pass, objective, kind="plain", accepted=True, segment=0):
    return SimpleNamespace(
        n_pass=n_pass, objective=objective, kind=kind, accepted=accepted, segment=segment, seconds=0.0
    )


def test_importing_brings_in_no_heavy_library():
    # scikit-learn 1.9 itself imports pandas where it is installed: only what we add counts
    code = (
        "import sys, sklearn.base, scipy.linalg; before = set(sys.modules); import mixent.evaluate, mixent.report; "
        "heavy = {'matplotlib', 'pandas', 'rich', 'polars', 'narwhals', 'pyarrow', 'sklearn.model_selection'}; "
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_calibration_is_the_binned_frequency():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    y = Y[rng.integers(0, 150, 300)]
    classes = np.unique(Y)
    display = CalibrationDisplay.from_predictions(y, proba, classes)
    (bins,) = display.curves.values()
    error = np.sum(bins.mass * np.abs(bins.observed - bins.predicted)) / bins.mass.sum()
    assert error == pytest.approx(calibration_error(y, proba, classes), rel=1e-12)
    ax = drawn(display)
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), np.c_[bins.predicted, bins.observed])
    above = ax.child_axes[0]
    assert sum(bar.get_height() for bar in above.patches) == 300  # no row is outside the picture
    per_class = CalibrationDisplay.from_predictions(y, proba, classes, kind="class")
    assert list(per_class.curves) == list(classes)
    total = sum(np.sum(b.mass * b.observed) for b in per_class.curves.values())
    assert total == pytest.approx(300)  # each row is of one class
    drawn(per_class)


def test_several_calibrations_share_an_axes():
    model = Gaussians().fit(X, Y)
    ax = drawn(CalibrationDisplay.from_estimator(model, X, Y))
    other = CalibrationDisplay.from_predictions(Y, np.full((150, 3), 1 / 3), np.unique(Y), name="blind")
    other.plot(ax, first_colour=1, counts=False, band=False)
    assert texts(ax) == ["top label", "blind"] and len(ax.child_axes) == 1
    assert ax.get_xlim()[0] <= 1 / 3
    with pytest.raises(ValueError, match='kind must be "top" or "class"'):
        CalibrationDisplay.from_estimator(model, X, Y, kind="each")


def test_calibration_counts_stay_inside_the_axes():
    from matplotlib.figure import Figure

    ax = Figure().subplots()  # no layout engine makes room for them
    drawn(CalibrationDisplay.from_estimator(Gaussians().fit(X, Y), X, Y), ax)
    ax.figure.canvas.draw()
    (above,) = ax.child_axes
    assert above.get_window_extent().y1 <= ax.get_window_extent().y1 + 1e-6
    assert ax.transData.transform((1, 1))[1] < above.get_window_extent().y0  # and above all points
    assert above.get_ylabel() == "rows" and max(ax.get_yticks()) == 1
    weighted = CalibrationDisplay.from_estimator(Gaussians().fit(X, Y), X, Y, sample_weight=np.full(150, 2.0))
    assert drawn(weighted).child_axes[0].get_ylabel() == "weight"


def test_confusion_by_hand():
    display = ConfusionDisplay.from_predictions(["a", "a", "a", "b"], ["a", "b", "a", "b"], sample_weight=[1, 2, 1, 5])
    np.testing.assert_array_equal(display.counts, [[2, 2], [0, 5]])
    np.testing.assert_array_equal(display.shares, [[0.5, 0.5], [0, 1]])
    ax = drawn(display)
    assert [t.get_text() for t in ax.texts] == ["2", "2", "5"]
    assert ax.figure.axes[1].get_ylabel() == "share of the true class (weighted)"
    drawn(ConfusionDisplay.from_estimator(Gaussians().fit(X, Y), X, Y))
    drawn(ConfusionDisplay.from_predictions(np.arange(25), np.arange(25)))
    empty = ConfusionDisplay.from_predictions(["a"], ["a"], ["a", "b"])
    np.testing.assert_array_equal(empty.shares, [[1, 0], [0, 0]])
    with pytest.raises(ValueError, match="y has 1 rows, predicted has 2"):
        ConfusionDisplay.from_predictions(["a"], ["a", "a"])


def test_uncertainty_is_sorted_and_counts_the_errors():
    model = Gaussians().fit(X, Y)
    display = UncertaintyDisplay.from_estimator(model, X, Y)
    proba = model.predict_proba(X)
    for c, label in enumerate(model.classes_):
        np.testing.assert_allclose(display.uncertainty[label], np.sort(1 - proba[label == Y].max(axis=1)))
        assert display.wrong[label].sum() == np.sum(proba[label == Y].argmax(axis=1) != c)
    ax = drawn(display)
    assert texts(ax)[0] == "setosa: 0 of 50 wrong" and texts(ax)[-1] == "wrong decision"


@pytest.mark.parametrize("n_classes", [6, 26])
def test_uncertainty_of_many_classes_keeps_its_width(n_classes):
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.2), 600)
    display = UncertaintyDisplay.from_predictions(rng.integers(0, n_classes, 600), proba, range(n_classes))
    ax = drawn(display)
    assert ax.get_position().width > 0.8
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0
    assert len(texts(ax)) == min(n_classes, 12) + 1
    rest = [text for text in texts(ax) if "fewer errors" in text]
    assert rest == (["15 classes with fewer errors"] if n_classes == 26 else [])
    ax = drawn(display, Figure().subplots())  # no layout engine: inside
    assert ax.get_legend().get_window_extent().y0 > ax.get_window_extent().y0


def test_convergence_draws_one_line_per_segment():
    trace = (
        step(1, -90.0, "start"),
        step(2, -50.0),
        step(3, -1e9, "proposal", accepted=False),
        step(4, -40.0, "proposal"),
        step(5, -60.0, "repair", segment=1),
        step(6, -30.0, segment=1),
        step(7, float("nan"), "proposal", accepted=False, segment=1),
    )
    display = ConvergenceDisplay.from_estimator(SimpleNamespace(run_=SimpleNamespace(trace=trace)))
    ax = drawn(display)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[1, -90], [2, -50], [4, -40]])
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), [[5, -60], [6, -30]])
    assert texts(ax) == ["accelerated step", "rejected", "component re-seeded"]
    assert ax.get_ylim()[0] > -100  # a wild rejected trial does not flatten the picture
    np.testing.assert_array_equal(ax.lines[3].get_xdata(), [3, 7])
    drawn(ConvergenceDisplay.from_trace((step(1, -3.0, "start"),)))
    close = (step(1, -1000.002, "start"), step(2, -1000.001))
    ax = drawn(ConvergenceDisplay.from_trace(close))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [-0.001, 0], atol=1e-9)
    assert ax.get_ylabel() == "Objective − (-1000.001) (nats)"
    with pytest.raises(ValueError, match="has no run_"):
        ConvergenceDisplay.from_estimator(SimpleNamespace())
    with pytest.raises(ValueError, match="the trace is empty"):
        ConvergenceDisplay.from_trace(())


def search(structures=("EII", "VVV"), nan=()):
    return [
        {
            "n_components": k,
            "covariance": s,
            "bic": float("nan") if (k, s) in nan else 100.0 * abs(k - 2) + i,
            "icl": 200.0 - k,
            "aic": 1.0,
            "log_likelihood": -1.0,
            "n_free": 1,
        }
        for i, s in enumerate(structures)
        for k in (3, 1, 2)
    ]


def test_selection_marks_the_lowest():
    model = mixent.GaussianMixture()
    model.search_ = search()
    display = SelectionDisplay.from_estimator(model)
    assert (display.chosen["covariance"], display.chosen["n_components"]) == ("EII", 2)
    np.testing.assert_array_equal(display.curves()["VVV"], [[1, 2, 3], [101, 1, 101]])
    ax = drawn(display)
    assert texts(ax) == ["EII", "VVV", "chosen: EII, 2"] and "lower is better" in ax.get_ylabel()
    assert SelectionDisplay.from_search(search(), "icl").chosen["n_components"] == 3
    assert SelectionDisplay.from_search(search(nan=[(2, "EII")])).chosen["covariance"] == "VVV"
    drawn(SelectionDisplay.from_search(search([f"S{i}" for i in range(20)])))
    with pytest.raises(ValueError, match="has no search_"):
        SelectionDisplay.from_estimator(SimpleNamespace())
    with pytest.raises(ValueError, match="this search has no bic; it holds log_loss, n_components"):
        SelectionDisplay.from_search([{"log_loss": 1.0, "n_components": 2}])
    with pytest.raises(ValueError, match="criterion must be one of"):
        SelectionDisplay.from_search(search(), "loo")
    with pytest.raises(ValueError, match="this search has no cv; it holds n_components, covariance, bic"):
        SelectionDisplay.from_search(search(), "cv")
    with pytest.raises(ValueError, match="every fit failed"):
        SelectionDisplay.from_search(search(["EII"], nan=[(k, "EII") for k in (1, 2, 3)]))


def test_selection_shows_the_best_and_tells_structures_apart():
    many = search([f"S{i:02d}" for i in range(14)])
    many[1]["bic"] = 1e6
    ax = drawn(SelectionDisplay.from_search(many))
    assert ax.get_ylim()[0] < 0 and 60 < ax.get_ylim()[1] < 200
    looks = [(line.get_color(), str(line._dash_pattern)) for line in ax.lines[:-1]]
    assert len(set(looks)) == 14 and looks[0][1] != looks[1][1]
    drawn(SelectionDisplay.from_search(search(["EII"], nan=[(1, "EII"), (3, "EII")])))  # one value: some limits


GROWN = {"covariance": ["VVI"], "search__growth": "incremental", "search__max_components": 3, "random_state": 0}


def test_selection_rings_what_was_chosen_even_if_it_is_not_the_lowest():
    lines = search()
    for entry in lines:
        entry["chosen"] = entry["covariance"] == "VVV" and entry["n_components"] == 3
    display = SelectionDisplay.from_search(lines)
    assert display.chosen is display.picks[0] and display.chosen["n_components"] == 3
    ax = drawn(display)
    assert texts(ax)[-1] == "chosen: VVV, 3"
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), [[3, 101]])
    assert ax.get_ylim()[1] > 101


def test_selection_of_each_class_counts_from_its_lowest():
    model = MixtureClassifier("auto", search=Search("bic", per_class=True)).set_params(**GROWN).fit(X, Y)
    display = SelectionDisplay.from_estimator(model)
    assert [pick["class"] for pick in display.picks] == list(model.classes_) == list(display.curves())
    for label, (k, value) in display.curves().items():
        raw = np.array([r["bic"] for r in model.search_ if r["class"] == label])
        np.testing.assert_allclose(value, raw - raw.min())
        assert k.tolist() == list(range(1, len(raw) + 1))
    ax = drawn(display)
    assert ax.get_ylabel() == "BIC − lowest of its class\n(nats × 2; lower is better)"
    assert ax.get_xlabel() == "number of components of each class" and texts(ax)[-1] == "chosen"
    rings = [line.get_xdata()[0] for line in ax.lines[-3:]]  # a little beside their place, to be seen apart
    np.testing.assert_allclose(rings, model.n_components_ + np.array([-0.2, 0, 0.2]))
    assert len({(line.get_color(), line.get_marker(), line.get_linestyle()) for line in ax.lines[:3]}) == 3
    assert texts(ax)[0] == f"setosa: VVI, {model.n_components_[0]}"
    two = [dict(r, covariance=s) for r in model.search_ for s in ("VVI", "EEE")]
    assert list(SelectionDisplay.from_search(two).curves())[:2] == ["setosa, VVI", "setosa, EEE"]


def test_selection_of_classes_of_unlike_sizes_draws_the_sum():
    lines = [
        {"n_components": 1, "covariance": "VVI", "log_loss": 0.5, "folds": 2},
        {"n_components": [2, 1, 1], "covariance": ["VVI", "VVV", "VVI"], "log_loss": 0.4, "folds": 2, "chosen": True},
        {"n_components": [1, 2, 1], "covariance": ["VVI"] * 3, "log_loss": 0.45, "folds": 2},
        {"n_components": [1, 1, 2], "covariance": ["VVI"] * 3, "log_loss": 0.41, "folds": 2},
        {"n_components": 9, "covariance": "VVI", "log_loss": 0.01, "folds": 1},  # given up after the first
    ]
    display = SelectionDisplay.from_search(lines, "log_loss")
    curves = display.curves()
    np.testing.assert_array_equal(curves["VVI"], [[3, 4], [0.5, 0.41]])  # the best of each size
    np.testing.assert_array_equal(curves["several structures"], [[4], [0.4]])
    ax = drawn(display)
    assert ax.get_xlabel() == "number of components in all"
    assert texts(ax)[-1] == "chosen: 2\u00a0VVI + 1\u00a0VVV + 1\u00a0VVI"
    assert ax.get_ylabel() == "held-out log-loss\n(nats per row; lower is better)"
    same = [dict(lines[0], n_components=[k, k], across_classes=True) for k in (1, 2)]
    display = SelectionDisplay.from_search(same, "log_loss")
    assert list(display.curves()) == ["VVI across classes"] and display.count(same[1]) == 2
    assert texts(drawn(display))[-1] == "chosen: VVI across classes, 1"


def test_many_classes_have_lines_of_their_own_and_structures_markers():
    search = [
        {"class": c, "n_components": k, "covariance": s, "bic": float(k + c), "chosen": k == 1 and s == "VVI"}
        for c in range(12)
        for s in ("VVI", "VVV")
        for k in (1, 2)
    ]
    ax = drawn(SelectionDisplay.from_search(search))
    told = texts(ax)
    assert told[0] == "class 0: VVI, 1" and told[11:] == ["class 11: VVI, 1", "VVI", "VVV", "chosen"]
    lines = ax.lines[:24]
    assert len({(line.get_color(), line.get_marker(), str(line._dash_pattern)) for line in lines}) == 24
    assert len({line.get_xdata()[0] for line in ax.lines[24:]}) == 12


def test_what_nested_folds_chose_is_a_dot_each():
    search = [
        {"n_components": 2, "covariance": "VVI", "error": 0.1, "folds": 3, "chosen": True},
        {"n_components": [2, 1], "covariance": ["VVI", "EEE"], "error": 0.2, "folds": 3},
    ]
    display = SelectionDisplay.from_search(search, "error")
    display.joined = False
    ax = drawn(display)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["VVI, 2", "2\u00a0VVI + 1\u00a0EEE"]
    assert ax.lines[0].get_xdata().tolist() == [0.1, 0.2] and ax.lines[1].get_xdata().tolist() == [0.1]
    drawn(SelectionDisplay(search[:1], "error", joined=False))


def test_classes_of_one_stage_are_seen_apart():
    from mixent.evaluate.displays.growth import Line

    stage = np.array([1]), np.array([5.0]), np.array([-1.0]), np.array([10.0])
    display = GrowthDisplay({name: Line(*stage, chosen=1, rows=10.0) for name in ("a", "b", "c")}, "bic")
    places = [line.get_xdata()[0] for line in drawn(display).lines if line.get_label() in display.lines]
    assert len(set(places)) == 3


@pytest.mark.parametrize(
    ("label", "name"),
    [(1, "class 1"), (np.float64(1.5), "class 1.5"), ("07", "class 07"), (True, "class True"), ("x1", "x1"), ("", "")],
)
def test_a_number_is_called_a_class(label, name):
    assert class_name(label) == name


def test_numeric_classes_are_called_classes_in_legends():
    model = MixtureClassifier(1, "VVI", random_state=0).fit(X, CODES)
    ax = drawn(UncertaintyDisplay.from_estimator(model, X, CODES))
    assert texts(ax)[0].startswith("class 0: ")
    assert texts(drawn(RegionsDisplay.from_estimator(model, X, CODES, columns=(0, 1))))[0] == "class 0"
    assert texts(drawn(CalibrationDisplay.from_estimator(model, X, CODES, kind="class")))[0] == "class 0"
    assert "class 2 vs class 1" in drawn(ExplanationDisplay.from_estimator(model, X, row=120)).get_title()


@pytest.mark.parametrize("selection", ["cv", "bic", "icl", "dic", "dic_robust", "cbic"])
def test_selection_takes_every_search(selection):
    options = {**GROWN, "search__criterion": selection, "search__cv": 2, "search__max_components": 2}
    shown = {"cv": "log_loss"}.get(selection, selection)
    for estimator in (
        MixtureClassifier("auto").set_params(**options),
        MixtureClassifier("auto", search=Search(per_class=True)).set_params(**options),
        MixtureClassifier("auto").set_params(**{**options, "search__growth": "restart"}),
        SharedMixtureClassifier("auto").set_params(**options),
    ):
        model = estimator.fit(X, Y)
        display = SelectionDisplay.from_estimator(model)
        assert display.criterion == shown
        drawn(display)
        growth = GrowthDisplay.from_estimator(model) if model.path_ else None
        assert growth is None or growth.criterion == shown
    if selection != "cv":
        nested = SelectionDisplay.from_estimator(
            MixtureClassifier("auto", search=Search(nested=2)).set_params(**options).fit(X, Y)
        )
        assert nested.criterion == "error" and "share of rows" in drawn(nested).get_xlabel()
    if selection in ("cv", "bic", "icl"):
        display = SelectionDisplay.from_estimator(mixent.GaussianMixture("auto").set_params(**options).fit(X))
        assert display.criterion == selection
        drawn(display)


def shared(K=4, y=Y, **options):
    return SharedMixtureClassifier(K, "VVI", random_state=0).set_params(**options).fit(X, y)


def test_components_are_the_table_and_the_weights():
    for model in (shared(), MixtureClassifier(2, "VVI", random_state=0).fit(X, Y)):
        display = ComponentsDisplay.from_estimator(model)
        np.testing.assert_allclose(display.table, model.weights_ / model.weights_.sum(axis=0))
        assert display.weights.sum() == pytest.approx(1)
        ax = drawn(display)
        np.testing.assert_array_equal(ax.images[0].get_array(), model.class_given_component_)
        heights = np.array([-bar.get_height() for bar in ax.patches])
        np.testing.assert_allclose(heights / heights.max(), display.weights / display.weights.max())
        assert [t.get_text() for t in ax.get_yticklabels()] == ["weight", "setosa", "versicolor", "virginica"]
        assert ax.get_xlabel() == "component" and ax.figure.axes[1].get_ylabel() == "p(class | component)"
    written = [t.get_text() for t in ax.texts]
    assert written.count("1") == 6 and sum("%" in text for text in written) == 6
    with pytest.raises(ValueError, match="QuadraticDiscriminantAnalysis has no class_given_component_; fit a Shared"):
        ComponentsDisplay.from_estimator(QuadraticDiscriminantAnalysis())
    with pytest.raises(ValueError, match="SharedMixtureClassifier has no class_given_component_"):
        ComponentsDisplay.from_estimator(SharedMixtureClassifier())


def test_components_round_to_what_can_be_read():
    table = np.array([[0.5, 0.004, 0.999], [0.5, 0.996, 0.001]])
    ax = drawn(ComponentsDisplay(table, np.array([0.6, 0.395, 0.005]), np.array(["a", "b"])))
    assert [t.get_text() for t in ax.texts] == ["60 %", "40 %", "<1 %", ".50", "1", ".50", "1"]


def test_many_components_stay_readable():
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(26), 40).T
    ax = drawn(ComponentsDisplay(table, rng.dirichlet(np.ones(40)), np.array([f"class {c}" for c in range(26)])))
    assert not ax.texts and 12 <= len(ax.get_xticks()) <= 24 and len(ax.get_yticks()) == 27
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))  # no label over another


def test_explanation_adds_up_to_the_log_odds_of_the_model():
    model = shared(6)
    proba = model.predict_proba(X)
    for row, label in ((0, None), (120, "versicolor"), (70, None)):
        display = ExplanationDisplay.from_estimator(model, X, row, label)
        names = model.classes_.tolist()
        ours, theirs = names.index(display.label), names.index(display.rival)
        assert display.probability == pytest.approx(proba[row, ours])
        assert label in (None, display.label) and (label or names[proba[row].argmax()]) == display.label
        if proba[row].min() > 1e-200:
            assert display.log_odds == pytest.approx(np.log(proba[row, ours] / proba[row, theirs]), rel=1e-6, abs=1e-9)
        bars = display.bars()
        assert sum(size for _, size in bars) == pytest.approx(display.log_odds)
        assert bars[0] == ("class priors", display.baseline)
        sizes = [abs(size) for name, size in bars[1:] if name.startswith("component")]
        assert sizes == sorted(sizes, reverse=True)
        ax = drawn(display)
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [*(s for _, s in bars), display.log_odds])
        assert ax.get_title().startswith(f"{display.label} vs {display.rival}\nlog-odds ")
        assert ax.get_yticklabels()[-1].get_text() == "total" and "nats" in ax.get_xlabel()


def explanation(parts, prior=0.0, probability=0.7, names=None):
    parts = np.array(parts, dtype=float)
    names = names or [f"component {k}" for k in range(len(parts))]
    return ExplanationDisplay("a", "b", probability, prior + parts.sum(), prior, parts, names)


def test_explanation_pools_what_is_small_and_what_is_too_many():
    assert explanation([5, -3, 0.001, 0.002]).bars()[-1] == ("2 others", pytest.approx(0.003))
    assert [name for name, _ in explanation([5, -3, 0.001]).bars()] == [
        "class priors",
        "component 0",
        "component 1",
        "component 2",  # one is not pooled
    ]
    assert len(explanation(np.ones(30)).bars()) == 10 and explanation(np.ones(30)).bars()[-1] == ("22 others", 22.0)
    ax = drawn(explanation([24.53, -1e-9, 0.0]))
    assert [t.get_text() for t in ax.texts][:2] == ["0", "+24.5"]
    title = drawn(explanation([25.0], probability=1 - 1e-11)).get_title()
    assert title == "a vs b\nlog-odds 25 nats, probability 1 − 1e-11"
    assert drawn(explanation([-25.0], probability=1e-11)).get_title().endswith("log-odds −25 nats, probability 1.0e-11")
    drawn(explanation([0.0]))


def test_explanation_of_frames_and_of_rows_that_are_not_there():
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SharedMixtureClassifier(3, "VVI", random_state=0).fit(frame, Y)
    assert ExplanationDisplay.from_estimator(model, frame, 3).label == "setosa"
    with pytest.raises(ValueError, match="X has 150 rows; there is no row 150"):
        ExplanationDisplay.from_estimator(model, frame, 150)
    with pytest.raises(ValueError, match="X has 1 row; there is no row -1"):
        ExplanationDisplay.from_estimator(model, frame[:1], -1)
    with pytest.raises(ValueError, match="has no explain; give a fitted mixture classifier"):
        ExplanationDisplay.from_estimator(QuadraticDiscriminantAnalysis().fit(X, Y), X)


def test_growth_draws_the_path():
    model = MixtureClassifier("auto", search=Search("bic", per_class=True)).set_params(**GROWN).fit(X, Y)
    display = GrowthDisplay.from_estimator(model)
    assert display.criterion == "bic" and list(display.lines) == list(model.classes_)
    for c, (label, line) in enumerate(display.lines.items()):
        lines = [r for r in model.search_ if r["class"] == label]
        np.testing.assert_allclose(line.criterion, [r["bic"] for r in lines], rtol=1e-9)
        np.testing.assert_allclose(50 * line.log_likelihood, [r["log_likelihood"] for r in lines], rtol=1e-9)
        np.testing.assert_array_equal(line.evaluations, np.cumsum([r["evaluations"] for r in lines]))
        assert line.chosen == model.n_components_[c]
    ax = drawn(display)
    assert ax.get_ylabel() == "BIC − lowest of its line\n(nats × 2; lower is better)"
    assert texts(ax) == ["setosa", "versicolor", "virginica", "chosen"]
    assert ax.lines[0].get_ydata().min() == 0
    assert ax.lines[1].get_xdata().tolist() == [model.n_components_[0] - 0.2]
    for quantity, told in (("log_likelihood", "per row (nats)"), ("evaluations", "passes × rows × components")):
        display.plot(quantity=quantity)
        assert told in display.ax_.get_ylabel()
    aic = GrowthDisplay.from_estimator(model, "aic").lines["setosa"]
    stage = model.path_[0][1]
    assert aic.criterion[1] == pytest.approx(2 * stage.n_free - 2 * stage.log_likelihood)
    icl = GrowthDisplay.from_estimator(model, "icl")
    assert icl.lines["setosa"].criterion.tolist() == [r["icl"] for r in model.search_ if r["class"] == "setosa"]
    with pytest.raises(ValueError, match="quantity must be one of 'criterion', 'log_likelihood', 'evaluations'"):
        display.plot(quantity="seconds")


def test_growth_of_all_classes_together_and_without_a_search():
    together = MixtureClassifier("auto", search="dic").set_params(**GROWN).fit(X, Y)
    display = GrowthDisplay.from_estimator(together)
    (line,) = display.lines.values()
    known = {r["n_components"]: r["dic"] for r in together.search_}
    assert line.criterion.tolist() == [known[k] for k in line.n_components] and line.chosen == together.n_components_[0]
    stages = [path[0] for path in together.path_]
    assert 150 * line.log_likelihood[0] == pytest.approx(sum(s.log_likelihood for s in stages))
    assert texts(drawn(display)) == ["all classes", "chosen"]
    assert len(GrowthDisplay.from_estimator(together, "bic").lines) == 3
    fixed = SharedMixtureClassifier(3, "VVI", search=Search(growth="incremental")).fit(X, Y)
    (line,) = GrowthDisplay.from_estimator(fixed).lines.values()
    stage = fixed.path_[2]
    assert line.criterion[2] == pytest.approx(-2 * stage.log_likelihood + stage.n_free * np.log(150))
    mixture = mixent.GaussianMixture("auto", search=mixent.Search("cv", cv=2)).set_params(**GROWN).fit(X)
    display = GrowthDisplay.from_estimator(mixture)
    assert display.criterion == "cv" and "held-out log density" in drawn(display).get_ylabel()
    with pytest.raises(ValueError, match="the search has no icl; fit with n_components=\"auto\" and search='icl'"):
        GrowthDisplay.from_estimator(fixed, "icl")
    with pytest.raises(ValueError, match="criterion must be one of 'bic', 'icl', 'aic', 'dic', 'dic_robust', 'cbic'"):
        GrowthDisplay.from_estimator(fixed, "loo")
    with pytest.raises(
        ValueError, match='SharedMixtureClassifier has no path_: fit it with growth="incremental" first'
    ):
        GrowthDisplay.from_estimator(shared())


def test_regions_hold_the_posterior_on_the_grid():
    model = Gaussians().fit(X[:, :2], Y)
    display = RegionsDisplay.from_estimator(model, X[:, :2], Y, grid_size=20)
    at = np.array([[display.grid[0][3], display.grid[1][17]]])
    np.testing.assert_allclose(display.posterior[17, 3], model.predict_proba(at)[0])
    np.testing.assert_array_equal(display.points, X[:, :2])
    np.testing.assert_array_equal(display.point_class, CODES)
    ax = drawn(display)
    assert len(ax.patches) == 6  # 3 components, 1 and 2 sigma
    one, two = ax.patches[0], ax.patches[1]
    np.testing.assert_allclose(one.get_center(), model.means_[0])
    area = np.pi * one.get_width() * one.get_height() / 4
    assert area == pytest.approx(np.pi * np.sqrt(np.linalg.det(model.covariances_[0])))
    assert two.get_width() == 2 * one.get_width()
    turn = np.array([np.cos(np.radians(one.angle)), np.sin(np.radians(one.angle))])
    assert turn @ model.covariances_[0] @ turn == pytest.approx((one.get_width() / 2) ** 2)  # the long axis lies right


def test_regions_of_more_columns_use_the_marginal():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = Gaussians().fit(frame, Y)
    display = RegionsDisplay.from_estimator(model, frame, Y, columns=("d", "b"), grid_size=10)
    expected = RegionsDisplay.from_estimator(Gaussians().fit(X[:, [3, 1]], Y), X[:, [3, 1]], Y, grid_size=10)
    np.testing.assert_allclose(display.posterior, expected.posterior)
    assert display.names == ("d", "b") and drawn(display).get_xlabel() == "d"
    with pytest.raises(ValueError, match="no marginal"):
        RegionsDisplay.from_estimator(QuadraticDiscriminantAnalysis().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="no column 'z'"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=("a", "z"))
    with pytest.raises(ValueError, match="there is no column 7"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=(0, 7))
    with pytest.raises(ValueError, match="must name two columns"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=(0,))
    coded = Gaussians().fit(X[:, :2], Y)
    coded.schema_ = SimpleNamespace(categorical=(1,))
    with pytest.raises(ValueError, match="takes 'column 1' as categorical"):
        RegionsDisplay.from_estimator(coded, X[:, :2], Y)
    with pytest.raises(ValueError, match="must be numbers"):
        RegionsDisplay.from_estimator(model, frame.assign(a="text"), Y)


def test_regions_leave_out_wild_values_and_jitter_few_values():
    points = np.c_[np.round(X[:, 1]), X[:, 2]]
    points[0, 1] = 600.0
    display = RegionsDisplay.from_estimator(Gaussians().fit(points, Y), points, Y, grid_size=8)
    assert display.grid[1][-1] < 8 and display.n_outside == 1
    assert display.grid[0][0] < 2 < 4 < display.grid[0][-1]  # few values: all of them
    ax = drawn(display)
    shown = np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections if len(c.get_offsets()) == 50])
    moved = np.abs(shown - points)
    assert 0 < moved[:, 0].max() <= 0.2 and len(np.unique(shown[:, 0])) == 150 and moved[:, 1].max() == 0
    np.testing.assert_array_equal(display.points, points)


def test_regions_of_a_density():
    model = GaussianMixture(2, random_state=0).fit(X[:, :2])
    display = RegionsDisplay.from_estimator(model, X[:, :2], grid_size=15)
    at = np.array([[display.grid[0][4], display.grid[1][9]]])
    assert display.log_density[9, 4] == pytest.approx(model.score_samples(at)[0])
    assert len(drawn(display).patches) == 4
    diagonal = GaussianMixture(2, covariance_type="diag", random_state=0).fit(X[:, :2])
    assert RegionsDisplay.from_estimator(diagonal, X[:, :2], grid_size=5).means is None


def test_regions_leave_out_rows_with_gaps_and_show_rows_without_label():
    model, points = Gaussians().fit(X[:, :2], Y), X[:, :2].copy()
    points[:10, 0] = np.nan
    y = Y.astype(object)
    y[100:] = None
    display = RegionsDisplay.from_estimator(model, points, y, grid_size=8)
    assert len(display.points) == 140 and np.sum(display.point_class == -1) == 50
    assert "no label" in texts(drawn(display))
    with pytest.raises(ValueError, match="no row of X has values in both"):
        RegionsDisplay.from_estimator(model, np.full((4, 2), np.nan))


def test_any_class_name_is_drawn_as_it_is():
    y = NASTY[CODES]
    model = Gaussians().fit(X[:, :2], y)
    drawn(CalibrationDisplay.from_estimator(model, X[:, :2], y, kind="class"))
    drawn(ConfusionDisplay.from_estimator(model, X[:, :2], y))
    ax = drawn(UncertaintyDisplay.from_estimator(model, X[:, :2], y))
    assert any("_hidden" in text for text in texts(ax))
    drawn(RegionsDisplay.from_estimator(model, X[:, :2], y, grid_size=5))
    long = np.array(["$\\bad", "_hidden", "x" * 60])[CODES]
    mixture = SharedMixtureClassifier(3, "VVI", search=Search(growth="incremental")).fit(X, long)
    drawn(ComponentsDisplay.from_estimator(mixture))
    drawn(GrowthDisplay.from_estimator(mixture))
    ax = drawn(ExplanationDisplay.from_estimator(mixture, X, 149))
    assert ax.figure.get_tightbbox().width <= ax.figure.get_figwidth()  # nothing outside the picture
    drawn(GrowthDisplay.from_estimator(MixtureClassifier(2, "VVI", search=Search(growth="incremental")).fit(X, long)))
    assert plain("x" * 99).endswith("…") and len(plain("x" * 99)) == 40


def test_displays_draw_on_given_axes():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = ConfusionDisplay.from_predictions(["a", "b"], ["a", "b"])
    assert drawn(display, ax) is ax


def test_palette_colours_differ():
    assert len(set(OKABE_ITO)) == len(OKABE_ITO) == 7
