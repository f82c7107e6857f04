import numpy as np
import pytest

from mixent.core.blocks import ArrayBlocks, Block
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.problem import MixtureParams, MixtureProblem


@pytest.fixture
def make_mixture():
    """A Gaussian mixture problem, its rows in blocks and a random start."""

    def make(seed=0, n=400, d=3, K=3, gap=2.0, gaps=0.0, block_rows=40, prior=1.0, truth=None):
        rng = np.random.default_rng(seed)
        centers = gap * rng.normal(size=(truth or K, d))
        X = centers[rng.integers(truth or K, size=n)] + rng.normal(size=(n, d))
        X[rng.random((n, d)) < gaps] = np.nan
        center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        family = GaussianFamily((Group("VVV", 0, K),), center, scale)
        if prior:
            rule = Prior(np.array(prior), np.diag(scale**2), np.zeros(d), np.array(0.01))
            family = GaussianFamily(family.groups, center, scale, rule.expand(K, False))
        means = rng.normal(size=(K, d)) * scale
        covs = np.repeat(np.diag(scale**2)[None], K, axis=0)
        params = MixtureParams(np.full((1, K), 1 / K), Components(Gaussians(means, covs, (None,)), None))
        source = ArrayBlocks(Block(X, weight=rng.random(n) + 0.5), block_rows, block_rows)
        return MixtureProblem(ProductFamily(family, None)), source, params

    return make
