"""The page of a fusion: its description, and the items of a table."""

import numpy as np
import pandas as pd
import pytest

from mixent.base.describe import describe
from mixent.evaluate import log_loss
from mixent.fusion import Calibration, Fuser
from mixent.report import model_report
from mixent.report.html import section_ids

LABELS = np.array(["healthy", "<ill>"])


def answers(n, prior, seed):
    """Votes of four sources."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prior).astype(int)
    votes = {f"<s{j}>": LABELS[np.where(rng.random(n) < a, y, 1 - y)] for j, a in enumerate((0.9, 0.75, 0.7, 0.7))}
    return pd.DataFrame(votes), LABELS[y]


OLD, TRUTH = answers(400, 0.5, 0)
VOTES, CLASSES = answers(800, 0.1, 1)


@pytest.fixture(scope="module")
def fuser():
    return Fuser({name: Calibration.from_predictions(TRUTH, OLD[name]) for name in OLD}).fit(VOTES)


def test_the_page_is_made_of_the_description(fuser, tmp_path, read):
    given = {"title": "<t>", "data_notes": ["A <note>."], "commands": "mixent fuse <a>"}
    path = model_report(tmp_path / "r.html", fuser, **given)
    page = read(path)
    described = section_ids([section.title for section in describe(fuser).sections[1:]])
    assert page.sections == ["summary", *described, "how-to-reproduce"]
    assert {"<t>", "A <note>.", "mixent fuse <a>", "<s0>"} <= set(page.text)
    assert model_report(tmp_path / "2.html", fuser, **given).read_bytes() == path.read_bytes()


def test_items_of_a_table(fuser, tmp_path, read):
    page = read(model_report(tmp_path / "r.html", fuser, VOTES[:60]))
    assert page.sections[1] == "items-of-this-table" and "scores" not in page.sections
    predicted = fuser.predict_proba(VOTES[:60]).argmax(axis=1)
    assert str(int((fuser.classes_[predicted] == "<ill>").sum())) in page.text


def test_items_with_a_known_class_are_scored(fuser, tmp_path, read):
    y = CLASSES.astype(object)
    y[:10] = None
    page = read(model_report(tmp_path / "r.html", fuser, VOTES, y))
    assert page.sections[1:6] == ["items-of-this-table", "scores", "calibration", "roc-curves", "errors"]
    expected = log_loss(CLASSES[10:], fuser.predict_proba(VOTES)[10:], fuser.classes_)
    assert f"{expected:.3f}" in page.text


def test_without_matplotlib_there_are_tables(fuser, tmp_path, read, without_matplotlib):
    page = read(model_report(tmp_path / "r.html", fuser, VOTES, CLASSES))
    assert "img" not in page.tags and "table" in page.tags
