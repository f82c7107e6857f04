"""Wording of mixtures, hard cases."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import GaussianMixture, MixtureClassifier
from mixent.data import DataWarning


@pytest.mark.parametrize("name", ["VII", "VVI", "VVV"])
def test_gaussianmixture_component_collapsed_onto_too_few_distinct_rows_re_seeded(duplicated, name):
    start = np.zeros((90, 2))
    start[:60, 0] = start[60:, 1] = 1.0
    with pytest.warns(
        ConvergenceWarning,
        match=r"GaussianMixture: component 1 collapsed onto too few distinct rows; (re-seeded|dropped)",
    ):
        GaussianMixture(2, name, prior=None, init=start).fit(duplicated)


def test_the_likelihood_has_no_maximum():
    x = np.random.default_rng(0).normal(size=(51, 1))
    X = np.concatenate([x, x + 1e-7 * np.random.default_rng(1).normal(size=(51, 1))], axis=1)
    words = (
        "GaussianMixture did not converge: the likelihood has no maximum: a column is constant or depends on others; "
        "drop such columns, or use a prior"
    )
    with pytest.warns(ConvergenceWarning, match=words):
        GaussianMixture(1, prior=None).fit(X)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("prior", ["auto", None])
def test_every_column_named_was_constant_in_training(draw, prior):
    X, label = draw(missing=0.1)
    more = np.column_stack([X[:, 0], np.full(len(X), 7.0), X[:, 1:]])
    more[::9, 1] = np.nan
    _one, other = (MixtureClassifier(1, "VVV", prior=prior).fit(Z, label) for Z in (X, more))
    with pytest.raises(ValueError, match="all these columns were constant in training; pass at least one"):
        other.marginal([1])


def test_an_all_missing_column_is_ignored_by_name(draw):
    X, label = draw()
    X[:, 1] = np.nan
    with pytest.warns(DataWarning, match="^without values, and therefore ignored: column 'x1'$"):
        MixtureClassifier(1, "VVV").fit(X, label)
