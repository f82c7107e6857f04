"""The report of a fusion."""

import html
import re

import numpy as np
import pandas as pd
import pytest

from mixent.fusion import Calibration, Fuser, Source, long_answers
from mixent.report import fusion, fusion_report
from mixent.report.fusion import (
    changed_cases,
    decisions,
    describe_fusion,
    drift_alarms,
    fusion_in_words,
    parts_in_words,
)

LABELS = np.array(["healthy", "<ill>"])


def answers(n, prior, accuracies, seed, shared=0.0):
    """Votes of sources of these accuracies; the first two err together where `shared` > 0."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prior).astype(int)
    luck = rng.random(n)
    frame = {}
    for j, a in enumerate(accuracies):
        own = np.where((rng.random(n) < shared) & (j < 2), luck, rng.random(n))
        frame[f"<s{j}>"] = LABELS[np.where(own < a, y, 1 - y)]
    return pd.DataFrame(frame), LABELS[y]


RIGHT = (0.9, 0.75, 0.7, 0.7)
OLD, TRUTH = answers(400, 0.5, RIGHT, 0, shared=0.8)
VOTES, _ = answers(800, 0.1, RIGHT, 1, shared=0.8)
SOURCES = {name: Calibration.from_predictions(TRUTH, OLD[name], calibration_set="ward") for name in OLD}


@pytest.fixture(scope="module")
def fuser():
    return Fuser(SOURCES).fit(VOTES)


def text_of(page):
    return html.unescape(" ".join(re.sub("<[^>]+>", " ", page).split()))


def written(path, fuser, **options):
    page = fusion_report(path / "r.html", title="<t>", fuser=fuser, **options).read_text()
    assert "<ill>" not in page and "<s0>" not in page and "<script" not in page
    assert "http://" not in page and "https://" not in page
    return page


def test_the_page_tells_all(fuser, tmp_path):
    page = written(tmp_path, fuser, data_notes=["A note"], commands="mixent fuse a.csv")
    ids = re.findall('<section id="([^"]+)"', page)
    assert ids == [
        "what-was-done",
        "what-to-look-at",
        "class-priors",
        "trust-in-the-sources",
        "sources-that-err-together",
        "drift-of-sources",
        "decisions-against-the-majority",
        "calibrations",
        "how-to-reproduce",
    ]
    text = text_of(page)
    assert "Method discounted, taken by auto: sources agree more than their confusion matrices say" in text
    assert "800 items, 16 patterns of answers, 4 sources." in text and "A note." in text
    assert f"worth about {fuser.dependence_.n_effective:.1f} independent ones" in text
    assert "The class priors have moved from those of the sources' training (p =" in text
    assert "No alarm: every source says what its calibration promises" in text
    assert "mixent fuse a.csv" in text and page.count("<img") == 3
    assert "labels" in text and "ward" in text
    low, high = 100 * fuser.prior_estimate_.low[0], 100 * fuser.prior_estimate_.high[0]
    assert f"{low:.1f} to {high:.1f}" in text
    assert page == written(tmp_path, fuser, data_notes=["A note"], commands="mixent fuse a.csv")


def test_the_table_of_drift_names_who_drifted(tmp_path):
    votes = VOTES.copy()
    votes["<s3>"] = "<ill>"
    found = Fuser(SOURCES, method="ml-product").fit(votes)
    assert drift_alarms(found)[0] == "<s3>"
    text = text_of(written(tmp_path, found))
    assert re.search("Alarm: <s3>, .* may no longer say what the calibration promises. The clearest comes first", text)
    assert re.search(r"<s3> (<ill>|healthy) \d+\.\d", text) and " drifted " in text
    assert describe_fusion(found)["sources"][3]["drifted"]


def test_the_search_of_it_is_drawn_with_its_gap(tmp_path):
    found = Fuser(SOURCES, method="min-divergence").fit(VOTES)
    text = text_of(written(tmp_path, found))
    assert "How the posteriors were found" in text and "it never falls" in text
    assert f"at most {found.gap_:.2g} nats per item above the least divergence" in text
    assert "Trust in the sources" not in text
    assert "Method min-divergence (" in text and "taken by auto" not in text


def test_without_matplotlib_there_are_tables(fuser, tmp_path, monkeypatch):
    monkeypatch.setattr(fusion, "can_draw", lambda: False)
    page = written(tmp_path, fuser)
    assert "<img" not in page and "Trust weights" in page


def test_one_source_of_items_of_a_long_table(tmp_path):
    rows = pd.DataFrame({"item": [f"case {i}" for i in range(60)], "source": "<s0>", "value": VOTES["<s0>"][:60]})
    found = Fuser({"<s0>": SOURCES["<s0>"]}, class_prior=[0.01, 0.99]).fit(long_answers(rows))
    text = text_of(written(tmp_path, found))
    assert "err together" not in text and "not tested" in text and "those given" in text
    assert fusion_in_words(describe_fusion(found))[0] == "60 items, 2 patterns of answers, 1 source"


def test_many_sources_are_not_tested_for_drift(tmp_path, monkeypatch):
    monkeypatch.setattr("mixent.fusion.estimator.MOST_DRIFTS", 2)
    assert "too many sources for a test of each" in text_of(written(tmp_path, Fuser(SOURCES).fit(VOTES)))


# --- values ---------------------------------------------------------------------------------------------------------


def batch_weight(found):
    return found.batch.weight[found.changed].sum()


def test_items_of_their_own_are_told_from_the_surest(tmp_path):
    rng = np.random.default_rng(3)
    y = rng.random(300) < 0.15
    p = 1 / (1 + np.exp(-rng.normal(np.where(y, 1, -1)[:, None], 1.5, size=(300, 3))))
    old = 1 / (1 + np.exp(-rng.normal(np.where(TRUTH == "<ill>", 1, -1)[:, None], 1.5, size=(400, 3))))
    sources = {
        f"<m{j}>": Source(
            Calibration.from_predictions(TRUTH, np.column_stack([q, 1 - q]), symbols=["<ill>", "healthy"])
        )
        for j, q in enumerate(old.T)
    }
    votes = {f"<m{j}>": np.column_stack([q, 1 - q]) for j, q in enumerate(p.T)}
    fuser = Fuser(sources, method="ml-product").fit(votes)
    cases = changed_cases(fuser, decisions(fuser), most=4)
    assert len(cases) == 4
    assert [c["probability"] for c in cases] == sorted((c["probability"] for c in cases), reverse=True)
    text = text_of(written(tmp_path, fuser, items=[f"case {i}" for i in range(300)]))
    assert "from the surest to the least sure" in text and re.search(r"case \d+: most say <ill>, decided healthy", text)
    assert re.search(r"<m\d> \(says <ill> \d+\s%, [+-]\d+\.\d\)", text)


def test_means_and_known_classes_have_no_parts(tmp_path):
    mean = Fuser(SOURCES, method="composite").fit(VOTES)
    text = text_of(written(tmp_path, mean))
    assert "a mean of the sources' posteriors, which is no sum of parts" in text
    all_ill = np.flatnonzero((VOTES == "<ill>").all(axis=1))[0]
    y = np.full(len(VOTES), None, dtype=object)
    y[all_ill] = "healthy"
    known = Fuser(SOURCES, method="ml-product").fit(VOTES, y=y)
    told = [parts_in_words(case) for case in changed_cases(known, decisions(known), most=99) if case["known"]]
    assert told == ["its class is known"]


def test_items_of_blocks_have_no_names(tmp_path):
    found = Fuser(SOURCES, method="ml-product").fit_blocks([VOTES[:300], VOTES[300:]])
    text = text_of(written(tmp_path, found))
    assert re.search(r"\d+ items?: most say <ill>, decided healthy", text) and "row " not in text


def test_a_majority_is_not_decided_against(tmp_path):
    text = text_of(written(tmp_path, Fuser(SOURCES, method="majority").fit(VOTES)))
    assert "0 items of 800 (0.0 %) are decided otherwise" in text and "Typical cases" not in text
    assert "of 175 there is no majority" in text or re.search(r"of \d+ there is no majority: a tie, or no vote", text)


def test_nothing_to_look_at_is_said(tmp_path):
    votes, _ = answers(400, 0.5, RIGHT, 2)
    old, truth = answers(400, 0.5, RIGHT, 3)
    found = Fuser({name: Calibration.from_predictions(truth, old[name]) for name in old}, method="product").fit(votes)
    found.warnings_ = []
    text = text_of(written(tmp_path, found))
    assert "Nothing: no source has drifted" in text and "Each source counts as one vote" in text
