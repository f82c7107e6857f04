"""Wording of cli, help."""


def test_predictions_and_decisions_are_explained(mixent):
    text = " ".join(mixent("predict", "--help").stdout.split())
    assert "is the most probable class" in text and "whose expected cost is lowest" in text
