import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")


@pytest.fixture(scope="session")
def draw():
    """Rows of K overlapping Gaussians with unlike covariances, and the component of each row."""

    def rows(seed=0, n=240, d=3, K=3, gap=2.0, missing=0.0):
        rng = np.random.default_rng(seed)
        centers = gap * rng.normal(size=(K, d))
        roots = rng.normal(size=(K, d, d)) / np.sqrt(d) + np.eye(d)
        label = rng.integers(K, size=n)
        X = centers[label] + np.einsum("nij,nj->ni", roots[label], rng.normal(size=(n, d)))
        X[rng.random((n, d)) < missing] = np.nan
        return X, label

    return rows


@pytest.fixture(scope="session")
def soft_start():
    """Starting responsibilities, the same for the same seed."""

    def matrix(n, K, seed=0):
        return np.random.default_rng(seed).dirichlet(np.full(K, 0.3), size=n)

    return matrix


@pytest.fixture(scope="session")
def same():
    """Two fitted mixtures have the same parameters, to a relative tolerance (0: to the last bit)."""

    def compare(a, b, rtol):
        for name in ("weights_", "means_", "covariances_"):
            scale = np.abs(getattr(a, name)).max(initial=0.0)
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=rtol * scale, err_msg=name)
        for name, table in a.category_probabilities_.items():
            np.testing.assert_allclose(table, b.category_probabilities_[name], rtol=rtol, err_msg=name)

    return compare


@pytest.fixture(scope="session")
def brute_force():
    """log p(observed cells, component) from scipy, one row and one component at a time, (n, K)."""
    from scipy.stats import multivariate_normal

    def log_joint(X, weights, means, covs):
        out = np.tile(np.log(weights), (len(X), 1))
        for i, row in enumerate(np.asarray(X, dtype=float)):
            seen = np.flatnonzero(~np.isnan(row))
            for k in range(len(weights)):
                if len(seen):
                    out[i, k] += multivariate_normal.logpdf(row[seen], means[k][seen], covs[k][np.ix_(seen, seen)])
        return out

    return log_joint
