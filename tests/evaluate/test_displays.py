import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.base.style import OKABE_ITO, plain
from mixent.base.text import class_name
from mixent.displays import (
    ComponentsDisplay,
    ConvergenceDisplay,
    ExplanationDisplay,
    GrowthDisplay,
    RegionsDisplay,
    ReliabilityDisplay,
    UncertaintyDisplay,
)
from mixent.evaluate import calibration_error
from mixent.options import Search

from ..drawing import drawn, texts

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
    display = ReliabilityDisplay.from_predictions(y, proba, classes)
    (bins,) = display.curves.values()
    error = np.sum(bins.mass * np.abs(bins.observed - bins.predicted)) / bins.mass.sum()
    assert error == pytest.approx(calibration_error(y, proba, classes), rel=1e-12)
    ax = drawn(display)
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), np.c_[bins.predicted, bins.observed])
    above = ax.child_axes[0]
    assert sum(bar.get_height() for bar in above.patches) == 300  # no row is outside the picture
    per_class = ReliabilityDisplay.from_predictions(y, proba, classes, kind="class")
    assert list(per_class.curves) == list(classes)
    total = sum(np.sum(b.mass * b.observed) for b in per_class.curves.values())
    assert total == pytest.approx(300)  # each row is of one class
    drawn(per_class)


def test_several_methods_have_a_curve_each():
    model = Gaussians().fit(X, Y)
    both = {"Gaussians": model.predict_proba(X), "uniform": np.full((150, 3), 1 / 3)}
    display = ReliabilityDisplay.from_predictions(Y, both, np.unique(Y))
    ax = drawn(display)
    assert texts(ax) == ["Gaussians", "uniform"] and len(ax.child_axes) == 1 and len(ax.collections) == 1
    assert ax.get_xlim()[0] <= 1 / 3
    one = ReliabilityDisplay.from_estimator(model, X, Y)
    np.testing.assert_array_equal(one.predicted, display.predicted)
    for proba, kind in ((both["uniform"], "each"), (both, "class")):
        with pytest.raises(ValueError, match="kind"):
            ReliabilityDisplay.from_predictions(Y, proba, kind=kind)


def test_calibration_counts_stay_inside_the_axes():
    from matplotlib.figure import Figure

    ax = Figure().subplots()  # no layout engine makes room for them
    drawn(ReliabilityDisplay.from_estimator(Gaussians().fit(X, Y), X, Y), ax)
    ax.figure.canvas.draw()
    (above,) = ax.child_axes
    assert above.get_window_extent().y1 <= ax.get_window_extent().y1 + 1e-6
    assert ax.transData.transform((1, 1))[1] < above.get_window_extent().y0  # and above all points
    assert above.get_ylabel() == "Rows" and max(ax.get_yticks()) == 1
    weighted = ReliabilityDisplay.from_estimator(Gaussians().fit(X, Y), X, Y, sample_weight=np.full(150, 2.0))
    assert drawn(weighted).child_axes[0].get_ylabel() == "Weight"


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
    with pytest.raises(ValueError, match="trace"):
        ConvergenceDisplay.from_trace(())


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
    assert texts(drawn(ReliabilityDisplay.from_estimator(model, X, CODES, kind="class")))[0] == "class 0"
    assert "class 2 vs class 1" in drawn(ExplanationDisplay.from_estimator(model, X, row=120)).get_title()


def test_explanation_adds_up_to_the_log_odds_of_the_model():
    model = SharedMixtureClassifier(6, "VVI", random_state=0).fit(X, Y)
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
    assert drawn(explanation([-25.0], probability=1e-11)).get_title().endswith("log-odds −25 nats, probability 1.0e-11")
    drawn(explanation([0.0]))


def test_any_class_name_is_drawn_as_it_is():
    y = NASTY[CODES]
    model = Gaussians().fit(X[:, :2], y)
    drawn(ReliabilityDisplay.from_estimator(model, X[:, :2], y, kind="class"))
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
    display = UncertaintyDisplay.from_predictions(["a", "b"], np.eye(2))
    assert drawn(display, ax) is ax


def test_palette_colors_differ():
    assert len(set(OKABE_ITO)) == len(OKABE_ITO) == 7
