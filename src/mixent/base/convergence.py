"""How fitting ended: attributes that every estimator has, and the warning where it did not converge."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from mixent.core.driver import Run, Status
from mixent.warn import warn

NOTES = 3  # repairs that a warning lists


class FittedByRun:
    """An estimator whose fitted state has the driver's `run_`."""

    run_: Run

    @property
    def converged_(self) -> bool:
        """Whether the optimizer reached its tolerance."""
        return self.run_.status is Status.CONVERGED

    @property
    def n_iter_(self) -> int:
        """Passes over the data after the initialization; 1 if the initialization was optimal."""
        return max(1, self.run_.n_passes)


def warn_unconverged(run: Run, name: str, *, searched: bool = False) -> None:
    """Warn where a run did not converge, and of components that it had to repair; raise where it could not start.

    Parameters
    ----------
    run : Run
    name : of the estimator
    searched : bool
        Whether a search chose the number of components: repaired components concern a user who asked for that many.
    """
    if run.status is Status.NOT_FINITE and not any(step.accepted for step in run.trace):
        raise ValueError(f"{name} cannot be fitted to these rows: {run.message}")
    if run.notes and not searched:
        n_more = len(run.notes) - NOTES
        more = f". And {n_more} more; fewer components may suffice" if n_more > 0 else ""
        warn(f"{name}: {'. '.join(run.notes[:NOTES])}{more}", ConvergenceWarning)
    if not run.status.ok:
        warn(f"{name} did not converge: {run.message}", ConvergenceWarning)
