"""Trees, Bayes nets, novelty detectors in files: the same answers, bit for bit; what no file can hold refused."""

import json
import warnings
import zipfile
from dataclasses import fields, is_dataclass
from functools import cached_property

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mixent
from mixent import HMMClassifier, MEDBayesNetClassifier, MEDNoveltyDetector, MEDTreeClassifier
from mixent.options import Margin, Tables, Trees
from mixent.persistence import SavedFileError
from mixent.persistence.files import known_classes

from .saving import mixed_table, same_classifier, same_run, saved_twice

X, LABELS = mixed_table(80, shape=True)
TEXT = X[["color", "shape"]].assign(count=X["count"].map("n{}".format))
OPTIONS = {"C": 0.5, "cv": 2, "tol": 1e-3, "random_state": 0}
ALONE = {"cv": 2, "tol": 1e-3, "random_state": 0}
EDGES = [("color", "shape"), ("shape", "count")]
CLASSIFIERS = {
    "tree": MEDTreeClassifier(**OPTIONS),
    "tree, c chosen": MEDTreeClassifier(**ALONE),
    "tree, quantized": MEDTreeClassifier(Tables(continuous="quantized"), calibration="affine", bias=2.0, **OPTIONS),
    "tree, integrated": MEDTreeClassifier("integrated", margin="gaussian", **OPTIONS),
    "tree, integrated, posterior": MEDTreeClassifier("integrated", trees=Trees(structure_prior="posterior"), **OPTIONS),
    "tree, likelihood": MEDTreeClassifier(objective="likelihood", **ALONE),
    "tree, shared": MEDTreeClassifier(
        calibration=None, trees="shared", margin=Margin("laplace", target=1.5), **OPTIONS
    ),
    "tree, shared, likelihood": MEDTreeClassifier(objective="likelihood", trees="shared", **ALONE),
    "tree, posterior": MEDTreeClassifier(progress=lambda *a: None, trees=Trees(structure_prior="posterior"), **OPTIONS),
    "trees mixed": MEDTreeClassifier(trees=Trees(n_trees=2), **OPTIONS),
    "trees mixed, integrated": MEDTreeClassifier("integrated", trees=Trees(n_trees=2), **OPTIONS),
    "trees mixed, likelihood": MEDTreeClassifier(objective="likelihood", trees=Trees(n_trees=2), **ALONE),
    "naive net": MEDBayesNetClassifier(**OPTIONS),
    "net": MEDBayesNetClassifier(EDGES, calibration="predictive", **OPTIONS),
    "net, positions": MEDBayesNetClassifier(
        np.array([[0, 1], [1, 2]]), ess=4.0, margin=Margin("laplace", quantile=0.5), **OPTIONS
    ),
    "net, likelihood": MEDBayesNetClassifier(EDGES, objective="likelihood", **ALONE),
}
NO_GUESSES = [name for name in CLASSIFIERS if name.startswith("trees mixed")]  # need the label of every row
DETECTORS = {
    "auto": MEDNoveltyDetector(),
    "product": MEDNoveltyDetector("product", contamination=0.2),
    "tree": MEDNoveltyDetector("tree", margin=Margin("laplace", quantile=0.2)),
    "gaussian": MEDNoveltyDetector("gaussian", C=3.0, ess=2.0),
    "mixture": MEDNoveltyDetector("mixture", n_hidden=2, margin="gaussian", progress=lambda *a: None),
    "bayes": MEDNoveltyDetector(objective="bayes"),
    "bayes, mixture": MEDNoveltyDetector("mixture", objective="bayes", n_hidden=2),
    "hmm": MEDNoveltyDetector("hmm", n_hidden=2),
}


def fitted(name, labels="two"):
    model = CLASSIFIERS[name]
    return _quietly(model, X, LABELS[labels])


def detector(name):
    rows = TEXT if name == "hmm" else X
    return _quietly(DETECTORS[name], rows), rows


def _quietly(model, *rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tolerances are loose here
        return model.fit(*rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "labels"),
    [(name, labels) for name in CLASSIFIERS for labels in LABELS if labels != "partly" or name not in NO_GUESSES],
)
def test_a_loaded_classifier_is_the_saved_one(name, labels, tmp_path):
    model = fitted(name, labels)
    again = saved_twice(model, tmp_path)
    for rows in (X, X.iloc[::-1].assign(color=None), X.iloc[:1]):
        same_classifier(again, model, rows)
    if isinstance(model, MEDTreeClassifier):
        assert again.trees_ == model.trees_
        np.testing.assert_array_equal(again.edge_marginals_, model.edge_marginals_)
        np.testing.assert_array_equal(again.edge_weights_, model.edge_weights_)
    else:
        assert again.edges_ == model.edges_
        for ours, theirs in zip(again.tables_, model.tables_):
            np.testing.assert_equal(ours, theirs)


@pytest.mark.parametrize("name", list(DETECTORS))
def test_a_loaded_detector_is_the_saved_one(name, tmp_path):
    model, rows = detector(name)
    again = saved_twice(model, tmp_path)
    new = rows.assign(color=rows["color"].replace("red", "never seen"))
    for some in (rows, new, rows.iloc[:1]):
        np.testing.assert_array_equal(again.score_samples(some), model.score_samples(some))
        np.testing.assert_array_equal(again.predict(some), model.predict(some))
    for attribute in ("scores_", "bayes_scores_", "multipliers_", "support_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute), err_msg=attribute)
    for attribute in ("level_", "offset_", "relative_entropy_", "objective_", "gap_", "margin_", "schema_"):
        assert getattr(again, attribute) == getattr(model, attribute), attribute
    same_run(again, model)


@pytest.mark.parametrize("name", ["tree", "tree, integrated", "trees mixed", "net"])
def test_a_loaded_model_can_be_fitted_again(name, tmp_path):
    model = fitted(name)
    again = _quietly(saved_twice(model, tmp_path), X, LABELS["two"])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_loaded_detector_can_be_fitted_again(tmp_path):
    model, rows = detector("mixture")
    again = _quietly(saved_twice(model, tmp_path), rows)
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))


def test_after_adjust_priors(tmp_path):
    for name in ("tree", "net"):
        model = fitted(name).adjust_priors(X[LABELS["two"] == "yes"])
        again = saved_twice(model, tmp_path)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.class_prior_, model.class_prior_)


def test_a_structure_for_each_class(tmp_path):
    model = MEDBayesNetClassifier({"yes": EDGES, "no": "naive"}, **OPTIONS).fit(X, LABELS["two"])
    again = saved_twice(model, tmp_path)
    assert again.structure == model.structure and again.edges_ == [[], EDGES]
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# what is computed on the way


def parts_of(value, collected=None):
    """Every dataclass inside a model."""
    collected = [] if collected is None else collected
    if isinstance(value, (list, tuple)):
        for one in value:
            parts_of(one, collected)
    elif isinstance(value, dict):
        parts_of(list(value.values()), collected)
    elif is_dataclass(value):
        collected.append(value)
        parts_of([getattr(value, f.name) for f in fields(value)], collected)
    elif isinstance(value, BaseEstimator):
        parts_of(vars(value), collected)
    return collected


def objects_in(tree):
    """(class, names of what is kept of it) of every object in a file."""
    if isinstance(tree, dict):
        if "$object" in tree:
            yield tree["$object"], set(tree["state"])
        for value in tree.values():
            yield from objects_in(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from objects_in(value)


@pytest.mark.parametrize("name", ["tree", "tree, integrated", "net", "novelty tree", "novelty mixture"])
def test_what_is_computed_on_the_way_is_not_written(name, tmp_path):
    if name.startswith("novelty"):
        model, rows = detector(name.split()[1])
        model.score_samples(rows)
    else:
        model = fitted(name)
        model.predict_proba(X)
    mixent.save(model, tmp_path / "a.mixent")
    with zipfile.ZipFile(tmp_path / "a.mixent") as pack:
        tree = json.loads(pack.read("header.json"))["model"]
    cached = {
        cls: {
            attribute for base in kind.__mro__ for attribute, v in vars(base).items() if isinstance(v, cached_property)
        }
        for cls, kind in known_classes().items()
    }
    kept = {cls for cls, _ in objects_in(tree)}
    assert any(cached[cls] for cls in kept), "there was something to leave out"
    for cls, names in objects_in(tree):
        assert not names & cached[cls], cls
    n_cleared = 0
    for part in parts_of(model):
        for attribute in set(vars(part)) - {f.name for f in fields(part)}:
            del vars(part)[attribute]
            n_cleared += 1
    assert n_cleared
    mixent.save(model, tmp_path / "b.mixent")
    assert (tmp_path / "a.mixent").read_bytes() == (tmp_path / "b.mixent").read_bytes()


# what a file cannot hold, and files that are no models


def test_a_structure_that_is_a_function_is_refused(tmp_path):
    def pairs(names):
        return [(names[0], names[1])]

    for structure in (pairs, {"yes": pairs, "no": "naive"}):
        model = MEDBayesNetClassifier(structure, **OPTIONS).fit(X, LABELS["two"])
        with pytest.raises(TypeError, match="structure"):
            mixent.save(model, tmp_path / "m.mixent")
    model = model.set_params(structure={"yes": model.edges_[1], "no": "naive"})
    assert saved_twice(model, tmp_path).edges_ == model.edges_


@pytest.mark.parametrize("name", ["tree, integrated", "net", "gaussian"])
def test_counts_that_no_distribution_has_are_refused(name, tmp_path):
    model = fitted(name) if name in CLASSIFIERS else detector(name)[0]
    path, spare = tmp_path / "m.mixent", tmp_path / "spare.zip"
    mixent.save(model, spare)
    with zipfile.ZipFile(spare) as old:
        tree = json.loads(old.read("header.json"))
        place = _first_counts(tree["model"])
        with zipfile.ZipFile(path, "w") as new:
            for item in old.namelist():
                content = old.read(item)
                if item == f"arrays/{place}.npy":
                    content = (
                        content[:128] + np.array([-1e9]).tobytes() + content[136:]
                    )  # after the header of the array
                new.writestr(item, content)
    with pytest.raises(SavedFileError, match="damaged .OutsideDomainError"):
        mixent.load(path)


def _first_counts(tree):
    """The array of the first T in a file."""
    for key in ("distribution_",):
        if key in tree["state"]:
            node = tree["state"][key]
            while "T" not in node["state"]:
                node = node["state"]["parts"]["$tuple"][-1]
            return node["state"]["T"]["$array"]
    raise AssertionError


# sequences


def test_a_classifier_of_sequences_that_were_rows(tmp_path):
    rng = np.random.default_rng(0)
    rising = np.sort(rng.normal(size=(20, 6)), axis=1)
    Z, y = np.concatenate([rising, rising[:, ::-1]]), np.repeat(["up", "down"], 20)
    model = HMMClassifier(2, topology="left-right", random_state=0).fit(Z, y)
    again = saved_twice(model, tmp_path)
    np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))
    np.testing.assert_array_equal(again.models_[0].transitions_, model.models_[0].transitions_)
