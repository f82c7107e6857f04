"""Wording of report, model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mixent as mx
from mixent.report import model_report

from ...report.test_model import CODES, EVEN, FRAME, X, Y


@pytest.fixture(scope="module")
def mixture():
    return mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(FRAME[EVEN], Y[EVEN])


def test_rows_without_a_label_are_not_scored(tmp_path, read, mixture):
    y = Y.astype(object)
    y[:30] = None
    assert "of 120 with a label" in read(model_report(tmp_path / "r.html", mixture, FRAME, y)).words


def test_labels_that_are_numbers_are_one_class_whatever_their_type(tmp_path, read):
    model = mx.MixtureClassifier(1, random_state=0).fit(X, CODES)
    labels = CODES.astype(float)
    labels[:5] = np.nan
    page = read(model_report(tmp_path / "r.html", model, X, labels))
    assert f"{int((model.predict(X) != CODES)[5:].sum())} of 145 with a label" in page.words


def test_columns_are_read_as_the_model_reads_them(tmp_path, read):
    codes = pd.DataFrame({"code": np.arange(60) % 3, "x": np.arange(60.0) % 7})
    model = mx.MixtureClassifier(1, categorical=["code"], random_state=0).fit(codes, np.arange(60) % 2)
    assert "1 of numbers, 1 of categories" in read(model_report(tmp_path / "r.html", model, codes)).words


def test_what_is_refused(tmp_path, mixture):
    out = tmp_path / "r.html"
    with pytest.raises(TypeError, match="StandardScaler is neither a registered estimator nor a classifier"):
        model_report(out, StandardScaler().fit(X), X)
    with pytest.raises(TypeError, match="FisherKernel transforms rows and predicts nothing"):
        model_report(out, mx.FisherKernel(mx.GaussianMixture(1)), X)
    with pytest.raises(TypeError, match="LinearSVC predicts no probabilities"):
        model_report(out, LinearSVC().fit(X, Y), X)
    with pytest.raises(ValueError, match="X is missing: the page shows MixtureClassifier on rows"):
        model_report(out, mixture)
    with pytest.raises(ValueError, match="y is only used with a classifier; GaussianMixture has no classes"):
        model_report(out, mx.GaussianMixture(1).fit(X), X, Y)
    with pytest.raises(ValueError, match="sample_weight is only used with a classifier and y"):
        model_report(out, mixture, FRAME, sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="groups is only used with a model of sequences; MaxEntJoint is none"):
        model_report(out, mx.MaxEntJoint().fit(FRAME), FRAME, groups=np.zeros(150))
    with pytest.raises(ValueError, match="y must have one label for each of 150 rows; it has 149"):
        model_report(out, mixture, FRAME, Y[1:])
    with pytest.raises(ValueError, match="row 0 of y has the label 'oak', which is not among the classes"):
        model_report(out, mixture, FRAME, ["oak"] * 150)
    assert not out.exists()
