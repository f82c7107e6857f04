"""Which methods a table gets, and what is said of the others."""

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from mixent import MaxEntClassifier
from mixent.base.document import Document
from mixent.base.recipes import Recipe, Setting
from mixent.base.registry import by_name, entries, register, unregister
from mixent.comparison import Shape, candidates
from mixent.comparison.baselines import BASELINES
from mixent.comparison.candidates import recipes
from mixent.comparison.given import given_candidate
from mixent.comparison.naive_bayes import MixedNaiveBayes
from mixent.comparison.shape import read_table, shape_of
from mixent.data import read_labels
from mixent.evaluate import stratified_folds
from mixent.evaluate.cross_validation import score_fold
from mixent.evaluate.runner import splits_of
from mixent.evaluate.samples import read_samples

SHAPE = Shape(200, 200, 4, 0, 4, 2, 90, 0.0, False)


def test_named_methods_are_never_left_out():
    made, skipped = candidates(SHAPE, names=["tree MED"], baselines=False)
    assert list(made) == ["tree MED"] and not skipped
    made, _ = candidates(SHAPE, names=["mixture", "random forest"])
    assert next(iter(made)) == "mixture" and {c.kind for c in made.values()} == {"mixent", "scikit-learn", "baseline"}


def test_every_method_gets_the_seed_and_one_thread():
    made, _ = candidates(replace(SHAPE, n_categories=4), random_state=7)
    for name, candidate in made.items():
        options = candidate.estimator.get_params(deep=False)
        assert options.get("random_state", 7) == 7 and options.get("n_jobs", 1) == 1, name


def test_boosting_has_small_leaves_where_rows_are_few():
    leaves = []
    for n in (50, 200, 400, 20_000):
        made, _ = candidates(replace(SHAPE, n_labelled=n), names=["gradient boosting"], baselines=False)
        leaves.append(made["gradient boosting"].estimator.estimator.min_samples_leaf)
    assert leaves == [2, 10, 20, 20]


def test_boosting_does_not_predict_constants_from_50_rows():
    rng = np.random.default_rng(0)
    y = np.arange(50) % 2
    X = rng.normal(size=(50, 4)) + 2.0 * y[:, None]
    made, _ = candidates(replace(SHAPE, n_labelled=50), names=["gradient boosting"], baselines=False)
    assert np.ptp(made["gradient boosting"].estimator.fit(X[:33], y[:33]).predict_proba(X)[:, 1]) > 0.5


def test_kinds():
    assert {recipe.kind for recipe in recipes().values()} == {"mixent", "classical", "scikit-learn", "baseline"}
    made, _ = candidates(SHAPE)
    assert all(c.about for c in made.values())
    assert {name for name, c in made.items() if not c.from_mixent} == {recipe.name for recipe in BASELINES}


def test_models_have_the_names_of_the_command_line():
    """With their defaults, also where a method that is tried by itself has another name."""
    names = [e.name for e in entries() if e.listed and e.task == "classification"]
    made, _ = candidates(SHAPE, names=names, baselines=False, random_state=3)
    assert list(made) == names and all(c.from_mixent for c in made.values())
    assert {type(c.estimator) for c in made.values()} == {by_name(name).cls for name in names}
    assert made["maxent"].estimator.get_params() == MaxEntClassifier(random_state=3, n_jobs=1).get_params()
    assert made["stack"].estimator.get_params(deep=False)["random_state"] == 3


def test_every_recipe_works_on_a_mixed_table_with_gaps():
    """One fold each, with its settings narrowed to the first: that a search works is tested elsewhere."""
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[np.arange(60) % 2]
    X = pd.DataFrame({"size": rng.normal(size=60) + (y == "yes"), "age": rng.normal(size=60)})
    X["color"] = np.where(rng.random(60) < 0.7, np.where(y == "yes", "red", "blue"), "green")
    X["site"] = rng.choice(["n", "s"], 60)
    X.loc[::7, "size"] = np.nan
    X.loc[::9, "color"] = None
    samples = read_samples(read_table(X, "auto"), y)
    shape = shape_of(samples.X, samples.labels)
    made, skipped = candidates(shape)
    assert not skipped
    split = splits_of(stratified_folds(y, folds=3))[0]
    for name, candidate in made.items():
        model = candidate.estimator
        if hasattr(model, "grid") and model.grid:
            model.set_params(grid={key: values[:1] for key, values in model.grid.items()})
        if hasattr(model, "estimator") and "n_estimators" in model.estimator.get_params():
            model.set_params(estimator__n_estimators=20)
        if name in ("mixture", "shared mixture"):
            model.set_params(n_components=1)
        if name == "Gaussian MED":
            model.set_params(C=1.0, prior=1.0)
        if name == "tree MED":
            model.set_params(C=1.0)
        if name == "stack":
            model.set_params(forest__estimator__n_estimators=20, boosting__estimator__max_iter=20, cv=3)
        record, proba = score_fold(samples, model, split)
        assert record["failed"] is None, (name, record["failed"])
        assert np.isfinite(proba).all()


def test_shape_counts():
    X = pd.DataFrame({"u": [1.0, np.nan, 3.0, 4.0], "c": ["a", "b", None, "a"]})
    shape = shape_of(read_table(X, "auto"), read_labels(["x", "y", None, "y"], 4), weighted=True)
    assert shape == Shape(4, 3, 1, 1, 3, 2, 1, 0.25, True)


# --- naive Bayes ------------------------------------------------------------------------------------------------------


def test_naive_bayes_is_scikit_learns_on_either_kind():
    rng = np.random.default_rng(1)
    numbers, codes, y = rng.normal(size=(50, 3)), rng.integers(3, size=(50, 2)).astype(float), np.arange(50) % 3
    scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    ours = MixedNaiveBayes(alpha=1.0).fit(numbers, y)
    theirs = GaussianNB(var_smoothing=1e-3).fit(scaled, y)
    np.testing.assert_allclose(ours.predict_proba(numbers), theirs.predict_proba(scaled), rtol=1e-10)
    ours = MixedNaiveBayes(np.ones(2, dtype=bool), alpha=0.5).fit(codes, y)
    theirs = CategoricalNB(alpha=0.5, min_categories=4).fit(codes.astype(int), y)  # gaps are a fourth value
    np.testing.assert_allclose(ours.predict_proba(codes), theirs.predict_proba(codes.astype(int)), rtol=1e-10)


def test_naive_bayes_multiplies_what_both_kinds_say():
    rng = np.random.default_rng(2)
    numbers, codes, y = rng.normal(size=(60, 2)), rng.integers(3, size=(60, 2)).astype(float), np.arange(60) % 2
    both = MixedNaiveBayes(np.array([False, False, True, True])).fit(np.hstack([numbers, codes]), y)
    one, other = MixedNaiveBayes().fit(numbers, y), MixedNaiveBayes(np.ones(2, dtype=bool)).fit(codes, y)
    product = one.predict_proba(numbers) * other.predict_proba(codes) / (np.bincount(y) / 60)
    expected = product / product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(both.predict_proba(np.hstack([numbers, codes])), expected, rtol=1e-9)


def test_naive_bayes_takes_gaps_and_new_codes():
    X = np.array([[1.0, 0], [2, 1], [np.nan, 1], [4, np.nan], [0, 0], [3, 1]])
    model = MixedNaiveBayes(np.array([False, True])).fit(X, [0, 1, 1, 1, 0, 0])
    strange = np.array([[np.nan, np.nan], [1.0, 7]])
    assert np.isfinite(model.predict_proba(strange)).all() and model.predict(strange).shape == (2,)


def test_an_estimator_that_registers_a_recipe_is_tried(request):
    class Shares(DummyClassifier):
        pass

    recipe = Recipe("shares", "shares of the classes", lambda setting: Shares(), left_out=lambda s: "never")
    register("shares", task="classification", title="Shares", describe=lambda m: Document("", ()), recipes=(recipe,))(
        Shares
    )
    request.addfinalizer(lambda: unregister(Shares))
    made, skipped = candidates(SHAPE)
    assert skipped["shares"] == "never" and "shares" not in made
    made, _ = candidates(SHAPE, names=["shares"], baselines=False)
    assert isinstance(made["shares"].estimator, Shares) and not made["shares"].from_mixent
    given = given_candidate("mine", Shares(), Setting(SHAPE, "auto", 0))
    assert not given.from_mixent and given_candidate("mine", MaxEntClassifier(), Setting(SHAPE, "auto", 0)).from_mixent
