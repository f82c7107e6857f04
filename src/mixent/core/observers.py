"""Observers of a run: progress, early stopping on a validation score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mixent.core.driver import Event, Halt

Progress = Callable[[int, int, str], None]  # done, total, description


@dataclass
class ShowProgress:
    """Report to a progress bar after every accepted pass."""

    show: Progress
    total: int

    def __call__(self, event: Event[Any]) -> None:
        self.show(event.n_pass, self.total, f"objective {event.objective:.6g}")


class EarlyStop:
    """Stop when `score(params)` on held-out rows has not improved for `patience` passes; return the best parameters."""

    def __init__(self, score: Callable[[Any], float], patience: int = 5) -> None:
        self.score, self.patience = score, patience
        self.best, self.best_score, self.waited = None, float("-inf"), 0

    def __call__(self, event: Event[Any]) -> Halt[Any] | None:
        value = self.score(event.params)
        if value > self.best_score:
            self.best, self.best_score, self.waited = event.params, value, 0
            return None
        self.waited += 1
        if self.waited < self.patience:
            return None
        return Halt(f"the validation score has not improved for {self.patience} passes", self.best)
