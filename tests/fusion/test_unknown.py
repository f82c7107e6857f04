"""Answers that no calibration row had, and class priors given as a list."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mixent
from mixent import Calibration, Fuser
from mixent.fusion import long_answers

A = Calibration.from_counts([[60, 5, 15], [4, 6, 10]], ["no", "yes"], ["no", "unsure", "yes"])
B = Calibration.from_counts([[40, 10], [5, 45]], ["no", "yes"])
SOURCES = {"A": A, "B": B}
RNG = np.random.default_rng(0)
N = 80
TABLE = {"A": RNG.choice(["no", "unsure", "yes"], N).astype(object), "B": RNG.choice(["no", "yes"], N).astype(object)}
ODD = np.arange(N) % 4 == 0


def with_odd(value, name="B", table=TABLE):
    column = table[name].copy()
    column[ODD] = value
    return {**table, name: column}


FORMS = {
    "dict": lambda table: table,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "array": lambda table: np.column_stack(list(table.values())),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["ml-product", "dawid-skene", "min-divergence"])
def test_an_unknown_answer_is_no_answer(form, method):
    blank = Fuser(SOURCES, method=method).fit(FORMS[form](with_odd(None)))
    with pytest.warns(mixent.DataWarning, match="maybe"):
        odd = Fuser(SOURCES, method=method).fit(FORMS[form](with_odd("maybe")))
    np.testing.assert_array_equal(odd.posterior_, blank.posterior_)
    with pytest.warns(mixent.DataWarning, match="maybe"):
        predicted = odd.predict_proba(with_odd("maybe"))
    np.testing.assert_array_equal(predicted, blank.predict_proba(with_odd(None)))


def test_every_way_to_pass_items_knows_unknown_answers():
    fuser = Fuser(SOURCES, method="ml-product").fit(TABLE)
    with pytest.warns(mixent.DataWarning):
        assert fuser.fuse_one({"A": "yes", "B": "Yes"}) == fuser.fuse_one({"A": "yes"})
    with pytest.warns(mixent.DataWarning):
        fuser.partial_fit({"A": ["yes"], "B": ["?!"]})
    with pytest.warns(mixent.DataWarning):
        blocks = Fuser(SOURCES, method="ml-product").fit_blocks([TABLE, with_odd("maybe")])
    twice = {name: np.concatenate([TABLE[name], with_odd(None)[name]]) for name in TABLE}
    np.testing.assert_allclose(blocks.prior_, Fuser(SOURCES, method="ml-product").fit(twice).prior_, atol=1e-6)
    long = pd.DataFrame({"item": [1, 1, 2], "source": ["A", "B", "B"], "value": ["yes", "no", "maybe"]})
    with pytest.warns(mixent.DataWarning):
        Fuser(SOURCES, method="product").fit(long_answers(long))


def test_an_unknown_answer_is_an_error():
    strict = Fuser(SOURCES, unknown="error")
    for action in (
        lambda: strict.fit(with_odd("maybe")),
        lambda: strict.fit(TABLE).predict_proba(with_odd("maybe")),
        lambda: strict.fit(TABLE).fuse_one({"B": "maybe"}),
        lambda: strict.fit_blocks([with_odd("maybe")]),
    ):
        with pytest.raises(ValueError, match="got 'maybe'"):
            action()
    with mixent.config_context(strict=True), pytest.raises(ValueError, match="maybe"):
        Fuser(SOURCES).fit(with_odd("maybe"))
    with pytest.raises(ValueError, match="unknown"):
        Fuser(SOURCES, unknown="drop").fit(TABLE)


def test_an_unknown_answer_is_a_symbol_with_the_rates_of_its_pseudo_counts():
    fuser = Fuser(SOURCES, method="product", class_prior="uniform", unknown="symbol").fit(with_odd("maybe"))
    known, extended = fuser._first_layout.calibrations
    assert known == A and extended.symbols == ("no", "yes", "maybe")
    np.testing.assert_allclose(extended.confusion[:, 2], 0.5 / (50 + 1.5))
    b = fuser.explain({"A": [None], "B": ["maybe"]})[0, 1]
    np.testing.assert_allclose(b, 0.0, atol=1e-12)  # as many rows of each class: no evidence before it is learned
    with pytest.warns(mixent.DataWarning):  # the rule has no rates of yet another answer
        fuser.predict_proba({"A": ["no"], "B": ["perhaps"]})
    assert Fuser(SOURCES, unknown="symbol").fit(TABLE)._first_layout.calibrations == (A, B)


def test_labelled_items_teach_an_unknown_answer():
    y = np.where(ODD, "yes", None)
    fuser = Fuser(SOURCES, method="product", unknown="symbol").fit(with_odd("maybe"), y)
    assert fuser.fuse_one({"B": "maybe"})["yes"] > 0.9
    with pytest.warns(mixent.DataWarning):
        ignored = Fuser(SOURCES, method="product").fit(with_odd("maybe"), y)
    with pytest.warns(mixent.DataWarning):
        assert ignored.fuse_one({"B": "maybe"})["yes"] < 0.5


def test_a_guess_can_have_a_further_symbol():
    guesses = {name: Calibration.guess(["no", "yes"]) for name in "AB"}
    fuser = Fuser(guesses, unknown="symbol").fit(TABLE)  # A says "unsure"
    assert fuser.classes_.tolist() == ["no", "yes"] and fuser.confusion_["A"].shape == (2, 3)
    assert np.isfinite(fuser.posterior_).all()


@pytest.mark.parametrize("unknown", ["ignore", "symbol", "error"])
def test_a_wrong_form_of_all_answers_is_an_error(unknown):
    numbers = {"A": Calibration.from_counts([[8, 2], [1, 9]], [1, 2])}
    for answers in (["1", "2"], [0.2, 0.8]):
        with pytest.raises(ValueError, match="'A' must be"):
            Fuser(numbers, unknown=unknown).fit({"A": answers})


def test_a_list_of_class_priors_is_in_the_order_of_the_calibrations():
    turned = {"A": Calibration.from_counts([[4, 16], [60, 20]], ["yes", "no"], ["no", "yes"])}
    turned["B"] = Calibration.from_counts([[45, 5], [10, 40]], ["yes", "no"])
    table = {"A": np.where(TABLE["A"] == "unsure", None, TABLE["A"]), "B": TABLE["B"]}
    by_name = Fuser(turned, method="product", class_prior={"yes": 0.2, "no": 0.8})
    labels = np.where(np.arange(N) < 10, "no", None)
    for given in ([0.2, 0.8], (0.2, 0.8), np.array([0.2, 0.8]), pd.Series([0.2, 0.8], index=[3, 4])):
        in_order = Fuser(turned, method="product", class_prior=given)
        for y in (None, labels):
            in_order.fit(table, y), by_name.fit(table, y)
            assert in_order.classes_.tolist() == ["no", "yes"]
            np.testing.assert_array_equal(in_order.posterior_, by_name.posterior_)
        in_order.update_prior(table), by_name.update_prior(table)  # the labelled items have not changed the order
        assert in_order.prior_shift_.p_value == by_name.prior_shift_.p_value
    with pytest.raises(ValueError, match="different orders"):
        Fuser({"A": A, "B": turned["B"]}, class_prior=[0.2, 0.8]).fit(table)
    Fuser({"A": A, "B": turned["B"]}, class_prior={"yes": 0.2, "no": 0.8}).fit(table)
    assert Fuser(SOURCES, method="product", class_prior=[0.8, 0.2]).fit(TABLE).prior_[0] == 0.8
