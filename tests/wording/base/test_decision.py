"""Wording of base, decision."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent.base.classifier import ProbabilisticClassifier

from ...base.test_decision import POSTERIORS, Table


@pytest.mark.parametrize("y", [[0, 2, 0, 1], [0, 0, 0, 0]])
def test_labels_of_another_type_have_no_score(y):
    """Of scikit-learn before 1.9 they get 0, as if every row were wrong."""
    with pytest.raises(ValueError, match="Mix of label input types"):
        Table().score(POSTERIORS, y)
    with pytest.raises(ValueError, match="Mix of label input types"):
        Table(classes=(0, 1, 2)).score(POSTERIORS, ["a"] * 4)


@pytest.mark.parametrize(
    ("costs", "reject", "message"),
    [
        (
            [[0, 1], [1, 0]],
            None,
            r"costs must be a 3 x 3 table of numbers, costs\[predicted, true\]; got shape \(2, 2\)",
        ),
        (np.zeros(3), None, r"costs must be a 3 x 3 table of numbers, costs\[predicted, true\]; got shape \(3,\)"),
        ([["a", "b"]], None, r"costs must be a 3 x 3 table of numbers, costs\[predicted, true\]; got \[\['a', 'b'\]\]"),
        ([[0, 1], [1]], None, r"costs must be a 3 x 3 table of numbers"),
        ([[0, 1, np.nan], [1, 0, 1], [1, 1, 0]], None, r"costs must be finite numbers; costs\[0, 2\] is nan"),
        (None, np.inf, "reject must be a finite cost; got inf"),
        (None, np.nan, "reject must be a finite cost; got nan"),
    ],
)
def test_costs_that_make_no_sense_are_refused(costs, reject, message):
    with pytest.raises(ValueError, match=message):
        Table().decision(POSTERIORS, costs, reject=reject)


def test_a_classifier_without_joint_says_what_it_needs():
    class Bare(ProbabilisticClassifier):
        def fit(self, X, y=None):
            self.classes_ = np.array([0, 1])
            return self

    with pytest.raises(AttributeError, match="Bare must define _log_joint"):
        Bare().fit(None).predict([[0.0]])


def test_the_rows_and_columns_of_costs_must_be_named(searched):
    pd = pytest.importorskip("pandas")
    model, X = searched
    costs = pd.DataFrame([[0.0, 1.0], [10.0, 0.0]], index=["b", "a"], columns=["b", "a"])
    with pytest.raises(ValueError, match="the rows and columns of costs must be named by the classes"):
        model.decision(X, costs.rename(columns={"a": "c"}))


def test_adjust_priors_says_when_it_did_not_converge(searched):
    model, X = searched
    with pytest.warns(ConvergenceWarning, match="adjust_priors did not converge"):
        model.adjust_priors(X, tol=0, max_iter=2)
