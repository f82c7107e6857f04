"""A fit that was interrupted resumes from its checkpoint and ends with the same bits."""

import os
import pickle
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier, load, save
from mixent.base.fingerprint import written
from mixent.core import checkpoint as core
from mixent.options import Conditional, Search

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3)) + 2.0 * RNG.integers(3, size=150)[:, None]
Y = (X[:, 0] > 1).astype(int) + (X[:, 1] > 2)
MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
FITS = {
    "starts": (GaussianMixture(3, n_init=3), X),
    "missing values": (GaussianMixture(3, "VVE"), MISSING),
    "search": (GaussianMixture("auto", "VVI", search=Search(max_components=3)), X),
    "growth": (GaussianMixture(3, search=Search(growth="incremental")), X),
    "classes": (MixtureClassifier(2), X, Y),
    "search of classes": (MixtureClassifier(search=Search("bic", max_components=2)), X, Y),
    "default search": (MixtureClassifier(search=Search(max_components=2)), X, Y),
    "default search of shared": (SharedMixtureClassifier(search=Search(max_components=3)), X, Y),
    "noise": (GaussianMixture(2, outliers="noise"), MISSING),
    "t": (MixtureClassifier(2, outliers="t"), X, Y),
    "conditional": (MixtureClassifier(2, training="conditional"), X, Y),
    "validation": (SharedMixtureClassifier(4, training=Conditional(validation=0.2)), X, Y),
    "lbfgs": (SharedMixtureClassifier(4, training=Conditional(solver="lbfgs")), X, Y),
}


class KilledError(BaseException):
    """Ends a fit, like a signal that cannot be handled."""


def bits(model):
    """All numbers of a fitted model, but for the seconds of its history."""
    trace = [(s.n_pass, s.objective, s.gain, s.step, s.kind, s.accepted, s.segment) for s in model.run_.trace]
    return written((model.params_, model.statistics_, model.problem_, trace, model.search_))


def killed_after(monkeypatch, n_writes):
    """Write as often as possible, and end the fit after this number of writes."""
    write, done = core.Checkpoint._write, []

    def counted(self):
        write(self)
        done.append(self)
        if len(done) == n_writes:
            raise KilledError

    monkeypatch.setattr(core, "SECONDS", 0.0)
    monkeypatch.setattr(core, "SHARE", 1e9)
    monkeypatch.setattr(core.Checkpoint, "_write", counted)
    return done


def killed_fit(monkeypatch, n_writes, model, *data):
    with monkeypatch.context() as patch:
        killed_after(patch, n_writes)
        with pytest.raises(KilledError):
            model.fit(*data)


def prepared(name, **params):
    model, *data = FITS[name]
    return type(model)(**{**model.get_params(deep=False), "random_state": 0, "n_jobs": 1, **params}), data


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_was_killed_several_times_ends_with_the_same_bits(name, monkeypatch, tmp_path):
    model, data = prepared(name)
    whole = bits(model.fit(*data))
    path = tmp_path / "fit.checkpoint"
    n_killed = 0
    for n_writes in (1, 4, 9, 14, 25, 10**9):
        with monkeypatch.context() as patch:
            killed_after(patch, n_writes)
            again, _ = prepared(name, checkpoint=path)
            try:
                again.fit(*data)
                break
            except KilledError:
                n_killed += 1
                assert path.exists()
    assert n_killed >= 2 and bits(again) == whole and not path.exists()


def test_finished_tasks_are_not_repeated(monkeypatch, tmp_path):
    runs, run, task = [], core.run, core.Checkpoint.task

    def counted(*args, **options):
        runs.append(1)
        return run(*args, **options)

    def until_third(self, key, compute):
        if len(self._done) == 2:
            self._write()
            raise KilledError
        return task(self, key, compute)

    monkeypatch.setattr(core, "run", counted)
    model, data = prepared("search", checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(core.Checkpoint, "task", until_third)
        with pytest.raises(KilledError):
            model.fit(*data)
    assert runs
    model.fit(*data)
    n_runs = len(runs)
    runs.clear()
    model.fit(*data)
    assert n_runs == len(runs)


def test_ctrl_c_writes_the_state(monkeypatch, tmp_path):
    path, n_seen = tmp_path / "c", []

    def interrupt(done, total, text):
        n_seen.append(done)
        if len(n_seen) == 8:
            raise KeyboardInterrupt

    model, data = prepared("starts", checkpoint=path, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert path.exists()
    shown = []
    again = prepared("starts", checkpoint=path, progress=lambda done, *_: shown.append(done))[0].fit(*data)
    assert shown[0] >= n_seen[-2]  # the passes before are not repeated
    assert bits(again) == bits(prepared("starts")[0].fit(*data))


def test_a_seed_that_was_drawn_is_that_of_the_checkpoint(monkeypatch, tmp_path):
    path = tmp_path / "c"
    killed_fit(monkeypatch, 4, prepared("starts", checkpoint=path, random_state=None)[0], X)
    copy = path.read_bytes()
    first = prepared("starts", checkpoint=path, random_state=None)[0].fit(X)
    path.write_bytes(copy)
    assert bits(prepared("starts", checkpoint=path, random_state=None)[0].fit(X)) == bits(first)


@pytest.mark.parametrize("change", ["rows", "weights", "parameters", "labels"])
def test_the_checkpoint_of_another_fit_is_refused(change, monkeypatch, tmp_path):
    path = tmp_path / "c"
    killed_fit(monkeypatch, 3, prepared("classes", checkpoint=path)[0], X, Y)
    model, data = prepared("classes", checkpoint=path, tol=1e-4 if change == "parameters" else 1e-5)
    if change == "rows":
        data[0] = X + 1e-12
    if change == "labels":
        data[1] = np.where(Y == 2, 3, Y)
    if change == "weights":
        data.append(np.ones(len(X)))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another fit"):
        model.fit(*data)
    assert path.read_bytes() == before


def test_a_file_that_is_no_checkpoint_is_not_overwritten(tmp_path):
    text, model_file = tmp_path / "data.csv", tmp_path / "m.mixent"
    text.write_text("a,b\n1,2\n")
    save(GaussianMixture(checkpoint=tmp_path / "c").fit(X), model_file)
    assert load(model_file).checkpoint is None
    for path in (text, model_file):
        before = path.read_bytes()
        with pytest.raises(ValueError, match="checkpoint"):
            GaussianMixture(checkpoint=path).fit(X)
        assert path.read_bytes() == before


def test_a_folder_that_does_not_exist_is_an_error_at_once(tmp_path):
    with pytest.raises(ValueError, match="absent"):
        GaussianMixture(checkpoint=tmp_path / "absent" / "c").fit(X)


def test_a_full_disk_does_not_end_the_fit(monkeypatch, tmp_path):
    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(core, "SECONDS", -1.0)
    with core.Checkpoint(tmp_path / "other", "", 0) as other:
        assert other.path.exists()
        monkeypatch.setattr(core.Checkpoint, "_write", full)
        other._due = 0.0
        with pytest.warns(UserWarning, match="checkpoint"):
            other.task("key", lambda run: 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert other.task("second", lambda run: 2) == 2  # one warning


def test_other_processes_do_not_record():
    assert pickle.loads(pickle.dumps(core.Checkpoint("c", "", 0))) is None


# --- killed processes ------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, warnings
import numpy as np
from mixent import GaussianMixture
from mixent.core import checkpoint
from mixent.base.fingerprint import written
warnings.simplefilter("ignore")
checkpoint.SECONDS, checkpoint.SHARE = 0.02, 0.5
kind, path = sys.argv[1:]
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 4)) + 1.5 * rng.integers(4, size=2000)[:, None]
print("ready", flush=True)
common = {"random_state": 0, "n_jobs": 1, "checkpoint": path or None}
if kind == "search":
    model = GaussianMixture("auto", ["VVI", "VVV"], **common)
else:
    model = GaussianMixture(6, n_init=3, tol=0.0, max_iter={"short": 60, "long": 250}[kind], **common)
model.fit(X)
print(written((model.params_, model.statistics_, model.problem_, model.search_)), flush=True)
"""


def in_process(kind, path, kill_after=None):
    """What the script prints, None where it was killed this number of seconds after the imports; seconds of the fit."""
    source = str(Path(core.__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, kind, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        began = time.perf_counter()
        if kill_after is not None:
            time.sleep(kill_after)
            process.kill()
        return process.stdout.read() or None, time.perf_counter() - began


def check_killed(kind, n_kills, seed, tmp_path):
    whole, seconds = in_process(kind, "")
    rng, path, n_killed = np.random.default_rng(seed), tmp_path / "c", 0
    for _ in range(n_kills):
        result, _ = in_process(kind, path, rng.uniform(0.05, 0.4) * seconds)
        n_killed += result is None
        assert result in (None, whole)
    assert n_killed and in_process(kind, path)[0] == whole
    assert [f.name for f in tmp_path.iterdir()] == []  # neither the checkpoint nor what a killed process left
    return n_killed


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_process_that_was_killed_resumes(tmp_path):
    check_killed("short", 2, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process")
@pytest.mark.parametrize("kind", ["long", "search"])
def test_a_process_that_was_killed_twenty_times_resumes(kind, tmp_path):
    assert check_killed(kind, 20, 1, tmp_path) >= 10
