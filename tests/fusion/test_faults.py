"""Faulty sources: how often they are named, with which kind, and what "auto" does with them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from mixent.datasets import simulate_votes
from mixent.fusion import Calibration, Fuser
from mixent.fusion.agreement import Agreements, reliability
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import all_marginals
from mixent.fusion.dependence import dependence
from mixent.fusion.drift import degrees_of_freedom
from mixent.fusion.facts import contributions, fusion_facts
from mixent.fusion.faults import _Answers, fault_kind, source_tests
from mixent.fusion.sources import Layout

from .panels import panel, said_of, with_copies


def drawn(seed, *, n=300, J=4, rows=200, accuracy=0.85, correlation=0.0, prior=(0.5, 0.5)):
    """Sources, answers as arrays, and classes."""
    votes = simulate_votes(
        n, priors=prior, n_sources=J, accuracy=accuracy, correlation=correlation, n_calibration=rows, random_state=seed
    )
    symbols = list(range(len(prior)))
    sources = {name: Calibration.from_predictions(y, v, symbols=symbols) for name, (y, v) in votes.labelled.items()}
    return sources, {name: np.array(v) for name, v in votes.answers.items()}, votes.truth


def batch_of(sources, answers):
    layout = Layout.of(sources)
    return Batch.of(layout, read_answers(layout, {name: list(v) for name, v in answers.items()}))


def faults_of(sources, answers):
    return source_tests(batch_of(sources, answers), 0.05).faults


def with_fault(answers, fault, seed=0):
    """The first source with a fault."""
    name, values = next(iter(answers.items()))
    rng = np.random.default_rng(seed)
    wrong = {
        "swapped": 1 - values,
        "random": rng.integers(0, 2, len(values)),
        "shifted threshold": np.where((values == 0) & (rng.random(len(values)) < 0.4), 1, values),
    }[fault]
    return {**answers, name: wrong}


# --- how often a fault is reported ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("J", "rows", "correlation", "prior"),
    [(4, 20, 0.0, (0.5, 0.5)), (6, 40, 0.8, (0.2, 0.8)), (3, 2000, 0.4, (0.3, 0.3, 0.4))],
)
def test_at_most_one_batch_in_twenty_without_fault_is_blamed(J, rows, correlation, prior):
    rng = np.random.default_rng(J)
    alarms = 0
    for seed in range(80):
        accuracy = rng.uniform(0.6, 0.9, J)
        sources, answers, _ = drawn(
            1000 * J + seed, J=J, rows=rows, correlation=correlation, prior=prior, accuracy=accuracy
        )
        alarms += bool(faults_of(sources, answers))
    assert alarms <= 8  # 1 % of the binomial distribution of 80 batches at 5 %


@pytest.mark.parametrize("fault", ["swapped", "random"])
@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_a_swapped_or_random_source_is_named_with_its_kind(fault, correlation):
    found = []
    for seed in range(20):
        sources, answers, _ = drawn(seed, correlation=correlation)
        found.append([(f.sources, f.kind) for f in faults_of(sources, with_fault(answers, fault, seed))])
    assert sum((("source 1",), fault) in faults for faults in found) >= 19
    assert sum(len(faults) > 1 for faults in found) <= 3


def test_a_random_source_is_named_where_a_class_is_rare():
    """A few items of a class that the others know: the class priors by the histograms are too imprecise."""
    named = 0
    for seed in range(20):
        sources, answers, _ = drawn(seed, n=1500, J=8, rows=1000, accuracy=0.88, prior=(0.95, 0.05))
        wrong = {**answers, "source 1": np.random.default_rng(seed).permutation(answers["source 1"])}
        named += any(f.sources == ("source 1",) and f.kind == "random" for f in faults_of(sources, wrong))
    assert named >= 19


@pytest.mark.parametrize("dependence", [0.6, None])
def test_a_source_that_is_independent_of_dependent_ones_is_not_blamed(dependence):
    """The others are copies (None), or make the same errors: their posteriors must not be overconfident."""
    alarms = 0
    for seed in range(40):
        sources, answers, truth = drawn(seed, n=600, J=4, rows=300, correlation=dependence or 0.0, accuracy=0.75)
        right = np.random.default_rng(seed).random(len(truth)) < 0.75
        answers["source 1"] = np.where(right, truth, 1 - truth)
        if dependence is None:
            sources["source 3"], answers["source 3"] = sources["source 2"], answers["source 2"]
        alarms += any("source 1" in f.sources for f in faults_of(sources, answers))
    assert alarms <= 4  # 5 % of the binomial distribution of 40 batches at 5 %


def test_calibrations_at_chance_have_no_reliability():
    """Ratios near zero: the errors of few rows are most of the evidence; one as the rows grow."""
    rng = np.random.default_rng(0)
    mean = {}
    for right, rows in [(0.5, 30), (0.6, 30), (0.9, 30), (0.6, 100_000)]:
        rates = np.array([[right, 1 - right], [1 - right, right]])
        counts = [rng.multinomial(rows, rates) for _ in range(100)]
        sources = {f"s{i}": Calibration.from_counts(c, [0, 1]) for i, c in enumerate(counts)}
        mean[right, rows] = reliability(batch_of(sources, {name: [0, 1] for name in sources})).mean()
    assert mean[0.5, 30] < mean[0.6, 30] < mean[0.9, 30] < mean[0.6, 100_000]
    assert mean[0.5, 30] < 0.25 and mean[0.9, 30] > 0.9 and mean[0.6, 100_000] > 0.999


def test_a_shifted_threshold_is_named_by_its_histogram():
    sources, answers, _ = drawn(0, n=1000)
    (fault,) = faults_of(sources, with_fault(answers, "shifted threshold"))
    assert (fault.sources, fault.test, fault.kind) == (("source 1",), "histogram", "shifted threshold")


def test_the_agreement_of_independent_sources_is_standard_normal():
    p_values = []
    for seed in range(150):
        batch = batch_of(*drawn(seed, J=3, rows=400, prior=(0.3, 0.7), accuracy=(0.6, 0.75, 0.9))[:2])
        p_values.append(source_tests(batch, 0.05).agreement["source 2"].p_value)
    assert kstest(p_values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("rows", [None, 60])
def test_the_standard_error_is_that_of_batches_and_calibrations_drawn_anew(rows):
    """Sources that know one class better than the other: the error of the priors moves what is expected of them."""
    rng = np.random.default_rng(10)
    rates = np.array([[0.99, 0.01], [0.45, 0.55]])
    excess, variances = [], []
    for _ in range(200):
        truth = (rng.random(300) < 0.6).astype(int)
        answers = {f"s{j}": said_of(rng, rates, truth, False) for j in range(3)}
        counts = [1e6 * rates if rows is None else rng.multinomial(rows, rates) for _ in answers]
        marginals = all_marginals(
            batch_of({n: Calibration.from_counts(c, [0, 1]) for n, c in zip(answers, counts)}, answers)
        )
        found = Agreements(marginals, dependence(marginals)).test(0)
        excess.append(found.excess)
        variances.append((found.excess / found.z) ** 2)
    assert 0.75 < np.mean(variances) / np.var(excess) < 1.35  # 200 draws give a variance within 10 %


@pytest.mark.parametrize("known", ["as labels", "as an assumption"])
def test_a_source_that_its_calibration_does_not_describe_is_not_tested(known):
    """Swapped answers: not named, and not used in the tests of the others, which are those without it."""
    sources, answers, _ = drawn(15)
    wrong = with_fault(answers, "swapped")
    assert [fault.sources for fault in faults_of(sources, wrong)] == [("source 1",)]
    if known == "as labels":  # its confident probabilities are less certain than its labels were right
        wrong["source 1"] = np.where(wrong["source 1"][:, None] == [0, 1], 0.8, 0.2)
    else:
        sources["source 1"] = Calibration.guess([0, 1])
    fuser = Fuser(sources, method="ml-product").fit(wrong)
    assert fuser.faults_ == () and np.isnan([fuser.agreement_["source 1"].z, fuser.drift_["source 1"].p_value]).all()
    names = list(sources)[1:]
    rest = source_tests(batch_of({n: sources[n] for n in names}, {n: answers[n] for n in names}), 0.05)
    for name in names:
        np.testing.assert_allclose(fuser.agreement_[name].z, rest.agreement[name].z, rtol=1e-6)
        np.testing.assert_allclose(fuser.drift_[name].p_value, rest.drift[name].p_value, rtol=1e-4)  # error of p


# --- symmetries -------------------------------------------------------------------------------------------------------


def test_items_of_weight_zero_change_no_test():
    sources, answers, _ = drawn(3)
    values = np.column_stack(list(answers.values()))
    pattern = (values == values[0]).all(axis=1)
    weighted = Fuser(sources).fit(answers, sample_weight=np.where(pattern, 0.0, 1.0)).agreement_
    without = Fuser(sources).fit({name: v[~pattern] for name, v in answers.items()}).agreement_
    for name, test in without.items():
        assert np.isfinite(test.p_value) and weighted[name].p_value == pytest.approx(test.p_value)


def test_permuting_sources_permutes_the_faults():
    sources, answers, _ = drawn(3, J=5)
    answers = with_fault(answers, "swapped")
    before = source_tests(batch_of(sources, answers), 0.05)
    order = [2, 0, 4, 1, 3]
    names = [list(sources)[j] for j in order]
    after = source_tests(batch_of({n: sources[n] for n in names}, answers), 0.05)
    assert [f.sources for f in before.faults] == [f.sources for f in after.faults] == [("source 1",)]
    for name in names:
        np.testing.assert_allclose(after.agreement[name].z, before.agreement[name].z, rtol=1e-7)
        np.testing.assert_allclose(after.drift[name].p_value, before.drift[name].p_value, rtol=1e-6)


@pytest.mark.parametrize("fault", [None, "random"])
def test_declared_copies_change_no_test(fault):
    sources, answers, _ = drawn(4)
    answers = answers if fault is None else with_fault(answers, fault)
    copy = replace(sources["source 2"], copy_of="source 2")
    copies = {f"copy {i}": copy for i in range(3)}
    before = source_tests(batch_of(sources, answers), 0.05)
    after = source_tests(
        batch_of({**sources, **copies}, {**answers, **dict.fromkeys(copies, answers["source 2"])}), 0.05
    )
    assert [(f.sources, f.kind) for f in after.faults] == [(f.sources, f.kind) for f in before.faults]
    for name in sources:
        np.testing.assert_allclose(after.agreement[name].p_value, before.agreement[name].p_value, rtol=1e-6)
    assert after.agreement["copy 0"].p_value == pytest.approx(after.agreement["source 2"].p_value)


def test_undeclared_copies_of_a_healthy_source_are_not_named():
    for seed in range(10):
        sources, answers, _ = drawn(seed)
        more = {f"copy {i}": sources["source 2"] for i in range(3)}
        faults = faults_of({**sources, **more}, {**answers, **dict.fromkeys(more, answers["source 2"])})
        assert not any({"source 2", *more} & set(fault.sources) for fault in faults)


def test_copies_of_a_faulty_source_are_named_with_it():
    sources, answers, _ = drawn(5, J=5)
    answers = with_fault(answers, "swapped")
    copy = replace(sources["source 1"], copy_of="source 1")
    faults = faults_of({**sources, "copy": copy}, {**answers, "copy": answers["source 1"]})
    assert sorted(f.sources for f in faults) == [("copy",), ("source 1",)] and {f.kind for f in faults} == {"swapped"}


def test_of_two_sources_neither_is_named():
    sources, answers, _ = drawn(6, J=2)
    (fault,) = faults_of(sources, with_fault(answers, "swapped"))
    assert fault.sources == ("source 1", "source 2") and fault.kind is None
    fuser = Fuser(sources).fit(with_fault(answers, "swapped"))
    assert fuser._fitted_layout.left_out == fuser._fitted_layout.relearned == ()
    assert fusion_facts(fuser)["sources"][0]["fault"] is None


def test_two_of_four_sources_against_the_others_are_not_named():
    sources, answers, _ = drawn(7, n=2000)
    wrong = {name: 1 - v if name in ("source 1", "source 2") else v for name, v in answers.items()}
    assert all(len(fault.sources) > 1 for fault in faults_of(sources, wrong))


# --- the kind ---------------------------------------------------------------------------------------------------------


def test_each_kind_is_recognized_with_three_classes():
    """Answers of one source drawn from the rates of each kind, and the true classes in place of the other sources."""
    rng = np.random.default_rng(8)
    A = np.array([[0.8, 0.15, 0.05], [0.1, 0.75, 0.15], [0.05, 0.25, 0.7]])  # (K, V)
    tilted = A * [1.0, 1.0, 4.0]
    kinds = {
        "swapped": A[:, [1, 2, 0]],
        "random": np.tile([0.2, 0.5, 0.3], (3, 1)),
        "shifted threshold": tilted / tilted.sum(axis=1, keepdims=True),
        "changed": np.array([[0.8, 0.15, 0.05], [0.6, 0.2, 0.2], [0.05, 0.25, 0.7]]),
    }
    truth = rng.integers(0, 3, 1500)
    for kind, B in kinds.items():
        answers = {"a": said_of(rng, B, truth, False)}
        batch = batch_of({"a": Calibration.from_rates(A, 1000, range(3))}, answers)
        q = np.zeros((batch.n_patterns, 3))
        counts = np.stack([np.bincount(truth[answers["a"] == v], minlength=3) for v in range(3)])
        codes = batch.answers.responses[0]
        q[:] = counts[codes] / counts[codes].sum(axis=1, keepdims=True)
        items = Batch(batch.layout, batch.answers.part(batch.pattern_of), np.ones(1500), np.full(1500, -1))
        assert q.shape == (3, 3)
        found, rates = fault_kind(items, 0, np.eye(3)[truth])
        assert found == kind
        np.testing.assert_allclose(rates.T, B, atol=0.06)


def test_the_fit_of_the_rates_has_the_largest_likelihood():
    rng = np.random.default_rng(9)
    data = _Answers(np.eye(3)[rng.integers(0, 3, 200)], rng.dirichlet([1.0, 1.0], 200), rng.random(200) + 0.5)
    A = rng.dirichlet(np.ones(3), 2).T
    best = data.maximum(A)
    assert all(data.log_lik(best) >= data.log_lik(rng.dirichlet(np.ones(3), 2).T) for _ in range(200))
    assert data.log_lik(best) >= max(data.log_lik(data.tilted(A)), data.log_lik(data.permuted(A, False)))
    share = data.weight @ data.q / data.weight.sum()
    np.testing.assert_allclose(data.tilted(A) @ share, data.histogram, atol=1e-6)
    assert not (data.permuted(A, False) == A).all()


def test_degrees_of_freedom_of_equal_parts_add_up():
    assert degrees_of_freedom(np.array([0.5, 0.5]), np.array([11.0, 11.0])) == pytest.approx(20)
    assert degrees_of_freedom(np.array([1.0, 0.0]), np.array([11.0, 5.0])) == pytest.approx(10)
    assert chi2.sf(3.84, 1) == pytest.approx(0.05, abs=1e-3)


# --- what "auto" does -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["swapped", "random"])
def test_auto_repairs_a_fault_that_the_product_rule_suffers_from(fault):
    """Balanced classes: the histograms of the answers do not show the fault."""
    healthy, repaired, before = [], [], []
    for seed in range(8):
        sources, answers, truth = drawn(seed, n=600)
        wrong = with_fault(answers, fault, seed)
        errors = [
            np.mean(Fuser(sources, method=method).fit(a).labels_ != truth)
            for method, a in (("auto", answers), ("auto", wrong), ("ml-product", wrong))
        ]
        for values, error in zip((healthy, repaired, before), errors):
            values.append(error)
    assert np.mean(before) > np.mean(repaired) + 0.02
    assert np.mean(repaired) < np.mean(healthy) + (0.01 if fault == "swapped" else 0.04)


def test_a_random_source_that_is_left_out_has_no_influence():
    sources, answers, _ = drawn(11, n=500)
    fuser = Fuser(sources, class_prior="uniform").fit(with_fault(answers, "random"))
    rest = Fuser({n: c for n, c in sources.items() if n != "source 1"}, class_prior="uniform").fit(
        {n: a for n, a in answers.items() if n != "source 1"}
    )
    np.testing.assert_allclose(fuser.posterior_, rest.posterior_, atol=1e-9)
    np.testing.assert_allclose(fuser.prior_estimate_.low, rest.prior_estimate_.low, atol=1e-9)
    assert fuser.trust_["source 1"] == 0 == contributions(fuser)[0]
    np.testing.assert_allclose(fuser.dependence_.n_effective, rest.dependence_.n_effective)
    new = {n: [0] for n in sources}
    assert fuser.fuse_one({"source 1": 0}) == pytest.approx(dict(enumerate(fuser.prior_)))
    np.testing.assert_allclose(fuser.predict_proba(new), fuser.predict_proba({**new, "source 1": [1]}))


def test_a_swapped_source_is_used_in_its_new_sense():
    sources, answers, _ = drawn(12, n=2000)
    right, wrong = (Fuser(sources).fit(a) for a in (answers, with_fault(answers, "swapped")))
    np.testing.assert_allclose(wrong.confusion_["source 1"][:, ::-1], right.confusion_["source 1"], atol=0.02)
    np.testing.assert_allclose(wrong.posterior_, right.posterior_, atol=0.05)
    assert fusion_facts(wrong)["faults"][0]["action"] == "re-estimated"
    assert fusion_facts(wrong)["sources"][0]["fault"]["kind"] == "swapped"


def test_probabilities_are_repaired_too():
    healthy = panel(3, n=800, K=3, J=5, kind="soft", rows=150)
    swapped = {**healthy.answers, "s0": np.roll(healthy.answers["s0"], 1, axis=1)}
    fuser = Fuser(healthy.sources).fit(swapped)
    assert [(f.sources, f.kind) for f in fuser.faults_] == [(("s0",), "swapped")]
    error = np.mean(fuser.labels_ != healthy.truth)
    assert error < np.mean(Fuser(healthy.sources, method="ml-product").fit(swapped).labels_ != healthy.truth)


def test_labels_and_further_items_keep_the_repair():
    sources, answers, truth = drawn(13, n=600)
    wrong = with_fault(answers, "swapped")
    y = [int(t) if i % 20 == 0 else None for i, t in enumerate(truth)]
    fuser = Fuser(sources).fit({n: a[:500] for n, a in wrong.items()}, y[:500])
    assert fuser._fitted_layout.relearned == (0,)
    fuser.partial_fit({n: a[500:] for n, a in wrong.items()}, y[500:])
    assert fuser._fitted_layout.relearned == (0,) and len(fuser.posterior_) == 100
    assert np.mean(fuser.labels_ != truth[500:]) < 0.15
    fuser.update_prior(answers)  # the source answers as in its calibration again, but the rule has learned otherwise
    assert fuser.faults_ == ()


# --- contributions ----------------------------------------------------------------------------------------------------


def test_the_contribution_of_exact_labels_is_their_mutual_information():
    A = np.array([[0.9, 0.1], [0.2, 0.8]])
    counts = {"x": 900, "y": 350}
    answers = {"s": ["x"] * counts["x"] + ["y"] * counts["y"]}
    source = Calibration.from_rates(A, 1e9, ["x", "y"])
    fuser = Fuser({"s": source}, method="ml-product").fit(answers)
    joint = fuser.prior_[:, None] * A
    mutual = (joint * np.log2(joint / np.outer(fuser.prior_, joint.sum(axis=0)))).sum()
    assert contributions(fuser)[0] == pytest.approx(mutual, rel=1e-5)


def test_copies_share_the_contribution_of_one():
    one = panel(4, n=200, K=2, J=3)
    three = with_copies(one, 2)
    alone, copied = (Fuser(d.sources, method="ml-product").fit(d.answers) for d in (one, three))
    before, after = contributions(alone), contributions(copied)
    assert after[0] + after[3] + after[4] == pytest.approx(before[0]) and after[1] == pytest.approx(before[1])


def test_a_source_at_chance_contributes_nothing_whatever_its_trust():
    rng = np.random.default_rng(14)
    sources, answers, _ = drawn(14)
    sources["coin"] = Calibration.from_counts([[500, 500], [500, 500]], [0, 1])
    fuser = Fuser(sources, method="ml-product").fit({**answers, "coin": rng.integers(0, 2, 300)})
    assert fuser.trust_["coin"] > 0.5 and abs(contributions(fuser)[-1]) < 1e-9
    assert min(contributions(fuser)[:-1]) > 0.1
