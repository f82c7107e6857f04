"""Pictures of mixtures: what they draw is what the model and its search hold."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import GaussianMixture

import mixent
from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.base.displays import computed
from mixent.displays import ComponentsDisplay, GrowthDisplay, RegionsDisplay, SelectionDisplay
from mixent.options import Search

from ..drawing import drawn, texts

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]


def gaussians(**options):
    """One Gaussian per class."""
    return MixtureClassifier(1, prior=None, **options)


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
    with pytest.raises(ValueError, match="no bic"):
        SelectionDisplay.from_search([{"log_loss": 1.0, "n_components": 2}])
    with pytest.raises(ValueError, match="criterion"):
        SelectionDisplay.from_search(search(), "loo")
    with pytest.raises(ValueError, match="no cv"):
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
    assert texts(ax)[-1] == "chosen"
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
    assert ax.get_xlabel() == "Total number of components"
    assert texts(ax)[-1] == "chosen: 2\u00a0VVI + 1\u00a0VVV + 1\u00a0VVI"
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
    display = computed(SelectionDisplay.from_search, search, "error")
    display.joined = False
    ax = drawn(display)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["VVI, 2", "2\u00a0VVI + 1\u00a0EEE"]
    assert ax.lines[0].get_xdata().tolist() == [0.1, 0.2] and ax.lines[1].get_xdata().tolist() == [0.1]
    drawn(SelectionDisplay(search[:1], "error", joined=False))


def test_classes_of_one_stage_are_seen_apart():
    from mixent.mixtures.displays.growth import Line

    stage = np.array([1]), np.array([5.0]), np.array([-1.0]), np.array([10.0])
    display = GrowthDisplay({name: Line(*stage, chosen=1, rows=10.0) for name in ("a", "b", "c")}, "bic")
    places = [line.get_xdata()[0] for line in drawn(display).lines if line.get_label() in display.lines]
    assert len(set(places)) == 3


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
        assert ax.get_xlabel() == "Component" and ax.figure.axes[1].get_ylabel() == "p(class | component)"
    written = [t.get_text() for t in ax.texts]
    assert written.count("1") == 6 and sum("%" in text for text in written) == 6
    with pytest.raises(ValueError, match="QuadraticDiscriminantAnalysis"):
        ComponentsDisplay.from_estimator(QuadraticDiscriminantAnalysis())
    with pytest.raises(ValueError, match="SharedMixtureClassifier"):
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
    with pytest.raises(ValueError, match="quantity"):
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
    mixture = mixent.GaussianMixture("auto", search=mixent.options.Search("cv", cv=2)).set_params(**GROWN).fit(X)
    display = GrowthDisplay.from_estimator(mixture)
    assert display.criterion == "cv" and "held-out log density" in drawn(display).get_ylabel()
    with pytest.raises(ValueError, match="no icl"):
        GrowthDisplay.from_estimator(fixed, "icl")
    with pytest.raises(ValueError, match="criterion"):
        GrowthDisplay.from_estimator(fixed, "loo")
    with pytest.raises(ValueError, match="SharedMixtureClassifier"):
        GrowthDisplay.from_estimator(shared())


def test_regions_hold_the_posterior_on_the_grid():
    model = gaussians().fit(X[:, :2], Y)
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
    model = gaussians().fit(frame, Y)
    display = RegionsDisplay.from_estimator(model, frame, Y, columns=("d", "b"), grid_size=10)
    expected = RegionsDisplay.from_estimator(gaussians().fit(X[:, [3, 1]], Y), X[:, [3, 1]], Y, grid_size=10)
    np.testing.assert_allclose(display.posterior, expected.posterior)
    assert display.names == ("d", "b") and drawn(display).get_xlabel() == "d"
    with pytest.raises(ValueError, match="no marginal"):
        RegionsDisplay.from_estimator(QuadraticDiscriminantAnalysis().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="no column 'z'"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=("a", "z"))
    with pytest.raises(ValueError, match="column 7"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=(0, 7))
    with pytest.raises(ValueError, match="two columns"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=(0,))
    coded = gaussians(categorical=[1]).fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="'column 1'"):
        RegionsDisplay.from_estimator(coded, X[:, :2], Y)
    with pytest.raises(ValueError, match="must be numbers"):
        RegionsDisplay.from_estimator(model, frame.assign(a="text"), Y)


def test_regions_leave_out_wild_values_and_jitter_few_values():
    points = np.c_[np.round(X[:, 1]), X[:, 2]]
    points[0, 1] = 600.0
    display = RegionsDisplay.from_estimator(gaussians().fit(points, Y), points, Y, grid_size=8)
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
    model, points = gaussians().fit(X[:, :2], Y), X[:, :2].copy()
    points[:10, 0] = np.nan
    y = Y.astype(object)
    y[100:] = None
    display = RegionsDisplay.from_estimator(model, points, y, grid_size=8)
    assert len(display.points) == 140 and np.sum(display.point_class == -1) == 50
    assert "no label" in texts(drawn(display))
    with pytest.raises(ValueError, match="no row"):
        RegionsDisplay.from_estimator(model, np.full((4, 2), np.nan))
