"""Wording of cli, models."""


def test_an_unknown_model_is_refused_with_the_closest_name(fails):
    assert "unknown model 'med-treee'; did you mean 'med-tree'?" in fails("models", "med-treee", status=2)
