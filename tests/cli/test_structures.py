"""Trees, Bayes nets and hidden Markov models on the command line: fit, info, predict, evaluate; what cannot be."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixent as mx
from mixent.cli import app
from mixent.data import read_frame
from mixent.med import Margin, Tables, Trees

LEAVE = ("--ignore", "id,w")
FIT = ("fit", "{stock}/data.csv", "-t", "class", *LEAVE, "-o", "m.mixent", "--model")
EVALUATE = ("evaluate", "{stock}/data.csv", "-t", "class", *LEAVE, "--folds", "2", "--no-baselines")
COLUMNS = ["size", "count", "colour"]
KINDS = ("med-tree", "med-bayes-net")


def said(result):
    """What came to the screen, on one line."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def make_series(n=40, seed=0):
    """Sequences that rise or fall, one in each row; a row ends early."""
    rng = np.random.default_rng(seed)
    rising = np.sort(rng.normal(size=(n, 6)), axis=1)
    rising[n // 2 :] = rising[n // 2 :, ::-1]
    frame = pd.DataFrame(rising, columns=[f"t{i}" for i in range(6)])
    frame.loc[1, "t5"] = np.nan
    return frame.assign(way=np.repeat(["up", "down"], n // 2))


@pytest.fixture(scope="session")
def structures(stock, tmp_path_factory):
    """A folder with tree.mixent, net.mixent, hmm.mixent and series.csv."""
    folder = tmp_path_factory.mktemp("structures")
    make_series().to_csv(folder / "series.csv", index=False)
    data = ["fit", str(stock / "data.csv"), *LEAVE, "-t", "class", "-q"]
    series = ["fit", str(folder / "series.csv"), "-t", "way", "-q"]
    for name, args in (
        ("tree", [*data, "--model", "med-tree", "--c", "0.5"]),
        ("net", [*data, "--model", "med-bayes-net", "--c", "0.5", "--structure", "colour,size"]),
        ("hmm", [*series, "--model", "hmm", "--states", "3", "--topology", "left-right"]),
    ):
        result = CliRunner().invoke(app, [*args, "-o", str(folder / f"{name}.mixent")])
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def table(stock):
    frame = read_frame(stock / "data.csv")
    return frame[COLUMNS], frame["class"]


# trees


def test_fit_says_trees_support_and_choice_of_c(mixent):
    text = said(mixent(*FIT, "med-tree"))
    model = mx.load("m.mixent")
    assert type(model) is mx.MEDTreeClassifier and model.progress is False
    assert "Fitted MEDTreeClassifier" in text
    assert "Distributions over all trees of 3 columns, of each class, with known tables; numbers are Gaussian" in text
    names = list(model.column_names_)
    for i, tree in enumerate(model.trees_):
        for a, b in tree:
            p = model.edge_marginals_[i][names.index(a), names.index(b)]
            assert f"{a} - {b} {100 * p:.0f} %" in text
    best = min(entry["log_loss"] for entry in model.C_tried_)
    assert f"C {model.C_:g}, chosen among {len(model.C_tried_)} by cross-validation: log-loss {best:.3f} nats" in text
    assert f"{len(model.support_)} of 60 rows support the boundary; leave-one-out estimate of the error" in text
    told = f"about {model.margin_.at:.3g}, the 0.1 quantile of the margins before discrimination"
    assert f"Margin prior laplace, {told}" in text and f"Certificate: at most {model.gap_:.1g} nats" in text
    assert f"a softmax of {model.calibration_.slope:.3g} times the scores (temperature" in text
    assert "Converged after" in text and "On the training rows" in text and "Wrote m.mixent" in text


def test_the_probability_of_a_tree_is_that_of_its_edges(mixent, structures):
    about = json.loads(mixent("info", structures / "tree.mixent", "--json").stdout)
    model = mx.load(structures / "tree.mixent")
    assert about["class"] == "MEDTreeClassifier" and about["run"]["ok"] and about["objective"] == "margin"
    for i, tree in enumerate(about["trees"]):  # three columns: a tree leaves out one of three edges
        out = model.edge_marginals_[i][np.triu_indices(3, 1)]
        assert tree["class"] == model.classes_[i] and "component" not in tree
        np.testing.assert_allclose(tree["probability"], 1 - out.min(), rtol=1e-9)
        falling = [edge["probability"] for edge in tree["edges"]]
        assert falling == sorted(falling, reverse=True) and len(falling) == 2
    assert about["c"] == {"value": 0.5, "how": "given", "tried": []}
    assert about["support"]["rows"] == len(model.support_) == sum(c["support"] for c in about["classes"])


@pytest.mark.parametrize(
    ("options", "library"),
    [
        (
            ("--tables", "integrated", "--c", "0.4", "--margin", "gaussian", "--alpha", "0.3", "--bias", "2"),
            {"tables": "integrated", "C": 0.4, "margin": Margin("gaussian", quantile=0.3), "bias": 2.0},
        ),
        (
            ("--structure", "shared", "--numbers", "quantized", "--prior", "3", "--calibration", "affine", "--c", "1"),
            {"trees": "shared", "tables": Tables("fixed", 3.0, "quantized"), "calibration": "affine", "C": 1.0},
        ),
        (("--objective", "likelihood", "--calibration", "none"), {"objective": "likelihood", "calibration": None}),
        (("-k", "2", "--c", "0.4"), {"trees": Trees(n_trees=2), "C": 0.4}),
    ],
)
def test_trees_equal_the_library(mixent, table, options, library):
    assert mixent(*FIT, "med-tree", *options, "--seed", "3").exit_code == 0
    model = mx.MEDTreeClassifier(**library, random_state=3).fit(*table)
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(table[0]), model.predict_proba(table[0]))


def test_trees_in_other_words(mixent):
    text = said(mixent(*FIT, "med-tree", "--objective", "likelihood"))
    assert "The tree of highest likelihood over 3 columns, of each class; numbers are Gaussian" in text
    assert "class tree of highest likelihood no " in text and "support" not in text and " c " not in text
    assert "Probabilities: a softmax of" in text and "Margin prior" not in text
    text = said(mixent(*FIT, "med-tree", "--structure", "shared", "--c", "0.5"))
    assert "one for all classes, with known tables" in text and "tree, each edge's probability all 0." in text
    text = said(mixent(*FIT, "med-tree", "--tables", "integrated", "--c", "0.5"))
    assert "with Dirichlet tables, learned with the structure; numbers are probabilities of a mixture's" in text
    text = said(mixent(*FIT, "med-tree", "--components", "2", "--c", "0.5"))
    assert "2 of each class" in text and "class tree share probability" in text
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert [(t["class"], t["component"]) for t in about["trees"]] == [("no", 0), ("no", 1), ("yes", 0), ("yes", 1)]
    np.testing.assert_allclose([about["trees"][i]["share"] + about["trees"][i + 1]["share"] for i in (0, 2)], 1.0)


def test_one_column_has_no_edges(mixent):
    text = said(mixent(*FIT, "med-tree", "--c", "0.5", "--ignore", "size,count"))
    assert "Distributions over all trees of 1 column," in text and "no edges: one column" in text


def test_rows_without_a_label_take_part(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.loc[::6, "class"] = None
    frame.to_csv("d.csv", index=False)
    for kind in KINDS:
        result = mixent("fit", "d.csv", *FIT[2:], kind, "--c", "0.5")
        assert "10 of 60 rows have no label in 'class': they are used as unlabelled rows" in result.stderr
        assert "10 rows without a certain label took part" in said(result)
        assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv").exit_code == 0
        assert pd.read_csv("o.csv")["predicted"].notna().all()


def test_a_mixture_of_trees_needs_every_label(mixent, fails, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.loc[::6, "class"] = None
    frame.to_csv("d.csv", index=False)
    line = fails("fit", "d.csv", *FIT[2:], "med-tree", "--c", "0.5", "-k", "2")
    assert "a mixture of trees needs the label of every row" in line


# Bayes nets


def test_fit_says_the_edges_of_a_net(mixent):
    text = said(mixent(*FIT, "med-bayes-net", "--c", "0.5", "--structure", "colour,size; colour , count"))
    model = mx.load("m.mixent")
    assert type(model) is mx.MEDBayesNetClassifier
    assert model.structure == [("colour", "size"), ("colour", "count")]
    assert "Bayes nets over 3 columns, 2 edges in each class; " in text
    assert "all colour -> size, colour -> count" in text and "Certificate: " in text
    text = said(mixent(*FIT, "med-bayes-net", "--c", "0.5"))
    assert "no edges: columns depend on the class alone" in text and "all no edges" in text
    text = said(mixent(*FIT, "med-bayes-net", "--objective", "likelihood", "--structure", "naive"))
    assert "Bayes nets learned from each class's rows alone over 3 columns" in text and "Margin prior" not in text


def test_a_net_equals_the_library(mixent, table):
    options = ("--structure", "colour,size", "--c", "0.4", "--prior", "2", "--calibration", "predictive")
    assert mixent(*FIT, "med-bayes-net", *options, "--margin", "exponential", "--bias", "flat").exit_code == 0
    model = mx.MEDBayesNetClassifier(
        [("colour", "size")],
        C=0.4,
        ess=2.0,
        calibration="predictive",
        margin="exponential",
        bias="flat",
        random_state=0,
    ).fit(*table)
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(table[0]), model.predict_proba(table[0]))


def test_info_of_a_net(mixent, structures):
    about = json.loads(mixent("info", structures / "net.mixent", "--json").stdout)
    assert about["nets"] == [{"class": c, "edges": [["colour", "size"]]} for c in ("no", "yes")]
    model = mx.load(structures / "net.mixent")
    assert about["n_cells"] == [net.n_cells for net in model.model_.nets]
    assert "all colour -> size" in said(mixent("info", structures / "net.mixent"))


# hidden Markov models


def test_fit_says_states_and_what_follows_them(mixent, structures):
    options = ("-t", "way", "-o", "m.mixent", "--model", "hmm", "--states", "3", "--topology", "left-right")
    text = said(mixent("fit", structures / "series.csv", *options))
    model = mx.load("m.mixent")
    assert type(model) is mx.HMMClassifier and model.progress is False
    assert "A hidden Markov model of each class, 3 states, never back (left-right); 6 steps in a row" in text
    for chain in model.models_:
        stays = np.diagonal(chain.transitions_)
        for s, (mean, var) in enumerate(zip(chain.means_[:, 0], chain.covariances_[:, 0, 0])):
            assert f"{stays[s]:.2f}" in text and f"value {mean:.3g} ± {np.sqrt(var):.2g}" in text
    assert "Converged after" in text and "error 0.0%" in text and "down 20 0.500 up 20 0.500" in text


def test_a_hidden_markov_model_equals_the_library(mixent, structures):
    options = ("--states", "2", "--covariance", "eei", "--transitions", "per_step", "--prior", "none", "--seed", "2")
    args = ("fit", structures / "series.csv", "-t", "way", "-o", "m.mixent", "--model", "hmm", *options)
    text = said(mixent(*args))
    assert "transitions of every step apart" in text and "by step" in text
    X = make_series()
    model = mx.HMMClassifier(2, "EEI", transitions="per_step", prior=None, random_state=2)
    model.fit(X.drop(columns="way"), X["way"])
    found = mx.load("m.mixent").predict_proba(X.drop(columns="way"))
    np.testing.assert_allclose(found, model.predict_proba(X.drop(columns="way")), rtol=1e-9)
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert about["chains"][0]["states"][0]["stationary"] is None and about["covariance"] == "EEI"
    shares = [sum(state["share"] for state in chain["states"]) for chain in about["chains"]]
    np.testing.assert_allclose(shares, 1.0, rtol=1e-9)


def test_sequences_of_words(mixent):
    rng = np.random.default_rng(0)
    words = np.array(["a", "b", "c"])[np.sort(rng.integers(3, size=(30, 5)), axis=1)]
    words[15:] = words[15:, ::-1]
    frame = pd.DataFrame(words, columns=[f"s{i}" for i in range(5)]).assign(y=np.repeat(["p", "q"], 15))
    frame.to_csv("d.csv", index=False)
    text = said(mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "hmm"))
    assert "value a " in text or "value c " in text
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert set(about["chains"][0]["states"][0]["emits"]["value"]) == {"a", "b", "c"} and about["covariance"] is None


def test_sequences_without_a_label_take_no_part(mixent):
    make_series().assign(way=lambda f: f["way"].where(f.index % 5 > 0)).to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "way", "-o", "m.mixent", "--model", "hmm")
    assert "8 of 40 rows have no label in 'way': they take no part, since --model hmm cannot learn" in result.stderr
    assert "On the training rows" in said(result)
    models = ("--model", "hmm", "--model", "med", "--c", "1", "--folds", "2", "--no-baselines", "-o", "s.csv")
    result = mixent("evaluate", "d.csv", "-t", "way", *models)
    assert "are used as unlabelled rows, but not by --model hmm" in result.stderr
    scores = pd.read_csv("s.csv")
    assert scores["failed"].isna().all()
    assert scores.groupby("method")["labelled_only"].all().to_dict() == {"mixent hmm": True, "mixent med": False}


def test_info_of_states(mixent, structures):
    about = json.loads(mixent("info", structures / "hmm.mixent", "--json").stdout)
    model = mx.load(structures / "hmm.mixent")
    assert about["topology"] == "left-right" and about["run"]["passes"] == model.n_iter_
    np.testing.assert_allclose(about["run"]["objective"], sum(run.objective for run in model.runs_), rtol=1e-12)
    np.testing.assert_array_equal(about["chains"][0]["transitions"], model.models_[0].transitions_)
    assert [state["stationary"] for state in about["chains"][0]["states"]] == pytest.approx([0, 0, 1], abs=1e-6)
    text = said(mixent("info", structures / "hmm.mixent"))
    assert "HMMClassifier, written by mixent" in text and "first share stays then emits" in text


def test_files_that_hold_a_model_without_classes(mixent, fails, structures):
    X = make_series().drop(columns="way")
    model = mx.HiddenMarkovModel(2, random_state=0).fit(X)
    mx.save(model, "h.mixent")
    text = said(mixent("info", "h.mixent"))
    assert "A hidden Markov model, 2 states; 6 steps in a row" in text and "state first share" in text
    about = json.loads(mixent("info", "h.mixent", "--json").stdout)
    assert about["chains"][0]["class"] is None and "classes" not in about
    line = fails("predict", "h.mixent", structures / "series.csv", "-o", "o.csv")
    assert "h.mixent holds a HiddenMarkovModel, which has no classes to predict; fit a classifier of sequences" in line
    kernel = mx.FisherKernel(mx.HiddenMarkovModel(2, random_state=0), random_state=0).fit(X)
    mx.save(kernel, "k.mixent")
    assert f"Fisher kernel of this model: {kernel.rank_} features." in said(mixent("info", "k.mixent"))
    log_emit = np.log(np.tile([[0.3, 0.7], [0.6, 0.4]], (6, 1)))
    given = mx.HiddenMarkovModel(2, emissions="precomputed").fit(log_emit, lengths=[6, 6])
    mx.save(given, "g.mixent")
    assert "A hidden Markov model, 2 states; steps of 2 columns" in said(mixent("info", "g.mixent"))


def make_steps(n=24, seed=0):
    """Sequences of different lengths, numbers and words at each step."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        speed = np.sort(rng.normal(size=rng.integers(4, 8)))[:: 1 if i % 2 else -1]
        for value in speed:
            rows.append(
                {
                    "id": f"{i:02}",
                    "speed": value,
                    "colour": "red" if value > rng.normal() else "blue",
                    "w": 1.0 + i % 3,
                    "way": "up" if i % 2 else "down",
                }
            )
    return pd.DataFrame(rows)


STEPS = ("fit", "d.csv", "-t", "way", "-o", "m.mixent", "--model", "hmm", "--sequence", "id")


def test_steps_equal_the_library(mixent):
    steps = make_steps().sample(frac=1, random_state=0).sort_values("speed", kind="stable")  # sequences interleave
    steps.to_csv("d.csv", index=False)
    text = said(mixent(*STEPS, "--weight", "w"))
    assert "24 sequences: rows with the same id" in text and "steps of 2 columns" in text and "down 12 " in text
    X = read_frame("d.csv", text=["id"])
    ends = X.drop_duplicates("id")
    model = mx.HMMClassifier(random_state=0)
    model.fit(X[["speed", "colour"]], ends["way"], sample_weight=ends["w"], groups=X["id"])
    proba = model.predict_proba(X[["speed", "colour"]], groups=X["id"])
    predict = ("predict", "m.mixent", "d.csv", "-o", "o.csv", "--sequence", "id", "--keep", "way")
    assert mixent(*predict, "--density").exit_code == 0
    found = read_frame("o.csv", text=["id"])
    assert found["id"].tolist() == ends["id"].tolist() and found["way"].tolist() == ends["way"].tolist()
    np.testing.assert_allclose(found[["p(down)", "p(up)"]].to_numpy(dtype=float), proba, rtol=1e-9)
    assert list(found) == ["id", "way", "predicted", "p(down)", "p(up)", "log_density"]
    text = said(mixent(*predict, "--reject", "0.2", "--adjust-priors"))
    assert "Class priors of this table" in text and "24 rows; decided: " in text
    assert "share stays" in said(mixent("info", "m.mixent"))


def test_sequences_of_steps_without_a_label_take_no_part(mixent):
    steps = make_steps()
    steps.assign(way=steps["way"].where(steps["id"] > "03")).to_csv("d.csv", index=False)
    text = said(mixent(*STEPS, "--ignore", "w"))
    assert "24 sequences" in text and "down 10 0.500 up 10 0.500" in text


def test_steps_that_cannot_be(mixent, fails, structures):
    steps = make_steps()
    steps.to_csv("d.csv", index=False)
    assert "d.csv has no column 'idd'; did you mean 'id'?" in fails(*STEPS[:-1], "idd")
    assert "--sequence has no effect with --model mixture; it serves --model hmm" in fails(
        "fit", "d.csv", "-t", "way", "-o", "m.mixent", "--sequence", "id", status=2
    )
    assert "'id' (--sequence) is the only column" in fails(*STEPS, "--ignore", "w,speed,colour")
    assert mixent(*STEPS, "--ignore", "w").exit_code == 0
    line = fails("predict", "m.mixent", "d.csv", "-o", "o.csv", status=2)
    assert "--sequence is needed: m.mixent was fitted to a row for each step of a sequence" in line
    predict = ("predict", "m.mixent", "d.csv", "-o", "o.csv", "--sequence")
    assert "no column 'idd'" in fails(*predict, "idd")
    assert "--keep-all cannot be with --sequence" in fails(*predict, "id", "--keep-all", status=2)
    line = fails(
        "predict", structures / "hmm.mixent", structures / "series.csv", "-o", "o.csv", *predict[-1:], "t0", status=2
    )
    assert "--sequence has no effect: " in line
    steps.loc[2, "way"] = "up"
    steps.to_csv("d.csv", index=False)
    line = fails(*STEPS)
    assert "row 2: all steps of a sequence have one label and one weight; 'way' (--target) differs within" in line
    make_steps().assign(w=np.arange(len(steps))).to_csv("d.csv", index=False)
    assert "--weight differs within sequence '00' of 'id'" in fails(*STEPS, "--weight", "w")
    make_steps().assign(id=lambda f: f["id"].where(f.index != 4)).to_csv("d.csv", index=False)
    assert "(--sequence) must say of every row which sequence it is of; row 4 is blank" in fails(*STEPS)


# predict, evaluate


def test_predict(mixent, structures, table):
    for name in ("tree", "net"):
        path = structures / f"{name}.mixent"
        assert mixent("predict", path, "{stock}/data.csv", "-o", "o.csv", "--keep", "id").exit_code == 0
        found, model = pd.read_csv("o.csv"), mx.load(path)
        np.testing.assert_allclose(found[["p(no)", "p(yes)"]], model.predict_proba(table[0]), rtol=1e-12)
        result = mixent("predict", path, "{stock}/data.csv", "-o", "o.csv", "--reject", "0.1", "--adjust-priors")
        assert "Class priors of this table" in said(result)
    series = structures / "series.csv"
    assert mixent("predict", structures / "hmm.mixent", series, "-o", "o.csv", "--density").exit_code == 0
    found, model = pd.read_csv("o.csv"), mx.load(structures / "hmm.mixent")
    X = make_series().drop(columns="way")
    np.testing.assert_allclose(found["log_density"], model.score_samples(X), rtol=1e-9)
    assert (found["predicted"] == model.predict(X)).all()


def test_evaluate_compares_and_options_go_where_they_belong(mixent):
    models = ("--model", "med-tree", "--model", "med-bayes-net", "--model", "mixture", "--model", "med")
    options = ("-k", "1", "--objective", "likelihood", "--c", "2", "--structure", "colour,size", "--prior", "2")
    text = said(mixent(*EVALUATE, *models, *options, "-o", "s.csv"))
    assert "--components 1: of mixtures, and trees of each class of mixent med-tree." in text
    scores = pd.read_csv("s.csv")
    assert len(set(scores["method"])) == 4 and scores["failed"].isna().all() and (scores["error"] < 0.3).all()


def test_numbers_with_two_meanings_are_told(mixent):
    models = ("--model", "med-tree", "--model", "maxent", "--latent", "pooled", "--c", "0.5", "--prior", "2")
    told = "--prior 2: pseudo-rows of mixent med-tree, the variance of the multipliers of mixent maxent."
    assert told in said(mixent(*EVALUATE, *models))
    models = ("--model", "med-tree", "--model", "shared", "-k", "1", "--c", "0.5", "--alpha", "0.5")
    text = said(mixent(*EVALUATE, *models, "--objective", "conditional"))
    assert "--alpha 0.5: what a mixture is trained for, and the quantile of the margins mixent med-tree asks" in text


# what cannot be


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("med-tree", ["--kernel", "rbf"], "--kernel has no effect with --model med-tree; it serves --model med and"),
        ("med-tree", ["--gamma", "2"], "--gamma has no effect with --model med-tree; it serves"),
        ("med-tree", ["--covariance", "VVV"], "--covariance has no effect with --model med-tree; it serves"),
        ("med-tree", ["--states", "2"], "--states has no effect with --model med-tree; it serves --model hmm"),
        ("med-tree", ["--objective", "error"], "--objective must be one of margin, likelihood; got 'error'"),
        ("med-tree", ["--tables", "loose"], "--tables must be one of fixed, integrated; got 'loose'"),
        ("med-tree", ["--numbers", "binned"], "--numbers must be one of auto, gaussian, quantized; got 'binned'"),
        ("med-tree", ["--structure", "naive"], "--structure must be one of separate, shared; got 'naive'"),
        ("med-tree", ["--structure", "a,b"], "--structure must be one of separate, shared; got 'a,b'"),
        ("med-tree", ["--components", "two"], "--components must be auto, or a whole number >= 1; got 'two'"),
        ("med-tree", ["--prior", "none"], "--prior none cannot be with --model med-tree: a table needs some rows"),
        ("med-tree", ["--prior", "0"], "--prior must be auto, or none or a number > 0; got '0'"),
        ("med-tree", ["--calibration", "predictive"], "--calibration must be one of temperature, affine, none; got"),
        ("med-tree", ["--margin", "fixed", "--c", "2"], "--c has no effect with --margin fixed"),
        (
            "med-tree",
            ["--tables", "integrated", "--objective", "likelihood"],
            "--objective likelihood needs --tables fixed; got --tables integrated",
        ),
        ("med-tree", ["--tables", "integrated", "--structure", "shared"], "--structure shared needs --tables fixed"),
        ("med-tree", ["--tables", "integrated", "--numbers", "gaussian"], "--numbers gaussian needs --tables fixed"),
        ("med-tree", ["-k", "2", "--structure", "shared"], "--structure shared needs --components 1; got"),
        ("med-tree", ["-k", "2", "--numbers", "gaussian"], "--numbers gaussian needs --components 1; got"),
        ("med-bayes-net", ["--components", "2"], "--components has no effect with --model med-bayes-net; it serves"),
        ("med-bayes-net", ["--tables", "fixed"], "--tables has no effect with --model med-bayes-net; it serves"),
        ("med-bayes-net", ["--structure", "tree"], "--structure must be naive or lists of two names, such as"),
        ("med-bayes-net", ["--structure", "a,b,c"], "--structure must be naive or lists of two names, such as"),
        ("med-bayes-net", ["--calibration", "platt"], "--calibration must be one of temperature, affine, predictive"),
        ("hmm", ["--c", "2"], "--c has no effect with --model hmm; it serves"),
        ("hmm", ["--components", "2"], "--components has no effect with --model hmm; it serves"),
        ("hmm", ["--objective", "likelihood"], "--objective has no effect with --model hmm; it serves"),
        ("hmm", ["--topology", "ring"], "--topology must be one of full, left-right; got 'ring'"),
        ("hmm", ["--transitions", "all"], "--transitions must be one of shared, per_step; got 'all'"),
        ("hmm", ["--covariance", "XYZ"], "--covariance: "),
        ("hmm", ["--states", "0"], "Invalid value for '--states'"),
        ("mixture", ["--states", "2"], "--states has no effect with --model mixture; it serves --model hmm"),
        ("mixture", ["--structure", "naive"], "--structure has no effect with --model mixture; it serves --model med-"),
        ("mixture", ["--objective", "margin"], "--objective must be one of likelihood, conditional, error; got"),
        ("maxent", ["--objective", "likelihood"], "--objective has no effect with --model maxent; it serves"),
        ("novelty", [], "--model novelty is a command of its own: mixent novelty DATA -o FILE"),
        ("tree", [], "--model must be one of mixture, shared, maxent, joint, med, med-gaussian, med-tree, med-bayes"),
    ],
)
def test_options_without_effect_or_sense(fails, kind, options, message):
    assert message in fails(*FIT, kind, *options, status=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [["--c", "2"], ["--margin", "laplace"], ["--alpha", "0.2"]])
def test_likelihood_asks_for_no_margin(fails, kind, options):
    line = fails(*FIT, kind, "--objective", "likelihood", *options, status=2)
    assert f"{options[0]} has no effect with --objective likelihood; it serves --objective margin" in line


def test_classes_are_needed(fails):
    for kind in (*KINDS, "hmm"):
        line = fails("fit", "{stock}/data.csv", "-o", "m.mixent", "--model", kind, status=2)
        assert f"--model {kind} needs --target: " in line


def test_edges_between_columns_that_are_there(fails):
    line = fails(*FIT, "med-bayes-net", "--structure", "colour,sise")
    assert "structure names a column 'sise' that X does not have; did you mean 'size'?" in line
    line = fails(*FIT, "med-bayes-net", "--structure", "colour,size;size,colour")
    assert "structure has a cycle" in line


def test_sequences_of_one_kind(fails):
    assert "Error: " in fails(*FIT, "hmm")  # numbers and categories in one row


def test_what_a_model_cannot_be_asked(fails, structures):
    data = "{stock}/data.csv"
    for name, kind in (("tree", "MEDTreeClassifier"), ("net", "MEDBayesNetClassifier")):
        path = structures / f"{name}.mixent"
        assert f"holds a {kind}, which has no density" in fails(
            "predict", path, data, "-o", "o.csv", "--density", status=2
        )
        assert f"holds a {kind}, which explains nothing; fit a mixture" in fails("explain", path, data)
        assert f"{kind}, which has no model of the columns" in fails("impute", path, data, "-o", "o.csv")
        assert "cannot learn from new rows alone; fit it anew" in fails("update", path, data, "-t", "class")
    series, hmm = structures / "series.csv", structures / "hmm.mixent"
    assert "HMMClassifier, which explains nothing" in fails("explain", hmm, series)
    assert "which explains nothing" in fails("predict", hmm, series, "-o", "o.csv", "--explain", status=2)


def test_help_names_the_models_and_their_options(mixent):
    for command in ("fit", "evaluate"):
        page = " ".join(mixent(command, "--help").stdout.replace("│", " ").split())
        for kind in ("med-tree", "med-bayes-net", "hmm"):
            assert f"--model {kind}" in page.split("Examples:")[1]
        for option in ("--structure", "--tables", "--numbers", "--states", "--topology", "--transitions"):
            assert f"{option} " in page
