"""Tuned block tilings of fused tensor computations.

    import tilewright
    for winner in tilewright.lookup(hlo_text, "winners.snapshot"):
        print(winner["fusion"], winner["plan"])

Texts are HLO or StableHLO. Documents are dictionaries as docs/formats.md of the
repository describes them. Functions may be called from any thread. A child of os.fork
cannot use the library (multiprocessing: use the start method "spawn").
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any, Mapping, Optional, Sequence, Union

__all__ = ["Database", "TilewrightError", "fingerprint", "lookup", "open", "partition", "tiles", "tune", "version"]

_ABI = 1
_MISS = 1
_SMALL = 7
_HERE = pathlib.Path(__file__).resolve().parent
Path = Union[str, "os.PathLike[str]"]
Shape = Optional[Mapping[str, Sequence[int]]]


class TilewrightError(Exception):
    """A question has no answer; kind is "request", "input", "store", "internal" or "forked"."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        kinds = {2: "request", 3: "input", 4: "store", 5: "internal", 6: "forked"}
        self.kind = kinds.get(status, "internal")


def _load() -> ctypes.CDLL:
    lib = ctypes.CDLL(os.environ.get("TILEWRIGHT_LIBRARY") or str(_HERE / "libtilewright.so"))
    if lib.tilewright_abi() != _ABI:
        raise ImportError(f"libtilewright has interface {lib.tilewright_abi()}; this package needs {_ABI}")
    lib.tilewright_version.restype = ctypes.c_char_p
    lib.tilewright_status_text.restype = ctypes.c_char_p
    lib.tilewright_free.argtypes = [ctypes.c_void_p]
    lib.tilewright_free.restype = None
    text: list[Any] = [ctypes.c_char_p, ctypes.c_size_t]
    result = ctypes.POINTER(ctypes.c_void_p)
    numbers: list[Any] = [ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t]
    lib.tilewright_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64), result]
    lib.tilewright_close.argtypes = [ctypes.c_uint64]
    lib.tilewright_get.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_double)]
    lib.tilewright_lookup.argtypes = [ctypes.c_uint64, *text, ctypes.c_char_p, ctypes.c_int, result]
    lib.tilewright_plan.argtypes = [ctypes.c_uint64, *text, ctypes.c_char_p, result]
    lib.tilewright_fingerprint.argtypes = [*text, result]
    lib.tilewright_partition.argtypes = [*text, result]
    lib.tilewright_tiles.argtypes = [*text, ctypes.c_char_p, *numbers, *numbers, result]
    lib.tilewright_request.argtypes = [ctypes.c_uint64, *text, result]
    return lib


_lib = _load()


def _take(status: int, result: ctypes.c_void_p) -> str:
    """The text of a result, which is freed; an exception if the call failed."""
    text = ctypes.string_at(result.value).decode() if result.value else ""
    _lib.tilewright_free(result)
    if status:
        raise TilewrightError(status, text or _lib.tilewright_status_text(status).decode())
    return text


def _ask(function: Any, *args: Any) -> dict[str, Any]:
    result = ctypes.c_void_p()
    document: dict[str, Any] = json.loads(_take(function(*args, ctypes.byref(result)), result))
    return document


def _request(db: Any, op: str, text: Union[str, bytes], shape: Shape, **fields: Any) -> dict[str, Any]:
    """The answer of an operation about a text, whose open extents may be given."""
    asked: dict[str, Any] = {"op": op, "text": text if isinstance(text, str) else text.decode()}
    if shape is not None:
        asked["shape"] = {k: list(v) for k, v in shape.items()}
    asked.update((name, value) for name, value in fields.items() if value)
    raw = json.dumps(asked).encode()
    answer = _ask(_lib.tilewright_request, db, raw, len(raw))
    if "error" in answer:
        error = TilewrightError(0, answer["error"]["message"])
        error.kind = answer["error"]["kind"]
        raise error
    document: dict[str, Any] = answer["result"]
    return document


def _text(text: Union[str, bytes]) -> tuple[bytes, int]:
    raw = text.encode() if isinstance(text, str) else text
    return raw, len(raw)


def _name(name: Optional[str]) -> Optional[bytes]:
    return None if name is None else name.encode()


def _numbers(values: Optional[Sequence[int]]) -> tuple[Any, int]:
    values = list(values or ())
    return (ctypes.c_int64 * len(values))(*values), len(values)


def version() -> str:
    """The name and version of the library."""
    text: bytes = _lib.tilewright_version()
    return text.decode()


class Database:
    """An open database or published snapshot, for one device. It is a context manager."""

    def __init__(self, path: Path, device: str = "cpu") -> None:
        self._handle = ctypes.c_uint64()
        message = ctypes.c_void_p()
        status = _lib.tilewright_open(os.fsencode(path), device.encode(), ctypes.byref(self._handle), ctypes.byref(message))
        _take(status, message)

    def lookup(self, text: Union[str, bytes], *, fusion: Optional[str] = None, exact: bool = False, shape: Shape = None) -> list[dict[str, Any]]:
        """A winner for every fusion of a text, or for the one named. Fusions of which
        nothing is stored get the nearest winner ("answer": "nearest") or the default plan
        ("predicted"), unless exact. shape is the extents that the text leaves open, by
        parameter: {"arg0": [8, 128]}, or {"?": [8]} for all of them."""
        if shape is not None:
            answer = _request(self._handle, "lookup", text, shape, fusion=fusion, require="exact" if exact else None)
            asked: list[dict[str, Any]] = answer["fusions"]
            return asked
        fusions: list[dict[str, Any]] = _ask(_lib.tilewright_lookup, self._handle, *_text(text), _name(fusion), int(exact))["fusions"]
        return fusions

    def plan(self, text: Union[str, bytes], *, fusion: Optional[str] = None, shape: Shape = None) -> list[dict[str, Any]]:
        """The default plan of every fusion, whatever is stored."""
        if shape is not None:
            asked: list[dict[str, Any]] = _request(self._handle, "plan", text, shape, fusion=fusion)["fusions"]
            return asked
        fusions: list[dict[str, Any]] = _ask(_lib.tilewright_plan, self._handle, *_text(text), _name(fusion))["fusions"]
        return fusions

    def get(self, fingerprint: Union[str, bytes]) -> Optional[tuple[str, float]]:
        """Plan and seconds of a fingerprint (32 bytes, or 64 digits); None: not stored."""
        raw = bytes.fromhex(fingerprint) if isinstance(fingerprint, str) else fingerprint
        if len(raw) != 32:
            raise ValueError("a fingerprint has 32 bytes")
        seconds = ctypes.c_double()
        for capacity in 128, 4097:  # of which the second is enough for any plan
            plan = ctypes.create_string_buffer(capacity)
            status = _lib.tilewright_get(self._handle, raw, plan, capacity, ctypes.byref(seconds))
            if status != _SMALL:
                break
        if status == _MISS:
            return None
        if status:
            raise TilewrightError(status, _lib.tilewright_status_text(status).decode())
        return plan.value.decode(), seconds.value

    def fingerprint(self, text: Union[str, bytes], *, shape: Shape = None) -> dict[str, str]:
        """The fingerprints of the fusions, by name. A module without fusions is split, here
        and in the next two, for the device of the database: a GPU leaves scatters outside."""
        return {f["name"]: f["fingerprint"] for f in _request(self._handle, "fingerprint", text, shape)["fusions"]}

    def partition(self, text: Union[str, bytes], *, shape: Shape = None) -> dict[str, Any]:
        """How a module is split into fusions, and at which price."""
        return _request(self._handle, "partition", text, shape)

    def tiles(self, text: Union[str, bytes], *, fusion: Optional[str] = None, sizes: Optional[Sequence[int]] = None, tile: Optional[Sequence[int]] = None, shape: Shape = None) -> dict[str, Any]:
        """Indexing maps, tiles and constraints: symbolic, of tile sizes, or of one tile."""
        return _request(self._handle, "tiles", text, shape, fusion=fusion, sizes=list(sizes or ()), tile=list(tile or ()))

    def close(self) -> None:
        """Closes it; later questions fail."""
        _lib.tilewright_close(self._handle)

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(path: Path, device: str = "cpu") -> Database:
    """Opens a database or a snapshot for this machine's CPU, or for the identity of
    another device as JSON. A file that does not exist is a database without winners."""
    return Database(path, device)


def lookup(text: Union[str, bytes], db: Path = "tilewright.db", *, fusion: Optional[str] = None, exact: bool = False, device: str = "cpu", shape: Shape = None) -> list[dict[str, Any]]:
    """Database.lookup of a file that is opened for it."""
    with Database(db, device) as d:
        return d.lookup(text, fusion=fusion, exact=exact, shape=shape)


def fingerprint(text: Union[str, bytes], *, shape: Shape = None) -> dict[str, str]:
    """The fingerprints of the fusions, by name. A module without fusions is split for the
    CPU, here and in the next two; the methods of a Database take its device."""
    if shape is not None:
        fusions = _request(0, "fingerprint", text, shape)["fusions"]
    else:
        fusions = _ask(_lib.tilewright_fingerprint, *_text(text))["fusions"]
    return {f["name"]: f["fingerprint"] for f in fusions}


def partition(text: Union[str, bytes], *, shape: Shape = None) -> dict[str, Any]:
    """How a module is split into fusions, and at which price."""
    if shape is not None:
        return _request(0, "partition", text, shape)
    return _ask(_lib.tilewright_partition, *_text(text))


def tiles(text: Union[str, bytes], *, fusion: Optional[str] = None, sizes: Optional[Sequence[int]] = None, tile: Optional[Sequence[int]] = None, shape: Shape = None) -> dict[str, Any]:
    """Indexing maps, tiles and constraints: symbolic, of tile sizes, or of one tile."""
    if shape is not None:
        return _request(0, "tiles", text, shape, fusion=fusion, sizes=list(sizes or ()), tile=list(tile or ()))
    return _ask(_lib.tilewright_tiles, *_text(text), _name(fusion), *_numbers(sizes), *_numbers(tile))


def _program() -> str:
    """The program: TILEWRIGHT, the one in the package, or the one on the path."""
    packaged = _HERE / "bin" / "tilewright"
    found = os.environ.get("TILEWRIGHT") or (str(packaged) if packaged.exists() else shutil.which("tilewright"))
    if not found:
        raise FileNotFoundError("no program tilewright: set TILEWRIGHT, or install the wheel")
    return found


def tune(text: Union[str, bytes], db: Path = "tilewright.db", *, device: str = "cpu", run_budget: Optional[str] = None, budget: Optional[str] = None, candidates: Optional[int] = None) -> dict[str, Any]:
    """Tunes the fusions of a module by the program `tilewright tune`, in a process of its
    own, keeps the winners in db, and returns its summary. Budgets are as "10s"."""
    options = {"-run-budget": run_budget, "-budget": budget, "-try": candidates}
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder, "module.txt")
        module.write_bytes(_text(text)[0])
        command = [_program(), "tune", "-json", "-progress", "0", "-db", os.fspath(db), "-device", device]
        for flag, value in options.items():
            if value is not None:
                command += [flag, str(value)]
        done = subprocess.run(command + [str(module)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if not done.stdout:
        raise TilewrightError(3, done.stderr.decode(errors="replace").strip())
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def __getattr__(name: str) -> Any:
    """tilewright.jax and tilewright.torch are imported when they are used."""
    if name in ("jax", "torch"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
