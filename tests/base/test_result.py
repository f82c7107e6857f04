"""Results show themselves: a line in a console, text when printed, HTML in a notebook; tables are DataFrames."""

import inspect
import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from tests.subjects import NUMBERS, PUBLIC, SUBJECTS, TABLE, Y, fuser, votes

import mixent
from mixent import MaxEntClassifier, MaxEntJoint, MixtureClassifier, TunedClassifier
from mixent import datasets as sets
from mixent.base.result import Records, RecordsAttribute, Result, as_table
from mixent.evaluate import (
    bayes_error,
    compare_over_sets,
    corrected_t_test,
    cross_validate,
    error_report,
    five_by_two_f,
    row_t_test,
    sign_test,
    signed_rank_test,
)
from mixent.evaluate.scores import reliability
from mixent.options import Search
from mixent.overview import public_estimators
from mixent.show import LENGTH, Short, short_text
from mixent.studies import prior_shift_study, size_curves, verification_rates, verification_report

RNG = np.random.default_rng(0)
METHODS = {"Bayes": GaussianNB(), "tree": DecisionTreeClassifier(max_depth=2, random_state=0)}
CLIENT = np.where(np.arange(40) < 15, "client", "impostor")
LLR = RNG.normal(size=40) + 2.0 * (CLIENT == "client")
ERRORS = {name: RNG.random(9) for name in ("first", "second", "third")}
FRAMES = (
    "cross-validation",
    "comparison",
    "ranks",
    "errors",
    "reliability",
    "sizes",
    "priors",
    "decisions",
    "explanation",
    "constraints",
    "capabilities",
)


@cache
def model(name):
    made = {
        "mixture": lambda: MixtureClassifier("auto", search=Search("bic", 2), random_state=0),
        "maxent": lambda: MaxEntClassifier(selection="bic", prior_variance="auto", random_state=0),
        "tuned": lambda: TunedClassifier(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, random_state=0),
        "joint": lambda: MaxEntJoint(prior_variance=1.0, random_state=0),
    }[name]()
    return made.fit(TABLE) if name == "joint" else made.fit(TABLE, Y)


@cache
def comparison():
    return mixent.compare(NUMBERS, Y, methods=METHODS, baselines=False, folds=2, n_jobs=1)


@cache
def fused():
    return fuser().fit(votes())


def posteriors(rows):
    return np.eye(3)[RNG.integers(3, size=len(rows))] * 0.7 + 0.1


RESULTS = {
    "cross-validation": lambda: cross_validate(METHODS, NUMBERS, Y, folds=2),
    "comparison": comparison,
    "recommendation": lambda: comparison().recommendation,
    "estimate": lambda: comparison().estimate,
    "shape": lambda: comparison().shape,
    "candidate": lambda: comparison().candidates["tree"],
    "t test": lambda: comparison().test("tree", "Bayes"),
    "corrected t test": lambda: corrected_t_test(RNG.normal(size=10), 0.1),
    "t test on rows": lambda: row_t_test(RNG.normal(size=10)),
    "F test": lambda: five_by_two_f(RNG.normal(size=(5, 2))),
    "sign test": lambda: sign_test(ERRORS["first"], ERRORS["second"]),
    "signed-rank test": lambda: signed_rank_test(ERRORS["first"], ERRORS["second"]),
    "ranks": lambda: compare_over_sets(ERRORS),
    "errors": lambda: error_report(model("mixture"), TABLE, Y),
    "Bayes error": lambda: bayes_error(model("mixture"), 200),
    "reliability": lambda: reliability(RNG.random(50), RNG.random(50) < 0.5),
    "sizes": lambda: size_curves({"forest": lambda size: METHODS["tree"]}, NUMBERS, Y, sizes=[1, 2], folds=2),
    "priors": lambda: prior_shift_study({"noise": posteriors}, Y, [[0.2, 0.3, 0.5], [1 / 3] * 3], n_repeats=2),
    "rates": lambda: verification_rates(CLIENT, LLR, target="client", threshold=1.0),
    "verification": lambda: verification_report(CLIENT, LLR, target="client", prior=0.1),
    "decisions": lambda: model("mixture").decision(TABLE, reject=0.3),
    "explanation": lambda: model("maxent").explain(TABLE),
    "constraints": lambda: model("maxent").constraints(),
    "score of a column": lambda: model("joint").accuracy_by_column(TABLE)["color"],
    "step of the path": lambda: model("maxent").path_[0],
    "path": lambda: model("maxent").path_,
    "variances tried": lambda: model("maxent").prior_variances_tried_,
    "search": lambda: model("mixture").search_,
    "settings tried": lambda: model("tuned").search_,
    "run": lambda: model("maxent").run_,
    "summary": lambda: model("mixture").summary(),
    "prior estimate": lambda: fused().prior_estimate_,
    "prior shift": lambda: fused().prior_shift_,
    "dependence": lambda: fused().dependence_,
    "drift": lambda: next(iter(fused().drift_.values())),
    "calibration": lambda: next(iter(fused().sources.values())),
    "capabilities": mixent.capabilities,
    "orchestra": lambda: sets.make_orchestra(50),
    "votes": lambda: sets.simulate_votes(20),
    "vendors": lambda: sets.simulate_vendors(20),
    "claims": lambda: sets.simulate_verification(20, 30).evaluation,
}


def check_shown(result):
    """Short representation, text, and HTML in which every element is closed."""
    line = repr(result)
    assert line.startswith(f"{type(result).__name__}(") and len(line) <= LENGTH and "\n" not in line, line
    assert str(result)
    opened = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            opened.append(tag) if tag not in ("img", "rect") else None

        def handle_endtag(self, tag):
            assert tag in ("rect",) or opened.pop() == tag

    Parser().feed(result._repr_html_())
    assert not opened


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_a_short_representation_text_and_html(name):
    check_shown(RESULTS[name]())


@pytest.mark.parametrize("name", FRAMES)
def test_a_table_is_a_data_frame(name):
    frame = RESULTS[name]().frame()
    assert isinstance(frame, pd.DataFrame) and len(frame)


def test_tests_of_a_comparison_are_a_data_frame():
    tests = comparison().tests()
    assert isinstance(tests, pd.DataFrame) and list(tests.index) == comparison().ranking()[1:]


@pytest.mark.parametrize("name", PUBLIC)
def test_fitted_attributes_have_a_short_representation(name):
    fitted = SUBJECTS[name].usual
    for attribute in [a for a in dir(fitted) if a.endswith("_") and not a.startswith("_")]:
        value = getattr(fitted, attribute, None)
        parts = value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else [value]
        for part in parts:
            if type(part).__module__.startswith("mixent") and not hasattr(part, "get_params"):
                assert len(repr(part)) <= LENGTH and "\n" not in repr(part), f"{attribute}: {part!r}"


def test_records_are_a_list_and_a_table():
    records = Records([{"a": 1, "b": "x"}, {"a": 2.5, "c": None}])
    assert records == [{"a": 1, "b": "x"}, {"a": 2.5, "c": None}] and records[0]["a"] == 1
    assert repr(records) == "Records(2 rows: a, b, c)" and "2.5" in str(records)
    assert list(records.frame().columns) == ["a", "b", "c"]
    check_shown(Records([]))


def test_a_fitted_attribute_of_records_is_stored_as_a_list():
    class Model:
        tried_ = RecordsAttribute()

    model = Model()
    assert not hasattr(model, "tried_")
    model.tried_ = [{"a": 1}]
    assert type(vars(model)["tried_"]) is list and type(model.tried_) is Records


def test_every_fitted_list_of_records_is_a_table():
    documented = r"(?m)^ *(\w+_) : list of (?:lists of )?(?:dict|Stage|SelectionStep)$"
    classes = [type(estimator) for estimator in public_estimators()]
    lists = [(cls, name) for cls in classes for name in re.findall(documented, cls.__doc__)]
    assert len({name for _, name in lists}) >= 6
    assert [entry for entry in lists if not isinstance(inspect.getattr_static(*entry), RecordsAttribute)] == []


def test_lists_of_records_are_a_table_each():
    class Model:
        path_ = RecordsAttribute()

    model = Model()
    model.path_ = [[{"a": 1}, {"a": 2}], [{"a": 3}]]
    assert [part.frame()["a"].tolist() for part in model.path_] == [[1, 2], [3]]


def test_without_pandas_a_table_is_a_list_of_records(monkeypatch):
    monkeypatch.setattr("mixent.base.result.find_spec", lambda name: None)
    assert as_table([{"a": 1}], index="a") == [{"a": 1}]


def test_values_are_shown_in_short_form():
    assert short_text(np.arange(3.0)) == "[0, 1, 2]" and short_text(np.zeros((2, 3))) == "<2 x 3 float64>"
    assert short_text(0.123456) == "0.1235" and short_text(("a", None)) == "['a', None]"
    assert short_text({"a": 1}) == "{'a': 1}" and short_text({"a": []}) == "<dict of 1>"
    assert short_text(list(range(99))) == "<list of 99>" and short_text(np.array(["x" * 50])) == "<1 str>"
    assert short_text("x" * 60) == repr("x" * 39 + "…") and short_text(Short) == "<type>"


def test_every_result_of_the_public_modules_is_tested():
    tested = {type(RESULTS[name]()) for name in RESULTS}
    public = [getattr(m, n) for m in (mixent, mixent.evaluate, mixent.studies, mixent.comparison) for n in m.__all__]
    results = {cls for cls in public if isinstance(cls, type) and issubclass(cls, Result)}
    assert results <= tested
