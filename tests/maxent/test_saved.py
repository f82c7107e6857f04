"""Maximum entropy models in files: the same answers, bit for bit; damaged ones refused."""

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent import MaxEntClassifier, MaxEntJoint
from mixent.core import serialize
from mixent.options import BinFeatures, ComponentFeatures, ForwardSelection
from mixent.persistence.files import known_classes


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes"])[rng.integers(2, size=n)]
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 2 * (y == "yes"),
            "color": rng.choice(["red", "blue"], size=n),
            "count": rng.integers(10, size=n),
            "flag": rng.random(n) < 0.5,
        }
    )
    frame["length"] = frame["size"] + rng.normal(size=n)
    frame[["round", "square"]] = rng.dirichlet([1, 1], size=n)
    frame.loc[::7, "size"] = np.nan
    frame.loc[::5, "color"] = None
    return frame, y


X, Y = table()
SHAPE = {"shape": ["round", "square"]}
PAIRS = [["size", "length"]]
MODELS = {
    "union": MaxEntClassifier(prior_variance=1.0),
    "class": MaxEntClassifier("class", prior_variance=1.0),
    "pooled": MaxEntClassifier("pooled", prior_variance=1.0),
    "bins": MaxEntClassifier(BinFeatures("entropy", n_bins=3), prior_variance=1.0),
    "moments": MaxEntClassifier("moments", prior_variance=1.0),
    "given": MaxEntClassifier("bins", probabilistic=SHAPE, prior_variance=1.0),
    "pairs": MaxEntClassifier("pooled", pairs=[("color", "flag"), ("color", "size")], prior_variance=1.0),
    "group": MaxEntClassifier(ComponentFeatures(groups=PAIRS, max_components=2), prior_variance=1.0, random_state=0),
    "group, class": MaxEntClassifier(
        ComponentFeatures("class", groups=PAIRS, max_components=2), prior_variance=1.0, random_state=0
    ),
    "group, pooled, paired": MaxEntClassifier(
        ComponentFeatures("pooled", groups=PAIRS, max_components=2),
        pairs=[("size & length", "flag")],
        prior_variance=1.0,
        random_state=0,
    ),
    "chosen": MaxEntClassifier("bins", selection=ForwardSelection("validation", validation=0.3), cv=2, random_state=0),
    "priors": MaxEntClassifier("bins", class_prior=[0.3, 0.7], prior_variance=1.0, progress=lambda *a: None),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_loaded_classifier_is_the_saved_one(name, tmp_path):
    model = MODELS[name].fit(X, Y)
    model.predict_proba(X), model.constraints()  # whatever is kept on the way is no part of the model
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    assert type(again) is MaxEntClassifier
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.explain(X).parts, model.explain(X).parts)
    pd.testing.assert_frame_equal(again.constraints().frame(), model.constraints().frame())
    for number in (
        "gap_",
        "gain_",
        "residual_",
        "entropy_",
        "prior_variance_",
        "prior_variances_tried_",
        "path_",
        "schema_",
    ):
        assert getattr(again, number) == getattr(model, number), number
    assert {n: v for n, v in again.get_params().items() if isinstance(v, int | str | float)}.items() >= {
        n: v for n, v in model.get_params().items() if "__" in n and isinstance(v, int | str | float)
    }.items()
    assert again.run_.status is model.run_.status and again.n_parameters_ == model.n_parameters_
    mixent.save(again, tmp_path / "twice.mixent")
    assert (tmp_path / "twice.mixent").read_bytes() == (tmp_path / "m.mixent").read_bytes()


def test_what_is_computed_on_the_way_is_not_written(tmp_path):
    """Cells, spans and values are kept in the objects once asked for, and are no fields."""
    model = MaxEntClassifier("pooled", prior_variance=1.0).fit(X, Y)
    mixent.save(model, tmp_path / "a.mixent")
    assert {"cells", "spans"} & set(vars(model.layout_))
    vars(model.layout_).pop("cells", None), vars(model.layout_).pop("spans", None)
    mixent.save(model, tmp_path / "b.mixent")
    assert (tmp_path / "a.mixent").read_bytes() == (tmp_path / "b.mixent").read_bytes()


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_loaded_joint_model_is_the_saved_one(tmp_path):
    frame = X.assign(label=Y, one=1.0, same="a")
    model = MaxEntJoint(max_components=2, prior_variance=1.0, random_state=0).fit(frame)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    for target in (None, "size", "color", "one", ("color", "label")):
        np.testing.assert_array_equal(again.predict_proba(frame, target), model.predict_proba(frame, target))
    pd.testing.assert_frame_equal(again.impute(frame), model.impute(frame))
    assert again.accuracy_by_column(frame) == model.accuracy_by_column(frame)


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    model = MaxEntClassifier("bins", prior_variance=1.0).fit(X, Y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent").fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_after_adjust_priors(tmp_path):
    model = MaxEntClassifier("bins", prior_variance=1.0).fit(X, Y).adjust_priors(X[Y == "yes"])
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.class_prior_, model.class_prior_)


@pytest.mark.parametrize("name", ["layout_", "params_", "run_", "schema_"])
def test_a_classifier_without_a_part_is_refused(name, tmp_path):
    model = MaxEntClassifier("bins", prior_variance=1.0).fit(X, Y)
    delattr(model, name)
    serialize.save(tmp_path / "m.mixent", model, known_classes(), {})
    with pytest.raises(mixent.persistence.SavedFileError, match=rf"damaged \({name} is missing"):
        mixent.load(tmp_path / "m.mixent")
