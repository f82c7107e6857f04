"""Linear and kernel discriminants beside cvxpy on random problems: the value of the optimum, its conditions, the gap.

The problem is written out with a vector W_s and a constant b_s for every class, which add up to zero:

    min  sum_s |W_s|^2 + sum_s b_s^2 / v + sum_t w_t sum_ab loss(p_tab (F_a(x_t) - F_b(x_t))),   F_s = W_s x + b_s,

with p_tab = q_t(a) - q_t(b) from the label probabilities q_t. The reference is this function at cvxpy's solution: an
upper bound on the minimum, with an error of second order in that of the solution.
"""

import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from mixent import MEDClassifier
from mixent.med.constraints import PairConstraints
from mixent.med.functions import KernelDiscriminant, LinearDiscriminant
from mixent.med.margins import margin_prior
from mixent.med.solving import Search
from mixent.options import RBF, Margin, Polynomial

cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed (pip install --group reference)")

MARGINS = ("laplace", "exponential", "gaussian", "fixed")
KERNELS = {"linear": "linear", "rbf": RBF(0.5), "poly": Polynomial(2, gamma=0.5, coef0=1.0)}
PRECISION = 1e-8  # of the optimum, relative where it is above 1
ROUNDING = 1e-11  # the same, of the sums over all rows
TOLERANCES = (1e-12, 1e-10, 1e-8)  # of cvxpy's solver, which fails at the smallest now and then
N_PROBLEMS, QUICK = 50, range(0, 50, 7)  # all as slow tests, some in the default suite
TIGHT, LOOSE = 1e-13, (1e-2, 1e-4)  # gaps per row to solve to


def loss(name, C, target, m):
    """Losses of margins m."""
    s = C * (target - m)
    if name == "exponential":
        s = np.maximum(s, 1.0)
        return s - 1.0 - np.log(s)
    s = np.maximum(s, 0.0)
    if name == "laplace":
        root = np.sqrt(1.0 + s**2)
        return root - 1.0 - np.log(0.5 * (1.0 + root))
    return 0.5 * s**2


def mean_margin(name, C, target, lam):
    """Means of the margins at multipliers λ, the derivative of their potential."""
    if name == "exponential":
        return target - 1.0 / (C - lam)
    if name == "laplace":
        return target - 1.0 / (C - lam) + 1.0 / (C + lam)
    return target - (lam / C**2 if name == "gaussian" else 0.0)


def loss_for_cvxpy(name, C, target, m, weight):
    """The sum of the losses in terms that cvxpy knows to be convex, and constraints."""
    if name == "fixed":
        return 0.0, [m >= target]
    s = cp.Variable(m.shape)
    constraints = [s >= C * (target - m), s >= (1.0 if name == "exponential" else 0.0)]
    if name == "exponential":
        return weight @ (s - 1.0 - cp.log(s)), constraints
    if name == "gaussian":
        return 0.5 * weight @ cp.square(s), constraints
    root = cp.Variable(m.shape)
    above = cp.norm(cp.vstack([np.ones(m.shape[0]), s]), 2, axis=0) <= root
    return weight @ (root - 1.0 - cp.log(0.5 * (1.0 + root))), [*constraints, above]


@dataclass(frozen=True)
class Answer:
    """What mixent returns."""

    dual: float
    gap: float
    multipliers: np.ndarray  # (n, pairs)
    F: np.ndarray  # (n, C), centered


@dataclass(frozen=True)
class Case:
    """A random problem."""

    kernel: str
    margin: str
    C: float | None
    target: float
    bias: float  # variance; inf: flat
    X: np.ndarray  # (n, d)
    labels: np.ndarray  # (n, C) label probabilities
    weight: np.ndarray  # (n,)

    @property
    def uncertain(self):
        return bool(((self.labels > 0) & (self.labels < 1)).any())

    @property
    def K(self):
        if self.kernel == "rbf":
            return np.exp(-0.5 * ((self.X[:, None] - self.X) ** 2).sum(axis=2))
        product = self.X @ self.X.T
        return (0.5 * product + 1.0) ** 2 if self.kernel == "poly" else product

    @property
    def pairs(self):
        """Positions a < b of all pairs of classes."""
        return np.array(list(combinations(range(self.labels.shape[1]), 2))).T

    @property
    def differences(self):
        """(pairs, C): 1_a - 1_b."""
        eye = np.eye(self.labels.shape[1])
        a, b = self.pairs
        return eye[a] - eye[b]

    @property
    def signs(self):
        """(n, pairs): p."""
        a, b = self.pairs
        return self.labels[:, a] - self.labels[:, b]

    @property
    def imposed(self):
        """(n, pairs): whether the label can be one of the two classes."""
        a, b = self.pairs
        return (self.labels[:, a] + self.labels[:, b] > 0) & (self.weight > 0)[:, None]

    def solve(self, tol=TIGHT):
        """By the solver for given label probabilities, or by the estimator where all labels are certain."""
        n_classes = self.labels.shape[1]
        if self.uncertain:
            X_or_K, kind = (self.X, LinearDiscriminant) if self.kernel == "linear" else (self.K, KernelDiscriminant)
            constraints = PairConstraints.of(self.labels, self.weight)
            margin = margin_prior(self.margin, self.C, self.target)
            solution = kind(X_or_K, n_classes, self.bias).solve(constraints, margin, Search(tol, 3000))
            F = solution.scores - solution.scores.mean(axis=1, keepdims=True)
            return Answer(solution.dual, solution.gap, solution.multipliers, F)
        options = {"margin": Margin(self.margin, target=self.target), "calibration": None, "standardize": False}
        options |= {"bias": "flat" if np.isinf(self.bias) else self.bias, "tol": tol, "max_iter": 3000, "n_jobs": 1}
        options |= {} if self.C is None else {"C": self.C}
        model = MEDClassifier(KERNELS[self.kernel], **options)
        model.fit(self.X, self.labels.argmax(axis=1), sample_weight=self.weight)
        F = model.decision_function(self.X)
        F = np.column_stack([-0.5 * F, 0.5 * F]) if n_classes == 2 else F - F.mean(axis=1, keepdims=True)
        return Answer(model.objective_, model.gap_, model.multipliers_.reshape(len(F), -1), F)

    def minimum(self):
        """The minimum, by cvxpy."""
        values, vectors = np.linalg.eigh(self.K)
        kept = values > 1e-14 * values.max()
        L = vectors[:, kept] * np.sqrt(values[kept])
        if self.kernel == "linear":
            L = self.X - self.X.mean(axis=0) if np.isinf(self.bias) else self.X  # a flat bias absorbs any shift
        W, b = cp.Variable((L.shape[1], self.labels.shape[1])), cp.Variable((1, self.labels.shape[1]))
        rows, k = np.nonzero(self.imposed & (self.signs != 0))
        coef = self.signs[rows, k, None] * self.differences[k]
        m = cp.sum(cp.multiply(coef, L[rows] @ W + np.ones((len(rows), 1)) @ b), axis=1)
        total, constraints = loss_for_cvxpy(self.margin, self.C, self.target, m, self.weight[rows])
        divergence = cp.sum_squares(W) + (0.0 if np.isinf(self.bias) else cp.sum_squares(b) / self.bias)
        problem = cp.Problem(cp.Minimize(divergence + total), [cp.sum(W, axis=1) == 0, cp.sum(b) == 0, *constraints])
        for tol in TOLERANCES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it may be less accurate; so is the value then, which is checked
                try:
                    problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
                    break
                except cp.SolverError:
                    continue
        return self.value(L, W.value, b.value)

    def value(self, L, W, b):
        """The objective at some parameters; those for a fixed margin are scaled until all rows have it."""
        W, b = W - W.mean(axis=1, keepdims=True), b - b.mean()
        m = self.signs * ((L @ W + b) @ self.differences.T)
        divergence = (W**2).sum() + (b**2).sum() / self.bias
        if self.margin == "fixed":
            return divergence * (self.target / m[self.imposed & (self.signs != 0)].min()) ** 2
        losses = np.where(self.imposed, loss(self.margin, self.C, self.target, m), 0.0)
        return divergence + self.weight @ losses.sum(axis=1)


def draw(seed):
    """Problems with all margins and kernels in turn, and random classes, columns, labels, weights, C and bias."""
    rng = np.random.default_rng(seed)
    margin, kernel = MARGINS[seed % 4], ("linear", "rbf", "poly")[seed // 4 % 3]
    n, n_classes = int(rng.integers(15, 45)), int(rng.choice([2, 2, 3, 4]))
    d = n + 5 if rng.random() < 0.15 else int(rng.integers(1, 7))
    y = np.arange(n) % n_classes
    X = (1.2 * rng.normal(size=(n_classes, d))[y] + rng.normal(size=(n, d))) * min(1.0, 2.0 / np.sqrt(d))
    labels = np.eye(n_classes)[y]
    weight = rng.gamma(2.0, size=n) if rng.random() < 0.5 else np.ones(n)
    if rng.random() < 0.3:
        weight[n_classes::6] = 0.0
    target = 1.0 if rng.random() < 0.6 else float(rng.uniform(0.5, 3.0))
    bias = np.inf if rng.random() < 0.5 else float(rng.uniform(0.2, 5.0))
    if margin == "fixed":  # which rows that are not separable cannot have
        return Case(kernel, margin, None, target, bias, np.column_stack([X, 5.0 * labels]), labels, weight)
    if rng.random() < 0.35:
        labels = 0.7 * labels + 0.3 * rng.dirichlet(np.ones(n_classes), n)
        labels[:n_classes] = np.eye(n_classes)
        labels[n_classes : n_classes + 2] = 1.0 / n_classes
    low = 1.1 / target if margin == "exponential" else 0.05  # below 1 / target no margin is required
    C = float(np.exp(rng.uniform(np.log(low), np.log(100.0))))
    return Case(kernel, margin, C, target, bias, X, labels, weight)


every_problem = pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed in QUICK else pytest.mark.slow) for seed in range(N_PROBLEMS)]
)


@every_problem
def test_the_optimum_is_that_of_cvxpy_and_meets_its_conditions(seed):
    case = draw(seed)
    answer, least = case.solve(), case.minimum()
    size = max(1.0, abs(least))
    assert abs(answer.dual - least) <= PRECISION * size and answer.gap <= PRECISION * size
    check_conditions(case, answer)


@every_problem
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of a gap that is not small
def test_the_gap_is_never_below_the_true_one(seed):
    case = draw(seed)
    least = case.minimum()
    rounding = ROUNDING * max(1.0, abs(least))
    for tol in LOOSE:
        answer = case.solve(tol)
        assert answer.dual <= least + rounding
        assert answer.dual + answer.gap >= least - PRECISION * max(1.0, abs(least))


@pytest.mark.parametrize("margin", ["laplace", "exponential", "gaussian"])
@pytest.mark.filterwarnings("ignore:MEDClassifier did not converge")  # the labels may not; it is their last fit
def test_with_uncertain_labels_the_optimum_is_that_of_the_labels_inferred(margin):
    rng = np.random.default_rng(1)
    n, y = 24, np.arange(24) % 3
    X = 1.5 * rng.normal(size=(3, 2))[y] + rng.normal(size=(n, 2))
    labels = 0.8 * np.eye(3)[y] + 0.2 * rng.dirichlet(np.ones(3), n)
    model = MEDClassifier(C=1.5, margin=margin, calibration=None, standardize=False, tol=1e-10).fit(X, labels)
    assert np.abs(model.label_posterior_ - labels).max() > 0.05
    least = Case("linear", margin, 1.5, 1.0, np.inf, X, model.label_posterior_, np.ones(n)).minimum()
    assert model.objective_ == pytest.approx(least, abs=PRECISION) and model.gap_ <= PRECISION


def test_the_gap_of_nystrom_features_is_that_of_the_kernel():
    case = Case("rbf", "laplace", 3.0, 1.0, np.inf, *two_rings())
    model = MEDClassifier(RBF(0.5, n_landmarks=5), C=3.0, calibration=None, standardize=False)
    model.fit(case.X, case.labels.argmax(axis=1))
    least = case.minimum()
    assert model.objective_ <= least + ROUNDING * least and model.objective_ + model.gap_ >= least - PRECISION * least


def two_rings():
    """Rows, label probabilities and weights."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = (1.0 + y)[:, None] * rng.normal(size=(40, 3))
    return X, np.eye(2)[y], np.ones(40)


def check_conditions(case, answer, atol=1e-5):
    """Multipliers and functions follow from each other, and the multipliers balance if the bias is flat."""
    signs, used, lam = case.signs, case.imposed & (case.signs != 0), answer.multipliers
    assert (lam >= 0).all() and not lam[~used].any()
    assert case.margin not in ("laplace", "exponential") or (lam < case.C).all()
    alpha = 0.5 * (case.weight[:, None] * lam * signs) @ case.differences
    F, scale = answer.F, 1.0 + np.abs(answer.F).max()
    constant = F - case.K @ alpha
    np.testing.assert_allclose(constant, np.tile(constant.mean(axis=0), (len(F), 1)), atol=atol * scale)
    if np.isinf(case.bias):
        np.testing.assert_allclose(alpha.sum(axis=0), 0.0, atol=atol * (1.0 + np.abs(alpha).sum()))
    else:
        np.testing.assert_allclose(constant.mean(axis=0), case.bias * alpha.sum(axis=0), atol=atol * scale)
    excess = (signs * (F @ case.differences.T) - mean_margin(case.margin, case.C, case.target, lam))[used]
    assert excess.min() >= -atol * scale
    np.testing.assert_allclose(lam[used] * excess, 0.0, atol=atol * scale * max(1.0, lam.max()))
