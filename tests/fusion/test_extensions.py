"""Cells of the input: part of the answer (Extension I) or its circumstances (Extension II)."""

from itertools import product

import numpy as np
import pytest

from mixent.fusion import Calibration, Fuser, Source
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.sources import Layout

from .panels import METHODS, divergences, panel

SYMBOLS, CELLS = ("a", "b", "c"), ("left", "right")


def placed(seed=0, n=80, gaps=0.1):
    """A panel whose sources tell a cell too: counts (K, V, L), codes of cells."""
    drawn = panel(seed, n=n, K=3, J=3, gaps=gaps)
    rng = np.random.default_rng(seed + 100)
    counts = {name: rng.integers(1, 30, (3, 3, 2)) + 60.0 * np.eye(3)[:, :, None] for name in drawn.sources}
    where = {name: rng.choice(CELLS, n).tolist() for name in drawn.sources}
    return drawn, counts, where


def fit(sources, answers, method, **options):
    return Fuser(sources, method=method, **options).fit(answers)


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_with_one_cell_both_extensions_are_the_plain_source(method, context):
    drawn = panel(1, n=60, K=3, J=3, kind="mixed", gaps=0.1)
    plain = {name: Source(one, as_is=False) for name, one in drawn.sources.items()}  # cells are read so
    celled, answers = {}, {}
    for name, one in drawn.sources.items():
        inner = Calibration(one.classes, one.symbols, one.counts[:, :, None], cells=("all",), context=context)
        celled[name] = inner
        answers[name], answers[f"{name}@"] = drawn.answers[name], ["all"] * 60
    a, b = fit(plain, drawn.answers, method), fit(celled, answers, method)
    np.testing.assert_allclose(a.posterior_, b.posterior_, atol=1e-9)
    np.testing.assert_allclose(a.prior_estimate_.high, b.prior_estimate_.high, atol=1e-9)
    np.testing.assert_allclose(a.dependence_.z, b.dependence_.z, rtol=1e-7)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "majority"])
def test_extension_one_is_a_source_whose_alphabet_is_the_product(method):
    drawn, counts, where = placed()
    pairs = [f"{v}/{cell}" for v, cell in product(SYMBOLS, CELLS)]
    celled = {n: Calibration(SYMBOLS, SYMBOLS, c, cells=CELLS) for n, c in counts.items()}
    # the pseudo-count of a symbol is shared among its cells
    plain = {
        n: Calibration(SYMBOLS, tuple(pairs), c.reshape(3, 6), smoothing=0.25) for n, c in counts.items()
    }  # fmt: skip
    answers = {**drawn.answers, **{f"{n}@": w for n, w in where.items()}}
    joint = {n: [v and f"{v}/{w}" for v, w in zip(drawn.answers[n], where[n])] for n in plain}
    a, b = fit(celled, answers, method), fit(plain, joint, method)
    np.testing.assert_allclose(a.posterior_, b.posterior_, atol=1e-12)
    np.testing.assert_allclose(a.prior_estimate_.covariance, b.prior_estimate_.covariance, atol=1e-12)
    assert [d.p_value for d in a.drift_.values()] == pytest.approx([d.p_value for d in b.drift_.values()])


def test_votes_of_a_pair_are_votes_of_its_symbol():
    drawn, counts, where = placed()
    celled = {n: Calibration(SYMBOLS, SYMBOLS, c, cells=CELLS) for n, c in counts.items()}
    plain = {n: Calibration(SYMBOLS, SYMBOLS, c.sum(axis=2)) for n, c in counts.items()}
    answers = {**drawn.answers, **{f"{n}@": w for n, w in where.items()}}
    a, b = fit(celled, answers, "majority"), fit(plain, drawn.answers, "majority")
    np.testing.assert_allclose(a.posterior_, b.posterior_, atol=1e-12)


def test_a_context_is_normalized_within_its_cells():
    """R of Extension II: each cell of a source is a source of its own that answers the items that lie in it."""
    drawn, counts, where = placed(2, n=60)
    celled = {n: Calibration(SYMBOLS, SYMBOLS, c, cells=CELLS, context=True) for n, c in counts.items()}
    answers = {**drawn.answers, **{f"{n}@": w for n, w in where.items()}}
    apart, split = {}, {}
    for n, c in counts.items():
        for m, cell in enumerate(CELLS):
            apart[f"{n} {cell}"] = Calibration(SYMBOLS, SYMBOLS, c[:, :, m], smoothing=0.25)
            split[f"{n} {cell}"] = [v if w == cell else None for v, w in zip(drawn.answers[n], where[n])]
    layout = Layout.of(celled)
    batch = Batch.of(layout, read_answers(layout, answers))
    np.testing.assert_allclose(batch.divergence_problem().mass(layout.confusion[batch.order]), 1.0)
    q = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    plain = Batch(layout, read_answers(layout, answers), np.ones(60), np.full(60, -1))
    R = plain.divergence_problem().divergence(plain.expected(np.ascontiguousarray(q.T))[plain.order])
    printed = 0.0
    for n, one in apart.items():
        said = np.array([[float(v == s) for s in SYMBOLS] for v in split[n]])
        D, mass = divergences(q, said, one.confusion)
        printed += float(D @ mass)
    np.testing.assert_allclose(R, printed, rtol=1e-12)
    for method in ("min-divergence", "product", "composite", "ml-product", "dawid-skene"):
        a = fit(celled, answers, method, class_prior="uniform")
        b = fit(apart, split, method, class_prior="uniform")
        # a split panel has another step of "min-divergence"
        np.testing.assert_allclose(a.posterior_, b.posterior_, atol=0.02 if method == "min-divergence" else 1e-9)
        if method == "min-divergence":
            assert abs(a.objective_ - b.objective_) <= a.gap_ + b.gap_


def test_latent_cells_are_pmfs():
    drawn, counts, where = placed(3, gaps=0.0)
    one_hot = {f"{n}@": np.array([[float(w == cell) for cell in CELLS] for w in where[n]]) for n in where}
    for context in (False, True):
        celled = {n: Calibration(SYMBOLS, SYMBOLS, c, cells=CELLS, context=context) for n, c in counts.items()}
        hard = fit(celled, {**drawn.answers, **{f"{n}@": w for n, w in where.items()}}, "ml-product")
        soft = fit(celled, {**drawn.answers, **one_hot}, "ml-product")
        np.testing.assert_allclose(hard.posterior_, soft.posterior_, atol=1e-12)
    layout = Layout.of({"s0": celled["s0"]})
    said = read_answers(layout, {"s0": [[0.2, 0.3, 0.5]], "s0@": [[0.9, 0.1]]}).responses[0]
    np.testing.assert_allclose(said.reshape(3, 2), np.outer([0.2, 0.3, 0.5], [0.9, 0.1]))


def test_a_context_that_matters_is_used():
    """A source that is right on the left and blind on the right: items on the right have the priors' posteriors."""
    right = np.array([[95.0, 5], [5, 95]])
    blind = np.full((2, 2), 50.0)
    one = Calibration((0, 1), (0, 1), np.stack([right, blind], axis=2), cells=CELLS, context=True)
    fuser = Fuser({"s": one}, method="product", class_prior="uniform")
    fuser.fit({"s": [0, 1, 0, 1], "s@": ["left", "left", "right", "right"]})
    np.testing.assert_allclose(fuser.posterior_[:, 1], [5.25 / 100.5, 95.25 / 100.5, 0.5, 0.5])
