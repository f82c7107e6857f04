"""A disk that is full when a file is written again: the old file stays, and the error names it."""

import errno
import resource
import shutil
import subprocess
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent.base.document import Paragraph, Section
from mixent.data import write_frame
from mixent.evaluate.journal import Journal, Outcome
from mixent.fusion.calibration import Calibration
from mixent.fusion.serialize import save_calibrations
from mixent.report.html import write_report

from .saved import make

ROOM = 64 << 10  # bytes
RNG = np.random.default_rng(0)
LARGE = RNG.random(ROOM // 4)


@contextmanager
def limited(folder):
    """A small disk; where it cannot be mounted, files that may not be larger."""
    mounted = (
        shutil.which("mount")
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={2 * ROOM}", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def model(size):
    found = mixent.load(make.HERE / "MixtureClassifier.mixent")
    found.search_ = [LARGE[:size]]
    return found


def counts(size):
    return {
        f"source {i}": Calibration.from_counts(100 * LARGE[:9].reshape(3, 3) + i, ["a", "b", "c"])
        for i in range(1 + size // 4)
    }


WRITE = {
    "m.mixent": lambda path, size: mixent.save(model(size), path),
    "page.html": lambda path, size: write_report(path, "Page", [Section("Text", (Paragraph("x" * 16 * (1 + size)),))]),
    "calibration.json": lambda path, size: save_calibrations(counts(size), path),
    "table.csv": lambda path, size: write_frame(pd.DataFrame({"x": LARGE[: 1 + size]}), path),
    "table.parquet": lambda path, size: write_frame(pd.DataFrame({"x": LARGE[: 1 + size]}), path),
}


@pytest.mark.parametrize("name", WRITE)
def test_a_full_disk_leaves_the_old_file_and_is_named(name, tmp_path):
    with limited(tmp_path):
        path = tmp_path / name
        WRITE[name](path, 0)
        old = path.read_bytes()
        with pytest.raises(OSError) as error:
            WRITE[name](path, len(LARGE))
        assert error.value.errno in (errno.ENOSPC, errno.EFBIG) and error.value.filename == str(path)
        assert path.read_bytes() == old and [p.name for p in tmp_path.iterdir()] == [name]


def outcome(fold, size=1):
    return Outcome({"method": "m", "repeat": 0, "fold": fold, "failed": None}, LARGE[:size].reshape(-1, 1))


def test_a_journal_keeps_every_finished_fold_when_the_disk_is_full(tmp_path):
    with limited(tmp_path):
        path = tmp_path / "folds.jsonl"
        journal = Journal.open(path, "k", "f")
        journal.add("s", outcome(0))
        with pytest.raises(OSError) as error:
            journal.add("s", outcome(1, len(LARGE)))
        assert error.value.filename == str(path)
        journal.add("s", outcome(2))  # there is room again
        assert sorted(place[3] for place in Journal.open(path, "k", "f").done) == [0, 2]


def test_a_journal_cut_anywhere_keeps_the_folds_before(tmp_path):
    """As a killed process or a lost machine leaves it; the next run continues on a line of its own."""
    path = tmp_path / "folds.jsonl"
    journal = Journal.open(path, "k", "f")
    head = path.stat().st_size
    for fold in range(3):
        journal.add("s", outcome(fold))
    whole = path.read_bytes()
    ends = [head + i + 1 for i, byte in enumerate(whole[head:]) if byte == ord("\n")]
    for end in range(head, len(whole) + 1):
        path.write_bytes(whole[:end] + b"\0" * (end % 3))  # some file systems add zeros
        again = Journal.open(path, "k", "f")
        assert len(again.done) >= sum(end >= e for e in ends)
        again.add("s", outcome(9))
        assert {place[3] for place in Journal.open(path, "k", "f").done} >= {9, *range(sum(end >= e for e in ends))}
