"""Wording of med, options."""

import pytest

from mixent.med import (
    MEDClassifier,
    MEDTreeClassifier,
)


def test_gamma_is_a_parameter_of_polynomial_and_rbf():
    tree = MEDTreeClassifier()
    tree.set_params(margin__target=2.0, tables="integrated", tables__ess=3.0, trees__n_trees=2)
    with pytest.raises(ValueError, match="gamma is a parameter of Polynomial and RBF; set kernel="):
        MEDClassifier("linear").set_params(kernel__gamma=1.0)
