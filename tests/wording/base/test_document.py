"""Wording of base, document."""

import pytest

from mixent.base.document import Table

from ...base.test_document import EVERYTHING


def test_plain_text():
    expected = """A model

What it is.

Parts
-----

Inner

- first
- second

Caption
name       value
a           1.50
long name      2

  x = 1
  y = 2"""
    assert EVERYTHING.text() == str(EVERYTHING) == expected


def test_a_row_too_short_is_refused():
    with pytest.raises(ValueError, match="table 'T': a row has 1 cells for 2 columns"):
        Table("T", ["a", "b"], [["x"]])
