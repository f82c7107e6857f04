"""Simulated answers of black-box classifiers with their true classes: votes, probabilities and scores.

The public names are in `mixent.datasets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import expit, log_expit
from sklearn.utils import check_random_state

from mixent.show import Short

HEALTH = np.array(["healthy", "ill"])
LABELS = np.array(["client", "impostor"])
N_OBSERVED = 8  # features that each vendor observes


@dataclass(frozen=True, eq=False, repr=False)
class Votes(Short):
    """Result of `simulate_votes`; the classes are 0, 1, ..., K - 1."""

    truth: np.ndarray  # (n,) true classes
    answers: dict[str, np.ndarray]  # source -> (n,) labels; an object array with None if sources abstain
    labelled: dict[str, tuple[np.ndarray, np.ndarray]]  # source -> true classes and labels of its calibration rows
    copy_of: dict[str, str]  # copy -> original
    priors: np.ndarray  # (K,) class priors of the items
    calibration_priors: np.ndarray  # (K,)
    accuracy: np.ndarray  # (n_sources,) without copies


@dataclass(frozen=True, eq=False, repr=False)
class Vendors(Short):
    """Result of `simulate_vendors`; columns of all probabilities are in the order of `classes`."""

    truth: np.ndarray  # (n,) "healthy" or "ill"
    answers: dict[str, np.ndarray]  # vendor -> (n, 2) probabilities
    labelled: dict[str, tuple[np.ndarray, np.ndarray]]  # vendor -> true classes and (m, 2) of its calibration rows
    training_priors: dict[str, np.ndarray]  # vendor -> (2,) class frequencies of its training rows
    true_proba: np.ndarray  # (n, 2) exact p(class | all features) at the prevalence of the batch
    priors: np.ndarray  # (2,) class priors of the batch
    classes: np.ndarray  # (2,)


@dataclass(frozen=True, eq=False, repr=False)
class ScoreSet(Short):
    """Scores of identity claims by clients and impostors."""

    truth: np.ndarray  # (n,) "client" or "impostor"
    scores: dict[str, np.ndarray]  # system -> (n,) scores, on its own scale
    llr: np.ndarray  # (n,) exact log-likelihood ratio given the scores of all systems, in nats


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Short):
    """Result of `simulate_verification`: a set for calibration and a set for evaluation."""

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
    """Simulate the labels of several sources for the same items, with a separate calibration set for each source.

    Item i has the class y_i, drawn from `priors`. The vote of a source with accuracy a is determined by a uniform
    random number u and a wrong class w, drawn uniformly from the K - 1 other classes: it is y_i if u < a, otherwise w.
    Source j has its own pair (u_ij, w_ij). With probability `correlation`, independently for each source and item, it
    uses the pair (u_i, w_i) shared by all sources instead. Each source is therefore correct with probability a_j
    whatever the correlation r, and the errors of two sources with the same accuracy have correlation r^2. Sources that
    use the shared pair and are wrong all give the same wrong class.

    The calibration rows are drawn in the same way, at `calibration_priors` and independently for each source, so that
    no two sources share a row. Copies of the first source have its answers and its calibration rows. For the same
    `random_state`, the answers do not depend on the number of copies or of calibration rows, and the calibration rows
    do not depend on the number of items.

    Parameters
    ----------
    n_items : int, default=1000
        Number of items.
    priors : (K,) array, default=(0.5, 0.5)
        Class priors of the items.
    n_sources : int, default=5
        Number of sources, without copies.
    accuracy : float or (n_sources,) array, default=0.8
        Probability that an answer of a source is correct.
    n_copies : int, default=0
        Number of copies of the first source, named "source 1 copy 1" and so on.
    correlation : float, default=0.0
        Probability of the shared pair, between 0 and 1; see above.
    n_calibration : int, default=100
        Number of labelled rows of each source.
    calibration_priors : (K,) array, optional
        Class priors of the calibration rows (default: equal priors).
    abstain : float, default=0.0
        Probability that an answer is None, independently of everything else; at least 0 and less than 1.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    Votes

    Examples
    --------
    >>> from mixent.datasets import simulate_votes
    >>> votes = simulate_votes(200, priors=(0.2, 0.8), n_sources=3, n_copies=1, random_state=0)
    >>> list(votes.answers)
    ['source 1', 'source 2', 'source 3', 'source 1 copy 1']
    >>> truth, labels = votes.labelled["source 2"]
    >>> truth.shape, labels.shape
    ((100,), (100,))
    """
    for name, value, least in (("n_items", n_items, 1), ("n_sources", n_sources, 1)):
        _check_whole(name, value, least)
    for name, value in (("n_copies", n_copies), ("n_calibration", n_calibration)):
        _check_whole(name, value, 0)
    prior = _check_priors("priors", priors)
    calibration_prior = np.full(len(prior), 1 / len(prior))
    if calibration_priors is not None:
        calibration_prior = _check_priors("calibration_priors", calibration_priors, len(prior))
    accuracies = _per_source("accuracy", accuracy, n_sources, 0, 1)
    _check_between("correlation", correlation, 0, 1)
    _check_between("abstain", abstain, 0, 1)
    if abstain == 1:
        raise ValueError("abstain must be less than 1, so that the sources give some answers; got 1")
    items, *streams = _streams(random_state, 1 + 2 * n_sources)
    truth = items.choice(len(prior), n_items, p=prior)
    shared = _draw(items, n_items, len(prior))
    answers, labelled = {}, {}
    for j, a in enumerate(accuracies):
        rng, calibration_rng = streams[2 * j], streams[2 * j + 1]
        name = f"source {j + 1}"
        pair = np.where(rng.random(n_items) < correlation, shared, _draw(rng, n_items, len(prior)))
        answers[name] = _abstaining(rng, _vote(truth, a, pair, len(prior)), abstain)
        y = calibration_rng.choice(len(prior), n_calibration, p=calibration_prior)
        labels = _vote(y, a, _draw(calibration_rng, n_calibration, len(prior)), len(prior))
        labelled[name] = y, _abstaining(calibration_rng, labels, abstain)
    copy_of = {f"source 1 copy {i + 1}": "source 1" for i in range(n_copies)}
    answers |= {copy: answers[original].copy() for copy, original in copy_of.items()}
    labelled |= {copy: labelled[original] for copy, original in copy_of.items()}
    return Votes(truth, answers, labelled, copy_of, prior, calibration_prior, accuracies)


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
    """Simulate the probabilities of several vendors' models on patients with another prevalence than in training.

    Each vendor observes 8 features of a patient, which are normal with variance 1 and independent given the class.
    Their means are 0 for healthy patients and separation / sqrt(8) for ill patients, so that `separation` is the
    distance between the class means in the features of a vendor. The first features (a share `overlap` of the 8) are
    the same for all vendors; the others differ between vendors. Each vendor fits a linear discriminant (class means
    and a common covariance) to its own training rows, and gives its posterior at the class priors of these rows.

    Parameters
    ----------
    n_items : int, default=1000
        Number of patients in the batch.
    prevalence : float, default=0.05
        Prior of "ill" in the batch, between 0 and 1 (exclusive).
    training_prevalence : float or (n_vendors,) array, default=0.3
        Share of ill patients in the training and calibration rows of a vendor.
    n_vendors : int, default=2
        Number of vendors.
    separation : float or (n_vendors,) array, default=2.0
        Distance between the class means in the features of a vendor.
    overlap : float, default=0.5
        Share of common features, from 0 (no common features) to 1 (the same features). If the separations differ, the
        common features have the means of the first vendor.
    n_training, n_calibration : int, default=500 and 200
        Number of training and of calibration rows of each vendor. No two vendors share a row, and the calibration rows
        are not used for training.
    random_state : int, RandomState or None
        Seed.

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
    _check_whole("n_training", n_training, 4 * N_OBSERVED)
    _check_inside("prevalence", prevalence)
    _check_between("overlap", overlap, 0, 1)
    prevalences = _per_source("training_prevalence", training_prevalence, n_vendors, 0, 1)
    distance = _per_source("separation", separation, n_vendors, 0, np.inf)
    shift = distance[:, None] / np.sqrt(N_OBSERVED) * np.ones(N_OBSERVED)  # (J, 8) difference of the class means
    n_common = round(overlap * N_OBSERVED)
    shift[:, :n_common] = shift[0, :n_common]
    items, *streams = _streams(random_state, 1 + n_vendors)
    ill = items.random(n_items) < prevalence
    shared = items.standard_normal((n_items, n_common))
    ratio = _normal_ratio(shared + np.outer(ill, shift[0, :n_common]), shift[0, :n_common])
    answers, labelled, training_priors = {}, {}, {}
    for j, rng in enumerate(streams):
        name = f"vendor {j + 1}"
        train_ill = _shuffled_share(rng, n_training, prevalences[j])
        X_train = rng.standard_normal((n_training, N_OBSERVED)) + np.outer(train_ill, shift[j])
        model = _discriminant(X_train, train_ill)
        X = np.hstack([shared, rng.standard_normal((n_items, N_OBSERVED - n_common))]) + np.outer(ill, shift[j])
        ratio += _normal_ratio(X[:, n_common:], shift[j, n_common:])
        calibration_ill = rng.random(n_calibration) < prevalences[j]
        X_calibration = rng.standard_normal((n_calibration, N_OBSERVED)) + np.outer(calibration_ill, shift[j])
        answers[name] = _pmf(model, X)
        labelled[name] = HEALTH[calibration_ill.astype(int)], _pmf(model, X_calibration)
        training_priors[name] = np.array([1 - train_ill.mean(), train_ill.mean()])
    odds = ratio + np.log(prevalence) - np.log1p(-prevalence)
    exact = np.column_stack([expit(-odds), expit(odds)])
    truth, prior = HEALTH[ill.astype(int)], np.array([1 - prevalence, prevalence])
    return Vendors(truth, answers, labelled, training_priors, exact, prior, HEALTH.copy())


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
    """Simulate the scores of biometric systems for clients and impostors.

    The default numbers of clients and impostors are those of Pal (2006, section 5.2, LP1).

    The score of system j is an increasing function of a latent z_j, which is normal with variance 1 and mean 0 for
    impostors and `separation` for clients; given the class, any two z have correlation `correlation`. The equal error
    rate of a system is Phi(-separation / 2), 2.3 % by default. The systems have different scales: the scores of systems
    1, 3, ... are tanh((z - separation / 2) / 2), between -1 and 1 as for a neural network, and those of systems 2,
    4, ... are 10 z - 40, as for log densities.

    Parameters
    ----------
    n_clients, n_impostors : int, default=400 and 111 800
        Number of clients and of impostors in the evaluation set.
    development : (int, int), default=(600, 40 000)
        Number of clients and of impostors in the development set.
    n_systems : int, default=2
        Number of systems.
    separation : float or (n_systems,) array, default=4.0
        Mean of z for clients.
    correlation : float, default=0.3
        Correlation of the systems given the class; at least 0 and less than 1.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    Verification
        `development` and `evaluation`, each with the true classes, the scores of the systems and the exact
        log-likelihood ratios.

    Examples
    --------
    >>> from mixent.datasets import simulate_verification
    >>> claims = simulate_verification(40, 1000, development=(60, 500), random_state=0)
    >>> len(claims.development.truth), claims.evaluation.scores["system 2"].shape
    (560, (1040,))
    """
    _check_whole("n_systems", n_systems, 1)
    _check_between("correlation", correlation, 0, 1)
    if correlation == 1:
        raise ValueError("correlation must be less than 1, so that the systems differ; got 1")
    if not isinstance(development, Sequence) or len(development) != 2:
        raise ValueError(f"development must be (number of clients, number of impostors); got {development!r}")
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
    discriminant = np.linalg.solve(covariance, shift)
    scores = {}
    for j, d in enumerate(shift):
        scores[f"system {j + 1}"] = 10 * z[:, j] - 40 if j % 2 else np.tanh((z[:, j] - d / 2) / 2)
    return ScoreSet(LABELS[(~client).astype(int)], scores, (z - shift / 2) @ discriminant)


def _draw(rng: np.random.Generator, n: int, n_classes: int) -> np.ndarray:
    """(2, n) pairs: u, and the offset of the wrong class, from 1 to K - 1."""
    return np.stack([rng.random(n), rng.integers(1, n_classes, n)])


def _vote(truth: np.ndarray, accuracy: float, pair: np.ndarray, n_classes: int) -> np.ndarray:
    return np.where(pair[0] < accuracy, truth, (truth + pair[1].astype(int)) % n_classes)


def _abstaining(rng: np.random.Generator, labels: np.ndarray, abstain: float) -> np.ndarray:
    if abstain == 0:
        return labels
    labels = labels.astype(object)
    labels[rng.random(len(labels)) < abstain] = None
    return labels


def _shuffled_share(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """(n,) random mask with round(share * n) true values, and at least two of each value."""
    n_ill = round(share * n)
    if not 2 <= n_ill <= n - 2:
        raise ValueError(
            f"each class must have at least two training rows; got training_prevalence={share:.3g} with {n} training "
            "rows. Increase n_training, or choose training_prevalence further from 0 and 1"
        )
    return rng.permutation(np.arange(n) < n_ill)


def _discriminant(X: np.ndarray, ill: np.ndarray) -> tuple[np.ndarray, float]:
    """Slope and intercept of the log-odds of "ill", by linear discriminant analysis (maximum likelihood)."""
    means = np.stack([X[~ill].mean(axis=0), X[ill].mean(axis=0)])
    residual = X - means[ill.astype(int)]
    slope = np.linalg.solve(residual.T @ residual / len(X), means[1] - means[0])
    share = ill.mean()
    return slope, float(np.log(share / (1 - share)) - means.mean(axis=0) @ slope)


def _pmf(model: tuple[np.ndarray, float], X: np.ndarray) -> np.ndarray:
    odds = X @ model[0] + model[1]
    return np.exp(np.column_stack([log_expit(-odds), log_expit(odds)]))


def _normal_ratio(X: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """(n,) log N(x; shift, I) / N(x; 0, I)."""
    return (X - shift / 2) @ shift


def _streams(random_state: Any, n: int) -> list[np.random.Generator]:
    """Independent generators, so that the size of one part of the data does not change the others."""
    seed = check_random_state(random_state).randint(2**31 - 1)
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(n)]


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")


def _check_between(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}; got {value!r}")


def _check_inside(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be a number between 0 and 1 (exclusive); got {value!r}")


def _check_priors(name: str, values: Any, n_classes: int | None = None) -> np.ndarray:
    prior = np.asarray(values, dtype=float)
    if prior.ndim != 1 or len(prior) < 2 or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-6:
        raise ValueError(f"{name} must be the priors of at least two classes, >= 0 and with sum 1; got {values!r}")
    if n_classes is not None and len(prior) != n_classes:
        raise ValueError(f"{name} must have as many classes as priors, {n_classes}; got {len(prior)}")
    return prior / prior.sum()


def _per_source(name: str, values: Any, n: int, low: float, high: float) -> np.ndarray:
    """(n,) values, from one number for all sources or one for each."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise ValueError(f"{name} must be one number, or one for each of the {n} sources; got {values!r}")
    if not (np.isfinite(array) & (array >= low) & (array <= high)).all():
        bounds = f"from {low} to {high}" if np.isfinite(high) else f"finite and at least {low}"
        raise ValueError(f"{name} must be {bounds}; got {values!r}")
    return array
