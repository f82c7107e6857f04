"""Random fits of all estimators end in an answer that is a distribution, or in a refusal in a user's words.

`tests/random_fits.py` draws them; the default suite runs a few of each estimator.
"""

from collections import Counter

import pytest

from .random_fits import NAMES, attempt

QUICK = 2  # fits of each estimator
MANY = 10_000
KINDS = ("answer", "refusal", "slow", "unfinished")


@pytest.mark.parametrize("name", NAMES)
def test_a_few_random_fits_of_each_estimator(name):
    for seed in range(QUICK):
        assert attempt(seed, name).split(":")[0] in KINDS  # raises on a defect


@pytest.mark.slow
@pytest.mark.parametrize("part", range(MANY // 250))
def test_many_random_fits(part):
    """All 10,000 take about an hour on one core; those beyond the limit of CPU time are counted, not failed."""
    results, defects = Counter(), []
    for seed in range(250 * part, 250 * (part + 1)):
        try:
            results[attempt(seed).split(":")[0]] += 1
        except Exception as error:
            defects.append((seed, repr(error)))
    print(part, dict(results))
    assert not defects
