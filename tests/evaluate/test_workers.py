"""Tasks in processes that can be ended: one that hangs, dies or cannot be sent costs only itself."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import mixent
from mixent.evaluate import cross_validate
from mixent.evaluate.workers import Ended, Here, Task, Work, Workers, limited

SCRIPT = """
import numpy as np
from sklearn.naive_bayes import GaussianNB
from mixent.evaluate import cross_validate

print("once")


class Mine(GaussianNB):
    pass


X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
print(cross_validate({"mine": Mine()}, X, y, folds=2, n_jobs=2).ranking())
"""


def trial(kind, number):
    if kind == "hangs":
        time.sleep(60)
    if kind == "exits":
        os._exit(3)
    if kind == "killed":
        os.kill(os.getpid(), 9)
    if kind == "raises":
        raise KeyError("no")
    return kind, number, os.environ["OMP_NUM_THREADS"], os.getpid()


class Hangs(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        time.sleep(60)


class Exits(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        os._exit(3)


def rows(n=60):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) + (np.arange(n) % 2)[:, None], np.arange(n) % 2


@pytest.fixture(scope="module")
def results():
    names = ["fine", "hangs", "exits", "killed", "cannot be sent", "good"]
    models = {name: name for name in names} | {"cannot be sent": threading.Lock()}
    with Workers(Work({"trial": trial}, models, [10, 20]), 2) as workers:
        processes = [worker.process for worker in workers.workers]
        tasks = iter([Task(name, 0) for name in names] + [Task("fine", 1)])
        found = dict(workers.run(tasks, lambda task: 0.3 if task.model == "hangs" else 60.0))
        processes += [worker.process for worker in workers.workers]
    return found, processes


def test_each_task_has_its_result_or_its_end(results):
    found, _ = results
    assert found[Task("fine", 0)][:3] == ("fine", 10, "1") and found[Task("fine", 1)][:3] == ("fine", 20, "1")
    assert found[Task("good", 0)][:3] == ("good", 10, "1")
    ended = {task.model: result for task, result in found.items() if isinstance(result, Ended)}
    assert {name: result.overran for name, result in ended.items()} == {
        "hangs": True,
        "exits": False,
        "killed": False,
        "cannot be sent": False,
    }
    assert ended["hangs"].seconds < 5


def test_no_process_is_left(results):
    assert all(process.exitcode is not None for process in results[1])
    pids = [process.pid for process in results[1]]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_an_exception_of_the_function_is_raised():
    with pytest.raises(KeyError, match="no"):
        limited(trial, "raises", 60.0)


def test_here_is_this_process():
    with Here(Work({"trial": lambda model, data: (model, data, os.getpid())}, {"a": 1}, [2])) as here:
        assert list(here.run(iter([Task("a", 0)]))) == [(Task("a", 0), (1, 2, os.getpid()))]


def test_classes_of_a_script_work_and_the_script_runs_once(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    text = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True).stdout
    assert text == "once\n['mine']\n"


def test_a_method_whose_process_dies_failed():
    cv = cross_validate({"dies": Exits(), "naive": GaussianNB()}, *rows(), folds=2, n_jobs=2)
    assert cv.ranking() == ["naive"] and "status 3" in cv.failures["dies"]
    assert np.isnan(cv.values("dies", "log_loss")).all()


def test_a_fit_that_takes_longer_than_the_limit_is_ended():
    began = time.monotonic()
    methods = {"hangs": Hangs(), "naive": GaussianNB()}
    result = mixent.compare(*rows(), methods=methods, baselines=False, n_jobs=2, folds=2, limit=1.5)
    assert time.monotonic() - began < 30
    assert result.recommended == "naive" and set(result.skipped) == {"hangs"}


def test_a_budget_holds_inside_a_fit():
    began = time.monotonic()
    methods = {"hangs": Hangs(), "naive": GaussianNB(), "other": GaussianNB(var_smoothing=0.1)}
    result = mixent.compare(*rows(), methods=methods, baselines=False, n_jobs=1, folds=2, budget=4.0)
    assert time.monotonic() - began < 15
    assert result.recommended in ("naive", "other") and "hangs" in result.skipped and result.winner is not None
