"""The code in the guides runs as printed, and the commands in all pages have options that exist."""

import re

import numpy as np
import pytest

from mixent import MEDNoveltyDetector, MEDTreeClassifier

from .pages import ROOT, blocks, commands, python_blocks


def test_the_page_on_mixtures_runs_as_printed(capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for block in python_blocks("docs/mixtures.md"):
        exec(block, names)
    assert abs(names["estimate"] - 74) < 3 * names["std_error"]  # 70 + half of the distance of the groups
    one = names["people"]["weight"]
    assert np.sqrt(names["within"]) < names["std_error"] < 1.1 * one.std() / np.sqrt(one.count())
    assert (names["model"].n_components_, names["merging"].n_clusters) == (6, 3)  # as the comment says
    assert np.bincount(names["clusters"]).tolist() == [200, 200, 200] and len(np.bincount(names["two"])) == 2
    assert (names["low"] < names["high"]).all() and names["errors"].n_resamples == 99
    assert names["selected"] == 3 and len(pyplot.get_fignums()) == 1
    pyplot.close("all")


def test_the_page_on_training_runs_as_printed():
    names = {}
    for block in python_blocks("docs/discriminative.md"):
        exec(block, names)
    np.testing.assert_allclose(names["why"].log_odds, names["why"].baseline + names["why"].parts.sum(axis=1))
    assert [stage.n_components for stage in names["grown"].path_] == list(range(1, len(names["grown"].path_) + 1))


def test_the_page_on_data_runs_as_printed(capsys):
    names = {}
    for block in python_blocks("docs/data.md"):
        exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    assert printed == names["model"].notes_ and len(printed) == 3


def test_the_page_on_maximum_entropy_runs_as_printed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for block in python_blocks("docs/maxent.md"):
        exec(block, names)
    why, model, joint = names["why"], names["model"], names["joint"]
    np.testing.assert_allclose(why.baseline + why.parts.sum(axis=1), why.log_odds)
    assert model.gap_ < 1e-6 and "pain & smoker" in names["both"].feature_terms_
    assert not names["filled"].isna().any().any() and joint.accuracy_by_column(names["whole"])["label"].error < 0.2
    assert any(step.kept for step in names["chosen"].path_) and len(pyplot.get_fignums()) == 4
    pyplot.close("all")


def test_the_page_on_discrimination_runs_as_printed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for block in python_blocks("docs/discrimination.md"):
        exec(block, names)
    X, y, iris = names["X"], names["y"], names["iris"]
    assert 0 <= names["model"].gap_ < 1e-4 and iris.multipliers_.shape == (150, 3) and len(iris.pairs_) == 3
    errors = {name: 1 - model.score(X, y) for name, model in names["four"].items()}
    assert errors["linear MED"] > 0.1 > 2 * max(errors["MED, cubic kernel"], errors["MED Gaussians"])
    assert errors["MED Gaussians"] < errors["Gaussians by maximum likelihood"]
    estimates = [f"{model.loo_estimate_:.2f}" for model in names["four"].values() if hasattr(model, "loo_estimate_")]
    assert "{}, {} and {}".format(*estimates) in (ROOT / "docs/discrimination.md").read_text()
    np.testing.assert_allclose(names["hard"].margin_.target, 1.0)
    same = names["as_kernel"].decision_function(X), names["in_pipeline"].decision_function(X)
    np.testing.assert_allclose(*same, rtol=1e-6)
    np.testing.assert_allclose(names["uncertain"].label_posterior_.sum(axis=1), 1)
    for few, both, _ in names["helped"] + names["harmed"]:
        assert both < few + 0.02
    assert len(pyplot.get_fignums()) == 2
    pyplot.close("all")


def test_the_page_on_trees_runs_as_printed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for block in python_blocks("docs/trees.md"):
        exec(block, names)
    model, far, page = names["model"], names["FAR"], " ".join((ROOT / "docs/trees.md").read_text().split())
    assert 0 <= model.gap_ < 1e-5 and names["least"] > 2 - 1e-3
    shares = [f"{model.edge_marginals_[1][u, v]:.2f}" for u, v in far]
    assert "probabilities {}, {} and {} here".format(*shares) in page
    information = [f"{model.mutual_information_[1][u, v]:.2f}" for u, v in far]
    assert "nats against {}, {} and {}".format(*information) in page
    default = MEDTreeClassifier(C=1, calibration=None).fit(names["X"], names["y"])
    assert default.margin_.target == 2 and "but at least 2 nats" in page  # the quantile itself is negative here
    loss = {name: rows[0][1] for name, rows in names["results"].items()}
    assert loss["MED trees"] < loss["MED trees, shared"] < loss["Chow-Liu"] < loss["TAN"]
    assert [error > 1 for error in names["errors_of_log_Z"].values()] == [False, False, True, True]
    assert names["net"].tables_[1]["x6"].shape == (4, 4, 4) and len(pyplot.get_fignums()) == 4
    pyplot.close("all")


def test_the_page_on_novelty_runs_as_printed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for block in python_blocks("docs/novelty.md"):
        exec(block, names)
    model, page = names["model"], " ".join((ROOT / "docs/novelty.md").read_text().split())
    assert f"{model.scores_.min():.1f} nats here, and {model.bayes_scores_.min():.1f} under the Bayesian fit" in page
    scores = [model.score_samples(names[row])[0] for row in ("row", "new_category", "missing")]
    assert "The scores were {:.1f}, {:.1f} and {:.1f} nats".format(*scores) in page
    assert abs(scores[2] - scores[0]) < 1 < scores[0] - scores[1]  # new letters lower it
    counts = []
    for n_columns, c in ((1, 1), (1, 10), (8, 1)):
        rows = np.random.default_rng(0).normal(size=(300, n_columns))
        counts.append(len(MEDNoveltyDetector("product", C=c).fit(rows).support_))
    assert "{} of 300 rows were support rows (with `C=10` {}), with eight such columns {}.".format(*counts) in page
    area = {name: rows[0][0] for name, rows in names["results"].items()}
    assert area["product"] > area["product, Bayesian fit"] and area["mixture"] < area["mixture, Bayesian fit"]
    flagged = [(names["steps"].predict(names[rows]) == -1).mean() for rows in ("calm", "restless")]
    assert flagged[0] < 0.15 and flagged[1] > 0.6 and len(pyplot.get_fignums()) == 2
    pyplot.close("all")


def test_the_page_on_sequences_runs_as_printed():
    pytest.importorskip("pandas")
    names = {}
    for block in python_blocks("docs/sequences.md"):
        exec(block, names)
    assert names["accuracy"] > 0.9 and names["path"].shape == (200, 20)
    assert names["features"].shape[0] == 200


def test_the_page_on_classical_methods_runs_as_printed():
    names = {}
    for block in python_blocks("docs/classical.md"):
        exec(block, names)
    assert names["windows"].loo_error_ < 0.06 and names["discriminants"].shape == (178, 2)
    assert names["model"].loo_log_loss_ < names["linear"].loo_log_loss_ < 0.05


def documented_commands():
    """(page, arguments) of every command of mixent in the pages; examples in the help may have a remark in brackets."""
    for page in ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))):
        for _, code in blocks(page, "sh", "text"):
            for words in commands(re.sub(r" +\([^()]*\)$", "", code, flags=re.MULTILINE)):
                if words[0] == "mixent":
                    yield page, words[1:]


def test_commands_in_the_docs_have_options_models_and_parameters_that_exist():
    from typer.main import get_command

    from mixent.cli import app
    from mixent.cli.compare import chosen_methods
    from mixent.cli.parsing import column_names, read_settings
    from mixent.cli.settings import DEFAULTS, make_estimator

    commands = get_command(app).commands
    for page, (name, *words) in documented_commands():
        if page == "docs/plugins.md":  # it has a model that this package has not
            continue
        known = {o for parameter in commands[name].params for o in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-") and word != "-"} <= known, words
        after = [(word, words[i + 1]) for i, word in enumerate(words[:-1])]
        settings = read_settings([value for option, value in after if option == "--set"])
        if name == "fit":
            default = DEFAULTS["--target" in words or "-t" in words]
            make_estimator(next((value for option, value in after if option == "--model"), default), settings, {})
        if name == "compare":
            methods = [part for option, value in after if option == "--method" for part in column_names(value)]
            chosen_methods(methods, settings, 0)


def test_every_line_of_the_picture_page_draws():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names, n_figures = {}, 0  # as a reader, from the top of the page
    for block in python_blocks("docs/pictures.md"):
        exec(block, names)
        n_figures += len(pyplot.get_fignums())
        pyplot.close("all")
    assert n_figures == 41


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
    ],
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([\w./-]+)\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target


def test_the_page_on_ensembles_runs_as_printed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for block in python_blocks("docs/ensembles.md"):
        exec(block, names)
    why, everywhere, local = names["why"], *names["losses"]
    np.testing.assert_allclose(why.baseline + why.parts.sum(axis=1), why.log_odds)
    assert names["stack"].score(names["X_test"], names["y_test"]) > 0.9 and local < everywhere
    assert names["judge"].base_classes_[1].tolist() == ["fine", "fraud", "unsure"] and names["chain"].temperature_ < 1
    assert names["boosting"].bound_[-1] < names["boosting"].bound_[0] and len(pyplot.get_fignums()) == 1
    pyplot.close("all")
