"""Damaged and crafted files of every estimator: an error of one kind, or a model whose answers are proper."""

import resource
import sys
import time
from collections import Counter

import numpy as np
import pytest

import mixent
from mixent.base.few_rows import are_proper
from mixent.base.registry import entries
from mixent.persistence import SavedFileError

from .mutations import mutated
from .saved import make
from .subjects import PUBLIC, subject
from .subjects import SUBJECTS as ALL

SUBJECTS = ALL | {
    "mixture with noise": subject(mixent.MixtureClassifier(1, "VVV", outliers="noise", random_state=0)),
    "mixture of t distributions": subject(mixent.GaussianMixture(2, "VVI", outliers="t", random_state=0)),
}
NAMES = sorted(SUBJECTS)
SLOWEST = 2.0  # seconds that a file may take to be read
GROWTH = 600  # megabytes that reading files may take, at most


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """The bytes of a file of each estimator, and of some options that change what a file holds."""
    folder, found = tmp_path_factory.mktemp("files"), {}
    for name in NAMES:
        path = make.HERE / f"{name}.mixent"
        if name not in PUBLIC:
            path = folder / "m.mixent"
            mixent.save(SUBJECTS[name].usual, path, foreign="skops")
        found[name] = path.read_bytes()
        mixent.load(path)  # what is imported at first use does not count
    return found


def peak():
    """Megabytes that the process had at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10))


def outcome(subject, data, path):
    """Whether the file is refused or answers; everything else is an error of the test."""
    path.write_bytes(data)
    start = time.perf_counter()
    try:
        model = mixent.load(path)
    except SavedFileError:
        model = None
    seconds = time.perf_counter() - start
    if model is None:
        return "refused", seconds
    method = subject.speaks
    if not hasattr(model, method):  # the file holds another model, one that was inside
        return "other", seconds
    try:
        with np.errstate(all="ignore"):
            answers = subject.said(model)
    except ValueError:  # the columns have other names or kinds, and these rows are refused
        return "rows refused", seconds
    assert are_proper(method, answers), "answers are not finite, or not probabilities"
    return "answered", seconds


def read_all(originals, n, tmp_path, seed):
    start, counts, slowest = peak(), Counter(), 0.0
    for i in range(n):
        name = NAMES[i % len(NAMES)]
        change, data = mutated(originals[name], (seed, i))
        try:
            what, seconds = outcome(SUBJECTS[name], data, tmp_path / "m.mixent")
        except Exception as error:
            raise AssertionError(f"{name}, {change}, seed ({seed}, {i}): {type(error).__name__}: {error}") from error
        counts[what] += 1
        slowest = max(slowest, seconds)
    print(f"{n} files: {dict(counts)}; slowest {slowest:.2f} s; growth {peak() - start:.0f} MB")
    assert slowest < SLOWEST and peak() - start < GROWTH
    return counts


@pytest.mark.filterwarnings("ignore")
def test_some_damaged_files_of_all_estimators(originals, tmp_path):
    counts = read_all(originals, 200, tmp_path, 0)
    assert counts["refused"] > 100 and counts["answered"] > 30


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ten_thousand_damaged_files_of_all_estimators(originals, tmp_path):
    counts = read_all(originals, 10_000, tmp_path, 1)
    assert counts["refused"] > 5000


def test_every_estimator_is_among_them():
    assert {entry.cls.__name__ for entry in entries() if entry.listed} <= {*PUBLIC}
