"""Wording of report, data."""

from mixent.report.data import columns_section

from ...report.test_data import FRAME


def test_rows_and_columns():
    text, _table = columns_section(FRAME)
    assert text.text.startswith("6 rows and 3 columns (2 of numbers, 1 of categories); 11 % of the values are missing.")
