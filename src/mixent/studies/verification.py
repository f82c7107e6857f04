"""Verification: error rates, detection costs and calibration of likelihood ratios.

In verification, a row is a client (with the label `target`) or an impostor (with any other label). It is accepted if
its score is at least the threshold t. In the notation of document 004, chapter 5, with N_C clients and N_I impostors:
    FAR(t) = FA / N_I       false acceptance rate: share of the impostors that are accepted,
    FRR(t) = FR / N_C       false rejection rate: share of the clients that are rejected,
    HTER   = (FAR + FRR) / 2,
    DCF    = prior * cost_miss * FRR + (1 - prior) * cost_false_alarm * FAR,
where prior is the prior probability of a client in the application, which may differ from the share of clients among
the rows. If the score is a log-likelihood ratio, llr = log p(x | client) / p(x | impostor) in nats, the expected cost
is minimal at the threshold
    t = log(cost_false_alarm (1 - prior) / (cost_miss prior)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from mixent.base.document import Content, Number, Table
from mixent.base.params import check_number, check_positive
from mixent.base.result import Result
from mixent.data.labels import as_labels, classes_of, encode, label_value, labelled_rows


@dataclass(frozen=True, repr=False)
class VerificationRates(Result):
    """Error counts and rates at one threshold, or of given decisions."""

    _title = "Error rates of verification"
    _shown: ClassVar[tuple[str, ...]] = ("far", "frr", "hter")

    n_clients: int
    n_impostors: int
    false_accepts: int
    false_rejects: int

    @property
    def far(self) -> float:
        """False acceptance rate: share of the impostors that are accepted."""
        return self.false_accepts / self.n_impostors

    @property
    def frr(self) -> float:
        """False rejection rate: share of the clients that are rejected."""
        return self.false_rejects / self.n_clients

    @property
    def hter(self) -> float:
        """Half total error rate, (FAR + FRR) / 2."""
        return (self.far + self.frr) / 2

    def _measures(self) -> list[tuple[str, str, str]]:
        """Name, value and explanation of every measure."""
        return [
            ("false accepts (FA)", f"{self.false_accepts}", f"of {self.n_impostors} impostors"),
            ("false rejects (FR)", f"{self.false_rejects}", f"of {self.n_clients} clients"),
            ("FAR", f"{100 * self.far:.3f} %", "false acceptance rate"),
            ("FRR", f"{100 * self.frr:.3f} %", "false rejection rate"),
            ("HTER", f"{100 * self.hter:.3f} %", "half total error rate, (FAR + FRR) / 2"),
        ]

    def _heading(self) -> str:
        return f"Verification of {self.n_clients} clients and {self.n_impostors} impostors"

    def _content(self) -> list[Content]:
        rows: list[list[Any]] = [[name, Number(value), text] for name, value, text in self._measures()]
        return [Table(self._heading(), ["measure", "value", "meaning"], rows)]

    def __str__(self) -> str:
        lines = self._measures()
        widths = [max(len(line[j]) for line in lines) for j in range(2)]
        return "\n".join([self._heading(), *(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}" for a, b, c in lines)])


@dataclass(frozen=True, repr=False)
class VerificationReport(VerificationRates):
    """All measures of the performance of scores in verification, at a given prior and costs; `str()` is a table."""

    _title = "Verification"
    _shown = ("target", "prior", "far", "frr", "dcf", "cllr")

    target: Any  # label of the clients
    prior: float  # prior probability of a client
    cost_miss: float
    cost_false_alarm: float
    threshold: float  # scores from this value on are accepted
    dcf: float  # detection cost at the threshold
    min_dcf: float  # detection cost at the best threshold for these rows
    trivial_dcf: float  # detection cost of accepting all or none, whichever is lower
    eer: float
    cllr: float  # bits
    min_cllr: float  # bits

    @property
    def normalized_dcf(self) -> float:
        """DCF divided by that of accepting all or none; above 1, the scores are worse than no scores."""
        return self.dcf / self.trivial_dcf

    @property
    def normalized_min_dcf(self) -> float:
        """Minimum DCF divided by that of accepting all or none; at most 1."""
        return self.min_dcf / self.trivial_dcf

    def _measures(self) -> list[tuple[str, str, str]]:
        return [
            *super()._measures(),
            ("DCF", f"{self.dcf:.5f}", f"expected cost; {self.normalized_dcf:.3f} of accepting all or none"),
            ("min DCF", f"{self.min_dcf:.5f}", f"at the best threshold; {self.normalized_min_dcf:.3f} of all or none"),
            ("EER", f"{100 * self.eer:.3f} %", "equal error rate, FAR = FRR"),
            ("Cllr", f"{self.cllr:.4f}", "bits; 1 without information, more if misleading"),
            ("min Cllr", f"{self.min_cllr:.4f}", "bits, after the best monotone calibration on these rows"),
        ]

    def _heading(self) -> str:
        costs = f"a miss costs {self.cost_miss:g}, a false alarm {self.cost_false_alarm:g}"
        return f"Verification of {self.target!r} at prior {self.prior:.4g}; {costs}; threshold {self.threshold:.4g}"


def verification_rates(
    y_true: ArrayLike, scores: ArrayLike, *, target: Any, threshold: float | None = None
) -> VerificationRates:
    """False acceptances and false rejections of scores at a threshold, or of decisions.

    Parameters
    ----------
    y_true : (n,) labels
    scores : (n,) scores or decisions
        With a threshold, scores that are high for clients. Without, decisions: labels as in `y_true` (accepted if equal
        to `target`), or booleans (accepted if True).
    target : label
        Label of the clients; all other rows are impostors.
    threshold : float, optional
        Rows with at least this score are accepted.

    Returns
    -------
    VerificationRates

    Examples
    --------
    >>> from mixent.studies import verification_rates
    >>> rates = verification_rates(["me", "me", "other", "other"], [2.0, -1.0, 0.5, -3.0], target="me", threshold=0)
    >>> rates.far, rates.frr, rates.hter
    (0.5, 0.5, 0.5)
    """
    client = _clients(y_true, target)
    if threshold is None:
        return _rates(client, _accepted(y_true, scores, target))
    return _rates(client, _scores("scores", scores, client) >= _checked_threshold(threshold))


def detection_cost(
    far: Any,
    frr: Any,
    prior: float,
    *,
    cost_miss: float = 1.0,
    cost_false_alarm: float = 1.0,
    normalized: bool = False,
) -> Any:
    """Detection cost function, prior * cost_miss * FRR + (1 - prior) * cost_false_alarm * FAR.

    Parameters
    ----------
    far, frr : float or array
    prior : float
        Prior probability of a client, between 0 and 1.
    cost_miss, cost_false_alarm : float
        Cost of a rejected client and of an accepted impostor.
    normalized : bool
        Whether to divide by min(prior * cost_miss, (1 - prior) * cost_false_alarm), the cost of accepting all or none,
        whichever is lower.

    Returns
    -------
    float or array

    Examples
    --------
    >>> from mixent.studies import detection_cost
    >>> round(detection_cost(0.02, 0.1, 0.01), 6)
    0.0208
    >>> round(detection_cost(0.02, 0.1, 0.01, cost_miss=10, normalized=True), 3)
    0.298
    """
    miss, alarm = _costs(prior, cost_miss, cost_false_alarm)
    for name, rate in (("far", far), ("frr", frr)):
        if not ((np.asarray(rate) >= 0) & (np.asarray(rate) <= 1)).all():
            raise ValueError(f"{name} must be between 0 and 1; got {rate!r}")
    cost = miss * np.asarray(frr, dtype=float) + alarm * np.asarray(far, dtype=float)
    cost = cost / min(miss, alarm) if normalized else cost
    return float(cost) if np.ndim(cost) == 0 else cost


def bayes_threshold(prior: float, *, cost_miss: float = 1.0, cost_false_alarm: float = 1.0) -> float:
    """The optimal threshold of log-likelihood ratios, log(cost_false_alarm (1 - prior) / (cost_miss prior)).

    Parameters
    ----------
    prior : float
        Prior probability of a client, between 0 and 1.
    cost_miss, cost_false_alarm : float
        Cost of a rejected client and of an accepted impostor.
    """
    miss, alarm = _costs(prior, cost_miss, cost_false_alarm)
    return float(np.log(alarm) - np.log(miss))


def llr_of_posterior(posterior: ArrayLike, prior: float) -> np.ndarray:
    """Log-likelihood ratios of posteriors p(client | x) at a prior, in nats: logit(posterior) - logit(prior).

    Posteriors of 0 and 1 have infinite ratios, and an infinite `cllr` if they are wrong.

    Parameters
    ----------
    posterior : (n,) array
    prior : float

    Returns
    -------
    (n,) array
    """
    _costs(prior, 1.0, 1.0)
    posterior = np.asarray(posterior, dtype=float)
    if not ((posterior >= 0) & (posterior <= 1)).all():
        raise ValueError("posterior must be between 0 and 1; give the probability that the row is a client")
    return logit(posterior) - logit(prior)


def min_dcf(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    target: Any,
    prior: float,
    cost_miss: float = 1.0,
    cost_false_alarm: float = 1.0,
    normalized: bool = False,
) -> float:
    """Minimum detection cost over all thresholds on these rows.

    It is optimistic, because the threshold is chosen on the rows on which it is evaluated. The difference from the cost
    at the Bayes threshold is due to the calibration of the scores at this prior.

    Parameters
    ----------
    y_true : (n,) labels
    scores : (n,) array
        High for clients; any monotone scale.
    target : label
    prior, cost_miss, cost_false_alarm, normalized
        As in `detection_cost`.
    """
    far, frr, _ = _operating_points(*_both(y_true, scores, target))
    costs = {"cost_miss": cost_miss, "cost_false_alarm": cost_false_alarm}
    return float(detection_cost(far, frr, prior, normalized=normalized, **costs).min())


def eer(y_true: ArrayLike, scores: ArrayLike, *, target: Any) -> float:
    """Equal error rate: the error rate at the threshold where FAR = FRR.

    Between adjacent thresholds, (FAR, FRR) is interpolated linearly. The rate of constant scores is 0.5. It is
    invariant under increasing transformations of the scores.

    Parameters
    ----------
    y_true : (n,) labels
    scores : (n,) array
        High for clients.
    target : label
    """
    return _eer(*_operating_points(*_both(y_true, scores, target))[:2])


def cllr(y_true: ArrayLike, llr: ArrayLike, *, target: Any) -> float:
    """Cost of log-likelihood ratios (Brümmer and du Preez, 2006), in bits.

    Cllr = 1/2 [ mean over clients of log2(1 + exp(-llr)) + mean over impostors of log2(1 + exp(llr)) ]

    This is the log-loss at prior 1/2, and proportional to the mean of the detection cost over all priors and costs. 0
    is perfect; 1 is the value of llr = 0 everywhere, without information; values above 1 are misleading. A single row
    with an infinite ratio of the wrong sign makes it infinite.

    Parameters
    ----------
    y_true : (n,) labels
    llr : (n,) array
        log p(x | client) / p(x | impostor), natural logarithm.
    target : label
    """
    return _cllr(*_both(y_true, llr, target))


def min_cllr(y_true: ArrayLike, scores: ArrayLike, *, target: Any) -> float:
    """Minimum Cllr over all increasing transformations of the scores on these rows (pool adjacent violators).

    It measures the discrimination of the scores; `cllr` minus this value is the loss due to calibration. It is
    optimistic on few rows.

    Parameters
    ----------
    y_true : (n,) labels
    scores : (n,) array
        High for clients; any monotone scale.
    target : label
    """
    return _min_cllr(*_both(y_true, scores, target))


def verification_report(
    y_true: ArrayLike,
    llr: ArrayLike,
    *,
    target: Any,
    prior: float,
    cost_miss: float = 1.0,
    cost_false_alarm: float = 1.0,
    threshold: float | None = None,
) -> VerificationReport:
    """All measures of one system at a given prior.

    Parameters
    ----------
    y_true : (n,) labels
    llr : (n,) array
        Log-likelihood ratios of client against impostor, in nats; for posteriors see `llr_of_posterior`. For scores on
        another scale, Cllr is meaningless and a threshold must be given.
    target : label
        Label of the clients; all other rows are impostors.
    prior : float
        Prior probability of a client in the application, between 0 and 1.
    cost_miss, cost_false_alarm : float
        Cost of a rejected client and of an accepted impostor.
    threshold : float, optional
        Rows with at least this score are accepted (default: `bayes_threshold` of the prior and the costs).

    Returns
    -------
    VerificationReport

    Examples
    --------
    >>> from mixent.studies import verification_report
    >>> y_true = ["me", "me", "me", "other", "other", "other"]
    >>> report = verification_report(y_true, [3.0, 2.0, -1.0, 0.5, -2.0, -4.0], target="me", prior=0.5)
    >>> report.false_accepts, report.false_rejects, round(report.cllr, 3)
    (1, 1, 0.627)
    """
    client, scores = _both(y_true, llr, target)
    miss, alarm = _costs(prior, cost_miss, cost_false_alarm)
    limit = float(np.log(alarm) - np.log(miss)) if threshold is None else _checked_threshold(threshold)
    rates = _rates(client, scores >= limit)
    far, frr, _ = _operating_points(client, scores)
    return VerificationReport(
        **vars(rates),
        target=label_value(target),
        prior=float(prior),
        cost_miss=float(cost_miss),
        cost_false_alarm=float(cost_false_alarm),
        threshold=limit,
        dcf=miss * rates.frr + alarm * rates.far,
        min_dcf=float((miss * frr + alarm * far).min()),
        trivial_dcf=min(miss, alarm),
        eer=_eer(far, frr),
        cllr=_cllr(client, scores),
        min_cllr=_min_cllr(client, scores),
    )


def _clients(y_true: ArrayLike, target: Any) -> np.ndarray:
    """(n,) mask of the clients; an error if there are no clients or no impostors."""
    labels = as_labels(y_true)
    classes = [label_value(value) for value in classes_of(labels)]
    if not labelled_rows(labels).all():
        row = int(np.argmin(labelled_rows(labels)))
        raise ValueError(f"row {row} of y_true has no label; leave unlabelled rows out (labelled_rows(y_true))")
    if label_value(target) not in classes:
        raise ValueError(f"target must be one of the labels in y_true, {classes}; got {target!r}")
    if len(classes) == 1:
        raise ValueError(f"all labels in y_true are {target!r}; rows of impostors are required too")
    return encode(labels, classes) == classes.index(label_value(target))


def _scores(name: str, scores: ArrayLike, client: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, dtype=float)
    if scores.shape != client.shape:
        raise ValueError(f"{name} must hold one number for each of {len(client)} rows; got shape {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"{name} must be numbers; row {int(np.argmax(np.isnan(scores)))} is missing")
    return scores


def _both(y_true: ArrayLike, scores: ArrayLike, target: Any) -> tuple[np.ndarray, np.ndarray]:
    client = _clients(y_true, target)
    return client, _scores("scores", scores, client)


def _accepted(y_true: ArrayLike, scores: ArrayLike, target: Any) -> np.ndarray:
    """(n,) mask of the accepted rows, from decisions that are labels or booleans."""
    labels, decisions = as_labels(y_true), as_labels(scores)
    if len(decisions) != len(labels):
        raise ValueError(f"y_true has {len(labels)} rows, but scores has {len(decisions)}")
    if decisions.dtype.kind == "b" and labels.dtype.kind != "b":
        return decisions
    if decisions.dtype.kind == "f" and labels.dtype.kind != "f":
        raise ValueError("scores holds decimal numbers rather than decisions; give a threshold")
    classes = [label_value(value) for value in classes_of(labels)]
    return encode(decisions, classes) == classes.index(label_value(target))


def _checked_threshold(threshold: Any) -> float:
    if not check_number(threshold) or np.isnan(threshold):
        raise ValueError(f"threshold must be a number; got {threshold!r}")
    return float(threshold)


def _rates(client: np.ndarray, accepted: np.ndarray) -> VerificationRates:
    n_clients = int(client.sum())
    false_accepts, false_rejects = int((accepted & ~client).sum()), int((~accepted & client).sum())
    return VerificationRates(n_clients, len(client) - n_clients, false_accepts, false_rejects)


def _costs(prior: Any, cost_miss: Any, cost_false_alarm: Any) -> tuple[float, float]:
    """Expected cost of rejecting all, and of accepting all."""
    if not check_number(prior) or not 0 < prior < 1:
        raise ValueError(f"prior must be a probability above 0 and below 1; got {prior!r}")
    miss = check_positive("cost_miss", cost_miss)
    return prior * miss, (1 - prior) * check_positive("cost_false_alarm", cost_false_alarm)


def _operating_points(client: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(T + 1,) FAR, FRR and threshold, from accepting none (infinite) to accepting all; equal scores share a point."""
    values, rank = np.unique(scores, return_inverse=True)
    clients = np.bincount(rank[client], minlength=len(values))[::-1]
    impostors = np.bincount(rank[~client], minlength=len(values))[::-1]
    far = np.concatenate([[0], np.cumsum(impostors)]) / impostors.sum()
    frr = (clients.sum() - np.concatenate([[0], np.cumsum(clients)])) / clients.sum()
    return far, frr, np.concatenate([[np.inf], values[::-1]])


def _eer(far: np.ndarray, frr: np.ndarray) -> float:
    after = int(np.argmax(far >= frr))  # never 0: the first point has FAR 0, FRR 1
    difference = frr - far  # decreases from 1 to -1
    share = difference[after - 1] / (difference[after - 1] - difference[after])
    return float(far[after - 1] + share * (far[after] - far[after - 1]))


def _cllr(client: np.ndarray, llr: np.ndarray) -> float:
    cost = np.logaddexp(0, -llr[client]).mean() + np.logaddexp(0, llr[~client]).mean()
    return float(cost / (2 * np.log(2)))


def _min_cllr(client: np.ndarray, scores: np.ndarray) -> float:
    from sklearn.isotonic import IsotonicRegression  # slow to import

    rank = np.unique(scores, return_inverse=True)[1]  # ranks, because scores may be infinite
    weight = np.where(client, 0.5 / client.sum(), 0.5 / (~client).sum())  # at prior 1/2, logit p is the ratio
    mass = np.bincount(rank, weight)
    share = np.bincount(rank, weight * client) / mass
    p = IsotonicRegression(y_min=0, y_max=1).fit_transform(np.arange(len(mass)), share, sample_weight=mass)
    return _cllr(client, logit(p)[rank])
