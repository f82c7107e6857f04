"""What the document proves of fusion, and what symmetry asks, of every method as a user meets it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from mixent.fusion import Calibration, Fuser, Source
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.sources import Layout

from .panels import METHODS, SEARCHED, Drawn, chained, panel, printed_R, risen, taken, with_copies


def fused(drawn, method, y=None, sample_weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Fuser(drawn.sources, method=method, **options).fit(drawn.answers, y, sample_weight=sample_weight)


def few_labels(drawn, every):
    return [label if i % every == 0 else None for i, label in enumerate(drawn.truth)]


def unseen(drawn):
    """The last source has never met the last class, the one before it has no word for it."""
    names = list(drawn.sources)
    one, two = drawn.sources[names[-1]], drawn.sources[names[-2]]
    counts = one.counts.copy()
    counts[-1] = 0
    fewer = Calibration.from_counts(two.counts[:-1], classes=two.classes[:-1], symbols=two.symbols)
    return replace(drawn, sources={**drawn.sources, names[-1]: replace(one, counts=counts), names[-2]: fewer})


CASES = {
    "hard": (panel(0), None),
    "soft": (panel(1, n=60, kind="soft"), None),
    "mixed": (panel(2, n=60, kind="mixed"), None),
    "abstentions": (panel(3, kind="mixed", n=60, gaps=0.4), None),
    "labels": (panel(4), 5),
    "unseen classes": (unseen(panel(5)), None),
    "unseen and labels": (unseen(panel(6, gaps=0.2)), 7),
}


@pytest.mark.parametrize("case", CASES)
def test_R_falls_at_every_pass_and_the_gap_closes(case):
    drawn, every = CASES[case]
    fuser = fused(drawn, "min-divergence", None if every is None else few_labels(drawn, every))
    values = risen(fuser.history_)
    assert len(values) > 3 and (np.diff(values) >= -1e-11 * fuser.n_items_).all()
    assert -1e-12 <= fuser.gap_ <= 1e-8
    # the penalty of the last pass separates it from R
    assert 0 <= fuser.objective_ - values[-1] / fuser.n_items_ <= 1e-3
    np.testing.assert_allclose(fuser.posterior_.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("case", ["hard", "soft", "mixed", "abstentions", "labels"])
def test_the_objective_is_the_printed_R_of_the_posteriors(case):
    drawn, every = CASES[case]
    fuser = fused(drawn, "min-divergence", None if every is None else few_labels(drawn, every))
    rates = [one.confusion for one in fuser._fitted_layout.calibrations]
    np.testing.assert_allclose(-fuser.objective_ * fuser.n_items_, printed_R(fuser.posterior_, drawn, rates), rtol=1e-9)


def least_R(drawn, rates, known, free=None):
    """The minimum over all posteriors, by another program."""
    n, K = len(known), len(rates[0])

    def value(x):
        z = np.exp(x.reshape(n, K) - x.reshape(n, K).max(axis=1, keepdims=True))
        q = z / z.sum(axis=1, keepdims=True)
        q[known >= 0] = np.eye(K)[known[known >= 0]]
        return printed_R(q, drawn, rates, free=free)

    starts = np.random.default_rng(0).normal(size=(4, n * K))
    return min(minimize(value, start, method="L-BFGS-B", options={"maxfun": 100_000}).fun for start in starts)


@pytest.mark.parametrize("case", ["hard", "soft", "labels", "free"])
def test_the_gap_bounds_how_far_the_minimum_is(case):
    drawn = panel(7, n=12, K=2, J=2, kind="mixed" if case == "soft" else "hard", prior=[0.4, 0.6])
    y = few_labels(drawn, 4) if case == "labels" else None
    free = None
    if case == "free":
        counts = drawn.sources["s1"].counts.copy()
        counts[1] = 0
        drawn = replace(drawn, sources={**drawn.sources, "s1": replace(drawn.sources["s1"], counts=counts)})
        free = np.array([[False, False], [False, True]])
    known = np.full(12, -1) if y is None else np.array([-1 if v is None else "ab".index(v) for v in y])
    final = fused(drawn, "min-divergence", y, tol=1e-7)
    rates = [one.confusion for one in final._fitted_layout.calibrations]
    least = least_R(drawn, rates, known, free)
    for passes in (1, 2, 4, 8):
        early = fused(drawn, "min-divergence", y, tol=1e-12, max_iter=passes)
        distance = printed_R(early.posterior_, drawn, rates, free=free) - least
        assert early.gap_ * 12 >= distance - 1e-7
    assert -final.objective_ * 12 <= least + 1e-5


def uncompressed(drawn):
    """Hard answers as one-hot pmfs, read through the confusion matrix: the same facts, an item a pattern."""
    sources = {name: Source(one, as_is=False) for name, one in drawn.sources.items()}
    answers = {}
    for name, one in drawn.sources.items():
        rows = [[float(v == s) if v is not None else np.nan for s in one.symbols] for v in drawn.answers[name]]
        answers[name] = np.array(rows)
    return Drawn(sources, answers, drawn.truth)


@pytest.mark.parametrize("method", METHODS)
def test_patterns_change_nothing(method):
    drawn = panel(8, n=150, K=3, J=3, gaps=0.1)
    short, long = fused(drawn, method), fused(uncompressed(drawn), method)
    assert short.n_patterns_ < 60 and long.n_patterns_ == 150 == short.n_items_ == long.n_items_
    atol = 1e-6 if long.method_ in SEARCHED else 1e-10
    np.testing.assert_allclose(short.posterior_, long.posterior_, atol=atol)
    np.testing.assert_allclose(short.prior_estimate_.low, long.prior_estimate_.low, atol=1e-8)
    np.testing.assert_allclose(short.dependence_.z, long.dependence_.z, rtol=1e-6)


def test_patterns_change_no_statistic():
    """At any rule: J, R, the floor of the gap and the gradient to 1e-12."""
    drawn = panel(9, n=400, K=3, J=3, gaps=0.2)
    layout = Layout.of(drawn.sources)
    answers = read_answers(layout, drawn.answers)
    known = np.where(np.arange(400) % 9 == 0, 1, -1)
    packed = Batch.of(layout, answers, None, known)
    plain = Batch(layout, answers, np.ones(400), known)
    assert packed.n_patterns < plain.n_patterns
    rng = np.random.default_rng(0)
    rule = rng.normal(size=(layout.n_symbols, 3))
    found = []
    for batch in (packed, plain):
        q = np.exp(batch.logits(rule))
        q = q / q.sum(axis=0)
        counts = batch.expected(q * batch.weight)
        problem = batch.divergence_problem()
        slope = batch.logits(problem.log_ratio(counts[batch.order]))
        found.append((counts, problem.divergence(counts[batch.order]), batch.items(slope.T)))
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_R_is_the_slope_of_the_rule():
    """(4.14): dR/dq_ik = sum_j u_j sum_v s_ij(v) log B_j(v | k) / A_j(v | k)."""
    drawn = with_copies(panel(10, n=15, K=3, J=3, kind="mixed", gaps=0.2), 1)
    layout = Layout.of(drawn.sources)
    batch = Batch(layout, read_answers(layout, drawn.answers), np.ones(15), np.full(15, -1))
    q = np.random.default_rng(1).dirichlet(np.ones(3), 15)
    problem = batch.divergence_problem()
    counts = problem.cells.expected(np.ascontiguousarray(q.T), batch.rows)
    np.testing.assert_allclose(problem.divergence(counts), printed_R(q, drawn, share=layout.share), rtol=1e-12)
    slope = problem.cells.logits(problem.log_ratio(counts), batch.rows).T
    for i, k in [(0, 0), (4, 2), (9, 1), (14, 0)]:
        h = np.zeros_like(q)
        h[i, k] = 1e-6
        up, down = (printed_R(q + s, drawn, share=layout.share) for s in (h, -h))
        np.testing.assert_allclose(slope[i, k], (up - down) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["hard", "mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_declared_copies_change_nothing(method, kind):
    drawn = panel(11, n=80, K=3, J=3, kind=kind, gaps=0.15)
    alone = fused(drawn, method)
    for copies in (1, 5, 20):
        copied = fused(with_copies(drawn, copies), method)
        assert copied.method_ == alone.method_
        np.testing.assert_allclose(copied.posterior_, alone.posterior_, atol=1e-9)
        for name in ("prior", "low", "high", "calibration_std"):
            before, after = getattr(alone.prior_estimate_, name), getattr(copied.prior_estimate_, name)
            np.testing.assert_allclose(after, before, atol=1e-9)
        for name in drawn.sources:
            np.testing.assert_allclose(copied.drift_[name].p_value, alone.drift_[name].p_value, atol=1e-7)
        np.testing.assert_allclose(copied.prior_shift_.statistic, alone.prior_shift_.statistic, rtol=1e-6)
        if alone.trust_ is not None:
            shared = sum(t for name, t in copied.trust_.items() if name == "s0" or "copy" in name)
            np.testing.assert_allclose(shared, alone.trust_["s0"], rtol=1e-6)


def agreement(fuser):
    return [(f"agreement of {name}", found) for name, found in fuser.agreement_.items()]


def diagnostics(fuser):
    e, d = fuser.prior_estimate_, fuser.dependence_
    return {
        "prior": e.prior, "low": e.low, "high": e.high, "std": e.calibration_std, "covariance": e.covariance,
        "z": d.z, "n": d.n_effective,
        "shift": fuser.prior_shift_.statistic, "robust": fuser.prior_shift_.robust_p_value,
        "drift": {name: found.p_value for name, found in [*fuser.drift_.items(), *agreement(fuser)]},
    }  # fmt: skip


def same(a, b, atol=1e-7):
    np.testing.assert_allclose(a, b, atol=atol, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_permuting_sources_permutes_the_answer(method):
    drawn = panel(12, n=90, K=3, J=4, kind="mixed", gaps=0.1)
    order = ["s2", "s0", "s3", "s1"]
    turned = Drawn({n: drawn.sources[n] for n in order}, {n: drawn.answers[n] for n in reversed(order)}, drawn.truth)
    a, b = fused(drawn, method), fused(turned, method)
    same(a.posterior_, b.posterior_, 1e-6 if a.method_ in SEARCHED else 1e-9)
    before, after = diagnostics(a), diagnostics(b)
    place = [int(name[1]) for name in order]
    same(before.pop("z")[np.ix_(place, place)], after.pop("z"))
    drifts = before.pop("drift"), after.pop("drift")
    assert set(drifts[0]) == set(drifts[1])
    same([drifts[0][n] for n in drifts[0]], [drifts[1][n] for n in drifts[0]])
    for name in before:
        same(before[name], after[name])


@pytest.mark.parametrize("method", METHODS)
def test_permuting_classes_permutes_the_answer(method):
    """New names in another order; the symbols stand in another order too."""
    drawn = panel(13, n=90, K=3, J=3, kind="mixed", gaps=0.1)
    new = dict(zip("abc", "zmf"))  # sorted: f (c), m (b), z (a)
    columns = [2, 1, 0]
    sources, answers = {}, {}
    for name, one in drawn.sources.items():
        kept = [1, 2, 0]
        counts = one.counts[:, kept][[2, 0, 1]]
        classes = [new[one.classes[k]] for k in (2, 0, 1)]
        scale = one.scale and (one.scale[0], *(one.scale[1 + v] for v in kept))
        sources[name] = Calibration.from_counts(counts, classes, [new[one.symbols[v]] for v in kept], scale=scale)
        said = drawn.answers[name]
        answers[name] = said[:, kept] if isinstance(said, np.ndarray) else [v and new[v] for v in said]
    a, b = fused(drawn, method), fused(Drawn(sources, answers, None), method)
    assert b.classes_.tolist() == ["f", "m", "z"]
    same(a.posterior_[:, columns], b.posterior_, 1e-6 if a.method_ in SEARCHED else 1e-9)
    before, after = diagnostics(a), diagnostics(b)
    for name in ("prior", "low", "high", "std"):
        same(before[name][columns], after[name])
    same(before["covariance"][np.ix_(columns, columns)], after["covariance"])
    for name in ("z", "n", "shift", "robust"):
        same(before[name], after[name])
    same(list(before["drift"].values()), list(after["drift"].values()))


@pytest.mark.parametrize("kind", ["hard", "mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_permuting_items_permutes_the_answer_and_weight_two_is_the_item_twice(method, kind):
    drawn = panel(14, n=70, K=3, J=3, kind=kind, gaps=0.1)
    y = few_labels(drawn, 10)
    a = fused(drawn, method, y)
    atol = 1e-6 if a.method_ in SEARCHED else 1e-9
    order = np.random.default_rng(0).permutation(70)
    b = fused(replace(drawn, answers=taken(drawn.answers, order)), method, [y[i] for i in order])
    same(a.posterior_[order], b.posterior_, atol)
    twice = np.arange(0, 70, 3)
    weighted = fused(drawn, method, y, np.where(np.arange(70) % 3 == 0, 2.0, 1.0))
    more = replace(drawn, answers=chained(drawn.answers, taken(drawn.answers, twice)))
    longer = fused(more, method, [*y, *(y[i] for i in twice)])
    same(weighted.posterior_, longer.posterior_[:70], atol)
    for first, second in ((a, b), (weighted, longer)):
        before, after = diagnostics(first), diagnostics(second)
        same(list(before.pop("drift").values()), list(after.pop("drift").values()))
        for name in before:
            same(before[name], after[name])


@pytest.mark.parametrize("kind", ["hard", "mixed"])
def test_the_unweighted_divergence_is_the_printed_one_and_falls(kind):
    drawn = panel(15, n=60, K=3, J=3, kind=kind)
    fuser = fused(drawn, "min-divergence", missing_class_safe=False)
    values = risen(fuser.history_)
    assert len(values) > 3 and (np.diff(values) >= -1e-12).all() and fuser.gap_ is None
    np.testing.assert_allclose(-fuser.objective_, printed_R(fuser.posterior_, drawn, weighted=False), rtol=1e-9)
    safe = fused(drawn, "min-divergence")
    assert printed_R(safe.posterior_, drawn, weighted=False) > -fuser.objective_
    assert printed_R(fuser.posterior_, drawn) > -safe.objective_ * 60


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_only_the_weighted_divergence_is_safe_for_a_missing_class(seed):
    rng = np.random.default_rng(seed)
    rates = np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    truth = rng.choice(3, 300, p=[0.6, 0.4, 0.0])
    sources = {f"s{j}": Calibration.from_rates(rates, 400, "abc") for j in range(4)}
    drawn = Drawn(sources, {name: ["abc"[rng.choice(3, p=rates[c])] for c in truth] for name in sources}, truth)
    safe, unsafe = fused(drawn, "min-divergence"), fused(drawn, "min-divergence", missing_class_safe=False)
    assert safe.posterior_.mean(axis=0)[2] < 0.002 < 0.01 < unsafe.posterior_.mean(axis=0)[2]
    for method in ("ml-product", "composite", "pool", "discounted", "dawid-skene", "auto"):
        assert fused(drawn, method).prior_[2] < 0.05
