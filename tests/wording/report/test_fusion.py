"""Wording of report, fusion."""

import pytest

from mixent.report import model_report

from ...report.test_fusion import CLASSES, VOTES


def test_what_is_refused(fuser, tmp_path):
    with pytest.raises(ValueError, match="y is only used with X"):
        model_report(tmp_path / "r.html", fuser, y=CLASSES)
    with pytest.raises(ValueError, match="y must have one class for each of 800 items; it has 2"):
        model_report(tmp_path / "r.html", fuser, VOTES, CLASSES[:2])
    assert not (tmp_path / "r.html").exists()
