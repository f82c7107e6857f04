"""Pictures of hidden Markov models: tables and paths are the model's."""

import numpy as np
import pandas as pd
import pytest

from mixent import HiddenMarkovModel
from mixent.displays import StatesDisplay

from ..drawing import drawn_panels

RNG = np.random.default_rng(0)
STATE = np.cumsum(RNG.random((30, 12)) < 0.2, axis=1) % 2
X = 4.0 * STATE + RNG.normal(size=STATE.shape)
X[1, 3] = np.nan
WORDS = np.where(X > 2, "$high", "low")
STEPS = pd.DataFrame({"level": X.ravel(), "same": 1.0, "alarm": WORDS.ravel()})
LENGTHS = np.full(30, 12)


def points(ax, n_states):
    """(state, step, value) of what is drawn on the path."""
    marked = [line for line in ax.lines if line.get_marker() not in ("None", None, "")]
    return [(s, *p) for s, line in zip(range(n_states), marked) for p in line.get_xydata()]


@pytest.fixture(scope="module")
def numbers():
    return HiddenMarkovModel(2).fit(X)


def test_transitions_emissions_and_the_path_are_the_models(numbers):
    display = StatesDisplay.from_estimator(numbers, X, sequence=1)
    matrix, emits, path = drawn_panels(display)
    np.testing.assert_allclose(matrix.images[0].get_array(), np.vstack([numbers.start_, numbers.transitions_]))
    assert [t.get_text() for t in matrix.get_yticklabels()] == ["start", "0", "1"]
    assert (matrix.get_xlabel(), matrix.get_ylabel()) == ("Next state", "State")
    np.testing.assert_allclose(display.emitted.mean, numbers.means_[:, 0])
    np.testing.assert_allclose(display.emitted.std, np.sqrt(numbers.covariances_[:, 0, 0]))
    assert emits.get_title(loc="left") == "Emissions of value" and emits.get_xlabel() == "Mean ± standard deviation"
    np.testing.assert_array_equal(display.path, numbers.decode(X)[1])
    np.testing.assert_array_equal(display.steps, X[1])
    found = sorted((int(step), int(s)) for s, step, value in points(path, 2))
    assert found == list(enumerate(display.path))
    assert (path.get_xlabel(), path.get_ylabel()) == ("Step", "value")


def test_the_last_sequence_and_none_at_all(numbers):
    np.testing.assert_array_equal(StatesDisplay.from_estimator(numbers, X, -1).path, numbers.decode(X)[-1])
    assert len(drawn_panels(StatesDisplay.from_estimator(numbers))) == 2
    for wrong in (30, -31):
        with pytest.raises(ValueError, match="sequence"):
            StatesDisplay.from_estimator(numbers, X, wrong)


def test_categories_have_a_table(numbers):
    model = HiddenMarkovModel(2).fit(WORDS)
    display = StatesDisplay.from_estimator(model, WORDS)
    _, emits, path = drawn_panels(display)
    np.testing.assert_allclose(emits.images[0].get_array(), model.tables_["value"])
    assert [t.get_text() for t in emits.get_xticklabels()] == ["\\$high", "low"]
    assert [t.get_text() for t in path.get_yticklabels()] == ["\\$high", "low"]
    assert display.steps.tolist() == [("$high", "low").index(word) for word in WORDS[0]]


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("by", ["lengths", "groups"])
def test_one_variable_of_several_in_sequences_of_rows(by):
    order = np.argsort(np.tile(np.arange(12), 30), kind="stable") if by == "groups" else np.arange(360)
    table = STEPS.iloc[order].reset_index(drop=True)
    where = {"lengths": LENGTHS} if by == "lengths" else {"groups": np.repeat(np.arange(30), 12)[order]}
    model = HiddenMarkovModel(2, random_state=0).fit(table, **where)
    for variable, values in {"level": X[2], "alarm": (WORDS[2] == "low").astype(float), "same": np.ones(12)}.items():
        display = StatesDisplay.from_estimator(model, table, 2, variable=variable, **where)
        np.testing.assert_array_equal(display.steps, values)
        assert (display.path == STATE[2]).mean() > 0.8 or (display.path != STATE[2]).mean() > 0.8
        assert drawn_panels(display)[1].get_title(loc="left") == f"Emissions of {variable}"
    assert StatesDisplay.from_estimator(model).emitted.name == "level"
    with pytest.raises(ValueError, match="variable"):
        StatesDisplay.from_estimator(model, variable="x")


def test_matrices_of_each_step_are_averaged_and_given_emissions_left_out():
    model = HiddenMarkovModel(2, transitions="per_step").fit(X)
    display = StatesDisplay.from_estimator(model, X)
    np.testing.assert_allclose(display.transitions, model.transitions_.mean(axis=0))
    assert drawn_panels(display)[0].get_title(loc="left") == "Transition probabilities, mean of 11 steps"
    said = np.log(np.where(STATE[:, :, None] == np.arange(2), 0.8, 0.2)).reshape(-1, 2)
    given = HiddenMarkovModel(2, emissions="precomputed").fit(said, lengths=LENGTHS)
    display = StatesDisplay.from_estimator(given, said, 3, lengths=LENGTHS)
    panels = drawn_panels(display)
    assert len(panels) == 2 and display.emitted is None and display.steps is None
    assert panels[1].get_ylabel() == "State"
    np.testing.assert_array_equal(display.path, given.decode(said, lengths=LENGTHS)[36:48])


def test_many_states_and_values_still_fit():
    rng = np.random.default_rng(0)
    text = rng.choice(list("abcdefghijklmnopqrstuvwxyz"), size=(20, 40))
    display = StatesDisplay.from_estimator(HiddenMarkovModel(12, max_iter=500, tol=1e-2).fit(text), text)
    matrix, emits, path = drawn_panels(display)
    assert not matrix.texts and len(emits.get_xticks()) == 12 and len(path.get_yticks()) <= 12
