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


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("size,kind\n1,a\n2,a\n5,b\n6,b\n")
    return path


def test_reading_a_file_asks_for_pandas(without, table):
    without("pandas")
    with pytest.raises(
        ImportError, match=r'pandas is needed to read table.csv; install it with: pip install "mixent\[pandas\]"'
    ):
        read_frame(table)


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


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["fit", "table.csv", "-t", "kind", "-o", "m.mixent"],
            'pandas is needed to read table.csv; install it with: pip install "mixent[pandas]"',
        ),
        (
            ["demo"],
            'pandas is needed to write the example tables; install it with: pip install "mixent[pandas]"',
        ),
    ],
)
def test_a_command_says_what_to_install_in_one_line(without, table, monkeypatch, command, words):
    monkeypatch.chdir(table.parent)
    without("pandas")
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0 and f"Error: {words}" in result.output
    assert "Traceback" not in result.output
