import builtins
import io
import json
import os
import stat
import tracemalloc
import zipfile
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from mixent.core.serialize import FORMAT, SavedFileError, load, read_header, save


class Color(Enum):
    RED = 1
    BLUE = "b"


class Word(str, Enum):  # noqa: UP042  (what StrEnum is not: one of the old kind)
    YES = "yes"


@dataclass(frozen=True)
class Pair:
    left: Any
    right: Any = None


@dataclass
class Derived:
    a: float
    twice: float = field(init=False)

    def __post_init__(self):
        self.twice = 2 * self.a


class Plain:
    """As an estimator: attributes, a class constant, a method, a property, something cached."""

    constant = 3

    def __init__(self, **values):
        vars(self).update(values)

    def predict(self):
        return "method"

    @property
    def half(self):
        return 0.5

    @cached_property
    def slow(self):
        return [1]


class Stranger:
    pass


CLASSES = {"Pair": Pair, "Plain": Plain, "Color": Color, "Word": Word, "Derived": Derived}
ABOUT = {"mixent": "0.1.0", "kind": "test"}


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype == object:
            return all(same(x, y) for x, y in zip(a.ravel(), b.ravel()))
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, (float, np.floating)):
        return a == b or (np.isnan(a) and np.isnan(b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (Pair, Plain, Derived)):
        return same(vars(a), vars(b))
    return a == b


OBJECTS = np.empty((2, 3), dtype=object)
OBJECTS[:] = [["a", None, 3], [True, 2.5, "ü\n"]]
TUPLES = np.empty(2, dtype=object)
TUPLES[0], TUPLES[1] = (1, 2), (3, 4)
VALUES = {
    "scalars": [None, True, False, 0, -7, 10**30, 1.5, -0.0, 1e-320, "", "text \u00e9\u4e16\ud800", "$array"],
    "not finite": [float("nan"), float("inf"), -float("inf")],
    "numpy scalars": [np.float64(1.5), np.float32("nan"), np.int32(-3), np.uint8(255), np.bool_(True), np.float16(2)],
    "tuple": (1, (2, [3, ()]), {"a": (4,)}),
    "dict": {"a": 1, 2: "b", None: 3, (1, "x"): [4], True: 5, 1.5: 6, "$tuple": {"$object": "Pair"}},
    "enums": [Color.RED, Color.BLUE, Word.YES],
    "objects": Pair(Pair(1, np.arange(3)), Plain(a_=np.eye(2), b=(1, 2), constant=4, _hidden=Color.BLUE)),
    "derived": Derived(2.0),
    "object array": OBJECTS,
    "tuples in an array": TUPLES,
    "0-d objects": np.array("x", dtype=object),
    "unicode array": np.array([["a", "long word"], ["\u4e16", ""]]),
    "bool array": np.array([True, False]),
    "0-d": np.array(3.5),
    "empty": [np.empty((0, 3)), np.empty(0, dtype=np.int32), np.empty((2, 0), dtype="U3"), np.empty(0, dtype=object)],
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "strided": np.arange(24.0).reshape(4, 6)[::2, ::-3],
    "nan array": np.array([np.nan, np.inf, -0.0]),
    "many kinds": [np.zeros(3, dtype=t) for t in "bBhHiIlLqQfde?"],
    "big-endian": np.arange(3, dtype=">i4"),
}


@pytest.mark.parametrize("name", VALUES)
def test_every_value_comes_back_as_it_was(tmp_path, name):
    save(tmp_path / "m", VALUES[name], CLASSES, ABOUT)
    back = load(tmp_path / "m", CLASSES)
    assert same(back, VALUES[name]), back
    save(tmp_path / "again", back, CLASSES, ABOUT)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()


def test_arrays_come_back_writable_and_in_their_order(tmp_path):
    save(tmp_path / "m", [VALUES["fortran"], np.zeros(3)], CLASSES, ABOUT)
    fortran, plain = load(tmp_path / "m", CLASSES)
    assert fortran.flags.f_contiguous and not fortran.flags.c_contiguous
    plain[0] = 1.0


def test_the_same_object_gives_the_same_bytes_and_a_readable_header(tmp_path):
    for name in "ab":
        save(tmp_path / name, VALUES, CLASSES, ABOUT)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    header = read_header(tmp_path / "a")
    assert header["kind"] == "test" and header["format_version"] == FORMAT and "model" not in header


def test_what_is_cached_is_left_out(tmp_path):
    model = Plain(a=1)
    assert model.slow == [1]
    save(tmp_path / "m", model, CLASSES, ABOUT)
    assert vars(load(tmp_path / "m", CLASSES)) == {"a": 1}


def test_a_write_that_fails_halfway_leaves_the_old_file_and_no_part(tmp_path, monkeypatch):
    save(tmp_path / "m", 1, CLASSES, ABOUT)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        save(tmp_path / "m", np.zeros(3), CLASSES, ABOUT)
    assert [p.name for p in tmp_path.iterdir()] == ["m"] and load(tmp_path / "m", CLASSES) == 1
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        save(tmp_path / "folder", 1, CLASSES, ABOUT)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "m"]


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "other").touch()
    save(tmp_path / "m", 1, CLASSES, ABOUT)
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("m", "other")]  # noqa: PTH116
    assert modes[0] == modes[1]


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none", CLASSES)
    with pytest.raises(IsADirectoryError):
        load(tmp_path, CLASSES)


# --- files made to do harm -------------------------------------------------------------------------------------------


def npy(values, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, values, version=(1, 0), **options)
    return buffer.getvalue()


def forge(path, model, arrays=(), *, header=None, extra=(), method=zipfile.ZIP_DEFLATED, **more):
    """A file with this model tree, whatever it says."""
    tree = {"format": "mixent", "format_version": FORMAT, "n_arrays": len(arrays), "model": model, **more}
    with zipfile.ZipFile(path, "w", method) as pack:
        pack.writestr("header.json", json.dumps(tree) if header is None else header)
        for i, data in enumerate(arrays):
            pack.writestr(f"arrays/{i}.npy", data)
        for name, data in extra:
            pack.writestr(name, data)
    return path


class Bomb:
    def __reduce__(self):
        return exec, ("import builtins; builtins.mixent_was_run = True",)


def lying(shape, data=b"\0" * 16, descr="<f8"):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape})
    text += " " * (64 - (len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


def state(name, **values):
    return {"$object": name, "state": values}


ATTACKS = {
    "pickled array": ({"$array": 0}, [npy(np.array([Bomb()], dtype=object), allow_pickle=True)]),
    "os.system": ({"$object": "os.system", "state": {"command": "true"}}, []),
    "a class not listed": (state("builtins.object"), []),
    "name that is no text": ({"$object": ["Pair"], "state": {}}, []),
    "method": (state("Plain", predict=1), []),
    "property": (state("Plain", half=1), []),
    "cached property": (state("Plain", slow=1), []),
    "__class__": (state("Plain", __class__="Stranger"), []),
    "__dict__": (state("Plain", __dict__={"$dict": []}), []),
    "__reduce__": (state("Plain", __reduce__=1), []),
    "dunder of its own": (state("Plain", __wrapped__=1), []),
    "no identifier": (state("Plain", **{"a b": 1}), []),
    "unknown field": (state("Pair", other=1), []),
    "missing field": (state("Pair"), []),
    "enum as object": (state("Color", _value_=7), []),
    "object as enum": ({"$enum": "Pair", "value": "left"}, []),
    "enum method": ({"$enum": "Color", "value": "__class__"}, []),
    "enum value list": ({"$enum": "Color", "value": ["RED"]}, []),
    "void scalar": ({"$scalar": "|V8", "value": 10**12}, []),
    "object scalar": ({"$scalar": "|O", "value": 1}, []),
    "scalar of a list": ({"$scalar": ["f8"], "value": 1}, []),
    "scalar overflow": ({"$scalar": "|i1", "value": 10**40}, []),
    "float of a list": ({"$float": [1]}, []),
    "array number": ({"$array": 5}, []),
    "array name": ({"$array": "0"}, [npy(np.zeros(2))]),
    "unknown kind": ({"$code": "1"}, []),
    "bare dict": ({"a": 1}, []),
    "unhashable key": ({"$dict": [[[1], 2]]}, []),
    "triples": ({"$dict": [[1, 2, 3]]}, []),
    "objects of a shape": ({"$objects": [1, 2], "shape": [10**12]}, []),
    "lying shape": ({"$array": 0}, [lying((10**15,))]),
    "overflowing shape": ({"$array": 0}, [lying((2**32, 2**32), b"")]),
    "negative shape": ({"$array": 0}, [lying((-2,))]),
    "no itemsize": ({"$array": 0}, [lying((10**12,), b"", "<U0")]),
    "structured": ({"$array": 0}, [lying((1,), b"\0" * 16, [("a", "<f8"), ("b", "<f8")])]),
    "odd dtype": ({"$array": 0}, [lying((1,), b"\0" * 16, "os.system")]),
    "no npy": ({"$array": 0}, [b"not an array"]),
    "npy 2.0": ({"$array": 0}, [b"\x93NUMPY\x02\x00" + npy(np.zeros(1))[8:]]),
    "short npy": ({"$array": 0}, [npy(np.zeros(9))[:-1]]),
    "long npy": ({"$array": 0}, [npy(np.zeros(9)) + b"x"]),
}


@pytest.mark.filterwarnings("ignore:Reading `.npy`")
@pytest.mark.parametrize("name", ATTACKS)
def test_a_forged_model_is_refused_and_runs_nothing(tmp_path, monkeypatch, name):
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("code was run"))
    path = forge(tmp_path / "m", *ATTACKS[name])
    with pytest.raises(SavedFileError, match="/m:? "):
        load(path, CLASSES)
    assert not hasattr(builtins, "mixent_was_run")


def test_names_in_the_zip_lead_nowhere(tmp_path):
    path = forge(tmp_path / "m", 5, extra=[("../../evil", b"x"), ("/tmp/evil", b"x"), ("arrays/9.npy", b"x")])
    assert load(path, CLASSES) == 5
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    with zipfile.ZipFile(tmp_path / "z", "w") as pack:
        pack.writestr("../header.json", "{}")
    with pytest.raises(SavedFileError, match="mixent model"):
        load(tmp_path / "z", CLASSES)


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    path = forge(tmp_path / "m", {"$array": 0}, [npy(np.zeros(4_000_000))])
    assert path.stat().st_size < 100_000
    with pytest.raises(SavedFileError, match="max_bytes"):
        load(path, CLASSES, max_bytes=1_000_000)
    assert load(path, CLASSES, max_bytes=33_000_000).shape == (4_000_000,)


def test_a_zip_bomb_that_lies_about_its_size_is_not_unpacked_either(tmp_path):
    path = forge(tmp_path / "m", {"$array": 0}, [npy(np.zeros(8_000_000))])
    data = path.read_bytes()
    true, false = len(npy(np.zeros(8_000_000))).to_bytes(4, "little"), (1000).to_bytes(4, "little")
    assert data.count(true) == 2  # in the file's own header, and in the directory
    path.write_bytes(data.replace(true, false))
    tracemalloc.start()
    with pytest.raises(SavedFileError):
        load(path, CLASSES, max_bytes=1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


def model():
    return Pair(
        Plain(weights_=np.arange(40.0), names=np.array(["a", None], dtype=object)), [1.5, (Color.RED, "x" * 50)]
    )


def test_a_file_cut_short_anywhere_is_refused(tmp_path):
    save(tmp_path / "m", model(), CLASSES, ABOUT)
    data = (tmp_path / "m").read_bytes()
    for end in [*range(0, len(data), 50), len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:end])
        with pytest.raises(SavedFileError, match="cut"):
            load(tmp_path / "cut", CLASSES)
        with pytest.raises(SavedFileError, match="cut"):
            read_header(tmp_path / "cut")


@pytest.mark.filterwarnings("ignore")  # zipfile and numpy mention what they find odd
def test_bytes_changed_at_random_give_one_kind_of_error_or_a_value(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("code was run"))
    save(tmp_path / "m", model(), CLASSES, ABOUT)
    data = np.frombuffer((tmp_path / "m").read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(0)
    refused = 0
    for i in range(600):
        flipped = data.copy()
        at = rng.integers(len(data), size=1 + i % 4)
        flipped[at] = rng.integers(256, size=len(at))
        (tmp_path / "f").write_bytes(flipped.tobytes())
        try:
            load(tmp_path / "f", CLASSES)
        except SavedFileError:
            refused += 1
    assert refused > 300


@pytest.mark.filterwarnings("ignore")
def test_header_text_changed_at_random_gives_one_kind_of_error_or_a_value(tmp_path):
    """Past the checksum: the attacker writes a valid zip around a mangled header and mangled arrays."""
    save(tmp_path / "m", model(), CLASSES, ABOUT)
    with zipfile.ZipFile(tmp_path / "m") as pack:
        header, array = pack.read("header.json"), pack.read("arrays/0.npy")
    rng = np.random.default_rng(1)

    def mangle(text):
        text = bytearray(text)
        for at in rng.integers(len(text), size=rng.integers(0, 4)):
            text[at] = rng.choice(np.frombuffer(b'0123456789[]{}",:$_abf- \xff', dtype=np.uint8))
        return bytes(text)

    refused = 0
    for _ in range(500):
        forge(tmp_path / "f", None, [mangle(array)], header=mangle(header))
        try:
            load(tmp_path / "f", CLASSES)
        except SavedFileError:
            refused += 1
    assert 100 < refused < 500


# --- objects in two places, and foreign parts ----------------------------------------------------------------------


def test_an_object_in_two_places_is_one_again(tmp_path):
    one = Plain(values=np.arange(3))
    save(tmp_path / "m", [one, Pair(one, {"again": one}), Plain(values=1)], CLASSES, ABOUT, shared=(Plain,))
    first, pair, other = load(tmp_path / "m", CLASSES)
    assert pair.left is first and pair.right["again"] is first and other is not first
    assert read_header(tmp_path / "m")["format_version"] == FORMAT and read_header(tmp_path / "m")["n_arrays"] == 1


def test_only_the_classes_asked_for_are_shared(tmp_path):
    pair = Pair(1)
    save(tmp_path / "m", [pair, pair], CLASSES, ABOUT, shared=(Plain,))
    first, second = load(tmp_path / "m", CLASSES)
    assert first is not second and first == second


def zip_of(size):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("a", bytes(size))
    return buffer.getvalue()


def test_a_zip_inside_may_not_unpack_to_more_either(tmp_path):
    save(tmp_path / "m", [Stranger(), 1], CLASSES, ABOUT, pack=lambda value: zip_of(1_000_000))
    assert load(tmp_path / "m", CLASSES, unpack=lambda parts: [len(data) for data in parts])[0] < 2000
    with pytest.raises(SavedFileError, match="max_bytes"):
        load(tmp_path / "m", CLASSES, unpack=lambda parts: [len(data) for data in parts], max_bytes=500_000)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ({"$same": 0}, {}),
        ({"$same": "a"}, {}),
        ([{"$same": 1}, {"$object": "Pair", "state": {"left": 1}, "number": 1}], {}),
        ({"$object": "Pair", "state": {"left": {"$same": 0}}, "number": 0}, {}),  # itself
        ({"$foreign": 0}, {}),
        ({"$foreign": 0}, {"n_foreign": 1}),
        ({"$foreign": 0}, {"n_foreign": "many"}),
    ],
)
def test_what_is_not_there_is_damage(tmp_path, model, more):
    with pytest.raises(SavedFileError, match="damaged|cut short"):
        load(forge(tmp_path / "m", model, **more), CLASSES, unpack=lambda parts: [len(data) for data in parts])
