"""Wording of classical, saved."""

import pytest

import mixent
from mixent import ParzenClassifier
from mixent.persistence import SavedFileError

from ...classical.test_saved import X, y


def test_a_file_without_its_windows_is_refused(tmp_path):
    model = ParzenClassifier(0.5).fit(X, y)
    del model.windows_
    mixent.save(model, tmp_path / "m.mixent")
    with pytest.raises(SavedFileError, match="windows_ is missing or is not of type Windows"):
        mixent.load(tmp_path / "m.mixent")
