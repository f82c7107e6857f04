"""Margin priors: potentials are integrals, their slopes are expected margins, their conjugates are losses."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from mixent.med.margins import MARGINS, Exponential, Fixed, Gaussian, Laplace, check_some_margin, margin_prior

PRIORS = [
    family(c, at) for family in (Exponential, Laplace, Gaussian) for c, at in ((0.7, 1.0), (5.0, 1.0), (3.0, -0.4))
]
SHARES = (0.0, 0.05, 0.4, 0.9)  # of the upper end, or of c where there is none


def multipliers(margin):
    return [share * min(margin.upper, margin.C) for share in SHARES]


def density(margin, g):
    """P0(g), as 001 has it."""
    c, at = margin.C, margin.target
    if isinstance(margin, Exponential):
        return c * np.exp(-c * (at - g)) if g <= at else 0.0
    if isinstance(margin, Laplace):
        return 0.5 * c * np.exp(-c * abs(at - g))
    return c / np.sqrt(2 * np.pi) * np.exp(-0.5 * (c * (at - g)) ** 2)


def moment(margin, lam, power):
    """int P0(g) g^power exp(-l g) dg."""

    def integrand(g):
        return density(margin, g) * g**power * np.exp(-lam * g)

    # tails fall like exp(-(c - l) |g|), or are a Gaussian's about at - l / c^2
    far = 45.0 / (margin.C - lam) if margin.upper < np.inf else lam / margin.C**2 + 12.0 / margin.C
    left, right = margin.target - far, margin.target + 45.0 / margin.C
    below = quad(integrand, left, margin.target, epsabs=0, epsrel=1e-11, limit=400)[0]
    above = (
        0.0 if isinstance(margin, Exponential) else quad(integrand, margin.target, right, epsabs=1e-16, limit=400)[0]
    )
    return below + above


@pytest.mark.parametrize("margin", PRIORS, ids=repr)
def test_the_potential_is_minus_the_log_of_the_priors_integral(margin):
    for lam in multipliers(margin):
        assert margin.potential(lam) == pytest.approx(-np.log(moment(margin, lam, 0)), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("margin", PRIORS, ids=repr)
def test_the_mean_is_the_margin_expected_under_the_tilted_prior_and_the_curvature_its_variance(margin):
    for lam in multipliers(margin):
        first, second = (moment(margin, lam, power) / moment(margin, lam, 0) for power in (1, 2))
        assert margin.mean(lam) == pytest.approx(first, rel=1e-7, abs=1e-7)
        assert margin.curvature(lam) == pytest.approx(second - first**2, rel=1e-6)


@pytest.mark.parametrize("margin", PRIORS, ids=repr)
def test_mean_and_curvature_are_slopes_of_the_potential(margin):
    for lam in multipliers(margin)[1:]:
        h = 1e-5 * min(lam, margin.C - lam)
        slope = (margin.potential(lam + h) - margin.potential(lam - h)) / (2 * h)
        loss_curvature = (margin.mean(lam + h) - margin.mean(lam - h)) / (2 * h)
        assert margin.mean(lam) == pytest.approx(slope, rel=1e-6, abs=1e-6)
        assert margin.curvature(lam) == pytest.approx(-loss_curvature, rel=1e-6)


@pytest.mark.parametrize("margin", PRIORS, ids=repr)
def test_the_multiplier_undoes_the_mean(margin):
    lam = np.array(multipliers(margin)[1:])
    np.testing.assert_allclose(margin.multiplier(margin.mean(lam)), lam, rtol=1e-10)
    beyond = margin.mean(0.0) + np.array([1e-9, 1.0, 1e6])
    np.testing.assert_array_equal(margin.multiplier(beyond), 0.0)


@pytest.mark.parametrize("margin", PRIORS, ids=repr)
def test_the_loss_is_the_potentials_conjugate(margin):
    high = margin.upper * (1 - 1e-12) if margin.upper < np.inf else 100.0 * margin.C**2
    for m in np.linspace(margin.target - 4.0, margin.target + 1.0, 23):
        best = minimize_scalar(
            lambda lam, m=m: lam * m - margin.potential(lam),
            bounds=(0.0, high),
            method="bounded",
            options={"xatol": 1e-10},
        )
        searched = max(-best.fun, 0.0)  # at l = 0
        assert float(margin.loss(np.array(m))) == pytest.approx(searched, rel=1e-7, abs=1e-7)
        assert float(margin.loss(np.array(m))) >= searched - 1e-12


@pytest.mark.parametrize("margin", PRIORS, ids=repr)
def test_the_loss_is_convex_its_slope_minus_the_multiplier_its_second_the_bend(margin):
    m = margin.mean(0.0) + np.array([-6.0, -2.0, -0.7, -0.1, 0.3, 2.0])
    h = 1e-5
    low, here, high = (margin.loss(m + step) for step in (-h, 0.0, h))
    assert (low + high - 2 * here >= -1e-14 * (1 + np.abs(here))).all()
    np.testing.assert_allclose((high - low) / (2 * h), -margin.multiplier(m), rtol=1e-6, atol=1e-9)
    second = -(margin.multiplier(m + h) - margin.multiplier(m - h)) / (2 * h)
    np.testing.assert_allclose(margin.loss_curvature(margin.multiplier(m)), second, rtol=1e-6, atol=1e-9)
    assert (margin.loss(m) >= 0).all()
    assert (margin.loss(m[m >= margin.mean(0.0)]) == 0).all()


@pytest.mark.parametrize("margin", PRIORS, ids=repr)
def test_the_bend_is_one_over_the_curvature(margin):
    lam = np.array(multipliers(margin)[1:])
    np.testing.assert_allclose(margin.loss_curvature(lam), 1.0 / margin.curvature(lam), rtol=1e-12)
    assert margin.loss_curvature(np.zeros(2)).tolist() == [0.0, 0.0]


def test_bounded_multipliers_stay_below_c_and_the_mean_falls_without_end_there():
    for margin in (Exponential(3.0), Laplace(3.0)):
        assert margin.upper == 3.0
        far = margin.multiplier(np.array([-1e3, -1e6]))
        assert ((far < 3.0) & (far > 2.99)).all()
        assert margin.mean(3.0 * (1 - 1e-9)) < -1e7
    assert Gaussian(3.0).upper == np.inf
    assert Gaussian(3.0).multiplier(np.array(-1e3)) == pytest.approx(9 * 1001)


def test_the_loss_keeps_its_digits_where_the_multiplier_meets_its_bound():
    # 001, 9: c (at - m) - 1 - log(c (at - m)); from the multiplier, 1 - l / c would be 1e-12 with four digits
    for c, m in ((1e6, -1e6), (1e3, -1e9), (1e4, -1e14)):
        shortfall = 1.0 - m
        assert float(Exponential(c).loss(np.array(m))) == pytest.approx(
            c * shortfall - 1 - np.log(c * shortfall), rel=1e-14
        )
        # log(1 - x^2) with x = r / (1 + sqrt(1 + r^2)) is log(2 / (1 + sqrt(1 + r^2)))
        root = np.hypot(1.0, c * shortfall)
        exact = (root - 1.0) + np.log(2.0 / (1.0 + root))
        assert float(Laplace(c).loss(np.array(m))) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("c", [1e6, 1e9])
def test_just_short_of_the_margin_the_laplace_loss_is_a_gaussians(c):
    m = 1.0 - 1e-3 / c
    assert float(Laplace(c).loss(np.array(m))) == pytest.approx((1e-3) ** 2 / 4, rel=1e-4)


def test_a_certain_margin_has_a_straight_potential_and_no_loss():
    margin = Fixed(0.8)
    lam = np.array([0.0, 1.0, 100.0])
    np.testing.assert_array_equal(margin.potential(lam), 0.8 * lam)
    np.testing.assert_array_equal(margin.mean(lam), 0.8)
    np.testing.assert_array_equal(margin.curvature(lam), 0.0)
    assert margin.upper == np.inf
    with pytest.raises(NotImplementedError, match="no finite loss"):
        margin.multiplier(lam)


def test_a_name_stands_for_its_prior():
    for name, family in MARGINS.items():
        assert margin_prior(name, 4, 2.0) == family(4.0, 2.0)
    assert margin_prior("fixed", None, 3.0) == Fixed(3.0)


def test_a_prior_that_expects_no_margin_is_refused_with_the_reason():
    # CORRECTIONS (14): with c <= 1 every multiplier is 0
    for c in (0.5, 1.0):
        with pytest.raises(ValueError, match="set C"):
            check_some_margin(Exponential(c))
    for margin in (Exponential(1.001), Exponential(0.4, 3.0), Laplace(0.01), Gaussian(0.01), Fixed(0.5)):
        check_some_margin(margin)


@pytest.mark.parametrize("prior", [Exponential, Laplace])
def test_a_huge_shortfall_has_a_multiplier_below_the_bound_and_a_finite_potential(prior):
    shortfalls = 10.0 ** np.arange(9, 21)
    for C in (0.1, 0.3, 3.0):
        lam = prior(C).multiplier(prior(C).target - shortfalls)
        assert (lam < C).all() and np.isfinite(prior(C).potential(lam)).all() and np.isfinite(prior(C).mean(lam)).all()
