"""A fusion in a file: what it says afterwards is what it said before, bit for bit."""

import copy

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent.core import serialize
from mixent.fusion import Calibration, Fuser, Source, long_answers
from mixent.fusion.methods import METHODS
from mixent.persistence import SavedFileError
from mixent.persistence.files import known_classes

LABELS = np.array(["no", "yes"])


def table(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    frame = pd.DataFrame({"A": LABELS[np.where(rng.random(n) < 0.8, y, 1 - y)]})
    frame["B"] = np.where(rng.random(n) < 0.2, "unsure", LABELS[np.where(rng.random(n) < 0.7, y, 1 - y)])
    frame.loc[::5, "B"] = None
    p = 1 / (1 + np.exp(-rng.normal(2 * y - 1)))
    frame["C:no"], frame["C:yes"] = 1 - p, p
    frame["S"] = rng.normal(y)
    frame["L"] = rng.normal(y)
    frame["D"] = frame["A"]
    frame["D@"] = np.where(rng.random(n) < 0.5, "day", "night")
    return frame, LABELS[y]


FRAME, TRUTH = table(120, 0)


def sources(frame=FRAME, truth=TRUTH):
    soft = frame[["C:no", "C:yes"]].to_numpy()
    return {
        "A": Calibration.from_predictions(truth, frame["A"], calibration_set="rows"),
        "B": Source(Calibration.from_predictions(truth, frame["B"]), columns="B"),
        "C": Source(Calibration.from_predictions(truth, soft, priors=[0.25, 0.75]), as_is=False),
        "S": Calibration.from_scores(truth, frame["S"], bins=4),
        "L": Calibration.from_scores(truth, frame["L"], ratio=True),
        "D": Calibration.from_predictions(truth, frame["D"], cells=frame["D@"], copy_of="A"),
    }


NEW, _ = table(60, 1)
HARD = {name: one for name, one in sources().items() if name in "AB"}


def again(fuser, path):
    mixent.save(fuser, path / "f.mixent")
    return mixent.load(path / "f.mixent")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_the_same_afterwards(method, tmp_path):
    fuser = Fuser(sources(), method=method).fit(NEW)
    found = again(fuser, tmp_path)
    assert found.method_ == fuser.method_ and found.get_params()["method"] == method
    np.testing.assert_array_equal(found.predict_proba(FRAME), fuser.predict_proba(FRAME))
    for name in ("posterior_", "labels_", "prior_", "classes_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(fuser, name))
    assert found.labels_.dtype == fuser.labels_.dtype
    for name in ("trust_", "objective_", "gap_", "warnings_", "prior_shift_", "history_", "n_items_", "n_patterns_"):
        assert str(getattr(found, name)) == str(getattr(fuser, name))
    np.testing.assert_array_equal(found.dependence_.z, fuser.dependence_.z)
    np.testing.assert_array_equal(found.prior_estimate_.low, fuser.prior_estimate_.low)
    assert found.drift_["A"].p_value == fuser.drift_["A"].p_value
    assert found.fuse_one({"A": "yes", "S": 0.4}) == fuser.fuse_one({"A": "yes", "S": 0.4})


def test_it_goes_on_where_it_was(tmp_path):
    fuser = Fuser(HARD, method="min-divergence").fit(NEW, y=["yes", *[None] * 59])
    found = again(fuser, tmp_path)
    np.testing.assert_array_equal(found.explain(FRAME), fuser.explain(FRAME))
    for one in (fuser, found):
        one.partial_fit(FRAME[:7])
        one.update_prior(FRAME)
    assert found.n_items_ == fuser.n_items_ and len(found.posterior_) == 7
    np.testing.assert_array_equal(found.posterior_, fuser.posterior_)
    np.testing.assert_array_equal(found.predict_proba(FRAME), fuser.predict_proba(FRAME))


@pytest.mark.parametrize("names", [["x", "yy", "é"], [3, 1, 2], [3, "x", 1], [3, "3", 1.5]])
def test_names_of_items_are_kept(names, tmp_path):
    rows = pd.DataFrame({"item": np.repeat(np.array(names, dtype=object), 2), "source": ["A", "B"] * 3})
    fuser = Fuser(HARD).fit(long_answers(rows.assign(value="yes")))
    found = again(fuser, tmp_path)
    assert found.items_.tolist() == names and found.items_.dtype == object
    assert [type(item) for item in found.items_.tolist()] == [type(item) for item in names]


def test_guesses_are_kept(tmp_path):
    fuser = Fuser().fit(FRAME[["A", "B"]])
    np.testing.assert_array_equal(again(fuser, tmp_path).predict_proba(NEW), fuser.predict_proba(NEW))


def test_a_fusion_of_blocks_keeps_no_items(tmp_path):
    fuser = Fuser(HARD).fit_blocks([NEW[:30], NEW[30:]])
    found = again(fuser, tmp_path)
    assert found.posterior_ is None and found.labels_ is None and found.n_items_ == 60
    np.testing.assert_array_equal(found.predict_proba(NEW), fuser.predict_proba(NEW))


def test_a_fusion_that_is_not_fitted_is_refused(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        mixent.save(Fuser(HARD), tmp_path / "f.mixent")


def test_parts_of_the_same_name_are_kept_apart():
    from mixent.med.calibration import Calibration as OfMargins

    classes = known_classes()
    assert classes["med.Calibration"] is OfMargins and classes["fusion.Calibration"] is Calibration
    assert len(set(classes.values())) == len(classes)


@pytest.mark.parametrize("name", ["rule_", "_batch", "_fitted_layout", "classes_", "drift_", "prior_estimate_"])
def test_a_fusion_without_a_part_is_refused(name, tmp_path):
    fuser = copy.copy(Fuser(HARD).fit(NEW))  # a copy has all results, also those that are computed when they are read
    for gone in (name, "_fitted"):
        delattr(fuser, gone)
    serialize.save(tmp_path / "f.mixent", fuser, known_classes(), {})
    with pytest.raises(SavedFileError, match=rf"damaged \({name} is missing"):
        mixent.load(tmp_path / "f.mixent")


def test_a_crowd_says_the_same_afterwards(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    votes = {f"w{j}": LABELS[np.where(rng.random(80) < 0.8, truth, 1 - truth)] for j in range(5)}
    fuser = Fuser().fit(votes)
    found = again(fuser, tmp_path)
    assert found.method_ == fuser.method_ and found.rule_.power == fuser.rule_.power < 1
    np.testing.assert_array_equal(found.predict_proba(votes), fuser.predict_proba(votes))
