import io

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.base.text import one_line
from mixent.data import read_frame

from .conftest import FEATURES

PREDICT = ("predict", "{stock}/model.mixent", "{stock}/data.csv")


@pytest.fixture
def model(stock):
    return mx.load(stock / "model.mixent")


@pytest.fixture
def X(stock):
    return pd.read_csv(stock / "data.csv")[["size", "count", "color"]]


def test_predictions_and_probabilities(mixent, model, X):
    result = mixent(*PREDICT, "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert "60 rows: " in result.stdout and "Wrote out.csv" in result.stdout
    out = pd.read_csv("out.csv")
    assert out.columns.tolist() == ["id", "predicted", "p(no)", "p(yes)"]
    assert out["predicted"].tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(out[["p(no)", "p(yes)"]], model.predict_proba(X))


def test_columns_are_found_by_name_and_unknown_ones_ignored(mixent, X, stock):
    pd.read_csv(stock / "data.csv").iloc[:, ::-1].assign(extra="?").to_csv("new.csv", index=False)
    mixent(*PREDICT, "-o", "a.csv")
    assert mixent(*PREDICT[:2], "new.csv", "-o", "b.csv").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv("a.csv"), pd.read_csv("b.csv"))


def test_rows_of_gaps_and_unseen_values_never_fail(mixent, model):
    pd.DataFrame({"size": [np.nan, 1.0], "count": [np.nan, 2], "color": [None, "purple"]}).to_csv(
        "new.csv", index=False
    )
    result = mixent(*PREDICT[:2], "new.csv", "-o", "out.csv", "--density")
    assert result.exit_code == 0, result.output
    out = pd.read_csv("out.csv")
    assert np.isfinite(out[["p(no)", "p(yes)", "log_density"]]).all(axis=None)
    np.testing.assert_allclose(out.loc[0, ["p(no)", "p(yes)"]].astype(float), model.class_prior_)  # nothing known
    assert len(result.stderr.splitlines()) == 1  # said once, though the rows were read three times


def test_to_stdout_only_the_table(mixent, X):
    result = mixent(*PREDICT, "-o", "-", "--no-proba", "--keep", "id")
    assert result.exit_code == 0, result.output
    out = pd.read_csv(io.StringIO(result.stdout))
    assert out.columns.tolist() == ["id", "predicted"] and len(out) == 60
    assert "60 rows" in result.stderr


def test_quiet(mixent):
    result = mixent(*PREDICT, "-o", "out.csv", "-q")
    assert (result.exit_code, result.output) == (0, "")
    result = mixent(*PREDICT, "-o", "-", "-q")
    assert result.stderr == "" and result.stdout.startswith("id,predicted,")


def test_parquet_round_trip(mixent, model, X):
    assert mixent(*PREDICT, "-o", "out.parquet", "--keep-all", "--density").exit_code == 0
    out = pd.read_parquet("out.parquet")
    np.testing.assert_array_equal(out["log_density"], model.score_samples(X))
    assert mixent("predict", "{stock}/model.mixent", "out.parquet", "-o", "again.parquet").exit_code == 0
    again = pd.read_parquet("again.parquet")
    pd.testing.assert_frame_equal(again, out[again.columns.tolist()])


def test_costs_and_reject(mixent, model, X):
    # rows and columns in another order than the model's classes
    pd.DataFrame({"said": ["yes", "no"], "yes": [0, 20.0], "no": [1.0, 0]}).to_csv("costs.csv", index=False)
    result = mixent(*PREDICT, "-o", "out.parquet", "--costs", "costs.csv", "--reject", "0.3")
    assert result.exit_code == 0, result.output
    expected = model.decision(X, [[0, 20.0], [1.0, 0]], reject=0.3)
    out = pd.read_parquet("out.parquet")
    assert 0 < out["rejected"].sum() < 60
    counts = out["decision"].value_counts()
    decisions = ", ".join(f"{n} {label}" for label, n in counts.items())
    assert f"60 rows: {decisions}, {out['rejected'].sum()} undecided" in result.stdout
    assert out["decision"].isna().tolist() == expected.rejected.tolist() == out["rejected"].tolist()
    np.testing.assert_allclose(out["expected_cost"], expected.expected_cost)
    assert out["decision"].dropna().tolist() == [v for v in expected.labels if v is not None]


def test_reject_alone(mixent, model, X):
    assert mixent(*PREDICT, "-o", "out.csv", "--reject", "0.05", "--no-proba").exit_code == 0
    out = pd.read_csv("out.csv")
    assert out.columns.tolist() == ["id", "predicted", "decision", "expected_cost", "rejected"]
    assert out["rejected"].tolist() == model.decision(X, reject=0.05).rejected.tolist()


def test_adjusted_priors(mixent, model, X, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame[(frame["class"] == "yes") | (frame["id"] < 10)].to_csv("new.csv", index=False)
    assert mixent(*PREDICT[:2], "new.csv", "-o", "out.csv", "--adjust-priors").exit_code == 0
    expected = model.adjust_priors(pd.read_csv("new.csv")[X.columns])
    np.testing.assert_allclose(
        pd.read_csv("out.csv")["p(yes)"], expected.predict_proba(pd.read_csv("new.csv")[X.columns])[:, 1]
    )


def test_clusters(mixent, stock):
    assert mixent("predict", "{stock}/clusters.mixent", "{stock}/data.csv", "-o", "out.csv").exit_code == 0
    assert pd.read_csv("out.csv").columns.tolist() == ["id", "component", "p(0)"]


def test_a_model_of_arrays_takes_columns_x0_x1(mixent):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2)) + 3 * (np.arange(20) % 2)[:, None]
    model = mx.MixtureClassifier(1).fit(X, np.arange(20) % 2)
    mx.save(model, "m.mixent")
    pd.DataFrame(X, columns=["x0", "x1"]).to_csv("new.csv", index=False)
    result = mixent("predict", "m.mixent", "new.csv", "-o", "out.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    np.testing.assert_allclose(pd.read_csv("out.csv")["p(1)"], model.predict_proba(X)[:, 1])


def test_no_formula_reaches_a_spreadsheet(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"]).replace({"yes": "=cmd()", "no": "@no"})
    frame.assign(**{"+note": "-1+2"}).to_csv("d.csv", index=False)
    assert (
        mixent(
            "fit", "d.csv", "-t", "class", "--ignore", "+note", "-o", "m.mixent", "--set", "n_components=1"
        ).exit_code
        == 0
    )
    result = mixent("predict", "m.mixent", "d.csv", "-o", "-", "--keep", "+note")
    rows = [line.split(",") for line in result.stdout.splitlines()]
    assert rows[0][:2] == ["'+note", "predicted"]
    assert {row[1] for row in rows[1:]} == {"'=cmd()", "@no"} and {row[0] for row in rows[1:]} == {"'-1+2"}
    assert "would run as a formula" in one_line(mixent("predict", "--help").stdout.replace("│", " "))


def test_explanations_add_up_to_the_log_odds(mixent, model, X):
    result = mixent(*PREDICT, "-o", "out.csv", "--explain", "--adjust-priors")
    assert result.exit_code == 0, result.output
    out, why = pd.read_csv("out.csv"), model.adjust_priors(X).explain(X)
    assert out.columns.tolist()[-4:] == ["rival", "log_odds", "feature", "feature_part"]
    log_proba = np.log(out[["p(no)", "p(yes)"]])
    np.testing.assert_allclose(out["log_odds"], log_proba.max(axis=1) - log_proba.min(axis=1))
    assert (out["rival"] != out["predicted"]).all()
    np.testing.assert_allclose(out["feature_part"], why.parts.max(axis=1))
    assert out["feature"].tolist() == [why.names[j] for j in why.parts.argmax(axis=1)]


# --- joint models


@pytest.mark.parametrize("target", ["color", "class", "size"])
def test_a_joint_model_predicts_the_column_asked_for(mixent, stock, target):
    frame = read_frame(stock / "data.csv")
    model = mx.load(stock / "joint.mixent")
    expected = model.predict(frame[[*FEATURES, "class"]], target=target)
    for name, table in (("with.csv", frame), ("without.csv", frame.drop(columns=target))):
        table.to_csv(name, index=False)
        result = mixent("predict", stock / "joint.mixent", name, "-o", "o.csv", "--target", target)
        assert result.exit_code == 0, result.output
        out = pd.read_csv("o.csv")
        np.testing.assert_array_equal(out["predicted"], expected)
        proba = model.predict_proba(frame[[*FEATURES, "class"]], target=target)
        np.testing.assert_array_equal(out.drop(columns=["id", "predicted"]), proba)
    if target == "size":
        assert f"predicted: {expected.min():.4g} to {expected.max():.4g}, mean {expected.mean():.4g}" in result.stdout
    else:
        counts = pd.Series(expected).value_counts()
        assert f"60 rows: {counts.iloc[0]} {counts.index[0]}" in result.stdout


def test_without_a_target_the_last_column_is_predicted(mixent, stock):
    assert mixent("predict", stock / "joint.mixent", "{stock}/data.csv", "-o", "o.csv").exit_code == 0
    assert pd.read_csv("o.csv").columns.tolist() == ["id", "predicted", "p(no)", "p(yes)"]
    assert mixent("predict", stock / "joint.mixent", "{stock}/data.csv", "-o", "o.csv", "--no-proba").exit_code == 0
    assert pd.read_csv("o.csv").columns.tolist() == ["id", "predicted"]


def kept(mixent, frame, *options, model="{stock}/model.mixent"):
    """Input columns in the output."""
    frame.to_csv("new.csv", index=False)
    assert mixent("predict", model, "new.csv", "-o", "o.csv", "-q", *options).exit_code == 0
    return [name for name in pd.read_csv("o.csv").columns if name in frame.columns]


def test_an_identifier_is_kept(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    names = [f"row {n}" for n in frame.index]
    assert kept(mixent, frame.assign(name=names)) == ["id", "name"]
    assert kept(mixent, frame.assign(name=names), "--keep", "w") == ["w"]
    assert kept(mixent, frame.assign(id=[0, *frame["id"][1:-1], 0], name=[None, *names[1:]])) == []
    assert kept(mixent, frame.assign(id=frame["id"] + 0.5)) == []
    assert kept(mixent, frame.assign(count=frame.index)) == ["id"]  # the model uses it
    assert kept(mixent, frame.rename(columns={"id": "predicted"})) == ["predicted"]  # that of the output
    assert pd.read_csv("o.csv")["predicted"].isin(["no", "yes"]).all()


def test_a_row_number_that_the_model_uses_is_kept(mixent, stock):
    """It was pointed out at fit; `compare` and `update` write that into the file, too."""
    frame = pd.read_csv(stock / "data.csv").drop(columns="w")
    frame.to_csv("d.csv", index=False)
    quick = ("--method", "linear MED", "--no-baselines", "--folds", "2", "--jobs", "1", "--no-page", "-q")
    assert mixent("compare", "d.csv", "-t", "class", "-o", "c.mixent", *quick).exit_code == 0
    assert mixent("fit", "d.csv", "-t", "class", "-o", "m.mixent", "--set", "n_components=1", "-q").exit_code == 0
    assert mixent("update", "m.mixent", "d.csv", "-t", "class", "-o", "u.mixent", "-q").exit_code == 0
    for name in ("c.mixent", "m.mixent", "u.mixent"):
        assert "id" in mx.load(name).schema_.names
        assert kept(mixent, frame.assign(id=7), model=name) == ["id"]


# --- columns that the table of fit did not have


def test_extra_columns_are_noted_once_and_errors_with_strict(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.assign(extra=0.5).to_csv("new.csv", index=False)
    for command in (("predict", "-o", "o.csv", "--density"), ("explain", "--row", "0"), ("report", "-o", "r.html")):
        run = (command[0], "{stock}/model.mixent", "new.csv", *command[1:])
        result = mixent(*run)
        assert result.exit_code == 0 and result.stderr.count("'extra'") == 1, result.output
        assert not any(repr(name) in result.stderr for name in frame.columns)
        assert mixent(*run, "--strict").exit_code == 1


def test_columns_with_a_known_use_are_not_noted(mixent, stock):
    """Columns that are copied, and those that were the target, the weight or ignored at fit."""
    frame = pd.read_csv(stock / "data.csv").assign(part=["a", "b"] * 30)
    frame.to_csv("d.csv", index=False)
    roles = ("-t", "class", "--weight", "w", "--ignore", "id,part", "--set", "n_components=1", "-q")
    assert mixent("fit", "d.csv", "-o", "m.mixent", *roles).exit_code == 0
    frame.assign(name=[f"row {n}" for n in frame.index], more=0.5).to_csv("new.csv", index=False)
    predict = ("predict", "m.mixent", "new.csv", "-o", "o.csv", "--strict")
    assert mixent(*predict, "--keep", "name,more").exit_code == 0
    assert mixent(*predict, "--keep-all").exit_code == 0
    assert mixent(*predict).exit_code == 1
    assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv", "--strict").exit_code == 0


def test_a_model_that_python_saved_knows_no_further_columns(mixent, model, stock):
    mx.save(model, "m.mixent")
    result = mixent("predict", "m.mixent", "{stock}/data.csv", "-o", "o.csv")
    assert result.exit_code == 0 and "'w', 'class'" in result.stderr


def test_codes_of_an_identifier_stay_as_they_are_written(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").assign(id=[f"{n:04}" for n in range(60)])
    kept(mixent, frame)
    assert pd.read_csv("o.csv", dtype=str)["id"].tolist() == frame["id"].tolist()
