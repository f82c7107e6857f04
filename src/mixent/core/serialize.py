"""Serialization of models to a zip file of a JSON header and plain arrays, without pickle.

The header is a tree of JSON values. Objects in it have names, and only objects whose names are in the caller's
whitelist are built. Reading never allocates more than `max_bytes` and a few megabytes, even if the file is
manipulated: arrays are read into their own memory, in chunks. An object of a `shared` class that is referenced several
times is written once. Objects that are not in the whitelist are converted to bytes and back by functions of the caller.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from mixent.core.writing import replacing

FORMAT = 3  # the only supported version: formats 1 and 2 were never released
MAX_BYTES = 512 << 20
_HEADER = "header.json"
_HEADER_LIMIT = 8 << 20
_COSTS = {b"{": 250, b"[": 250, b",": 100, b"": 3}  # most bytes of memory for each of these in the header
_CHUNK = 1 << 20
_MAX_ZIPS = 3  # zip files inside of each other
# what may be referenced several times; references to containers could expand without limit
NUMBERED = ("$object", "$foreign")
_STAMP = (1980, 1, 1, 0, 0, 0)  # a fixed time, so that the same model gives the same bytes


class SavedFileError(ValueError):
    """The file is not a mixent model, is damaged, or needs a different version of mixent."""


Pack = Callable[[Any], bytes | None]
Unpack = Callable[[list[bytes]], list[Any]]


def save(
    path: str | os.PathLike[str],
    tree: Any,
    classes: Mapping[str, type],
    about: Mapping[str, Any],
    *,
    shared: tuple[type, ...] = (),
    pack: Pack | None = None,
) -> None:
    """Write an object tree.

    Parameters
    ----------
    path : file name
    tree : object
    classes : mapping of names to the types the tree may contain
    about : entries added to the header
    shared : classes whose objects keep their identity: two references to one object remain so after `load`
    pack : callable(object) -> bytes, or None to refuse, for objects of other classes
    """
    writer = _Writer(_Names(classes), shared, pack)
    text = _header(writer, tree, about)
    with replacing(path) as part:
        _write(part, writer, text)


def to_bytes(tree: Any, classes: Mapping[str, type], *, shared: tuple[type, ...] = ()) -> bytes:
    """Return the contents of the file that `save` writes."""
    writer, buffer = _Writer(_Names(classes), shared, None), io.BytesIO()
    _write(buffer, writer, _header(writer, tree, {}))
    return buffer.getvalue()


def _header(writer: _Writer, tree: Any, about: Mapping[str, Any]) -> str:
    """Return the header, and leave the arrays and foreign parts in `writer`."""
    body = writer.encode(tree, "model")
    counts = {"n_arrays": len(writer.arrays)} | ({"n_foreign": len(writer.foreign)} if writer.foreign else {})
    header = {"format": "mixent", "format_version": FORMAT, **about, **counts, "model": body}
    text = json.dumps(header, allow_nan=False)
    if len(text) > _HEADER_LIMIT:
        raise ValueError(
            f"the model has too many names, labels or records for a file: they take {len(text):,} bytes, and at most "
            f"{_HEADER_LIMIT:,} are read"
        )
    return text


def _write(file: Path | BinaryIO, writer: _Writer, text: str) -> None:
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED) as pack_file:
        pack_file.writestr(zipfile.ZipInfo(_HEADER, _STAMP), text, zipfile.ZIP_DEFLATED)
        for i, data in enumerate(writer.foreign):
            pack_file.writestr(zipfile.ZipInfo(_foreign_name(i), _STAMP), data, zipfile.ZIP_DEFLATED)
        for i, values in enumerate(writer.arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, values, version=(1, 0), allow_pickle=False)
            pack_file.writestr(zipfile.ZipInfo(_array_name(i), _STAMP), buffer.getvalue(), zipfile.ZIP_DEFLATED)


def load(
    path: str | os.PathLike[str],
    classes: Mapping[str, type],
    *,
    max_bytes: int = MAX_BYTES,
    unpack: Unpack | None = None,
) -> Any:
    """Read a file written by `save`, without running code from it; a damaged file raises `SavedFileError`.

    Parameters
    ----------
    path : file name
    classes : mapping of names to the types that may be built
    max_bytes : refuse files that would take more memory
    unpack : callable(list of bytes) -> list of objects, for foreign parts; it must be safe itself
    """
    with Path(path).open("rb") as stream, _one_error(path):
        return _decoded(stream, classes, max_bytes, unpack)


def from_bytes(
    data: bytes, path: str | os.PathLike[str], classes: Mapping[str, type], *, max_bytes: int = MAX_BYTES
) -> Any:
    """Return what `to_bytes` wrote; errors name the file `path` that the bytes are from."""
    with _one_error(path):
        return _decoded(io.BytesIO(data), classes, max_bytes, None)


def _decoded(stream: BinaryIO, classes: Mapping[str, type], max_bytes: int, unpack: Unpack | None) -> Any:
    header, arrays, foreign = _read(stream, max_bytes)
    return _Reader(_Names(classes), arrays, _unpacked(foreign, unpack)).decode(header["model"])


@contextmanager
def _one_error(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in every error; those of this module continue the sentence that begins with the name."""
    try:
        yield
    except SavedFileError as error:
        raise SavedFileError(f"{path} {error}") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, OSError) as error:
        raise SavedFileError(f"{path} is not a mixent file, or it is damaged or cut short ({error})") from None
    except Exception as error:  # a manipulated file may raise anything; callers get one type of exception
        raise SavedFileError(f"{path}: the contents are damaged ({type(error).__name__}: {error})") from None


def _unpacked(foreign: list[bytes], unpack: Unpack | None) -> list[Any]:
    if not foreign:
        return []
    if unpack is None:
        raise SavedFileError("contains a part of another library, which cannot be read here")
    return unpack(foreign)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a file, without building any object."""
    with Path(path).open("rb") as stream, _one_error(path), zipfile.ZipFile(stream) as pack:
        header = _read_header(pack)
    return {key: value for key, value in header.items() if key != "model"}


def _read(stream: BinaryIO, max_bytes: int) -> tuple[dict[str, Any], list[np.ndarray], list[bytes]]:
    with zipfile.ZipFile(stream) as pack:
        left = max_bytes - _check_size(pack, max_bytes)
        header = _read_header(pack, left)
        arrays = [_read_array(pack, _array_name(i)) for i in range(int(header["n_arrays"]))]
        foreign = [bytes(_member(pack, _foreign_name(i))) for i in range(int(header.get("n_foreign", 0)))]
    for data in foreign:
        left -= _check_inner(data, left)
    return header, arrays, foreign


def _check_size(pack: zipfile.ZipFile, max_bytes: int) -> int:
    names = pack.namelist()
    if len(set(names)) < len(names):
        raise SavedFileError("contains two members of the same name")
    claimed = sum(info.file_size for info in pack.infolist())
    if claimed > max_bytes:
        raise _too_large(claimed, max_bytes)
    return claimed


def _too_large(needed: int, max_bytes: int) -> SavedFileError:
    return SavedFileError(
        f"takes {needed:,} bytes of memory, more than max_bytes={max_bytes:,}; increase max_bytes if you trust the file"
    )


def _check_inner(data: bytes | bytearray, max_bytes: int, depth: int = 0) -> int:
    """Return the uncompressed size of a foreign part that is a zip file, after checking it against the limit.

    Its members may be zip files, such as sparse matrices, and count as what they contain, too.
    """
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return 0
    if depth == _MAX_ZIPS:
        raise SavedFileError(f"contains zip files inside of each other, more than {_MAX_ZIPS}")
    with zipfile.ZipFile(io.BytesIO(data)) as pack:
        claimed = _check_size(pack, max_bytes)
        for name in pack.namelist():
            claimed += _check_inner(_member(pack, name), max_bytes - claimed, depth + 1)
    return claimed


def _read_header(pack: zipfile.ZipFile, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    if _HEADER not in pack.namelist():
        raise SavedFileError("is a zip file but not a mixent model")
    size = pack.getinfo(_HEADER).file_size
    if size > _HEADER_LIMIT:
        raise SavedFileError(f"has a header that is too large ({size:,} bytes; at most {_HEADER_LIMIT:,} are read)")
    text = _member(pack, _HEADER)
    needed = sum(text.count(sign) * cost for sign, cost in _COSTS.items())
    if needed > max_bytes:
        raise _too_large(needed, max_bytes)
    header = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(header, dict) or header.get("format") != "mixent":
        raise SavedFileError("is a zip file but not a mixent model")
    version = header.get("format_version")
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        remedy = "install a newer mixent" if newer else "fit the model again and save it with this version"
        raise SavedFileError(f"has format version {version!r}; this mixent reads format version {FORMAT}; {remedy}")
    return header


def _refuse_constant(name: str) -> Any:
    raise SavedFileError(f"has a header that contains {name}, which JSON does not have")


def _open(pack: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Open a member; it gives at most as many bytes as the directory declares, and its CRC is checked at its end."""
    if pack.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise SavedFileError(f"has a member {name} that uses a compression method that mixent does not write")
    return pack.open(name)


def _member(pack: zipfile.ZipFile, name: str) -> bytearray:
    """Return a member of the zip file.

    It is read in chunks, since ZipFile.read() uncompresses everything before it checks the size.
    """
    data = bytearray()
    with _open(pack, name) as stream:
        while chunk := stream.read(_CHUNK):
            data += chunk
    return data


def _read_array(pack: zipfile.ZipFile, name: str) -> np.ndarray:
    with _open(pack, name) as stream:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise SavedFileError(f"has an array {name} of npy version {version}, expected (1, 0)")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        if dtype.kind not in "biufU" or not all(n >= 0 for n in shape):
            raise SavedFileError(f"has an array {name} of dtype {dtype} and shape {shape}")
        n_values = int(math.prod(shape))
        n_bytes = n_values * dtype.itemsize
        if n_bytes > pack.getinfo(name).file_size or (n_values and not n_bytes):
            raise SavedFileError(f"has an array {name} that declares shape {shape} and dtype {dtype} but is smaller")
        flat: np.ndarray = np.empty(n_values, dtype=dtype)
        raw: Any = flat.view(np.uint8) if n_bytes else b""
        left = memoryview(raw)
        while left and (n_read := stream.readinto(left[:_CHUNK])):  # type: ignore[attr-defined]
            left = left[n_read:]
        if left or stream.read(1):  # the last read checks the CRC
            raise SavedFileError(f"has an array {name} that declares shape {shape} and has another size")
    return flat.reshape(shape, order="F" if fortran else "C")


def _array_name(i: int) -> str:
    return f"arrays/{i}.npy"


def _foreign_name(i: int) -> str:
    return f"foreign/{i}"


class _Names:
    """The whitelist: types by name, and names by type."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.types = dict(classes)
        self.names = {cls: name for name, cls in classes.items()}

    def type_of(self, name: Any) -> type:
        if not isinstance(name, str) or name not in self.types:
            raise SavedFileError(
                f"contains an object of unknown type {name!r}; it was written by a different version of mixent, or "
                "with a plug-in that is not installed here"
            )
        return self.types[name]


@dataclass
class _Writer:
    """Converts values to JSON; arrays and foreign parts are stored separately and replaced by their number."""

    names: _Names
    shared: tuple[type, ...]
    pack: Pack | None
    arrays: list[np.ndarray] = field(default_factory=list)
    foreign: list[bytes] = field(default_factory=list)
    seen: dict[int, tuple[Any, dict[str, Any]]] = field(default_factory=dict)  # id -> the object, kept alive; its JSON
    n_shared: int = 0

    def encode(self, value: Any, where: str) -> Any:
        if value is None or type(value) in (bool, str, int):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.generic) and value.dtype.str in _SCALARS:
            return {"$scalar": value.dtype.str, "value": self.encode(value.item(), where)}
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, (list, tuple)):
            items = [self.encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            pairs = [(self.encode(k, where), self.encode(v, f"{where}[{k!r}]")) for k, v in value.items()]
            return {"$dict": pairs}
        return self._object(value, where)

    def _array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.kind == "O":  # class labels and column names
            flat = [self.encode(v, where) for v in value.ravel().tolist()]
            return {"$objects": flat, "shape": list(value.shape)}
        if value.dtype.kind not in "biufU":
            raise TypeError(f"{where} is an array of {value.dtype}, which a mixent file cannot hold")
        self.arrays.append(value)
        return {"$array": len(self.arrays) - 1}

    def _object(self, value: Any, where: str) -> Any:
        if id(value) in self.seen:
            return self._reference(self.seen[id(value)][1])
        name = self.names.names.get(type(value))
        if name is None:
            return self._remember(value, self._foreign(value, where))
        if isinstance(value, Enum):
            return {"$enum": name, "value": value.name}
        if is_dataclass(value):
            attributes = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        else:
            cached = [k for k, v in vars(type(value)).items() if isinstance(v, cached_property)]
            attributes = {k: v for k, v in vars(value).items() if k not in cached}
            _check_data(type(value), attributes)
        state = {k: self.encode(v, f"{where}.{k}") for k, v in attributes.items()}
        written = {"$object": name, "state": state}
        return self._remember(value, written) if isinstance(value, self.shared) else written

    def _foreign(self, value: Any, where: str) -> dict[str, Any]:
        data = None if self.pack is None else self.pack(value)
        if data is None:
            raise TypeError(
                f"{where} is a {type(value).__name__}, which a mixent file cannot hold; set it to plain values first"
            )
        self.foreign.append(data)
        return {"$foreign": len(self.foreign) - 1}

    def _remember(self, value: Any, written: dict[str, Any]) -> dict[str, Any]:
        self.seen[id(value)] = value, written
        return written

    def _reference(self, first: dict[str, Any]) -> dict[str, Any]:
        """Number the first occurrence of an object and return a reference to it."""
        if "number" not in first:
            first["number"] = self.n_shared
            self.n_shared += 1
        return {"$same": first["number"]}


@dataclass
class _Reader:
    """Converts JSON to values."""

    names: _Names
    arrays: list[np.ndarray]
    foreign: list[Any]  # as unpacked
    shared: dict[int, Any] = field(default_factory=dict)  # number -> object

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(v) for v in value]
        if not isinstance(value, dict):
            return value
        for key, build in _BUILDERS.items():
            if key in value:
                built = build(value, self)
                if "number" in value and key in NUMBERED:
                    self.shared[value["number"]] = built
                return built
        raise SavedFileError("has a header that contains an unknown kind of value")


def _build_objects(value: dict[str, Any], reader: _Reader) -> np.ndarray:
    items = [reader.decode(v) for v in value["$objects"]]
    built = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # one at a time, since numpy would convert tuples to rows
        built[i] = item
    return built.reshape(value["shape"])


def _build_object(value: dict[str, Any], reader: _Reader) -> Any:
    cls = reader.names.type_of(value["$object"])
    state = {k: reader.decode(v) for k, v in value["state"].items()}
    if is_dataclass(cls):
        return cls(**state)
    if issubclass(cls, Enum):
        raise SavedFileError(f"creates a new object of the enumeration {cls.__name__}")
    _check_data(cls, state)
    built: Any = object.__new__(cls)
    vars(built).update(state)
    return built


def _build_foreign(value: dict[str, Any], reader: _Reader) -> Any:
    return reader.foreign[value["$foreign"]]


def _check_data(cls: type, state: Mapping[str, Any]) -> None:
    """Check that no attribute hides a method, a property or a special attribute of Python."""
    for name in state:
        attribute = getattr(cls, name, None)
        hides = callable(attribute) or hasattr(attribute, "__get__")
        if hides or name.startswith("__") or not name.isidentifier():
            raise SavedFileError(f"sets {name!r} of {cls.__name__}, which is not data")


def _build_enum(value: dict[str, Any], reader: _Reader) -> Any:
    cls = reader.names.type_of(value["$enum"])
    if not issubclass(cls, Enum):
        raise SavedFileError(f"uses {value['$enum']!r} as an enumeration")
    return cls[value["value"]]


_SCALARS: dict[str, Any] = {
    np.dtype(t).str: t
    for t in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
} | {np.dtype(t).str: t for t in (np.float16, np.float32, np.float64)}

_BUILDERS: dict[str, Any] = {
    "$array": lambda v, reader: reader.arrays[v["$array"]],
    "$float": lambda v, reader: float(v["$float"]),
    "$scalar": lambda v, reader: _SCALARS[v["$scalar"]](reader.decode(v["value"])),
    "$tuple": lambda v, reader: tuple(reader.decode(x) for x in v["$tuple"]),
    "$dict": lambda v, reader: {reader.decode(k): reader.decode(x) for k, x in v["$dict"]},
    "$objects": _build_objects,
    "$enum": _build_enum,
    "$object": _build_object,
    "$foreign": _build_foreign,
    "$same": lambda v, reader: reader.shared[v["$same"]],
}
