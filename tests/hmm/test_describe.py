"""Descriptions of hidden Markov models hold the values of the fitted model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import HiddenMarkovModel, HMMClassifier
from mixent.base.document import Bullets, Figure, Table
from mixent.base.registry import entry_of
from mixent.hmm.describe import CLASSES, emission_text
from mixent.hmm.states import shares_of_steps, states_of, stationary


def series(n=40, seed=0):
    rising = np.sort(np.random.default_rng(seed).normal(size=(n, 6)), axis=1)
    rising[n // 2 :] = rising[n // 2 :, ::-1]
    return rising, np.repeat(["up", "down"], n // 2)


X, Y = series()
STEPS = pd.DataFrame({"level": X.ravel(), "alarm": np.where(X.ravel() > 1, "high", "low")})
LENGTHS = np.full(40, 6)


def blocks(document, kind):
    return [block for section in document.sections for block in section.content if isinstance(block, kind)]


def facts_of(model):
    return json.loads(json.dumps(model.summary().facts))


def test_the_long_run():
    A = np.array([[0.9, 0.1], [0.3, 0.7]])
    np.testing.assert_allclose(stationary(np.array([1.0, 0.0]), A), [0.75, 0.25], rtol=1e-12)
    flips = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(stationary(np.array([1.0, 0.0]), flips), [0.5, 0.5], rtol=1e-12)
    apart = np.eye(2)
    np.testing.assert_allclose(stationary(np.array([0.2, 0.8]), apart), [0.2, 0.8], rtol=1e-12)


def test_shares_of_steps_are_means_of_powers():
    rng = np.random.default_rng(0)
    start, A = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3)
    expected = np.mean([start @ np.linalg.matrix_power(A, t) for t in range(5)], axis=0)
    np.testing.assert_allclose(shares_of_steps(start, A, 5), expected, rtol=1e-12)
    np.testing.assert_allclose(shares_of_steps(start, np.tile(A, (4, 1, 1)), 5), expected, rtol=1e-12)


def test_the_facts_of_a_classifier_are_those_of_its_models():
    model = HMMClassifier(3, random_state=0).fit(X, Y)
    facts = facts_of(model)
    assert facts["n_parameters"] == sum(one.n_parameters_ for one in model.models_)
    assert [chain["class"] for chain in facts["chains"]] == ["down", "up"]
    for chain, one in zip(facts["chains"], model.models_):
        np.testing.assert_array_equal(chain["transitions"], one.transitions_)
        for s, state in enumerate(chain["states"]):
            assert (state["first"], state["stays"]) == (one.start_[s], one.transitions_[s, s])
            assert state["emits"]["value"]["mean"] == one.means_[s, 0]
        assert sum(state["share"] for state in chain["states"]) == pytest.approx(1)
    assert facts["run"]["objective"] == pytest.approx(sum(run.objective for run in model.runs_))
    assert (facts["topology"], facts["covariance"], facts["variables"]) == ("full", "VVI", ["value"])


def test_each_class_has_a_table_of_states_and_a_figure():
    model = HMMClassifier(3, random_state=0).fit(X, Y)
    document = model.summary()
    tables = blocks(document, Table)
    for table, chain in zip(tables[1:3], model.models_):
        assert [row[1].text for row in table.rows] == [f"{p:.2f}" for p in chain.start_]
        assert [row[5].split(" ± ")[0] for row in table.rows] == [f"value {m:.3g}" for m in chain.means_[:, 0]]
    assert [section.title for section in document.sections][1:3] == ["States of down", "States of up"]
    figures = blocks(document, Figure)
    assert len(figures) == 2 and all(figure.figure().get_axes() for figure in figures)
    drawn = entry_of(model).on_rows(model, X, Y)
    assert len(drawn) == 2 and all("<img" in figure.html() for figure in drawn)
    assert len(entry_of(model).on_rows(model, X, None)) == 2


def test_steps_in_rows_categories_and_given_emissions():
    model = HiddenMarkovModel(2, random_state=0).fit(STEPS, lengths=LENGTHS)
    (chain,) = facts_of(model)["chains"]
    assert chain["class"] is None
    for s, state in enumerate(chain["states"]):
        assert state["share"] == state["stationary"]
        assert list(state["emits"]["alarm"].values()) == model.tables_["alarm"][s].tolist()
    assert entry_of(model).on_rows(model, STEPS, None) == []
    steps = HiddenMarkovModel(2, transitions="per_step", topology="left-right").fit(X)
    assert all(state["stays"] is None and state["stationary"] is None for state in states_of(steps))
    assert len(entry_of(steps).on_rows(steps, X, None)) == 1
    given = HiddenMarkovModel(2, emissions="precomputed").fit(np.log(np.full((12, 2), 0.5)), lengths=[6, 6])
    assert states_of(given)[0]["emits"] == {} and facts_of(given)["covariance"] is None


def test_many_classes_and_fits_that_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = HMMClassifier(3, max_iter=1, random_state=0).fit(X, Y)
    assert len(blocks(model.summary(), Bullets)) == 1
    many = np.array([f"k{i % 8}" for i in range(40)])
    document = HMMClassifier(1, random_state=0).fit(X, many).summary()
    assert len(blocks(document, Figure)) == CLASSES and "2 more classes" in str(document)


def test_emissions_in_a_line():
    numbers = {f"x{j}": {"mean": 1.2345, "sd": 0.5} for j in range(4)}
    assert emission_text(numbers) == "x0 1.23 ± 0.5; x1 1.23 ± 0.5; x2 1.23 ± 0.5; ..."
    assert emission_text({"c": {"a": 0.2, "b": 0.7, "d": 0.06, "e": 0.04}}) == "c b 70\u00a0%, a 20\u00a0%, d 6\u00a0%"
