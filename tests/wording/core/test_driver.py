"""Wording of core, driver."""

import pytest

from mixent.core.driver import run

from ...core.test_driver import SOURCE, Climb


def test_something_to_start_from_is_needed():
    with pytest.raises(ValueError, match="needs initial parameters: pass params or resume"):
        run(Climb(), SOURCE)
