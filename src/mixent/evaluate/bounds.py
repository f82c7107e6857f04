"""Errors and bounds of class probabilities, each with its standard error and its meaning.

In the letters of document 000, section IV: p(c | x) is the truth, q(c | x) the model, d(x) = argmax_c q the decision,
    J   = E[1 - p(d(x) | x)]         error of the model's decisions,
    J*  = E[1 - max_c p(c | x)]      Bayes error, the lowest possible error,
    V   = sum_c |p - q|              variational distance, 0 to 2,
    D   = sum_c p log(p / q)         divergence, nats,
    (J - J*)^2 <= (E V)^2 <= E V^2 <= 2 E D    (theorem 4.1, whose first "=" is "<=").
Labels alone estimate J and the log-loss H(Y | X) + E D, neither J* nor E D. The log-loss L bounds E D, but sqrt(2 L) as
a bound on J - J* is vacuous: a wrong decision has q(true) <= 1/2, so sqrt(2 L) >= sqrt(2 J log 2) > J >= J - J*. It
is therefore not reported; sqrt(2 E D) is, where the truth is known.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import entr, rel_entr

from mixent.base.delegation import check_provides
from mixent.base.document import Content, Number, Table
from mixent.base.result import Records, Result
from mixent.data import as_labels, classes_of, labelled_rows, row_weights
from mixent.evaluate.scores import SMALLEST, read_predictions

N_BINS = 10  # as many as calibration_error takes


@dataclass(frozen=True, repr=False)
class Quantity(Result):
    """A number, its standard error, and its meaning."""

    _shown = ("name", "value", "std_error")

    name: str
    value: float
    std_error: float  # NaN where it cannot be estimated (one row)
    meaning: str

    def __str__(self) -> str:
        error = "" if np.isnan(self.std_error) else f" (standard error {self.std_error:.4f})"
        return f"{self.name}: {self.value:.4f}{error}; {self.meaning}"


@dataclass(frozen=True, repr=False)
class ErrorReport(Result):
    """Errors of a model estimated from labelled rows; print it for a table.

    p is the truth, q the model. The fields after `distance_bound` need p and are None without it. Standard errors take
    rows as independent; weights enter up to their scale, so that large weights do not count as many rows.
    """

    _title = "Errors of a model"

    n_rows: int  # labelled rows of positive weight
    error: Quantity  # J, from labels
    expected_error: Quantity  # mean of 1 - max q
    log_loss: Quantity  # H(Y | X) + E D, from labels
    entropy: Quantity  # E H(q)
    overconfidence: Quantity  # log_loss - entropy
    distance_bound: Quantity  # <= E V, from labels
    bayes_error: Quantity | None = None  # J*
    true_error: Quantity | None = None  # J, from p
    excess_error: Quantity | None = None  # J - J*
    distance: Quantity | None = None  # E V
    square_distance: Quantity | None = None  # E V^2
    divergence: Quantity | None = None  # E D
    excess_bound: Quantity | None = None  # sqrt(2 E D) >= J - J*

    @property
    def quantities(self) -> dict[str, Quantity]:
        """The quantities that are known, by field name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Quantity)}

    @property
    def chain(self) -> tuple[float, float, float, float] | None:
        """(J - J*)^2 <= (E V)^2 <= E V^2 <= 2 E D; None where the truth was not given."""
        q = self.quantities
        if "divergence" not in q:
            return None
        excess, distance = q["excess_error"].value, q["distance"].value
        return excess**2, distance**2, q["square_distance"].value, 2 * q["divergence"].value

    def to_dict(self) -> dict[str, Any]:
        """n_rows, and for every known quantity a dict of name, value, std_error and meaning."""
        return {"n_rows": self.n_rows} | {name: dict(vars(q)) for name, q in self.quantities.items()}

    def _brief(self) -> str:
        return f"n_rows={self.n_rows}, error={self.error.value:.4g}, log_loss={self.log_loss.value:.4g}"

    def frame(self) -> Any:
        """The quantities as a pandas DataFrame: name, value, std_error and meaning."""
        return Records(dict(vars(q)) for q in self.quantities.values()).frame()

    def _content(self) -> list[Content]:
        rows = [
            [
                q.name,
                Number(f"{q.value:.4f}"),
                None if np.isnan(q.std_error) else Number(f"{q.std_error:.4f}"),
                q.meaning,
            ]
            for q in self.quantities.values()
        ]
        title = f"Errors on {self.n_rows} labelled row{'s' * (self.n_rows != 1)}; p is the truth, q the model"
        return [Table(title, ["", "value", "std. error", "meaning"], rows)]

    def __str__(self) -> str:
        rows = [("", "value", "std. error", "meaning")]
        for q in self.quantities.values():
            spread = "-" if np.isnan(q.std_error) else f"{q.std_error:.4f}"
            rows.append((q.name, f"{q.value:.4f}", spread, q.meaning))
        wide = [max(len(row[j]) for row in rows) for j in range(3)]
        lines = [f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}  {d}" for a, b, c, d in rows]
        title = f"Errors on {self.n_rows} labelled row{'s' * (self.n_rows != 1)}; p is the truth, q the model"
        if self.chain is not None:
            names = ("(J - J*)^2", "(E V)^2", "E V^2", "2 E D")
            lines.append(" <= ".join(f"{name} = {value:.4g}" for name, value in zip(names, self.chain)))
        return "\n".join([title, *lines])


def bayes_error(model: Any, n_samples: int = 100_000, random_state: Any = 0) -> Quantity:
    """Model-based Bayes error E[1 - max_c q(c | x)], x drawn from the model itself, and its Monte-Carlo standard error.

    This is the error of the model if it were true. It does not use real rows and is not an estimate of the error on
    them; for that see `error_report`. Each drawn row contributes its probability of an error rather than an observed
    error (Rao-Blackwell), so the labels drawn are not used.

    A mixture whose temperature is not 1 draws rows from its densities and softens its probabilities; then
    this is the error those probabilities expect on such rows.

    Parameters
    ----------
    model : fitted classifier with `sample(n, random_state=)` and `predict_proba`
    n_samples : int
        Rows drawn, at least 2.
    random_state : int, RandomState or None

    Returns
    -------
    Quantity

    Examples
    --------
    >>> from mixent import MixtureClassifier
    >>> from mixent.datasets import make_orchestra
    >>> from mixent.evaluate import bayes_error
    >>> rows = make_orchestra(500, random_state=0)
    >>> model = MixtureClassifier(n_components=3, random_state=0).fit(rows.X, rows.y)
    >>> found = bayes_error(model, 10_000)
    >>> found.std_error < 0.002
    True
    """
    advice = "bayes_error draws rows from the model itself: pass a classifier with sample, or use error_report"
    check_provides(model, ("sample", "predict_proba"), advice)
    if not isinstance(n_samples, Integral) or n_samples < 2:
        raise ValueError(f"n_samples must be a whole number of at least 2, for a standard error; got {n_samples!r}")
    X, _ = model.sample(int(n_samples), random_state=random_state)
    with warnings.catch_warnings():  # the rows are the model's own: they need no names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        proba = np.asarray(model.predict_proba(X), dtype=float)
    meaning = "error the model expects if it were true; not an estimate of its error on real rows"
    return _quantity("Bayes error of the model", 1 - proba.max(axis=1), np.ones(len(proba)), meaning)


def error_report(model: Any, X: Any, y: Any, *, true_proba: Any = None, sample_weight: Any = None) -> ErrorReport:
    """Errors and bounds of a fitted classifier on rows it was not trained on; see `error_bounds`.

    Parameters
    ----------
    model : fitted classifier with `predict_proba`
    X : table of n rows
    y : (n,) labels
        Rows without a label (None, NaN, blank) are skipped.
    true_proba : (n, C) array, optional
        The true p(class | x), columns in the order of `model.classes_`.
    sample_weight : (n,) array, optional

    Returns
    -------
    ErrorReport

    Examples
    --------
    >>> from mixent import MixtureClassifier
    >>> from mixent.datasets import make_orchestra
    >>> from mixent.evaluate import error_report
    >>> train = make_orchestra(500, random_state=0)
    >>> test = make_orchestra(500, random_state=1, return_posterior=True)
    >>> model = MixtureClassifier(n_components=3, random_state=0).fit(train.X, train.y)
    >>> report = error_report(model, test.X, test.y, true_proba=test.true_proba)
    >>> report.bayes_error.value <= report.true_error.value
    True
    >>> report.excess_error.value <= report.distance.value <= report.excess_bound.value
    True
    """
    check_provides(model, ("predict_proba", "classes_"), "pass a fitted classifier that gives probabilities")
    proba = model.predict_proba(X)
    return error_bounds(y, proba, model.classes_, true_proba=true_proba, sample_weight=sample_weight)


def error_bounds(
    y: Any, proba: Any, classes: Any = None, *, true_proba: Any = None, sample_weight: Any = None
) -> ErrorReport:
    """Errors and bounds of class probabilities on labelled rows, and against the true probabilities where known.

    The rows must be new to the model: on training rows every number is optimistic. Rows are rescaled to sum to 1
    exactly. Among equal probabilities the decision is the first column. A probability below 1e-15 counts as 1e-15 in
    logarithms.

    The lower bound on E V: for any sign s(x), right = [y = d(x)] and confidence = q(d(x) | x) obey, by Jensen,
    E V >= 2 E|E[right - confidence | bin]| >= 2 E[s(x) (confidence - right)], as p and q differ by at most V / 2 on any
    event. The last is estimated with the sign of a confidence bin learned on the other half of the rows, so noise does
    not raise it: its expectation never exceeds E V. At or below 0, the labels show no distance.

    Parameters
    ----------
    y : (n,) labels
        Rows without a label (None, NaN, blank) are skipped.
    proba : (n, C) array
        Columns in the order of `classes`.
    classes : (C,) labels, optional
        Default: the sorted labels of `y`.
    true_proba : (n, C) array, optional
        The true p(class | x), in a simulation, or that of a trusted reference; columns as in `proba`.
    sample_weight : (n,) array, optional

    Returns
    -------
    ErrorReport
    """
    true, q, p, weight = _labelled(y, proba, classes, true_proba, sample_weight)
    quantities = _from_labels(true, q, weight)
    if p is not None:
        quantities |= _from_truth(p, q, weight)
    return ErrorReport(n_rows=len(true), **quantities)


def _from_labels(true: np.ndarray, q: np.ndarray, weight: np.ndarray) -> dict[str, Quantity]:
    confidence, wrong = q.max(axis=1), q.argmax(axis=1) != true
    loss = -np.log(np.clip(q[np.arange(len(q)), true], SMALLEST, 1.0))
    entropy = entr(q).sum(axis=1)
    apart = 2 * _sided(confidence, confidence - ~wrong, weight)
    return {
        "error": _quantity("error J", wrong, weight, "share of rows whose most probable class is wrong: estimates J"),
        "expected_error": _quantity(
            "error the model expects", 1 - confidence, weight, "mean of 1 - max q on these rows; below J: overconfident"
        ),
        "log_loss": _quantity(
            "log-loss", loss, weight, "mean of -log q(label), nats: estimates H(Y|X) + E D, hence an upper bound on E D"
        ),
        "entropy": _quantity("expected log-loss", entropy, weight, "mean of H(q), nats: the log-loss if q were true"),
        "overconfidence": _quantity(
            "log-loss - expected log-loss", loss - entropy, weight, "nats; > 0 overconfident, < 0 underconfident"
        ),
        "distance_bound": _quantity(
            "E V is at least",
            apart,
            weight,
            "estimated lower bound on E V, V = sum_c |p - q|; <= 0: no difference detected",
        ),
    }


def _from_truth(p: np.ndarray, q: np.ndarray, weight: np.ndarray) -> dict[str, Quantity]:
    best = 1 - p.max(axis=1)
    made = 1 - p[np.arange(len(p)), q.argmax(axis=1)]
    apart = np.abs(p - q).sum(axis=1)
    divergence = np.maximum(rel_entr(p, np.maximum(q, SMALLEST)).sum(axis=1), 0.0)  # rounding may leave -1e-17
    total = _quantity("E D", divergence, weight, "divergence of q from p, D = sum_c p log(p / q), nats")
    bound = float(np.sqrt(2 * total.value))
    return {
        "bayes_error": _quantity("Bayes error J*", best, weight, "mean of 1 - max p: the lowest possible error"),
        "true_error": _quantity(
            "error J under p", made, weight, "mean of 1 - p(decision): J without the noise of labels"
        ),
        "excess_error": _quantity(
            "excess error J - J*", made - best, weight, "error of the model's decisions minus the lowest possible error"
        ),
        "distance": _quantity("E V", apart, weight, "variational distance, V = sum_c |p - q|, 0 to 2"),
        "square_distance": _quantity("E V^2", apart**2, weight, "mean square of the variational distance"),
        "divergence": total,
        "excess_bound": Quantity(
            "sqrt(2 E D)",
            bound,
            total.std_error / bound if bound > 0 else total.std_error,  # d sqrt(2 D) / dD = 1 / sqrt(2 D)
            "upper bound on the excess error J - J*, never an error estimate; vacuous above J",
        ),
    }


def _quantity(name: str, values: np.ndarray, weight: np.ndarray, meaning: str) -> Quantity:
    """Weighted mean of `values` and its standard error; the scale of the weights does not matter."""
    share = weight / weight.sum()
    mean = (share * values).sum()
    n_rows = 1 / (share**2).sum()  # effective
    variance = (share**2 * (values - mean) ** 2).sum() * n_rows / (n_rows - 1) if n_rows > 1 else np.nan
    return Quantity(name, float(mean), float(np.sqrt(variance)), meaning)


def _sided(confidence: np.ndarray, gap: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """s(x) gap with s the sign of the mean gap in the row's bin of confidence, as seen in the other half of the rows.

    Bins (equal mass) and halves (every second value) are functions of the confidence alone: ties stay together, the
    order of rows does not matter, a weight of 2 is equivalent to repeating the row, and no label affects its own sign.
    """
    place = np.unique(confidence.round(12), return_inverse=True)[1]  # rounding does not make a new value
    mass = np.bincount(place, weight)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    rank = np.minimum((middle * N_BINS).astype(int), N_BINS - 1)[place]
    half = place % 2
    total = np.bincount(half * N_BINS + rank, weight * gap, minlength=2 * N_BINS).reshape(2, N_BINS)
    seen = total[1 - half, rank]
    return np.where(seen < 0, -gap, gap)  # no gap in the other half: taken as overconfident, the usual case


def _labelled(
    y: Any, proba: Any, classes: Any, true_proba: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Class index, q, p and weight of the rows that have a label and a weight, checked."""
    _refuse_soft(y)
    y, q = as_labels(y), np.asarray(proba, dtype=float)
    known = labelled_rows(y)
    classes = classes_of(y) if classes is None or not known.any() else classes
    weight = row_weights(sample_weight, len(y))
    if not weight[known].any():
        raise ValueError("every labelled row has sample_weight 0; there is nothing to score")
    weight = np.where(known, weight, 0.0)
    if not known.all():  # stand-ins of no weight rather than fewer rows: messages then name the user's row
        any_class = next(iter(classes), None)
        y = np.array([label if has else any_class for label, has in zip(y, known)], dtype=object)
    true, _, _ = read_predictions(y, _blanked(q, known), classes, weight)
    p = None if true_proba is None else np.asarray(true_proba, dtype=float)
    if p is not None:
        _check_truth(p, known, q.shape)
    rows = weight > 0
    return true[rows], _normal(q[rows]), None if p is None else _normal(p[rows]), weight[rows]


def _refuse_soft(y: Any) -> None:
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has shape {shape}, as class probabilities have; errors are counted against one label per row. Pass as "
            "y the label of each row, None where it is not sure; if the probabilities are the truth p(class | x), pass "
            "them as true_proba beside the labels"
        )


def _blanked(q: np.ndarray, known: np.ndarray) -> np.ndarray:
    """`q` with even probabilities where there is no label: they may be anything there, NaN too."""
    if q.ndim != 2 or len(q) != len(known):
        return q
    return np.where(known[:, None], q, 1 / max(q.shape[1], 1))


def _check_truth(p: np.ndarray, known: np.ndarray, shape: tuple[int, ...]) -> None:
    if p.shape != shape:
        raise ValueError(
            f"true_proba must have the shape of proba, {shape}, with the same rows and classes; its shape is {p.shape}"
        )
    bad = known & ~((p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) < 1e-4))  # NaN and infinity fail both
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"every row of true_proba must be >= 0 and sum to 1; row {row} is {p[row].tolist()}")


def _normal(proba: np.ndarray) -> np.ndarray:
    """Rows that sum to 1: float32 probabilities do not, and the divergence could fall below 0."""
    return proba / proba.sum(axis=1, keepdims=True)
