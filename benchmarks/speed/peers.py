"""Who runs: each method does some EM passes from a given start and returns how long each took.

After n passes the log-likelihood is that of the parameters n - 1 updates after the start, for everyone.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks.speed.cases import Case, Start
from mixent.base.executors import choose_executor
from mixent.core.blocks import Block
from mixent.core.driver import Stop, run
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.fitting import blocks
from mixent.mixtures.init import summarize
from mixent.mixtures.problem import MixtureParams, MixtureProblem

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Passes:
    seconds: tuple[float, ...]  # of each pass but the first
    log_lik: float
    covs: np.ndarray | None = None  # at the end


Method = Callable[[np.ndarray, Start, int], Passes]


def mixent(X: np.ndarray, start: Start, n_passes: int, n_jobs: int | None = None) -> Passes:
    """What `GaussianMixture(prior=None)` runs without extrapolated steps, from exactly this start."""
    K = len(start.weights)
    source = blocks(Block(X), K, axis_aligned=False)
    with choose_executor(n_jobs, len(X), K) as executor:
        summary = summarize(source, (), executor)
        family = ProductFamily(GaussianFamily((Group("VVV", 0, K),), summary.center, summary.scale), None)
        gaussians = Gaussians(start.means - summary.center, start.covs, (None,))
        params = MixtureParams(start.weights[None, :], Components(gaussians, None))
        end = run(MixtureProblem(family), source, params, stop=Stop(-np.inf, n_passes - 1), executor=executor)
    assert len(end.trace) == n_passes, end.message  # the first one evaluates the start
    seconds = np.diff([step.seconds for step in end.trace])
    return Passes(tuple(seconds), end.objective, end.params.components.gaussian.covs)


class _Timed(GaussianMixture):
    """scikit-learn's own, with a clock at the end of each M-step."""

    def _m_step(self, *args, **kwargs):
        super()._m_step(*args, **kwargs)
        self.clock_.append(time.perf_counter())


def scikit_learn(X: np.ndarray, start: Start, n_passes: int, threads: int) -> Passes:
    model = _Timed(
        len(start.weights),
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=np.linalg.inv(start.covs),
        reg_covar=0.0,
        tol=0.0,
        max_iter=n_passes,
    )
    model.clock_ = []
    with threadpool_limits(threads, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return Passes(tuple(np.diff(model.clock_)), model.lower_bound_ * len(X), model.covariances_)


def pomegranate(X: np.ndarray, start: Start, n_passes: int) -> Passes:
    """Differences of two runs, as its loop has no place for a clock; with the better number of threads."""
    import torch

    results = []
    for threads in sorted({1, CORES}):
        torch.set_num_threads(threads)
        short, _ = _pomegranate_run(X, start, 1)
        long, log_lik = _pomegranate_run(X, start, n_passes)
        results.append(Passes(((long - short) / (n_passes - 1),), log_lik))
    return min(results, key=lambda passes: passes.seconds)


def _pomegranate_run(X: np.ndarray, start: Start, n_passes: int) -> tuple[float, float]:
    """Seconds, and the log-likelihood one update before the last: where everyone else stands after n passes."""
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel

    data = torch.from_numpy(X)
    parts = [Normal(torch.from_numpy(m.copy()), torch.from_numpy(c.copy())) for m, c in zip(start.means, start.covs)]
    model = GeneralMixtureModel(parts, torch.from_numpy(start.weights.copy()), max_iter=n_passes, tol=-np.inf)
    before = []
    summarize = model.summarize
    model.summarize = lambda *args, **kwargs: before.append(float(summarize(*args, **kwargs))) or before[-1]
    began = time.perf_counter()
    model.fit(data)
    return time.perf_counter() - began, before[-1]


R_SCRIPT = """
suppressPackageStartupMessages(library(mclust))
args <- commandArgs(trailingOnly = TRUE); n <- as.integer(args[2]); d <- as.integer(args[3]); K <- as.integer(args[4])
x <- matrix(readBin(file.path(args[1], "X"), "double", n * d), n, d)
z <- unmap(readBin(file.path(args[1], "label"), "integer", n), groups = 0:(K - 1))
took <- function(n_passes) {
  control <- emControl(tol = c(0, 0), itmax = c(n_passes, n_passes))
  seconds <- system.time(fit <- suppressWarnings(meVVV(x, z, control = control)), gcFirst = FALSE)[["elapsed"]]
  c(seconds, fit$loglik)
}
short <- took(1); long <- took(as.integer(args[5]))
cat(format(c(short[1], long), digits = 17), "\\n")
"""


def mclust(X: np.ndarray, start: Start, n_passes: int) -> Passes:
    """Differences of two runs of meVVV in R."""
    with tempfile.TemporaryDirectory() as folder:
        np.asfortranarray(X).T.tofile(Path(folder) / "X")
        start.label.astype(np.int32).tofile(Path(folder) / "label")
        sizes = map(str, (*X.shape, len(start.weights), n_passes))
        command = ["Rscript", "-e", R_SCRIPT, folder, *sizes]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    short, long, log_lik = map(float, printed.split()[-3:])
    return Passes(((long - short) / (n_passes - 1),), log_lik)


def has_mclust() -> bool:
    if which("Rscript") is None:
        return False
    command = ["Rscript", "-e", "quit(status = !requireNamespace('mclust', quietly = TRUE))"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def slow_peers(without: tuple[str, ...]) -> dict[str, tuple[Method, Callable[[Case], bool]]]:
    """Peers measured once a run, and the cases they get: a pass of minutes teaches nothing."""
    peers: dict[str, tuple[Method, Callable[[Case], bool]]] = {}
    if find_spec("pomegranate") is not None and "pomegranate" not in without:
        peers["pomegranate"] = pomegranate, lambda case: True
    if "mclust" not in without and has_mclust():
        peers["R mclust"] = mclust, lambda case: case.work < 3e9
    return peers
