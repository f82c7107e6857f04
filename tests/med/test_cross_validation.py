"""Cross-validation within a fit: where the search for C ends."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from mixent import MEDClassifier
from mixent.med import classifier
from mixent.med.classifier import GRIDS
from mixent.med.cross_validation import CrossValidation
from mixent.med.training_sets import Subset
from mixent.options import RBF, Margin, Polynomial

GRID = GRIDS["laplace"]


def rows(distance, n=120, seed=0):
    """Two clouds of rows at this distance, in their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 4)) + distance * (y[:, None] - 0.5) * np.array([1.0, -1.0, 0.0, 0.0]), y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_search_for_C_ends_where_all_margins_are_attained_and_a_larger_C_changes_little(kernel):
    X, y = rows(9.0)
    model = MEDClassifier(kernel, random_state=0).fit(X, y)
    tried = [entry["C"] for entry in model.C_tried_]
    last = MEDClassifier(kernel, C=tried[-1], random_state=0).fit(X, y)
    largest = MEDClassifier(kernel, C=GRID[-1], random_state=0).fit(X, y)
    assert len(tried) < len(GRID) and tried[-1] < 0.2 * GRID[-1]
    scores = [m.decision_function(X) for m in (last, largest)]
    assert np.corrcoef(*scores)[0, 1] > 0.999
    assert np.abs(scores[0] / scores[1] - 1).max() < 0.3
    # margins: the expected ones are within the tolerance of the target
    shortfall = last.margin_.target - last.margin_.mean(last.multipliers_.max())
    assert shortfall <= 0.15 * last.margin_.target


def test_the_search_for_C_ends_where_the_loss_rises_twice_in_a_row():
    X, y = rows(1.0)
    model = MEDClassifier(random_state=0).fit(X, y)
    losses = [entry["log_loss"] for entry in model.C_tried_]
    assert len(losses) < len(GRID) and losses[-3] < losses[-2] < losses[-1]
    assert model.C_tried_[int(np.argmin(losses))]["C"] == model.C_


class Losses(CrossValidation):
    """Given losses in place of those of held-out rows."""

    def scores(self, C, rounds=None, states=None, fold_prior=None):
        loss, share = self.train[C]
        states["fold"] = SimpleNamespace(attains_margins=False, share_attained=share)
        return [loss]

    def loss(self, held_out):
        return held_out[0]


@pytest.mark.parametrize(
    ("losses", "n_none", "n_tried", "best"),  # of the first values, at which no margin is attained
    [
        ([0.24, 0.27, 0.26, 0.06, 0.05, 0.06, 0.07, 0.01], 0, 7, 4),  # a rise of one value, then a rise of two
        ([0.24, 0.20, 0.21, 0.205, 0.206, 0.01], 0, 5, 1),  # three values without improvement
        ([0.24, 0.20, 0.21, 0.22, 0.01], 0, 4, 1),
        ([0.24, 0.20, 0.10], 0, 3, 2),
        ([0.24, 0.25, 0.26, 0.27, 0.10, 0.11, 0.12, 0.01], 4, 7, 4),
        ([0.24, 0.25, 0.26, 0.27, 0.26, 0.265, 0.01], 3, 6, 0),
    ],
)
def test_where_the_search_for_C_ends(losses, n_none, n_tried, best):
    grid = tuple(range(1, len(losses) + 1))
    subset = Subset(np.arange(2), np.eye(2), np.ones(2, bool), np.ones(2), False)
    tried = {C: (loss, float(n_none < C)) for C, loss in zip(grid, losses)}
    choice = Losses(tried, None, subset, [[None]], None, None).choose_C(grid, 3)
    assert [entry["log_loss"] for entry in choice.tried] == losses[:n_tried]
    assert grid[best] == choice.C and choice.held_out == [losses[best]]


def test_values_of_C_at_which_no_margin_is_attained_do_not_end_the_search():
    X, y = load_iris(return_X_y=True)
    tried = MEDClassifier(RBF(0.025), random_state=0).fit(X, y).C_tried_
    losses = [entry["log_loss"] for entry in tried]
    assert losses[0] < losses[1] < losses[2]  # here the search ended before
    assert min(losses) < 0.4 * losses[0]


# --- gamma ------------------------------------------------------------------------------------------------------------


def smooth(n, seed=0):
    """Classes with a quadratic boundary, for which a kernel of little curvature is better."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    return X, (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("kind", [RBF, Polynomial])
def test_gamma_is_chosen_together_with_C(kind):
    X, y = smooth(200)
    chosen = MEDClassifier(kind(), random_state=0).fit(X, y)
    scale = MEDClassifier(kind(gamma="scale"), random_state=0).fit(X, y)
    tenth = MEDClassifier(kind(gamma=0.1 * scale.kernel_.gamma), random_state=0).fit(X, y)
    losses = [min(entry["log_loss"] for entry in model.C_tried_) for model in (scale, tenth)]
    best = (scale, tenth)[int(np.argmin(losses))]
    assert chosen.kernel_.gamma == pytest.approx(best.kernel_.gamma) and chosen.C_ == best.C_
    assert list(chosen.C_tried_) == list(best.C_tried_)
    np.testing.assert_allclose(chosen.predict_proba(X), best.predict_proba(X), rtol=1e-9)


def test_gamma_of_a_large_table_is_chosen_on_some_rows(monkeypatch):
    X, y = smooth(400)
    chosen = MEDClassifier("rbf", random_state=0).fit(X, y)
    monkeypatch.setattr(classifier, "GAMMA_ROWS", 300)
    searches, search = [], CrossValidation.choose_C
    monkeypatch.setattr(
        CrossValidation, "choose_C", lambda self, *more: searches.append(len(self.subset.rows)) or search(self, *more)
    )
    sampled = MEDClassifier("rbf", random_state=0).fit(X, y)
    assert searches == [300, 300, 400]
    assert sampled.kernel_.gamma == pytest.approx(chosen.kernel_.gamma) and sampled.C_ == chosen.C_
    searches.clear()
    MEDClassifier("rbf", cv=StratifiedKFold(3), random_state=0).fit(X, y)
    assert searches == [300, 300, 400]
    searches.clear()
    few = y.astype(object)
    few[np.arange(400) % 5 > 0] = None
    MEDClassifier("rbf", random_state=0).fit(X, few)
    assert searches == [400, 400]  # only 80 have a label
    searches.clear()
    few = MEDClassifier("rbf", cv=[(np.arange(300), np.arange(300, 400))]).fit(X, y)  # positions in all rows
    assert len(few.C_tried_) > 1 and searches == [400, 400]


@pytest.mark.parametrize("stored", [True, False])
def test_rows_drawn_at_random_have_rows_of_a_rare_class(stored, monkeypatch):
    X, y = smooth(300)
    y[:3] = 2
    for name in ("GAMMA_ROWS", "SAMPLED_ROWS"):
        monkeypatch.setattr(classifier, name, 100)
    if not stored:
        monkeypatch.setattr(classifier, "STORED_ROWS", 200)
    for seed in range(4):
        kernel = RBF("auto" if stored else 0.02, n_landmarks=None)
        model = MEDClassifier(kernel, cv=3, random_state=seed, max_iter=50).fit(X, y)
        assert len(model.C_tried_) > 1 and model.cv_error_ is not None
        assert len(model.gamma_tried_) == (2 if stored else 0)


def test_the_values_of_gamma_are_recorded():
    X, y = smooth(100)
    model = MEDClassifier("rbf", random_state=0).fit(X, y)
    best = min(model.gamma_tried_, key=lambda entry: entry["log_loss"])
    assert model.kernel_.gamma == best["gamma"]
    assert best["log_loss"] == min(entry["log_loss"] for entry in model.C_tried_)
    assert MEDClassifier(random_state=0).fit(X, y).gamma_tried_ == []


def test_gamma_is_a_multiple_of_scale_only_where_C_is_chosen():
    X, y = smooth(100)
    for options in ({"C": 1.0}, {"margin": Margin("fixed", target=0.1)}):
        gammas = [MEDClassifier(RBF(word), **options).fit(X, y).kernel_.gamma for word in ("auto", "scale")]
        assert gammas[0] == gammas[1]
