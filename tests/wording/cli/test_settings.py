"""Wording of cli, settings."""

import pytest
import typer

from mixent.cli.parsing import read_settings

from ...cli.test_settings import make


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["C"], "--set must be KEY=VALUE, such as .*; got 'C'"),
        (["=2"], "--set must be KEY=VALUE"),
        (["search.=2"], "--set must be KEY=VALUE"),
        (["C=1", "C=2"], "--set C was given twice"),
        (["pairs=[a, b]"], "--set pairs: .* is not a Python literal; quote the words"),
    ],
)
def test_what_is_no_setting(texts, message):
    with pytest.raises(typer.BadParameter, match=message):
        read_settings(texts)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["strenght=1"],
            "unknown parameter 'strenght' of majority; did you mean 'strength'. Choose one of search, str",
        ),
        (["magic=1"], "unknown parameter 'magic' of majority; choose one of search, strength$"),
        (["serch.most=1"], "unknown parameter 'serch' of majority; did you mean 'search'"),
        (["search.mots=1"], "unknown parameter 'mots' of search; did you mean 'most'. Choose one of most$"),
        (["strength.x=1"], "strength is 1.0, which has no parameters; set strength itself"),
        (["random_state=1"], "--set random_state is not used: --seed sets it"),
    ],
)
def test_names_that_do_not_exist(majority, texts, message):
    with pytest.raises(typer.BadParameter, match=message):
        make(*texts)


def test_a_group_that_is_off_and_an_unknown_model(majority):
    with pytest.raises(ValueError, match="most is a parameter of Few; set search='few' or search='many' too"):
        make("search=none", "search.most=2")
    with pytest.raises(typer.BadParameter, match="unknown model 'majorty'; did you mean 'majority'"):
        make(name="majorty")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("search.order=up", "majority", "order is a parameter of All; set search='all' too"),
        ("training.blend=0.5", "mixture", "blend is a parameter of Conditional; set training='conditional' too"),
        ("features.n_bins=4", "maxent", "n_bins is a parameter of BinFeatures; set features='bins' too"),
        ("mixture.training.blend=0.5", "stack", "blend is a parameter of Conditional; set training='conditional' too"),
    ],
)
def test_a_parameter_of_another_short_form(majority, text, name, message):
    with pytest.raises(ValueError, match=message):
        make(text, name=name)
