"""Descriptions of Parzen windows and kernel Fisher discriminants hold the values of the fitted model."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from mixent import KernelFisherClassifier, ParzenClassifier
from mixent.base.document import Figure
from mixent.base.registry import entry_of
from mixent.options import RBF

X, Y = load_wine(return_X_y=True)


def figures(document):
    return [block for section in document.sections for block in section.content if isinstance(block, Figure)]


@pytest.mark.parametrize("per_class", [False, True])
def test_parzen(per_class):
    model = ParzenClassifier(per_class=per_class).fit(X, Y)
    document = model.summary()
    facts = json.loads(json.dumps(document.facts))
    assert facts["n_windows"] == 178 and facts["tried"] == model.bandwidths_tried_
    assert facts["bandwidth"] == (model.bandwidth_.tolist() if per_class else model.bandwidth_)
    assert facts["leave_one_out"] == {"log_loss": model.loo_log_loss_, "error": model.loo_error_}
    assert facts["criterion"] == "conditional"
    (figure,) = figures(document)
    (ax,) = figure.figure().get_axes()
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [entry["bandwidth"] for entry in facts["tried"]])
    assert len(ax.lines) == 2 + 3 * per_class


def test_a_given_bandwidth_and_rows_that_cannot_be_left_out():
    given = ParzenClassifier(0.7).fit(X, Y).summary()
    assert given.facts["criterion"] is None and not figures(given) and "as given" in str(given)
    alone = ParzenClassifier().fit([[1.0], [2.0], [4.0]], ["p", "q", "r"]).summary()
    assert alone.facts["leave_one_out"] == {"log_loss": None, "error": None} and "Scott's rule" in str(alone)


def test_kernel_fisher():
    model = KernelFisherClassifier(random_state=0).fit(X, Y)
    document = model.summary()
    facts = json.loads(json.dumps(document.facts))
    assert (facts["kernel"], facts["n_discriminants"]) == ("rbf", 2)
    assert (facts["gamma"], facts["shrinkage"]) == (model.gamma_, model.shrinkage_) and facts["tried"] == model.tried_
    (figure,) = figures(document)
    (ax,) = figure.figure().get_axes()
    assert len(ax.lines) == len({entry["gamma"] for entry in model.tried_}) + 1
    (rows,) = entry_of(model).on_rows(model, X, Y)
    (ax,) = rows.figure().get_axes()
    drawn = np.concatenate([np.column_stack(line.get_data()) for line in ax.lines[1:4]])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(model.transform(X)[:, :2], axis=0))


def test_one_discriminant_has_a_histogram():
    X2, y2 = load_breast_cancer(return_X_y=True)
    model = KernelFisherClassifier("linear", shrinkage=0.1).fit(X2, y2)
    assert not figures(model.summary()) and model.summary().facts["gamma"] is None
    (rows,) = entry_of(model).on_rows(model, X2, None)
    (ax,) = rows.figure().get_axes()
    assert sum(patch.get_height() for patch in ax.patches) == len(y2)


def test_only_what_was_varied_is_called_chosen():
    assert "given" not in str(KernelFisherClassifier(RBF(), shrinkage=0.1).fit(X, Y).summary().sections[0])
    some = KernelFisherClassifier(RBF(0.1)).fit(X, Y)
    assert f"; shrinkage chosen from {len(some.tried_)} settings" in " ".join(str(some.summary()).split())
