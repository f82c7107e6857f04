"""The code in the README and the docs runs as printed."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


def python_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


def test_the_readme_example_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks("README.md"):
        exec(block, names)
    assert (tmp_path / "model.mixent").exists()
    proba = names["model"].predict_proba(names["table"])
    assert proba.shape == (8, 2) and proba[0, 0] > 0.9 and proba[7, 1] > 0.9


def test_the_page_on_training_runs_as_printed():
    names = {}
    for block in python_blocks("docs/discriminative.md"):
        exec(block, names)
    np.testing.assert_allclose(names["why"].log_odds, names["why"].prior + names["why"].by_component.sum(axis=1))
    assert [stage.n_components for stage in names["grown"].path_] == list(range(1, len(names["grown"].path_) + 1))


def test_commands_in_the_docs_have_options_that_exist():
    from typer.main import get_command

    from mixent.cli import app

    commands = get_command(app).commands
    for page in ("README.md", "docs/discriminative.md"):
        for block in re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
            for line in re.findall(r"^mixent (.*)$", block, flags=re.MULTILINE):
                name, *words = line.split()
                known = {o for parameter in commands[name].params for o in (*parameter.opts, *parameter.secondary_opts)}
                assert {word for word in words if word.startswith("-")} <= known, line


@pytest.fixture(scope="module")
def orchestra():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("orchestra", ROOT / "examples" / "orchestra.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_orchestra_example_prints_and_draws(orchestra, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(orchestra, "SIZES", (60, 90))
    monkeypatch.setattr(orchestra, "SEEDS", range(2))
    monkeypatch.setattr(orchestra, "SHOWN_SIZE", 200)
    monkeypatch.setattr(orchestra, "N_TEST", 500)
    orchestra.main(tmp_path / "new")
    said = capsys.readouterr().out
    assert "Exact Bayes error 20.17 %" in said and "(J - J*)^2" in said
    pictures = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert pictures == ["components.png", "parameters.png", "per_class.png", "shared.png"]


@pytest.mark.slow
def test_shared_components_come_nearer_to_the_bayes_error_with_fewer_parameters(orchestra):
    found = orchestra.measure(sizes=(300, 1000), seeds=range(10))
    for size in (300, 1000):
        shared = found[size, "shared, 4"]
        right = found[size, "per class, 3 + 3"]
        gap = right[:, 0] - shared[:, 0]
        assert gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(len(gap))
        assert (shared[:, 2] < right[:, 2]).all()


def test_every_line_of_the_picture_page_draws():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}  # as a reader, from the top of the page
    for block in python_blocks("docs/pictures.md"):
        exec(block, names)
    assert len(pyplot.get_fignums()) == 13
    pyplot.close("all")


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", "docs/discriminative.md", "docs/mixtures.md", "docs/pictures.md"]
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([\w./-]+)\)", (ROOT / page).read_text()):
        assert ((ROOT / page).parent / target).exists(), target
