"""hmmlearn's GaussianHMM, CategoricalHMM and PoissonHMM, beside mixent.HiddenMarkovModel.

The numbers of hmmlearn itself are in tests/golden/hmmlearn.json; these are the habits of its users.
"""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mixent import HiddenMarkovModel
from mixent.options import HMMPrior

LENGTHS = [120, 60, 20]
NAMES = {"spherical": "VII", "diag": "VVI", "tied": "EEE", "full": "VVV"}
CHAIN = np.array([[0.9, 0.1, 0.0], [0.05, 0.8, 0.15], [0.1, 0.1, 0.8]])
PLAIN = HMMPrior(None, smoothing=0.0, transition_smoothing=0.0)  # maximum likelihood


@pytest.fixture(scope="module")
def steps():
    """Steps of three states, and the states."""
    rng = np.random.default_rng(0)
    states = np.zeros(sum(LENGTHS), dtype=int)
    for t in range(1, len(states)):
        states[t] = rng.choice(3, p=CHAIN[states[t - 1]])
    centers = np.array([[0.0, 0.0], [5.0, 1.0], [-4.0, 4.0]])
    return centers[states] + rng.normal(size=(len(states), 2)), states


@pytest.fixture(scope="module")
def model(steps):
    return HiddenMarkovModel(3, random_state=0).fit(steps[0], lengths=LENGTHS)


def parameters(model):
    return [model.start_, model.transitions_, model.means_, model.covariances_]


# --- fit -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NAMES)
def test_covered_covariance_types(steps, kind):
    X, _ = steps
    model = HiddenMarkovModel(3, NAMES[kind], random_state=0).fit(X, lengths=LENGTHS)
    covs = model.covariances_
    assert covs.shape == (3, 2, 2) and np.linalg.eigvalsh(covs).min() > 0
    if kind != "full":
        assert (kind == "tied") == np.allclose(covs, covs[0])
        assert kind == "tied" or not covs[:, 0, 1].any()
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.means_[order], [[-4, 4], [0, 0], [5, 1]], atol=0.4)


def test_covered_parameters_are_probabilities(model):
    assert model.start_.sum() == pytest.approx(1) and model.transitions_.shape == (3, 3)
    np.testing.assert_allclose(model.transitions_.sum(axis=1), 1)


def test_covered_transitions_are_recovered(steps, model):
    within = np.setdiff1d(np.arange(1, 200), np.cumsum(LENGTHS))
    counts = np.zeros((3, 3))
    np.add.at(counts, (steps[1][within - 1], steps[1][within]), 1)
    order = np.argsort(model.means_[:, 0])[[1, 2, 0]]
    share = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.transitions_[np.ix_(order, order)], share, atol=0.03)


def test_covered_monitor(model):
    history = [step.objective for step in model.run_.trace if step.accepted]
    assert model.converged_ and model.n_iter_ >= 1 and all(b >= a - 1e-9 for a, b in pairwise(history))


def test_covered_a_limit_of_iterations(steps):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = HiddenMarkovModel(3, max_iter=1, tol=0.0, random_state=0).fit(steps[0], lengths=LENGTHS)
    assert model.n_iter_ == 1 and not model.converged_


def test_covered_init_params_and_params(steps):
    """Here init_params="" and params="stmc" without letters: values in `init`, names in its key "fixed"."""
    X, _ = steps
    given = {"means": np.array([[0.0, 0.0], [5.0, 1.0], [-4.0, 4.0]]), "transitions": CHAIN}
    model = HiddenMarkovModel(3, init={**given, "fixed": ["means", "transitions"]}).fit(X, lengths=LENGTHS)
    np.testing.assert_allclose(model.means_, given["means"], atol=1e-12)
    np.testing.assert_allclose(model.transitions_, CHAIN, atol=1e-12)
    trained = HiddenMarkovModel(3, init=given).fit(X, lengths=LENGTHS)
    assert not np.allclose(trained.means_, given["means"], atol=1e-3)
    np.testing.assert_allclose(trained.means_, given["means"], atol=0.5)  # states keep the order of the start


def test_covered_a_transition_of_probability_zero_stays_zero(steps):
    X, _ = steps
    left_right = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    init = {"start": [1.0, 0.0, 0.0], "transitions": left_right}
    model = HiddenMarkovModel(3, init=init).fit(X, lengths=LENGTHS)
    assert (model.transitions_[left_right == 0] == 0).all()
    np.testing.assert_array_equal(model.start_, [1, 0, 0])
    assert (np.diff(model.decode(X[:120], lengths=[120])) >= 0).all()


def test_covered_start_and_transition_priors_of_equal_weights(steps):
    X, _ = steps
    counts = [HiddenMarkovModel(3, prior=HMMPrior(transition_smoothing=w), random_state=0) for w in (0.0, 1e6)]
    without, strong = (model.fit(X, lengths=LENGTHS) for model in counts)
    np.testing.assert_allclose(strong.transitions_, 1 / 3, atol=1e-3)
    assert without.transitions_.min() < 0.05


def test_covered_one_step_per_sequence(steps):
    X, _ = steps
    model = HiddenMarkovModel(3, random_state=0).fit(X, lengths=[1] * len(X))
    assert model.score_samples(X, lengths=[1] * len(X)).shape == (200,)
    np.testing.assert_allclose(model.start_, [0.4, 0.35, 0.25], atol=0.2)


def test_covered_random_state_repeats_a_fit(steps):
    X, _ = steps
    fits = [HiddenMarkovModel(3, init="random", n_init=2, random_state=4).fit(X, lengths=LENGTHS) for _ in range(2)]
    for a, b in zip(*map(parameters, fits)):
        np.testing.assert_array_equal(a, b)


def test_covered_clone_and_pickle(steps, model):
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.predict_proba(steps[0], lengths=LENGTHS), model.predict_proba(steps[0], lengths=LENGTHS)
    )


@pytest.mark.parametrize(
    "init",
    [
        {"start": [0.5, 0.6, 0.1]},
        {"transitions": np.full((3, 3), 0.4)},
        {"transitions": np.eye(2)},
        {"means": np.zeros((2, 2))},
        {"covariances": -np.ones((3, 2))},
    ],
)
def test_covered_invalid_parameters_are_refused(steps, init):
    with pytest.raises(ValueError, match="init"):
        HiddenMarkovModel(3, init=init).fit(steps[0], lengths=LENGTHS)


@pytest.mark.parametrize("lengths", [[199], [100, 101], [0, 200], []])
def test_covered_lengths_must_add_up(steps, lengths):
    with pytest.raises(ValueError, match="lengths"):
        HiddenMarkovModel(3).fit(steps[0], lengths=lengths)


def test_covered_not_fitted(steps):
    with pytest.raises(NotFittedError):
        HiddenMarkovModel(3).decode(steps[0], lengths=LENGTHS)


# --- scores and states -----------------------------------------------------------------------------------------------


def test_covered_the_score_is_that_of_the_forward_algorithm(steps, model):
    X, _ = steps
    density = np.stack([multivariate_normal(m, c).pdf(X[:5]) for m, c in zip(model.means_, model.covariances_)], 1)
    alpha = model.start_ * density[0]
    for t in range(1, 5):
        alpha = alpha @ model.transitions_ * density[t]
    assert model.score_samples(X[:5], lengths=[5])[0] == pytest.approx(np.log(alpha.sum()), rel=1e-10)


def test_covered_scores_of_sequences_add_up(steps, model):
    X, _ = steps
    apart = [model.score_samples(part, lengths=[len(part)])[0] for part in np.split(X, np.cumsum(LENGTHS)[:-1])]
    np.testing.assert_allclose(model.score_samples(X, lengths=LENGTHS), apart, rtol=1e-12)


def test_covered_decode_gives_the_path_and_its_log_probability(steps, model):
    X, states = steps
    path, log_prob = model.decode(X, lengths=LENGTHS, return_log_prob=True)
    assert log_prob.shape == (3,) and (log_prob < model.score_samples(X, lengths=LENGTHS)).all()
    most = [np.bincount(states[path == s], minlength=3).argmax() for s in range(3)]
    assert (np.array(most)[path] == states).mean() > 0.97


def test_covered_decode_by_sequence(steps, model):
    X, _ = steps
    apart = [model.decode(part, lengths=[len(part)]) for part in np.split(X, np.cumsum(LENGTHS)[:-1])]
    np.testing.assert_array_equal(model.decode(X, lengths=LENGTHS), np.concatenate(apart))


def test_covered_posteriors_are_distributions(steps, model):
    proba = model.predict_proba(steps[0], lengths=LENGTHS)
    assert proba.shape == (200, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)


def test_covered_long_sequences_do_not_underflow(model):
    X, _ = model.sample(1, 20_000, random_state=1)
    score = model.score_samples(X, lengths=[20_000])[0]
    assert np.isfinite(score) and score < -20_000
    np.testing.assert_allclose(model.predict_proba(X, lengths=[20_000]).sum(axis=1), 1, rtol=1e-9)


def test_covered_bic_and_aic(steps, model):
    X, _ = steps
    log_lik = model.score_samples(X, lengths=LENGTHS).sum()
    assert model.n_parameters_ == 2 + 6 + 6 + 6
    assert model.aic(X, lengths=LENGTHS) == pytest.approx(-2 * log_lik + 2 * 20)
    assert model.bic(X, lengths=LENGTHS) == pytest.approx(-2 * log_lik + 20 * np.log(200))


def test_covered_stationary_distribution(steps, model):
    share = model.stationary_
    np.testing.assert_allclose(share @ model.transitions_, share, rtol=1e-10)
    values, vectors = np.linalg.eig(model.transitions_.T)
    left = np.real(vectors[:, values.real.argmax()])
    np.testing.assert_allclose(share, left / left.sum(), rtol=1e-8)


# --- sampling --------------------------------------------------------------------------------------------------------


def test_covered_samples(model):
    X, states = model.sample(1, 5000, random_state=0)
    assert X.shape == (5000, 2) and states.shape == (5000,)
    again, _ = model.sample(1, 5000, random_state=0)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_allclose(np.bincount(states) / 5000, model.stationary_, atol=0.1)
    for s in range(3):
        np.testing.assert_allclose(X[states == s].mean(axis=0), model.means_[s], atol=0.2)


# --- other emissions -------------------------------------------------------------------------------------------------


def test_covered_categories():
    rng = np.random.default_rng(1)
    states = np.repeat([0, 1, 0, 1], 100)
    symbols = np.where(states, rng.choice(3, 400, p=[0.8, 0.1, 0.1]), rng.choice(3, 400, p=[0.1, 0.2, 0.7]))
    model = HiddenMarkovModel(2, categorical=[0], random_state=0).fit(symbols[:, None], lengths=[400])
    table = model.tables_["x0"]
    np.testing.assert_allclose(table[np.argsort(table[:, 0])], [[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]], atol=0.1)
    path = model.decode(symbols[:, None], lengths=[400])
    assert max((path == states).mean(), (path != states).mean()) > 0.95


def test_covered_counts():
    rng = np.random.default_rng(2)
    states = np.repeat([0, 1, 0, 1], 50)
    X = rng.poisson(np.where(states, 9.0, 2.0))[:, None]
    model = HiddenMarkovModel(2, emissions="poisson", random_state=0).fit(X, lengths=[200])
    np.testing.assert_allclose(np.sort(model.means_.ravel()), [2, 9], rtol=0.15)
    drawn, _ = model.sample(1, 50, random_state=0)
    assert (drawn == np.floor(drawn)).all()


def test_covered_a_state_without_variance_does_not_end_a_fit():
    X = (
        np.repeat([0.0, 0.0, 1.0, 5.0], 25)[:, None]
        + np.repeat([0, 0, 1, 1], 25)[:, None] * np.linspace(0, 1, 100)[:, None]
    )
    model = HiddenMarkovModel(2, random_state=0).fit(X, lengths=[100])
    assert (model.covariances_ > 0).all() and np.isfinite(model.score(X, lengths=[100]))


# --- different on purpose --------------------------------------------------------------------------------------------


def test_different_a_row_is_a_sequence_unless_lengths_are_given(steps):
    """hmmlearn reads rows without lengths as the steps of one sequence."""
    X, _ = steps
    by_row = HiddenMarkovModel(2, random_state=0).fit(X)
    assert by_row.by_row_ and by_row.decode(X).shape == X.shape
    with pytest.raises(ValueError, match="lengths"):
        by_row.decode(X, lengths=LENGTHS)


def test_different_predict_maximizes_each_step(steps, model):
    """hmmlearn's predict gives the Viterbi path; algorithm="map" gives this one."""
    X, _ = steps
    proba = model.predict_proba(X, lengths=LENGTHS)
    np.testing.assert_array_equal(model.predict(X, lengths=LENGTHS), proba.argmax(axis=1))


def test_different_score_is_a_mean_over_sequences(steps, model):
    """hmmlearn's score is the sum."""
    X, _ = steps
    assert model.score(X, lengths=LENGTHS) == pytest.approx(model.score_samples(X, lengths=LENGTHS).mean())


def test_different_the_prior_adapts_to_the_units(steps):
    """hmmlearn's covars_prior=0.01 and min_covar=0.001 depend on the units of the data."""
    X, _ = steps
    for factor in (1e-4, 1e4):
        model = HiddenMarkovModel(3, random_state=0).fit(factor * X, lengths=LENGTHS)
        np.testing.assert_allclose(np.sqrt(model.covariances_[:, [0, 1], [0, 1]]), factor, rtol=0.2)


def test_different_tol_is_a_gain_per_step(steps):
    """hmmlearn's tol is a gain of the whole log-likelihood."""
    X, _ = steps
    few = HiddenMarkovModel(3, tol=1e-2, accelerate=False, prior=PLAIN, random_state=0).fit(X, lengths=LENGTHS)
    gains = [step.gain for step in few.run_.trace[1:]]
    assert gains[-1] <= 1e-2 * 200 and all(gain > 1e-2 * 200 for gain in gains[:-1])


def test_different_missing_values_are_integrated_out(steps):
    """hmmlearn refuses them."""
    X, _ = steps
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = HiddenMarkovModel(3, random_state=0).fit(holes, lengths=LENGTHS)
    assert np.isfinite(model.score(holes, lengths=LENGTHS))


# --- absent ----------------------------------------------------------------------------------------------------------


def test_absent_names_of_hmmlearn(model):
    """Mixtures as emissions, multinomial and variational models, a state from which samples continue, its names."""
    for name in ("startprob_", "transmat_", "covars_", "monitor_", "lambdas_", "get_stationary_distribution"):
        assert not hasattr(model, name)
    with pytest.raises(TypeError):
        model.sample(1, 5, currstate=0)
