"""Checkpoints of the fits of mixtures: what identifies a fit, and the types that a file may contain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mixent.base.fingerprint import fingerprint_of
from mixent.core.checkpoint import Checkpoint
from mixent.families.categorical import CategoricalFamily, Categoricals, Counts
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.kernels import Moments
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ComponentStats, ContaminatedFamily, ProductFamily
from mixent.families.student import StudentFamily, StudentMoments, Students
from mixent.families.uniform import Uniform
from mixent.mixtures.batch import BatchParams, BatchStats
from mixent.mixtures.discriminative import SignedStats
from mixent.mixtures.fit_plan import FitPlan
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.online import PastStatistics
from mixent.mixtures.problem import MixtureParams, MixtureProblem, MixtureStats

FREE = ("n_jobs", "progress", "checkpoint")  # parameters that do not change the result
CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        BatchParams,
        BatchStats,
        CategoricalFamily,
        Categoricals,
        Components,
        ComponentStats,
        ContaminatedFamily,
        Counts,
        Fitted,
        GaussianFamily,
        Gaussians,
        Group,
        MixtureParams,
        MixtureProblem,
        MixtureStats,
        Moments,
        PastStatistics,
        Prior,
        ProductFamily,
        SignedStats,
        StudentFamily,
        StudentMoments,
        Students,
        Uniform,
    )
}


@contextmanager
def recorded(plan: FitPlan) -> Iterator[None]:
    """Record the fits of a plan in the file `checkpoint` of its estimator, and resume from it if it exists."""
    import mixent

    params = {name: value for name, value in plan.est.get_params(deep=False).items() if name not in FREE}
    if not isinstance(params["random_state"], (int, np.integer)):
        params["random_state"] = "random"  # the file has the seed
    rows = (plan.table, plan.codes, plan.classes, plan.class_prior)
    fingerprint = fingerprint_of(mixent.__version__, np.__version__, type(plan.est).__name__, params, rows)
    with Checkpoint(plan.est.checkpoint, fingerprint, plan.seed, CLASSES) as plan.checkpoint:
        plan.seed = plan.checkpoint.seed
        yield
