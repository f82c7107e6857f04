"""Drawings of trees and Bayes nets: every edge once, nothing crosses, names are free."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixent import MEDBayesNetClassifier, MEDTreeClassifier
from mixent.displays import TreeDisplay
from mixent.med.displays.trees import THICK, THIN, layout_forest
from mixent.options import Margin, Trees

from ..drawing import drawn_panels

RNG = np.random.default_rng(0)
CODE = RNG.integers(3, size=(90, 6))
CODE[:, 1] = np.where(RNG.random(90) < 0.8, CODE[:, 0], CODE[:, 1])
NAMES = ["$one", "two", "_three", "four", "a column with a very long name", "six"]
X = pd.DataFrame(np.array(["a", "b", "c"])[CODE], columns=NAMES)
Y = np.where(RNG.random(90) < 0.5, "yes", "no")


@pytest.fixture(scope="module")
def trees():
    return MEDTreeClassifier(C=1, calibration=None, margin=Margin("laplace", target=2)).fit(X, Y)


@st.composite
def forests(draw):
    """A forest whose vertices are numbered at random."""
    n = draw(st.integers(1, 25))
    edges = [(draw(st.integers(0, v - 1)), v) for v in range(1, n) if draw(st.integers(0, 9))]
    name = draw(st.permutations(range(n)))
    return n, [(name[u], name[v]) for u, v in edges]


@settings(max_examples=100, deadline=None)
@given(forests())
def test_a_forest_is_laid_out_line_by_line_without_crossings(forest):
    n, edges = forest
    layout = layout_forest(n, edges)
    assert sorted(layout.line) == list(range(n))
    assert {frozenset((v, p)) for v, p in enumerate(layout.parent) if p >= 0} == set(map(frozenset, edges))
    for v, p in enumerate(layout.parent):
        if p < 0:
            assert layout.lane[v] == 0
            continue
        assert layout.line[v] > layout.line[p] and layout.lane[v] - layout.lane[p] in (0, 1)
        between = (layout.line > layout.line[p]) & (layout.line < layout.line[v])
        assert (layout.lane[between] > layout.lane[p]).all()  # the strip beside the parent's lane is free
    straight = [v for v, p in enumerate(layout.parent) if p >= 0 and layout.lane[v] == layout.lane[p]]
    assert len({layout.parent[v] for v in straight}) == len(straight)  # one child is straight below


def test_the_longest_path_is_the_first_lane():
    layout = layout_forest(6, [(3, 0), (0, 5), (5, 1), (0, 2), (5, 4)])
    assert (layout.lane == 0).sum() == 4 and (layout.lane == 1).sum() == 2
    chain = layout_forest(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert chain.line.tolist() == [0, 1, 2, 3, 4] and not chain.lane.any()


def test_every_edge_is_drawn_as_wide_as_its_probability(trees):
    display = TreeDisplay.from_estimator(trees)
    for s, ax in enumerate(drawn_panels(display)):
        names = [(X.columns[u], X.columns[v]) for u, v in display.edges[s]]
        assert names == trees.trees_[s]
        wanted = [trees.edge_marginals_[s][u, v] for u, v in display.edges[s]]
        np.testing.assert_array_equal(display.marginals[s], wanted)
        widths = [patch.get_linewidth() for patch in ax.patches]
        np.testing.assert_allclose(np.sort(widths), np.sort(THIN + (THICK - THIN) * np.array(wanted)))
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["no", "yes"]
    legend = display.axes_[0].get_legend()
    assert legend.get_title().get_text() == "Probability of the edge"
    assert [t.get_text() for t in legend.get_texts()] == ["10 %", "50 %", "100 %"]


def test_names_stand_beside_their_vertices_and_apart(trees):
    for ax in drawn_panels(TreeDisplay.from_estimator(trees)):
        texts = [text.get_text() for text in ax.texts]
        assert sorted(texts) == sorted(["\\$one", "two", "_three", "four", "a column with a very …", "six"])
        boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
        assert all(lower.y1 <= upper.y0 + 1 for lower, upper in itertools.pairwise(boxes))
        assert max(box.x1 for box in boxes) <= ax.get_window_extent().x1 + 1


def test_trees_of_highest_likelihood_are_certain_and_shared_ones_drawn_once():
    likely = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, Y)
    display = TreeDisplay.from_estimator(likely, label="yes")
    assert display.titles == ["yes"] and (display.marginals[0] == 1).all()
    assert len(drawn_panels(display)) == 1
    shared = MEDTreeClassifier(objective="likelihood", calibration=None, trees="shared").fit(X, Y)
    assert TreeDisplay.from_estimator(shared).titles == ["all classes"]


def test_a_mixture_has_a_tree_for_each_component():
    mixture = MEDTreeClassifier(C=0.5, calibration=None, random_state=0, trees=Trees(n_trees=2)).fit(X, Y)
    display = TreeDisplay.from_estimator(mixture)
    assert len(drawn_panels(display)) == 4 and display.titles[1] == "no, tree 1"


def test_a_bayes_net_has_arrows_from_parents_to_children():
    structure = {"yes": [("$one", "four"), ("two", "four"), ("four", "six")], "no": "naive"}
    model = MEDBayesNetClassifier(structure, C=1, calibration=None).fit(X, Y)
    display = TreeDisplay.from_estimator(model)
    no, yes = drawn_panels(display)
    assert display.marginals is None and not no.patches and len(yes.patches) == 3
    height = {text.get_text(): text.get_position()[1] for text in yes.texts}
    assert height["\\$one"] > height["four"] > height["six"]  # parents first
    assert sorted(display.edges[1]) == [(0, 3), (1, 3), (3, 5)]
    names = [text.get_text() for text in yes.texts]
    for (u, v), patch in zip(display.edges[1], yes.patches):
        path = patch._path_original.vertices  # before the head is put to it
        assert path[0, 1] == height[names[u]] and path[-1, 1] == height[names[v]]
    assert no.get_legend() is None


def test_it_fits_into_given_axes(trees):
    from matplotlib.figure import Figure

    left, right = Figure(figsize=(9, 3)).subplots(1, 2)
    assert len(drawn_panels(TreeDisplay.from_estimator(trees), left)) == 2
    assert drawn_panels(TreeDisplay.from_estimator(trees, label="no"), right) == [right]
