"""Wording of mixtures, clustering."""

import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import GaussianMixture


@pytest.mark.usefixtures("plain_em")
def test_warm_start_in_two_halves_is_one_run(draw, same):
    X, _ = draw(n=200)
    options = {"tol": 0, "random_state": 0}
    whole = GaussianMixture(3, max_iter=20).set_params(**options)
    halves = GaussianMixture(3, max_iter=10, warm_start=True).set_params(**options)
    with pytest.warns(ConvergenceWarning, match="max_iter was reached first; raise it, or loosen tol"):
        whole.fit(X)
    with pytest.warns(ConvergenceWarning, match="max_iter was reached first"):
        halves.fit(X).fit(X)
    same(whole, halves, 1e-9)
