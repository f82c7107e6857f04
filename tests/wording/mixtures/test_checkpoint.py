"""Wording of mixtures, checkpoint."""

import re

import pytest

from mixent import GaussianMixture
from mixent.core import checkpoint as core

from ...mixtures.test_checkpoint import X


def refused(path):
    with pytest.raises(ValueError) as error:
        GaussianMixture(checkpoint=path).fit(X)
    return str(error.value)


def test_the_checkpoint_of_another_fit(tmp_path):
    with pytest.raises(KeyError), core.Checkpoint(tmp_path / "c", "other", 0):
        raise KeyError
    assert refused(tmp_path / "c") == (
        f"{tmp_path / 'c'} is the checkpoint of another fit (other rows, labels, weights or parameters, or another "
        "version of mixent or numpy); pass another file name, or delete the file to start over"
    )


def test_a_file_that_is_no_checkpoint(tmp_path):
    (tmp_path / "c").write_text("a,b")
    expected = r"c is not a mixent file, .*; a checkpoint is expected: pass another file name, or delete the file"
    assert re.search(expected, refused(tmp_path / "c"))


@pytest.mark.parametrize("value", ["", 3, True])
def test_the_name_of_the_file(value):
    assert refused(value) == f"checkpoint must be the name of a file, or None; got {value!r}"


def test_a_checkpoint_that_cannot_be_written(monkeypatch, tmp_path):
    def full(self):
        raise OSError(28, "No space left on device")

    with core.Checkpoint(tmp_path / "c", "", 0) as checkpoint:
        monkeypatch.setattr(core.Checkpoint, "_write", full)
        checkpoint._due = 0.0
        path = tmp_path / "c"
        message = re.escape(f"cannot write the checkpoint {path} (No space left on device); the fit continues")
        with pytest.warns(UserWarning, match=message):
            checkpoint.task("key", lambda run: 1)


def test_a_folder_that_does_not_exist(tmp_path):
    path = tmp_path / "absent" / "c"
    assert refused(path) == (
        f"cannot write the checkpoint {path} (No such file or directory); pass a file name in an existing folder"
    )
