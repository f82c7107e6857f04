"""What tests of saved MED models share: a table, and comparisons of a model with the one read back."""

from dataclasses import replace

import numpy as np
import pandas as pd

import mixent


def mixed_table(n, shape=False):
    """Numbers and categories with missing values; labels of two and three classes, and some that are absent."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=n)
    columns = {
        "size": rng.normal(size=n) + 2 * codes,
        "color": np.array(["red", "blue", "green"])[(codes + rng.integers(2, size=n)) % 3],
    }
    if shape:
        columns["shape"] = np.where(rng.random(n) < 0.7, np.where(codes > 0, "round", "long"), "flat")
    frame = pd.DataFrame(columns | {"count": rng.integers(10, size=n) + codes})
    frame.loc[::7, "size"] = np.nan
    frame.loc[::5, "color"] = None
    three = np.array(["low", "mid", "top"])[codes]
    partly = three.astype(object)
    partly[::4] = None
    return frame, {"two": np.where(codes > 1, "yes", "no"), "three": three, "partly": partly}


def saved_twice(model, folder):
    """The model read back; what is read and written again is the same file."""
    watched = model.progress
    mixent.save(model, folder / "m.mixent")
    again = mixent.load(folder / "m.mixent")
    assert type(again) is type(model) and again.progress is False and model.progress is watched
    mixent.save(again, folder / "twice.mixent")
    assert (folder / "twice.mixent").read_bytes() == (folder / "m.mixent").read_bytes()
    return again


def same_run(a, b):
    """The runs that fitted two models, but for what was observed on the way."""
    assert a.run_.params is None and b.run_.params is None
    assert replace(a.run_, trace=()) == replace(b.run_, trace=()) and len(a.run_.trace) == len(b.run_.trace)


def same_classifier(a, b, rows):
    """Predictions of rows and fitted attributes, to the bit."""
    np.testing.assert_array_equal(a.predict_proba(rows), b.predict_proba(rows))
    np.testing.assert_array_equal(a.decision_function(rows), b.decision_function(rows))
    for name in ("multipliers_", "support_", "label_posterior_", "classes_", "class_prior_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name in ("C_", "C_tried_", "gap_", "objective_", "loo_estimate_", "margin_", "schema_", "pairs_"):
        assert getattr(a, name) == getattr(b, name), name
    same_run(a, b)
