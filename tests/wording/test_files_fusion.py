"""Wording of files fusion."""

import pytest

import mixent
from mixent.core import serialize
from mixent.fusion import Fuser
from mixent.persistence import SavedFileError
from mixent.persistence.files import known_classes

from ..test_files_fusion import HARD, NEW


def test_posteriors_of_other_classes_are_refused(tmp_path):
    fuser = Fuser(HARD).fit(NEW)
    fuser.__getstate__()  # computes all results
    fuser.posterior_ = fuser.posterior_[:, :1]
    for gone in ("_fitted",):
        delattr(fuser, gone)
    serialize.save(tmp_path / "f.mixent", fuser, known_classes(), {})
    with pytest.raises(SavedFileError, match="posterior_ must have a column for each class"):
        mixent.load(tmp_path / "f.mixent")
