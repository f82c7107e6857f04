"""Parzen windows: exact leave-one-out, missing values, categories, weights, bandwidths."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import check_estimator

from mixent import ParzenClassifier
from mixent.classical import windows
from mixent.data import DataWarning


def rows(n=60, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, 3)) * [1, 10, 0.1] + y[:, None] * [1, 5, 0.1], y


def mixed(n=60, seed=0):
    """Numbers and categories, missing values in both."""
    X, y = rows(n, seed)
    rng = np.random.default_rng(seed + 1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["color"] = np.array(["red", "green", "blue", "gray"])[(y + rng.integers(2, size=n)) % 4]
    frame["wet"] = rng.random(n) < 0.3 + 0.2 * y
    frame["color"] = frame["color"].where(rng.random(n) > 0.1, None)
    frame["a"] = frame["a"].where(rng.random(n) > 0.2)
    return frame, np.array(["x", "y", "z"])[y]


def test_one_class_is_scikit_learns_kernel_density():
    X, y = rows()
    model = ParzenClassifier(0.4).fit(X, y)
    Z = X / X.std(axis=0)
    joint = [
        KernelDensity(bandwidth=0.4, rtol=1e-12).fit(Z[y == c]).score_samples(Z) + np.log((y == c).mean())
        for c in range(3)
    ]
    log_p = np.logaddexp.reduce(joint) - np.log(X.std(axis=0)).sum()
    np.testing.assert_allclose(model.score_samples(X), log_p, rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.transpose(joint - np.logaddexp.reduce(joint)), atol=1e-9)


def brute_log_density(frame, y, c, row, h, columns, keep):
    """By loops over windows and columns: log p(row | c)."""
    rows_of, total = columns(frame), []
    for n in np.flatnonzero((y == c) & keep):
        log_k = 0.0
        for j, (kind, values, extra) in enumerate(rows_of):
            x, t = values[row], values[n]
            if kind == "number" and not np.isnan(x):
                log_k += norm.logpdf(x, 0, np.hypot(1, h)) if np.isnan(t) else norm.logpdf(x, t, h)
            elif kind == "category" and x >= 0:
                other = np.exp(-1 / h**2)
                table = (np.eye(len(extra)) + other * (1 - np.eye(len(extra)))) / (1 + (len(extra) - 1) * other)
                log_k += np.log(extra @ table[:, x] if t < 0 else table[t, x])
            assert j < 5
        total.append(log_k)
    return np.logaddexp.reduce(total) - np.log(len(total))


def seen_columns(frame):
    out = []
    for name in ("a", "b", "c"):
        values = frame[name].to_numpy(float)
        out.append(("number", (values - np.nanmean(values)) / np.nanstd(values), None))
    for name in ("color", "wet"):
        kinds = sorted(frame[name].dropna().unique())
        codes = np.array([kinds.index(v) if v is not None and v == v else -1 for v in frame[name]])
        counts = np.bincount(codes[codes >= 0], minlength=len(kinds)) + 1 / len(kinds)
        out.append(("category", codes, counts / counts.sum()))
    return out


@pytest.mark.parametrize("h", [0.3, 1.0])
def test_rows_left_out_and_missing_values_equal_an_explicit_loop(h):
    frame, y = mixed(40)
    model = ParzenClassifier(h).fit(frame, y)
    classes = model.classes_
    for row in range(0, 40, 3):
        others = np.arange(40) != row
        joint = [
            brute_log_density(frame, y, c, row, h, seen_columns, others) + np.log((y[others] == c).mean())
            for c in classes
        ]
        np.testing.assert_allclose(model.loo_proba_[row], np.exp(joint - np.logaddexp.reduce(joint)), rtol=1e-9)
        every = np.ones(40, bool)
        whole = [brute_log_density(frame, y, c, row, h, seen_columns, every) + np.log((y == c).mean()) for c in classes]
        scale = sum(np.log(np.nanstd(frame[c])) for c in "abc" if not np.isnan(frame[c][row]))
        assert model.score_samples(frame[row : row + 1])[0] == pytest.approx(np.logaddexp.reduce(whole) - scale)


def test_leaving_a_row_out_is_fitting_without_it():
    X, y = rows()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = ParzenClassifier(0.7, standardize=False).fit(X, y)
    for row in range(0, 60, 7):
        others = np.arange(60) != row
        without = ParzenClassifier(0.7, standardize=False).fit(X[others], y[others])
        np.testing.assert_allclose(model.loo_proba_[row], without.predict_proba(X[[row]])[0], rtol=1e-9)


def test_a_density_integrates_to_one_and_a_gap_integrates_out():
    frame, y = mixed(30)
    frame = frame[["a", "color"]]
    model = ParzenClassifier(0.5).fit(frame, y)

    def density(a, color):
        return np.exp(model.score_samples(pd.DataFrame({"a": np.atleast_1d(a), "color": color})))

    colors, at = ["red", "green", "blue", "gray"], np.linspace(-15, 15, 3001)
    mass = {c: trapezoid(density(at, c), at) for c in colors}
    assert sum(mass.values()) == pytest.approx(1, rel=1e-9)
    assert sum(density(0.3, c)[0] for c in colors) == pytest.approx(density(0.3, None)[0], rel=1e-9)
    assert mass["red"] == pytest.approx(density(np.nan, "red")[0], rel=1e-9)


def test_weight_two_is_the_row_twice():
    frame, y = mixed()
    weight = np.random.default_rng(3).integers(0, 4, size=60)
    weight[:6] = 1
    often = np.repeat(np.arange(60), weight)
    for options in ({}, {"per_class": True}, {"criterion": "likelihood"}):
        one = ParzenClassifier(**options).fit(frame, y, sample_weight=weight)
        other = ParzenClassifier(**options).fit(frame.iloc[often], y[often])
        np.testing.assert_array_equal(one.bandwidth_, other.bandwidth_)
        np.testing.assert_allclose(one.predict_proba(frame), other.predict_proba(frame), rtol=1e-9)
        np.testing.assert_allclose(one.loo_proba_[often], other.loo_proba_, rtol=1e-9)
        assert one.loo_log_loss_ == pytest.approx(other.loo_log_loss_)
        assert np.isnan(one.loo_proba_[weight == 0]).all()


def test_order_of_rows_and_names_of_classes_do_not_matter():
    frame, y = mixed()
    one = ParzenClassifier(per_class=True).fit(frame, y)
    order = np.random.default_rng(0).permutation(60)
    other = ParzenClassifier(per_class=True).fit(frame.iloc[order], pd.Series(y).map({"x": 2, "y": 0, "z": 1})[order])
    np.testing.assert_allclose(other.bandwidth_[[2, 0, 1]], one.bandwidth_)
    np.testing.assert_allclose(other.predict_proba(frame)[:, [2, 0, 1]], one.predict_proba(frame), rtol=1e-9)


def test_the_chosen_bandwidth_is_the_best_tried_and_class_by_class_is_no_worse():
    frame, y = mixed()
    for criterion in ("conditional", "likelihood"):
        model = ParzenClassifier(criterion=criterion).fit(frame, y)
        best = max(model.bandwidths_tried_, key=lambda one: one["value"])
        assert best["bandwidth"] == model.bandwidth_ and len(model.bandwidths_tried_) == 25
        if criterion == "conditional":
            assert best["value"] == pytest.approx(-model.loo_log_loss_)
            for one in model.bandwidths_tried_[::6]:
                given = ParzenClassifier(one["bandwidth"]).fit(frame, y)
                assert given.loo_log_loss_ == pytest.approx(-one["value"]) and given.bandwidths_tried_ == []
    own = ParzenClassifier(per_class=True).fit(frame, y)
    assert own.loo_log_loss_ <= ParzenClassifier().fit(frame, y).loo_log_loss_
    assert own.bandwidth_.shape == (3,)
    again = ParzenClassifier(own.bandwidth_).fit(frame, y)
    np.testing.assert_array_equal(again.predict_proba(frame), own.predict_proba(frame))
    grid = [one["bandwidth"] for one in own.bandwidths_tried_]
    for c, h in itertools.product(range(3), grid[::3]):  # no class alone can do better
        moved = own.bandwidth_.copy()
        moved[c] = h
        assert ParzenClassifier(moved).fit(frame, y).loo_log_loss_ >= own.loo_log_loss_ - 1e-12


def test_blocks_and_threads_change_nothing(monkeypatch):
    frame, y = mixed(90)
    one = ParzenClassifier(n_jobs=1).fit(frame, y)
    proba = one.predict_proba(frame)
    monkeypatch.setattr(windows, "BLOCK_CELLS", 300)
    for jobs in (1, 3):
        other = ParzenClassifier(n_jobs=jobs).fit(frame, y)
        assert other.bandwidth_ == one.bandwidth_
        np.testing.assert_allclose(other.predict_proba(frame), proba, rtol=1e-9)
        np.testing.assert_allclose(other.loo_proba_, one.loo_proba_, rtol=1e-9)


def test_soft_and_absent_labels():
    X, y = rows(n_classes=2)
    certain = np.eye(2)[y]
    hard = ParzenClassifier().fit(X, y)
    np.testing.assert_allclose(ParzenClassifier().fit(X, certain).predict_proba(X), hard.predict_proba(X), rtol=1e-9)
    soft = certain.copy()
    soft[0] = [0.3, 0.7]
    model = ParzenClassifier(0.5).fit(X, soft)
    both = ParzenClassifier(0.5).fit(
        np.vstack([X, X[:1]]), [0, *y[1:], 1], sample_weight=[0.3, *np.ones(59), 0.7]
    )  # a window of each class
    np.testing.assert_allclose(model.predict_proba(X), both.predict_proba(X), rtol=1e-9)
    partly = y.astype(object)
    partly[:5] = None
    few = ParzenClassifier().fit(X, partly)
    np.testing.assert_allclose(few.predict_proba(X), ParzenClassifier().fit(X[5:], y[5:]).predict_proba(X), rtol=1e-9)
    assert np.isnan(few.loo_proba_[:5]).all()


def test_a_class_of_one_row_is_not_scored():
    X, y = rows()
    y[0] = 7
    with pytest.warns(DataWarning, match="one row"):
        model = ParzenClassifier().fit(X, y)
    assert np.isnan(model.loo_proba_[0]).all() and np.isfinite(model.loo_proba_[1:]).all()
    assert np.isfinite(model.predict_proba(X)).all() and np.isfinite(model.loo_log_loss_)


def test_where_no_class_has_two_rows_the_bandwidth_is_scotts():
    X = np.array([[0.0, 1.0], [2.0, 5.0], [4.0, 2.0]])
    model = ParzenClassifier().fit(X, ["a", "b", "c"])
    assert model.bandwidth_ == pytest.approx(3 ** (-1 / 6)) and np.isnan(model.loo_error_)
    assert model.predict(X).tolist() == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_columns_that_do_not_vary_say_nothing():
    X, y = rows()
    model = ParzenClassifier(per_class=True).fit(X, y)
    more = np.column_stack([np.full(60, 7.0), X])
    other = ParzenClassifier(per_class=True).fit(more, y)
    np.testing.assert_allclose(other.predict_proba(more), model.predict_proba(X), rtol=1e-9)


def test_rows_far_out_have_probabilities():
    X, y = rows()
    proba = ParzenClassifier().fit(X, y).predict_proba([[1e140, 0, 0], [1e5, 0, 0], [np.nan] * 3])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(proba[2], np.bincount(y) / 60)


def test_given_and_shifted_priors():
    X, y = rows(n_classes=2)
    model = ParzenClassifier(0.5, class_prior=[0.9, 0.1]).fit(X, y)
    plain = ParzenClassifier(0.5).fit(X, y)
    odds = np.diff(model.predict_log_proba(X) - np.log([0.9, 0.1]))
    np.testing.assert_allclose(odds, np.diff(plain.predict_log_proba(X) - np.log(plain.class_prior_)), rtol=1e-9)
    assert plain.adjust_priors(X[y == 1]).class_prior_[1] > 0.9


def test_progress_is_told():
    calls = []
    ParzenClassifier(progress=lambda *args: calls.append(args)).fit(*rows())
    assert [done for done, _, _ in calls] == [0, 7, 14, 21] and all(total == 25 for _, total, _ in calls)


def test_scikit_learn_checks():
    results = check_estimator(ParzenClassifier(), on_fail=None, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] != "passed"} <= {"check_array_api_input"}
    assert len(results) >= 55
