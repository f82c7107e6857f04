"""Every example runs, draws, and shows what it says."""

import ast
import contextlib
import importlib.util
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.integrate import trapezoid

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@dataclass(frozen=True)
class Shown:
    names: ModuleType  # what the example computed
    printed: str
    n_pictures: int


@pytest.fixture
def show(monkeypatch):
    """Run an example as the site does: from the top, pictures drawn but not on a screen."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="examples draw with matplotlib")
    pytest.importorskip("pandas", reason="examples have tables with names")
    pyplot.switch_backend("Agg")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    monkeypatch.setattr(sys, "argv", ["example"])
    pyplot.close("all")

    def run(name: str) -> Shown:
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)  # dataclasses look their module up
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            spec.loader.exec_module(module)
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            figure.canvas.draw()  # what does not fit warns here
            assert any(ax.has_data() for ax in figure.axes), f"picture {number} of {name} is empty"
        return Shown(module, printed.getvalue(), len(pyplot.get_fignums()))

    yield run
    pyplot.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_the_form_of_the_gallery(path):
    title, line, _, *lead = ast.get_docstring(ast.parse(path.read_text())).split("\n")
    assert len(line) == len(title) and set(line) == {"="} and len(" ".join(lead)) > 100
    source = path.read_text()
    assert source.count("\n# %%\n") >= 3 and re.search(r"\w+Display\.from_\w+\(", source) and "plt.show()" in source
    assert f"test_{path.stem}_shows_" in Path(__file__).read_text(), "every example needs a test of what it claims"


def test_the_gallery_page_names_every_example():
    page = (ROOT / "examples" / "README.rst").read_text()
    assert sorted(re.findall(r"``(\w+)\.py``", page)) == [path.stem for path in EXAMPLES]


# --- mixtures


@pytest.mark.slow
def test_mixed_table_shows_that_gaps_are_integrated_out(show):
    shown = show("mixed_table")
    names = shown.names
    assert names.as_it_is[0] < names.after_filling[0] and names.as_it_is[1] < names.after_filling[1] - 0.04
    assert names.p_ill[0] > 0.9
    assert names.p_ill[-1] == pytest.approx(names.model.class_prior_[0], rel=1e-9)  # without any value, the class prior
    assert shown.n_pictures == 3 and "converged" in shown.printed


@pytest.mark.slow
def test_covariances_shows_that_bic_finds_the_structure(show):
    shown = show("covariances")
    assert min(shown.names.bic, key=shown.names.bic.get) == "VEV"
    assert (shown.names.best["n_components"], shown.names.best["covariance"]) == (3, "VEV")
    assert shown.n_pictures == 2


@pytest.mark.slow
def test_growing_shows_the_four_groups(show):
    shown = show("growing")
    path, losses = shown.names.grown.path_, shown.names.losses
    rise = np.diff([stage.log_likelihood for stage in path])
    assert (rise > 0).all() and len(shown.names.grown.means_) == 4
    assert losses["shared, grown by BIC"] < min(losses[name] for name in ("bic", "dic_robust", "cv"))
    assert shown.names.bayes_loss < losses["shared, grown by BIC"] < shown.names.bayes_loss + 0.01
    assert shown.n_pictures == 3


@pytest.mark.slow
def test_orchestra_shows_that_shared_components_come_nearer(show):
    shown = show("orchestra")
    assert "Exact Bayes error 20.17 %" in shown.printed and "(J - J*)^2" in shown.printed
    for size in (300, 1000):
        shared, apart = (shown.names.results[size, name] for name in ("shared, 4", "per class, 3 + 3"))
        assert shared[:, :2].mean(axis=0).tolist() < apart[:, :2].mean(axis=0).tolist()
        assert (shared[:, 2] < apart[:, 2]).all()
    assert shown.names.losses["conditional"] < shown.names.losses["likelihood"] - 0.01
    rows = shown.names.rows  # the maps and the report are of the model of these rows, whatever was fitted in between
    again = type(shown.names.MODELS["shared, 4"])(4, n_init=4, random_state=0).fit(rows.X, rows.y)
    np.testing.assert_array_equal(again.means_, shown.names.MODELS["shared, 4"].means_)
    assert shown.n_pictures == 3


@pytest.mark.slow
def test_shared_components_come_nearer_to_the_bayes_error_with_fewer_parameters(show):
    results = show("orchestra").names.measure(sizes=(300, 1000), seeds=range(10))
    for size in (300, 1000):
        shared = results[size, "shared, 4"]
        right = results[size, "per class, 3 + 3"]
        gap = right[:, 0] - shared[:, 0]
        assert gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(len(gap))
        assert (shared[:, 2] < right[:, 2]).all()


@pytest.mark.slow
def test_few_labels_shows_that_rows_without_a_label_help(show):
    shown = show("few_labels")
    alone, helped = shown.names.losses.values()
    gain = (alone - helped)[:3]  # 20, 40 and 80 labels
    assert (gain.mean(axis=1) > 0.015).all() and gain[0].mean() > 2 * gain[0].std(ddof=1) / np.sqrt(gain.shape[1])
    assert shown.names.bayes_loss < helped[-1].mean() < shown.names.bayes_loss + 0.02
    assert shown.n_pictures == 2


def test_doubtful_labels_shows_that_doubt_is_better_told(show):
    shown = show("doubtful_labels")
    losses, off = shown.names.losses, shown.names.off
    assert losses["with their doubt"] < losses["the careful reader alone"] < losses["as if certain"] - 0.05
    assert off["with their doubt"] < off["as if certain"] / 2
    assert shown.names.apart < 1e-9  # weight three is the row three times
    assert shown.n_pictures == 2


def test_decisions_shows_that_priors_and_costs_need_no_training(show):
    shown = show("decisions")
    names = shown.names
    assert abs(names.share - 0.1) < 0.02 and names.after < names.before - 0.05 and names.wrong[1] < names.wrong[0]
    assert np.abs(np.subtract(names.estimates, names.shares)).max() < 0.04
    assert (names.losses[:4, 1] < names.losses[:4, 0]).all()
    assert names.spent["least expected cost"] < 0.6 * names.spent["most probable class"]
    assert (np.diff(names.aside) <= 0).all() and names.aside[-1] == 0  # to predict "malignant" costs 1 at most
    assert (np.array(names.total) <= names.spent["least expected cost"] + 1e-12).all()
    assert shown.n_pictures == 3


def test_calibration_shows_scores_made_probabilities(show):
    shown = show("calibration")
    results, density = shown.names.results, shown.names.density
    assert results[None][0] == results["temperature"][0]  # a temperature changes no decision
    before, after = results[None], results["temperature"]
    assert before[2] > 0.2 > 0.04 > after[2] and after[1] < before[1] / 2
    assert density["fixed structure"][1] > 1 > 0.2 > density["searched, with a temperature"][1]
    proba = shown.names.margins[None].predict_proba(shown.names.new)
    about_70 = np.abs(proba.max(axis=1) - 0.7) < 0.05
    right = shown.names.margins[None].classes_[proba.argmax(axis=1)] == shown.names.truth
    assert about_70.sum() > 50 and right[about_70].mean() > 0.95  # "nearly always right"
    assert shown.n_pictures == 3


# --- maximum entropy


def test_constraints_shows_parts_that_add_up(show):
    shown = show("constraints")
    why = shown.names.why
    np.testing.assert_allclose(why.baseline + why.parts.sum(axis=1), why.log_odds, rtol=1e-9, atol=1e-12)
    assert 0 <= shown.names.model.gap_ < 1e-8 and shown.names.error < 0.3 and shown.names.loss < 0.6
    strength = shown.names.constraints.strength
    assert max(strength, key=strength.get) == "log triglycerides" and strength["age"] < 0.3
    assert shown.n_pictures == 3


def test_imputation_shows_that_columns_depend_on_each_other(show):
    shown = show("imputation")
    names = shown.names
    assert all(names.by_model[name] < 0.9 * names.by_mean[name] for name in names.columns)
    assert names.restored > 0.9 > 0.5 > names.guessed and names.accuracy["cultivar"].error < 0.05
    assert names.filled.where(~names.hole).equals(names.table)  # known cells stay
    assert not names.filled.isna().any().any() and shown.n_pictures == 2


def test_shapes_shows_what_moments_cannot_tell(show):
    shown = show("shapes")
    names = shown.names
    x = names.GRID
    for shape in names.SHAPES.values():
        density = shape.density(x)
        mean = trapezoid(x * density, x)
        np.testing.assert_allclose([trapezoid(density, x), mean], [1, 0.02], atol=1e-6)
        assert trapezoid((x - mean) ** 2 * density, x) == pytest.approx(55.30, rel=1e-6)
    assert f"{100 * names.bayes_error():.2f}" == "19.56" in (ROOT / "docs/maxent.md").read_text()
    for kind in ("union", "pooled"):
        assert (names.results[kind][:, 1] < names.bayes_error() + 0.03).all()
        assert (names.results[kind][:, 2] == 6).all()
    assert (names.results["moments"][:, 1] > 0.4).all()
    inside = np.linspace(-10, 10, 21)[:, None]
    for seed in range(3):  # the posterior says nothing
        np.testing.assert_allclose(names.fit("moments", seed).predict_proba(inside), 0.5, atol=0.1)
    assert "Exact Bayes error 19.56 %" in shown.printed and "over 2 training tables" in shown.printed
    assert shown.n_pictures == 3


# --- discrimination


def test_arc_shows_gaussians_moved_to_where_they_part_the_classes(show):
    shown = show("arc")
    test = {name: errors[:, 1] for name, errors in shown.names.results.items()}
    for name in ("MED, cubic kernel", "MED Gaussians"):
        assert (test[name] < test["Gaussians by maximum likelihood"] - 0.003).all()
        assert (test[name] < test["linear MED"] - 0.08).all()
    assert 0 <= shown.names.cubic.gap_ < 1e-3 and len(shown.names.cubic.support_) < 40
    assert "over 3 training tables of 120 rows" in shown.printed and shown.n_pictures == 2


def test_trees_shows_the_edges_that_tell_classes_apart(show):
    shown = show("trees")
    names, margin = shown.names, shown.names.margin
    assert names.errors["margins"] < names.errors["likelihood"] - 0.1
    for edge in names.FAR:
        assert margin.edge_marginals_[1][edge] > 0.8 > 0.3 > margin.edge_marginals_[1][0, 1]
        assert margin.mutual_information_[1][edge] < margin.mutual_information_[1][0, 1] / 2 + 0.01
    assert shown.n_pictures == 3


def test_novelty_shows_cells_that_were_never_seen(show):
    shown = show("novelty")
    names = shown.names
    assert names.flagged["benign"] < 0.1 and names.flagged["malignant"] > 0.7
    assert min(names.area.values()) > 0.9 and abs(names.area["product"] - names.area["product, usual fit"]) < 0.02
    assert names.with_missing["benign"] <= names.flagged["benign"]
    assert 0.6 < names.with_missing["malignant"] < names.flagged["malignant"]
    assert len(names.detector.support_) < 200 and shown.n_pictures == 2


def test_fisher_kernel_shows_margins_for_sequences(show):
    shown = show("fisher_kernel")
    errors = shown.names.errors
    assert errors["Fisher kernel"] < 0.25 < 0.4 < errors["RBF kernel of the columns"]
    assert errors["hidden Markov model per class"] < errors["Fisher kernel"]
    assert shown.n_pictures == 3


def test_sequences_shows_what_the_order_tells(show):
    shown = show("sequences")
    chains, columns = shown.names.accuracy.values()
    assert chains > 0.8 and abs(columns - 0.5) < 0.08 and shown.names.agree > 0.85
    assert shown.names.stay["fast"].max() < 0.7 < 0.8 < shown.names.stay["slow"].min()
    assert shown.n_pictures == 2


# --- ensembles and fusion


@pytest.mark.slow
def test_ensembles_shows_a_difference_and_whether_it_can_be_chance(show):
    shown = show("ensembles")
    assert shown.names.losses["stacked"] < shown.names.losses["boosted"] - 0.03
    assert shown.names.sure.sum() > 80 and shown.names.right < 0.97  # "too sure of themselves"
    for metric, test in shown.names.tests.items():
        assert 0 < test.p_value < 1 and f"p = {test.p_value:.2g}" in shown.printed, metric
    assert shown.n_pictures == 3


def test_vendors_shows_the_share_of_the_ill(show):
    shown = show("vendors")
    names = shown.names
    low, high = names.estimate.low[1], names.estimate.high[1]
    assert low < names.share < high < 0.3  # the least share in training
    assert names.errors["fused"] < names.errors["mean of both"] / 2 and names.losses["exact"] < names.losses["fused"]
    assert names.losses["fused"] < min(names.losses[name] for name in ("vendor 1", "vendor 2", "mean of both")) / 1.5
    assert max(names.fuser.trust_.values()) < 1 and 1 < names.fuser.dependence_.n_effective < 2
    assert shown.n_pictures == 3


def test_judges_shows_who_repeats_whom_and_who_has_changed(show):
    shown = show("judges")
    names = shown.names
    z = names.fuser.dependence_.z
    family = np.arange(7) < 4
    pairs = np.triu(np.ones((7, 7), dtype=bool), 1)
    assert z[pairs & np.outer(family, family)].min() > 5 > 3 > z[pairs & ~np.outer(family, family)].max()
    assert min(names.errors, key=names.errors.get) == min(names.losses, key=names.losses.get) == "auto"
    assert names.losses["auto"] < 0.65 * names.losses["ml-product"] and 3.5 < names.fuser.dependence_.n_effective < 5
    assert sum(names.fuser.trust_[name] for name in ("A1", "A2", "A3", "A4")) < 2 < 3 * names.fuser.trust_["B"]
    assert names.loudest == "C" and names.p_values["C"] < 1e-6 and min(names.p_without.values()) > 0.05
    assert shown.n_pictures == 4


def test_gate_shows_what_two_matchers_are_worth(show):
    from mixent.studies import eer

    shown = show("gate")
    names = shown.names
    for cost in (1, 10):
        exact, product, discounted = (names.reports[name, cost] for name in ("exact", "ml-product", "discounted"))
        # the exact rule has the lowest expected cost; of this sample, a standard error is about the root of its errors
        margin = 2 * np.sqrt(exact.false_rejects) / 400
        assert exact.normalized_dcf - margin <= discounted.normalized_dcf < product.normalized_dcf
        assert discounted.false_accepts < product.false_accepts
    together = eer(names.new.truth, names.llr["discounted"], target="client")
    assert together < 0.4 * min(eer(names.new.truth, s, target="client") for s in names.new.scores.values())
    assert names.low < names.prior < names.high and shown.n_pictures == 2
