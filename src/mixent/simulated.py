"""Simulated answers of black-box classifiers, with the truth: votes, vendors' probabilities, matchers' scores.

The names are public in `mixent.datasets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import expit, log_expit
from sklearn.utils import check_random_state

HEALTH = np.array(["healthy", "ill"])
LABELS = np.array(["client", "impostor"])
N_VIEW = 8  # features that a vendor sees


@dataclass(frozen=True, eq=False)
class Votes:
    """Answers of `simulate_votes`; classes are 0, 1, ..., K - 1."""

    truth: np.ndarray  # (n,)
    answers: dict[str, np.ndarray]  # (n,) of every source; objects with None where sources abstain
    labelled: dict[str, tuple[np.ndarray, np.ndarray]]  # calibration rows of every source: truth, said
    copy_of: dict[str, str]  # copy to original
    priors: np.ndarray  # (K,) that the items were drawn at
    calibration_priors: np.ndarray  # (K,)
    accuracy: np.ndarray  # (n_sources,) without copies


@dataclass(frozen=True, eq=False)
class Vendors:
    """Answers of `simulate_vendors`; columns of all probabilities are in the order of `classes`."""

    truth: np.ndarray  # (n,) "healthy" or "ill"
    answers: dict[str, np.ndarray]  # (n, 2) probabilities that every vendor gives
    labelled: dict[str, tuple[np.ndarray, np.ndarray]]  # own rows of every vendor, new to it: truth, (m, 2)
    training_priors: dict[str, np.ndarray]  # (2,) shares in every vendor's training rows
    true_proba: np.ndarray  # (n, 2) exact p(class | all features) at the prevalence of the batch
    priors: np.ndarray  # (2,) that the batch was drawn at
    classes: np.ndarray  # (2,)


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """Scores of claims, some true and some not."""

    truth: np.ndarray  # (n,) "client" or "impostor"
    scores: dict[str, np.ndarray]  # (n,) of every system, on its own scale
    llr: np.ndarray  # (n,) exact log-likelihood ratio of all systems together, nats


@dataclass(frozen=True, eq=False)
class Verification:
    """Scores of `simulate_verification`: one set to learn from, one to be judged on."""

    development: ScoreSet
    evaluation: ScoreSet


def simulate_votes(
    n_items: int = 1000,
    *,
    priors: Any = (0.5, 0.5),
    n_sources: int = 5,
    accuracy: Any = 0.8,
    n_copies: int = 0,
    correlation: float = 0.0,
    n_calibration: int = 100,
    calibration_priors: Any = None,
    abstain: float = 0.0,
    random_state: Any = None,
) -> Votes:
    """Labels that sources give to items, each source calibrated on its own labelled rows.

    Item i has the class y_i, drawn from `priors`. A vote of accuracy a comes from a uniform u and a wrong class w (one
    of the K - 1 others, equally likely): it is y_i if u < a, otherwise w. Source j has its own (u_ij, w_ij); with
    probability `correlation`, independently of all else, it takes the pair (u_i, w_i) that is common to the item. So
    each source is right with probability a_j whatever the correlation r, and the errors of two sources of the same
    accuracy have the correlation r^2; those who err on the common pair all say the same wrong class.

    The sources' calibration rows are drawn in the same way, at `calibration_priors`, anew for every source: no row is
    common. Copies of the first source give its answers and have its calibration rows. With the same `random_state`,
    copies and the number of calibration rows change no answer, and the number of items changes no calibration row.

    Parameters
    ----------
    n_items : int
    priors : (K,) shares of the classes
    n_sources : int
        Without copies.
    accuracy : float or (n_sources,) floats
        Probability that a source which answers is right.
    n_copies : int
        Copies of the first source, named "source 1 copy 1" and so on.
    correlation : float
        From 0 to 1, see above.
    n_calibration : int
        Labelled rows of each source; 0 for none.
    calibration_priors : (K,) shares, optional
        Equal ones by default.
    abstain : float
        Share of answers that are None, independent of all else; at least 0 and less than 1.
    random_state : int, RandomState or None

    Returns
    -------
    Votes

    Examples
    --------
    >>> from mixent.datasets import simulate_votes
    >>> votes = simulate_votes(200, priors=(0.2, 0.8), n_sources=3, n_copies=1, random_state=0)
    >>> list(votes.answers)
    ['source 1', 'source 2', 'source 3', 'source 1 copy 1']
    >>> truth, said = votes.labelled["source 2"]
    >>> truth.shape, said.shape
    ((100,), (100,))
    """
    for name, value, least in (("n_items", n_items, 1), ("n_sources", n_sources, 1)):
        _check_whole(name, value, least)
    for name, value in (("n_copies", n_copies), ("n_calibration", n_calibration)):
        _check_whole(name, value, 0)
    prior = _check_priors("priors", priors)
    before = np.full(len(prior), 1 / len(prior))
    if calibration_priors is not None:
        before = _check_priors("calibration_priors", calibration_priors, len(prior))
    right = _per_source("accuracy", accuracy, n_sources, 0, 1)
    _check_between("correlation", correlation, 0, 1)
    _check_between("abstain", abstain, 0, 1)
    if abstain == 1:
        raise ValueError("abstain must be less than 1: sources that never answer say nothing; got 1")
    items, *streams = _streams(random_state, 1 + 2 * n_sources)
    truth = items.choice(len(prior), n_items, p=prior)
    common = _draw(items, n_items, len(prior))
    answers, labelled = {}, {}
    for j, a in enumerate(right):
        own, calibration = streams[2 * j], streams[2 * j + 1]
        name = f"source {j + 1}"
        pair = np.where(own.random(n_items) < correlation, common, _draw(own, n_items, len(prior)))
        answers[name] = _abstaining(own, _vote(truth, a, pair, len(prior)), abstain)
        rows = calibration.choice(len(prior), n_calibration, p=before)
        said = _vote(rows, a, _draw(calibration, n_calibration, len(prior)), len(prior))
        labelled[name] = rows, _abstaining(calibration, said, abstain)
    copy_of = {f"source 1 copy {i + 1}": "source 1" for i in range(n_copies)}
    answers |= {copy: answers[original].copy() for copy, original in copy_of.items()}
    labelled |= {copy: labelled[original] for copy, original in copy_of.items()}
    return Votes(truth, answers, labelled, copy_of, prior, before, right)


def simulate_vendors(
    n_items: int = 1000,
    *,
    prevalence: float = 0.05,
    training_prevalence: Any = 0.3,
    n_vendors: int = 2,
    separation: Any = 2.0,
    overlap: float = 0.5,
    n_training: int = 500,
    n_calibration: int = 200,
    random_state: Any = None,
) -> Vendors:
    """Probabilities of illness from vendors' models, in a hospital where illness is rarer than where they were trained.

    Each vendor sees 8 features of a patient, normal with variance 1 and independent given the class; their means are 0
    among the healthy and separation / sqrt(8) among the ill, so that `separation` is the distance between the classes
    in what a vendor sees. The first features (the share `overlap` of the 8) are the same for all vendors; the rest are
    each one's own. A vendor fits a linear discriminant (class means, one covariance) to its own training rows and gives
    its posterior, at the prior of these rows.

    Parameters
    ----------
    n_items : int
        Patients in the batch.
    prevalence : float
        Share of the ill in the batch, above 0 and below 1.
    training_prevalence : float or (n_vendors,) floats
        Share of the ill in the training and calibration rows of a vendor.
    n_vendors : int
    separation : float or (n_vendors,) floats
    overlap : float
        From 0 (nothing in common) to 1 (the same features). A common feature counts for the separation that the
        vendor has; where separations differ, its mean is that of the first.
    n_training, n_calibration : int
        Rows of each vendor, all its own. Calibration rows are new to the vendor's model.
    random_state : int, RandomState or None

    Returns
    -------
    Vendors

    Examples
    --------
    >>> from mixent.datasets import simulate_vendors
    >>> batch = simulate_vendors(500, random_state=0)
    >>> batch.answers["vendor 1"].shape, batch.training_priors["vendor 1"].tolist()
    ((500, 2), [0.7, 0.3])
    """
    _check_whole("n_items", n_items, 1)
    _check_whole("n_vendors", n_vendors, 1)
    _check_whole("n_calibration", n_calibration, 0)
    _check_whole("n_training", n_training, 4 * N_VIEW)
    _check_inside("prevalence", prevalence)
    _check_between("overlap", overlap, 0, 1)
    trained = _per_source("training_prevalence", training_prevalence, n_vendors, 0, 1)
    shift = _per_source("separation", separation, n_vendors, 0, np.inf)[:, None] / np.sqrt(N_VIEW) * np.ones(N_VIEW)
    n_common = round(overlap * N_VIEW)
    shift[:, :n_common] = shift[0, :n_common]
    items, *streams = _streams(random_state, 1 + n_vendors)
    ill = items.random(n_items) < prevalence
    shared = items.standard_normal((n_items, n_common))
    ratio = _normal_ratio(shared + np.outer(ill, shift[0, :n_common]), shift[0, :n_common])
    answers, labelled, before = {}, {}, {}
    for j, rng in enumerate(streams):
        name = f"vendor {j + 1}"
        train = _shuffled_share(rng, n_training, trained[j])
        model = _discriminant(rng.standard_normal((n_training, N_VIEW)) + np.outer(train, shift[j]), train)
        own = np.hstack([shared, rng.standard_normal((n_items, N_VIEW - n_common))]) + np.outer(ill, shift[j])
        ratio += _normal_ratio(own[:, n_common:], shift[j, n_common:])
        rows = rng.random(n_calibration) < trained[j]
        new = rng.standard_normal((n_calibration, N_VIEW)) + np.outer(rows, shift[j])
        answers[name], labelled[name] = _pmf(model, own), (HEALTH[rows.astype(int)], _pmf(model, new))
        before[name] = np.array([1 - train.mean(), train.mean()])
    odds = ratio + np.log(prevalence) - np.log1p(-prevalence)
    exact = np.column_stack([expit(-odds), expit(odds)])
    truth, prior = HEALTH[ill.astype(int)], np.array([1 - prevalence, prevalence])
    return Vendors(truth, answers, labelled, before, exact, prior, HEALTH.copy())


def simulate_verification(
    n_clients: int = 400,
    n_impostors: int = 111_800,
    *,
    development: tuple[int, int] = (600, 40_000),
    n_systems: int = 2,
    separation: Any = 4.0,
    correlation: float = 0.3,
    random_state: Any = None,
) -> Verification:
    """Scores of biometric systems for clients and impostors, in the sizes of document 004, section 5.2 (LP1).

    Behind the score of system j stands z_j, normal with variance 1 and mean 0 for impostors, separation_j for clients;
    given the class, any two systems' z have the correlation given. So a system's equal error rate is
    Phi(-separation / 2): 2.3 % at the default. Its score is an increasing function of z_j on a scale of its own:
    systems 1, 3, ... are networks whose outputs lie between -1 and 1, tanh((z - separation / 2) / 2), and systems 2,
    4, ... densities whose scores are 10 z - 40.

    Parameters
    ----------
    n_clients, n_impostors : int
        Of the evaluation set.
    development : (int, int)
        Clients and impostors of the development set.
    n_systems : int
    separation : float or (n_systems,) floats
    correlation : float
        From 0 to less than 1.
    random_state : int, RandomState or None

    Returns
    -------
    Verification
        With `development` and `evaluation`, each of truth, scores by system and the exact log-likelihood ratio.

    Examples
    --------
    >>> from mixent.datasets import simulate_verification
    >>> found = simulate_verification(40, 1000, development=(60, 500), random_state=0)
    >>> len(found.development.truth), found.evaluation.scores["system 2"].shape
    (560, (1040,))
    """
    _check_whole("n_systems", n_systems, 1)
    _check_between("correlation", correlation, 0, 1)
    if correlation == 1:
        raise ValueError("correlation must be less than 1: otherwise the systems are one; got 1")
    if not isinstance(development, Sequence) or len(development) != 2:
        raise ValueError(f"development must be two numbers, of clients and of impostors; got {development!r}")
    sizes = (development, (n_clients, n_impostors))
    for name, value in zip(("development[0]", "development[1]", "n_clients", "n_impostors"), (*sizes[0], *sizes[1])):
        _check_whole(name, value, 1)
    shift = _per_source("separation", separation, n_systems, 0, np.inf)
    first, second = _streams(random_state, 2)
    return Verification(*(_claims(rng, *n, shift, correlation) for rng, n in zip((first, second), sizes)))


def _claims(rng: np.random.Generator, n_clients: int, n_impostors: int, shift: np.ndarray, r: float) -> ScoreSet:
    client = np.arange(n_clients + n_impostors) < n_clients
    rng.shuffle(client)
    common = rng.standard_normal((len(client), 1))
    z = np.sqrt(r) * common + np.sqrt(1 - r) * rng.standard_normal((len(client), len(shift)))
    z += np.outer(client, shift)
    covariance = (1 - r) * np.eye(len(shift)) + r
    towards = np.linalg.solve(covariance, shift)
    scores = {}
    for j, d in enumerate(shift):
        scores[f"system {j + 1}"] = 10 * z[:, j] - 40 if j % 2 else np.tanh((z[:, j] - d / 2) / 2)
    return ScoreSet(LABELS[(~client).astype(int)], scores, (z - shift / 2) @ towards)


def _draw(rng: np.random.Generator, n: int, n_classes: int) -> np.ndarray:
    """(2, n): u, and which of the other classes is said where u is too large."""
    return np.stack([rng.random(n), rng.integers(1, n_classes, n)])


def _vote(truth: np.ndarray, accuracy: float, pair: np.ndarray, n_classes: int) -> np.ndarray:
    return np.where(pair[0] < accuracy, truth, (truth + pair[1].astype(int)) % n_classes)


def _abstaining(rng: np.random.Generator, said: np.ndarray, abstain: float) -> np.ndarray:
    if abstain == 0:
        return said
    said = said.astype(object)
    said[rng.random(len(said)) < abstain] = None
    return said


def _shuffled_share(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """(n,) mask with round(share * n) rows, two of each kind at least."""
    n_ill = round(share * n)
    if not 2 <= n_ill <= n - 2:
        raise ValueError(
            f"training_prevalence {share:.3g} of {n} training rows leaves a class with fewer than two; "
            "raise n_training, or move it away from 0 and 1"
        )
    return rng.permutation(np.arange(n) < n_ill)


def _discriminant(X: np.ndarray, ill: np.ndarray) -> tuple[np.ndarray, float]:
    """Slope and intercept of the log-odds of illness: two normal classes of one covariance, by maximum likelihood."""
    means = np.stack([X[~ill].mean(axis=0), X[ill].mean(axis=0)])
    rest = X - means[ill.astype(int)]
    slope = np.linalg.solve(rest.T @ rest / len(X), means[1] - means[0])
    share = ill.mean()
    return slope, float(np.log(share / (1 - share)) - means.mean(axis=0) @ slope)


def _pmf(model: tuple[np.ndarray, float], X: np.ndarray) -> np.ndarray:
    odds = X @ model[0] + model[1]
    return np.exp(np.column_stack([log_expit(-odds), log_expit(odds)]))


def _normal_ratio(X: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """(n,) log N(x; shift, I) / N(x; 0, I)."""
    return (X - shift / 2) @ shift


def _streams(random_state: Any, n: int) -> list[np.random.Generator]:
    """Generators of their own for every part, so that one part's size changes no other."""
    seed = check_random_state(random_state).randint(2**31 - 1)
    return [np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(n)]


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")


def _check_between(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}; got {value!r}")


def _check_inside(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be a number above 0 and below 1; got {value!r}")


def _check_priors(name: str, values: Any, n_classes: int | None = None) -> np.ndarray:
    share = np.asarray(values, dtype=float)
    if share.ndim != 1 or len(share) < 2 or not (share >= 0).all() or abs(share.sum() - 1) > 1e-6:
        raise ValueError(f"{name} must be shares of two classes or more, >= 0 and of sum 1; got {values!r}")
    if n_classes is not None and len(share) != n_classes:
        raise ValueError(f"{name} has {len(share)} shares, priors has {n_classes}")
    return share / share.sum()


def _per_source(name: str, values: Any, n: int, low: float, high: float) -> np.ndarray:
    """(n,) one number for all, or one for each."""
    found = np.asarray(values, dtype=float)
    if found.ndim == 0:
        found = np.full(n, found)
    if found.shape != (n,):
        raise ValueError(f"{name} must be one number or {n}; got {values!r}")
    if not (np.isfinite(found) & (found >= low) & (found <= high)).all():
        top = f"from {low} to {high}" if np.isfinite(high) else f"finite and at least {low}"
        raise ValueError(f"{name} must be {top}; got {values!r}")
    return found
