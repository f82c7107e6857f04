"""Outliers: a noise component with a uniform density, and t components."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal, multivariate_t

from mixent import FisherKernel, GaussianMixture, MixtureClassifier, SharedMixtureClassifier, load, save
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Stop, rounding, run
from mixent.core.executors import Serial
from mixent.families.gaussian.structures import COVARIANCES
from mixent.families.student import MOST_DF
from mixent.mixtures.init import Partition, Summary, from_partition
from mixent.options import Search

NAMES = tuple(COVARIANCES)
OPTIONS = ("noise", "t")
GOLDEN = Path(__file__).parents[1] / "golden"


def assert_never_decreases(fit, weight):
    """No accepted pass of a segment lowers the objective."""
    segments = {}
    for step in fit.run_.trace:
        if step.accepted:
            segments.setdefault(step.segment, []).append(step.objective)
    for values in segments.values():
        assert -np.diff(values).min(initial=0.0) <= rounding(max(map(abs, values)), weight)
    assert all(s.accepted for s in fit.run_.trace if s.kind != "proposal")
    assert not fit.run_.status.failed


def contaminated(seed=0, n=300, share=0.05, missing=0.0):
    """Rows of two Gaussians, some of which are replaced by uniform rows; the component of each row, -1 for outliers."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    X = np.array([[0.0, 0.0, 0.0], [5.0, 3.0, -2.0]])[label] + rng.normal(size=(n, 3)) * np.array([1.0, 0.5, 1.5])
    outlier = rng.random(n) < share
    X[outlier] = rng.uniform(-25, 30, (outlier.sum(), 3))
    X[rng.random(X.shape) < missing] = np.nan
    return X, np.where(outlier, -1, label)


def mixed_table(seed=0):
    """Numbers and categories with missing values, and a class."""
    X, label = contaminated(seed, missing=0.1)
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    kind = np.where(label < 0, rng.integers(3, size=len(X)), np.where(rng.random(len(X)) < 0.8, label, 2))
    table["kind"] = np.array(["u", "v", "w"])[kind]
    table.loc[::9, "kind"] = None
    return table, np.where(label < 0, rng.integers(2, size=len(X)), label)


# --- the objective ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("outliers", OPTIONS)
@pytest.mark.parametrize("plain", [False, True], ids=["accelerated", "plain"])
@pytest.mark.parametrize("name", NAMES)
def test_no_pass_lowers_the_objective(request, name, plain, outliers):
    """With missing values and weights, with and without a prior."""
    if plain:
        request.getfixturevalue("plain_em")
    X, _ = contaminated(missing=0.15, n=150)
    weight = np.random.default_rng(1).exponential(size=len(X))
    for prior in ("auto", None):
        fit = GaussianMixture(2, name, outliers=outliers, prior=prior, tol=1e-7, max_iter=60, random_state=0)
        assert_never_decreases(fit.fit(X, sample_weight=weight), weight.sum())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("outliers", OPTIONS)
@pytest.mark.parametrize("make", [MixtureClassifier, SharedMixtureClassifier])
def test_no_pass_lowers_the_objective_of_a_classifier(make, outliers):
    """Known, uncertain and absent labels, categories, missing values and weights at once."""
    table, y = mixed_table()
    soft = np.full((len(y), 2), 0.2)
    soft[np.arange(len(y)), y] = 0.8
    soft[::4] = np.eye(2)[y[::4]]
    soft[::7] = 0.5
    weight = np.random.default_rng(1).exponential(size=len(y))
    hard = y.astype(float)
    hard[::5] = np.nan
    for labels in (soft, hard):
        fit = make(3, outliers=outliers, tol=1e-7, max_iter=60, random_state=0).fit(table, labels, weight)
        assert_never_decreases(fit, weight.sum())
        assert fit.score(table, y) > 0.9


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("plain_em")
@pytest.mark.parametrize("outliers", OPTIONS)
@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing"])
def test_a_weight_of_two_is_the_row_twice(soft_start, same, outliers, missing):
    X, _ = contaminated(missing=missing, n=120)
    start, weight = soft_start(120, 2), np.arange(120) % 3  # rows of weight 0 do not count
    options = {"outliers": outliers, "prior": None, "tol": 0, "max_iter": 15}
    repeated = np.repeat(np.arange(120), weight)
    one = GaussianMixture(2, init=start, **options).fit(X, sample_weight=weight)
    two = GaussianMixture(2, init=start[repeated], **options).fit(X[repeated])
    same(one, two, 1e-9)
    np.testing.assert_allclose(one.degrees_of_freedom_, two.degrees_of_freedom_, rtol=1e-9)
    assert one.noise_weight_ == pytest.approx(two.noise_weight_, rel=1e-9)


@pytest.mark.parametrize("outliers", OPTIONS)
def test_blocks_do_not_change_the_statistics(outliers):
    X, _ = contaminated(missing=0.2)
    fit = GaussianMixture(2, outliers=outliers, random_state=0).fit(X)
    ready = fit.problem_.prepare(fit.params_)

    def updated(block_rows):
        source = ArrayBlocks(Block(X)).reblock(block_rows)
        total = Serial().total(lambda block: fit.problem_.stats(ready, block), source)
        return total.log_lik, fit.problem_.pack(fit.problem_.update(fit.params_, total))

    log_lik, params = updated(1000)
    for block_rows in (1, 7, 64):
        other, packed = updated(block_rows)
        assert other == pytest.approx(log_lik, rel=1e-12)
        np.testing.assert_allclose(packed, params, rtol=1e-8, atol=1e-10)


def log_density(fit, X):
    """log p(x) from scipy, row by row, and from the attributes of the model."""
    widths = np.ptp(fit.training_rows, axis=0)
    out = np.empty(len(X))
    for i, row in enumerate(X):
        seen = np.flatnonzero(~np.isnan(row))
        density = fit.noise_weight_ / np.prod(widths[seen])
        for k, weight in enumerate(fit.weights_):
            part = row[seen], fit.means_[k][seen], fit.covariances_[k][np.ix_(seen, seen)]
            df = fit.degrees_of_freedom_[k]
            pdf = multivariate_normal.pdf if np.isinf(df) else multivariate_t.pdf
            density += weight * (pdf(*part) if np.isinf(df) else pdf(*part, df)) if len(seen) else weight
        out[i] = np.log(density)
    return out


@pytest.mark.parametrize("outliers", OPTIONS)
def test_the_density_is_that_of_the_attributes(outliers):
    X, _ = contaminated()
    fit = GaussianMixture(2, outliers=outliers, random_state=0).fit(X)
    fit.training_rows = X
    rows, _ = contaminated(seed=1, n=60, missing=0.4)
    np.testing.assert_allclose(fit.score_samples(rows), log_density(fit, rows), rtol=1e-9, atol=1e-12)
    assert fit.weights_.sum() + fit.noise_weight_ == pytest.approx(1.0)


@pytest.mark.parametrize("outliers", OPTIONS)
def test_a_marginal_is_the_model_with_the_other_columns_missing(outliers):
    table, y = mixed_table()
    for fit in (
        GaussianMixture(2, outliers=outliers, random_state=0).fit(table),
        MixtureClassifier(2, outliers=outliers, random_state=0).fit(table, y),
    ):
        gone = table.copy()
        gone[["a", "c"]] = np.nan
        part = fit.marginal(["b", "kind"])
        np.testing.assert_allclose(part.score_samples(table[["b", "kind"]]), fit.score_samples(gone), atol=1e-10)
        np.testing.assert_allclose(part.predict_proba(table[["b", "kind"]]), fit.predict_proba(gone), atol=1e-10)


# --- optima -----------------------------------------------------------------------------------------------------------


def test_the_t_mixture_is_a_maximum_of_the_likelihood():
    """scipy does not improve it, and its gradient there is zero."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.standard_t(3, (200, 2)), [6, 0] + rng.standard_t(5, (150, 2)) @ [[1.0, 0.5], [0.0, 0.8]]])
    fit = GaussianMixture(2, "VVV", outliers="t", prior=None, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    assert fit.converged_ and (fit.degrees_of_freedom_ < MOST_DF).all()

    def minus(vector):
        logit, df = vector[0], np.exp(vector[11:13])
        log_weights = -np.logaddexp(0, [-logit, logit])
        parts = []
        for k in range(2):
            a, b, c = vector[5 + 3 * k : 8 + 3 * k]
            root = np.array([[np.exp(a), 0.0], [b, np.exp(c)]])
            parts.append(log_weights[k] + multivariate_t.logpdf(X, vector[1 + 2 * k : 3 + 2 * k], root @ root.T, df[k]))
        return -np.logaddexp(*parts).mean()

    roots = np.linalg.cholesky(fit.covariances_)
    coordinates = [[np.log(r[0, 0]), r[1, 0], np.log(r[1, 1])] for r in roots]
    logit = np.log(fit.weights_[0] / fit.weights_[1])
    start = np.concatenate([[logit], fit.means_.ravel(), *coordinates, np.log(fit.degrees_of_freedom_)])
    assert -minus(start) == pytest.approx(fit.score(X), rel=1e-10)
    assert np.abs(approx_fprime(start, minus, 1e-6)).max() < 1e-4
    best = minimize(minus, start, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-8})
    assert minus(start) - best.fun < 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", json.loads((GOLDEN / "mclust_noise.json").read_text())["models"])
def test_noise_is_that_of_mclust(name):
    """From the same responsibilities, with the same volume."""
    golden = json.loads((GOLDEN / "mclust_noise.json").read_text())
    spec = importlib.util.spec_from_file_location("make_inputs", GOLDEN / "make_inputs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    X, z = module.noisy()
    np.testing.assert_allclose(X.sum(axis=0), golden["column_sums"], atol=1e-9)
    problem = GaussianMixture(3, name, outliers="noise", prior=None, max_iter=2, random_state=0)
    problem = problem.fit(X).problem_
    uniform = problem.family.uniform
    assert np.prod(uniform.high - uniform.low) == pytest.approx(golden["volume"], rel=1e-12)
    summary = Summary(problem.family.gaussian.center, problem.family.gaussian.scale, np.empty(0))
    start = Partition(np.arange(len(X)), z[:, :3])
    params = from_partition(problem.family, summary, Block(X), start, z[:, :3].sum(axis=0)[None], Serial())
    params = replace(params, weights=z.mean(axis=0)[None])
    result = run(problem, ArrayBlocks(Block(X)), params, stop=Stop(1e-13, 20000), executor=Serial())
    theirs = golden["models"][name]
    assert result.objective / len(X) == pytest.approx(theirs["loglik"] / len(X), abs=1e-6)
    np.testing.assert_allclose(result.params.weights[0], theirs["pro"], atol=1e-3)
    means = result.params.components.gaussian.means + problem.family.gaussian.center
    np.testing.assert_allclose(means, theirs["mean"], atol=1e-2)


@pytest.mark.parametrize("seed", range(4))
def test_the_means_are_recovered_despite_outliers(seed):
    """Of 5 % uniform rows; without a model of outliers they are not."""
    X, label = contaminated(seed, n=600)
    true = np.array([X[label == k].mean(axis=0) for k in range(2)])

    def error(outliers):
        means = GaussianMixture(2, outliers=outliers, random_state=0).fit(X).means_
        return min(np.abs(means - true).max(), np.abs(means[::-1] - true).max())

    assert error("noise") < 0.2 and error("t") < 0.2 < 1.0 < error(None)


def test_noise_rows_are_found():
    X, label = contaminated(n=600)
    fit = GaussianMixture(2, outliers="noise", random_state=0).fit(X)
    found = fit.predict(X) == -1
    assert np.mean(found == (label < 0)) > 0.99
    assert fit.noise_weight_ == pytest.approx(np.mean(label < 0), abs=0.01)
    proba = fit.predict_proba(X)
    assert proba.shape == (600, 3)
    np.testing.assert_array_equal(proba.argmax(axis=1) == 2, found)
    drawn, component = fit.sample(5000)
    assert np.mean(component == -1) == pytest.approx(fit.noise_weight_, abs=0.02)
    far = drawn[component == -1]
    assert (far.min(axis=0) >= X.min(axis=0)).all() and (far.max(axis=0) <= X.max(axis=0)).all()
    assert all(not set(rows) & set(np.flatnonzero(found)) for rows in fit.typical_rows(X))


def test_a_row_far_from_all_training_rows_is_noise():
    """The density of noise is the same outside the range, so p(class) of such a row is that of the noise."""
    X, label = contaminated(n=600)
    y = np.where(label < 0, 1, label)  # all outliers are of class 1
    far = np.full((1, 3), 1e6)
    assert GaussianMixture(2, outliers="noise", random_state=0).fit(X).predict(far) == [-1]
    for make in (MixtureClassifier, SharedMixtureClassifier):
        fit = make(2, outliers="noise", random_state=0).fit(X, y)
        share = fit.noise_weight_ / fit.noise_weight_.sum()
        np.testing.assert_allclose(fit.predict_proba(far), share[None], rtol=1e-9)
        assert share[1] > 0.9


def test_of_gaussian_rows_the_options_are_gaussian_mixtures(draw):
    X, _ = draw(n=2000, gap=4.0)
    plain = GaussianMixture(3, random_state=0).fit(X)
    noise, t = (GaussianMixture(3, outliers=o, random_state=0).fit(X) for o in OPTIONS)
    assert noise.noise_weight_ < 0.01 and (t.degrees_of_freedom_ > 20).all()
    for other in (noise, t):
        np.testing.assert_allclose(other.means_, plain.means_, atol=0.1)
        assert plain.bic(X) < other.bic(X) + 10
    assert noise.n_parameters_ == plain.n_parameters_ + 1 and t.n_parameters_ == plain.n_parameters_ + 3


def test_each_class_has_its_own_weight_of_noise():
    X, label = contaminated(n=600)
    y = np.where(label < 0, 0, label)
    fit = MixtureClassifier(1, outliers="noise", random_state=0).fit(X, y)
    np.testing.assert_allclose(fit.noise_weight_, [np.mean(label < 0), 0.0], atol=0.01)
    plain = MixtureClassifier(1, random_state=0).fit(X, y)
    assert fit.n_parameters_ == plain.n_parameters_ + 2
    np.testing.assert_allclose(fit.weights_.sum(axis=1) + fit.noise_weight_, fit.class_prior_)


# --- other methods ----------------------------------------------------------------------------------------------------


def test_missing_values_of_noise_are_the_middle_of_the_range():
    X, _ = contaminated(n=600)
    fit = GaussianMixture(2, outliers="noise", random_state=0).fit(X)
    row = np.array([[-24.0, 29.0, np.nan]])
    assert fit.impute(row)[0, 2] == pytest.approx((X[:, 2].min() + X[:, 2].max()) / 2, abs=1e-6)


def test_missing_values_of_t_components_are_linear_in_the_others():
    X, _ = contaminated(n=600)
    fit = GaussianMixture(1, outliers="t", random_state=0).fit(X)
    (mean,), (cov,) = fit.means_, fit.covariances_
    row = np.array([[4.0, np.nan, 1.0]])
    given = [0, 2]
    expected = mean[1] + cov[1, given] @ np.linalg.solve(cov[np.ix_(given, given)], row[0, given] - mean[given])
    assert fit.impute(row)[0, 1] == pytest.approx(expected, rel=1e-9)


SEARCHES = [
    GaussianMixture("auto", ["VVI", "VVV"], search=Search(max_components=3)),
    GaussianMixture("auto", ["EVI", "VVV"], search=Search(max_components=3, growth="incremental")),
    GaussianMixture("auto", search=Search("cv", max_components=3, cv=2)),
    MixtureClassifier(search=Search(max_components=2, cv=2)),
    MixtureClassifier(search=Search("bic", max_components=2, per_class=True, growth="incremental")),
    SharedMixtureClassifier("auto", "VVI", search=Search(max_components=4, cv=2)),
    SharedMixtureClassifier(3, "EEE", search=Search(growth="incremental")),
]


@pytest.mark.parametrize("outliers", OPTIONS)
@pytest.mark.parametrize("model", SEARCHES, ids=range(len(SEARCHES)))
def test_searches_and_files(tmp_path, model, outliers):
    table, y = mixed_table()
    fit = type(model)(**model.get_params(deep=False)).set_params(outliers=outliers, random_state=0, tol=1e-4)
    fit.fit(table, y)
    assert np.isfinite(fit.score_samples(table)).all()
    assert (np.sum(fit.noise_weight_) > 0.01) == (outliers == "noise")
    assert np.isfinite(fit.degrees_of_freedom_).all() == (outliers == "t")
    assert len(fit.means_) == len(fit.degrees_of_freedom_) == np.sum(fit.n_components_)
    save(fit, tmp_path / "model.mixent")
    other = load(tmp_path / "model.mixent")
    np.testing.assert_array_equal(other.predict_proba(table), fit.predict_proba(table))
    assert other.outliers == outliers
    assert {"noise": "noise", "t": "degrees_of_freedom"}[outliers] in fit.summary().facts


@pytest.mark.parametrize("outliers", OPTIONS)
def test_growth_never_lowers_the_likelihood(outliers):
    X, _ = contaminated()
    model = GaussianMixture(4, "VVV", outliers=outliers, prior=None, search=Search(growth="incremental"))
    path = model.set_params(random_state=0).fit(X).path_
    assert [stage.n_components for stage in path] == [1, 2, 3, 4]
    assert (np.diff([stage.log_likelihood for stage in path]) > -1e-6).all()


def test_batches_with_noise():
    X, label = contaminated(n=800)
    fit = GaussianMixture(2, outliers="noise", random_state=0).fit(X[:400])
    for part in (X[400:600], X[600:]):
        fit.partial_fit(part)
    whole = GaussianMixture(2, outliers="noise", random_state=0).fit(X)
    np.testing.assert_allclose(fit.means_, whole.means_, atol=0.1)
    assert fit.noise_weight_ == pytest.approx(whole.noise_weight_, abs=0.01)
    y = np.maximum(label, 0)
    classifier = (
        MixtureClassifier(1, outliers="noise", random_state=0).fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
    )
    np.testing.assert_allclose(classifier.class_prior_, [np.mean(y == 0), np.mean(y == 1)], atol=1e-6)


def test_there_are_no_batches_with_t_components():
    assert not hasattr(GaussianMixture(outliers="t"), "partial_fit")
    assert not hasattr(MixtureClassifier(outliers="t"), "partial_fit")
    assert hasattr(MixtureClassifier(outliers="noise"), "partial_fit")


@pytest.mark.parametrize("outliers", OPTIONS)
def test_a_warm_start_continues(outliers):
    X, _ = contaminated()
    fit = GaussianMixture(2, outliers=outliers, warm_start=True, random_state=0).fit(X)
    before = fit.lower_bound_
    assert fit.fit(X).lower_bound_ >= before - 1e-9 and fit.n_iter_ <= 3
    fit.set_params(outliers=None).fit(X)  # another family: a new start
    assert fit.noise_weight_ == 0 and np.isinf(fit.degrees_of_freedom_).all()


@pytest.mark.parametrize("outliers", OPTIONS)
def test_initial_parameters_may_be_given(outliers):
    X, _ = contaminated()
    means = [[0, 0, 0], [5, 3, -2]]
    given = {"weights": [0.5, 0.5], "means": means, "covariances": np.ones((2, 3))}
    fit = GaussianMixture(2, outliers=outliers, init=given).fit(X)
    np.testing.assert_allclose(fit.means_[np.argsort(fit.means_[:, 0])], means, atol=0.3)


@pytest.mark.parametrize("outliers", OPTIONS)
def test_contributions_of_components_add_up(outliers):
    table, y = mixed_table()
    fit = SharedMixtureClassifier(3, outliers=outliers, random_state=0).fit(table, y)
    for by in ("component", "column"):
        explanation = fit.explain(table[:20], label=1, rival=0, by=by)
        proba = fit.predict_proba(table[:20])
        odds = np.log(proba[:, 1] / proba[:, 0])
        np.testing.assert_allclose(explanation.log_odds, odds, atol=1e-8)
    names = fit.explain(table[:20], by="component").names
    assert list(names)[3:] == (["noise"] if outliers == "noise" else [])


@pytest.mark.parametrize("outliers", OPTIONS)
def test_prior_shift_keeps_the_densities(outliers):
    table, y = mixed_table()
    fit = MixtureClassifier(1, outliers=outliers, random_state=0).fit(table, y)
    other = fit.adjust_priors(table[y == 0])
    assert other.class_prior_[0] > 0.95
    np.testing.assert_allclose(other.params_.weights.sum(), 1.0)


def test_refused():
    X, label = contaminated(n=80)
    y = np.maximum(label, 0)
    with pytest.raises(ValueError, match="outliers"):
        MixtureClassifier(1, outliers="t", training="conditional").fit(X, y)
    with pytest.raises(ValueError, match="outliers"):
        FisherKernel(GaussianMixture(1, outliers="noise")).fit(X)


@pytest.mark.parametrize("outliers", ["noise", "t"])
def test_the_prior_of_single_components_does_not_follow_the_outliers(outliers):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 4)) + 4 * y[:, None] * np.eye(4)[0]
    X[:10] = rng.uniform(-1000, 1000, (10, 4))
    model = MixtureClassifier(1, "VVV", outliers=outliers, random_state=0).fit(X, y)
    std = np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))
    assert (std > 0.7).all() and (std < 1.3).all()
