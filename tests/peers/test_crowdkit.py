"""crowd-kit's Dawid-Skene and majority vote, beside mixent.Fuser without labels of items."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mixent import Calibration, Fuser
from mixent.fusion import long_answers

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED = json.loads((GOLDEN / "peers.json").read_text())["dawid_skene"]
WORKERS = [f"worker {j}" for j in range(5)]


@pytest.fixture(scope="module")
def labels():
    spec = importlib.util.spec_from_file_location("peers_numbers", GOLDEN / "peers_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.votes()


@pytest.fixture(scope="module")
def votes(labels):
    """A column of answers for each worker, None where it is silent."""
    return {name: [None if v < 0 else int(v) for v in labels[:, j]] for j, name in enumerate(WORKERS)}


def nothing_assumed():
    return {name: Calibration.guess([0, 1, 2], n_rows=1e-9) for name in WORKERS}


@pytest.fixture(scope="module")
def fit(votes):
    return Fuser(nothing_assumed(), method="dawid-skene", max_iter=50_000).fit(votes)


def test_covered_posteriors(fit):
    np.testing.assert_allclose(fit.posterior_, EXPECTED["posterior"], atol=1e-6)
    np.testing.assert_array_equal(fit.labels_, np.argmax(EXPECTED["posterior"], axis=1))


def test_covered_priors(fit):
    np.testing.assert_allclose(fit.prior_, EXPECTED["prior"], atol=1e-7)


def test_covered_confusion_matrices_of_workers(fit):
    for j, name in enumerate(WORKERS):
        np.testing.assert_allclose(fit.confusion_[name], EXPECTED["confusion"][j], atol=1e-6)
        np.testing.assert_allclose(fit.confusion_[name].sum(axis=1), 1)


def test_covered_the_likelihood_never_falls(fit):
    accepted = [step.objective for step in fit.history_ if step.accepted]
    assert len(accepted) > 3 and (np.diff(accepted) >= -1e-9).all()


def test_covered_a_long_table(labels, fit):
    item, worker = np.nonzero(labels >= 0)
    frame = pd.DataFrame({"task": item, "worker": [WORKERS[w] for w in worker], "label": labels[item, worker]})
    answers = long_answers(frame, item="task", source="worker", value="label")
    same = Fuser(nothing_assumed(), method="dawid-skene", max_iter=50_000).fit(answers)
    order = np.argsort(answers.items)
    np.testing.assert_allclose(same.posterior_[order], fit.posterior_, atol=1e-6)
    assert same.n_items_ == 80


def test_covered_majority_vote(labels, votes):
    share = np.stack([(labels == c).sum(axis=1) for c in range(3)], axis=1)
    clear = np.sort(share, axis=1)[:, -1] > np.sort(share, axis=1)[:, -2]
    fuser = Fuser(nothing_assumed(), method="majority").fit(votes)
    np.testing.assert_array_equal(fuser.labels_[clear], share[clear].argmax(axis=1))


def test_covered_known_labels_of_some_items(votes):
    truth = [None] * 80
    truth[:3] = [2, 2, 2]
    fuser = Fuser(nothing_assumed(), method="dawid-skene", max_iter=50_000).fit(votes, truth)
    assert fuser.labels_[:3].tolist() == [2, 2, 2]
    np.testing.assert_allclose(fuser.posterior_[:3, 2], 1)


def test_covered_history_of_workers(votes):
    """The counts of earlier work are added to those of the batch, as with `initial_error_strategy="addition"`."""
    counts = 1e6 * np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    sources = nothing_assumed() | {"worker 3": Calibration.from_counts(counts, [0, 1, 2])}
    fuser = Fuser(sources, method="dawid-skene", max_iter=50_000).fit(votes)
    np.testing.assert_allclose(fuser.confusion_["worker 3"], counts / 1e6, atol=1e-3)


def test_covered_labels_of_any_type(votes):
    words = {name: [None if v is None else "abc"[v] for v in column] for name, column in votes.items()}
    fuser = Fuser(method="dawid-skene").fit(words)
    assert fuser.classes_.tolist() == ["a", "b", "c"]


def test_covered_permuted_workers_and_items(votes, fit):
    order = np.random.default_rng(0).permutation(80)
    other = {name: [votes[name][i] for i in order] for name in reversed(WORKERS)}
    same = Fuser(dict(reversed(nothing_assumed().items())), method="dawid-skene", max_iter=50_000).fit(other)
    np.testing.assert_allclose(same.posterior_, fit.posterior_[order], atol=1e-6)


def test_different_workers_are_assumed_better_than_chance(votes, fit):
    """Without calibrations, every worker starts with two assumed rows of each class, so that few answers do not end
    at probabilities of 0 and 1."""
    default = Fuser(method="dawid-skene").fit(votes)
    assert min(matrix.min() for matrix in default.confusion_.values()) > 0
    assert min(matrix.min() for matrix in fit.confusion_.values()) < 1e-6


def test_different_methods_are_one_estimator(votes):
    """Aggregators are methods of one `Fuser`; "auto" is Dawid-Skene where nothing is known about the workers."""
    assert Fuser().fit(votes).method_ == "dawid-skene"


def test_different_probabilities_may_be_answers():
    """Answers may be probabilities or scores, also mixed with labels."""
    calibration = Calibration.from_counts([[80, 20], [10, 90]], ["no", "yes"])
    fuser = Fuser({"a": calibration, "b": calibration}, method="ml-product")
    fuser.fit({"a": np.array([[0.9, 0.1], [0.2, 0.8]] * 5), "b": ["no", "yes"] * 5})
    assert fuser.labels_.tolist() == ["no", "yes"] * 5


def test_absent_other_aggregators(votes):
    """GLAD, MACE, KOS, MMSR, one-coin Dawid-Skene, and aggregation of texts, boxes or pairwise comparisons."""
    with pytest.raises(ValueError, match="method"):
        Fuser(method="glad").fit(votes)


def test_absent_worker_skills(votes):
    """`skills_` and metrics of agreement (Krippendorff's alpha): see `confusion_`, `drift_` and `dependence_`."""
    assert not hasattr(Fuser(method="dawid-skene").fit(votes), "skills_")
