"""`mixent impute`: missing values filled, known cells as they are."""

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.data import read_frame

from .conftest import FEATURES


@pytest.mark.parametrize("name", ["joint", "mixture"])
def test_impute_fills_missing_values_and_nothing_else(mixent, stock, name):
    path = stock / "joint.mixent" if name == "joint" else stock / "clusters.mixent"
    result = mixent("impute", path, "{stock}/data.csv", "-o", "full.csv")
    assert result.exit_code == 0, result.output
    old, new, model = read_frame(stock / "data.csv"), read_frame("full.csv"), mx.load(path)
    missing = {c: int(old[c].isna().sum()) for c in FEATURES}
    counts = ", ".join(f"{c}: {n}" for c, n in missing.items())
    assert f"60 rows; filled {sum(missing.values())} cells in 3 columns ({counts})" in " ".join(result.stdout.split())
    assert not new.isna().any().any() and new.columns.tolist() == old.columns.tolist()
    expected = model.impute(old[list(model.schema_.names)])
    for column in old.columns:
        known = old[column].notna()
        assert (new[column][known] == old[column][known]).all()
        if column in model.schema_.names:
            assert (new[column][~known].tolist()) == pytest.approx(expected[column][~known].tolist())


def test_impute_keeps_values_the_model_has_never_seen(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.loc[1, "color"] = "purple"
    frame.to_csv("d.csv", index=False)
    result = mixent("impute", stock / "joint.mixent", "d.csv", "-o", "full.csv", "-q")
    assert result.exit_code == 0 and pd.read_csv("full.csv")["color"][1] == "purple"


def test_a_model_of_arrays_is_imputed_by_position(mixent):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[:, 1] += 3 * X[:, 0]
    mx.save(mx.MaxEntJoint(prior_variance=1.0).fit(X), "j.mixent")
    X[0, 1] = np.nan
    pd.DataFrame(X, columns=["x0", "x1"]).to_csv("d.csv", index=False)
    assert mixent("impute", "j.mixent", "d.csv", "-o", "full.csv").exit_code == 0
    assert pd.read_csv("full.csv")["x1"][0] == pytest.approx(mx.load("j.mixent").impute(X)[0, 1])


def test_a_classifier_fills_given_the_class_where_the_target_is_named(mixent, stock):
    result = mixent("impute", "{stock}/model.mixent", "{stock}/some.csv", "-o", "full.csv", "-t", "class")
    assert result.exit_code == 0, result.output
    old, new, model = read_frame(stock / "some.csv"), read_frame("full.csv"), mx.load(stock / "model.mixent")
    expected = model.impute(old[FEATURES], old["class"])
    assert new["size"].tolist() == pytest.approx(expected["size"].tolist())
    assert new["class"].isna().tolist() == old["class"].isna().tolist()  # labels are not filled
    without = mixent("impute", "{stock}/model.mixent", "{stock}/some.csv", "-o", "other.csv")
    assert without.exit_code == 0 and not np.allclose(read_frame("other.csv")["size"], new["size"])


def test_draws_are_written_below_each_other(mixent, stock):
    args = ("impute", "{stock}/model.mixent", "{stock}/data.csv", "--draws", 3, "--seed", 7)
    result = mixent(*args, "-o", "drawn.csv", "-t", "class")
    assert result.exit_code == 0, result.output
    old, new, model = read_frame(stock / "data.csv"), read_frame("drawn.csv"), mx.load(stock / "model.mixent")
    assert new.columns.tolist() == ["draw", *old.columns]
    assert new["draw"].tolist() == [1] * 60 + [2] * 60 + [3] * 60
    expected = model.sample_conditional(old[FEATURES], 3, y=old["class"], random_state=7)
    for i, table in enumerate(expected):
        part = new[new["draw"] == i + 1].reset_index(drop=True)
        assert part["size"].tolist() == pytest.approx(table["size"].tolist())
        assert part["color"].tolist() == table["color"].tolist()
        pd.testing.assert_series_equal(part["w"], old["w"])
    assert mixent(*args, "-o", "again.csv", "-t", "class").exit_code == 0
    pd.testing.assert_frame_equal(read_frame("again.csv"), new)
    clusters = mixent("impute", "{stock}/clusters.mixent", "{stock}/data.csv", "--draws", 2, "-o", "c.parquet", "-q")
    assert clusters.exit_code == 0 and len(pd.read_parquet("c.parquet")) == 120
