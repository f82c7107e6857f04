"""Confusion matrices re-estimated from the batch, labels in `auto`, and what does not change them."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.fusion_panels import Cell, panel

from mixent.fusion import Calibration, Fuser, Source, rates
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.rates import CALIBRATION_WEIGHT
from mixent.fusion.rules import dawid_skene
from mixent.fusion.sources import Layout

from .test_crowds import LABELS, table, votes_of

CELL = Cell(
    index=7100,
    kind="hard",
    answers="hard",
    n_items=1500,
    priors=(0.5, 0.3, 0.2),
    accuracy=(0.75, 0.7, 0.8, 0.65, 0.7),
    correlation=0.0,
    n_copies=0,
    n_rows=40,
    calibration_priors=(0.4, 0.3, 0.3),
    sharpness=1.0,
    n_levels=5,
    faulty=None,
)


def fitted(drawn, method="discounted", **more):
    return Fuser(drawn.calibrations, method=method).fit(drawn.answers, **more)


def calibrated(drawn):
    """(J, K, V) confusion matrices of the calibrations."""
    return np.stack([calibration.confusion for calibration in drawn.calibrations.values()])


def learned(fuser):
    return np.stack(list(fuser.confusion_.values()))


def of_batch(drawn):
    """(J, K, V) shares of the answers in each class of the batch."""
    K = drawn.truth.max() + 1
    one_hot = np.eye(K)[drawn.truth]
    counts = np.stack([one_hot.T @ np.eye(K)[answers] for answers in drawn.answers.values()])
    return counts / counts.sum(axis=2, keepdims=True)


# --- rates of discounted ----------------------------------------------------------------------------------------------


def test_the_objective_of_the_rates_never_falls(monkeypatch):
    runs = []

    def kept(*args, **options):
        fit = dawid_skene(*args, **options)
        runs.append(fit.run)
        return fit

    monkeypatch.setattr(rates, "dawid_skene", kept)
    fitted(panel(CELL, 0))
    values = [step.objective for step in runs[0].trace if step.accepted]
    assert len(runs) == 1 and len(values) > 3
    assert (np.diff(values) >= -1e-9 * np.abs(values[:-1])).all() and values[-1] > values[0]


@pytest.mark.parametrize("method", ["discounted", "auto"])
def test_rates_of_few_calibration_rows_are_improved_by_many_items(method):
    before, after = [], []
    for replicate in range(3):
        drawn = panel(CELL, replicate)
        truth = of_batch(drawn)
        before.append(np.abs(calibrated(drawn) - truth).mean())
        after.append(np.abs(learned(fitted(drawn, method)) - truth).mean())
    assert np.mean(after) < 0.8 * np.mean(before)


def test_rates_are_those_that_the_posteriors_and_the_calibrations_imply():
    drawn = panel(CELL, 0)
    fuser = fitted(drawn)
    for name, calibration in drawn.calibrations.items():
        expected = fuser.posterior_.T @ np.eye(3)[drawn.answers[name]]
        weight = max(CALIBRATION_WEIGHT, CELL.n_items / CELL.n_rows)
        counts = weight * (calibration.counts + calibration.smoothing) + expected
        implied = counts / counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(fuser.confusion_[name], implied, atol=2e-3)


def test_rates_of_two_sources_are_not_identified_and_stay():
    drawn = panel(replace(CELL, accuracy=(0.75, 0.8), n_items=300), 0)
    np.testing.assert_array_equal(learned(fitted(drawn)), calibrated(drawn))


def test_errors_in_common_move_the_rates_less_than_few_rows_do():
    before, after = [], []
    for replicate in range(3):
        drawn = panel(replace(CELL, correlation=0.6), replicate)
        truth = of_batch(drawn)
        before.append(np.abs(calibrated(drawn) - truth).mean())
        after.append(np.abs(learned(fitted(drawn)) - truth).mean())
    assert np.mean(after) < np.mean(before)


def test_rates_of_very_many_rows_stay():
    drawn = panel(CELL, 1)
    many = {name: replace(c, counts=1e6 * c.counts, smoothing=0.5e6) for name, c in drawn.calibrations.items()}
    drawn = replace(drawn, calibrations=many)
    np.testing.assert_allclose(learned(fitted(drawn)), calibrated(drawn), atol=1e-3)


def test_labelled_items_count_as_calibration_rows_and_only_once():
    drawn = panel(replace(CELL, n_items=300), 2)
    fuser = fitted(drawn, y=drawn.truth)
    for name, calibration in drawn.calibrations.items():
        counts = calibration.counts + calibration.smoothing
        np.add.at(counts, (drawn.truth, drawn.answers[name]), 1.0)
        np.testing.assert_allclose(fuser.confusion_[name], counts / counts.sum(axis=1, keepdims=True), rtol=1e-9)


def test_probabilities_that_are_used_as_they_are_have_no_learned_rates():
    drawn = panel(replace(CELL, answers="soft", n_items=200), 0)
    np.testing.assert_array_equal(learned(fitted(drawn)), calibrated(drawn))
    label = panel(replace(CELL, n_items=200), 0).calibrations["s3"]
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(200) < 0.7, drawn.truth, rng.integers(3, size=200))
    mixed = replace(
        drawn,
        calibrations={"s1": drawn.calibrations["s1"], "s2": drawn.calibrations["s2"], "label": label},
        answers={"s1": drawn.answers["s1"], "s2": drawn.answers["s2"], "label": noisy},
    )
    fuser = fitted(mixed)
    np.testing.assert_array_equal(fuser.confusion_["s1"], drawn.calibrations["s1"].confusion)
    assert np.abs(fuser.confusion_["label"] - label.confusion).max() > 1e-3


@pytest.mark.parametrize("blank", [False, True])
def test_declared_copies_change_no_rates_or_posteriors(blank):
    drawn = panel(replace(CELL, n_items=400), 3)
    answers = {name: values.astype(object) for name, values in drawn.answers.items()}
    if blank:  # the copy answers only some items, and has half of the vote there
        answers["s1"][::3] = None
    one = Fuser(drawn.calibrations, method="discounted").fit(answers)
    copy = {**drawn.calibrations, "copy": replace(drawn.calibrations["s1"], copy_of="s1")}
    two = Fuser(copy, method="discounted").fit({**answers, "copy": answers["s1"]})
    np.testing.assert_allclose(two.posterior_, one.posterior_, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(two.confusion_["copy"], one.confusion_["s1"], rtol=1e-7)


def test_the_rule_has_the_posteriors_of_the_fit_where_copies_answer_different_items():
    drawn = panel(replace(CELL, n_items=300), 5)
    answers = {name: values.astype(object) for name, values in drawn.answers.items()}
    answers["copy"] = answers["s1"].copy()
    answers["copy"][::2], answers["s1"][1::2] = None, None
    calibrations = {**drawn.calibrations, "copy": replace(drawn.calibrations["s1"], copy_of="s1")}
    fuser = Fuser(calibrations, method="discounted").fit(answers)
    np.testing.assert_allclose(fuser.predict_proba(answers), fuser.posterior_, rtol=1e-9)
    # a copy that answers alone has the whole vote of both, also in the estimate of its rates
    calibration, alone = drawn.calibrations["s1"], np.arange(300) % 2 == 0
    expected = 2.0 * fuser.posterior_[alone].T @ np.eye(3)[drawn.answers["s1"][alone]]
    counts = CALIBRATION_WEIGHT * (calibration.counts + calibration.smoothing) + expected
    implied = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fuser.confusion_["s1"], implied, atol=2e-3)


def test_priors_of_a_window_are_estimated_with_the_learned_rates():
    drawn = panel(CELL, 5)
    fuser = fitted(drawn)
    before = fuser.prior_.copy()
    np.testing.assert_allclose(fuser.update_prior(drawn.answers).prior_, before, atol=1e-6)


# --- what auto uses ---------------------------------------------------------------------------------------------------


def test_auto_uses_discounts_of_any_calibrated_sources_and_crowds_of_others():
    drawn = panel(replace(CELL, n_items=200), 0)
    assert fitted(drawn, "auto").method_ == "discounted"
    few = {name: replace(c, counts=c.counts / 10) for name, c in drawn.calibrations.items()}
    assert fitted(replace(drawn, calibrations=few), "auto").method_ in (
        "dawid-skene",
        "equal",
        "one-coin",
        "hierarchical",
    )


def some_labels(truth, share, seed=0):
    y = np.full(len(truth), None, dtype=object)
    rows = np.random.default_rng(seed).choice(len(truth), round(share * len(truth)), replace=False)
    y[rows] = truth[rows]
    return y, np.setdiff1d(np.arange(len(truth)), rows)


def test_a_few_labels_do_not_change_the_other_posteriors_of_a_crowd():
    votes, truth = votes_of("one-coin", 1)
    y, rest = some_labels(truth, 0.1)
    plain, gold = Fuser().fit(table(votes)), Fuser().fit(table(votes), y)
    np.testing.assert_allclose(gold.posterior_[rest], plain.posterior_[rest], rtol=1e-9, atol=1e-12)
    labelled = np.setdiff1d(np.arange(len(truth)), rest)
    np.testing.assert_array_equal(gold.labels_[labelled], truth[labelled])


def test_labels_are_used_where_the_workers_mean_other_classes():
    """All workers call a third of the items of class a by another name, which only labels can show."""
    rng = np.random.default_rng(3)
    truth = LABELS[rng.choice(3, 600, p=[0.5, 0.3, 0.2])]
    look = np.where((truth == "a") & (rng.random(600) < 0.9), "b", np.where(truth == "b", "a", truth))
    votes = np.where(rng.random((600, 6)) < 0.8, look[:, None], LABELS[rng.integers(3, size=(600, 6))]).astype(object)
    y, rest = some_labels(truth, 0.2)
    plain, gold = Fuser().fit(table(votes)), Fuser().fit(table(votes), y)
    assert np.mean(plain.labels_[rest] == truth[rest]) < 0.5 < np.mean(gold.labels_[rest] == truth[rest])


def test_labels_of_items_do_not_count_as_calibrations():
    votes, truth = votes_of("hierarchical", 2, 400, 8)
    y, _ = some_labels(truth, 0.8)
    assert Fuser().fit(table(votes), y).method_ in ("dawid-skene", "equal", "one-coin", "hierarchical")


def test_sources_with_a_context_are_learned_within_their_cells():
    rng = np.random.default_rng(0)
    counts = np.array([[[8, 6], [2, 4]], [[2, 4], [8, 6]]], dtype=float)  # class, symbol, cell
    source = Calibration(("a", "b"), ("a", "b"), counts, cells=("x", "y"), context=True)
    layout = Layout.of({"s": Source(source)})
    truth, cell = rng.integers(2, size=400), rng.integers(2, size=400)
    right = rng.random(400) < np.where(cell == 0, 0.9, 0.6)
    answers = {"s": np.array(["a", "b"])[np.where(right, truth, 1 - truth)], "s@": np.array(["x", "y"])[cell]}
    fuser = Fuser({"s": source}, method="discounted").fit(answers)
    rates = fuser.confusion_["s"].reshape(2, 2, 2)
    np.testing.assert_allclose(rates.sum(axis=1), 1.0, rtol=1e-9)
    assert Batch.of(layout, read_answers(layout, answers)).n_patterns == 4
