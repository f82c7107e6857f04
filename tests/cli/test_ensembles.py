"""Stacks and boosting on the command line: fit, info, predict, explain, evaluate; what cannot be."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixent as mx
from mixent.cli import app
from mixent.cli.baselines import baselines
from mixent.cli.data import schema_of
from mixent.cli.models import Choices, make_models
from mixent.data import read_frame
from mixent.ensemble import OutputColumns

LEAVE = ("--ignore", "id,w")
FIT = ("fit", "{stock}/data.csv", "-t", "class", *LEAVE, "-o", "m.mixent", "--model")
STACK = (*FIT, "stack", "--prior", "1")
COLUMNS = ["size", "count", "colour"]
QUICK = ("-k", "1", "--covariance", "VVI")  # for the mixture among the bases


def naive(**options):
    return mx.MixtureClassifier(1, "VVI", random_state=0, **options)


def said(result):
    """What came to the screen, on one line."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def answers(frame, seed=0):
    """The stock table with the answers of two black boxes."""
    rng = np.random.default_rng(seed)
    sure = 1 / (1 + np.exp(-rng.normal(size=len(frame)) - (frame["class"] == "yes")))
    panel = frame["class"].where(rng.random(len(frame)) < 0.8, "unsure")
    panel[::8] = None
    return frame.assign(p_no=1 - sure, p_yes=sure, panel=panel)


@pytest.fixture(scope="session")
def ensembles(stock, tmp_path_factory):
    """A folder with answers.csv, stack.mixent (of a mixture and scikit-learn's naive Bayes), boost.mixent."""
    folder = tmp_path_factory.mktemp("ensembles")
    answers(read_frame(stock / "data.csv")).to_csv(folder / "answers.csv", index=False)
    data = ["fit", str(stock / "data.csv"), *LEAVE, "-t", "class", "-q"]
    for name, args in (
        ("stack", ["--model", "stack", "--bases", "mixture,naive-bayes", *QUICK, "--prior", "1"]),
        ("boost", ["--model", "boost", "--stages", "4"]),
    ):
        result = CliRunner().invoke(app, [*data, *args, "-o", str(folder / f"{name}.mixent")])
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def table(stock):
    frame = read_frame(stock / "data.csv")
    return frame[COLUMNS], frame["class"]


def same(model, X):
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(X), model.predict_proba(X))


# stacks


def test_fit_says_who_was_combined_and_how_good_they_are(mixent, table):
    text = said(mixent(*STACK, "--bases", "mixture,naive-bayes", *QUICK))
    bases = [("mixture", naive()), ("naive-bayes", baselines()["naive Bayes"])]
    model = mx.MaxEntStackingClassifier(bases, prior=1.0, random_state=0).fit(*table)
    same(model, table[0])
    assert "Fitted MaxEntStackingClassifier" in text and "class rows prior no 30 0.500 yes 30 0.500" in text
    assert "2 classifiers combined by maximum entropy: 8 constraints" in text
    for name, error, kind in zip(model.base_names_, model.base_errors_, ("MixtureClassifier", "GaussianNB")):
        assert f"{name} {100 * error:.1f} {model.constraint_table().strength[name]:.3f} {kind}" in text
    assert "Errors are out of fold" in text and "Prior variance of the multipliers 1, as given" in text
    assert f"Certificate: at most {model.gap_:.1g} nats per row below the optimum" in text
    assert f"Entropy of the class given what is said {model.entropy_:.3f} nats, 0.693 without it" in text
    assert "Converged after" in text and "On the training rows" in text and "Wrote m.mixent" in text
    assert mx.load("m.mixent").progress is False


def test_usual_bases_are_all_of_mixent():
    made = make_models(["stack"], Choices(), target="y", categorical=[], seed=3, jobs=1)["stack"]
    assert [name for name, _ in made.estimators] == ["mixture", "maxent", "med"]
    assert {type(base).__module__.partition(".")[0] for _, base in made.estimators} == {"mixent"}
    assert {base.random_state for _, base in made.estimators} == {made.random_state} == {3} and made.n_jobs == 1


def test_options_go_to_the_combination_first_and_to_the_bases_else():
    chosen = Choices(
        bases="mixture,maxent,med", latent="class", prior="2", max_components=3, components="2", kernel="rbf"
    )
    made = make_models(["stack"], chosen, target="y", categorical=[], seed=0, jobs=None)["stack"]
    mixture, entropy, margin = (base for _, base in made.estimators)
    assert (made.regions.kind, made.prior, made.regions.max_components) == ("class", 2.0, 3)
    assert (entropy.features.kind, entropy.prior, entropy.features.max_components) == ("union", "auto", 6)
    assert mixture.n_components == 2 and margin.kernel == "rbf"
    chosen = Choices(bases="mixture", max_components=3)  # without cells of its own, of the mixture
    made = make_models(["stack"], chosen, target="y", categorical=[], seed=0, jobs=None)["stack"]
    assert made.estimators[0][1].max_components == 3


def test_where_the_row_lies(mixent, table):
    options = ("--latent", "pooled", "--constraints", "diagonal", "--decisions", "hard", "--max-components", "2")
    text = said(mixent(*STACK, "--bases", "mixture", *QUICK, *options))
    model = mx.MaxEntStackingClassifier(
        [("mixture", naive())],
        regions=mx.ensemble.InputRegions("pooled", max_components=2),
        constraints="diagonal",
        decisions="hard",
        prior=1.0,
        random_state=0,
    ).fit(*table)
    same(model, table[0])
    K = len(model.regions_[0].names)
    assert f"1 classifier combined by maximum entropy, by their labels alone: {4 + 4 * K} constraints, of each" in text
    assert f"where the row lies: {K} cell{'s' * (K > 1)} of the input space, hidden components of one mixture" in text


def test_answers_in_columns(mixent, ensembles):
    data = ensembles / "answers.csv"
    fit = ("fit", data, "-t", "class", *LEAVE, "-o", "m.mixent", "--model", "stack", "--prior", "1")
    boxes = ("--outputs", "vendor = p_no, p_yes", "--outputs", "panel=panel")
    frame = read_frame(data)
    X, y = frame[[*COLUMNS, "p_no", "p_yes", "panel"]], frame["class"]
    text = said(mixent(*fit, *boxes))
    named = [("vendor", ["p_no", "p_yes"]), ("panel", "panel")]
    same(mx.MaxEntStackingClassifier(named, prior=1.0, random_state=0).fit(X, y), X)
    assert "columns p_no, p_yes" in text and "column panel" in text and "hold only" not in text
    text = said(mixent(*fit, *boxes, "--bases", "mixture", *QUICK))
    inputs = {"mixture": COLUMNS}  # a base does not see what the others say
    model = mx.MaxEntStackingClassifier([("mixture", naive()), *named], inputs=inputs, prior=1.0, random_state=0).fit(
        X, y
    )
    same(model, X)
    kinds = [column.kind for column in schema_of(mx.load("m.mixent")).columns]
    assert kinds == ["continuous", "integer", "categorical", "continuous", "continuous", "categorical"]
    assert mixent("predict", "m.mixent", data, "-o", "out.csv").exit_code == 0
    text = said(mixent("explain", "m.mixent", data, "--row", "0"))
    assert "panel" in text and "abstains" in text


def test_info_predict_and_explain(mixent, ensembles, table):
    path, data = ensembles / "stack.mixent", "{stock}/data.csv"
    model = mx.load(path)
    about = json.loads(mixent("info", path, "--json").stdout)
    assert about["class"] == "MaxEntStackingClassifier" and about["combination"] == "maxent" and about["run"]["ok"]
    assert [entry["name"] for entry in about["classifiers"]] == ["mixture", "naive-bayes"]
    np.testing.assert_allclose([entry["error"] for entry in about["classifiers"]], model.base_errors_)
    assert [column["kind"] for column in about["columns"]] == ["continuous", "integer", "categorical"]
    text = said(mixent("info", path))
    assert "2 classifiers combined by maximum entropy" in text and "free parameters" in text
    assert mixent("predict", path, data, "-o", "out.csv", "--explain").exit_code == 0
    out = pd.read_csv("out.csv")
    np.testing.assert_allclose(out[["p(no)", "p(yes)"]], model.predict_proba(table[0]), rtol=1e-12)
    assert set(out["feature"]) <= {"mixture", "naive-bayes"}
    assert mixent("explain", path, data, "-o", "why.json").exit_code == 0
    why = json.loads(Path("why.json").read_text())
    for row in why[:5]:
        np.testing.assert_allclose(sum(part["part_log_odds"] for part in row["parts"]), row["log_odds"], rtol=1e-9)
        assert {part["part"] for part in row["parts"]} == {"average row", "mixture", "naive-bayes"}
    text = said(mixent("explain", path, data, "--row", "1"))
    p = model.base_outputs(table[0])["mixture"][1]
    assert f"{model.classes_[p.argmax()]} ({100 * p.max():.0f} %)" in text


def test_codes_reach_the_bases(mixent, stock):
    frame = read_frame(stock / "data.csv")
    frame["code"] = np.arange(len(frame)) % 4
    frame.drop(columns=["id", "w"]).to_csv("codes.csv", index=False)
    fit = ("fit", "codes.csv", "-t", "class", "-o", "m.mixent", "--categorical", "code,colour")
    for more in (("stack", "--bases", "mixture,naive-bayes", *QUICK, "--prior", "1"), ("boost", "--stages", "2")):
        said(mixent(*fit, "--model", *more))
        model = mx.load("m.mixent")
        base = model.fitted_[0] if more[0] == "stack" else model.estimators_[0]
        assert base.categorical == ["code", "colour"] and base.schema_.columns[-1].categories == ("0", "1", "2", "3")
        assert mixent("predict", "m.mixent", "codes.csv", "-o", "out.csv").exit_code == 0


def test_rows_without_a_label_take_no_part(mixent, stock):
    frame = read_frame(stock / "data.csv")
    frame.loc[:3, "class"] = None
    frame.to_csv("part.csv", index=False)
    result = mixent("fit", "part.csv", "-t", "class", *LEAVE, "-o", "m.mixent", "--model", "boost", "--stages", "2")
    told = "4 of 60 rows have no label in 'class': they take no part, since --model boost cannot learn from them"
    assert result.exit_code == 0 and told in " ".join(result.stderr.split())


# boosting


@pytest.mark.parametrize(
    ("kind", "made", "base"),
    [("boost", mx.AdaBoostM1Classifier, "AdaBoost.M1"), ("weightboost", mx.WeightBoostClassifier, "WeightBoost")],
)
def test_boosting_says_its_stages(mixent, table, kind, made, base):
    text = said(mixent(*FIT, kind, "--stages", "4"))
    model = made(naive(), 4, random_state=0).fit(*table)
    same(model, table[0])
    assert f"{base} of MixtureClassifier" in text
    for m, (error, alpha, bound) in enumerate(zip(model.errors_, model.alphas_, model.bound_)):
        assert f"{m + 1} {100 * error:.1f} {alpha:.3f} {100 * bound:.1f}" in text
    told = f"{len(model.alphas_)} stages of at most 4; the training error is at most {100 * model.bound_[-1]:.3g} %"
    assert told in text and ("ended early" in text) == (model.stopped_ is not None)


def test_boosting_of_another_base_and_combined_otherwise(mixent, table):
    said(mixent(*FIT, "boost", "--base", "mixture", "-k", "1", "--covariance", "EEE", "--stages", "2"))
    base = mx.MixtureClassifier(1, "EEE", random_state=0)
    boosting = mx.AdaBoostM1Classifier(base, 2, random_state=0)
    same(boosting.fit(*table), table[0])
    boosting = mx.AdaBoostM1Classifier(naive(), 2, random_state=0)
    text = said(mixent(*FIT, "boost", "--stages", "2", "--combine", "maxent", "--prior", "1"))
    same(mx.MaxEntStackingClassifier.from_boosting(boosting, prior=1.0, random_state=0).fit(*table), table[0])
    assert "stage 1" in text and "stage 2" in text and "MixtureClassifier" in text
    text = said(mixent(*FIT, "boost", "--stages", "2", "--combine", "hmm", "--transitions", "per_step"))
    model = mx.HMMStackingClassifier(boosting, transitions="per_step", random_state=0).fit(*table)
    same(model, table[0])
    assert "2 classifiers combined by a hidden Markov model per class of the sequence of their decisions; each" in text
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert about["combination"] == "hmm" and about["temperature"] == model.temperature_


def test_stages_of_each_class(mixent, stock):
    frame = read_frame(stock / "data.csv")
    frame["class"] = np.array(["a", "b", "c"])[np.arange(60) % 3]
    frame["size"] += 2 * (np.arange(60) % 3)
    frame.to_csv("three.csv", index=False)
    result = mixent(
        "fit", "three.csv", "-t", "class", *LEAVE, "-o", "m.mixent", "--model", "weightboost", "--stages", "15"
    )
    text = said(result)
    model = mx.load("m.mixent")
    for label, stages in zip("abc", model.alphas_):
        assert f"{label}: stage" in text and f"{label} against the others: {len(stages)} stage" in text
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert [run["class"] for run in about["boosting"]] == ["a", "b", "c"] and about["weighted"]


# beside others


def test_evaluate_with_a_report(mixent, ensembles):
    result = mixent(
        "evaluate", ensembles / "answers.csv", "-t", "class", *LEAVE, "--folds", "2", "--no-baselines",
        "--report", "r.html",
        "--model", "stack", "--outputs", "vendor=p_no,p_yes", "--bases", "naive-bayes", "--prior", "1",
        "--model", "boost", "--stages", "2", "--model", "mixture", *QUICK,
    )  # fmt: skip
    text = said(result)
    assert "mixent stack" in text and "mixent boost" in text and "failed" not in text
    assert "--prior 1: pseudo-rows of a mixture, the variance of the multipliers of mixent stack." in text
    page = Path("r.html").read_text()
    for kind in ("stack", "boost", "mixture"):
        assert f"mixent {kind}" in page


def test_an_option_is_for_the_models_that_take_it():
    chosen = Choices(prior="2", latent="class", constraints="diagonal", combine=None, outputs=("v=p",))
    made = make_models(["maxent", "stack", "boost"], chosen, target="y", categorical=[], seed=0, jobs=None)
    assert (
        made["maxent"].features.kind == made["stack"].regions.kind == "class"
        and made["maxent"].prior == made["stack"].prior == 2
    )
    assert made["stack"].constraints == "diagonal" and isinstance(made["boost"], mx.AdaBoostM1Classifier)
    chosen = Choices(combine="votes", bases="mixture", components="1")
    made = make_models(["stack", "boost"], chosen, target="y", categorical=[], seed=0, jobs=None)
    assert isinstance(made["stack"], mx.MaxEntStackingClassifier) and isinstance(made["boost"], mx.AdaBoostM1Classifier)


def test_two_meanings_of_latent(mixent, monkeypatch):
    from mixent.cli.evaluate import _two_meanings

    notes = _two_meanings(["maxent", "stack"], Choices(latent="union"))
    assert notes == ["--latent union: what numbers become in mixent maxent, and where a row lies for mixent stack."]


# what cannot be


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("stack", "--bases", "tree"), "--bases must be one of mixture, .*, naive-bayes; got 'tree'"),
        (("stack", "--bases", "joint"), "--bases must be one of"),
        (("stack", "--bases", "stack"), "--bases must be one of"),
        (("stack", "--bases", "mixture,mixture"), "--bases names 'mixture' twice; name it once"),
        (("stack", "--bases", ","), "--model stack needs classifiers to combine: name some with --bases, or --outputs"),
        (("stack", "--outputs", "vendor"), "--outputs must be a name and the column of its labels, .*; got 'vendor'"),
        (("stack", "--outputs", "=a,b"), "--outputs must be a name"),
        (("stack", "--outputs", "a=b,"), "--outputs must be a name"),
        (("stack", "--outputs", "a=b", "--outputs", "a=c"), "--outputs names 'a' twice; give each its own name"),
        (("stack", "--bases", "med", "--outputs", "med=a"), "--outputs names 'med', as a base is called"),
        (("stack", "--latent", "moments"), "--latent must be one of union, class, pooled; got 'moments'"),
        (("stack", "--constraints", "half"), "--constraints must be one of full, diagonal; got 'half'"),
        (("stack", "--decisions", "firm"), "--decisions must be one of auto, soft, hard; got 'firm'"),
        (("stack", "--combine", "votes"), "--combine must be one of maxent, hmm; got 'votes'"),
        (("boost", "--combine", "mean"), "--combine must be one of votes, maxent, hmm; got 'mean'"),
        (("stack", "--combine", "hmm", "--transitions", "two"), "--transitions must be one of .*; got 'two'"),
        (("stack", "--combine", "hmm", "--constraints", "full"), "--constraints has no effect with --combine hmm; it"),
        (("boost", "--constraints", "full"), "--constraints has no effect with --combine votes; it serves --combine"),
        (("boost", "--decisions", "hard"), "--decisions has no effect with --combine votes"),
        (("boost", "-k", "2"), "--components has no effect with --model boost|-k has no effect"),
        (("boost", "--prior", "2"), "--prior has no effect with --model boost and its usual base, Gaussian naive"),
        (("boost", "--base", "tree"), "--base must be one of"),
        (("boost", "--base", "naive-bayes", "--prior", "2"), "--prior has no effect with --base naive-bayes"),
        (("boost", "--base", "mixture", "--kernel", "rbf"), "--kernel has no effect with"),
        (("boost", "--bases", "mixture"), "--bases has no effect with --model boost; it serves --model stack"),
        (("stack", "--outputs", "v=size", "--transitions", "shared"), "--transitions has no effect without --bases"),
        (("stack", "--base", "mixture"), "--base has no effect with --model stack; it serves --model boost and weight"),
        (("stack", "--stages", "3"), "--stages has no effect with --model stack"),
        (("stack", "--states", "3"), "--states has no effect with --model stack; it serves --model hmm"),
        (("mixture", "--bases", "med"), "--bases has no effect with --model mixture; it serves --model stack"),
        (("mixture", "--combine", "hmm"), "--combine has no effect with --model mixture; it serves --model stack"),
    ],
)  # fmt: skip
def test_misunderstandings_are_refused(fails, options, message):
    import re

    assert re.search(message, fails(*FIT, *options, status=2))


def test_more_that_cannot_be(fails, mixent, ensembles, monkeypatch):
    fit = ("fit", "{stock}/data.csv", *LEAVE, "-o", "m.mixent", "--model")
    assert "--model stack needs --target: clusters have no classes" in fails(*fit, "stack", status=2)
    assert "--model boost needs --target" in fails(*fit, "boost", status=2)
    assert "--outputs names a column 'z' that the table does not have" in fails(*FIT, "stack", "--outputs", "v=z")
    every = ("--outputs", "a=size,count", "--outputs", "b=colour", "--bases", "mixture")
    assert "all columns are answers (--outputs), and --bases have none" in fails(*FIT, "stack", *every)
    for path in ("boost", "stack"):
        result = mixent("update", ensembles / f"{path}.mixent", "{stock}/data.csv", "-t", "class")
        assert "which cannot learn from new rows alone" in result.stderr
    told = "which explains nothing; fit a mixture, --model maxent or stack"
    assert told in fails("explain", ensembles / "boost.mixent", "{stock}/data.csv")


def test_without_skops_it_is_said_before_the_fit(fails, monkeypatch):
    from importlib import util

    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "skops" else found(name, *rest))
    told = fails(*FIT, "stack", "--bases", "mixture,logistic", status=2)
    assert "a base logistic is scikit-learn's, and the package skops is needed to save it; install it with: pip" in told


def test_columns_of_a_stack_are_found_wherever_they_are(table):
    X, y = table
    inner = mx.MaxEntStackingClassifier([naive()], cv=2, prior=1.0)
    model = mx.MaxEntStackingClassifier([("inner", inner)], cv=2, prior=1.0, random_state=0).fit(X, y)
    assert [c.kind for c in schema_of(model).columns] == ["continuous", "integer", "categorical"]
    rng = np.random.default_rng(0)
    numbers = np.column_stack([rng.normal(size=60), np.arange(60) % 2])
    model = mx.MaxEntStackingClassifier([OutputColumns(1)], cv=2, prior=1.0).fit(numbers, numbers[:, 1])
    schema = schema_of(model)
    assert schema.names == ("x0", "x1") and not schema.named and schema.columns[1].categories == (0.0, 1.0)
