"""A budget: all methods on few rows, the promising ones on more; nothing is thrown away, like is compared with like."""

import time

import numpy as np
import pytest

from mixent.evaluate.halving import Halving, samples_of
from mixent.evaluate.journal import Journal
from mixent.evaluate.race import Race
from mixent.evaluate.records import TIMED
from mixent.evaluate.runner import Method, Runner, Split, splits_of

N = 12_000
CODES = np.arange(N) % 3
FOLDS = np.stack([np.arange(N) // 3 % 5])
SPLITS = [*splits_of(FOLDS), *samples_of(splits_of(FOLDS)[0], CODES, np.random.default_rng(0))]


def trial(model, split):
    """A method as two numbers: its loss with all rows, and its seconds for a thousand rows, as it reports them."""
    loss, seconds = model
    CALLS.append((model, split.sample, split.fold))
    n = len(split.train)
    value = loss + 20.0 / n
    scores = {**dict.fromkeys(TIMED, value), "fit_seconds": seconds * n / 1000, "predict_seconds": 0.0}
    true = CODES[split.test]
    proba = np.full((len(true), 3), (1 - np.exp(-value)) / 2)
    proba[np.arange(len(true)), true] = np.exp(-value)
    return {**scores, "n_train": n, "n_test": len(true), "labelled_only": False, "failed": None}, proba


CALLS = []


def run(models, budget, journal=None, always=()):
    CALLS.clear()
    race = Race(CODES, np.ones(N), "log_loss")
    methods = {name: Method(model, always=name in always) for name, model in models.items()}
    halving = Halving(race, time.monotonic() + budget)
    runner = Runner(methods, trial, SPLITS, journal or Journal(), policy=halving)
    runner.run()
    return runner


MANY = {f"m{i}": (0.2 + 0.01 * i, 0.05 * (1 + i % 4)) for i in range(12)}


def test_samples_are_parts_of_each_other_and_of_the_fold():
    samples = SPLITS[5:]
    assert [split.sample for split in samples] == [500, 2000] and all(split.fold == 0 for split in samples)
    for small, large in zip(samples, [*samples[1:], SPLITS[0]]):
        assert set(small.train) <= set(large.train) and set(small.test) <= set(SPLITS[0].test)
        assert len(small.train) == small.sample and len(small.test) == 2000
        np.testing.assert_allclose(np.bincount(CODES[small.train]) / small.sample, 1 / 3, atol=0.005)


def test_rare_classes_are_in_every_sample():
    codes = np.where(np.arange(4000) < 5, 1, 0)
    split = Split(0, 0, np.arange(3600), np.arange(3600, 4000))
    small = samples_of(split, codes, np.random.default_rng(0))[0]
    assert (codes[small.train] == 1).sum() == 5 and len(small.train) == 500


def test_every_method_is_tried():
    runner = run(MANY, budget=6.0)
    assert all(5 in done for done in runner.outcomes.values())


@pytest.mark.parametrize("budget", [3.0, 6.0, 20.0, 60.0, 1e4])
def test_the_best_is_on_the_common_stage_at_any_budget(budget):
    runner = run(MANY, budget)
    there = [n for n in MANY if all(split in runner.outcomes[n] for split in runner.stage)]
    assert "m0" in there and len(there) >= 2
    assert set(MANY) - set(there) <= set(runner.dropped)


def test_more_time_gives_a_larger_stage():
    sizes = [len(run(MANY, budget).stage) for budget in (2.0, 10.0, 40.0, 1e4)]
    assert sizes == sorted(sizes) and sizes[-1] == 5


def test_nothing_is_thrown_away():
    runner = run(MANY, budget=10.0)
    assert runner.n_done == len(CALLS) == sum(len(runner.finished(name)) for name in MANY)


def test_what_the_journal_has_is_not_run_again():
    journal = Journal()
    first = run(MANY, 10.0, journal)
    n_calls = len(CALLS)
    again = run(MANY, 10.0, journal)
    assert n_calls > 12 and not set(CALLS) & {
        (MANY[name], SPLITS[split].sample, SPLITS[split].fold) for name in MANY for split in first.outcomes[name]
    }
    for name in MANY:
        assert set(first.outcomes[name]) <= set(again.outcomes[name])


def test_the_best_on_a_sample_is_not_beaten_by_what_is_quicker():
    runner = run({**MANY, "slow": (0.1, 100.0)}, budget=10.0)
    assert runner.stage == [5] and "slow" not in runner.dropped


def test_a_method_that_is_slow_and_not_the_best_is_named():
    runner = run({**MANY, "slow": (0.3, 100.0)}, budget=10.0)
    assert "slow" in runner.late and 5 in runner.outcomes["slow"] and 0 not in runner.outcomes["slow"]
    assert runner.stage != [5]


def test_the_class_frequencies_do_not_count_as_a_method():
    quick = {"good": (0.2, 100.0), "bad": (0.9, 0.001), "frequencies": (1.0, 0.001)}
    runner = run(quick, budget=10.0, always=("frequencies",))
    assert runner.stage == [5] and not {0, 6} & set(runner.outcomes["bad"])


def test_one_method_alone_runs_whatever_the_budget():
    runner = run({"only": (0.3, 0.1)}, budget=1e-6)
    assert runner.stage and not runner.dropped


def test_a_file_keeps_samples_apart_from_folds(tmp_path):
    path = tmp_path / "folds.jsonl"
    first = run(MANY, 10.0, Journal.open(path, "compare", "same"))
    journal = Journal.open(path, "compare", "same")
    for name in MANY:
        for split, outcome in first.outcomes[name].items():
            kept = journal.get(name, "", 0, SPLITS[split].fold, SPLITS[split].sample)
            assert kept is not None and kept.record == outcome.record
