"""Without an extra, what needs it says which one to install."""

import sys

import pytest
from typer.testing import CliRunner

from mixent.cli import app
from mixent.data.files import read_frame
from mixent.displays import UncertaintyDisplay


@pytest.fixture
def without(monkeypatch):
    """Hide a library, as if it were not installed."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def test_reading_parquet_asks_for_pyarrow(without, tmp_path):
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    without("pyarrow")
    with pytest.raises(
        ImportError, match=r'pyarrow is needed for table.parquet; install it with: pip install "mixent\[parquet\]"'
    ):
        read_frame(tmp_path / "table.parquet")


def test_drawing_asks_for_matplotlib(without):
    display = UncertaintyDisplay.from_predictions(["a", "b"], [[0.9, 0.1], [0.2, 0.8]])
    without("matplotlib")
    with pytest.raises(
        ImportError, match=r'matplotlib is needed to draw; install it with: pip install "mixent\[plot\]"'
    ):
        display.plot()


def test_a_command_says_what_to_install_in_one_line(without, tmp_path, monkeypatch):
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    monkeypatch.chdir(tmp_path)
    without("pyarrow")
    result = CliRunner().invoke(app, ["fit", "table.parquet", "-t", "kind", "-o", "m.mixent"])
    words = 'pyarrow is needed for table.parquet; install it with: pip install "mixent[parquet]"'
    assert result.exit_code != 0 and f"Error: {words}" in result.output
    assert "Traceback" not in result.output
