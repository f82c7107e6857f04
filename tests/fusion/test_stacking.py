"""Label-free stacking: the objective, the limit with labels, independence, copies, the shrinkage of the means."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixent import Calibration, Fuser
from mixent.fusion import stacking
from mixent.fusion.stacking import StackingProblem, shrunk_residual


def scores(n=400, J=4, K=3, seed=0):
    """Centered scores (J, n, K) of correlated sources, and the classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=n)
    common = rng.normal(size=(n, K))
    x = np.eye(K)[truth] + common + rng.normal(size=(J, n, K))
    return x - x.mean(axis=2, keepdims=True), truth


def problem(x, truth, **more):
    n, K = x.shape[1:]
    prior = np.bincount(truth, minlength=K) / n
    means = x[:, np.arange(n), truth].mean(axis=1)
    return StackingProblem(x, np.full(n, 1 / n), prior, means, np.full(len(x), 0.3), np.eye(len(x)), **more)


def ambiguous(n, J, share, seed, *, rows=400, noise=1.0, ambiguity=0.4, scaled=False):
    """Sources that see the same ambiguity of each item, calibrated on equal numbers of own rows; the classes."""
    rng = np.random.default_rng(seed)
    distance = np.linspace(0.8, 2.4, J)

    def drawn(y):
        z = distance * (y[:, None] - 0.5 + ambiguity * rng.normal(size=(len(y), 1))) + noise * rng.normal(
            size=(len(y), J)
        )
        p = 1 / (1 + np.exp(-distance * z))
        return np.stack([1 - p, p], axis=2)

    truth = (rng.random(n) < share).astype(int)
    answers = drawn(truth)
    own = np.arange(rows) % 2
    sources = {
        f"s{j}": Calibration.from_predictions(own, drawn(own)[:, j], symbols=[0, 1], scaled=scaled) for j in range(J)
    }
    return sources, {f"s{j}": answers[:, j] for j in range(J)}, truth


def test_the_gradient_is_that_of_the_objective():
    task = problem(*scores())
    params = np.array([0.4, 0.1, 0.7, 0.2, 0.3, -0.2])
    _, slope = task.value_and_gradient(params)
    for j, step in enumerate(1e-6 * np.eye(len(params))):
        up, down = (task.value_and_gradient(params + s)[0] for s in (step, -step))
        np.testing.assert_allclose(slope[j], (up - down) / 2e-6, rtol=1e-6, atol=1e-9)


def test_the_objective_is_concave_and_solve_finds_its_maximum():
    task, rng = problem(*scores()), np.random.default_rng(1)
    found = task.solve()
    assert found.gradient_norm < 1e-6 and (found.trust >= 0).all()
    for _ in range(50):
        a, b = (np.abs(rng.normal(size=6)) for _ in range(2))
        value = [task.value_and_gradient(params)[0] for params in (a, b, (a + b) / 2)]
        assert value[2] >= (value[0] + value[1]) / 2 - 1e-12
        assert max(value) <= found.objective + 1e-9


def test_with_the_means_of_the_labels_it_is_logistic_stacking(monkeypatch):
    monkeypatch.setattr(stacking, "RIDGE", 0.0)
    x, truth = scores(K=2)
    found = problem(x, truth).solve()
    difference = (x[:, :, 1] - x[:, :, 0]).T
    labelled = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(difference, truth)
    assert (labelled.coef_ > 0).all()
    np.testing.assert_allclose(found.trust, labelled.coef_[0], rtol=1e-4)


def test_a_weight_that_would_be_negative_is_zero():
    x, truth = scores()
    x[3] = -x[3]
    found = problem(x, truth).solve()
    assert found.trust[3] == 0 and found.gradient_norm < 1e-6 and (found.trust[:3] > 0).all()


def test_exact_means_are_kept_and_unknown_ones_are_those_of_the_centre():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    hessian, residual = root @ root.T + np.eye(5), rng.normal(size=5)
    center = np.ones(5)
    kept = shrunk_residual(residual, hessian, 1e-12 * np.eye(5), center)
    np.testing.assert_allclose(kept, residual, rtol=1e-6)
    assert np.abs(shrunk_residual(residual, hessian, 1e9 * np.eye(5), center)).max() < 1e-5


def test_independent_sources_have_weights_near_one():
    sources, answers, _ = ambiguous(6000, 6, 0.3, 0, rows=4000, ambiguity=0.0)
    fuser = Fuser(sources, method="stacking").fit(answers)
    np.testing.assert_allclose(list(fuser.trust_.values()), 1.0, atol=0.15)


@pytest.mark.parametrize("declared", [True, False])
def test_a_copy_shares_the_weight(declared):
    sources, answers, _ = ambiguous(1500, 5, 0.3, 1)
    alone = Fuser(sources, method="stacking").fit(answers)
    copy = Calibration.from_json({**sources["s4"].to_json(), "copy_of": "s4" if declared else None})
    both = Fuser({**sources, "copy": copy}, method="stacking").fit({**answers, "copy": answers["s4"]})
    assert both.trust_["copy"] == pytest.approx(both.trust_["s4"], rel=1e-3)
    if declared:
        np.testing.assert_allclose(both.posterior_, alone.posterior_, atol=1e-3)
    assert 2 * both.trust_["copy"] == pytest.approx(alone.trust_["s4"], abs=1e-3 if declared else 0.3)


def test_common_ambiguity_is_weighted_better_than_by_the_discounts():
    sources, answers, truth = ambiguous(2000, 20, 0.5, 2, rows=200)
    fits = {method: Fuser(sources, method=method).fit(answers) for method in ("discounted", "stacking")}
    loss = {name: -np.log(fit.posterior_[np.arange(2000), truth]).mean() for name, fit in fits.items()}
    assert loss["stacking"] < loss["discounted"] - 0.01
    trust = {name: np.array(list(fit.trust_.values())) for name, fit in fits.items()}
    assert (trust["stacking"] >= 0).all() and trust["stacking"].sum() <= trust["discounted"].sum() + 1e-9
    assert (trust["stacking"] > 0).sum() > (trust["discounted"] > 0).sum()
    items = {name: values[:5] for name, values in answers.items()}
    np.testing.assert_allclose(fits["stacking"].predict_proba(items), fits["stacking"].posterior_[:5], rtol=1e-12)


def test_labelled_items_have_their_class_instead_of_the_own_posterior():
    x, truth = scores(n=5000)
    weight, prior = np.full(5000, 1 / 5000), np.array([0.5, 0.3, 0.2])
    labelled, _ = stacking._own_means(x, weight, prior, truth)
    np.testing.assert_allclose(labelled, x[:, np.arange(5000), truth].mean(axis=1), rtol=1e-12)
    own, _ = stacking._own_means(x, weight, prior, np.full(5000, -1))
    mass = prior * np.exp(x)
    mass /= mass.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(own, (mass * x).sum(axis=2).mean(axis=1), rtol=1e-12)


def test_the_curvature_is_that_of_the_objective():
    x, _ = scores(n=300)
    weight, prior, trust = np.full(300, 1 / 300), np.array([0.5, 0.3, 0.2]), np.full(4, 0.4)
    slope, hessian = stacking._curvature(x, weight, prior, trust)
    for j, step in enumerate(1e-5 * np.eye(4)):
        up, down = (stacking._curvature(x, weight, prior, trust + s)[0] for s in (step, -step))
        np.testing.assert_allclose(hessian[j], (up - down) / 2e-5, rtol=1e-4, atol=1e-7)
    mass = np.exp(np.einsum("j,jnk->nk", trust, x) + stacking._offsets(np.einsum("j,jnk->nk", trust, x), weight, prior))
    mass /= mass.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mass.mean(axis=0), prior, rtol=1e-8)
    np.testing.assert_allclose(slope, np.einsum("nk,jnk->j", mass, x) / 300, rtol=1e-9)
