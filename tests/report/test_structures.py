"""Sections of hidden Markov models."""

import re

import numpy as np
import pytest

from mixent import HMMClassifier
from mixent.base import document
from mixent.report import Paragraph, Section, write_report
from mixent.report.sequences import sequences_section


def series(n=40, seed=0):
    rising = np.sort(np.random.default_rng(seed).normal(size=(n, 6)), axis=1)
    rising[n // 2 :] = rising[n // 2 :, ::-1]
    return rising, np.repeat(["up", "down"], n // 2)


def text_of(page):
    return " ".join(re.sub("<[^>]+>", " ", page).split())


def section(path, model, X=None, y=None):
    """The former section on a page of its own."""
    content = sequences_section("m", model, X, y, draw=document.can_draw())
    sections = [Section("The hidden Markov models", content), Section("How to reproduce", [Paragraph("p")])]
    page = write_report(path / "r.html", "t", sections).read_text(encoding="utf-8")
    return page[page.index("The hidden Markov models</h2>") : page.index("How to reproduce</h2>")]


def test_the_section_of_states(tmp_path):
    S, labels = series()
    model = HMMClassifier(3, random_state=0).fit(S, labels)
    page = section(tmp_path, model, S, labels)
    said = text_of(page)
    assert "A hidden Markov model of each class, 3 states; 6 steps in a row" in said and page.count("<figure") == 2
    for chain in model.models_:
        for s in range(3):
            assert f"{chain.start_[s]:.2f}" in said and f"value {chain.means_[s, 0]:.3g} ± " in said
    page = section(tmp_path, model)
    assert page.count("<figure") == 2 and "its first row" not in page


def test_states_that_did_not_converge_and_many_classes(tmp_path):
    S, labels = series()
    with pytest.warns(UserWarning, match="did not converge"):
        model = HMMClassifier(3, max_iter=1, random_state=0).fit(S, labels)
    page = section(tmp_path, model, S, labels)
    assert "did not converge for down: max_iter was reached" in page
    many = np.array([f"k{i % 8}" for i in range(40)])
    model = HMMClassifier(1, random_state=0).fit(S, many)
    page = section(tmp_path, model, S, many)
    assert "... and 2 more classes." in page and page.count("<figure") == 6
