"""Wording of cli, registered."""

from ...cli.test_registered import FIT


def test_what_it_cannot_do_is_refused(fails, fitted, majority):
    predict = ("predict", "m.mixent", "{stock}/data.csv", "-o", "o.csv")
    for option in ("--density", "--explain", "--adjust-priors"):
        assert f"{option} is not used" in fails(*predict, option, status=2)
    assert "--weight is not used" in fails(*FIT, "--weight", "w", status=2)
    assert "has no explanations" in fails("explain", "m.mixent", "{stock}/data.csv")
    assert "cannot be updated" in fails("update", "m.mixent", "{stock}/data.csv", "-t", "class")
    assert "no model of the columns" in fails("impute", "m.mixent", "{stock}/data.csv", "-o", "o.csv")
    assert "strength must be a float; got 'x'" in fails(*FIT, "--set", "strength=x")
