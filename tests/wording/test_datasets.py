"""Wording of datasets."""

import numpy as np
import pytest

from mixent.datasets import make_orchestra


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_rows": 0}, "n_rows must be a whole number of at least 1; got 0"),
        ({"n_rows": 2.5}, "n_rows must be a whole number"),
        ({"n_rows": True}, "n_rows must be a whole number"),
        ({"n_features": 1}, "n_features must be a whole number of at least 2; got 1"),
        ({"separation": -1}, "separation must be a finite number of at least 0; got -1"),
        ({"separation": float("nan")}, "separation must be a finite number"),
        ({"separation": "far"}, "separation must be a finite number of at least 0; got 'far'"),
    ],
)
def test_bad_options_say_what_is_wanted(change, message):
    with pytest.raises(ValueError, match=message):
        make_orchestra(**change)


def test_the_posterior_wants_the_columns_drawn():
    with pytest.raises(ValueError, match=r"X must have 2 columns, as in `make_orchestra`; got shape \(4, 3\)"):
        make_orchestra(1).posterior(np.zeros((4, 3)))
