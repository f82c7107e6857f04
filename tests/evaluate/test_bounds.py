import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr, ndtr
from sklearn.linear_model import LogisticRegression

from mixent import MixtureClassifier
from mixent.datasets import make_orchestra
from mixent.evaluate import Quantity, bayes_error, error_bounds, error_rate, error_report, log_loss

CLASSES = np.array(["a", "b", "c"])


def case(seed=0, n=200, n_classes=3):
    """Truth p, model q, labels drawn from p, whole weights."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(n_classes, 0.7), (2, n))
    return p, q, draw(p, rng), rng.integers(0, 4, n).astype(float)


def draw(p, rng):
    return CLASSES[(rng.random((len(p), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)]


def values(report):
    return {name: q.value for name, q in report.quantities.items()}


def every_label(p, q):
    """Each row once with every label, weighted by the label's probability: expectations over labels become sums."""
    n, c = p.shape
    return np.tile(CLASSES[:c], n), np.repeat(q, c, axis=0), np.repeat(p, c, axis=0), p.ravel()


probabilities = st.lists(
    st.lists(st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0, 3.0]), min_size=6, max_size=6).filter(
        lambda row: sum(row[:3]) > 0 and sum(row[3:]) > 0
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(probabilities, st.integers(0, 10_000))
def test_the_chain_holds_for_any_truth_and_model(rows, seed):
    p, q = np.array(rows)[:, :3], np.array(rows)[:, 3:]
    p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    report = error_bounds(draw(p, rng), q, CLASSES, true_proba=p, sample_weight=rng.uniform(0.1, 3, len(p)))
    chain = np.array(report.chain)
    assert (chain >= 0).all() and (np.diff(chain) >= -1e-12).all()
    assert 0 <= report.excess_error.value <= report.excess_bound.value + 1e-12
    assert report.true_error.value - report.bayes_error.value == pytest.approx(report.excess_error.value, abs=1e-12)


def test_the_chain_is_equality_at_the_truth_and_the_first_link_where_distance_decides():
    p, _, y, _ = case()
    at_truth = error_bounds(y, p, CLASSES, true_proba=p)
    assert at_truth.chain == (0, 0, 0, 0)
    assert at_truth.excess_bound.std_error == 0
    # a certain truth, a model certain of the wrong class but one: V = 2 there, constant V makes (E V)^2 = E V^2
    sure = error_bounds(["a", "a"], [[0, 1.0], [0, 1.0]], ["a", "b"], true_proba=[[1.0, 0], [1.0, 0]])
    assert sure.chain[:3] == (1, 4, 4)
    assert sure.excess_error.value == 1
    # q -> (1/2, 1/2) from the wrong side of p = 1/2 + t: J - J* = 2t and V -> 2t, so the first link is tight
    t = 0.2
    tight = error_bounds(["a"], [[0.5 - 1e-9, 0.5 + 1e-9]], ["a", "b"], true_proba=[[0.5 + t, 0.5 - t]])
    np.testing.assert_allclose(tight.chain[:3], (2 * t) ** 2, rtol=1e-7)


def test_pinsker_is_tight_to_first_order_for_small_distances():
    t = 1e-4
    near = error_bounds(["a"], [[0.5 - t, 0.5 + t]], ["a", "b"], true_proba=[[0.5, 0.5]])
    assert near.chain[3] == pytest.approx(near.chain[2], rel=1e-6)


def test_expected_log_loss_is_entropy_of_the_truth_plus_divergence():
    p, q, _, _ = case()
    y, q_rows, p_rows, weight = every_label(p, q)
    report = error_bounds(y, q_rows, CLASSES, true_proba=p_rows, sample_weight=weight)
    entropy = entr(p).sum(axis=1).mean()
    assert report.log_loss.value == pytest.approx(entropy + report.divergence.value, rel=1e-12)
    assert report.log_loss.value >= entropy
    assert report.log_loss.value >= report.divergence.value
    assert report.error.value == pytest.approx(report.true_error.value, rel=1e-12)
    gap = np.sum((p - q) * -np.log(q), axis=1).mean()
    assert report.overconfidence.value == pytest.approx(gap, rel=1e-9)


def test_the_model_that_is_true_has_nothing_to_gain():
    p, _, _, _ = case()
    y, q_rows, p_rows, weight = every_label(p, p)
    report = error_bounds(y, q_rows, CLASSES, true_proba=p_rows, sample_weight=weight)
    assert report.overconfidence.value == pytest.approx(0, abs=1e-12)
    assert report.distance_bound.value == pytest.approx(0, abs=1e-12)
    assert report.error.value == pytest.approx(report.expected_error.value, rel=1e-12)
    assert report.error.value == pytest.approx(report.bayes_error.value, rel=1e-12)


def test_quantities_are_the_scores_of_the_same_rows():
    _, q, y, weight = case()
    report = error_bounds(y, q, CLASSES, sample_weight=weight)
    guess = CLASSES[q.argmax(axis=1)]
    assert report.error.value == pytest.approx(error_rate(y, guess, sample_weight=weight), rel=1e-12)
    assert report.log_loss.value == pytest.approx(log_loss(y, q, CLASSES, sample_weight=weight), rel=1e-12)
    assert report.expected_error.value == pytest.approx(np.average(1 - q.max(axis=1), weights=weight), rel=1e-12)
    assert report.entropy.value == pytest.approx(np.average(entr(q).sum(axis=1), weights=weight), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(probabilities, st.integers(0, 10_000))
def test_the_bound_from_the_log_loss_never_beats_the_error_itself(rows, seed):
    """Why sqrt(2 log-loss) is not reported: J - J* <= J < sqrt(2 log-loss) unless both are 0."""
    q = np.array(rows)[:, :3]
    q = q / q.sum(axis=1, keepdims=True)
    report = error_bounds(CLASSES[np.random.default_rng(seed).integers(0, 3, len(q))], q, CLASSES)
    bound = np.sqrt(2 * report.log_loss.value)
    assert bound >= np.sqrt(2 * np.log(2) * report.error.value) >= report.error.value
    assert report.chain is None and report.excess_bound is None and "sqrt" not in str(report)


def test_the_distance_bound_stays_below_the_distance_on_average():
    """Over labels, its mean is 0 for a true model, and between 0 and E V for one that is too sure (or too unsure)."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.7), 300)
    labels = [draw(p, rng) for _ in range(300)]
    for power in (1.0, 3.0, 0.3):
        q = p**power / (p**power).sum(axis=1, keepdims=True)
        found = np.array([error_bounds(y, q, CLASSES).distance_bound.value for y in labels])
        mean, std_error = found.mean(), found.std() / np.sqrt(len(found))
        distance = np.abs(p - q).sum(axis=1).mean()
        assert mean <= distance + 4 * std_error
        if power == 1:
            assert abs(mean) < 4 * std_error
        else:
            assert mean > 0.5 * distance


def test_the_distance_bound_is_reached_where_two_classes_err_to_one_side():
    """Two classes, overconfident everywhere, labels in their exact shares: then V = 2 |p(d) - q(d)| adds up."""
    top = np.linspace(0.6, 0.95, 40)
    q = np.stack([top, 1 - top], axis=1)
    p = np.stack([top - 0.05, 1.05 - top], axis=1)
    y, q_rows, p_rows, weight = every_label(p, q)
    report = error_bounds(y, q_rows, CLASSES[:2], true_proba=p_rows, sample_weight=weight)
    assert report.distance_bound.value == pytest.approx(report.distance.value, rel=1e-9)
    assert report.distance_bound.value == pytest.approx(0.1, rel=1e-9)


def test_underconfidence_is_seen_and_silence_is_taken_as_overconfidence():
    top = np.linspace(0.55, 0.85, 40)
    q, p = np.stack([top, 1 - top], axis=1), np.stack([top + 0.1, 0.9 - top], axis=1)
    y, q_rows, _, weight = every_label(p, q)
    assert error_bounds(y, q_rows, CLASSES[:2], sample_weight=weight).distance_bound.value == pytest.approx(0.2)
    same = np.tile([0.7, 0.3], (10, 1))  # one confidence: no other half to learn a sign from
    assert error_bounds(["a"] * 5 + ["b"] * 5, same).distance_bound.value == pytest.approx(0.4)
    assert error_bounds(["a"] * 9 + ["b"], same).distance_bound.value == pytest.approx(-0.4)


def test_no_label_takes_part_in_its_own_sign():
    """Flipping the labels of one half moves the signs of the other half only."""
    from mixent.evaluate.bounds import _sided

    rng = np.random.default_rng(0)
    confidence, weight = np.sort(rng.uniform(0.5, 1, 60)), np.ones(60)
    half = np.arange(60) % 2 == 0
    hit = rng.random(60) < 0.5
    before = _sided(confidence, confidence - hit, weight) / (confidence - hit)
    changed = np.where(half, ~hit, hit)
    after = _sided(confidence, confidence - changed, weight) / (confidence - changed)
    np.testing.assert_allclose(before[half], after[half])
    assert (before[~half] != after[~half]).any()


def test_weight_two_is_the_row_twice_and_zero_is_no_row():
    p, q, y, weight = case()
    times = weight.astype(int)
    once = error_bounds(y, q, CLASSES, true_proba=p, sample_weight=weight)
    p, q, y = (np.repeat(a, times, axis=0) for a in (p, q, y))
    assert values(once) == pytest.approx(values(error_bounds(y, q, CLASSES, true_proba=p)), rel=1e-9)
    assert once.n_rows == np.count_nonzero(weight)


def test_the_scale_of_weights_adds_no_certainty():
    _, q, y, weight = case()
    small, large = (error_bounds(y, q, CLASSES, sample_weight=weight * w).quantities for w in (1e-3, 1e3))
    for name in small:
        assert small[name].std_error == pytest.approx(large[name].std_error, rel=1e-9)


def test_standard_errors_are_those_of_a_mean():
    p, q, y, _ = case()
    report = error_bounds(y, q, CLASSES, true_proba=p)
    wrong = CLASSES[q.argmax(axis=1)] != y
    assert report.error.std_error == pytest.approx(wrong.std(ddof=1) / np.sqrt(len(y)), rel=1e-12)
    apart = np.abs(p - q).sum(axis=1)
    assert report.distance.std_error == pytest.approx(apart.std(ddof=1) / np.sqrt(len(y)), rel=1e-12)
    step = 1e-6 * report.divergence.value
    slope = (np.sqrt(2 * (report.divergence.value + step)) - report.excess_bound.value) / step
    assert report.excess_bound.std_error == pytest.approx(slope * report.divergence.std_error, rel=1e-5)
    assert all(np.isnan(one.std_error) for one in error_bounds(["a"], [[1.0]], ["a"]).quantities.values())


def test_permuting_classes_or_rows_changes_nothing():
    p, q, y, weight = case()
    expected = error_bounds(y, q, CLASSES, true_proba=p, sample_weight=weight)
    order, rows = [2, 0, 1], np.random.default_rng(1).permutation(len(y))
    classes = error_bounds(y, q[:, order], CLASSES[order], true_proba=p[:, order], sample_weight=weight)
    shuffled = error_bounds(y[rows], q[rows], CLASSES, true_proba=p[rows], sample_weight=weight[rows])
    for other in (classes, shuffled):
        for name, one in expected.quantities.items():
            assert other.quantities[name].value == pytest.approx(one.value, rel=1e-9, abs=1e-12)
            assert other.quantities[name].std_error == pytest.approx(one.std_error, rel=1e-9)


def test_rows_without_a_label_are_skipped_whatever_they_hold():
    p, q, y, weight = case()
    expected = error_bounds(y[1:], q[1:], CLASSES, true_proba=p[1:], sample_weight=weight[1:])
    for absent in (None, float("nan"), " "):
        first = np.full((1, 3), np.nan)
        found = error_bounds(
            [absent, *y[1:]],
            np.concatenate([first, q[1:]]),
            CLASSES,
            true_proba=np.concatenate([first, p[1:]]),
            sample_weight=weight,
        )
        assert found == expected
    numbers = np.array([np.nan, 1.0, 0.0])
    assert error_bounds(numbers, [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]).error.value == 0


def test_sums_a_little_off_one_leave_the_chain_whole():
    """As of float32 or of printed digits: unscaled, the divergence would be below 0 and the distance above."""
    p, q, y, _ = case()
    off = np.random.default_rng(0).uniform(-9e-5, 9e-5, (len(p), 1))
    report = error_bounds(y, p * (1 + off), CLASSES, true_proba=p)
    np.testing.assert_allclose(report.chain, 0, atol=1e-12)
    assert values(error_bounds(y, q * (1 + off), CLASSES)) == pytest.approx(values(error_bounds(y, q, CLASSES)))


def test_bayes_error_of_two_normals_is_the_known_value():
    """N(-m, 1) and N(m, 1) with equal priors: Phi(-m)."""
    from statistics import NormalDist

    quantiles = np.array([NormalDist().inv_cdf((i + 0.5) / 200) for i in range(200)])
    quantiles /= quantiles.std()
    X, y = np.concatenate([quantiles - 1, quantiles + 1])[:, None], np.repeat(["left", "right"], 200)
    model = MixtureClassifier(n_components=1, covariance="EEE", across_classes=True, prior=None).fit(X, y)
    found = bayes_error(model, 40_000)
    assert abs(found.value - ndtr(-1)) < 4 * found.std_error
    counted = np.sqrt(found.value * (1 - found.value) / 40_000)
    assert found.std_error < 0.5 * counted  # chances of errors vary less than errors
    assert found == bayes_error(model, 40_000)
    assert "not an estimate" in found.meaning


def test_bayes_error_works_with_any_model_that_samples():
    X = np.linspace(0, 1, 10)[:, None]
    model = SimpleNamespace(
        sample=lambda n, random_state: (X[np.random.RandomState(random_state).randint(10, size=n)], None),
        predict_proba=lambda X: np.hstack([1 - X / 2, X / 2]),
    )
    found = bayes_error(model, 2000, random_state=1)
    assert abs(found.value - 0.25) < 4 * found.std_error


def test_error_report_is_the_bounds_of_the_models_probabilities():
    train = make_orchestra(300, random_state=0)
    test = make_orchestra(300, random_state=1, return_posterior=True)
    weight = np.random.default_rng(0).uniform(0, 2, 300)
    model = LogisticRegression().fit(train.X, train.y)
    found = error_report(model, test.X, test.y, true_proba=test.true_proba, sample_weight=weight)
    assert found == error_bounds(
        test.y, model.predict_proba(test.X), model.classes_, true_proba=test.true_proba, sample_weight=weight
    )
    # the corners of a square: no line does much better than chance, and the report knows by how much
    assert found.excess_error.value > 0.1


def test_the_table_says_what_each_number_is():
    p, q, y, _ = case()
    report = error_bounds(y, q, CLASSES, true_proba=p)
    lines = str(report).splitlines()
    start = lines[1].index("meaning")
    for line, one in zip(lines[2:], report.quantities.values()):
        assert line.startswith(one.name) and line[start:] == one.meaning and f"{one.value:.4f}" in line
    assert lines[-1].count("<=") == 3 and lines[-1].startswith("(J - J*)^2 = ")
    single = str(error_bounds(["a"], [[1.0, 0.0]], ["a", "b"])).splitlines()
    assert single[0].startswith("Errors on 1 labelled row;") and single[2].split()[2:4] == ["0.0000", "-"]


def test_to_dict_is_plain():
    p, q, y, _ = case()
    report = error_bounds(y, q, CLASSES, true_proba=p)
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain.pop("n_rows") == 200
    assert {name: Quantity(**entry) for name, entry in plain.items()} == report.quantities
    assert len(plain) == 13 and len(error_bounds(y, q, CLASSES).to_dict()) == 7


def test_a_model_of_a_frame_draws_its_rows_in_silence():
    pd = pytest.importorskip("pandas")
    rows = make_orchestra(100, random_state=0)
    model = MixtureClassifier(1, random_state=0).fit(pd.DataFrame(rows.X, columns=["a", "b"]), rows.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0 < bayes_error(model, 100).value < 1
