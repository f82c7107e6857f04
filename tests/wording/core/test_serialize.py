"""Wording of core, serialize."""

import os
import zipfile

import numpy as np
import pytest

from mixent.core import serialize
from mixent.core.serialize import SavedFileError, load, read_header, save

from ...core.test_serialize import ABOUT, CLASSES, Pair, Plain, Stranger, forge, npy, zip_of


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Stranger(), "model is a Stranger, which a mixent file cannot hold"),
        (Pair(1, [Plain(model=Stranger())]), r"model.right\[0\].model is a Stranger"),
        ({"a": {1, 2}}, r"model\['a'\] is a set"),
        (b"bytes", "is a bytes"),
        (len, "is a builtin_function_or_method"),
        (np.array([1j]), "array of complex128"),
        (np.complex128(1j), "is a complex128"),
        (np.datetime64("2020-01-01"), "is a datetime64"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "array of datetime64"),
        (np.zeros(2, dtype=[("a", "f8")]), "array of "),
        (np.array([Stranger()], dtype=object), "is a Stranger"),
        (Plain(predict=1), "'predict' of Plain, which is not data"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_by_name_and_leaves_nothing(tmp_path, value, message):
    (tmp_path / "m").write_text("old")
    with pytest.raises((TypeError, ValueError), match=message):
        save(tmp_path / "m", value, CLASSES, ABOUT)
    assert [p.name for p in tmp_path.iterdir()] == ["m"] and (tmp_path / "m").read_text() == "old"


def nested(depth):
    return '{"format":"mixent","format_version":3,"n_arrays":0,"model":' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (nested(100_000), "damaged"),
        ("", "damaged"),
        ("[]", "not a mixent model"),
        ('{"format": "other"}', "not a mixent model"),
        (
            '{"format": "mixent", "format_version": 99, "model": 1}',
            "version 99.*version 3; install a newer",
        ),
        ('{"format": "mixent", "format_version": "1"}', "version '1'"),
        ('{"format": "mixent", "format_version": 2, "model": 1}', "version 2.*; fit the model again and save it"),
        ('{"format": "mixent", "format_version": 3, "n_arrays": 1e999, "model": 1}', "damaged"),
        ('{"format": "mixent", "format_version": 3, "n_arrays": 1000000000000, "model": 1}', "damaged"),
        ('{"format": "mixent", "format_version": 3, "n_arrays": 0}', "damaged"),
        ('{"format": "mixent", "format_version": 3, "n_arrays": 0, "model": ' + "9" * 5000 + "}", "damaged"),
        (b"\xff\xfe\x00", "damaged"),
    ],
)
def test_a_forged_header_is_refused(tmp_path, header, message):
    with pytest.raises(SavedFileError, match=message):
        load(forge(tmp_path / "m", None, header=header), CLASSES)


def test_max_bytes_raise_it_if_you_trust(tmp_path):
    path = forge(tmp_path / "m", {"$array": 0}, [npy(np.zeros(4_000_000))])
    with pytest.raises(SavedFileError, match="32,000,.*max_bytes=1,000,000; increase max_bytes if you trust"):
        load(path, CLASSES, max_bytes=1_000_000)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_cannot_be_unpacked_in_steps_are_refused(tmp_path, method):
    with pytest.raises(SavedFileError, match="uses a compression method that mixent does not write"):
        load(forge(tmp_path / "m", 5, method=method), CLASSES)


def test_a_header_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(serialize, "_HEADER_LIMIT", 1000)
    path = forge(tmp_path / "m", ["x" * 2000])
    for reader in (lambda: load(path, CLASSES), lambda: read_header(path)):
        with pytest.raises(SavedFileError, match="m has a header that is too large"):
            reader()


def test_text_and_other_zips_are_no_models(tmp_path):
    (tmp_path / "text").write_text("a,b\n1,2\n")
    with zipfile.ZipFile(tmp_path / "zip", "w") as pack:
        pack.writestr("a", "b")
    damaged = "text is not a mixent file, or it is damaged or cut short "
    for name, message in [("text", damaged), ("zip", "zip is a zip file but not a mixent model")]:
        for reader in (lambda p: load(p, CLASSES), read_header):
            with pytest.raises(SavedFileError, match=message):
                reader(tmp_path / name)


def test_a_device_or_directory_is_never_replaced(tmp_path):
    with pytest.raises(OSError, match="is not a regular file"):
        save(tmp_path, {}, {}, {})
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="is not a regular file"):
        save(fifo, {}, {}, {})
    assert fifo.is_fifo()


def test_what_is_not_known_may_be_packed(tmp_path):
    stranger = Stranger()
    save(tmp_path / "m", [stranger, Pair(stranger), 1], CLASSES, ABOUT, pack=lambda value: b"as bytes")
    first, pair, _ = load(tmp_path / "m", CLASSES, unpack=lambda parts: [[data] for data in parts])
    assert first == [b"as bytes"] and pair.left is first
    with pytest.raises(SavedFileError, match="contains a part of another library, which cannot be read here"):
        load(tmp_path / "m", CLASSES)
    with pytest.raises(TypeError, match="is a Stranger, which a mixent file cannot hold"):
        save(tmp_path / "n", stranger, CLASSES, ABOUT, pack=lambda value: None)


def test_holds_bytes_more_than_max_bytes(tmp_path):
    save(tmp_path / "m", [Stranger(), 1], CLASSES, ABOUT, pack=lambda value: zip_of(1_000_000))
    with pytest.raises(SavedFileError, match="takes 1,000,000 bytes of memory, more than max_bytes="):
        load(tmp_path / "m", CLASSES, unpack=lambda parts: [len(data) for data in parts], max_bytes=500_000)
