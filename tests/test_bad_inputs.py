"""Bad and odd inputs, by the hundred: each ends in a clear error or in a defined result, at every door.

The tables of cases are in `bad_inputs/`: a name, what is done, and what must come of it.
"""

import re
import signal
import threading
import time
import warnings
from contextlib import contextmanager, nullcontext

import pytest

from .bad_inputs import features, labels, methods, options

SECONDS = 5  # for one case; none should need one
API = {"features": features, "labels": labels, "options": options, "methods": methods}
API_CASES = [pytest.param(case, id=f"{door}: {case.name}") for door, table in API.items() for case in table.CASES]


@contextmanager
def in_time():
    """A case that hangs is stopped where the system can do that, and fails anywhere."""
    can_stop = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
    if can_stop:
        before = signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, 4 * SECONDS)
    began = time.process_time()
    try:
        yield
    finally:
        if can_stop:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert time.process_time() - began < SECONDS


def _too_long(number, stack):
    raise TimeoutError(f"still at it after {4 * SECONDS} seconds")


@pytest.mark.parametrize("case", API_CASES)
def test_python(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with in_time():
        if case.error is not None:
            assert case.match, "the message is part of the outcome"
            with pytest.raises(case.error, match=case.match):
                case.run()
        else:
            expected = nullcontext() if case.warns is None else pytest.warns(case.warns[0], match=case.warns[1])
            with expected:
                result = case.run()
            case.check(result)
