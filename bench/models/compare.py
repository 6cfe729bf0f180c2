"""Inputs that a formula makes, what `tilewright run` computes of them, and how far off it is."""

import gzip
import json
import os
import subprocess
import tempfile

import ml_dtypes
import numpy as np

# The relative difference that is allowed. Sums of f32 in another order differ by
# some 1e-6; the second moments of Adam, squares, and deep norms multiply that.
ALLOWED = 2e-4
# Elements of an output that record keeps, evenly spaced.
KEPT = 16


def save(folder, arrays):
    """NumPy files 0.npy and so on; the types of ml_dtypes as their bits."""
    os.makedirs(folder)
    for k, x in enumerate(arrays):
        np.save(os.path.join(folder, f"{k}.npy"), x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "V" else x)


def difference(got, want):
    """The largest difference, relative to the largest element."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if want.size == 0:
        return 0.0
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return np.inf
    top = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)))
    return float(np.nanmax(np.abs(np.where(np.isfinite(want), got - want, 0))) / (top or 1))


def hashed(number, n):
    """n numbers from 0 to 1 that depend on the number of the argument."""
    x = (np.arange(n, dtype=np.uint64) * 2654435761 + (number + 1) * 2246822519) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 2246822519) & 0xFFFFFFFF
    x ^= x >> 13
    x = (x * 3266489917) & 0xFFFFFFFF
    x ^= x >> 16
    return x.astype(np.float64) / 2**32


def executed(program, module, arrays, count):
    """The outputs of tilewright run of the text of a module."""
    with tempfile.TemporaryDirectory() as folder:
        text, given, made = (os.path.join(folder, x) for x in ("m.mlir", "in", "out"))
        with open(text, "w") as file:
            file.write(module)
        save(given, arrays)
        os.makedirs(made)
        command = [program, "run", "-check=false", "-repeat", "1", "-args", given, "-out", made, text]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return [np.load(os.path.join(made, f"{k}.npy")) for k in range(count)]


def digits(x):
    """x with the digits that f32 has."""
    return float(f"{x:.7g}")


def kept(x):
    """Evenly spaced elements of an output, and its largest magnitude."""
    flat = np.asarray(x, np.float64).reshape(-1)
    places = [k * max(1, flat.size // KEPT) for k in range(min(KEPT, flat.size))]
    largest = np.max(np.abs(flat), initial=0)
    return {"largest": digits(largest), "elements": [digits(flat[k]) for k in places]}


def record(path, results):
    """Adds results by the names of their models to a file, for the Go test."""
    if os.path.exists(path):
        with gzip.open(path) as file:
            results = json.load(file) | results
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
        out.write(json.dumps(results).encode())
