"""Wording of classical, kernel fisher."""

import numpy as np
import pytest

from mixent import KernelFisherClassifier
from mixent.options import RBF, Polynomial

from ...classical.test_kernel_fisher import rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "sigmoid"}, "kernel must be one of 'rbf', 'linear', 'poly', RBF, Polynomial; got 'sigmoid'"),
        ({"kernel": RBF(-1)}, "gamma must be 'auto', 'scale' or a number > 0; got -1"),
        ({"kernel": Polynomial(0)}, "degree must be a whole number >= 1; got 0"),
        ({"kernel": Polynomial(coef0=-1)}, "coef0 must be a number >= 0, or the kernel would not be positive; got -1"),
        ({"shrinkage": 0}, "shrinkage must be a number > 0, or 'auto'; got 0"),
        ({"kernel": RBF(n_landmarks=0)}, "n_landmarks must be a whole number >= 1, or 'auto' or None; got 0"),
    ],
)
def test_messages(options, message):
    with pytest.raises(ValueError) as caught:
        KernelFisherClassifier(**options).fit(*rows())
    assert message in str(caught.value)


def test_a_kernel_that_overflows_is_named():
    model = KernelFisherClassifier(Polynomial(5, gamma=1.0)).fit(*rows())
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="row 1 is so far from the training rows"):
        model.predict(np.array([[0.0] * 4, [1e100] * 4]))
