"""Wording of capabilities, and of what estimators without a capability answer."""

import pytest

import mixent
from mixent import GaussianMixture, MEDClassifier, MixtureClassifier

from ..subjects import SOME, SUBJECTS, TABLE


def test_rows_without_a_label_are_refused():
    with pytest.raises(ValueError, match="needs one known label per sequence; y has no label for sequence 0"):
        SUBJECTS["HMMClassifier"].fit(y=SOME)


def test_steps_of_mixed_columns_are_refused():
    with pytest.raises(ValueError, match="all columns are steps of one variable.*use a row per step"):
        SUBJECTS["HMMClassifier"].fit(TABLE)


def test_rows_still_to_come_are_refused():
    one = SUBJECTS["MEDClassifier"]
    with pytest.raises(ValueError, match="got a generator, whose rows are still to come; join its blocks first"):
        one.fit(part for part in [one.X, one.X])
    with pytest.raises(ValueError, match="got 'rows.parquet'; if that is a file: mixent.data.read_frame reads it"):
        one.fit("rows.parquet")


def test_the_table_of_capabilities():
    table = mixent.capabilities(MixtureClassifier(), GaussianMixture())
    assert "MixtureClassifier\n  missing values  yes: integrated out exactly\n" in str(table)
    kernel = str(mixent.capabilities(MEDClassifier("precomputed")))
    assert "missing values  no: a kernel matrix has neither missing values nor categories" in kernel
