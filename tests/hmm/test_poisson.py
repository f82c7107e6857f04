"""Poisson emissions: counts at each step."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from mixent import HiddenMarkovModel, HMMClassifier, load, save
from mixent.core.blocks import Block
from mixent.families.poisson import PoissonFamily, Poissons
from mixent.options import HMMPrior

RATES = np.array([[0.5, 20.0], [5.0, 3.0], [30.0, 100.0]])


def counts(seed=0, n=400, missing=0.0):
    rng = np.random.default_rng(seed)
    states = np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = states[t - 1] if rng.random() < 0.85 else rng.integers(3)
    X = rng.poisson(RATES[states]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, states


def test_densities_are_those_of_scipy_and_missing_values_are_left_out():
    X, _ = counts(missing=0.2)
    work = PoissonFamily(3, X[:0].sum(axis=0) + 1.0).open(RATES, Block(X))
    expected = np.nansum(poisson.logpmf(X[None], RATES[:, None]), axis=2)
    np.testing.assert_allclose(work.log_prob(), expected, rtol=1e-10)


def test_the_update_maximizes_the_objective_of_the_family():
    X, _ = counts(1)
    family = PoissonFamily(3, X.mean(axis=0), 2.0)
    resp = np.random.default_rng(0).dirichlet(np.ones(3), size=len(X)).T

    def objective(params):
        return (resp * family.open(params.rates, Block(X)).log_prob()).sum() + family.log_prior(params)

    best = family.update(Poissons(RATES), family.open(RATES, Block(X)).moments(resp))
    for factor in (0.99, 1.01):
        assert objective(Poissons(factor * best.rates)) < objective(best)
    np.testing.assert_allclose(family.unpack(family.pack(best), best, np.ones(3)).rates, best.rates, rtol=1e-14)


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("accelerate", [False, True])
def test_rates_are_recovered_and_the_objective_never_falls(missing, accelerate):
    X, states = counts(2, missing=missing)
    model = HiddenMarkovModel(3, emissions="poisson", accelerate=accelerate, random_state=0)
    model.fit(X, lengths=[150, 250])
    order = np.argsort(model.means_.sum(axis=1))
    np.testing.assert_allclose(model.means_[order], RATES[np.argsort(RATES.sum(axis=1))], rtol=0.25)
    np.testing.assert_allclose(np.diagonal(model.covariances_, axis1=1, axis2=2), model.means_)
    accepted = [step.objective for step in model.run_.trace if step.accepted]
    assert all(b >= a - 1e-9 for a, b in pairwise(accepted))
    assert model.n_parameters_ == 2 + 6 + 6
    found = model.decode(X, lengths=[150, 250])
    rank = np.argsort(np.argsort(model.means_.sum(axis=1)))
    true = np.argsort(np.argsort(RATES.sum(axis=1)))[states]
    assert (rank[found] == true).mean() > 0.95


def test_the_likelihood_is_that_of_all_paths():
    X, _ = counts(3, n=40)
    model = HiddenMarkovModel(2, emissions="poisson", random_state=0).fit(X, lengths=[4] * 10)
    log_emit = poisson.logpmf(X[None, :4], model.means_[:, None]).sum(axis=2).T
    log_alpha = np.log(model.start_) + log_emit[0]
    for t in range(1, 4):
        log_alpha = logsumexp(log_alpha[:, None] + np.log(model.transitions_), axis=0) + log_emit[t]
    assert model.score_samples(X, lengths=[4] * 10)[0] == pytest.approx(logsumexp(log_alpha), rel=1e-10)


def test_a_weight_of_two_is_the_sequence_twice():
    X, _ = counts(4, n=60)
    options = {"emissions": "poisson", "tol": 1e-10, "init": {"means": [[1.0, 10.0], [20.0, 50.0]]}}
    weighted = HiddenMarkovModel(2, **options).fit(X, sample_weight=[2, 1, 1], lengths=[20, 20, 20])
    twice = HiddenMarkovModel(2, **options).fit(np.concatenate([X[:20], X]), lengths=[20] * 4)
    np.testing.assert_allclose(weighted.means_, twice.means_, rtol=1e-5)


def test_a_state_of_few_events_keeps_a_small_rate():
    """The prior is half of an event or so, whatever the rates of the other states."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.poisson(0.02, 100), rng.poisson(500, 100)])[:, None].astype(float)
    model = HiddenMarkovModel(2, emissions="poisson", random_state=0).fit(X, lengths=[200])
    assert 0 < model.means_.min() < 0.06


def test_rows_of_counts_words_beside_counts_samples_and_files(tmp_path):
    X, states = counts(5, n=200)
    by_row = HiddenMarkovModel(2, emissions="poisson", random_state=0).fit(X[:, 1].reshape(20, 10))
    drawn, _ = by_row.sample(3, random_state=0)
    assert drawn.shape == (3, 10) and (drawn == np.floor(drawn)).all() and (drawn >= 0).all()
    table = pd.DataFrame({"calls": X[:, 0], "word": np.array(["a", "b", "c"])[states]})
    model = HiddenMarkovModel(3, emissions="poisson", random_state=0).fit(table, lengths=[100, 100])
    save(model, tmp_path / "model.mixent")
    again = load(tmp_path / "model.mixent")
    np.testing.assert_array_equal(again.predict_proba(table, lengths=[200]), model.predict_proba(table, lengths=[200]))
    assert "calls" in str(model.summary())
    fixed = {"means": model.means_, "fixed": ["means"]}
    kept = HiddenMarkovModel(3, emissions="poisson", init=fixed, random_state=0).fit(table, lengths=[100, 100])
    np.testing.assert_allclose(kept.means_, model.means_)


def test_a_classifier_of_counts():
    rng = np.random.default_rng(0)
    y = np.repeat(["quiet", "busy"], 30)
    X = rng.poisson(np.where(y == "busy", 6.0, 2.0)[:, None], (60, 10))
    model = HMMClassifier(2, emissions="poisson", random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.models_[0].emissions == "poisson"


def test_without_smoothing_rates_are_means():
    X, _ = counts(6, n=50)
    prior = HMMPrior(smoothing=0.0, transition_smoothing=0.0)
    model = HiddenMarkovModel(1, emissions="poisson", prior=prior).fit(X, lengths=[50])
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("value", [-1.0, 0.5])
def test_other_numbers_are_refused(value):
    X = np.array([[1.0, 2.0, value], [3.0, 0.0, 4.0]])
    with pytest.raises(ValueError, match="poisson"):
        HiddenMarkovModel(2, emissions="poisson").fit(X)
    model = HiddenMarkovModel(2, emissions="poisson").fit(np.abs(np.floor(X)))
    with pytest.raises(ValueError, match="poisson"):
        model.score_samples(X)


@pytest.mark.parametrize("options", [{"covariance": "VVV"}, {"prior": 3.0}, {"init": {"covariances": np.ones((2, 1))}}])
def test_parameters_of_gaussians_are_refused(options):
    with pytest.raises(ValueError, match="poisson"):
        HiddenMarkovModel(2, emissions="poisson", **options).fit(np.arange(12.0).reshape(3, 4))


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_counts_that_are_all_zero():
    """The rate has no maximum above zero; the prior must not count it as infinitely improbable."""
    model = HiddenMarkovModel(2, emissions="poisson", random_state=0).fit(np.zeros((20, 4)))
    assert not model.run_.status.failed
    np.testing.assert_allclose(model.score_samples(np.zeros((3, 4))), 0.0, atol=1e-9)
