"""One model of all columns: its pseudo-likelihood, two ways up it, and the answers it gives."""

import inspect
import pickle
from itertools import pairwise, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from mixent.core import serialize
from mixent.core.driver import Run, Status, Step, Stop
from mixent.core.executors import Serial
from mixent.data import Column, DataWarning, Schema
from mixent.maxent import joint_problem
from mixent.maxent.joint import MaxEntJoint
from mixent.maxent.joint_inference import RowInference
from mixent.maxent.joint_prior import VARIANCES, pseudo_log_likelihood
from mixent.maxent.joint_problem import SOLVERS, Pairwise, RowBlocks, Rows, WhiteChart, pose, solve
from mixent.maxent.joint_terms import Category, Constant, Hidden, Layout, _split
from mixent.mixtures.columns import ColumnMixture

pytestmark = pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")  # see `frame`
SIZES = (3, 4, 2, 3)


def draw(n=300, *, seed=0, gaps=0.0, soft=True):
    """Rows of four columns that hang together, the last a pmf; some values missing."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(2, size=n)
    codes = np.stack([(hidden * rng.integers(0, 2, n) + rng.integers(0, r, n)) % r for r in SIZES])
    phi = np.concatenate([np.equal(c, np.arange(r)[:, None]).astype(float) for c, r in zip(codes, SIZES)])
    if soft:
        phi[-SIZES[-1] :] = 0.5 * phi[-SIZES[-1] :] + 0.5 * rng.dirichlet(np.ones(SIZES[-1]), n).T
    present = rng.random((len(SIZES), n)) >= gaps
    phi *= np.repeat(present, SIZES, axis=0)
    return Rows(phi, present, rng.random(n) + 0.5)


def somewhere(problem, seed=1):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=problem.between.shape)
    return Pairwise(rng.normal(size=len(pairs)), (pairs + pairs.T) * problem.between)


def total_at(problem, params, source):
    with Serial() as workers:
        return workers.total(lambda block: problem.stats(problem.prepare(params), block), source)


def value(problem, params, source):
    return problem.objective(params, total_at(problem, params, source))


def posed(rows, variance):
    source = RowBlocks(rows)
    with Serial() as workers:
        return pose(source, SIZES, variance, workers), source


def frame(n=200, *, seed=0, gaps=0.0):
    """A table of text, whole numbers, a measurement and a column that never changes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    X = pd.DataFrame(
        {
            "shape": np.array(["cube", "disc", "rod"])[(kind + (rng.random(n) < 0.2)) % 3],
            "big": np.array(["no", "yes"])[((kind == 2) ^ (rng.random(n) < 0.1)).astype(int)],
            "size": 2.0 * kind + 0.5 * rng.normal(size=n),
            "maker": "acme",
            "legs": pd.array(4 * kind + rng.integers(0, 2, n), dtype="Int64"),
            "class": np.array(["a", "b", "c"])[(kind + (rng.random(n) < 0.1)) % 3],
        }
    )
    return X.mask(rng.random(X.shape) < gaps)


@pytest.fixture(scope="module")
def fitted():
    return MaxEntJoint(prior_variance=1.0, random_state=0).fit(frame(gaps=0.1))


# the objective and its maximum ------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("variance", [None, 0.7])
def test_the_gradient_is_that_of_finite_differences(variance, gaps):
    problem, source = posed(draw(gaps=gaps), variance)
    here, way = somewhere(problem), somewhere(problem, 2)
    single, pairs = problem.gradient(here, total_at(problem, here, source))

    def along(t):
        return value(problem, Pairwise(here.single + t * way.single, here.pairs + t * way.pairs), source)

    exact = single @ way.single + 0.5 * (pairs * way.pairs).sum()
    assert (along(1e-5) - along(-1e-5)) / 2e-5 == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("variance", [None, 0.7])
def test_the_chart_goes_there_and_back_and_has_the_gradient_of_finite_differences(variance):
    problem, source = posed(draw(gaps=0.2), variance)
    chart, here = WhiteChart(problem), somewhere(problem)
    vector = chart.vector(here)
    again = chart.params(vector)
    np.testing.assert_allclose(again.pairs, here.pairs, atol=1e-9)
    np.testing.assert_allclose(again.single, here.single, atol=1e-9)
    way = np.random.default_rng(3).normal(size=len(vector))
    exact = chart.gradient(here, total_at(problem, here, source)) @ way
    ahead, back = (value(problem, chart.params(vector + t * way), source) for t in (1e-4, -1e-4))
    assert (ahead - back) / 2e-4 == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gaps", [0.0, 0.4])
@pytest.mark.parametrize("variance", [None, 0.01, 2.0])
def test_scaling_lowers_the_objective_nowhere(variance, gaps, seed):
    problem, source = posed(draw(gaps=gaps, seed=seed), variance)
    params = somewhere(problem, seed)
    total = total_at(problem, params, source)
    for _ in range(4):
        before = problem.objective(params, total)
        params = problem.update(params, total, 1.0)
        total = total_at(problem, params, source)
        assert problem.objective(params, total) >= before - 1e-11 * abs(before)
        np.testing.assert_array_equal(params.pairs, params.pairs.T)
        assert not (params.pairs * (1 - problem.between)).any()


def test_scaling_is_the_printed_update_when_nothing_is_missing():
    """Equation (2.21); its 1/N counts the single term among the N features of a conditional."""
    problem, source = posed(draw(), None)
    here = somewhere(problem)
    total = total_at(problem, here, source)
    with np.errstate(invalid="ignore", divide="ignore"):
        printed = np.log(2 * problem.pair_counts / problem.expected_pairs(total)) / len(SIZES)
    moved = problem.update(here, total, 1.0)
    between = problem.between > 0
    np.testing.assert_allclose((moved.pairs - here.pairs)[between], printed[between], atol=1e-12)
    np.testing.assert_allclose(moved.single - here.single, np.log(problem.counts / total.single) / len(SIZES))


@pytest.mark.parametrize("variance", [1e-4, 0.5, 1e4])
def test_each_multiplier_solves_its_own_equation(variance):
    problem, source = posed(draw(gaps=0.2), variance)
    here = somewhere(problem)
    total = total_at(problem, here, source)
    moved, model = problem.update(here, total, 1.0), problem.expected_pairs(total)
    grown = model * np.exp(problem.n_features * (moved.pairs - here.pairs))
    np.testing.assert_allclose(2 * problem.pair_counts - grown, moved.pairs / variance, rtol=1e-8, atol=1e-8)


def test_expectations_are_those_of_the_conditionals_one_row_at_a_time():
    rows = draw(60, gaps=0.3)
    problem, source = posed(rows, None)
    here = somewhere(problem)
    total, single, log_lik = total_at(problem, here, source), np.zeros(sum(SIZES)), 0.0
    pairs = np.zeros((len(single), len(single)))
    for t in range(rows.n_rows):
        for m, span in enumerate(problem.spans):
            if not rows.present[m, t]:
                continue
            score = here.single[span] + here.pairs[span] @ rows.phi[:, t]
            p = np.exp(score) / np.exp(score).sum()
            log_lik += rows.weight[t] * rows.phi[span, t] @ np.log(p)
            single[span] += rows.weight[t] * p
            pairs[span] += rows.weight[t] * np.outer(p, rows.phi[:, t])
    np.testing.assert_allclose(total.single, single, rtol=1e-12)
    np.testing.assert_allclose(problem.expected_pairs(total), (pairs + pairs.T) * problem.between, rtol=1e-11)
    assert total.log_lik == pytest.approx(log_lik, rel=1e-12)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_both_solvers_reach_one_optimum_and_never_fall(gaps):
    rows, result = draw(gaps=gaps), {}
    for solver in SOLVERS:
        problem, source = posed(rows, 0.5)
        with Serial() as workers:
            result[solver] = solve(problem, source, solver, Stop(1e-13, 20_000), workers)
        accepted = [step.objective for step in result[solver].trace if step.accepted]
        assert all(b >= a - 1e-11 * abs(a) for a, b in pairwise(accepted)) and len(accepted) > 5
        assert result[solver].status is Status.CONVERGED
        assert all(step.accepted for step in result[solver].trace if step.kind == "plain")
    one, other = (_probabilities(run.params, rows) for run in result.values())
    np.testing.assert_allclose(one, other, atol=1e-6)


def _probabilities(params, rows):
    spans = dict(enumerate(joint_problem.spans_of(SIZES)))
    answers = RowInference(params, np.full(sum(SIZES), np.nan), spans, rows)
    some = rows.present.sum(axis=0) > 1
    return np.concatenate([answers.single(j) for j in spans])[:, some]


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_prior_counts_meet_expectations(solver):
    problem, source = posed(draw(400), None)
    assert (problem.pair_counts[problem.between > 0] > 0).all()
    with Serial() as workers:
        done = solve(problem, source, solver, Stop(1e-14, 20_000), workers)
    total = total_at(problem, done.params, source)
    np.testing.assert_allclose(problem.expected_pairs(total), 2 * problem.pair_counts, atol=2e-4)
    np.testing.assert_allclose(total.single, problem.counts, atol=2e-4)


def test_two_columns_are_their_table_of_counts_and_logistic_regression():
    """Saturated: both conditionals, and so the joint, are the relative frequencies."""
    rng = np.random.default_rng(0)
    a = rng.integers(3, size=400)
    b = (a + rng.integers(0, 3, size=400)) % 4
    X = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    X = pd.concat([X, pd.DataFrame(list(product("012", "0123")), columns=["a", "b"])])  # every pair occurs
    counts = pd.crosstab(X["a"], X["b"]).to_numpy()
    model = MaxEntJoint(prior_variance=None, tol=1e-14, categorical=["a", "b"]).fit(X)
    np.testing.assert_allclose(
        model.predict_proba(X, "a"), (counts / counts.sum(axis=0)).T[X["b"].astype(int)], atol=1e-6
    )
    np.testing.assert_allclose(model.predict_proba(X[:1], ("a", "b"))[0], counts / counts.sum(), atol=1e-6)
    hot = pd.get_dummies(X["b"]).astype(float)
    peer = LogisticRegression(C=1e8, tol=1e-10, max_iter=5000).fit(hot, X["a"])
    np.testing.assert_allclose(model.predict_proba(X, "a"), peer.predict_proba(hot), atol=1e-4)


def test_the_conditionals_are_those_of_the_joint_distribution():
    """Three binary columns: enumerate p(f) prop. to exp(sum b + sum Gamma)."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, size=(120, 3)).astype(str), columns=["x", "y", "z"])
    model = MaxEntJoint(prior_variance=0.8, categorical=["x", "y", "z"], random_state=0).fit(X)
    b, gamma = model.params_.single, model.params_.pairs
    joint = np.zeros((2, 2, 2))
    for f in product(range(2), repeat=3):
        cells = [2 * m + value for m, value in enumerate(f)]
        joint[f] = np.exp(b[cells].sum() + 0.5 * gamma[np.ix_(cells, cells)].sum())
    every = pd.DataFrame(list(product("01", repeat=3)), columns=["x", "y", "z"])
    for j, name in enumerate(every):
        expected = joint / joint.sum(axis=j, keepdims=True)
        got = model.predict_proba(every, name)
        for row, f in zip(got, product(range(2), repeat=3)):
            others = [slice(None) if m == j else value for m, value in enumerate(f)]
            np.testing.assert_allclose(row, expected[tuple(others)], rtol=1e-12)
    for j, k in ((0, 1), (0, 2), (1, 2), (2, 0)):
        got = model.predict_proba(every, (j, k))
        for cells, f in zip(got, product(range(2), repeat=3)):
            part = joint[tuple(slice(None) if m in (j, k) else value for m, value in enumerate(f))]
            part = part if j < k else part.T
            np.testing.assert_allclose(cells, part / part.sum(), rtol=1e-12)


# weights, threads, order ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior_variance", ["auto", 0.5])
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(prior_variance):
    X = frame(150, gaps=0.1)
    weight = np.random.default_rng(1).integers(0, 3, size=len(X))
    one = MaxEntJoint(prior_variance=prior_variance, tol=1e-12, random_state=0).fit(X, sample_weight=weight)
    repeated = X.iloc[np.repeat(np.arange(len(X)), weight)]
    other = MaxEntJoint(prior_variance=prior_variance, tol=1e-12, random_state=0).fit(repeated)
    assert one.prior_variance_ == other.prior_variance_
    np.testing.assert_allclose(one.params_.pairs, other.params_.pairs, atol=1e-4)
    for target in X:
        np.testing.assert_allclose(one.predict_proba(X, target), other.predict_proba(X, target), atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_change_no_bit(monkeypatch, solver):
    monkeypatch.setattr(joint_problem, "BLOCK_BYTES", 1 << 15)
    X = frame(9000, gaps=0.1)
    one, two = (
        MaxEntJoint(prior_variance=1.0, solver=solver, max_iter=12, n_jobs=jobs, random_state=0) for jobs in (1, 2)
    )
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        one.fit(X)
    with pytest.warns(ConvergenceWarning):
        two.fit(X)
    np.testing.assert_array_equal(one.params_.pairs, two.params_.pairs)
    np.testing.assert_array_equal(one.params_.single, two.params_.single)


def test_blocks_change_nothing():
    problem, source = posed(draw(gaps=0.2), 1.0)
    here = somewhere(problem)
    whole = total_at(problem, here, source)
    source.size = 37
    parts = total_at(problem, here, source)
    assert pseudo_log_likelihood(here, SIZES, source.rows) == pytest.approx(whole.log_lik, rel=1e-12)
    np.testing.assert_allclose(parts.pairs, whole.pairs, rtol=1e-11, atol=1e-11)
    assert parts.log_lik == pytest.approx(whole.log_lik, rel=1e-12)


def test_permuting_columns_permutes_the_answers():
    X = frame(gaps=0.1)
    order = ["class", "size", "maker", "big", "legs", "shape"]
    one = MaxEntJoint(prior_variance=1.0, tol=1e-12, random_state=0).fit(X)
    other = MaxEntJoint(prior_variance=1.0, tol=1e-12, random_state=0).fit(X[order])
    for target in (*X, ("shape", "class")):
        np.testing.assert_allclose(one.predict_proba(X, target), other.predict_proba(X[order], target), atol=1e-5)
    np.testing.assert_allclose(one.score(X), other.score(X[order]), atol=1e-6)
    pd.testing.assert_frame_equal(one.impute(X)[order], other.impute(X[order]), rtol=1e-4, check_dtype=False)


# answers ----------------------------------------------------------------------------------------------------------


def test_predict_is_the_most_probable_value_or_the_expected_one(fitted):
    X = frame(50, seed=3, gaps=0.2)
    for target in ("shape", 1, "class"):
        proba = fitted.predict_proba(X, target)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        np.testing.assert_array_equal(fitted.predict(X, target), fitted.values(target)[proba.argmax(axis=1)])
    expected = fitted.predict_proba(X, "size") @ fitted.values("size")
    np.testing.assert_allclose(fitted.predict(X, "size"), expected)
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict(X, "class"))
    np.testing.assert_array_equal(fitted.predict(X, -1), fitted.predict(X, 5))


def test_two_columns_together(fitted):
    X = frame(50, seed=3)
    proba, best = fitted.predict_proba(X, ("class", "big")), fitted.predict(X, ["class", "big"])
    assert proba.shape == (50, 3, 2) and best.shape == (50, 2) and best.dtype == object
    np.testing.assert_allclose(proba.sum(axis=(1, 2)), 1)
    for row, pair in zip(proba, best):
        where = np.unravel_index(row.argmax(), row.shape)
        assert pair.tolist() == [fitted.values("class")[where[0]], fitted.values("big")[where[1]]]
    one_given = fitted.predict_proba(X, "class")  # P[class | big, rest] from the pair's pmf
    column = proba[np.arange(50), :, np.searchsorted(fitted.values("big"), X["big"].to_numpy(dtype=str))]
    np.testing.assert_allclose(column / column.sum(axis=1, keepdims=True), one_given, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(X, ("big", "class")), proba.transpose(0, 2, 1), rtol=1e-12)


def test_what_stands_in_the_target_is_ignored(fitted):
    X = frame(30, seed=4)
    hidden = X.assign(**{"class": None, "big": None})
    np.testing.assert_array_equal(
        fitted.predict_proba(X, ("class", "big")).round(12), fitted.predict_proba(hidden, ("class", "big")).round(12)
    )
    np.testing.assert_array_equal(
        fitted.predict_proba(X, "class"), fitted.predict_proba(X.assign(**{"class": None}), "class")
    )


def test_gaps_and_unseen_values_neither_fail_nor_change_other_rows(fitted):
    X = frame(20, seed=5)
    odd = X.copy()
    odd.loc[0, "shape"], odd.loc[1, "size"] = "pyramid", 1e9
    odd.loc[2] = [None] * 6
    with pytest.warns(UserWarning, match="not seen"):
        got = fitted.predict_proba(odd, "class")
    np.testing.assert_allclose(got[3:], fitted.predict_proba(X, "class")[3:], rtol=1e-12)
    assert np.isfinite(got).all()
    gap = X.assign(shape=X["shape"].where(X.index > 0))
    np.testing.assert_allclose(got[0], fitted.predict_proba(gap, "class")[0], rtol=1e-12)
    with pytest.warns(UserWarning, match="not seen"):
        filled = fitted.impute(odd)
    assert filled.notna().all().all() and filled["shape"][0] == "pyramid"  # observed values stay


def test_a_row_of_gaps_gets_the_shares_of_training(fitted):
    X = frame(gaps=0.1)
    nothing = pd.DataFrame([[None] * 6], columns=X.columns)
    for target in ("shape", "big", "class"):
        shares = X[target].value_counts(normalize=True).sort_index()
        np.testing.assert_allclose(fitted.predict_proba(nothing, target)[0], shares, rtol=1e-12)
    filled = fitted.impute(nothing)
    assert filled["size"][0] == pytest.approx(X["size"].mean(), abs=0.1)
    assert fitted.score(nothing) == 0.0


def test_a_column_that_never_changes_says_nothing_and_is_known(fitted):
    X = frame(10, seed=6)
    assert isinstance(fitted.terms_[3], Constant)
    assert fitted.predict(X, "maker").tolist() == ["acme"] * 10
    assert fitted.predict_proba(X, "maker").tolist() == [[1.0]] * 10
    assert fitted.predict_proba(X, ("maker", "big")).shape == (10, 1, 2)
    np.testing.assert_allclose(fitted.predict_proba(X, ("maker", "big"))[:, 0], fitted.predict_proba(X, "big"))
    only = MaxEntJoint().fit(np.full((5, 2), 3.0))
    assert only.predict(np.full((2, 2), np.nan)).tolist() == [3.0, 3.0] and only.score([[3.0, 3.0]]) == 0.0


def test_a_multiplier_without_rows_stays_where_it_is():
    rows = draw()
    rows.phi[2] = 0.0
    rows.present[0] = rows.phi[:3].any(axis=0)
    problem, source = posed(rows, 1.0)
    assert problem.seen.tolist() == [True, True, False] + [True] * 9
    here = somewhere(problem)
    total = total_at(problem, here, source)
    assert problem.gradient(here, total)[0][2] == 0.0
    assert problem.update(here, total, 1.0).single[2] == here.single[2]
    chart, first = WhiteChart(problem), problem.start()
    moved = chart.params(chart.vector(first) + 1.0)
    assert moved.single[2] == first.single[2] == joint_problem.UNSEEN


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_category_without_weight_stays_finite_and_is_never_predicted(solver):
    X = frame(60)
    X.loc[0, "shape"] = "pyramid"
    model = MaxEntJoint(prior_variance=1.0, solver=solver).fit(X, sample_weight=np.r_[0.0, np.ones(59)])
    assert np.isfinite(model.params_.single).all() and np.isfinite(model.params_.pairs).all()
    place = model.values("shape").tolist().index("pyramid")
    assert model.predict_proba(X, "shape")[:, place].max() < 1e-9
    only = MaxEntJoint(prior_variance=1.0, solver=solver).fit(X, sample_weight=(X["shape"] == "pyramid").astype(float))
    assert np.isfinite(only.predict_proba(X, "class")).all()
    assert only.predict(X, "size").tolist() == [X.loc[0, "size"]] * 60  # it varies, but not where there is weight
    hidden = X.assign(shape=X["shape"].where(X.index < 5))
    never = MaxEntJoint(prior_variance=1.0, solver=solver).fit(hidden, sample_weight=X.index >= 5)
    np.testing.assert_allclose(never.predict_proba(X.mask(X.notna())[:2], "shape"), 1 / len(never.values("shape")))
    assert np.isfinite(never.score(X))


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_cutting_components_keeps_mean_and_variance(n_components):
    rng = np.random.default_rng(n_components)
    before = ColumnMixture(
        rng.dirichlet(np.ones(n_components)), rng.normal(size=n_components), rng.random(n_components)
    )
    after = _split(before)
    assert len(after.means) == {1: 3, 2: 4, 3: 3}[n_components]
    assert (np.diff(after.means) >= 0).all() or n_components == 3
    for moment in (
        lambda m: m.weights.sum(),
        lambda m: m.weights @ m.means,
        lambda m: m.weights @ (m.variances + m.means**2),
    ):
        assert moment(after) == pytest.approx(moment(before), rel=1e-12)


def test_a_column_of_one_component_still_tells():
    X = np.random.default_rng(0).multivariate_normal([0, 5], [[1, 0.9], [0.9, 1]], size=600)
    model = MaxEntJoint(random_state=0).fit(X)
    scores = model.accuracy_by_column(X)
    assert all(score.r2 > 0.6 and score.error is None and score.n_rows == 600 for score in scores.values())


def test_accuracy_by_column_counts_the_known_values(fitted):
    X = frame(80, seed=7, gaps=0.2)
    scores = fitted.accuracy_by_column(X)
    for name in ("shape", "class", "maker"):
        known = X[name].notna()
        wrong = fitted.predict(X, name)[known] != X[name][known]
        assert scores[name].n_rows == known.sum() and scores[name].error == wrong.mean() and scores[name].r2 is None
    known = X["size"].notna()
    left = (X["size"] - fitted.predict(X, "size"))[known]
    assert scores["size"].r2 == pytest.approx(1 - (left**2).sum() / (known.sum() * X["size"].var(ddof=0)))
    assert scores["size"].r2 > 0.5 and scores["shape"].error < 0.4
    assert "class" not in fitted.accuracy_by_column(X.assign(**{"class": None}))


def test_score_is_the_mean_log_probability_of_what_is_there(fitted):
    X = frame(40, seed=8)
    total = np.zeros(40)
    for j, term in enumerate(fitted.terms_):
        if isinstance(term, Category):
            code = np.searchsorted(term.values, X[term.name].to_numpy(dtype=str))
            total += np.log(fitted.predict_proba(X, j)[np.arange(40), code])
        elif isinstance(term, Hidden):
            resp = term.mixture.responsibilities(X[term.name].to_numpy(dtype=float)).T
            total += (resp * np.log(fitted.predict_proba(X, j))).sum(axis=1)
    np.testing.assert_allclose(fitted.score_samples(X), total, rtol=1e-9)
    assert fitted.score(X) == pytest.approx(total.mean())
    again = MaxEntJoint(prior_variance=None, tol=1e-3, random_state=0)
    with pytest.warns(UserWarning, match="prior_variance=None"):
        again.fit(X)
    assert again.score(X) == pytest.approx(again.run_.objective / 40)


# gaps -------------------------------------------------------------------------------------------------------------


def test_impute_leaves_what_is_known_and_fills_the_rest(fitted):
    X = frame(60, seed=9, gaps=0.3)
    filled = fitted.impute(X)
    assert filled.columns.tolist() == X.columns.tolist() and filled.notna().all().all()
    for name in X:
        known = X[name].notna().to_numpy()
        assert filled[name][known].tolist() == X[name][known].tolist()
    assert filled["legs"].dtype == X["legs"].dtype == "Int64"
    numbers = np.random.default_rng(0).normal(size=(50, 3))
    numbers[:, 2] += numbers[:, 0]
    holes = np.where(np.random.default_rng(1).random(numbers.shape) < 0.2, np.nan, numbers)
    got = MaxEntJoint(prior_variance=1.0).fit(holes).impute(holes)
    assert isinstance(got, np.ndarray) and np.isfinite(got).all()
    np.testing.assert_array_equal(got[~np.isnan(holes)], holes[~np.isnan(holes)])
    whole = np.where(np.isnan(holes), np.nan, np.rint(5 * holes))
    got = MaxEntJoint(prior_variance=1.0).fit(whole).impute(whole)
    np.testing.assert_array_equal(got, np.where(np.isnan(whole), np.rint(got), whole))


def test_a_lone_gap_is_filled_with_what_predict_says(fitted):
    X = frame(40, seed=10)
    for target in ("shape", "class", "size"):
        filled = fitted.impute(X.assign(**{target: None if target != "size" else np.nan}))
        expected = fitted.predict(X, target)
        if target == "size":
            np.testing.assert_allclose(filled[target], expected)
        else:
            assert filled[target].tolist() == expected.tolist()


@pytest.mark.parametrize("strength", [1.0, 4.0])
def test_gaps_filled_together_agree_with_each_other(strength):
    """At rest each pmf is the prediction from the others, also where the couplings are strong."""
    rows = draw(80, gaps=0.5, seed=3)
    problem, _ = posed(rows, 1.0)
    pairs = somewhere(problem).pairs
    params = Pairwise(somewhere(problem).single, strength * np.where(pairs > 0, -0.3, 0.3) * problem.between)
    spans = dict(enumerate(problem.spans))
    phi = RowInference(params, problem.shares, spans, rows).fill()
    again = RowInference(params, problem.shares, spans, Rows(phi, np.ones_like(rows.present), rows.weight))
    for j, span in spans.items():
        gap = ~rows.present[j] & rows.present.any(axis=0)
        np.testing.assert_allclose(phi[span][:, gap], again.single(j)[:, gap], atol=1e-5)
        np.testing.assert_array_equal(phi[span][:, rows.present[j]], rows.phi[span][:, rows.present[j]])
    alone = rows.part(slice(7, 8))
    np.testing.assert_allclose(RowInference(params, problem.shares, spans, alone).fill()[:, 0], phi[:, 7], rtol=1e-9)


@pytest.mark.parametrize("strength", [3.0, 20.0])
def test_gaps_that_contradict_each_other_come_to_rest(strength):
    """Two binary columns that must differ, both leaning the same way: in parallel they would flip for ever."""
    apart = np.kron([[0, 1], [1, 0]], strength * np.array([[-1.0, 1.0], [1.0, -1.0]]))
    pairs = np.zeros((6, 6))
    pairs[:4, :4] = apart
    params = Pairwise(np.array([0.6, 0.0, 0.6, 0.0, 0.0, 0.0]), pairs)
    present = np.array([[False], [False], [True]])
    spans = {0: slice(0, 2), 1: slice(2, 4), 2: slice(4, 6)}
    phi = RowInference(
        params, np.full(6, 0.5), spans, Rows(np.r_[np.zeros(4), 1.0, 0.0][:, None], present, np.ones(1))
    ).fill()
    again = RowInference(params, np.full(6, 0.5), spans, Rows(phi, ~present | present, np.ones(1)))
    np.testing.assert_allclose(phi[:2], again.single(0), atol=1e-5)
    np.testing.assert_allclose(phi[2:4], again.single(1), atol=1e-5)


def test_imputation_together_beats_leaving_them_out():
    X = frame(400, seed=11)
    model = MaxEntJoint(prior_variance=1.0, random_state=0).fit(X)
    new = frame(400, seed=12)
    holes = new.mask(np.random.default_rng(0).random(new.shape) < 0.5)
    filled, wrong = model.impute(holes), []
    for name in ("shape", "big", "class"):
        gap = holes[name].isna()
        wrong.append((filled[name][gap] != new[name][gap]).mean())
    assert np.mean(wrong) < 0.45


# the estimator ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
def test_every_check_of_scikit_learn_passes():
    results = check_estimator(MaxEntJoint(), on_fail=None)
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert len(results) >= 46


def test_the_prior_is_chosen_on_rows_held_out():
    X = frame(150)
    result = []
    model = MaxEntJoint(random_state=0, progress=lambda *news: result.append(news)).fit(X)
    assert model.prior_variance_ in VARIANCES and any("prior variance" in text for *_, text in result)
    assert any("objective" in text for *_, text in result)
    noise = pd.DataFrame(np.random.default_rng(0).integers(0, 4, size=(60, 8)).astype(str))
    noise.columns = [f"c{i}" for i in range(8)]
    assert MaxEntJoint(random_state=0, categorical=range(8)).fit(noise).prior_variance_ == min(VARIANCES)
    assert MaxEntJoint(random_state=0).fit(X[:2]).prior_variance_ == 1.0
    assert MaxEntJoint(random_state=0).fit(X, sample_weight=np.r_[1, 1, np.zeros(148)]).prior_variance_ == 1.0
    a = np.random.default_rng(0).integers(0, 2, size=900)
    sure = pd.DataFrame({"a": a.astype(str), "b": a.astype(str), "c": (1 - a).astype(str)})
    sure["n"] = np.arange(900) % 2 / 7 + np.arange(900) / 900
    assert MaxEntJoint(random_state=0, categorical=["a", "b", "c"]).fit(sure).prior_variance_ >= 3.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_prior_warns_of_pairs_that_never_occur(solver):
    X = frame(60).assign(again=lambda X: X["shape"])
    with pytest.warns(UserWarning, match="prior_variance"):
        model = MaxEntJoint(prior_variance=None, tol=1e-3, solver=solver).fit(X)
    assert model.prior_variance_ is None and np.isfinite(model.params_.pairs).all()


def test_it_is_saved_and_pickled(tmp_path, fitted):
    parts = (MaxEntJoint, Category, Hidden, Constant, ColumnMixture, Pairwise, Run, Status, Step, Schema, Column)
    classes = {cls.__name__: cls for cls in parts}
    serialize.save(tmp_path / "model", fitted, classes, {"class": "MaxEntJoint"})
    X = frame(20, seed=13, gaps=0.2)
    for again in (serialize.load(tmp_path / "model", classes), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict_proba(X, "class"), fitted.predict_proba(X, "class"))
        assert again.converged_ and again.n_iter_ == fitted.n_iter_ > 5


def test_it_says_what_it_maximizes():
    doc = inspect.getdoc(MaxEntJoint)
    assert "Maximizes" in doc and "log" in doc and "never falls" in doc and "Besag" in doc
    for name in inspect.signature(MaxEntJoint).parameters:
        assert f"\n{name} : " in doc


@pytest.mark.parametrize("target", ["class", "size", None, 0, ("big", "legs"), ["class", "shape"]])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_table_may_lack_what_is_predicted(fitted, target, kind):
    X = frame(20, seed=3, gaps=0.1)
    columns = [X.columns[j] for j in fitted._target(target)]
    short = X.drop(columns=columns)
    if kind == "polars":
        short = pl.from_pandas(short)
    elif kind == "pyarrow":
        short = pa.Table.from_pandas(short, preserve_index=False)
    np.testing.assert_allclose(fitted.predict_proba(short, target), fitted.predict_proba(X, target), rtol=1e-9)
    predicted, expected = fitted.predict(short, target), fitted.predict(X, target)
    assert predicted.tolist() == (pytest.approx(expected, rel=1e-9) if target == "size" else expected.tolist())
    if len(columns) == 2:  # one of two
        half = X.drop(columns=columns[0])
        np.testing.assert_array_equal(fitted.predict(half, target), fitted.predict(X, target))


def test_other_columns_that_are_lacking_are_missing_values(fitted):
    X = frame(5)
    expected = fitted.predict(X.assign(big=None), "class").tolist()
    for columns in ["big"], ["big", "class"]:
        with pytest.warns(DataWarning, match="'big'"):
            assert fitted.predict(X.drop(columns=columns), "class").tolist() == expected
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(X.drop(columns="class").iloc[:, ::-1], "class")
    with pytest.warns(DataWarning, match="'class'"):
        assert list(fitted.impute(X.drop(columns="class")).columns) == list(X.columns)
    array = X.to_numpy(dtype=object)
    with pytest.raises(ValueError, match="X has 5 features"):
        MaxEntJoint(prior_variance=1.0).fit(array).predict(
            array[:, :5], 5
        )  # an array does not say which column it lacks


def test_without_a_prior_pairs_never_seen_are_no_optimum():
    X = [["a", "p"], ["b", "q"]] * 10
    with pytest.warns(UserWarning, match="pairs of values"):
        model = MaxEntJoint(prior_variance=None).fit(X)
    assert "no finite optimum" in model.run_.message
    assert (
        "no optimum"
        not in MaxEntJoint(prior_variance=None).fit([["a", "p"], ["b", "q"], ["a", "q"], ["b", "p"]]).run_.message
    )


def test_many_rows_are_answered_in_parts(monkeypatch, fitted):
    X = frame(60, seed=14, gaps=0.2)
    whole = fitted.predict_proba(X, ("shape", "size")), fitted.score_samples(X), fitted.errors_by_pair(X)
    monkeypatch.setattr("mixent.maxent.joint.CHUNK", 7)
    np.testing.assert_allclose(fitted.predict_proba(X, ("shape", "size")), whole[0], rtol=1e-12)
    np.testing.assert_allclose(fitted.score_samples(X), whole[1], rtol=1e-10)
    assert fitted.errors_by_pair(X) == whole[2]


def test_layout_puts_every_column_in_its_own_cells(fitted):
    layout = Layout(fitted.terms_)
    assert layout.varying == (0, 1, 2, 4, 5) and sum(layout.sizes) == len(fitted.shares_)
    for span in layout.spans.values():
        assert not fitted.params_.pairs[span, span].any()
        assert fitted.shares_[span].sum() == pytest.approx(1)


def test_rows_that_repeat_are_learned_from_as_well_as_held_out():
    """Few discrete columns and many rows: every row to be predicted has been seen, and a wide prior is right."""
    rng = np.random.default_rng(0)
    a = rng.integers(3, size=2000)
    b = np.where(rng.random(2000) < 0.7, a, rng.integers(3, size=2000))
    c = (rng.random(2000) < 0.2 + 0.3 * (a == b)).astype(int)
    X = pd.DataFrame({"a": a, "b": b, "c": c}).astype(str)
    train, fresh = X[:1000], X[1000:]
    scores = {v: MaxEntJoint(prior_variance=v, categorical=[0, 1, 2]).fit(train).score(fresh) for v in VARIANCES}
    chosen = MaxEntJoint(categorical=[0, 1, 2], random_state=0).fit(train)
    assert chosen.prior_variance_ >= 1.0 and scores[chosen.prior_variance_] > max(scores.values()) - 0.005
