"""Parameters that are not trained, paths with their probability, and the stationary distribution."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from mixent import HiddenMarkovModel, load, save
from mixent.options import HMMPrior

GIVEN = {
    "start": np.array([0.7, 0.3]),
    "transitions": np.array([[0.6, 0.4], [0.3, 0.7]]),
    "means": np.array([[0.5, 1.0], [-1.0, 2.0]]),
    "covariances": np.array([[[1.2, 0.1], [0.1, 0.8]], [[0.7, -0.2], [-0.2, 1.5]]]),
}


def fitted_parameters(model):
    return {name: getattr(model, f"{name}_") for name in GIVEN}


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize(
    "fixed", [("start",), ("transitions",), ("means",), ("covariances",), ("means", "covariances"), ("start", "means")]
)
def test_fixed_parameters_keep_their_values_and_the_others_are_trained(sequences, fixed, accelerate):
    X, lengths, _ = sequences(3, S=2)
    init = {**GIVEN, "fixed": list(fixed)}
    model = HiddenMarkovModel(2, "VVV", init=init, accelerate=accelerate).fit(X, lengths=lengths)
    free = HiddenMarkovModel(2, "VVV", init=GIVEN, accelerate=accelerate).fit(X, lengths=lengths)
    for name, value in fitted_parameters(model).items():
        assert np.allclose(value, GIVEN[name], rtol=1e-9, atol=0) == (name in fixed)
    sizes = {"start": 1, "transitions": 2, "means": 4, "covariances": 6}
    assert model.n_parameters_ == free.n_parameters_ - sum(sizes[name] for name in fixed)
    assert model.log_likelihood_ <= free.log_likelihood_ + 1.0
    accepted = [step for step in model.run_.trace if step.accepted]
    gains = [b.objective - a.objective for a, b in pairwise(accepted) if a.segment == b.segment]
    assert min(gains) >= -1e-9 and max(gains) > 0


def test_a_fixed_model_is_only_evaluated(sequences, tmp_path):
    X, lengths, _ = sequences(4, S=2)
    init = {**GIVEN, "fixed": ["start", "transitions", "means", "covariances"]}
    model = HiddenMarkovModel(2, "VVV", init=init).fit(X, lengths=lengths)
    assert model.n_parameters_ == 0 and model.converged_
    for name, value in fitted_parameters(model).items():
        np.testing.assert_allclose(value, GIVEN[name], rtol=1e-12)
    save(model, tmp_path / "model.mixent")
    np.testing.assert_array_equal(
        load(tmp_path / "model.mixent").decode(X, lengths=lengths), model.decode(X, lengths=lengths)
    )


def test_values_that_are_not_given_stay_at_their_initialization(sequences):
    X, lengths, _ = sequences(5)
    start = HiddenMarkovModel(3, tol=1e9, init={"fixed": "means"}).fit(X, lengths=lengths)
    model = HiddenMarkovModel(3, init={"fixed": ["means"]}).fit(X, lengths=lengths)
    assert model.n_iter_ > start.n_iter_ and np.ptp(start.means_, axis=0).min() > 0.5
    np.testing.assert_allclose(model.means_, start.means_)


def test_fixed_tables(mixed):
    table, lengths = mixed(2)
    tables = {"word": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], "big": [[0.5, 0.5], [0.9, 0.1]]}
    init = {"tables": tables, "fixed": ["tables"]}
    model = HiddenMarkovModel(2, init=init, random_state=0).fit(table, lengths=lengths)
    for name, value in tables.items():
        np.testing.assert_allclose(model.tables_[name], value)


def test_fixed_transitions_of_precomputed_emissions():
    log_emit = np.log(np.random.default_rng(0).dirichlet([1, 1], size=40))
    init = {"transitions": GIVEN["transitions"], "fixed": ["transitions"]}
    model = HiddenMarkovModel(2, emissions="precomputed", init=init).fit(log_emit, lengths=[10] * 4)
    np.testing.assert_allclose(model.transitions_, GIVEN["transitions"])
    assert not np.allclose(model.start_, 0.5) and model.n_parameters_ == 1


@pytest.mark.parametrize(
    "init", [{"fixed": ["mean"]}, {"fixed": "variance"}, {"fixed": ["tables"]}, {"fixed": ["means"], "mean": 1}]
)
def test_names_that_cannot_be_fixed(init):
    with pytest.raises(ValueError, match="init"):
        HiddenMarkovModel(2, init=init).fit(np.arange(12.0).reshape(4, 3))


# --- paths and the long run -----------------------------------------------------------------------------------------


def test_the_probability_of_the_best_path(sequences):
    X, lengths, _ = sequences(1, missing=0.1)
    model = HiddenMarkovModel(3, random_state=0).fit(X, lengths=lengths)
    path, log_prob = model.decode(X, lengths=lengths, return_log_prob=True)
    np.testing.assert_array_equal(path, model.decode(X, lengths=lengths))
    assert (log_prob <= model.score_samples(X, lengths=lengths)).all()
    std = np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))
    density = np.nansum(norm.logpdf(X, model.means_[path], std[path]), axis=1)
    first = np.cumsum(lengths) - lengths
    for a, n, found in zip(first, lengths, log_prob):
        states = path[a : a + n]
        steps = np.log(model.transitions_[states[:-1], states[1:]]).sum()
        expected = np.log(model.start_[states[0]]) + steps + density[a : a + n].sum()
        assert found == pytest.approx(expected, rel=1e-10)


def test_one_state_has_one_path():
    X = np.random.default_rng(0).normal(size=(6, 9))
    model = HiddenMarkovModel(1).fit(X)
    path, log_prob = model.decode(X, return_log_prob=True)
    assert path.shape == (6, 9) and not path.any()
    np.testing.assert_allclose(log_prob, model.score_samples(X), rtol=1e-12)


def test_the_stationary_distribution_is_a_fixed_point(sequences):
    X, lengths, _ = sequences(2)
    model = HiddenMarkovModel(3, random_state=0).fit(X, lengths=lengths)
    share = model.stationary_
    np.testing.assert_allclose(share @ model.transitions_, share, rtol=1e-12)
    assert share.sum() == pytest.approx(1.0, rel=1e-12)
    absorbed = HiddenMarkovModel(3, topology="left-right", random_state=0).fit(X, lengths=lengths)
    np.testing.assert_allclose(absorbed.stationary_, [0, 0, 1], atol=1e-9)
    smooth = HMMPrior(transition_smoothing=5.0)
    by_step = HiddenMarkovModel(2, transitions="per_step", prior=smooth).fit(X[:40], lengths=[10] * 4)
    with pytest.raises(AttributeError, match="per_step"):
        by_step.stationary_  # noqa: B018


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_fitted_parameters_with_a_constant_variable_are_a_start():
    X = np.column_stack([np.random.default_rng(0).normal(size=40), np.ones(40)])
    model = HiddenMarkovModel(2, "VVV", random_state=0).fit(X, lengths=[40])
    init = {"means": model.means_, "covariances": model.covariances_}
    again = HiddenMarkovModel(2, "VVV", init=init, random_state=0).fit(X, lengths=[40])
    assert again.score(X, lengths=[40]) >= model.score(X, lengths=[40]) - 0.05
