"""python cuda_make.py FOLDER [NAME...]: compiles cuda/*.cu by nvcc and clang, with NumPy's results."""
import dataclasses
import glob
import math
import os
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np

import layouts
from case import NAMES, Writer, eighths, normal, whole

HERE = os.path.dirname(os.path.abspath(__file__))
NVIDIA = glob.glob(os.path.join(sys.prefix, "lib/python*/site-packages/nvidia/cu13"))
# Sources that need NVIDIA's headers, or functions that clang takes from libdevice.
NVCC_ONLY = {"tensor_copy", "functions", "wide", "halves", "tensor_core", "cluster"}
SM90 = {"bulk", "cluster", "tensor_copy"}
f32, f64, s32 = np.float32, np.float64, np.int32


def cases():
    """Name, grid, block, arguments by name, results by name with tolerances, arrays that start as zeros."""
    x = whole(100, 1000, 1000, s32)
    z = np.concatenate([x[i:i + 256].cumsum() for i in range(0, 1000, 256)]).astype(s32)
    yield "scan", (4,), (256,), dict(x=x, z=z, n=1000), dict(z=0), ()
    x = normal(101, (70, 45), f32)
    yield "transpose", (2, 3), (32, 8), dict(x=x, z=np.ascontiguousarray(x.T), rows=70, columns=45), dict(z=0), ()
    x = whole(102, 3000, 100, s32).astype(np.uint8)
    yield "histogram", (3,), (96,), dict(x=x, z=np.bincount(x, minlength=256).astype(s32), n=3000), dict(z=0), ("z",)
    x = np.random.default_rng(103).integers(0, 1 << 32, 512).astype(np.uint32)
    z = np.concatenate([b[np.argsort(b >> 8 & 15, kind="stable")] for b in (x[:256], x[256:])])
    yield "radix", (2,), (256,), dict(x=x, z=z, shift=8), dict(z=0), ()
    a, b = eighths(104, (50, 40), f32), eighths(105, (40, 70), f32)
    yield "sgemm", (3, 2), (256,), dict(a=a, b=b, c=a @ b, m=50, n=70, k=40), dict(c=0), ()
    x = eighths(106, (3, 2048), f32)
    yield "async_copy", (3,), (128,), dict(x=x, z=x.sum(1), columns=2048), dict(z=0), ()
    x = whole(107, (200, 7), 1000, s32)
    yield "local_array", (4,), (64,), dict(x=x, z=np.array([switched(r, x.reshape(-1)[i]) for i, r in enumerate(x)], s32), n=200), dict(z=0), ()
    x, u = normal(108, 300, f32) * 3, normal(109, 300, f64)
    v = x.astype(f64)
    z = np.sin(v) + np.exp(-v * v) + np.log(abs(v) + 1) + np.tanh(v) + np.vectorize(math.erf)(v) + abs(v) ** 0.25 + np.cbrt(v) + np.arctan2(v, 2)
    w = np.exp(u) + np.log1p(abs(u)) + np.sqrt(abs(u)) / (1 + u * u) + np.cos(u)
    yield "functions", (3,), (128,), dict(x=x, z=z.astype(f32), u=u, w=w, n=300), dict(z=4e-6, w=1e-14), ()
    x = np.random.default_rng(110).integers(0, 1 << 63, (200, 2)).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    yield "wide", (4,), (64,), dict(x=x, z=wides(x), n=200), dict(z=0), ()
    x, y = eighths(111, (100, 2), np.float16), eighths(112, (100, 2), ml_dtypes.bfloat16)
    z = np.maximum(x * x + np.float16(0.5), -x)
    s = y[:, 0].astype(f32) * y[:, 1].astype(f32) + (x[:, 0] > x[:, 1])
    yield "halves", (2,), (64,), dict(x=x, y=y, z=z, s=s.astype(f32), n=100), dict(z=0, s=0), ()
    a, b = eighths(113, (32, 48), ml_dtypes.bfloat16), eighths(114, (48, 64), ml_dtypes.bfloat16)
    yield "tensor_core", (4, 2), (32,), dict(a=a, b=b, c=a.astype(f32) @ b.astype(f32), m=32, n=64, k=48), dict(c=0), ()
    x = whole(115, 100, 1000, s32)
    yield "called", (2,), (64,), dict(x=x, z=calls(x), n=100), dict(z=0), ()
    x = eighths(116, 2000, f32)
    yield "last_block", (4,), (128,), dict(x=x, part=np.array([part(x, i) for i in range(4)], f32), z=x.sum(keepdims=True), n=2000), dict(part=0, z=0), ()
    x = eighths(117, (20, 30), f32)
    p = np.pad(x, 1, mode="edge")
    z = 0.5 * x + 0.125 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])
    yield "stencil", (2, 3), (16, 8), dict(x=x, z=z.astype(f32), h=20, w=30), dict(z=0), ()
    x = eighths(118, 2048, f32)
    yield "bulk", (2,), (96,), dict(x=x, z=x * 2 + 1), dict(z=0), ()
    x = whole(119, 256, 100, s32)
    sums = x.reshape(4, 64).sum(1)
    yield "cluster", (4,), (64,), dict(x=x, z=(sums - sums[[1, 0, 3, 2]]).astype(s32)), dict(z=0), ()


    # What the box must be in shared memory, by the figures of the ISA.
    x = np.arange(1, 24 * 40 + 1).astype(np.uint32).reshape(24, 40)
    for n, (width, columns, rows, column, row) in enumerate(((0, 12, 9, -4, 20), (32, 8, 20, 36, -3), (64, 16, 17, 8, 3), (128, 32, 24, 12, -7), (128, 32, 8, -30, 0))):
        z = np.zeros(rows * columns, np.uint32)
        for i in range(rows):
            for j in range(columns):
                inside = 0 <= row + i < 24 and 0 <= column + j < 40
                z[layouts.swizzled((i * columns + j) * 4, width) // 4] = x[row + i, column + j] if inside else 0
        box = Map("x", x, [columns, rows], layouts.MODES_OF_MAPS[width])
        yield f"tensor_copy-{n}", (1,), (64,), dict(x=box, z=z, column=column, row=row, words=rows * columns), dict(z=0), ()


@dataclasses.dataclass
class Map:
    """A tensor map of a whole array of two dimensions."""
    name: str
    array: np.ndarray
    box: list
    swizzle: int


def part(x, block):
    return sum(x[i:i + 128].sum() for i in range(block * 128, len(x), 512))


def switched(row, first):
    v = [int(i) for i in sorted(row)]
    signed = lambda n: (n + 2**31) % 2**32 - 2**31
    divide = lambda a, b: int(math.trunc(a / b))
    kind = v[3] & 7
    if kind == 0:
        return v[0] * 3
    if kind == 1:
        return divide(v[1], v[6] | 1)
    if kind == 2:
        return v[2] ^ v[5]
    if kind == 3:
        return v[int(first) & 3]
    if kind == 4:
        return int(math.fmod(v[4], (v[5] & 15) + 1))
    if kind == 5:
        return bin(v[1] % 2**32).count("1") + (32 - (v[2] % 2**32).bit_length())
    if kind == 6:
        return v[6] - v[0]
    return signed(int(f"{v[3] % 2**32:032b}"[::-1], 2))


def wides(x):
    out, mask = [], 2**64 - 1
    for a, b in x.tolist():
        hi, lo = a >> 32, a % 2**32
        s = b & 31
        f = ((hi << 32 | lo) << s >> 32) % 2**32
        both = [(hi >> 8 * i) & 255 for i in range(4)] + [(lo >> 8 * i) & 255 for i in range(4)]
        p = sum(both[n] << 8 * i for i, n in enumerate((0, 4, 1, 5)))
        add = sum((((hi >> 8 * i) + (lo >> 8 * i)) & 255) << 8 * i for i in range(4))
        out.append((a // (b | 1) + a % ((b >> 17) | 1) + (a * b >> 64) + f + p + add) & mask)
    return np.array(out, np.uint64)


def calls(x):
    def mix(a, b):
        v = (a * 31 + b) ^ (a >> 3)
        return (v + 2**31) % 2**32 - 2**31
    fib = [0, 1, 1, 2, 3, 5, 8, 13]
    return np.array([mix(int(v), mix(i, 7)) + fib[int(v) & 7] for i, v in enumerate(x)], s32)


def compilers():
    """Names of compilers with their commands."""
    if NVIDIA:
        root = NVIDIA[0]
        base = [root + "/bin/nvcc", "-std=c++17", "-I" + root + "/include/cccl", "-fmad=false", "-ptx"]
        for arch in ("80", "90a"):
            yield "nvcc", arch, base + [f"-arch=sm_{arch}"]
            yield "nvccfast", arch, base + [f"-arch=sm_{arch}", "-lineinfo", "-use_fast_math", "-fmad=true"]
    clang = next(filter(None, map(shutil.which, ("clang-19", "clang"))), None)
    if clang:
        for arch in ("80", "90a"):
            yield "clang", arch, [clang, "-x", "cuda", "-std=c++17", "--cuda-gpu-arch=sm_" + arch, "-nocudainc", "-nocudalib", "--cuda-device-only",
                                  "-fms-extensions", "-Xclang", "-target-feature", "-Xclang", "+ptx80", "-O2", "-ffp-contract=off", "-S", "-Wno-everything", "-include", os.path.join(HERE, "clang.h"), "-D__CUDA_ARCH__=" + arch.rstrip("a") + "0"]


def main(folder, *only):
    os.makedirs(os.path.join(folder, "modules"), exist_ok=True)
    failed = 0
    for compiler, arch, command in compilers():
        for name, grid, block, args, want, zeroed in cases():
            full = f"{compiler}_{name}_sm{arch}"
            name = name.split("-")[0]
            if only and not any(o in full for o in only) or compiler == "clang" and name in NVCC_ONLY or compiler == "nvccfast" and name == "functions" or arch == "80" and name in SM90:
                continue
            ptx = os.path.join(folder, "modules", full + ".ptx")
            run = subprocess.run(command + ["-o", ptx, os.path.join(HERE, "cuda", name + ".cu")], capture_output=True, text=True)
            if run.returncode:
                failed += 1
                print(full, run.stderr[:600], file=sys.stderr)
                continue
            w = Writer(name, grid, block, cluster=(2, 1, 1) if name == "cluster" else (1, 1, 1))
            for key, v in args.items():
                if isinstance(v, Map):
                    w.array(key, v.array)
                    w.map(key, NAMES[str(v.array.dtype)], list(v.array.shape)[::-1], [v.array.strides[0]], v.box, v.swizzle)
                elif isinstance(v, np.ndarray):
                    w.array(key, v, want.get(key), key in zeroed)
                    w.pointer(key)
                else:
                    w.value("i", v)
            with open(ptx) as f:
                w.write(os.path.join(folder, full + ".zip"), f.read())
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
