import numpy as np
import pandas as pd
import pytest

import mixent as mx

FIT = ("fit", "{stock}/data.csv", "-t", "class", "--ignore", "id", "--ignore", "w")


def test_fit_writes_a_model_and_says_what_it_is(mixent, tmp_path, stock):
    result = mixent(*FIT, "-o", "m.mixent", "-k", "1")
    assert result.exit_code == 0, result.output
    for text in ("60 rows, 3 columns", "missing", "no ", "yes", "VVV", "Converged", "training rows", "Wrote m.mixent"):
        assert text in result.stdout
    model = mx.load(tmp_path / "m.mixent")
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.progress is False
    assert [c.kind for c in model.schema_.columns] == ["continuous", "integer", "categorical"]


def test_fit_equals_the_library(mixent, tmp_path, stock):
    assert (
        mixent(*FIT, "-o", "m.mixent", "-k", "2", "--covariance", "diag", "--prior", "3", "--seed", "5").exit_code == 0
    )
    from mixent.data import read_frame

    frame = read_frame(stock / "data.csv")
    X = frame.drop(columns=["id", "w", "class"])
    model = mx.MixtureClassifier(2, "diag", prior=3.0, random_state=5).fit(X, frame["class"])
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(X), model.predict_proba(X))


def test_auto_is_the_default_and_says_what_was_chosen(mixent):
    result = mixent(*FIT, "-o", "m.mixent")
    assert result.exit_code == 0, result.output
    chosen = mx.load("m.mixent").search_
    assert f"Chosen among {len(chosen)} models" in result.stdout if chosen else "Chosen" not in result.stdout


def test_without_target_clusters_are_fitted(mixent):
    result = mixent(
        *FIT[:2],
        "--ignore",
        "class",
        "--ignore",
        "colour",
        "-o",
        "m.mixent",
        "-k",
        "2",
        "--covariance",
        "vvi",
        "--prior",
        "none",
    )
    assert result.exit_code == 0, result.output
    assert "No --target: fitting clusters" in result.stdout
    model = mx.load("m.mixent")
    assert isinstance(model, mx.GaussianMixture) and model.n_components_ == 2 and model.prior is None


def test_clusters_searched(mixent):
    result = mixent(
        *FIT[:2], "--ignore", "class", "--ignore", "colour", "--ignore", "w", "-o", "m.mixent", "--covariance", "VVI"
    )
    assert result.exit_code == 0, result.output
    assert "Chosen among 9 models by BIC" in result.stdout


def test_quiet_says_nothing(mixent):
    result = mixent(*FIT, "-o", "m.mixent", "-k", "1", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_weights_are_used(mixent, stock):
    assert mixent(*FIT[:6], "--weight", "w", "-o", "m.mixent", "-k", "1").exit_code == 0
    frame = pd.read_csv(stock / "data.csv")
    share = frame["w"][frame["class"] == "yes"].sum() / frame["w"].sum()
    model = mx.load("m.mixent")
    assert model.class_prior_[1] == pytest.approx(share)
    assert "w" not in model.schema_.names


def test_unlabelled_rows_and_rare_classes_are_told(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"])
    frame.loc[:9, "class"] = None
    frame.loc[59, "class"] = "maybe"
    frame.to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "class", "-o", "m.mixent", "-k", "1")
    assert result.exit_code == 0, result.output
    assert "10 of 60 rows have no label in 'class'" in result.stderr
    assert "class 'maybe' has only 1 row:" in result.stderr


def test_an_identifier_as_target_is_questioned(mixent):
    result = mixent("fit", "{stock}/data.csv", "-t", "id", "-o", "m.mixent", "-k", "1", "--covariance", "EII")
    assert "is it an identifier?" in result.stderr


def test_numbers_as_categories_and_as_classes(mixent):
    rng = np.random.default_rng(0)
    pd.DataFrame({"zip": rng.integers(0, 3, 40), "x": rng.normal(size=40), "y": np.arange(40) % 2}).to_csv(
        "d.csv", index=False
    )
    result = mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "-k", "1", "--categorical", "zip")
    assert result.exit_code == 0, result.output
    model = mx.load("m.mixent")
    assert model.schema_.columns[0].kind == "categorical" and model.classes_.tolist() == [0, 1]


def test_problems_of_the_table_are_yellow_lines(mixent, stock):
    pd.read_csv(stock / "data.csv").assign(one=1).to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "class", "-o", "m.mixent", "-k", "1")
    assert result.stderr.splitlines() == [
        "Warning: column 'id' looks like a row number; leave it out with --ignore",
        "Warning: column 'one' is constant (1): it tells nothing, drop it",
    ]


def test_a_word_among_numbers_is_told_unless_the_column_is_listed(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"]).astype({"size": object})
    frame.loc[1, "size"] = "abc"
    frame.to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "-t", "class", "-o", "m.mixent", "-k", "1")
    assert "column 'size' is text because of 'abc'" in mixent(*fit).stderr
    assert "is text because" not in mixent(*fit, "--categorical", "size", "--categorical", "colour").stderr


def test_one_column_is_one_column(mixent):
    result = mixent(*FIT, "--ignore", "size", "--ignore", "colour", "-o", "m.mixent", "-k", "1")
    assert "60 rows, 1 column (" in result.stdout.replace("\n", "")


def test_counts_in_words():
    from mixent.base.text import count

    assert [count(n, "row") for n in (0, 1, 2, 10**7, 1.5)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "10000000 rows",
        "1.5 rows",
    ]
    assert count(1, "pass") == "1 pass" and count(3, "pass") == "3 passes"


def test_temperature_in_words():
    from mixent.cli.summary import _temperature

    assert (
        _temperature(0.24)
        == "Probabilities softened (temperature 0.24): the model was over-confident on held-out rows."
    )
    assert "sharpened (temperature 1.5): the model was under-confident" in _temperature(1.5)


def test_the_chosen_model_of_the_search_is_told(capsys):
    from types import SimpleNamespace

    from mixent.cli.console import Screen
    from mixent.cli.fit import _say_search

    search = [{"log_loss": 0.1, "error": 0.1, "chosen": False}, {"log_loss": 0.2, "error": 0.1, "chosen": True}]
    _say_search(Screen(False), SimpleNamespace(search_=search, classes_=[0, 1]))
    assert "log-loss 0.200" in " ".join(capsys.readouterr().out.split())


def test_in_a_pipe_a_bar_leaves_not_even_a_blank_line(capsys):
    from mixent.cli.console import Screen

    with Screen(False).progress("Searching") as tell:
        tell(1, 2, "half")
    assert capsys.readouterr() == ("", "")


def test_a_run_that_did_not_converge_says_so(mixent, monkeypatch):
    from mixent.mixtures import classifier

    init = classifier.MixtureClassifier.__init__.__kwdefaults__
    monkeypatch.setitem(init, "max_iter", 1)
    result = mixent(*FIT, "-o", "m.mixent", "-k", "2")
    text = " ".join(result.stdout.split())
    assert "Did not converge after" in text and "raise it, or loosen tol" in text
    assert "Warning: MixtureClassifier did not converge" in result.stderr


def test_markup_emoji_and_escapes_in_names_are_shown_as_they_are(mixent, stock):
    evil = "[bold red]x[/] :smile: \x1b[31m"
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"])
    frame = (
        frame.rename(columns={"size": evil}).assign(**{"[/]": 1}).replace({"yes": "[link=x]yes", "red": "[/nothing]"})
    )
    frame.to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "class", "-o", "m.mixent", "-k", "1")
    assert result.exit_code == 0, result.output
    assert "[link=x]yes" in result.stdout and "'[/]' is constant" in result.stderr
    result = mixent("info", "m.mixent")
    assert "[bold red]x[/] :smile: \\x1b[31m" in result.stdout and "[/nothing]" in result.stdout
    assert "\x1b" not in result.output


def test_parquet_and_gzip_in(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.to_parquet("d.parquet")
    frame.to_csv("d.tsv.gz", sep="\t", index=False)
    for name in ("d.parquet", "d.tsv.gz"):
        assert mixent("fit", name, *FIT[2:], "-o", name + ".mixent", "-k", "1").exit_code == 0
    assert mixent(*FIT, "-o", "m.mixent", "-k", "1").exit_code == 0
    X = frame[["size", "count", "colour"]]
    expected = mx.load("m.mixent").predict_proba(X)
    for name in ("d.parquet", "d.tsv.gz"):
        np.testing.assert_allclose(mx.load(name + ".mixent").predict_proba(X), expected)


def test_numbers_that_name_classes_are_called_classes(mixent, stock):
    pd.read_csv(stock / "data.csv").replace({"class": {"no": "0", "yes": "1"}}).to_csv("n.csv", index=False)
    fit = (
        "fit",
        "n.csv",
        "-t",
        "class",
        "--ignore",
        "id",
        "-o",
        "m.mixent",
        "--max-components",
        "2",
        "--select",
        "bic",
    )
    said = " ".join(mixent(*fit, "--per-class", "--growth", "incremental").stdout.split())
    assert "class 0: 1 to 2 components (1 kept), class 1: 1 to 2 components" in said and "better): class 0: 1 V" in said
    said = mixent("predict", "m.mixent", "n.csv", "-o", "out.csv", "--adjust-priors").stdout
    assert "Class priors of this table: class 0: 0." in said and "predicted: class " in said
