"""Merging of components into clusters: theorems on the entropy, agreement with mclust, the picture."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mixent import GaussianMixture, load, save
from mixent.displays import MergingDisplay
from mixent.families.gaussian.family import Gaussians
from mixent.families.product import Components
from mixent.mixtures.describe_rows import mixture_on_rows
from mixent.mixtures.merging import merge, merged, suggested, two_lines
from mixent.mixtures.predict import entropy_of
from mixent.mixtures.problem import MixtureParams

from ..drawing import drawn_panels, texts
from .test_bootstrap import FOLDER, cluster_inputs, mixed_table

GOLDEN = json.loads((FOLDER / "mclust_clusters.json").read_text())["merging"]["crossed"]


def responsibilities(n=60, K=6, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(K, 0.3), n)


def boxes(n=100, seed=0):
    """Rows of three clusters, two of which are long uniform boxes that need several Gaussians."""
    rng = np.random.default_rng(seed)
    long = [rng.uniform(-3, 3, (n, 2)) * [1, 0.1] + [0, y] for y in (0, 4)]
    return np.concatenate([*long, rng.normal([8, 2], 0.4, (n, 2))])


@pytest.fixture(scope="module")
def model():
    means = [[-1.5, 0], [1.5, 0], [-1.5, 4], [1.5, 4], [8, 2]]
    return GaussianMixture(5, init={"means": means}).fit(boxes())


@pytest.mark.parametrize("seed", range(4))
def test_each_merge_is_the_pair_with_the_largest_decrease_of_the_entropy(seed):
    resp, weight = responsibilities(seed=seed), np.random.default_rng(seed).uniform(0, 3, 60)
    partitions, entropy, _ = merge(resp, weight)
    for k in range(6, 1, -1):
        before = partitions[k - 1]
        assert entropy[k - 1] == pytest.approx(weight @ entropy_of(merged(resp, before)))
        tried = {}
        for a, b in combinations(before, 2):
            after = [c for c in before if c not in (a, b)] + [a + b]
            tried[frozenset(map(frozenset, after))] = weight @ entropy_of(merged(resp, after))
        best = min(tried, key=tried.get)
        assert frozenset(map(frozenset, partitions[k - 2])) == best and entropy[k - 2] == pytest.approx(tried[best])
    assert entropy[0] == 0 and (np.diff(entropy) >= 0).all()


def test_weights_are_repeated_rows_and_permuted_components_give_the_same_clusters():
    resp, weight = responsibilities(), np.random.default_rng(1).integers(0, 4, 60)
    partitions, entropy, rows = merge(resp, weight.astype(float))
    repeated = merge(np.repeat(resp, weight, axis=0), np.ones(weight.sum()))
    assert repeated[0] == partitions
    np.testing.assert_allclose(repeated[1], entropy)
    np.testing.assert_allclose(repeated[2], rows)
    order = np.array([3, 1, 5, 0, 2, 4])  # column i of the permuted table is column order[i]
    others, again, _ = merge(resp[:, order], weight.astype(float))
    np.testing.assert_allclose(again, entropy)
    for a, b in zip(partitions, others):
        assert {frozenset(c) for c in a} == {frozenset(order[list(c)].tolist()) for c in b}


def test_clusters_are_sums_of_their_components(model):
    X = boxes()
    merging = model.merge_components(X)
    assert merging.n_components == 5 and merging.n_clusters == 3
    proba = merging.predict_proba(X)
    for c, cluster in enumerate(merging.components()):
        np.testing.assert_allclose(proba[:, c], model.predict_proba(X)[:, cluster].sum(axis=1))
    label = merging.predict(X)
    assert [len(set(label[i : i + 100])) for i in (0, 100, 200)] == [1, 1, 1] and len(set(label)) == 3
    np.testing.assert_array_equal(merging.predict(X, 5), model.predict(X))
    assert (merging.predict(X, 1) == 0).all()
    assert [record["n_clusters"] for record in merging.tree] == [4, 3, 2, 1]
    last = merging.tree[-1]
    assert sorted(last["first"] + last["second"]) == list(range(5)) and last["merged_rows"] == len(X)
    with pytest.raises(ValueError, match="n_clusters"):
        merging.predict(X, 6)
    with pytest.raises(ValueError, match="n_clusters"):
        merging.components(0)


def test_zero_weight_leaves_a_row_out(model):
    X = boxes()
    weight = np.ones(len(X))
    weight[::3] = 0
    some = model.merge_components(X[weight > 0])
    np.testing.assert_allclose(model.merge_components(X, weight).entropy, some.entropy)


def test_two_lines_are_the_least_squares_fit_of_every_division():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = np.sort(rng.normal(size=7)), rng.normal(size=7)
        squares = []
        for at in range(1, 6):
            parts = [(x[: at + 1], y[: at + 1]), (x[at:], y[at:])]
            squares.append(sum(np.sum((np.polyval(np.polyfit(a, b, 1), a) - b) ** 2) for a, b in parts))
        elbow = two_lines(x, y)
        assert elbow.at == 1 + int(np.argmin(squares)) and elbow.squares == pytest.approx(min(squares))
        np.testing.assert_allclose(elbow.first, np.polyfit(x[: elbow.at + 1], y[: elbow.at + 1], 1), atol=1e-9)


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        ([0.0, 1.0, 2.0, 22.0, 42.0], 3),  # two slopes
        ([0.0, 20.0, 40.0, 41.0, 42.0], 5),  # rises more slowly: no elbow
        ([0.0, 0.1, 0.3], 3),  # separated
        ([0.0, 30.0], 2),
        ([0.0], 1),
    ],
)
def test_the_suggested_number_is_where_the_entropy_begins_to_rise_faster(entropy, expected):
    assert suggested(np.array(entropy), 100.0) == expected


def separated():
    return np.concatenate([np.random.default_rng(k).normal(10 * k, 1, (50, 2)) for k in range(3)])


def test_separated_components_stay_apart():
    X = separated()
    assert GaussianMixture(3, random_state=0).fit(X).merge_components(X).n_clusters == 3


def test_order_and_entropies_are_those_of_mclust():
    X, start = cluster_inputs()["crossed"]
    np.testing.assert_allclose(X.sum(axis=0), GOLDEN["column_sums"], atol=1e-9)
    theirs = GOLDEN["parameters"]
    model = GaussianMixture(6, prior=None, init=start, tol=1e-12, max_iter=20000).fit(X)
    assert model.score_samples(X).sum() == pytest.approx(theirs["loglik"], abs=1e-4)
    gaussians = Gaussians(
        np.array(theirs["mean"]) - model.problem_.family.gaussian.center, np.array(theirs["sigma"]), (None,)
    )
    weights = np.array(theirs["pro"])[None]
    model.params_ = MixtureParams(weights / weights.sum(), Components(gaussians, None))  # in the order of mclust
    merging = model.merge_components(X)
    np.testing.assert_allclose(merging.entropy, GOLDEN["entropy"], rtol=1e-8, atol=1e-9)
    assert merging.n_clusters == GOLDEN["n_clusters"] == 4
    for k in range(5, 0, -1):
        before, after = merging.partitions[k], merging.partitions[k - 1]
        assert [i for i, cluster in enumerate(before) if cluster not in after] == GOLDEN["merged"][k - 1]
    for k, labels in enumerate(GOLDEN["classification"], start=1):
        np.testing.assert_array_equal(merging.predict(X, k), labels)


def test_tables_with_categories_and_missing_values():
    X = mixed_table().drop(columns="constant")
    merging = GaussianMixture(4, random_state=0).fit(X).merge_components(X)
    np.testing.assert_allclose(merging.predict_proba(X, 2).sum(axis=1), 1)
    assert len(merging.entropy) == 4


def test_a_loaded_model_gives_the_same_clusters(model, tmp_path):
    save(model, tmp_path / "m.mixent")
    again = load(tmp_path / "m.mixent").merge_components(boxes())
    np.testing.assert_array_equal(again.entropy, model.merge_components(boxes()).entropy)


# --- the picture and the page -----------------------------------------------------------------------------------------


def test_the_picture_has_the_entropies_the_two_lines_and_the_clusters(model):
    X = boxes()
    merging = model.merge_components(X)
    display = MergingDisplay.from_estimator(model, X)
    first, second, third = drawn_panels(display)
    points, left, right, ring = first.lines
    np.testing.assert_array_equal(points.get_xydata(), np.stack([np.arange(1, 6), merging.entropy], axis=1))
    assert left.get_xdata()[-1] == right.get_xdata()[0] == 3 == ring.get_xdata()[0]
    np.testing.assert_array_equal(second.lines[0].get_xdata(), [0, *np.cumsum(merging.merged_rows)])
    assert texts(third) == [f"{c}: {', '.join(map(str, part))}" for c, part in enumerate(merging.components())]
    assert sum(len(part.get_offsets()) for part in third.collections) == len(X) and len(third.patches) == 10
    two = MergingDisplay.from_estimator(model, X, n_clusters=2, columns=(1, 0))
    assert two.n_clusters == 2 and len(texts(drawn_panels(two)[2])) == 2
    assert two.clusters.names == ("column 1", "column 0")


def test_without_two_numeric_columns_there_is_no_map():
    X = mixed_table().drop(columns="constant")
    model = GaussianMixture(3, random_state=0).fit(X)
    assert len(drawn_panels(MergingDisplay.from_estimator(model, X))) == 2
    two = GaussianMixture(2, random_state=0).fit(X)
    assert len(drawn_panels(MergingDisplay.from_estimator(two, X))[0].lines) == 2  # no lines through two points
    wide = pd.DataFrame({"color": X["color"], "a": boxes(50)[:, 0], "b": boxes(50)[:, 1]})
    model = GaussianMixture(3, random_state=0).fit(wide)
    assert MergingDisplay.from_estimator(model, wide).clusters.names == ("a", "b")


def test_the_page_has_the_clusters_if_there_are_fewer_than_components(model):
    X = boxes()
    blocks = mixture_on_rows(model, X, None)
    assert [type(block).__name__ for block in blocks] == ["Table", "Figure", "Heading", "Paragraph", "Figure"]
    assert "<img" in blocks[-1].html()
    apart = separated()
    assert len(mixture_on_rows(GaussianMixture(3, random_state=0).fit(apart), apart, None)) == 2
