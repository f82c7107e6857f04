"""Maximum entropy on the command line: fit, evaluate, predict, info, explain, impute."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixent as mx
from mixent.cli import app
from mixent.data import read_frame

LEAVE = ("--ignore", "id", "--ignore", "w")
FIT = ("fit", "{stock}/data.csv", "-t", "class", *LEAVE, "--model", "maxent", "-o", "m.mixent")
JOINT = ("fit", "{stock}/data.csv", *LEAVE, "--model", "joint", "-o", "j.mixent")
EVALUATE = ("evaluate", "{stock}/data.csv", "-t", "class", *LEAVE, "--folds", "2", "--no-baselines")
COLUMNS = ["size", "count", "colour"]


def said(result):
    """What came to the screen, on one line."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture(scope="session")
def entropy(stock, tmp_path_factory):
    """A folder with maxent.mixent (classes), joint.mixent (all columns) and selected.mixent."""
    folder = tmp_path_factory.mktemp("entropy")
    for name, options in (
        ("maxent", ["-t", "class", "--model", "maxent", "--prior", "1"]),
        ("joint", ["--model", "joint", "--prior", "1"]),
        ("selected", ["-t", "class", "--model", "maxent", "--select", "forward", "--latent", "quantize"]),
    ):
        args = ["fit", str(stock / "data.csv"), *LEAVE, *options, "-o", str(folder / f"{name}.mixent"), "-q"]
        result = CliRunner().invoke(app, args)
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def X(stock):
    return read_frame(stock / "data.csv")[COLUMNS]


# fit and info


def test_fit_says_features_prior_certificate_entropy_and_strongest(mixent):
    text = said(mixent(*FIT))
    model = mx.load("m.mixent")
    assert type(model) is mx.MaxEntClassifier and model.progress is False
    assert "Fitted MaxEntClassifier" in text and "no 30 0.500 yes 30 0.500" in text
    cells = 2 * len(model.params_.cells)
    assert f"3 features, {cells} constraints; numbers as union" in text
    best = min(entry["log_loss"] for entry in model.priors_tried_)
    assert f"Prior variance of the multipliers {model.prior_:g}, chosen among {len(model.priors_tried_)} by" in text
    assert f"cross-validation: log-loss {best:.3f} nats" in text
    assert f"Certificate: at most {model.gap_:.1g} nats per row below the optimum; constraints met within" in text
    assert f"Entropy of the class given the row {model.entropy_:.3f} nats, 0.693 without it" in text
    strength = model.constraints().strength
    first = max(strength, key=strength.get)
    assert f"{first} {strength[first]:.3f}" in text and "red: for yes, " in text
    assert "Converged after" in text and "On the training rows" in text and "Wrote m.mixent" in text


def test_fit_equals_the_library(mixent, stock, X):
    options = ("--latent", "quantize", "--bins", "entropy", "--n-bins", "4", "--pairs", "colour,size;count,colour")
    assert mixent(*FIT, *options, "--prior", "0.5", "--solver", "lbfgs", "--seed", "3").exit_code == 0
    model = mx.MaxEntClassifier(
        mx.maxent.BinFeatures("entropy", n_bins=4),
        pairs=[["colour", "size"], ["count", "colour"]],
        prior=0.5,
        solver="lbfgs",
        random_state=3,
    ).fit(X, read_frame(stock / "data.csv")["class"])
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(X), model.predict_proba(X))
    hidden = ("--groups", "size, count", "--max-components", "2", "--no-means", "--prior", "none", "-q")
    assert mixent(*FIT, *hidden).exit_code == 0
    model = mx.load("m.mixent")
    assert (
        not model.features.means
        and "size & count" in model.feature_terms_
        and model.prior is None
        and model.features.max_components == 2
    )


def test_groups_by_themselves_and_weights(mixent):
    result = mixent(
        "fit", "{stock}/data.csv", "-t", "class", "--ignore", "id", "--weight", "w", *FIT[8:], "--groups", "auto"
    )
    assert result.exit_code == 0 and mx.load("m.mixent").features.groups == "auto"


def test_probabilistic_columns(mixent, stock):
    rng = np.random.default_rng(0)
    frame = pd.read_csv(stock / "data.csv")
    frame[["round", "square"]] = rng.dirichlet([1, 1], size=len(frame))
    frame.to_csv("d.csv", index=False)
    assert mixent("fit", "d.csv", *FIT[2:], "--prior", "1", "--probabilistic", "shape=round, square").exit_code == 0
    assert "shape" in mx.load("m.mixent").feature_terms_
    frame.loc[3, "round"] = 0.9
    frame.loc[3, "square"] = 0.9
    frame.to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", *FIT[2:], "--probabilistic", "shape=round,square")
    assert result.exit_code == 1 and "probabilities of feature 'shape' must be >= 0 and sum to 1" in result.stderr


def test_other_priors_in_words(mixent):
    text = said(mixent(*FIT, "--prior", "2", "--latent", "quantize"))
    assert "Prior variance of the multipliers 2, as given" in text
    text = said(mixent(*FIT, "--prior", "none", "--latent", "moments"))
    assert "No prior on the multipliers" in text and "without a prior there is no bound of the optimum" in text


@pytest.mark.parametrize(
    ("x", "options", "why"),
    [
        (list("ab") * 20, ["-t", "y", "--model", "maxent"], "a value never occurs with a class"),
        (np.arange(40) % 2 * 50 + np.arange(40), ["-t", "y", "--model", "maxent"], "the classes look separable"),
        (list("ab") * 20, ["--model", "joint"], "pairs of values never occur together"),
    ],
)
def test_multipliers_that_grow_without_end_have_not_converged(mixent, x, options, why):
    pd.DataFrame({"x": x, "y": list("pq") * 20}).to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "-o", "m.mixent", *options)
    result = mixent(*fit, "--prior", "none")
    told = f"passes: the gain per row fell below tol, but there is no optimum: {why}, and without a prior"
    assert told in said(result) and "Converged" not in result.stdout and "Warning: prior=None" in result.stderr
    assert told in said(mixent("info", "m.mixent"))
    run = json.loads(mixent("info", "m.mixent", "--json").stdout)["run"]
    assert run["status"] == "endless" and not run["ok"] and "give --prior auto" in run["message"]
    text = said(mixent(*fit, "--prior", "1"))
    assert "Converged after" in text and "no optimum" not in text
    pd.DataFrame({"x": list("aabb") * 10, "y": list("pq") * 20}).to_csv("d.csv", index=False)
    assert "Converged after" in said(mixent(*fit, "--prior", "none"))


def test_a_table_without_numbers_says_nothing_of_them(mixent):
    pd.DataFrame({"x": list("aab") * 10, "y": list("pqqp") * 7 + list("pq")}).to_csv("d.csv", index=False)
    text = said(mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "maxent", "--prior", "1"))
    assert "1 feature, 4 constraints" in text and "numbers as" not in text
    assert json.loads(mixent("info", "m.mixent", "--json").stdout)["latent"] is None


def test_too_few_labels_to_choose_a_prior(mixent, stock):
    pd.read_csv(stock / "data.csv").head(16).to_csv("d.csv", index=False)
    assert "the usual one: too few labelled rows to choose" in said(
        mixent("fit", "d.csv", *FIT[2:], "--latent", "pooled")
    )


def test_selection_is_told_and_its_path_is_in_the_info(mixent, entropy):
    model = mx.load(entropy / "selected.mixent")
    text = said(mixent("info", entropy / "selected.mixent"))
    kept = sum(step.kept for step in model.path_)
    assert f"Selection tried {len(model.path_)} additions and kept {kept}: BIC from" in text
    about = json.loads(mixent("info", entropy / "selected.mixent", "--json").stdout)
    assert [step["feature"] for step in about["path"]] == [step.name for step in model.path_]
    options = ("--select", "forward", "--selection", "validation", "--validation", "0.3", "--pairs", "none")
    text = said(mixent(*FIT, *options, "--latent", "quantize", "--prior", "1"))
    model = mx.load("m.mixent")
    assert "held-out log-loss from" in text
    assert (model.selection.criterion, model.selection.validation, model.pairs) == ("validation", 0.3, None)


def test_nothing_that_pays_is_said(mixent):
    pd.DataFrame({"x": list("aabb") * 10, "y": list("pq") * 20}).to_csv("d.csv", index=False)
    text = said(mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "maxent", "--select", "forward"))
    assert "Selection kept no feature: none lowers BIC" in text and "0 features" in text
    assert mixent("explain", "m.mixent", "d.csv", "--row", "0").exit_code == 0
    assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv", "--explain").exit_code == 0


def test_info(mixent, entropy):
    model = mx.load(entropy / "maxent.mixent")
    text = said(mixent("info", entropy / "maxent.mixent"))
    assert "MaxEntClassifier, written by mixent" in text and "blue, green, red" in text
    assert f"{model.n_parameters_} free parameters" in text and "Certificate: at most" in text
    about = json.loads(mixent("info", entropy / "maxent.mixent", "--json").stdout)
    assert about["certificate"] == {"gap": model.gap_, "residual": model.residual_}
    assert about["entropy"] == model.entropy_ and about["features"] == list(model.feature_terms_)
    assert about["prior"] == {"variance": 1.0, "how": "given", "tried": []}
    assert [c["class"] for c in about["classes"]] == ["no", "yes"] and about["strongest"][0]["strength"] > 0


def test_many_classes_and_features_are_cut(mixent):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{j}": rng.choice(list("ab"), size=200) for j in range(12)})
    frame.assign(y=[f"k{i % 40}" for i in range(200)]).to_csv("d.csv", index=False)
    text = said(mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "maxent", "--prior", "1"))
    assert "... and 10 more" in text and "... and 4 more" in text


def test_rows_without_a_label_are_told_as_what_they_are(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.loc[:9, "class"] = None
    frame.to_csv("d.csv", index=False)
    told = "10 of 60 rows have no label in 'class': they"
    result = mixent("fit", "d.csv", *FIT[2:], "--prior", "1", "--latent", "pooled")
    assert f"{told} take no part, since --model maxent cannot learn from them" in result.stderr
    result = mixent(
        "evaluate", "d.csv", *EVALUATE[2:], "--model", "maxent", "--model", "mixture", "-k", "1", "--latent", "pooled"
    )
    assert f"{told} are used as unlabelled rows, but not by --model maxent" in result.stderr


# evaluate


def test_evaluate_compares_and_options_go_where_they_belong(mixent):
    models = ("--model", "mixture", "--model", "maxent", "--model", "joint")
    result = mixent(*EVALUATE, *models, "-k", "1", "--latent", "quantize", "--prior", "2", "-o", "s.csv")
    text = said(result)
    assert "mixent maxent" in text and "mixent joint" in text
    assert "--prior 2: pseudo-rows of a mixture, the variance of the multipliers of mixent maxent and mixent" in text
    scores = pd.read_csv("s.csv")
    assert set(scores["method"]) == {"mixent mixture", "mixent maxent", "mixent joint"}
    assert scores["failed"].isna().all() and (scores["log_loss"] < 0.6).all()


@pytest.mark.parametrize("select", ["forward", "bic"])
def test_how_to_select_goes_to_the_model_that_knows_the_word(mixent, select):
    options = ("--model", "mixture", "--model", "maxent", "--max-components", "2", "--prior", "1", "--select", select)
    result = mixent(*EVALUATE, *options, "-o", "s.csv")
    assert "--max-components 2: of a model of rows, and of each column's mixture." in said(result)
    assert pd.read_csv("s.csv")["failed"].isna().all()


def test_an_option_that_two_models_read_differently_goes_where_it_does_something(mixent, fails):
    both = ("--model", "mixture", "--model", "maxent", "-k", "1", "--validation", "0.3", "--prior", "1")
    for more in (
        ["--objective", "conditional", "--latent", "pooled"],
        ["--select", "forward", "--selection", "validation", "--latent", "pooled"],
    ):
        assert mixent(*EVALUATE, *both, *more, "-o", "s.csv").exit_code == 0
        assert pd.read_csv("s.csv")["failed"].isna().all()
    line = fails(*EVALUATE, *both, status=2)
    assert "--validation has no effect on any of these models with the other options; leave it out" in line
    options = ("--max-components", "1", "--latent", "quantize", "--prior", "1")
    assert mixent(*EVALUATE, *both[:4], *options).exit_code == 0


def test_rows_without_a_label_count_in_a_joint_model(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame["class"] = frame["class"].map({"no": 0, "yes": 1}).astype("Int64")
    frame.loc[:9, "class"] = None
    frame.to_csv("d.csv", index=False)
    result = mixent("evaluate", "d.csv", *EVALUATE[2:], "--model", "joint", "--prior", "1", "-o", "s.csv")
    assert result.exit_code == 0, result.output
    scores = pd.read_csv("s.csv")
    assert scores["failed"].isna().all() and not scores["labelled_only"].any()


# predict


def test_predict_is_the_library_s(mixent, entropy, X):
    model = mx.load(entropy / "maxent.mixent")
    result = mixent(
        "predict", entropy / "maxent.mixent", "{stock}/data.csv", "-o", "o.csv", "--explain", "--reject", "0.1"
    )
    assert result.exit_code == 0, result.output
    out, why = pd.read_csv("o.csv"), model.explain(X)
    np.testing.assert_array_equal(out[["p(no)", "p(yes)"]], model.predict_proba(X))
    assert out.columns.tolist()[-4:] == ["rival", "log_odds", "feature", "feature_part"]
    assert out["feature"].tolist() == [why.names[i] for i in why.parts.argmax(axis=1)]
    np.testing.assert_allclose(out["feature_part"], why.parts.max(axis=1))
    assert (
        mixent("predict", entropy / "maxent.mixent", "{stock}/data.csv", "-o", "o.csv", "--adjust-priors").exit_code
        == 0
    )


@pytest.mark.parametrize("target", ["colour", "class", "size"])
def test_a_joint_model_predicts_the_column_asked_for(mixent, entropy, stock, target):
    frame = read_frame(stock / "data.csv")
    model = mx.load(entropy / "joint.mixent")
    expected = model.predict(frame[[*COLUMNS, "class"]], target=target)
    for name, table in (("with.csv", frame), ("without.csv", frame.drop(columns=target))):
        table.to_csv(name, index=False)
        result = mixent("predict", entropy / "joint.mixent", name, "-o", "o.csv", "--target", target)
        assert result.exit_code == 0, result.output
        out = pd.read_csv("o.csv")
        np.testing.assert_array_equal(out["predicted"], expected)
        proba = model.predict_proba(frame[[*COLUMNS, "class"]], target=target)
        np.testing.assert_array_equal(out.drop(columns="predicted"), proba)
    if target == "size":
        assert f"predicted: {expected.min():.4g} to {expected.max():.4g}, mean {expected.mean():.4g}" in result.stdout
    else:
        counts = pd.Series(expected).value_counts()
        assert f"60 rows; predicted: {counts.index[0]}: {counts.iloc[0]}" in result.stdout


def test_without_a_target_the_last_column_is_predicted(mixent, entropy):
    assert mixent("predict", entropy / "joint.mixent", "{stock}/data.csv", "-o", "o.csv").exit_code == 0
    assert pd.read_csv("o.csv").columns.tolist() == ["predicted", "p(no)", "p(yes)"]
    assert mixent("predict", entropy / "joint.mixent", "{stock}/data.csv", "-o", "o.csv", "--no-proba").exit_code == 0
    assert pd.read_csv("o.csv").columns.tolist() == ["predicted"]


def test_a_joint_model_says_how_well_it_knows_each_column(mixent, stock):
    text = said(mixent(*JOINT, "--prior", "1", "--max-components", "2", "--solver", "iis"))
    model = mx.load("j.mixent")
    assert type(model) is mx.MaxEntJoint and (model.solver, model.max_components) == ("iis", 2)
    assert "One model of 4 columns" in text and "Each column from all others" in text and "No --target" not in text
    score = model.accuracy_by_column(read_frame(stock / "data.csv")[[*COLUMNS, "class"]])["class"]
    assert f"class {score.n_rows} {100 * score.error:.1f}" in text
    text = said(mixent("info", "j.mixent"))
    assert "MaxEntJoint, written by" in text and "free parameters" in text
    assert json.loads(mixent("info", "j.mixent", "--json").stdout)["cells"] == len(model.params_.single)


# explain


def test_explain_adds_up_and_is_sorted(mixent, entropy, X):
    model = mx.load(entropy / "maxent.mixent")
    text = mixent("explain", entropy / "maxent.mixent", "{stock}/data.csv", "--row", "3", "-o", "why.json").stdout
    why = model.explain(X.iloc[[3]])
    p = model.predict_proba(X.iloc[[3]]).max()
    head = f"Row 3: {why.label[0]}, probability"
    assert head in text and f"rather than {why.rival[0]}" in text and "Wrote why.json" in text
    (case,) = json.loads(Path("why.json").read_text())
    assert (case["row"], case["class"], case["rival"], case["probability"]) == (3, why.label[0], why.rival[0], p)
    sizes = [part["part_log_odds"] for part in case["parts"]]
    assert sum(sizes) == pytest.approx(case["log_odds"]) and sizes == sorted(sizes, key=abs, reverse=True)
    parts = {part["part"]: part for part in case["parts"]}
    assert parts["average row"]["part_log_odds"] == why.baseline[0]
    assert [parts[name]["part_log_odds"] for name in why.names] == why.parts[0].tolist()
    assert parts["colour"]["value"] == X["colour"][3] and parts["size"]["value"] == f"{X['size'][3]:.6g}"


def test_explain_a_label_and_several_rows(mixent, entropy, X):
    args = ("explain", entropy / "maxent.mixent", "{stock}/data.csv", "--row", "0", "--row", "1", "--label", "no")
    result = mixent(*args, "-o", "why.csv")
    assert result.exit_code == 0 and result.stdout.count("no, probability") == 2
    out = pd.read_csv("why.csv", keep_default_na=False)
    assert out["row"].unique().tolist() == [0, 1] and set(out["class"]) == {"no"}
    total = out.groupby("row")["part_log_odds"].sum()
    np.testing.assert_allclose(total, out.groupby("row")["log_odds"].first())
    assert "missing" in out["value"].tolist()
    assert mixent(*args, "-q").output == ""


def test_explain_all_rows_shows_some_and_writes_all(mixent, entropy):
    result = mixent("explain", entropy / "maxent.mixent", "{stock}/data.csv", "-o", "why.parquet")
    assert "... and 30 rows more; write all with -o" in result.stdout and "Choose a row with --row" in result.stdout
    assert pd.read_parquet("why.parquet")["row"].nunique() == 60


def test_explain_many_rows_in_a_line_each(mixent, entropy, stock):
    first = pd.read_csv(stock / "data.csv").head(4)
    first.to_csv("four.csv", index=False)
    first.head(3).to_csv("three.csv", index=False)
    args = ("explain", entropy / "maxent.mixent")
    lines = mixent(*args, "four.csv", "-o", "why.csv").stdout.splitlines()
    assert lines[0].split()[:3] == ["row", "class", "probability"] and "more" not in "".join(lines)
    why = pd.read_csv("why.csv", keep_default_na=False)
    for n in range(4):
        mine = why[why["row"] == n]
        loud = ", ".join(f"{name} {size:+.2f}" for name, size in zip(mine["part"][:3], mine["part_log_odds"][:3]))
        assert lines[1 + n].split()[:2] == [str(n), mine["class"].iloc[0]] and lines[1 + n].rstrip().endswith(loud)
        assert mine["rival"].iloc[0] in lines[1 + n]
    assert mixent(*args, "three.csv").stdout.count("total") == 3
    for asked in (["--rows", "0-3"], ["--row", "0", "--row", "1-2", "--row", "2-3"]):
        assert mixent(*args, "four.csv", *asked).stdout.count("total") == 4


def test_explain_to_stdout_only_the_table(mixent, entropy):
    args = ("explain", entropy / "maxent.mixent", "{stock}/data.csv")
    assert mixent(*args, "-o", "why.csv", "-q").exit_code == 0
    result = mixent(*args, "-o", "-")
    assert result.stdout == Path("why.csv").read_text() and result.stderr == "60 rows explained\n"
    assert mixent(*args, "-o", "why.json", "--row", "0", "-q").exit_code == 0
    (case,) = json.loads(Path("why.json").read_text())
    names = [*(key for key in case if key != "parts"), *case["parts"][0]]
    assert result.stdout.splitlines()[0].split(",") == names


def test_explain_a_mixture_by_component(mixent, stock, X):
    model = mx.load(stock / "model.mixent")
    result = mixent("explain", "{stock}/model.mixent", "{stock}/data.csv", "--row", "2", "-o", "why.json")
    assert "speaks for" in result.stdout and "component 0" in result.stdout and "no (100 %)" in result.stdout
    (case,) = json.loads(Path("why.json").read_text())
    assert sum(part["part_log_odds"] for part in case["parts"]) == pytest.approx(model.explain(X.iloc[[2]]).log_odds[0])


def test_many_parts_are_pooled(capsys):
    from mixent.cli.console import Screen
    from mixent.cli.explain import Case, show_case

    show_case(Screen(False), Case(0, "a", 0.9, "b", 20.0, [(f"[c{i}]", "", 1.0) for i in range(20)]))
    out = capsys.readouterr().out
    assert "5 others" in out and "+5.000" in out and "[c0]" in out and "[c15]" not in out
    show_case(Screen(False), Case(0, "a", 0.9, "b", 16.0, [(f"[c{i}]", "", 1.0) for i in range(16)]))
    out = capsys.readouterr().out
    assert "other" not in out and "[c15]" in out  # one alone is named
    show_case(Screen(False), Case(0, "a", 0.9, "b", 17.0, [(f"[c{i}]", "", 1.0) for i in range(17)]))
    assert "2 others" in capsys.readouterr().out


# impute


@pytest.mark.parametrize("name", ["joint", "mixture"])
def test_impute_fills_the_gaps_and_nothing_else(mixent, entropy, stock, name):
    path = entropy / "joint.mixent" if name == "joint" else stock / "clusters.mixent"
    result = mixent("impute", path, "{stock}/data.csv", "-o", "full.csv")
    assert result.exit_code == 0, result.output
    old, new, model = read_frame(stock / "data.csv"), read_frame("full.csv"), mx.load(path)
    gaps = {c: int(old[c].isna().sum()) for c in COLUMNS}
    told = ", ".join(f"{c}: {n}" for c, n in gaps.items())
    assert f"60 rows; filled {sum(gaps.values())} cells in 3 columns ({told})" in " ".join(result.stdout.split())
    assert not new.isna().any().any() and new.columns.tolist() == old.columns.tolist()
    expected = model.impute(old[list(model.schema_.names)])
    for column in old.columns:
        known = old[column].notna()
        assert (new[column][known] == old[column][known]).all()
        if column in model.schema_.names:
            assert (new[column][~known].tolist()) == pytest.approx(expected[column][~known].tolist())


def test_impute_leaves_unknown_columns_and_full_tables_alone(mixent, entropy, stock):
    frame = pd.read_csv(stock / "data.csv").dropna().assign(note=None)
    frame.to_csv("d.csv", index=False)
    result = mixent("impute", entropy / "joint.mixent", "d.csv", "-o", "full.parquet")
    assert "filled 0 cells: no gaps" in result.stdout
    assert "Warning: columns the model does not have keep their gaps: 'note'" in result.stderr
    assert pd.read_parquet("full.parquet")["note"].isna().all()


def test_impute_keeps_values_the_model_has_never_seen(mixent, entropy, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.loc[1, "colour"] = "purple"
    frame.to_csv("d.csv", index=False)
    result = mixent("impute", entropy / "joint.mixent", "d.csv", "-o", "full.csv", "-q")
    assert result.exit_code == 0 and pd.read_csv("full.csv")["colour"][1] == "purple"


def test_a_model_of_arrays_is_imputed_by_position(mixent):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[:, 1] += 3 * X[:, 0]
    mx.save(mx.MaxEntJoint(prior=1.0).fit(X), "j.mixent")
    X[0, 1] = np.nan
    pd.DataFrame(X, columns=["x0", "x1"]).to_csv("d.csv", index=False)
    assert mixent("impute", "j.mixent", "d.csv", "-o", "full.csv").exit_code == 0
    assert pd.read_csv("full.csv")["x1"][0] == pytest.approx(mx.load("j.mixent").impute(X)[0, 1])


# what cannot be


IDLE = "has no effect with --model maxent; it serves --model mixture and shared"
LATENT = "has no effect with --latent union; it serves"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--components", "2"], f"--components {IDLE}"),
        (["--covariance", "VVV"], f"--covariance {IDLE}"),
        (["--objective", "conditional"], f"--objective {IDLE}"),
        (["--alpha", "0.5"], f"--alpha {IDLE}"),
        (["--growth", "incremental"], f"--growth {IDLE}"),
        (["--per-class"], f"--per-class {IDLE}"),
        (["--latent", "hidden"], "--latent must be one of union, class, pooled, quantize, moments; got 'hidden'"),
        (["--bins", "quantile"], f"--bins {LATENT} --latent quantize"),
        (["--n-bins", "4"], f"--n-bins {LATENT} --latent quantize"),
        (["--latent", "quantize", "--bins", "wide"], "--bins must be one of quantile, uniform, entropy; got 'wide'"),
        (["--latent", "quantize", "--groups", "auto"], "--groups has no effect with --latent quantize"),
        (["--latent", "moments", "--max-components", "2"], "--max-components has no effect with --latent moments"),
        (["--groups", "size"], '--groups must be auto or lists of at least two names, such as "A,B;C,D"; got'),
        (["--groups", "size,"], "--groups must be auto or lists of at least two names"),
        (["--pairs", "size,count,colour"], "--pairs must be auto, none or lists of two names, such as"),
        (["--pairs", "none"], "--pairs none has no effect without --select forward; to constrain pairs, name them"),
        (["--pairs", "auto"], "--pairs auto has no effect without --select forward"),
        (["--select", "bic"], "--select must be one of forward; got 'bic'"),
        (["--selection", "bic"], "--selection has no effect without --select forward"),
        (["--select", "forward", "--selection", "cv"], "--selection must be one of bic, validation; got 'cv'"),
        (["--validation", "0.2"], "--validation has no effect with --model maxent without --select forward"),
        (["--select", "forward", "--validation", "0.2"], "without --select forward --selection validation"),
        (["--solver", "newton-raphson"], "--solver must be one of auto, bohning, iis, lbfgs"),
        (["--latent", "moments", "--solver", "iis"], "--solver iis cannot take --latent moments"),
        (["--prior", "0"], "--prior must be auto, or none or a number > 0; got '0'"),
        (["--probabilistic", "shape"], "--probabilistic must be a name and at least two columns, such as"),
        (["--probabilistic", "a=b,c", "--probabilistic", "a=d,e"], "--probabilistic names the feature 'a' twice"),
    ],
)
def test_options_without_effect_or_sense(fails, options, message):
    assert message in fails(*FIT, *options, status=2)


def test_help_of_pairs_names_what_the_error_names(mixent):
    page = " ".join(mixent("fit", "--help").stdout.replace("│", " ").split())
    assert "auto|none|A,B;C,D" in page and "those it may add: these, none, or auto" in page


def test_options_of_maximum_entropy_with_other_models(fails):
    fit = ("fit", "{stock}/data.csv", "-t", "class", "-o", "m.mixent")
    for option in (["--latent", "union"], ["--pairs", "a,b"], ["--groups", "auto"], ["--selection", "bic"]):
        line = fails(*fit, *option, status=2)
        assert f"{option[0]} has no effect with --model mixture; it serves --model maxent" in line
    assert "--solver has no effect with --model shared" in fails(*fit, "--model", "shared", "--solver", "iis", status=2)
    assert "--select must be one of cv, " in fails(*fit, "--select", "forward", status=2)


def test_what_a_joint_model_does_not_take(fails):
    assert "--target has no effect with --model joint" in fails(*JOINT, "-t", "class", status=2)
    assert "--latent has no effect with --model joint" in fails(*JOINT, "--latent", "pooled", status=2)
    assert "--select has no effect with --model joint" in fails(*JOINT, "--select", "forward", status=2)
    assert "--solver must be one of lbfgs, iis; got 'bohning'" in fails(*JOINT, "--solver", "bohning", status=2)


def test_classes_are_needed(fails):
    line = fails("fit", "{stock}/data.csv", "-o", "m.mixent", "--model", "maxent", status=2)
    assert "--model maxent needs --target" in line and "--model joint" in line


def test_columns_and_features_that_are_not_there(fails):
    assert "groups names a column 'sise' that X does not have" in fails(*FIT, "--groups", "sise,count")
    assert "groups names the column 'colour', which is categorical" in fails(*FIT, "--groups", "size,colour")
    assert "pairs names a feature 'sise'; features are" in fails(*FIT, "--pairs", "sise,count")
    assert "column 'p' that X does not have" in fails(*FIT, "--probabilistic", "shape=p,q")


def test_what_a_model_cannot_be_asked(fails, entropy, stock):
    data, maxent, joint = "{stock}/data.csv", entropy / "maxent.mixent", entropy / "joint.mixent"
    predict = ("predict", maxent, data, "-o", "o.csv")
    assert "holds a MaxEntClassifier, which has no density" in fails(*predict, "--density", status=2)
    assert "--target has no effect: " in fails(*predict, "--target", "size", status=2)
    predict = ("predict", joint, data, "-o", "o.csv")
    assert "--density needs a mixture" in fails(*predict, "--density", status=2)
    for option in (["--explain"], ["--reject", "1"], ["--adjust-priors"]):
        assert f"{option[0]} needs a classifier; {joint} holds a joint model" in fails(*predict, *option, status=2)
    assert "has no column 'colr'; did you mean 'colour'?" in fails(*predict, "--target", "colr")
    assert "MaxEntClassifier, which has no model of the columns" in fails("impute", maxent, data, "-o", "o.csv")
    for path in (joint, stock / "clusters.mixent"):
        assert "which has no classes to explain; fit a classifier" in fails("explain", path, data)
    for path in (maxent, joint):
        assert "cannot learn from new rows alone; fit it anew" in fails("update", path, data, "-t", "class")


def test_rows_labels_and_files_that_are_not_there(fails, entropy):
    explain = ("explain", entropy / "maxent.mixent", "{stock}/data.csv")
    assert "data.csv has 60 rows, numbered from 0; there is no row 60" in fails(*explain, "--row", "60")
    assert "--label must be one of the classes 'no', 'yes'; got 'maybe'" in fails(*explain, "--label", "maybe")
    assert "unknown kind of file '.txt'" in fails(*explain, "-o", "why.txt")
    for row in ("-1", "x", "3-1", "1-x", ""):
        fails(*explain, "--row", row, status=2)
    impute = ("impute", entropy / "joint.mixent", "{stock}/data.csv")
    assert "unknown kind of file '.txt'" in fails(*impute, "-o", "full.txt")
    fails(*impute, status=2)
    Path("short.csv").write_text("size\n1\n")
    assert "short.csv has no columns 'count', 'colour'" in fails(*impute[:2], "short.csv", "-o", "full.csv")
    assert "not a mixent file" in fails("impute", "short.csv", "short.csv", "-o", "full.csv")
    assert "not a mixent file" in fails("explain", "short.csv", "short.csv")


def test_help_has_examples(mixent):
    for command in ("explain", "impute"):
        page = mixent(command, "--help")
        assert page.exit_code == 0 and f"mixent {command}" in page.stdout.split("Examples:")[1]
