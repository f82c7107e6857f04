"""Wording of report, comparison."""

from dataclasses import replace

from ...report.test_comparison import page_of


def test_the_page_shows_columns_as_they_were_compared(found, tmp_path):
    listed = page_of(replace(found, options={"categorical": ["code"]}), tmp_path)
    assert "1 of numbers, 1 of categories" in listed and "2 of numbers" in page_of(found, tmp_path)
