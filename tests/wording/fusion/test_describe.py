"""Wording of fusion, describe."""

import re

import numpy as np

from mixent.base.document import Figure
from mixent.fusion import Fuser
from mixent.fusion.decisions import changed_cases, decisions
from mixent.fusion.describe import on_answers

from ...fusion.test_describe import SOURCES, VOTES


def test_many_sources_are_not_tested_for_drift(monkeypatch):
    monkeypatch.setattr("mixent.fusion.faults.MAX_SOURCES", 2)
    assert "Not tested, because there are too many sources" in str(Fuser(SOURCES).fit(VOTES).summary())


def test_sources_without_calibration_are_not_said_to_agree():
    assert "No source contradicts the others significantly." in str(Fuser(SOURCES).fit(VOTES).summary())
    assert "No source can be tested against the others." in str(Fuser().fit(VOTES).summary())


def test_the_method_and_the_reason_for_it():
    text = " ".join(str(Fuser(SOURCES).fit(VOTES).summary()).split())
    reason = (
        "the sources are calibrated, and each has a trust weight, which is smaller if it agrees with others more often "
        "than independent sources should"
    )
    assert f"Method: discounted (chosen automatically: {reason})." in text
    assert "Method: product. " in " ".join(str(Fuser(SOURCES, method="product").fit(VOTES).summary()).split())


def test_gray_pairs_are_explained_where_there_are_any():
    fuser = Fuser(SOURCES).fit(VOTES)
    assert not any("Gray" in caption for caption in captions(fuser))
    fuser.dependence_.z[0, 1] = np.nan
    assert any("Gray: not tested" in caption for caption in captions(fuser))


def captions(fuser):
    content = [part for section in fuser.summary().sections for part in section.content]
    return [part.caption for part in content if isinstance(part, Figure)]


def test_means_and_known_classes_have_no_contributions():
    mean = Fuser(SOURCES, method="composite").fit(VOTES)
    assert changed_cases(mean, decisions(mean))[0].contributions is None
    assert "a mean of the sources' posteriors" in on_answers(mean, VOTES)[2].items[0]
    all_ill = np.flatnonzero((VOTES == "ill").all(axis=1))[0]
    y = np.full(len(VOTES), None, dtype=object)
    y[all_ill] = "healthy"
    known = Fuser(SOURCES, method="ml-product").fit(VOTES, y=y)
    reasons = [case.reasons() for case in changed_cases(known, decisions(known), max_cases=99) if case.labelled]
    assert reasons == ["the label was given"]


def test_a_majority_is_not_decided_against():
    fuser = Fuser(SOURCES, method="majority").fit(VOTES)
    (content,) = on_answers(fuser, VOTES)
    assert re.search(r" for 0 of 800 items \(0\.0 %\); \d+ have no majority", content.text)
