"""Wording of report, cases."""

import numpy as np
import pytest

import mixent as mx
from mixent.report.cases import select_cases

from ...report.test_cases import CODES, X, Y


@pytest.fixture(scope="module")
def mixture():
    return mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(X, Y)


def test_a_row_selected_twice_is_shown_once(mixture):
    proba = np.eye(3)[CODES]
    low = int(mixture.score_samples(X).argmin())
    proba[low] = [0.2, 0.4, 0.4]
    found = [case for case in select_cases(mixture, X, Y, proba) if case.row == low]
    assert len(found) == 1 and "; the row of lowest density" in found[0].why
