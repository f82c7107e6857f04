"""Wording of report, comparison."""

from dataclasses import replace
from html import escape

from ...comparison.test_result import stopped
from ...report.test_comparison import page_of


def test_the_page_shows_columns_as_they_were_compared(found, tmp_path):
    listed = page_of(replace(found, options={"categorical": ["code"]}), tmp_path)
    assert "1 of numbers, 1 of categories" in listed and "2 of numbers" in page_of(found, tmp_path)


def test_the_page_does_not_claim_the_same_folds_of_methods_that_were_stopped(found, tmp_path):
    claim, name = "All methods used the same folds", found.ranking()[-1]
    assert claim in page_of(found, tmp_path)
    part = replace(stopped(found.cv, name, 1), n_planned=5)
    page = page_of(replace(found, cv=part, skipped={name: "stopped after 1 of 5 folds: clearly behind"}), tmp_path)
    assert claim not in page and "by 3 of the 5 folds of cross-validation (the time budget ended before the" in page
    assert "Methods that were stopped early or failed were scored on some of these folds only, the others on" in page
    name = escape(name)
    assert f"{name} (1 of 5 folds)" in page and f"Stopped early: {name} after 1 of 5 folds: clearly behind." in page
    assert "Left out" not in page and "Methods left out" not in page
