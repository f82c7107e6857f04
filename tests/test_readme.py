"""Every command and every code block of the README runs, in order, in an empty folder."""

import importlib.util
import re
import tomllib
from functools import partial

import numpy as np
import pytest

import mixent as mx

from .pages import ROOT, blocks, commands, run_command

README = (ROOT / "README.md").read_text()


def on_one_core(compare, X, y, **options):
    """The same comparison without the time to start processes."""
    return compare(X, y, **{**options, "n_jobs": 1})


def test_the_readme_runs_from_top_to_bottom(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(mx, "compare", partial(on_one_core, mx.compare))
    names, n_blocks = {}, 0
    for language, code in blocks("README.md", "python", "sh"):
        if language == "python":
            exec(compile(code, "README.md", "exec"), names)
            assert len(code.splitlines()) <= 10
        for words in commands(code) if language == "sh" else ():
            if words[0] == "pip":
                assert words == ["pip", "install", ".[all]"]  # tests/test_package_installed.py installs it
            else:
                run_command(words)
        n_blocks += 1
    assert n_blocks == 5
    written = {path.name for path in tmp_path.iterdir()}
    assert {"mixent-demo.html", "mixent-demo-comparison.html", "report.html", "fused.html", "fused.csv"} <= written
    labelled = names["y"].notna()
    assert names["model"].score(names["X"][labelled], names["y"][labelled]) > 0.85
    assert labelled.sum() == 50 and len(names["X"]) == 300 and 0.12 < names["X"].isna().to_numpy().mean() < 0.18
    np.testing.assert_allclose(names["fusion"].prior_, [0.9, 0.1], atol=0.05)


def test_the_readme_is_short_and_its_picture_is_small():
    assert len(README.splitlines()) < 200
    assert (ROOT / "docs/_static/overview.png").stat().st_size < 80_000 and "docs/_static/overview.png" in README


def test_the_readme_names_targets_and_extras_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", README)) <= targets
    assert "all" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.slow
def test_the_picture_of_the_readme_is_current():
    spec = importlib.util.spec_from_file_location("readme_picture", ROOT / "docs/readme_picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    few, shifted = module.few_labels(), module.shifted_priors()
    ours, *others = few.values()
    assert all(np.less(ours, other).all() for other in others)  # as the README states
    fuser, product, majority = shifted.values()
    assert np.less(fuser, majority).all() and np.less(fuser, product)[:-1].all()
    assert abs(fuser[-1] - product[-1]) < 0.05  # the priors have not shifted: there is nothing to gain
    assert len(module.picture(few, shifted)) < 80_000
