"""Decisions of least expected cost, and class priors of a shifted batch."""

import numpy as np
import pytest

from mixent import MixtureClassifier
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.priors import shifted_priors
from mixent.core.driver import Status
from mixent.options import Search


class Table(ProbabilisticClassifier):
    """X holds the posteriors themselves."""

    def __init__(self, prior=(0.5, 0.3, 0.2), classes=("a", "b", "c")):
        self.prior, self.classes = prior, classes
        self.fit(None)

    def fit(self, X, y=None):
        self.classes_, self.class_prior_ = np.array(self.classes), np.array(self.prior)
        return self

    def _log_joint(self, X):
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(X, dtype=float)) - 700.0  # far from normalized


POSTERIORS = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.34, 0.33, 0.33], [0.0, 1.0, 0.0]])


def test_probabilities_are_normalized_in_the_log_domain():
    np.testing.assert_allclose(Table().predict_proba(POSTERIORS), POSTERIORS, rtol=1e-12)
    np.testing.assert_allclose(Table().predict_log_proba(POSTERIORS[:3]), np.log(POSTERIORS[:3]), rtol=1e-9)
    assert Table().predict(POSTERIORS).tolist() == ["a", "c", "a", "b"]


def test_the_score_is_the_share_of_rows_predicted_rightly():
    assert Table().score(POSTERIORS, ["a", "c", "b", "b"]) == 0.75
    assert Table().score(POSTERIORS, ["a", "c", "b", "b"], sample_weight=[1, 1, 4, 2]) == 0.5


def test_without_costs_a_decision_is_the_prediction_and_costs_one_minus_its_probability():
    decision = Table().decision(POSTERIORS)
    assert decision.labels.tolist() == ["a", "c", "a", "b"]
    np.testing.assert_allclose(decision.expected_cost, [0.5, 0.3, 0.66, 0.0], atol=1e-12)
    assert not decision.rejected.any()


def test_costs_are_of_saying_the_row_when_the_column_is_true():
    """By hand: risk of saying i is sum_j costs[i, j] P(j)."""
    costs = [[0, 10, 2], [1, 0, 1], [4, 5, -1]]  # a profit is a negative cost
    decision = Table().decision(POSTERIORS, costs)
    risks = [
        [0.3 * 10 + 0.2 * 2, 0.5 + 0.2, 0.5 * 4 + 0.3 * 5 - 0.2],
        [0.2 * 10 + 0.7 * 2, 0.1 + 0.7, 0.1 * 4 + 0.2 * 5 - 0.7],
        [0.33 * 12, 0.34 + 0.33, 0.34 * 4 + 0.33 * 5 - 0.33],
        [10, 0, 5],
    ]
    assert decision.labels.tolist() == [list("abc")[i] for i in np.argmin(risks, axis=1)] == ["b", "c", "b", "b"]
    np.testing.assert_allclose(decision.expected_cost, np.min(risks, axis=1), atol=1e-12)


def test_a_row_is_rejected_when_every_class_costs_more():
    decision = Table().decision(POSTERIORS, reject=0.4)
    assert decision.labels.tolist() == [None, "c", None, "b"]
    assert decision.rejected.tolist() == [True, False, True, False]
    np.testing.assert_allclose(decision.expected_cost, [0.4, 0.3, 0.4, 0.0], atol=1e-12)
    none = Table().decision(POSTERIORS, reject=2.0)
    assert not none.rejected.any() and none.labels.tolist() == ["a", "c", "a", "b"]
    assert Table().decision(POSTERIORS, [[0, 10, 2], [1, 0, 1], [4, 5, -1]], reject=-5).rejected.all()


def test_a_common_cost_or_scale_changes_no_decision():
    rng = np.random.default_rng(0)
    costs, X = rng.random((3, 3)), rng.dirichlet(np.ones(3), size=50)
    one = Table().decision(X, costs)
    other = Table().decision(X, 3 * costs + rng.random(3))  # a cost per true class is paid whatever is said
    assert one.labels.tolist() == other.labels.tolist()


def test_class_labels_of_any_type_can_be_rejected():
    decision = Table(prior=(0.5, 0.5), classes=(3, 7)).decision([[0.9, 0.1], [0.5, 0.5]], reject=0.3)
    assert decision.labels.tolist() == [3, None]


# --- priors of a batch -----------------------------------------------------------------------------------------------


def draw_classes(priors, n, seed):
    """Three overlapping Gaussians in two columns."""
    rng = np.random.default_rng(seed)
    label = rng.choice(3, size=n, p=priors)
    return rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[label], label


@pytest.fixture(scope="module")
def trained():
    return MixtureClassifier(1, "VVV").fit(*draw_classes([0.5, 0.25, 0.25], 3000, 0))


def test_adjust_priors_recovers_a_shifted_prior(trained):
    shifted = [0.1, 0.2, 0.7]
    X, label = draw_classes(shifted, 4000, 1)
    adjusted = trained.adjust_priors(X)
    np.testing.assert_allclose(adjusted.class_prior_, shifted, atol=0.04)
    assert adjusted.score(X, label) > trained.score(X, label) + 0.02
    assert adjusted.prior_run_.status is Status.CONVERGED


def test_adjust_priors_leaves_the_original_alone(trained):
    X, _ = draw_classes([0.1, 0.2, 0.7], 500, 2)
    before, prior = trained.predict_proba(X), trained.class_prior_.copy()
    adjusted = trained.adjust_priors(X)
    np.testing.assert_array_equal(trained.predict_proba(X), before)
    np.testing.assert_array_equal(trained.class_prior_, prior)
    assert not hasattr(trained, "prior_run_")
    np.testing.assert_allclose(adjusted.weights_.sum(axis=1), adjusted.class_prior_, rtol=1e-12)


def test_adjusted_posteriors_are_reweighted_ones_and_average_to_the_new_priors(trained):
    """P'(c | x) is proportional to P(c | x) p'_c / p_c; at the maximum the batch's mean posterior is the prior."""
    X, _ = draw_classes([0.2, 0.2, 0.6], 2000, 3)
    adjusted = trained.adjust_priors(X, tol=1e-14, max_iter=20000)
    expected = trained.predict_proba(X) * adjusted.class_prior_ / trained.class_prior_
    np.testing.assert_allclose(adjusted.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(adjusted.predict_proba(X).mean(axis=0), adjusted.class_prior_, atol=1e-6)


def test_adjusting_twice_is_adjusting_once(trained):
    """The likelihood ratios do not depend on the priors one comes from."""
    X, _ = draw_classes([0.2, 0.2, 0.6], 1000, 4)
    once = trained.adjust_priors(X, tol=1e-13)
    other, _ = draw_classes([0.8, 0.1, 0.1], 1000, 5)
    again = trained.adjust_priors(other).adjust_priors(X, tol=1e-13)
    np.testing.assert_allclose(again.class_prior_, once.class_prior_, atol=1e-6)


def test_the_objective_of_adjust_priors_never_falls_and_is_the_one_in_the_docstring(trained):
    X, _ = draw_classes([0.1, 0.2, 0.7], 800, 6)
    adjusted = trained.adjust_priors(X)
    run = adjusted.prior_run_
    values = [step.objective for step in run.trace if step.accepted]
    assert np.diff(values).min() >= -1e-11 * len(X)
    ratio = trained.predict_proba(X) / trained.class_prior_
    assert run.objective == pytest.approx(np.log(ratio @ adjusted.class_prior_).sum(), rel=1e-9)


def test_the_maximum_of_shifted_priors_is_global():
    """The objective is concave: every start ends at the same priors, and no other priors do better."""
    log_ratio = np.random.default_rng(0).normal(size=(300, 3))
    ends = [shifted_priors(log_ratio, np.array(s), tol=1e-14).params for s in ([1 / 3] * 3, [0.8, 0.1, 0.1])]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)
    best = np.log(np.exp(log_ratio) @ ends[0]).sum()
    others = np.random.default_rng(1).dirichlet(np.ones(3), size=500)
    assert all(np.log(np.exp(log_ratio) @ p).sum() <= best + 1e-9 for p in others)


def test_a_batch_of_one_class_gets_its_prior(trained):
    X, _ = draw_classes([0.0, 0.0, 1.0], 500, 7)
    assert trained.adjust_priors(X).class_prior_[2] > 0.97


def test_rows_without_values_say_nothing_about_the_priors(trained):
    X, _ = draw_classes([0.2, 0.2, 0.6], 300, 8)
    more = np.concatenate([X, np.full((50, 2), np.nan)])
    a, b = (trained.adjust_priors(Z, tol=1e-14, max_iter=50000).class_prior_ for Z in (X, more))
    np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.fixture(scope="module")
def searched():
    """Overlapping heavy-tailed classes: "auto" finds its own posteriors over-confident and softens them."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"])[(rng.random(240) < 0.3).astype(int)]
    X = rng.standard_t(2, size=(240, 8)) + np.where(y == "a", 0.0, 0.5)[:, None]
    model = MixtureClassifier(covariance="VVV", search=Search(max_components=1, cv=3), random_state=0).fit(X, y)
    assert model.temperature_ < 0.9
    return model, X


def test_a_softened_classifier_answers_its_prior_when_it_sees_nothing(searched):
    model, _ = searched
    posterior = np.exp(model._log_posterior(np.full((1, 8), np.nan)))[0]
    np.testing.assert_allclose(posterior, model.class_prior_, rtol=1e-9)
    mixed = (1 - model.uniform_share_) * model.class_prior_ + model.uniform_share_ / 2
    np.testing.assert_allclose(model.predict_proba(np.full((1, 8), np.nan))[0], mixed, rtol=1e-9)


def test_adjust_priors_of_a_softened_classifier_keeps_the_priors_of_its_own_rows(searched):
    model, X = searched
    np.testing.assert_allclose(model.adjust_priors(X).class_prior_, model.class_prior_, atol=0.15)


def test_adjust_priors_of_a_softened_classifier_is_consistent(searched):
    model, X = searched
    adjusted = model.adjust_priors(X, tol=1e-14, max_iter=50000)
    posterior = np.exp(adjusted._log_posterior(X))
    np.testing.assert_allclose(posterior.mean(axis=0), adjusted.class_prior_, atol=1e-5)


def test_costs_are_read_by_name_from_a_frame(searched):
    pd = pytest.importorskip("pandas")
    model, X = searched
    costs = pd.DataFrame([[0.0, 1.0], [10.0, 0.0]], index=["b", "a"], columns=["b", "a"])
    by_name = model.decision(X, costs)
    by_order = model.decision(X, [[0.0, 10.0], [1.0, 0.0]])  # classes_ are a, b
    np.testing.assert_array_equal(by_name.labels, by_order.labels)
    with pytest.raises(ValueError, match="costs"):
        model.decision(X, costs.rename(columns={"a": "c"}))
