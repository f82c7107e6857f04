"""The description of a fusion: its facts, its decisions beside the majority, and what they rest on."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from mixent.base.document import Table
from mixent.base.registry import entry_of
from mixent.fusion import Calibration, Fuser, Source, long_answers
from mixent.fusion.decisions import answer_text, changed_cases, decisions
from mixent.fusion.describe import on_answers
from mixent.fusion.facts import accuracy, answer_type, fusion_facts, information

LABELS = np.array(["healthy", "ill"])
RIGHT = (0.9, 0.75, 0.7, 0.7)


def answers(n, prior, accuracies, seed, shared=0.0):
    """Votes of sources of these accuracies; the first two err together where `shared` > 0."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prior).astype(int)
    luck = rng.random(n)
    frame = {}
    for j, a in enumerate(accuracies):
        own = np.where((rng.random(n) < shared) & (j < 2), luck, rng.random(n))
        frame[f"s{j}"] = LABELS[np.where(own < a, y, 1 - y)]
    return pd.DataFrame(frame), LABELS[y]


OLD, TRUTH = answers(400, 0.5, RIGHT, 0, shared=0.9)
VOTES, _ = answers(800, 0.1, RIGHT, 1, shared=0.9)
SOURCES = {name: Calibration.from_predictions(TRUTH, OLD[name], calibration_set="ward") for name in OLD}


@pytest.fixture(scope="module")
def fuser():
    return Fuser(SOURCES).fit(VOTES)


def table(document, title):
    """The first table of a section."""
    section = next(section for section in document.sections if section.title == title)
    return next(block for block in section.content if isinstance(block, Table))


def titles(document):
    return [section.title for section in document.sections]


# --- facts ----------------------------------------------------------------------------------------------------------


def test_facts_are_plain_values_of_the_fusion(fuser):
    facts = fuser.summary().facts
    assert json.loads(json.dumps(facts)) == facts == fusion_facts(fuser)
    assert facts["method"] == "discounted" and facts["requested_method"] == "auto" and facts["reason"]
    assert (facts["items"], facts["patterns"]) == (800, 16)
    assert [s["name"] for s in facts["sources"]] == list(SOURCES)
    assert facts["sources"][0]["trust"] == fuser.trust_["s0"] and facts["sources"][0]["calibration_set"] == "ward"
    assert facts["pairs"][0]["sources"] == ["s0", "s1"] and facts["pairs"][0]["z"] == fuser.dependence_.z[0, 1]
    assert facts["prior_shift"]["p_value"] == fuser.prior_shift_.robust_p_value and facts["prior_shift"]["significant"]
    assert facts["classes"][1]["low"] == fuser.prior_estimate_.low[1] and facts["warnings"] == fuser.warnings_
    guess = fusion_facts(Fuser().fit(VOTES))
    assert guess["prior_shift"]["reference"] == "equal" and guess["method"] == "dawid-skene" and guess["passes"] > 0
    given = fusion_facts(Fuser(SOURCES, method="min-divergence", class_prior=[1, 1]).fit(VOTES))
    assert given["reason"] is None and given["prior_shift"]["reference"] == "given" and given["gap"] <= 1e-4


def test_calibrations_in_numbers():
    perfect = Calibration.from_counts([[50, 0], [0, 50]], classes=["a", "b"], smoothing=0)
    useless = Calibration.from_counts([[20, 20], [50, 50]], classes=["a", "b"])
    assert (accuracy(perfect), information(perfect)) == (1.0, 1.0)
    assert accuracy(useless) == 0.5 and information(useless) == pytest.approx(0, abs=1e-12)
    skewed = Calibration.from_counts([[90, 10], [5, 5], [0, 0]], classes=["a", "b", "c"], symbols=["a", "b"])
    assert accuracy(skewed) == pytest.approx((0.9 + 0.5) / 2)
    scores = Calibration.from_scores(["a", "b"] * 10, np.arange(20.0), bins=4)
    line = Calibration.from_scores(["a", "b"] * 10, np.arange(20.0), ratio=True)
    cells = Calibration.from_predictions(["a", "b"] * 4, ["a", "b"] * 4, cells=["u", "u", "v", "v"] * 2)
    context = Calibration.from_predictions(["a", "b"] * 4, ["a", "b"] * 4, cells=["u"] * 8, context=True)
    assert accuracy(scores) is None and information(context) is None and accuracy(cells) == 1.0
    kinds = [answer_type(one) for one in (perfect, scores, line, cells, context)] + [answer_type(perfect, soft=True)]
    assert kinds[:3] == ["labels", "scores (4 bins)", "scores (logistic)"]
    assert kinds[3:] == ["labels with cells", "labels within cells", "probabilities"]
    assert answer_text(cells, 1) == "a in v" and answer_text(perfect, 1) == "b"
    assert answer_text(perfect, np.array([0.25, 0.75])) == "b 75\u00a0%"


# --- the document ---------------------------------------------------------------------------------------------------


def test_the_document_has_the_numbers_of_the_fusion(fuser):
    document = fuser.summary()
    assert titles(document) == [
        "",
        "Warnings",
        "Class priors",
        "Sources",
        "Dependence between sources",
        "Tests of the sources",
        "Differences from the majority",
        "Calibrations",
    ]
    row = dict(zip(table(document, "Class priors").header, table(document, "Class priors").rows[1]))
    estimate = fuser.prior_estimate_
    assert row["95 % interval"].text == f"{100 * estimate.low[1]:.1f} to {100 * estimate.high[1]:.1f}"
    assert row["this batch"].text == f"{100 * fuser.prior_[1]:.1f}" and "in posteriors" not in row
    trust = [dict(zip(table(document, "Sources").header, row))["trust"].text for row in table(document, "Sources").rows]
    assert trust == [f"{weight:.2f}" for weight in fuser.trust_.values()]
    assert f"equivalent to about {fuser.dependence_.n_effective:.1f} independent ones" in str(document)
    assert document.html().count("<img") == 3


def test_drift_names_the_source_that_changed():
    votes = VOTES.copy()
    votes["s3"] = "ill"
    fuser = Fuser(SOURCES, method="ml-product").fit(votes)
    facts = fusion_facts(fuser)
    assert [fault["sources"] for fault in facts["faults"]] == [["s3"]]
    assert facts["sources"][3]["fault"] == facts["faults"][0] and facts["faults"][0]["action"] is None
    row = table(fuser.summary(), "Tests of the sources").rows[3]
    assert row[0] == "s3" and row[4].best and {row[2].text, row[3].text} & {"100.0", "0.0"}
    assert row[-1] == facts["faults"][0]["kind"]


def test_the_search_of_min_divergence_is_drawn_with_its_gap():
    document = Fuser(SOURCES, method="min-divergence").fit(VOTES).summary()
    section = document.sections[-1]
    assert section.title == "Convergence" and f"{document.facts['gap']:.1g} nats per item" in section.content[0].text
    assert "<img" in section.content[1].html() and "trust" not in table(document, "Sources").header


def test_one_source_has_no_pairs_and_no_drift():
    rows = pd.DataFrame({"item": [f"case {i}" for i in range(60)], "source": "s0", "value": VOTES["s0"][:60]})
    document = Fuser({"s0": SOURCES["s0"]}, class_prior=[0.01, 0.99]).fit(long_answers(rows)).summary()
    assert "Dependence between sources" not in titles(document) and document.facts["items"] == 60
    assert table(document, "Tests of the sources").rows == [["s0", "not tested", *[None] * 5, ""]]


def test_a_fusion_of_blocks_and_a_calm_one_are_described():
    assert Fuser(SOURCES, method="ml-product").fit_blocks([VOTES[:300], VOTES[300:]]).summary().facts["items"] == 800
    fuser = Fuser(SOURCES, method="product").fit(VOTES)
    fuser.warnings_.clear()
    assert "- None." in str(fuser.summary()) and "declared copies share one vote" in str(fuser.summary())


# --- decisions ------------------------------------------------------------------------------------------------------


def test_decisions_beside_the_majority(fuser):
    result = decisions(fuser)
    batch = result.batch
    np.testing.assert_array_equal(batch.items(result.posterior), fuser.posterior_)
    n_ill = (VOTES.to_numpy() == "ill").sum(axis=1)
    expected = np.select([n_ill > 2, n_ill < 2], [fuser.classes_.tolist().index(c) for c in ("ill", "healthy")], -1)
    np.testing.assert_array_equal(batch.items(result.majority), expected)
    changed = batch.items(result.changed)
    decided = fuser.classes_[np.maximum(expected, 0)]
    np.testing.assert_array_equal(changed, (expected >= 0) & (decided != fuser.labels_))
    assert 0 < changed.sum() < len(changed) and result.n_items(result.changed) == changed.sum()
    rows = table(fuser.summary(), "Differences from the majority").rows
    assert [(row[0], row[1]) for row in rows] == [("ill", "healthy")] and rows[0][2].text == str(changed.sum())
    some = decisions(fuser, VOTES[:50])
    np.testing.assert_array_equal(some.batch.items(some.changed), changed[:50])


def test_contributions_add_up_to_the_log_odds(fuser):
    result = decisions(fuser)
    cases = changed_cases(fuser, result)
    assert sum(case.n_items for case in cases) == result.n_items(result.changed)
    assert [case.n_items for case in cases] == sorted((case.n_items for case in cases), reverse=True)
    for case in cases:
        p = case.probability
        assert sum(part.nats for part in case.contributions) == pytest.approx(np.log(p / (1 - p)))
        assert case.majority != case.predicted and p > 0.5
    assert re.search(r", 3 others \([+-]\d+\.\d\)$", cases[0].reasons(n=2))
    assert "class priors (" in cases[0].reasons(n=9)


def test_items_of_their_own_are_shown_from_the_surest():
    rng = np.random.default_rng(3)
    y = rng.random(300) < 0.15
    p = 1 / (1 + np.exp(-rng.normal(np.where(y, 1, -1)[:, None], 1.5, size=(300, 3))))
    old = 1 / (1 + np.exp(-rng.normal(np.where(TRUTH == "ill", 1, -1)[:, None], 1.5, size=(400, 3))))
    sources = {
        f"m{j}": Source(Calibration.from_predictions(TRUTH, np.column_stack([q, 1 - q]), symbols=["ill", "healthy"]))
        for j, q in enumerate(old.T)
    }
    votes = {f"m{j}": np.column_stack([q, 1 - q]) for j, q in enumerate(p.T)}
    fuser = Fuser(sources, method="ml-product").fit(votes)
    cases = changed_cases(fuser, decisions(fuser), max_cases=4)
    assert len(cases) == 4
    assert [c.probability for c in cases] == sorted((c.probability for c in cases), reverse=True)
    assert re.search(r"m\d \(ill \d+\s%, [+-]\d+\.\d\)", " ".join(on_answers(fuser, votes)[2].items))


def test_items_are_named_by_their_index_or_row(fuser):
    first = on_answers(fuser, VOTES)[2].items[0]
    place = int(re.match(r"row (\d+) \(and \d+ with the same answers\)", first)[1])
    named = VOTES.set_index(pd.Index([f"case {i}" for i in range(len(VOTES))]))
    assert entry_of(fuser).on_rows(fuser, named, None)[2].items[0].startswith(f"case {place} (and ")
    assert on_answers(fuser, VOTES.to_numpy().tolist())[2].items[0] == first
    rows = VOTES.rename_axis("item").reset_index().melt("item", var_name="source")
    rows["item"] = "case " + rows["item"].astype(str)
    assert on_answers(fuser, long_answers(rows))[2].items[0].startswith(f"case {place} (and ")
