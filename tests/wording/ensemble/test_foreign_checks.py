"""Wording of ensemble, foreign checks."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

import mixent
from mixent import TunedClassifier
from mixent.persistence import SavedFileError

from ...ensemble.test_foreign_checks import HUGE, X, Y, nodes, place, rebuilt, refused


def test_holds_a_gradientboostingclassifier_whose_trees_are_used_unseen_by_comp(tmp_path):
    model = TunedClassifier(GradientBoostingClassifier(n_estimators=2), random_state=0).fit(X, Y)
    mixent.save(model, tmp_path / "m", foreign="skops")
    with pytest.raises(SavedFileError, match="holds a GradientBoostingClassifier, whose trees are used unseen by comp"):
        mixent.load(tmp_path / "m")


VECTORS = [
    ({"_dual_coef_": lambda w: w[:, :1]}, "weights of support vectors are missing"),
    ({"_dual_coef_": lambda w: w[:1]}, "weights of support vectors are missing"),
    ({"_intercept_": lambda b: b[:0]}, "thresholds are missing"),
    ({"support_": lambda places: places[:1]}, "support vectors are missing"),
    ({"support_vectors_": lambda rows: rows[:1]}, "support vectors are missing"),
    ({"support_vectors_": lambda rows: rows[:, :1]}, "support vectors are missing"),
    ({"_n_support": lambda n: n + HUGE}, "support vectors are missing"),
    ({"_n_support": lambda n: n + np.array([-HUGE, HUGE, 0])}, "support vectors are missing"),
    ({"_n_support": lambda n: np.ones(20_000, dtype=np.int32)}, "support vectors and classes do not agree"),
    ({"classes_": lambda classes: classes[:2]}, "support vectors and classes do not agree"),
    ({"_probA": lambda _: np.zeros(1), "_probB": lambda _: np.zeros(1)}, "its probabilities are not all there"),
    ({"_impl": lambda _: "epsilon_svr"}, "it is of another kind"),
    ({"kernel": lambda _: "precomputed"}, "a support vector is not there"),
]


@pytest.mark.parametrize(("changes", "message"), VECTORS)
@pytest.mark.parametrize("sparse", [False, True])
def test_damaged_support_vectors_are_refused(changes, message, sparse):
    model = make_pipeline(OneHotEncoder(sparse_output=sparse), SVC()).fit(X, Y)[-1]
    assert model._sparse == sparse
    for name, change in changes.items():
        setattr(model, name, change(getattr(model, name)))
    refused(CalibratedClassifierCV(model), f"holds a SVC that is damaged: {message}")


def bad_tree(model):
    model.estimators_[0].tree_ = rebuilt(model.estimators_[0].tree_, nodes(feature=-HUGE))


DAMAGED = {
    "forest": (RandomForestClassifier(2), bad_tree),
    "histograms": (HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=3), place(feature_idx=HUGE)),
    "neighbors": (KNeighborsClassifier(algorithm="brute"), lambda model: setattr(model, "_y", model._y + HUGE)),
    "vectors": (SVC(), lambda model: setattr(model, "_intercept_", np.zeros(1))),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_with_a_damaged_model_is_not_loaded(name, tmp_path):
    base, damage = DAMAGED[name]
    model = TunedClassifier(base, encoding="codes", random_state=0).fit(X, Y)
    mixent.save(model, tmp_path / "m.mixent", foreign="skops")
    mixent.load(tmp_path / "m.mixent")
    damage(model.model_)
    mixent.save(model, tmp_path / "m.mixent", foreign="skops")
    with pytest.raises(SavedFileError, match=r"m\.mixent holds a .* that is damaged"):
        mixent.load(tmp_path / "m.mixent")
