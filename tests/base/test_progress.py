"""Progress on a terminal, in a notebook without widgets, and in a log."""

import io
import pickle
import sys
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress
from tests.subjects import TABLE, Y

import mixent
from mixent import GaussianMixture
from mixent.base import progress as module
from mixent.base.progress import Bar, Lines, bar_on, progress_bar


@pytest.fixture
def outputs(monkeypatch):
    """What a notebook would show, state by state; IPython itself is not needed."""
    states = []
    handle = SimpleNamespace(update=lambda data, raw: states.append(data["text/html"]))

    def display(data, *, raw, display_id):
        states.append(data["text/html"])
        return handle

    fake = ModuleType("IPython.display")
    fake.display = display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(module, "REDRAW", 0.0)
    return states


def test_a_notebook_shows_one_output_that_is_replaced(outputs, recwarn, capsys):
    GaussianMixture(2, progress=True, random_state=0).fit(TABLE[["height", "age"]])
    assert outputs[0] == "" == outputs[-1] and len(outputs) > 2
    assert all(state.startswith("<progress value=") for state in outputs[1:-1])
    assert not recwarn.list and capsys.readouterr() == ("", "")


def test_names_in_a_notebook_are_escaped(outputs):
    with progress_bar(True, "<b>") as show:
        show(1, 2, "<script>")
    assert outputs[1] == '<progress value="1" max="2"></progress> &lt;b&gt;: &lt;script&gt;'


def test_a_comparison_in_a_notebook_is_a_table_that_fills(outputs, recwarn, capsys):
    options = {"methods": ["naive Bayes"], "baselines": False, "folds": 2, "n_jobs": 1}
    mixent.compare(TABLE, Y, progress=True, **options)
    assert outputs[0] == "" == outputs[-1]
    assert outputs[-3].startswith("<pre>2 of 2 folds") and "naive Bayes" in outputs[-2]  # which is fitted to all rows
    assert all(character.isprintable() or character == "\n" for character in outputs[-2])
    assert not recwarn.list and capsys.readouterr() == ("", "")


def test_a_notebook_is_not_redrawn_more_often_than_eyes_can_follow(outputs, monkeypatch):
    monkeypatch.setattr(module, "REDRAW", 3600.0)
    with progress_bar(True, "fit") as show:
        for done in range(100):
            show(done, 100, "x")
    assert len(outputs) == 3  # empty, the first state, empty


def test_a_log_has_a_line_now_and_then(monkeypatch):
    clock = iter([0.0, 1.0, 6.0, 6.0, 7.0, 12.0, 12.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    text = io.StringIO()
    show = Lines(Console(file=text, width=20), "fit", seconds=5.0)
    for done in range(1, 5):
        show(done, 4, "a [b] longer_than_one_line")
    assert text.getvalue().splitlines() == [
        "fit: 2 of 4, a [b] longer_than_one_line",
        "fit: 4 of 4, a [b] longer_than_one_line",
    ]


def test_a_terminal_has_a_bar_and_other_processes_none():
    text = io.StringIO()
    with bar_on(Console(file=text, force_terminal=True, width=60), "fit") as show:
        show(1, 2, "[x]")
        assert "fit: [x]" in show.bar.tasks[0].description.replace("\\", "")
        elsewhere = pickle.loads(pickle.dumps(show))
        assert elsewhere(2, 2, "end") is None and show.bar.tasks[0].completed == 1
    assert pickle.loads(pickle.dumps(Lines(Console(file=text), "fit"))) is Bar.nothing
    assert isinstance(show.bar, Progress)
