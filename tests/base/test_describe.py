"""Descriptions of any fitted estimator: how the fit ended, and models of other libraries."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mixent as mx
from mixent.base.describe import CONVERGENCE, MOST_RUNS, convergence, describe, optimality
from mixent.base.document import Bullets, Table
from mixent.base.foreign import iterations_text, last_step

X, Y = load_iris(return_X_y=True)


def sections(document):
    return {section.title: section.content for section in document.sections}


# --- how fitting ended ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run():
    return mx.MixtureClassifier(2, random_state=0).fit(X, Y).run_


def test_one_run_is_one_sentence(run):
    (text,) = convergence([run])
    assert text.text.startswith(f"Converged after {run.n_passes} passes: ")


def test_runs_with_names_are_listed_and_the_worst_comes_first(run):
    failed = replace(run, status=type(run.status).MAX_PASSES, n_passes=7, message="raise max_iter")
    items = convergence({"a": run, "b": failed})[1]
    assert [item.split(":")[0] for item in items.items] == ["a", "b"]
    many = convergence({str(i): run for i in range(MOST_RUNS + 3)})[1].items
    assert len(many) == MOST_RUNS + 1 and many[-1] == "and 3 more"


def test_certificates_follow(run):
    assert optimality(None) == optimality(np.nan) == []
    content = convergence([run], optimality(1.23e-7))
    assert isinstance(content[1], Bullets) and "1e-07 nats per row" in content[1].items[0]


# --- models of other libraries --------------------------------------------------------------------------------------


def test_a_pipeline_tells_its_steps_parameters_and_coefficients():
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.5)).fit(X, Y)
    found = describe(model)
    assert found.title == "LogisticRegression"
    assert found.facts == {"steps": ["StandardScaler", "LogisticRegression"], "parameters": {"C": "0.5"}}
    table = sections(found)["Weights of the columns"][0]
    sizes = np.abs(model[-1].coef_).max(axis=0)
    assert [row[0] for row in table.rows] == [f"x{j}" for j in np.argsort(-sizes)]
    assert [row[1].text for row in table.rows] == [f"{size:.3f}" for size in sorted(sizes, reverse=True)]
    assert CONVERGENCE in sections(found)


def test_importances_are_listed_and_cut():
    wide = np.random.default_rng(0).normal(size=(60, 20))
    found = describe(RandomForestClassifier(3, random_state=0).fit(wide, np.arange(60) % 2))
    (table,) = sections(found)["Weights of the columns"]
    assert isinstance(table, Table) and len(table.rows) == 12 and "the 12 largest of 20" in table.caption
    assert table.rows[0][0].startswith("column ")


def test_a_model_without_parameters_weights_or_iterations():
    found = describe(KNeighborsClassifier().fit(X, Y))
    assert list(sections(found)) == [""] and found.facts["parameters"] == {}


def test_a_pipeline_around_a_registered_model_has_its_description():
    model = make_pipeline(StandardScaler(), mx.MixtureClassifier(1, random_state=0)).fit(X, Y)
    inner = describe(model[-1])
    assert describe(model).facts == inner.facts and describe(model).title == inner.title
    assert last_step(make_pipeline(StandardScaler(), model)) is model[-1]


def test_iterations_of_an_optimizer():
    fitted = LogisticRegression(C=0.1).fit(X, Y)
    assert f"{fitted.n_iter_[0]} of at most 100 iterations" in iterations_text(fitted)
    fitted.max_iter = int(fitted.n_iter_[0])
    assert "raise max_iter" in iterations_text(fitted)
    fitted.max_iter = -1
    assert iterations_text(fitted) == f"{fitted.n_iter_[0]} iterations."


def test_the_number_of_trees_is_no_limit_that_was_reached():
    class Mine(LogisticRegression):
        pass

    assert iterations_text(HistGradientBoostingClassifier(max_iter=3).fit(X, Y)) == "3 iterations."
    for model in (Mine(max_iter=2), SVC(max_iter=2), MLPClassifier(max_iter=2, random_state=0)):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, Y)
        assert "All 2 allowed iterations" in iterations_text(model)
