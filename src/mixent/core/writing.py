"""Files written whole or not at all: a temporary file in the same folder replaces the old one when it is complete.

A full disk, an error or a killed process leaves the old file as it was. What a killed process leaves of its temporary
file is removed by the next one that writes the same file.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OLD = 24 * 3600.0  # seconds after which the temporary file of another machine counts as left behind


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a temporary file that replaces `path` if the block ends without an error.

    Parameters
    ----------
    path : file name
        A link is followed. What exists and is not a regular file is refused.
    """
    path = Path(path)
    target = path.resolve() if path.is_symlink() else path
    if target.exists() and not target.is_file():
        kind = IsADirectoryError if target.is_dir() else OSError
        raise kind(f"{path} is not a regular file; pass the name of a file to write to")
    for left in target.parent.glob(f"{_escaped(target.name)}.*.part"):
        if _is_stale(left, target.name):
            with suppress(OSError):
                left.unlink()
    part = target.with_name(f"{target.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with naming(path, part):
            yield part
            if target.exists():
                shutil.copymode(target, part)
            part.replace(target)  # atomic: a reader never sees an incomplete file
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, whole or not at all.

    Parameters
    ----------
    path : file name
    text : str
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def append_line(path: str | os.PathLike[str], line: str) -> None:
    """Add a line to a text file, whole or not at all unless the process is killed; it is not kept in a buffer.

    Parameters
    ----------
    path : file name
    line : str
        Without a line break.
    """
    with naming(path), Path(path).open("ab", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        left = memoryview(f"{line}\n".encode())
        try:
            while left:
                left = left[stream.write(left) :]
        except BaseException:
            stream.truncate(end)
            raise


@contextmanager
def naming(path: str | os.PathLike[str], part: Path | None = None) -> Iterator[None]:
    """Add the name of the file to an error of the system that has none, such as a full disk, or that of `part`."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(path), str(part)):
            raise
        raise OSError(error.errno, error.strerror or os.strerror(error.errno), str(path)) from error


def _escaped(name: str) -> str:
    """A file name as a pattern that fits it alone."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _is_stale(part: Path, name: str) -> bool:
    """Whether the process that wrote a temporary file of `name` has ended, or has not written to it for a day."""
    match = re.fullmatch(r"\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.part", part.name[len(name) :])
    if match is None:
        return False
    machine, process = match.groups()
    if machine == _machine() and os.name == "posix":  # elsewhere os.kill would end the process
        return not _is_running(int(process))
    with suppress(OSError):
        return time.time() - part.stat().st_mtime > _OLD
    return False


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)  # signal 0: only asks
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        pass
    return True


def _machine() -> str:
    """8 digits that differ between machines that share a folder."""
    return f"{zlib.crc32(platform.node().encode()):08x}"
