"""Cases for the simulator: a module of PTX, its launch, its arrays, and what NumPy computes.

A case is a zip file of kernel.ptx, case.json and one file an array.
"""
import dataclasses
import json
import re
import struct
import zipfile

import ml_dtypes
import numpy as np


def whole(seed, shape, bound, dtype):
    """Whole numbers from -bound to bound."""
    return np.random.default_rng(seed).integers(-bound, bound + 1, shape).astype(dtype)


def eighths(seed, shape, dtype):
    """Multiples of 1/8 from -1 to 1: their products and short sums are exact in f32."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 8).astype(dtype)


def normal(seed, shape, dtype):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@dataclasses.dataclass
class Descriptor:
    """A tensor descriptor of a whole array, made by the host."""
    array: np.ndarray
    block: tuple


@dataclasses.dataclass
class Address:
    """An array of the addresses of other arrays."""
    names: list


@dataclasses.dataclass
class Launch:
    """A Triton kernel's launch. Arrays of args that expect names are what NumPy computed."""
    name: str
    kernel: object
    arch: int
    grid: tuple
    args: dict
    expect: dict
    warps: int = 4
    stages: int = 3
    ctas: int = 1
    zeroed: tuple = ()
    others: dict = dataclasses.field(default_factory=dict)


# PTX names of NumPy's types.
NAMES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "s8", "uint8": "u8", "int16": "s16",
    "uint16": "u16", "int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}


class Writer:
    """Collects the arrays and arguments of a case."""

    def __init__(self, entry, grid, block, shared=0, cluster=(1, 1, 1)):
        pad = lambda v: (list(v) + [1, 1, 1])[:3]
        self.meta = dict(Entry=entry, Grid=pad(grid), Block=pad(block), Cluster=pad(cluster), Shared=shared, Arrays=[], Args=[])
        self.files = {}

    def array(self, name, value, tolerance=None, zeroed=False):
        """Adds an array: an input, or with a tolerance a result, which starts poisoned or as zeros."""
        a = dict(Name=name, Type=NAMES[str(value.dtype)], Bytes=value.nbytes)
        if tolerance is None:
            a["Input"] = name + ".in"
        else:
            a.update(Want=name + ".want", Tolerance=tolerance, Zeroed=zeroed)
        self.files[a.get("Input") or a["Want"]] = value.tobytes()
        self.meta["Arrays"].append(a)

    def addresses(self, name, names):
        self.meta["Arrays"].append(dict(Name=name, Type="u64", Bytes=8 * len(names), Addresses=names))

    def scratch(self, name, size):
        self.meta["Arrays"].append(dict(Name=name, Type="u8", Bytes=size))

    def pointer(self, name):
        self.meta["Args"].append(dict(Array=name))

    def value(self, form, v):
        """An argument by value, packed as the struct module's form says."""
        self.meta["Args"].append(dict(Hex=struct.pack("<" + form, v).hex()))

    def map(self, name, type, dims, strides, box, swizzle, nan=False):
        """A tensor map, innermost dimension first; strides in bytes from dimension 1 on."""
        self.meta["Args"].append(dict(Map=dict(Array=name, Type=type, Dims=dims, Strides=strides, Box=box, Swizzle=swizzle, NaN=nan)))

    def write(self, path, ptx):
        """Writes the case; what is for debuggers, which names files, is left out."""
        ptx = re.sub(r"(?m)^\s*\.(loc|file)\b.*\n", "", ptx)
        ptx = re.sub(r"(?m)^\s*\.section\b[^{]*\{[^}]*\}\n?", "", ptx)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
            def put(name, data):
                z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
            put("case.json", json.dumps(self.meta))
            put("kernel.ptx", ptx)
            for name, data in self.files.items():
                put(name, data)
