"""Wording of hmm, estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mixent
from mixent import HiddenMarkovModel, HMMClassifier
from mixent.persistence import SavedFileError


def test_sequence_is_impossible():
    log_emit = np.log(np.full((4, 2), 0.5))
    log_emit[3] = -np.inf
    with pytest.raises(ValueError, match="sequence 1 has probability zero under the initial parameters"):
        HiddenMarkovModel(2, emissions="precomputed").fit(log_emit, lengths=[2, 2])


def test_chain_is_missing_or_no_fittedchain(tmp_path):
    log_emit = np.log(np.random.default_rng(0).dirichlet([1, 1], size=20))
    model = HiddenMarkovModel(2, emissions="precomputed").fit(log_emit, lengths=[5, 15])
    mixent.save(model, tmp_path / "m.mixent")
    damaged = clone(model)
    damaged.schema_, damaged.variables_, damaged.by_row_ = model.schema_, model.variables_, False
    mixent.save(damaged, tmp_path / "d.mixent")
    with pytest.raises(SavedFileError, match="chain_ is missing or is not of type FittedChain"):
        mixent.load(tmp_path / "d.mixent")


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "score_samples", "decode", "sample", "bic", "aic", "score"]
)
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(HiddenMarkovModel(), method)(3 if method == "sample" else np.zeros((3, 3)))


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "score_samples", "sample", "decision"]
)
def test_an_unfitted_classifier_says_so(method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(HMMClassifier(), method)(3 if method == "sample" else np.zeros((3, 3)))
