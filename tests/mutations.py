"""Damaged and crafted copies of a model file, drawn with a seed; for the tests that read them."""

from __future__ import annotations

import copy
import io
import json
import warnings
import zipfile
from collections.abc import Iterator

import numpy as np

SPECIAL = [0.0, -1.0, 1e308, -1e308, 1e-308, np.nan, np.inf, -np.inf, 1e18]
WHOLE = [-1, 0, 1, 2, 3, 7, 255, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 40_000_000 // 8]
PLAIN = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    10**6,
    10**18,
    10**30,
    0.0,
    -0.5,
    1e308,
    1e-308,
    "",
    "x",
    "auto",
    [],
    [1],
    "rbf",
]
DTYPES = ["<f4", "<f2", "<i8", "<i4", "<u8", "|b1", "<U3", ">f8", "|i1", "<u2"]


class File:
    """The members of a saved file, as they are changed."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            self.parts = {name: pack.read(name) for name in pack.namelist()}
        self.header = json.loads(self.parts["header.json"])
        self.arrays = [name for name in self.parts if name.startswith("arrays/")]
        self.twice: list[str] = []

    def array(self, name: str) -> np.ndarray:
        return np.load(io.BytesIO(self.parts[name]))

    def put(self, name: str, values: np.ndarray) -> None:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(values), version=(1, 0))
        self.parts[name] = buffer.getvalue()

    def bytes(self) -> bytes:
        self.parts["header.json"] = json.dumps(self.header).encode()
        buffer = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as pack:
            warnings.simplefilter("ignore")  # a name that occurs twice
            for name, data in self.parts.items():
                pack.writestr(zipfile.ZipInfo(name), data)
            for name in self.twice:
                pack.writestr(zipfile.ZipInfo(name), self.parts[name])
        return buffer.getvalue()


def nodes(tree, path=()) -> Iterator[tuple[tuple, object]]:
    """Every value in a JSON tree, with the way to it."""
    yield path, tree
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from nodes(value, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def replace_at(tree, path, value):
    at(tree, path[:-1])[path[-1]] = value


# --- bytes ----------------------------------------------------------------------------------------------------------


def flip_bits(file: File, rng) -> bytes:
    data = bytearray(file.bytes())
    for _ in range(rng.integers(1, 5)):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(data)


def cut(file: File, rng) -> bytes:
    data = file.bytes()
    return data[: rng.integers(len(data))]


def twice(file: File, rng) -> bytes:
    file.twice = [str(rng.choice(list(file.parts)))]
    return file.bytes()


# --- arrays ---------------------------------------------------------------------------------------------------------


def change_value(file: File, rng, name=None):
    """Another number at one place, or at all."""
    name = name or str(rng.choice(file.arrays))
    values = file.array(name)
    if not values.size or values.dtype.kind == "U":
        return
    flat = values.reshape(-1)
    place = slice(None) if rng.random() < 0.2 else rng.integers(flat.size)
    if values.dtype.kind == "f":
        flat[place] = rng.choice([*SPECIAL, float(rng.normal() * 10.0 ** rng.integers(-30, 30))])
    elif values.dtype.kind in "iu":
        info = np.iinfo(values.dtype)
        flat[place] = min(max(WHOLE[rng.integers(len(WHOLE))], info.min), info.max)
    else:
        flat[place] = not flat[0]
    file.put(name, values)


def flip_array_bits(file: File, rng):
    """Bits of the numbers, past the checksum."""
    name = str(rng.choice(file.arrays))
    values = file.array(name)
    if values.size and values.dtype.kind != "U":
        raw = bytearray(values.tobytes())
        raw[rng.integers(len(raw))] ^= 1 << rng.integers(8)
        file.put(name, np.frombuffer(bytes(raw), values.dtype).reshape(values.shape))


def swap(file: File, rng):
    a, b = rng.choice(file.arrays, size=2)
    file.parts[a], file.parts[b] = file.parts[b], file.parts[a]


def change_dtype(file: File, rng):
    name = str(rng.choice(file.arrays))
    values = file.array(name)
    if values.dtype.kind == "f":
        values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    if values.dtype.kind != "U":
        with np.errstate(all="ignore"):
            file.put(name, values.astype(rng.choice(DTYPES)))


def change_shape(file: File, rng):
    name = str(rng.choice(file.arrays))
    values = file.array(name)
    kinds = [
        lambda v: v.ravel(),
        lambda v: v[..., None],
        lambda v: v[None],
        lambda v: v.T,
        lambda v: v[:-1] if v.ndim else v,
        lambda v: np.concatenate([v, v]) if v.ndim else v,
        lambda v: v[:0] if v.ndim else v,
        lambda v: v[:1] if v.ndim else v,
        lambda v: np.zeros((), v.dtype),
    ]
    file.put(name, kinds[rng.integers(len(kinds))](values))


def declare_huge(file: File, rng):
    """A header of an array that declares far more than it has."""
    name = str(rng.choice(file.arrays))
    shape = [(10**15,), (2**32, 2**32), (-1,), (10**9,), (3, -3)][rng.integers(5)]
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    text += b" " * (63 - (len(text) + 10) % 64) + b"\n"
    file.parts[name] = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 16


def grow(file: File, rng):
    """Many more numbers, of which all are zero."""
    name = str(rng.choice(file.arrays))
    values = file.array(name)
    rows = int(rng.choice([10**4, 10**6]))
    if values.ndim and values.dtype.kind != "U":
        file.put(name, np.zeros((rows, *values.shape[1:][:1]), values.dtype))


# --- the header -----------------------------------------------------------------------------------------------------


def change_header(file: File, rng):
    """Another plain value in place of one of the header, mostly of its own type."""
    places = [(path, value) for path, value in nodes(file.header["model"], ("model",)) if len(path) > 1]
    leaves = [place for place in places if not isinstance(place[1], dict | list)]
    path, value = leaves[rng.integers(len(leaves))] if rng.random() < 0.7 else places[rng.integers(len(places))]
    new = PLAIN[rng.integers(len(PLAIN))]
    if type(value) in (int, float) and rng.random() < 0.7:
        new = [value + 1, value - 1, -value, value * 2, 10**9, WHOLE[rng.integers(len(WHOLE))], 1e300][rng.integers(7)]
    replace_at(file.header, path, new)


def drop_key(file: File, rng):
    holders = [path for path, value in nodes(file.header) if isinstance(value, dict | list) and value]
    holder = at(file.header, holders[rng.integers(len(holders))])
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    del holder[keys[rng.integers(len(keys))]]


def swap_nodes(file: File, rng):
    """Two parts of the tree in each other's place, such as the numbers of two arrays, or two objects."""
    places = [path for path, _ in nodes(file.header["model"], ("model",)) if len(path) > 2]
    a, b = (places[i] for i in rng.integers(len(places), size=2))
    if a[: len(b)] != b and b[: len(a)] != a:
        first, second = at(file.header, a), at(file.header, b)
        replace_at(file.header, a, second)
        replace_at(file.header, b, first)


def nest(file: File, rng):
    """The model in place of one of its own parts, several times."""
    for _ in range(rng.integers(1, 4)):
        inner = copy.deepcopy(file.header["model"])
        places = [path for path, _ in nodes(file.header["model"], ("model",)) if 2 < len(path) < 8]
        replace_at(file.header, places[rng.integers(len(places))], inner)


def deep(file: File, rng):
    """Lists inside of lists in place of a part."""
    tree: object = 1
    for _ in range(int(rng.choice([20, 100, 300]))):
        tree = [tree] if rng.random() < 0.5 else {"$tuple": [tree]}
    places = [path for path, _ in nodes(file.header["model"], ("model",)) if len(path) > 2]
    replace_at(file.header, places[rng.integers(len(places))], tree)


MUTATIONS = [
    flip_bits,
    cut,
    twice,
    change_value,
    change_value,
    change_value,
    flip_array_bits,
    flip_array_bits,
    swap,
    change_dtype,
    change_shape,
    change_shape,
    declare_huge,
    grow,
    change_header,
    change_header,
    change_header,
    change_header,
    drop_key,
    swap_nodes,
    nest,
    deep,
]


def mutated(data: bytes, seed: tuple[int, ...]) -> tuple[str, bytes]:
    """One change, drawn by the seed: its name, and the file with it."""
    rng = np.random.default_rng(seed)
    file = File(data)
    change = MUTATIONS[rng.integers(len(MUTATIONS))]
    if not file.arrays and change in MUTATIONS[3:14]:
        change = change_header
    result = change(file, rng)
    return change.__name__, file.bytes() if result is None else result
