"""XLA:CPU as the judge of single operations, number by number.

python numerics.py [-tilewright PROGRAM] [NAME…]

Each case is a module of HLO that XLA compiles and `tilewright run` executes on the
same inputs: codes of all kinds of numbers, or normal ones. Outputs must be equal
bit for bit (NaN by NaN), or within the relative difference that the case allows.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

import rival
from compare import difference, save

N = 1 << 20
TYPES = {
    "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "c64": np.complex64, "c128": np.complex128,
}
BITS = {"f32": np.uint32, "f64": np.uint64, "bf16": np.uint16, "f16": np.uint16}


def codes(kind):
    """Numbers of all magnitudes, the special ones included: codes spread evenly."""
    bits = BITS[kind]
    width = np.dtype(bits).itemsize * 8
    k = np.arange(N, dtype=np.uint64)
    x = (k * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - width)
    x[: 1 << 10] = (k[: 1 << 10] << np.uint64(width - 10)) + (k[: 1 << 10] & np.uint64(3))
    return x.astype(bits).view(TYPES[kind])


def normals(kind, shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(TYPES[kind])


def reduce_precision(kind, e, m):
    text = f"""HloModule m
ENTRY e {{ x = {kind}[{N}] parameter(0)
  ROOT r = {kind}[{N}] reduce-precision(x), exponent_bits={e}, mantissa_bits={m} }}"""
    return text, [codes(kind)], 0


def batch_norm(kind, dims, feature, op):
    f, n = f"{kind}[{dims[feature]}]", f"{kind}[{','.join(map(str, dims))}]"
    tail = f"epsilon=0.001, feature_index={feature}"
    x, g = normals(kind, dims, 1), normals(kind, dims, 2)
    v = [normals(kind, dims[feature], s) for s in (3, 4, 5)]
    positive = np.abs(v[2]) + np.asarray(0.5, TYPES[kind])
    if op == "training":
        text = f"ROOT r = ({n}, {f}, {f}) batch-norm-training(x, s, o), {tail}"
        params, arrays = [(n, "x"), (f, "s"), (f, "o")], [x, v[0], v[1]]
    elif op == "inference":
        text = f"ROOT r = {n} batch-norm-inference(x, s, o, m, v), {tail}"
        params, arrays = [(n, "x"), (f, "s"), (f, "o"), (f, "m"), (f, "v")], [x, v[0], v[1], v[1], positive]
    else:
        text = f"ROOT r = ({n}, {f}, {f}) batch-norm-grad(x, s, m, v, g), {tail}"
        params, arrays = [(n, "x"), (f, "s"), (f, "m"), (f, "v"), (n, "g")], [x, v[0], v[1], positive, g]
    head = "\n".join(f"  {name} = {shape} parameter({k})" for k, (shape, name) in enumerate(params))
    return f"HloModule m\nENTRY e {{\n{head}\n  {text}\n}}", arrays, 2e-2 if kind == "bf16" else 1e-5


def function(call, kind, *arrays):
    """A function that JAX prints in the chlo dialect, as StableHLO."""
    import jax

    arrays = [a.astype(TYPES[kind]) for a in arrays]
    return jax.jit(call).lower(*arrays).as_text(), arrays


def apart(got, want):
    """The largest difference of an element, relative to it where that is more than 1."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return np.inf
    return float(np.max(np.abs(got - want)[finite] / np.maximum(np.abs(want[finite]), 1)))


def places(kind):
    """Places of all sizes up to 10⁴, the poles and the zeros of the gamma functions."""
    random = np.random.default_rng(1).standard_normal(1 << 16)
    sizes = np.exp(np.linspace(-20, 9, 1 << 15))
    special = [0.0, -0.0, 1, 2, 0.5, -0.5, -1, -2, 1.4616321449683622, np.inf, -np.inf, np.nan, 100, 171]
    x = np.concatenate([special, 4 * random, np.linspace(-8, 8, 1 << 14), sizes, -sizes[: 1 << 14]])
    return x.astype(TYPES[kind])


def functions():
    """Cases of functions without an opcode of HLO: name, call, allowed difference."""
    import jax

    for kind, off in (("f32", 4e-6), ("f64", 1e-13), ("bf16", 8e-3), ("f16", 2e-3)):
        for name, call in (("lgamma", jax.lax.lgamma), ("digamma", jax.lax.digamma)):
            yield f"{name} {kind}", (*function(call, kind, places(kind)), off, apart)
        x = codes(kind)[: 1 << 18]
        pairs = np.concatenate([x, x]), np.concatenate([x[::-1], x])
        yield f"next-after {kind}", (*function(jax.lax.nextafter, kind, *pairs), 0)


def complex_apart(got, want):
    """The largest difference of a number, relative to its magnitude, where both are finite."""
    both = np.isfinite(want) & np.isfinite(got)
    if np.sum(np.isfinite(want) & ~np.isfinite(got)) > 0:
        return np.inf
    size = np.maximum(np.abs(want[both]), np.finfo(want.dtype).tiny * 1e8)
    return float(np.max(np.abs(got[both] - want[both]) / size, initial=0))


def complex_numbers(kind, seed):
    """Numbers of ordinary size in all quadrants, on the axes and next to 1."""
    random = np.random.default_rng(seed)
    x, y = random.standard_normal((2, N >> 6)) * np.exp(random.uniform(-6, 2, (2, N >> 6)))
    x[:256], y[256:512] = 0, 0
    z = x + 1j * y
    z[512:1024] = np.exp(1j * y[512:1024]) * (1 + 1e-3 * x[512:1024])
    return z.astype(TYPES[kind])


# Functions of which XLA:CPU is less accurate than ours (sine: 3e-4 of c64 off the true
# value, where ours is off 2e-7), or whose small results are differences.
LOOSE = {"sine": 100, "cosine": 100, "tan": 10, "logistic": 20, "log": 10, "log-plus-one": 10}


def complex_cases():
    """Operations on complex numbers: text, inputs, allowed difference, measure."""
    for kind, part, off in (("c64", "f32", 4e-6), ("c128", "f64", 2e-14)):
        x, y = complex_numbers(kind, 1), complex_numbers(kind, 2)
        n = x.size
        a = f"{kind}[{n}]"
        for op, out in [(op, a) for op in (
            "cosine exponential exponential-minus-one log log-plus-one logistic negate rsqrt sign sine sqrt tan tanh"
        ).split()] + [(op, f"{part}[{n}]") for op in ("abs", "real", "imag")]:
            text = f"HloModule m\nENTRY e {{ x = {a} parameter(0)\n  ROOT r = {out} {op}(x) }}"
            yield f"{op} {kind}", (text, [x], off * LOOSE.get(op, 1), complex_apart)
        for op in "add subtract multiply divide power".split():
            text = f"HloModule m\nENTRY e {{ x = {a} parameter(0)\n  y = {a} parameter(1)\n  ROOT r = {a} {op}(x, y) }}"
            yield f"{op} {kind}", (text, [x, y], 200 * off if op == "power" else off, complex_apart)
        text = f"""HloModule m
ENTRY e {{ x = {kind}[64,96] parameter(0)
  y = {kind}[96,32] parameter(1)
  ROOT r = {kind}[64,32] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"""
        yield f"dot {kind}", (text, [x[: 64 * 96].reshape(64, 96), y[: 96 * 32].reshape(96, 32)], 10 * off, difference_of_sums)
        text = f"""HloModule m
add {{ a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT c = {kind}[] add(a, b) }}
ENTRY e {{ x = {kind}[64,256] parameter(0)
  z = {kind}[] constant((0, 0))
  ROOT r = {kind}[64] reduce(x, z), dimensions={{1}}, to_apply=add }}"""
        yield f"reduce {kind}", (text, [x.reshape(64, -1)], 10 * off, difference_of_sums)


def difference_of_sums(got, want):
    """The largest difference, relative to the largest magnitude."""
    return float(np.max(np.abs(got - want)) / np.max(np.abs(want)))


def bitcast(wide, narrow):
    """Bits of numbers as narrower ones, and back."""
    x = np.random.default_rng(3).integers(0, 256, (512, 8 * 16), np.uint8).view(INTEGERS[wide])
    many = x.itemsize // np.dtype(INTEGERS[narrow]).itemsize
    dims = f"{x.shape[0]},{x.shape[1]}"
    text = f"""HloModule m
ENTRY e {{ x = {wide}[{dims}] parameter(0)
  b = {narrow}[{dims},{many}] bitcast-convert(x)
  n = {narrow}[{dims},{many}] not(b)
  w = {wide}[{dims}] bitcast-convert(n)
  ROOT r = ({narrow}[{dims},{many}], {wide}[{dims}]) tuple(b, w) }}"""
    return text, [x], 0


INTEGERS = {
    "u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16,
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64,
}

CASES = {
    **{f"bitcast-convert {w} {n}": bitcast(w, n) for w, n in [
        ("u16", "u8"), ("u32", "u8"), ("u32", "u16"), ("u64", "u8"), ("u64", "u16"), ("u64", "u32"),
        ("s32", "s8"), ("s64", "u16"), ("u64", "s32")]},
    **{f"reduce-precision {t} e{e}m{m}": reduce_precision(t, e, m) for t, e, m in [
        ("f32", 8, 7), ("f32", 5, 10), ("f32", 4, 3), ("f32", 8, 0), ("f32", 2, 22), ("f32", 11, 52), ("f32", 1, 5),
        ("bf16", 8, 7), ("bf16", 5, 3), ("f16", 5, 2), ("f16", 4, 10), ("f64", 8, 23), ("f64", 11, 20)]},
    **{f"batch-norm-{op} {t}{list(d)} {f}": batch_norm(t, d, f, op)
       for op in ("training", "inference", "grad")
       for t, d, f in [("f32", (8, 16, 16, 32), 3), ("f32", (8, 32, 12, 10), 1), ("bf16", (64, 96), 1)]},
}


def ours(program, text, arrays, count, *flags):
    """The outputs of tilewright run."""
    with tempfile.TemporaryDirectory() as folder:
        file, given, made = (os.path.join(folder, x) for x in ("m.hlo", "in", "out"))
        with open(file, "w") as f:
            f.write(text)
        save(given, arrays)
        os.makedirs(made)
        command = [program, "run", "-check=true", "-repeat", "1", "-args", given, "-out", made, *flags, file]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return [np.load(os.path.join(made, f"{k}.npy")) for k in range(count)]


def theirs(text, arrays):
    """The outputs of XLA:CPU."""
    import jax

    with tempfile.NamedTemporaryFile("w", suffix=".hlo") as f:
        f.write(text)
        f.flush()
        p = rival.Program(f.name)
    given = [jax.device_put(a) for a in arrays]
    return [np.asarray(x[0]) for x in p.loaded.execute_sharded(given).disassemble_into_single_device_arrays()]


def unequal(got, want):
    """The number of elements that are not the same number; NaN equals NaN."""
    if want.dtype == ml_dtypes.bfloat16:
        got = got.view(ml_dtypes.bfloat16)
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | (got != got) & (want != want)
    return int(np.sum(~same))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", default="out/tilewright")
    parser.add_argument("name", nargs="*")
    options = parser.parse_args()
    import jax

    jax.config.update("jax_enable_x64", True)
    failed = 0
    CASES.update(functions())
    CASES.update(complex_cases())
    for name, (text, arrays, allowed, *measure) in CASES.items():
        if options.name and not any(n in name for n in options.name):
            continue
        want = theirs(text, arrays)
        try:
            got = ours(options.tilewright, text, arrays, len(want))
        except RuntimeError as e:
            failed += 1
            print(f"{name}: FAILED: {e}")
            continue
        if allowed:
            got = [g.view(ml_dtypes.bfloat16) if w.dtype == ml_dtypes.bfloat16 else g for g, w in zip(got, want)]
            off = max((*measure, difference)[0](g, w) for g, w in zip(got, want))
            bad = off > allowed
            print(f"{name}: largest difference {off:.2g}{' WRONG' if bad else ''}", flush=True)
        else:
            count = sum(unequal(g, w) for g, w in zip(got, want))
            bad = count > 0
            print(f"{name}: {count} of {sum(w.size for w in want)} elements differ{' WRONG' if bad else ''}", flush=True)
        failed += bad
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
