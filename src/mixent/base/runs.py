"""How fitting ended, the same for every estimator."""

from __future__ import annotations

from mixent.core.driver import Run, Status


class FittedByRun:
    """An estimator whose fitted state has the driver's `run_`."""

    run_: Run

    @property
    def converged_(self) -> bool:
        """Did the search reach its tolerance?"""
        return self.run_.status is Status.CONVERGED

    @property
    def n_iter_(self) -> int:
        """Passes over the data."""
        return self.run_.n_passes
