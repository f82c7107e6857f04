"""Files are written whole or not at all, with room on the disk or without."""

import errno
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mixent.core import writing
from mixent.core.writing import append_line, replacing, write_text


def part_of(target, process, machine=None):
    return target.with_name(f"{target.name}.{machine or writing._machine()}-{process}-0123abcd.part")


def ended_process():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    write_text(tmp_path / "a", "old")

    def half():
        with replacing(tmp_path / "a") as part:
            part.write_text("new")
            raise KeyError("half")

    with pytest.raises(KeyError):
        half()
    assert (tmp_path / "a").read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path):
    write_text(tmp_path / "a", "old")

    def full():
        with replacing(tmp_path / "a") as part:
            part.write_text("n")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError) as error:
        full()
    assert error.value.errno == errno.ENOSPC and error.value.filename == str(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"


def test_what_ended_processes_left_is_cleared_and_no_more(tmp_path):
    """Not the file of a running process, of another machine, of another target, or one that merely looks alike."""
    target, dead = tmp_path / "m[1].mixent", ended_process()
    left = part_of(target, dead)
    kept = [
        part_of(target, os.getpid()),
        part_of(target, 1),  # runs, and belongs to another user for most who run this
        part_of(target, dead, "00000000"),
        part_of(tmp_path / "m1.mixent", dead),
        part_of(tmp_path / "m[1].mixent.b", dead),
        tmp_path / "m[1].mixent.notes.part",
    ]
    old = part_of(target, 1, "00000001")
    for path in (left, old, *kept):
        path.write_text("x")
    os.utime(old, (time.time() - 3 * 24 * 3600,) * 2)
    write_text(target, "new")
    assert sorted(tmp_path.iterdir()) == sorted([target, *kept]) and target.read_text() == "new"


KILLED = """
import os, sys, time
from mixent.core.writing import replacing
with replacing(sys.argv[1]) as part:
    part.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_the_old_file_and_the_next_writer_clears_up(tmp_path):
    target = tmp_path / "a"
    write_text(target, "old")
    with subprocess.Popen([sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        write_text(target, "other")
        assert len(list(tmp_path.iterdir())) == 2  # the part of the running process stays
        process.send_signal(signal.SIGKILL)
    assert target.read_text() == "other" and len(list(tmp_path.iterdir())) == 2
    write_text(target, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["a"] and target.read_text() == "new"


def test_links_are_followed_and_other_things_refused(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a").read_text() == "new"
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "x")
    with pytest.raises(OSError, match="regular file"):
        write_text(os.devnull, "x")


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX systems")
def test_permissions_of_a_replaced_file_stay(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o600)
    write_text(path, "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o600


def test_the_error_of_another_file_keeps_its_name(tmp_path):
    other = tmp_path / "absent.csv"
    with pytest.raises(FileNotFoundError) as error, replacing(tmp_path / "out"):
        other.read_text()
    assert error.value.filename == str(other)


class SmallDisk(io.FileIO):
    """A file that finds room for 20 bytes."""

    def write(self, data):
        room = 20 - self.seek(0, os.SEEK_END)
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data[:room])


def test_a_line_is_added_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "j"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, mode, buffering: SmallDisk(path, mode.replace("b", "")))
        append_line(path, "0123456789")
        with pytest.raises(OSError) as error:
            append_line(path, "0123456789")
    assert error.value.errno == errno.ENOSPC and error.value.filename == str(path)
    assert path.read_bytes() == b"0123456789\n"
