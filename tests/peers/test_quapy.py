"""QuaPy's EMQ (class shares of a batch by EM), beside adjust_priors of classifiers and mixent.Fuser."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from mixent import Calibration, Fuser, MixtureClassifier, Source
from mixent.base.priors import shifted_priors
from mixent.studies import prior_shift_study

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED = json.loads((GOLDEN / "peers.json").read_text())["emq"]


@pytest.fixture(scope="module")
def batch():
    spec = importlib.util.spec_from_file_location("peers_numbers", GOLDEN / "peers_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.posteriors()


@pytest.fixture(scope="module")
def model():
    X, y = make_blobs([100, 60, 40], 2, centers=[[0, 0], [3, 0], [0, 3]], random_state=0)
    return MixtureClassifier(1, "EEE", across_classes=True).fit(X, y)


@pytest.fixture(scope="module")
def shifted():
    return make_blobs([30, 60, 210], 2, centers=[[0, 0], [3, 0], [0, 3]], random_state=1)


def test_covered_shares_by_em(batch):
    prior, proba = batch
    ratio = np.log(proba) - np.log(prior)
    run = shifted_priors(ratio, prior, tol=0.0, max_iter=100_000)
    np.testing.assert_allclose(run.params, EXPECTED["prior"], atol=1e-8)


def test_covered_corrected_posteriors(batch):
    prior, proba = batch
    run = shifted_priors(np.log(proba) - np.log(prior), prior, tol=0.0, max_iter=100_000)
    adjusted = proba / prior * run.params
    np.testing.assert_allclose((adjusted / adjusted.sum(axis=1, keepdims=True))[:10], EXPECTED["posterior"], atol=1e-8)


def test_covered_any_classifier(model, shifted):
    X, y = shifted
    adjusted = model.adjust_priors(X)
    np.testing.assert_allclose(adjusted.class_prior_, np.bincount(y) / 300, atol=0.06)
    assert adjusted.score(X, y) >= model.score(X, y)


def test_covered_shares_are_the_mean_posterior(model, shifted):
    adjusted = model.adjust_priors(shifted[0], tol=1e-14)
    np.testing.assert_allclose(adjusted.predict_proba(shifted[0]).mean(axis=0), adjusted.class_prior_, atol=1e-6)


def test_covered_the_likelihood_never_falls(model, shifted):
    accepted = [step.objective for step in model.adjust_priors(shifted[0]).prior_run_.trace if step.accepted]
    assert (np.diff(accepted) >= -1e-9).all()


def test_covered_an_unshifted_batch_keeps_its_shares(model):
    X, y = make_blobs([200, 120, 80], 2, centers=[[0, 0], [3, 0], [0, 3]], random_state=2)
    np.testing.assert_allclose(model.adjust_priors(X).class_prior_, np.bincount(y) / 400, atol=0.06)


def test_covered_a_class_that_is_gone(model, shifted):
    X, y = shifted
    rest = model.adjust_priors(X[y != 0])
    assert rest.class_prior_[0] < 0.05


def test_covered_shares_from_labels_only():
    """From counts of predicted labels, as ACC and its relatives do."""
    rng = np.random.default_rng(0)
    truth = rng.choice(2, 2000, p=[0.8, 0.2])
    answer = np.where(rng.random(2000) < 0.9, truth, 1 - truth)
    fuser = Fuser({"a": Calibration.from_counts([[900, 100], [100, 900]], [0, 1])}, method="ml-product")
    np.testing.assert_allclose(fuser.fit({"a": answer}).prior_, [0.8, 0.2], atol=0.03)


def test_covered_probabilities_as_answers(batch):
    prior, proba = batch
    counts = 1e6 * prior[:, None] * np.full((3, 3), 0.1) + 1e6 * np.diag(prior)
    source = Source(Calibration.from_counts(counts, [0, 1, 2], priors=prior))
    fuser = Fuser({"a": source}, method="ml-product").fit({"a": proba})
    assert fuser.prior_.argmax() == np.argmax(EXPECTED["prior"])


def test_different_the_model_is_copied(model, shifted):
    """`adjust_priors` returns a classifier with the new priors; `quantify` returns only the shares."""
    before = model.class_prior_.copy()
    adjusted = model.adjust_priors(shifted[0])
    assert type(adjusted) is type(model) and (model.class_prior_ == before).all()


def test_different_intervals_of_shares():
    """`prior_estimate_` has confidence intervals, and `prior_shift_` a test of whether the shares have shifted."""
    rng = np.random.default_rng(1)
    answer = rng.choice(2, 500, p=[0.3, 0.7])
    fuser = Fuser({"a": Calibration.from_counts([[900, 100], [100, 900]], [0, 1])}, method="ml-product")
    fuser.fit({"a": answer})
    estimate = fuser.prior_estimate_
    assert (estimate.low <= fuser.prior_ + 0.02).all() and (fuser.prior_ - 0.02 <= estimate.high).all()


def test_different_calibration_belongs_to_the_classifier(model):
    """Calibration on held-out rows belongs to the classifiers (`search="cv"`, MED), not to the quantifier (`calib`)."""
    with pytest.raises(TypeError):
        model.adjust_priors(np.zeros((2, 2)), calib="bcts")


def test_different_protocols_are_a_study():
    """Batches of artificial prevalence are drawn by `prior_shift_study`; there are no `APP` and `NPP` protocols."""
    assert callable(prior_shift_study)


def test_absent_other_quantifiers():
    """Other quantifiers: PACC, HDy, DyS, KDEy, MedianSweep, SVM(KLD), ensembles and neural ones."""
    assert not hasattr(MixtureClassifier(1), "quantify")


def test_absent_errors_of_quantification():
    """Errors of quantification (AE, RAE, KLD) and model selection by them."""
    import mixent.evaluate

    assert not any(hasattr(mixent.evaluate, name) for name in ("ae", "rae", "mkld"))
