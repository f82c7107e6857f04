"""Simulated answers have the accuracies, correlations and priors that are stated."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mixent import datasets
from mixent.datasets import simulate_vendors, simulate_verification, simulate_votes
from mixent.simulated import HEALTH, _discriminant, _pmf


def near(found, wanted, n):
    """Within 4.5 standard errors of a share of n rows."""
    return abs(found - wanted) <= 4.5 * np.sqrt(wanted * (1 - wanted) / n)


def test_they_are_public_where_datasets_are():
    assert set(datasets.__all__) == {
        "Orchestra", "make_orchestra", "simulate_vendors", "simulate_verification", "simulate_votes"
    }  # fmt: skip


@pytest.mark.parametrize("priors", [(0.3, 0.7), (0.1, 0.2, 0.3, 0.4)])
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_votes_have_the_accuracy_whatever_the_correlation(priors, correlation):
    n, accuracy = 20_000, (0.9, 0.7, 0.55)
    votes = simulate_votes(
        n, priors=priors, n_sources=3, accuracy=accuracy, correlation=correlation, n_calibration=n, random_state=0
    )
    classes = len(priors)
    assert all(near(np.mean(votes.truth == k), priors[k], n) for k in range(classes))
    for j, name in enumerate(("source 1", "source 2", "source 3")):
        for truth, said in ((votes.truth, votes.answers[name]), votes.labelled[name]):
            assert said.dtype.kind == "i" and near(np.mean(said == truth), accuracy[j], n)
            for k in range(classes):  # errors go to every other class alike
                mine = said[truth == k]
                for other in set(range(classes)) - {k}:
                    assert near(np.mean(mine == other), (1 - accuracy[j]) / (classes - 1), len(mine))
        rows = votes.labelled[name][0]
        assert all(near(np.mean(rows == k), 1 / classes, n) for k in range(classes))
    assert votes.accuracy.tolist() == list(accuracy) and votes.priors == pytest.approx(priors)


@pytest.mark.parametrize("r", [0.0, 0.5, 1.0])
def test_errors_of_two_sources_correlate_by_the_square(r):
    n = 40_000
    votes = simulate_votes(n, priors=(0.2, 0.3, 0.5), n_sources=2, correlation=r, random_state=1, n_calibration=0)
    wrong = [said != votes.truth for said in votes.answers.values()]
    assert abs(np.corrcoef(*wrong)[0, 1] - r**2) < 4.5 / np.sqrt(n)
    both = wrong[0] & wrong[1]
    first, second = (said[both] for said in votes.answers.values())
    common = r**2 * 0.2 / (r**2 * 0.2 + (1 - r**2) * 0.04)  # of those both wrong, on the common pair
    assert near(np.mean(first == second), common + (1 - common) / 2, both.sum()) or r == 1
    if r == 1:
        np.testing.assert_array_equal(first, second)


def test_different_accuracies_on_the_common_pair_are_nested():
    votes = simulate_votes(2000, n_sources=2, accuracy=(0.9, 0.6), correlation=1.0, random_state=0)
    wrong = [said != votes.truth for said in votes.answers.values()]
    assert (wrong[1] | ~wrong[0]).all() and wrong[1].sum() > wrong[0].sum()


def test_copies_are_identical_and_change_nothing_else():
    plain = simulate_votes(300, n_sources=3, correlation=0.4, abstain=0.1, random_state=5)
    votes = simulate_votes(300, n_sources=3, correlation=0.4, abstain=0.1, n_copies=5, random_state=5)
    assert len(votes.answers) == 8 and list(votes.answers)[3:] == [f"source 1 copy {i}" for i in range(1, 6)]
    assert votes.copy_of == {f"source 1 copy {i}": "source 1" for i in range(1, 6)} and not plain.copy_of
    for copy in votes.copy_of:
        np.testing.assert_array_equal(votes.answers[copy], votes.answers["source 1"])
        assert votes.labelled[copy] is votes.labelled["source 1"]
    for name, said in plain.answers.items():
        np.testing.assert_array_equal(votes.answers[name], said)
    more = simulate_votes(300, n_sources=3, correlation=0.4, abstain=0.1, n_calibration=7, random_state=5)
    for name, said in plain.answers.items():
        np.testing.assert_array_equal(more.answers[name], said)
    assert more.labelled["source 2"][1].shape == (7,)
    longer = simulate_votes(301, n_sources=3, correlation=0.4, abstain=0.1, random_state=5)
    np.testing.assert_array_equal(longer.labelled["source 2"], plain.labelled["source 2"])


def test_each_source_has_its_own_calibration_rows():
    votes = simulate_votes(10, n_sources=2, n_calibration=20_000, calibration_priors=(0.9, 0.1), correlation=1.0)
    (rows, said), (others, also) = votes.labelled["source 1"], votes.labelled["source 2"]
    assert near(rows.mean(), 0.1, 20_000) and abs(np.corrcoef(rows, others)[0, 1]) < 4.5 / np.sqrt(20_000)
    assert abs(np.corrcoef(rows != said, others != also)[0, 1]) < 4.5 / np.sqrt(20_000)


def test_abstentions_are_none_and_tell_nothing():
    votes = simulate_votes(20_000, abstain=0.25, n_sources=2, n_calibration=20_000, random_state=0)
    for truth, said in ((votes.truth, votes.answers["source 2"]), votes.labelled["source 1"]):
        absent = np.array([value is None for value in said])
        assert said.dtype == object and near(absent.mean(), 0.25, 20_000)
        assert abs(np.corrcoef(absent, truth)[0, 1]) < 4.5 / np.sqrt(20_000)
        assert near(np.mean(said[~absent] == truth[~absent]), 0.8, (~absent).sum())


@pytest.mark.parametrize("simulate", [simulate_votes, simulate_vendors])
def test_a_seed_repeats_everything(simulate):
    first, again, other = (simulate(50, random_state=seed) for seed in (3, 3, 4))
    for name, said in first.answers.items():
        np.testing.assert_array_equal(said, again.answers[name])
        np.testing.assert_array_equal(first.labelled[name][1], again.labelled[name][1])
        assert (said != other.answers[name]).any()


def test_vendors_have_priors_and_separations_as_stated():
    batch = simulate_vendors(
        20_000, prevalence=0.05, training_prevalence=(0.3, 0.5), n_calibration=20_000, random_state=0
    )
    assert near(np.mean(batch.truth == "ill"), 0.05, 20_000) and batch.classes.tolist() == ["healthy", "ill"]
    assert [p.tolist() for p in batch.training_priors.values()] == [[0.7, 0.3], [0.5, 0.5]]
    for (name, proba), share in zip(batch.answers.items(), (0.3, 0.5)):
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
        truth, own = batch.labelled[name]
        assert near(np.mean(truth == "ill"), share, 20_000)
        odds = np.log(own[:, 1] / own[:, 0])
        gap = odds[truth == "ill"].mean() - odds[truth == "healthy"].mean()
        # the linear discriminant has its best direction up to the noise of 500 rows: d' = 2
        assert 1.8 < gap / odds[truth == "ill"].std() < 2.05
        # right at its own prior, wrong at that of the batch
        assert abs(own[:, 1].mean() - share) < 0.03 < abs(proba[:, 1].mean() - 0.05)


def test_the_exact_posterior_is_calibrated_and_best():
    batch = simulate_vendors(20_000, prevalence=0.2, random_state=2)
    ill, p = batch.truth == "ill", batch.true_proba[:, 1]
    np.testing.assert_allclose(batch.true_proba.sum(axis=1), 1, rtol=1e-12)
    for g in (np.ones(len(p)), p, *(proba[:, 1] for proba in batch.answers.values())):  # residuals tell nothing
        miss = (ill - p) * g
        assert abs(miss.mean()) < 4.5 * miss.std() / np.sqrt(len(p))
    brier = [np.mean((ill - q) ** 2) for q in (p, *(proba[:, 1] for proba in batch.answers.values()))]
    assert brier[0] < min(brier[1:])


def test_overlap_is_what_vendors_have_in_common():
    correlations = []
    for overlap in (0.0, 0.5, 1.0):
        batch = simulate_vendors(4000, overlap=overlap, n_training=20_000, random_state=0)
        well = batch.truth == "healthy"
        odds = [np.log(p[well, 1] / p[well, 0]) for p in batch.answers.values()]
        correlations.append(np.corrcoef(*odds)[0, 1])
    np.testing.assert_allclose(correlations, [0, 0.5, 1], atol=0.07)


def test_the_discriminant_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    ill = rng.random(200) < 0.3
    X = rng.normal(size=(200, 4)) @ (np.eye(4) + 0.3) + np.outer(ill, [1, 0, 2, -1])
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, HEALTH[ill.astype(int)])
    np.testing.assert_allclose(_pmf(_discriminant(X, ill), X), theirs.predict_proba(X), rtol=1e-8)


def test_verification_has_the_sizes_of_the_document():
    found = simulate_verification(random_state=0)
    for part, sizes in ((found.development, (600, 40_000)), (found.evaluation, (400, 111_800))):
        assert (np.sum(part.truth == "client"), np.sum(part.truth == "impostor")) == sizes
        assert list(part.scores) == ["system 1", "system 2"]
    again = simulate_verification(500, 300, random_state=0)
    np.testing.assert_array_equal(again.development.llr, found.development.llr)  # its own numbers
    assert len(again.evaluation.truth) == 800
    other = simulate_verification(500, 300, development=(9, 9), random_state=0)
    np.testing.assert_array_equal(again.evaluation.llr, other.evaluation.llr)


def test_scores_are_increasing_functions_of_normal_ones():
    shift, r = (3.0, 2.0, 1.0), 0.4
    part = simulate_verification(
        30_000, 30_000, development=(1, 1), n_systems=3, separation=shift, correlation=r, random_state=0
    ).evaluation
    client = part.truth == "client"
    first, second, third = part.scores.values()
    assert np.abs(first).max() <= 1
    z = np.column_stack([2 * np.arctanh(first) + 1.5, (second + 40) / 10, 2 * np.arctanh(third) + 0.5])
    for mine, means in ((client, shift), (~client, (0, 0, 0))):
        np.testing.assert_allclose(z[mine].mean(axis=0), means, atol=4.5 / np.sqrt(30_000))
        np.testing.assert_allclose(np.corrcoef(z[mine].T), (1 - r) * np.eye(3) + r, atol=0.02)
        np.testing.assert_allclose(z[mine].std(axis=0), 1, atol=0.02)
    assert near(np.mean(second[~client] >= -40 + 10), norm.cdf(-1), 30_000)
    cov = (1 - r) * np.eye(3) + r
    ratio = multivariate_normal(shift, cov).logpdf(z) - multivariate_normal(np.zeros(3), cov).logpdf(z)
    np.testing.assert_allclose(part.llr, ratio, atol=1e-6)
