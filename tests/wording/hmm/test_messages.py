"""Every refusal says what came, what was wanted and what to do."""

import numpy as np
import pandas as pd
import pytest

from mixent import DataWarning, HiddenMarkovModel, HMMClassifier
from mixent.options import HMMPrior

X = np.random.default_rng(0).normal(size=(12, 4))


Y = np.arange(12) % 2


STEPS, LENGTHS = X.reshape(-1, 1), [4] * 12


WORDS = np.array(["a", "b", "c"])[np.random.default_rng(1).integers(3, size=(12, 4))]


LOG = np.log(np.full((6, 2), 0.5))


@pytest.mark.parametrize("cls", [HiddenMarkovModel, HMMClassifier])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_states": 0}, "n_states must be a whole number >= 1; got 0"),
        ({"covariance": "XYZ"}, "XYZ"),
        ({"topology": "ring"}, "topology must be one of 'full', 'left-right'; got 'ring'"),
        ({"transitions": "own"}, "transitions must be one of 'shared', 'per_step'; got 'own'"),
        ({"prior": -1}, "prior must be 'auto', None .* or a positive number of pseudo-rows; got -1"),
        ({"prior": HMMPrior(smoothing=-1)}, "smoothing must be a number >= 0; got -1"),
        ({"prior": HMMPrior(transition_smoothing="auto")}, "transition_smoothing must be a number >= 0; got 'auto'"),
        ({"init": "kmeans"}, "init must be one of 'auto', 'random'; got 'kmeans'"),
        ({"init": 3}, "init must be one of 'auto', 'random'; got 3"),
        ({"n_init": 0}, "n_init must be a whole number >= 1; got 0"),
        ({"tol": -1}, "tol must be a number >= 0; got -1"),
        ({"max_iter": 0.5}, "max_iter must be a whole number >= 1; got 0.5"),
        ({"n_jobs": 0}, "n_jobs must be None, -1 or a positive number of threads; got 0"),
        ({"categorical": "all"}, "categorical must be 'auto' or a list of column names or positions; got 'all'"),
    ],
)
def test_options(cls, options, message):
    with pytest.raises(ValueError, match=message):
        cls(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emissions": "given"}, "emissions must be one of 'fitted', 'poisson', 'precomputed'; got 'given'"),
        ({"n_states": 100}, "n_states=100 needs at least as many steps; X has 48"),
        ({"init": {"mean": 1}}, "init as a dict must have some of the keys 'start', .*; got 'mean'"),
        ({"init": {}}, "init as a dict must have some of the keys .*; got an empty dict"),
        ({"init": {"start": [1, 0]}, "n_init": 2}, "n_init=2 is not used with init as a dict"),
        ({"init": {"start": [0.5, 0.6]}}, "init: start must be probabilities that sum to 1 along the last axis"),
        ({"init": {"start": [1.5, -0.5]}}, "init: start must be probabilities"),
        ({"init": {"start": ["a", "b"]}}, r"init: start must be numbers of shape \(2,\); could not convert"),
        ({"init": {"start": [1.0]}}, r"init: start must be finite numbers of shape \(2,\); got shape \(1,\)"),
        ({"init": {"transitions": np.eye(3)}}, r"init: transitions must be finite numbers of shape \(2, 2\); got"),
        (
            {"init": {"transitions": np.eye(3)}, "transitions": "per_step"},
            r"init: transitions must be finite numbers of shape \(2, 2\) or \(3, 2, 2\); got",
        ),
        (
            {"init": {"transitions": [[0.5, 0.5], [0.5, 0.5]]}, "topology": "left-right"},
            "init: transitions must agree with topology='left-right': sequences begin in state 0",
        ),
        (
            {"init": {"start": [0.5, 0.5]}, "topology": "left-right"},
            "init: start must agree with topology='left-right'",
        ),
        ({"init": {"means": [1.0, 2.0]}}, r"init: means must be finite numbers of shape \(2, 1\)"),
        ({"init": {"means": [[np.nan], [0]]}}, "init: means must be finite numbers"),
        (
            {"init": {"covariances": [[1.0], [0.0]]}},
            "init: covariances must be positive .*; the smallest eigenvalue is 0",
        ),
        ({"init": {"covariances": [[[1.0]], [[-2.0]]]}}, "the smallest eigenvalue is -2"),
        ({"init": {"tables": [[1.0], [1.0]]}}, "init has tables, but no variable is categorical"),
        ({"init": {"fixed": 5}}, "init: fixed must be a list of some of 'start', .*; got 5"),
        ({"init": {"fixed": None}}, "init: fixed must be a list of some of 'start', .*; got None"),
    ],
)
def test_options_of_a_model(options, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkovModel(**options).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init": {"covariances": [[[1, 5], [0, 1]]] * 2}}, "init: covariances must be symmetric matrices"),
        (
            {"init": {"covariances": [[[1, 0.9], [0.9, 1]]] * 2, "fixed": ["covariances"]}},
            "init: fixed covariances do not have the structure 'VVI'; use 'VVV'",
        ),
        (
            {"init": {"covariances": [np.eye(2), 4 * np.eye(2)], "fixed": ["covariances"]}, "covariance": "EEE"},
            "init: fixed covariances do not have the structure 'EEE'",
        ),
        (
            {"init": {"means": [[-2, 2], [20, 20]]}, "emissions": "poisson"},
            "init: means must be > 0 with emissions='poisson'; got -2",
        ),
    ],
)
def test_starts_of_steps(options, message):
    steps = np.random.default_rng(0).poisson(3.0, size=(20, 2)).astype(float)
    with pytest.raises(ValueError, match=message):
        HiddenMarkovModel(2, **options).fit(steps, lengths=[20])


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ({"means": [[0], [1]]}, "init has means, but no variable is numeric"),
        ({"covariances": [[1], [1]]}, "init has covariances, but no variable is numeric"),
        ({"tables": {"word": [[1]]}}, "init: tables must have the keys 'value'; got 'word'"),
        ({"tables": [[0.5, 0.5], [0.5, 0.5]]}, r"init: tables must be finite numbers of shape \(2, 3\)"),
    ],
)
def test_starts_of_words(init, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkovModel(2, init=init).fit(WORDS)


def test_lengths_in_the_place_of_labels():
    with pytest.raises(ValueError, match="y is not used, but looks like the lengths of sequences; pass them as length"):
        HiddenMarkovModel(2).fit(np.arange(30.0)[:, None], [10, 20])


def test_rows_of_one_step():
    with pytest.warns(DataWarning, match=r"every row is a sequence of one step, so that .* pass lengths=\[n_rows\]"):
        model = HiddenMarkovModel(2, random_state=0).fit(np.arange(30.0)[:, None])
    assert len(model.notes_) == 1


def test_starts_of_several_words():
    frame = pd.DataFrame({"u": WORDS[:, 0], "v": WORDS[:, 1]})
    with pytest.raises(ValueError, match="init: tables must be a dict with an entry for each of 'u', 'v'"):
        HiddenMarkovModel(2, init={"tables": np.ones((2, 1))}).fit(frame, lengths=[12])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariance": "VVV"}, "covariance='VVV' is not used with emissions='precomputed'; leave it at 'VVI'"),
        ({"prior": None}, "prior=None is not used with emissions='precomputed'"),
        ({"prior": HMMPrior(smoothing=2.0)}, "smoothing=2.0 is not used"),
        ({"categorical": [0]}, r"categorical=\[0\] is not used"),
        ({"n_init": 2}, "n_init=2 is not used with emissions='precomputed'"),
        ({"init": "random"}, "init='random' is not used with emissions='precomputed'"),
        ({"init": {"means": 1}}, r"init\['means'\] is not used with emissions='precomputed'; leave it out"),
    ],
)
def test_options_without_effect_where_emissions_are_given(options, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkovModel(2, emissions="precomputed", **options).fit(LOG, lengths=[6])


@pytest.mark.parametrize(
    ("values", "lengths", "message"),
    [
        (LOG, None, "emissions='precomputed' has a row per step; pass lengths or groups to separate the sequences"),
        ([["a", "b"]], [1], "emissions='precomputed' needs log-likelihoods, a column per state; could not convert"),
        (LOG[:, :1], [6], r"a column of log-likelihoods for each of 2 states; got shape \(6, 1\)"),
        (LOG[0], [2], r"got shape \(2,\)"),
        (np.where(np.arange(12).reshape(6, 2) == 5, np.nan, LOG), [6], "finite or -inf; row 2 has nan"),
        (np.where(np.arange(12).reshape(6, 2) == 4, np.inf, LOG), [6], "finite or -inf; row 2 has inf"),
    ],
)
def test_log_likelihoods(values, lengths, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkovModel(2, emissions="precomputed").fit(values, lengths=lengths)


def test_given_emissions_draw_nothing():
    model = HiddenMarkovModel(2, emissions="precomputed").fit(LOG, lengths=[6])
    with pytest.raises(ValueError, match="sample needs a model of the emissions"):
        model.sample(2, 3)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"lengths": [4] * 12, "groups": np.zeros(48)}, "pass lengths or groups, not both"),
        ({"lengths": 48}, "lengths must be a list of whole numbers, one per sequence; got 48"),
        ({"lengths": ["a"]}, "lengths must be a list of whole numbers"),
        ({"lengths": [24.5, 23.5]}, "lengths must be a list of whole numbers"),
        ({"lengths": []}, "lengths must be a list of whole numbers"),
        ({"lengths": [48, 0]}, "lengths must be >= 1; sequence 1 has 0"),
        ({"lengths": [4] * 11}, "lengths must add up to the number of rows of X, 48; they add up to 44"),
        ({"groups": np.zeros(3)}, r"groups must have one id per row of X, 48; got shape \(3,\)"),
        ({"groups": np.where(np.arange(48) == 5, np.nan, 1.0)}, "groups must have an id for every row; some ids"),
        ({"groups": np.array([None] * 48)}, "groups must have an id for every row"),
    ],
)
def test_where_sequences_are(where, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkovModel(2).fit(STEPS, **where)
    model = HiddenMarkovModel(2).fit(STEPS, lengths=LENGTHS)
    with pytest.raises(ValueError, match=message):
        model.score_samples(STEPS, **where)


def test_rows_and_steps_are_not_to_be_mixed_up():
    rows, steps = HiddenMarkovModel(2).fit(X), HiddenMarkovModel(2).fit(STEPS, lengths=LENGTHS)
    with pytest.raises(ValueError, match="fitted with a sequence per row; leave out lengths and groups"):
        rows.decode(X, lengths=[12])
    with pytest.raises(ValueError, match=r"fitted with a row per step; pass lengths or groups.*lengths=\[len\(X\)\]"):
        steps.decode(STEPS)
    with pytest.raises(ValueError, match="sample needs length, since this model was fitted with a row per step"):
        steps.sample(2)
    with pytest.raises(ValueError, match="n_sequences must be a whole number >= 1; got 0"):
        rows.sample(0)
    with pytest.raises(ValueError, match="length must be a whole number >= 1; got 0"):
        rows.sample(1, 0)


def test_steps_beyond_those_known():
    model = HiddenMarkovModel(2, transitions="per_step").fit(STEPS, lengths=LENGTHS)
    with pytest.raises(
        ValueError,
        match="with transitions='per_step', sequences must have at most the 4 steps .*; got a sequence of 24 steps",
    ):
        model.predict(STEPS, lengths=[24, 24])
    assert model.predict(STEPS[:5], lengths=[3, 2]).shape == (5,)
    with pytest.raises(
        ValueError,
        match="with transitions='per_step', length must be at most the 4 steps of the training sequences; got 5",
    ):
        model.sample(1, 5)


def test_rows_hold_one_variable():
    frame = pd.DataFrame({"u": WORDS[:, 0], "x": X[:, 0]})
    with pytest.raises(ValueError, match="column 'x' is numeric and column 'u' is categorical; list all columns in"):
        HiddenMarkovModel(2).fit(frame)
    frame["x"] = X[:, 0] > 0
    with pytest.raises(ValueError, match="but some are text and some are numbers or booleans"):
        HiddenMarkovModel(2).fit(frame)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (None, {}, "requires y to be passed"),
        (np.zeros(12), {}, "needs at least 2 classes"),
        (["a", None, *"abababbaba"], {}, "needs one known label per sequence; y has no label for sequence 1"),
        (np.full((12, 2), 0.5), {}, "needs one known label per sequence; y has label probabilities"),
        (Y, {"class_prior": [1, 2, 3]}, "class_prior must be 'empirical' or 2 positive numbers"),
        (
            Y,
            {"init": {"start": [1, 0]}},
            "init must be 'auto' or 'random', since each class is initialized separately; got a dict",
        ),
    ],
)
def test_labels(y, options, message):
    with pytest.raises(ValueError, match=message):
        HMMClassifier(**options).fit(X, y)


def test_weights():
    with pytest.raises(
        ValueError, match="class 1 has no sequence with positive weight; add some, or leave the class out"
    ):
        HMMClassifier().fit(X, Y, sample_weight=1 - Y)
    with pytest.raises(ValueError, match="sample_weight must be >= 0; row 3 has -1"):
        HiddenMarkovModel().fit(X, sample_weight=np.where(np.arange(12) == 3, -1, 1))
    with pytest.raises(ValueError, match="inconsistent|sample_weight"):
        HiddenMarkovModel().fit(STEPS, lengths=LENGTHS, sample_weight=np.ones(48))  # one per sequence
    with pytest.raises(ValueError, match="inconsistent"):
        HMMClassifier().fit(STEPS, np.repeat(Y, 4), lengths=LENGTHS)


def test_a_class_of_gaps():
    with pytest.raises(ValueError, match="all values of class 1 are missing; leave the class out"):
        HMMClassifier().fit(np.where(Y[:, None] == 1, np.nan, X), Y)


def test_a_run_cut_short_is_told_with_its_class():
    with pytest.warns(UserWarning, match=r"HMMClassifier \(class [01]\) did not converge: max_iter was reached first"):
        HMMClassifier(2, max_iter=2, tol=0).fit(X, Y)
