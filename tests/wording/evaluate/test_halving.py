"""Wording of evaluate, halving."""

import re

from ...evaluate.test_budget_rule import crowded
from ...evaluate.test_halving import MANY, run


def test_a_method_without_time_for_more_is_stopped_with_its_score_and_that_of_the_best():
    runner = run({**MANY, "slow": (0.3, 100.0)}, budget=10.0)
    reason = (
        "stopped after a sample of 500 rows (log-loss 0.340; m0 on the same sample 0.240): the time budget did not "
    )
    assert runner.dropped["slow"] == f"{reason}allow for more"


def test_all_reasons_have_the_number_of_folds_that_were_planned(monkeypatch):
    """No reason calls methods better: differences may be noise."""
    runner, _ = crowded(5, 30.0, monkeypatch)
    reasons = [reason for reason in runner.dropped.values() if "(" in reason]
    pattern = (
        r"stopped after [1-4] of 5 folds \(log-loss 0\.\d{3}; m\d on the same folds 0\.\d{3}\): the time budget did "
    )
    assert reasons and all(re.match(f"{pattern}not allow for more$", r) for r in reasons)


def test_the_best_of_a_stage_is_called_so():
    runner = run({"best": (0.1, 0.01), "other": (0.2, 0.01)}, budget=10.0)
    expected = "stopped after 5 of 5 folds (log-loss 0.102, the best there): the time budget did not allow for more"
    assert runner.policy._reason(runner, "best") == expected
