"""Fixtures of tests/cli which tests of wording use too."""

from ...cli.conftest import fails, majority, mixent, stock
from ...cli.test_codes import table
from ...cli.test_errors import bad_files
from ...cli.test_fusion import files, grades
from ...cli.test_novelty import detector
from ...cli.test_registered import fitted
from ...cli.test_report import votes
from ...cli.test_update import model

__all__ = [
    "bad_files",
    "detector",
    "fails",
    "files",
    "fitted",
    "grades",
    "majority",
    "mixent",
    "model",
    "stock",
    "table",
    "votes",
]
