"""Arrays in NumPy files, and how far apart two of them are."""

import os

import ml_dtypes
import numpy as np


def save(folder, arrays):
    """NumPy files 0.npy and so on; bf16 as its bits."""
    os.makedirs(folder)
    for k, x in enumerate(arrays):
        np.save(os.path.join(folder, f"{k}.npy"), x.view(np.uint16) if x.dtype == ml_dtypes.bfloat16 else x)


def difference(got, want):
    """The largest difference, relative to the largest element."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if want.size == 0:
        return 0.0
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return np.inf
    top = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)))
    return float(np.nanmax(np.abs(np.where(np.isfinite(want), got - want, 0))) / (top or 1))
