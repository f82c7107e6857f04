"""Against R mclust, from the same starting responsibilities, without a prior."""

import importlib.util
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from mixent import GaussianMixture
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.executors import Serial
from mixent.families.gaussian.family import Gaussians
from mixent.families.product import Components
from mixent.mixtures import fit_plan
from mixent.mixtures.problem import MixtureParams

FOLDER = Path(__file__).parents[1] / "golden"
NUMBERS = json.loads((FOLDER / "mclust.json").read_text())
GOLDEN, TABLES = NUMBERS["sets"], NUMBERS["tables"]
CASES = [(name, model) for name, golden in GOLDEN.items() for model in golden["models"]]
FIXED_POINTS = [(name, model) for name, model in CASES if model != "VVE"]


def load_inputs():
    spec = importlib.util.spec_from_file_location("make_inputs", FOLDER / "make_inputs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULE = load_inputs()
INPUTS = MODULE.inputs()


def fitted(name, model):
    X, start = INPUTS[name]
    mixture = GaussianMixture(3, model, prior=None, init=start, tol=1e-12, max_iter=20000)
    return X, mixture.fit(X)


def one_update(name, model):
    """mclust's parameters, and what one pass and one update of ours make of them."""
    X, mixture = fitted(name, model)
    problem, gaussian = mixture.problem_, mixture.problem_.family.gaussian
    theirs = GOLDEN[name]["models"][model]
    covs = np.array(theirs["sigma"])
    if gaussian.axis_aligned:
        covs = np.diagonal(covs, axis1=1, axis2=2).copy()
    gaussians = Gaussians(np.array(theirs["mean"]) - gaussian.center, covs, (None,))
    before = MixtureParams(np.array(theirs["pro"])[None] / np.sum(theirs["pro"]), Components(gaussians, None))
    source = ArrayBlocks(Block(X))

    def total(params):
        ready = problem.prepare(params)
        return Serial().total(lambda block: problem.stats(ready, block), source)

    stats = total(before)
    after = problem.update(before, stats)
    return before, after, problem.objective(before, stats), problem.objective(after, total(after))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_data_and_the_start_are_those_of_the_golden_file(name):
    X, start = INPUTS[name]
    golden = GOLDEN[name]
    assert X.shape == (golden["n_rows"], golden["n_columns"])
    np.testing.assert_allclose(X.sum(axis=0), golden["column_sums"], atol=1e-9)
    np.testing.assert_allclose((X**2).sum(axis=0), golden["column_squares"], rtol=1e-12)
    np.testing.assert_array_equal(start.argmax(axis=1), golden["start"])
    assert len(golden["models"]) == 14 and not any(m["failed"] for m in golden["models"].values())


@pytest.mark.parametrize("accelerated", [False, True], ids=["plain", "accelerated"])
@pytest.mark.parametrize(("name", "model"), CASES)
def test_the_log_likelihood_is_not_below_mclust(request, name, model, accelerated):
    if not accelerated:
        request.getfixturevalue("plain_em")
    X, mixture = fitted(name, model)
    theirs = GOLDEN[name]["models"][model]["loglik"]
    ours = mixture.score_samples(X).sum()
    assert mixture.converged_
    assert ours == pytest.approx(mixture.run_.objective, rel=1e-10)
    assert ours >= theirs - 1e-6 * abs(theirs)


@pytest.mark.parametrize(("name", "model"), FIXED_POINTS)
def test_the_solution_of_mclust_is_a_fixed_point_of_the_update(name, model):
    before, after, _, _ = one_update(name, model)
    np.testing.assert_allclose(after.weights, before.weights, atol=1e-5)
    np.testing.assert_allclose(after.components.gaussian.means, before.components.gaussian.means, atol=1e-5)
    np.testing.assert_allclose(after.components.gaussian.covs, before.components.gaussian.covs, atol=1e-5)


@pytest.mark.parametrize(("name", "model"), FIXED_POINTS)
def test_the_log_likelihood_of_the_solution_of_mclust_is_the_one_it_reports(name, model):
    _, _, objective, _ = one_update(name, model)
    assert objective == pytest.approx(GOLDEN[name]["models"][model]["loglik"], rel=1e-10)


@pytest.mark.parametrize("name", GOLDEN)
def test_vve_of_mclust_is_no_maximum_and_one_update_raises_it(name):
    """VVE of mclust 6.0 is not a stationary point of the likelihood: its common axes leave out the factor 1/lambda_k.

    So its answer cannot be a fixed point of a right M-step. What must hold instead: one update of ours from its
    answer raises the log-likelihood, and our own fit from the same start ends above it.
    """
    _, _, before, after = one_update(name, "VVE")
    theirs = GOLDEN[name]["models"]["VVE"]["loglik"]
    assert before == pytest.approx(theirs, rel=1e-10)
    assert after > before + 1e-3
    X, mixture = fitted(name, "VVE")
    assert mixture.score_samples(X).sum() > theirs + 1e-3


# --- acceleration ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not MODULE.TABLES.exists(), reason="needs the tables of ../shared/data")
@pytest.mark.parametrize(("name", "model"), [(name, model) for name in TABLES for model in TABLES[name]["loglik"]])
def test_an_accelerated_fit_ends_not_below_mclust(name, model):
    """Without plain passes before extrapolation, some of these fits end in lower local maxima.

    VVE of mclust is another algorithm (see above), which can end in another local maximum: from equal groups of crabs,
    in a higher one.
    """
    table, _, start = name.rpartition("_")
    X, starts = MODULE.table_inputs(table)
    np.testing.assert_allclose(X.sum(axis=0), TABLES[name]["column_sums"], rtol=1e-12)
    mixture = GaussianMixture(starts[start].shape[1], model, prior=None, init=starts[start], tol=1e-12, max_iter=20000)
    gain = (mixture.fit(X).run_.objective - TABLES[name]["loglik"][model]) / len(X)
    assert mixture.converged_
    if (name, model) != ("crabs_groups", "VVE"):
        assert gain > (1e-6 if model == "VVE" else -1e-6)


def simulated(seed):
    """A small table, and a start from the nearest of some rows."""
    rng = np.random.default_rng((77, seed))
    n, d, K = (int(rng.integers(low, high)) for low, high in ((60, 200), (1, 5), (2, 6)))
    label, means = rng.integers(K, size=n), rng.normal(size=(K, d)) * rng.choice([1.0, 2.0, 4.0])
    factors = 0.5 * rng.normal(size=(K, d, d)) + np.eye(d)
    X = means[label] + np.einsum("nij,nj->ni", factors[label], rng.normal(size=(n, d)))
    nearest = ((X[:, None] - X[rng.choice(n, K, replace=False)]) ** 2).sum(axis=2).argmin(axis=1)
    return X, np.eye(K)[nearest]


@pytest.mark.slow
def test_accelerated_fits_of_simulated_tables_rarely_end_below_plain_em(monkeypatch):
    """A property of these tables, no theorem: any step can lead to another local maximum, higher or lower."""
    monkeypatch.setattr(fit_plan, "rescaled", lambda *_: False)  # objectives with different priors cannot be compared
    models, ends = list(GOLDEN["iris"]["models"]), []
    for n_plain in (fit_plan.PLAIN_PASSES, 10**9):
        monkeypatch.setattr(fit_plan, "PLAIN_PASSES", n_plain)
        for seed in range(200):
            X, start = simulated(seed)
            prior = "auto" if seed % 3 else None
            mixture = GaussianMixture(start.shape[1], models[seed % 14], prior=prior, init=start, tol=1e-8, n_jobs=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without a prior, some collapse
                ends.append(mixture.set_params(max_iter=20000).fit(X).lower_bound_)
    gains = np.array(ends[:200]) - ends[200:]
    assert np.mean(gains < -1e-6) <= 0.02
