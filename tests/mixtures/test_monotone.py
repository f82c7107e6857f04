"""No accepted pass lowers the penalized objective, and the objective is what the docstring says."""

from itertools import pairwise

import numpy as np
import pytest

from mixent import GaussianMixture, MixtureClassifier
from mixent.core.driver import Status, rounding

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def assert_never_falls(run, weight):
    """Within a segment, accepted objectives rise; a plain update needs no rejection: it is monotone by itself."""
    assert run.status in (Status.CONVERGED, Status.MAX_PASSES), run.message
    for segment in {s.segment for s in run.trace}:
        values = [s.objective for s in run.trace if s.segment == segment and s.accepted]
        falls = [a - b for a, b in pairwise(values)]
        assert max(falls, default=0.0) <= rounding(max(map(abs, values)), weight)
    assert all(s.accepted for s in run.trace if s.kind != "proposal")
    assert run.objective == [s.objective for s in run.trace if s.accepted][-1]


def check_starts(draw, monkeypatch, name, missing, weighted, seeds):
    X, _ = draw(seed=len(name) + sum(map(ord, name)), n=160, missing=missing)
    rng = np.random.default_rng(1)
    weight = rng.exponential(size=len(X)) if weighted else None
    total = len(X) if weight is None else weight.sum()
    for seed in seeds:
        prior = None if seed % 3 == 2 else "auto"
        mixture = GaussianMixture(3, name, prior=prior, init="random", tol=1e-7, max_iter=60, random_state=seed)
        with monkeypatch.context() as patch:
            if seed % 2:  # without extrapolated steps
                patch.setattr("mixent.mixtures.fit_plan.Delayed", lambda *_: None)
            mixture.fit(X, sample_weight=weight)
        assert_never_falls(mixture.run_, total)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", NAMES)
def test_no_accepted_pass_lowers_the_objective(draw, monkeypatch, name, missing, weighted):
    check_starts(draw, monkeypatch, name, missing, weighted, range(3))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", NAMES)
def test_no_accepted_pass_lowers_the_objective_from_twenty_starts(draw, monkeypatch, name, missing, weighted):
    check_starts(draw, monkeypatch, name, missing, weighted, range(20))


@pytest.mark.parametrize("across", [False, True], ids=["within", "across"])
@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VVE", "EVV", "VVV"])
def test_no_accepted_pass_lowers_the_objective_of_a_classifier(draw, name, across):
    """Known, uncertain and absent labels, gaps and weights at once."""
    X, label = draw(seed=3, n=200, missing=0.2)
    y = np.full((len(X), 3), 0.1)
    y[np.arange(len(X)), label] = 0.8
    y[:40] = 1.0
    y[40:80] = np.eye(3)[label[40:80]]
    weight = np.random.default_rng(0).exponential(size=len(X))
    model = MixtureClassifier(2, name, across_classes=across, tol=1e-7, max_iter=60, random_state=0)
    assert_never_falls(model.fit(X, y, sample_weight=weight).run_, weight.sum())


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", ["EII", "VVI", "VEE", "VVV"])
def test_the_objective_is_the_log_likelihood_plus_the_log_prior(draw, name, missing):
    """sum_n w_n log p(x_n) - 1/2 sum_k [rows log|C_k| + tr C_k^-1 (rows S + (m_k - m)(m_k - m)^T mean_rows)]."""
    X, _ = draw(seed=5, missing=missing)
    weight = np.random.default_rng(2).exponential(size=len(X))
    mixture = GaussianMixture(3, name, prior=7.0, random_state=0).fit(X, sample_weight=weight)
    gaussian = mixture.problem_.family.gaussian
    prior = gaussian.prior
    expected = weight @ mixture.score_samples(X)
    for k in range(3):
        cov, away = mixture.covariances_[k], mixture.means_[k] - gaussian.center - prior.mean[k]
        target = prior.cov[k] if prior.cov.ndim == 3 else np.diag(prior.cov[k])
        scatter = 7.0 * target + prior.mean_rows[k] * np.outer(away, away)
        expected -= 0.5 * (7.0 * np.linalg.slogdet(cov)[1] + np.trace(np.linalg.solve(cov, scatter)))
    assert mixture.run_.objective == pytest.approx(expected, rel=1e-10)
    assert mixture.lower_bound_ == pytest.approx(expected / weight.sum(), rel=1e-10)


def test_the_objective_of_a_classifier_counts_each_label_as_a_likelihood(draw):
    """sum_n w_n log sum_c l_nc p(c, x_n), with one-hot, uncertain and absent (all ones) labels."""
    X, label = draw(seed=6, n=150, gap=1.0, missing=0.1)
    y = np.full((150, 3), 0.2)
    y[np.arange(150), label] = 0.6
    y[100:] = 1.0
    y[:50] = np.eye(3)[label[:50]]
    weight = np.random.default_rng(2).exponential(size=150)
    model = MixtureClassifier(2, "VVI", prior=None, random_state=1).fit(X, y, sample_weight=weight)
    joint = np.exp(model._log_joint(X))
    assert model.run_.objective == pytest.approx(weight @ np.log((y * joint).sum(axis=1)), rel=1e-10)
