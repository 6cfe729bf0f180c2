"""Random programs of JAX: what tilewright computes of them is what JAX computes.

python random_programs.py [-tilewright PROGRAM] [-keep FOLDER] [FIRST LAST]

Programs are numbered; FIRST to LAST-1 are tried (0 to 99). Each applies some of OPERATIONS
to small arrays of several types, and returns its last three values. Its StableHLO, and
XLA:CPU's module after its optimisations, are executed by tilewright, which compares with
its own reference; the outputs are those of jax.jit, or those of JAX without jit where the
two differ, as they do in some programs that gather from what was gathered.
"""

import argparse
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("XLA_FLAGS", "--xla_allow_excess_precision=false")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from compare import difference, save

TYPES = [np.float32] * 10 + [jnp.bfloat16, np.float16, np.int32, np.uint8, np.bool_]
EXTENTS = [1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 32]
LARGEST = 40_000  # elements of a value
# The relative difference that is allowed of a type; of others none.
ALLOWED = {"float32": 5e-4, "float16": 4e-3, "bfloat16": 3e-2}

OPERATIONS = []


def operation(needs=lambda x: True):
    """Registers a function of a value, a source of random numbers and all values; needs says of which values."""

    def register(function):
        OPERATIONS.append((needs, function))
        return function

    return register


def is_float(x):
    return jnp.issubdtype(x.dtype, jnp.floating)


def float_matrix(x):
    return is_float(x) and x.ndim >= 2


def number(x):
    return x.dtype != jnp.bool_


def below(random, n):
    return int(random.integers(0, n))


def choice(random, list_):
    return list_[below(random, len(list_))]


@operation(is_float)
def unary(x, random, values):
    functions = [
        jnp.tanh, jnp.exp, jnp.sin, jnp.cos, jax.nn.sigmoid, jnp.abs, jax.nn.gelu, jnp.floor, jnp.sign, lax.erf, jnp.cbrt,
        lambda a: jnp.log1p(jnp.abs(a)), lambda a: jnp.sqrt(jnp.abs(a)), lambda a: jnp.where(a > 0, a, a * 0.1),
        lambda a: lax.rsqrt(jnp.abs(a) + 1),
    ]
    return jnp.clip(choice(random, functions)(x), -50, 50)


@operation()
def binary(x, random, values):
    def fits(w):
        return w.dtype == x.dtype and w.ndim <= x.ndim and all(p in (1, q) for p, q in zip(w.shape[::-1], x.shape[::-1]))

    logical = [jnp.logical_and, jnp.logical_xor, jnp.logical_or]
    arithmetic = [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum]
    return choice(random, arithmetic if number(x) else logical)(x, choice(random, [w for w in values if fits(w)]))


@operation()
def reduced(x, random, values):
    functions = [jnp.sum, jnp.max, jnp.min] + [jnp.mean] * is_float(x)
    return choice(random, functions if number(x) else [jnp.any])(x, below(random, x.ndim)).astype(x.dtype)


@operation()
def transposed(x, random, values):
    return jnp.transpose(x, random.permutation(x.ndim))


@operation()
def reshaped(x, random, values):
    rows = choice(random, [k for k in range(1, x.size + 1) if x.size % k == 0])
    return x.reshape(-1) if random.random() < 0.3 else x.reshape(rows, -1)


@operation()
def sliced(x, random, values):
    return x[tuple(slice(below(random, max(1, s // 2)), None, 1 + below(random, 2)) for s in x.shape)]


@operation()
def padded(x, random, values):
    edges = [(below(random, 4) - (s > 3), below(random, 3), below(random, 2)) for s in x.shape]
    return lax.pad(x, jnp.zeros((), x.dtype), edges)


@operation()
def concatenated(x, random, values):
    at = below(random, x.ndim)

    def fits(w):
        return w.dtype == x.dtype and w.ndim == x.ndim and all(p == q for k, (p, q) in enumerate(zip(w.shape, x.shape)) if k != at)

    return jnp.concatenate([x, choice(random, [w for w in values if fits(w)])], at)


@operation()
def reversed_(x, random, values):
    return jnp.flip(x, below(random, x.ndim))


@operation()
def taken(x, random, values):
    at = below(random, x.ndim)
    return jnp.take(x, jnp.asarray(random.integers(0, x.shape[at], 1 + below(random, 8))), at)


@operation()
def sliced_where_largest(x, random, values):
    largest = jnp.argmax(x.reshape(-1).astype(jnp.float32))
    return lax.dynamic_slice(x, [largest % s for s in x.shape], [max(1, s // 2) for s in x.shape])


@operation(number)
def added_at(x, random, values):
    return x.at[jnp.asarray(random.integers(0, x.shape[0], x.shape[0]))].add(x)


@operation(is_float)
def cumulated(x, random, values):
    return jnp.cumsum(x.astype(jnp.float32), below(random, x.ndim)).astype(x.dtype)


@operation(is_float)
def softmax(x, random, values):
    return jax.nn.softmax(x.astype(jnp.float32), below(random, x.ndim)).astype(x.dtype)


@operation(is_float)
def normalised(x, random, values):
    less = x - x.mean(-1, keepdims=True)
    return (less * lax.rsqrt((less**2).mean(-1, keepdims=True) + 1e-3)).astype(x.dtype)


@operation(float_matrix)
def product(x, random, values):
    a = x.astype(jnp.float32)
    return jnp.einsum("...ij,...kj->...ik", a, jnp.sin(a)) / a.shape[-1]


@operation(float_matrix)
def convolution(x, random, values):
    rows = x.astype(jnp.float32).reshape(-1, x.shape[-1], 1)
    filters = jnp.cos(jnp.arange(3, dtype=jnp.float32)).reshape(3, 1, 1)
    return lax.conv_general_dilated(rows, filters, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")).reshape(x.shape)


@operation(float_matrix)
def pooled(x, random, values):
    ones = (1,) * (x.ndim - 1)
    lowest = -jnp.inf if x.dtype == jnp.float32 else jnp.array(-1e4, x.dtype)
    edges = [(0, 0)] * (x.ndim - 1) + [(1, 0)]
    return lax.reduce_window(x, lowest, lax.max, ones + (min(3, x.shape[-1]),), ones + (1 + below(random, 2),), edges)


@operation(is_float)
def power(x, random, values):
    return jnp.clip(jnp.power(jnp.abs(x) + 0.1, choice(random, [2, 0.5, -0.5, 1.5, 3, -1])).astype(x.dtype), -100, 100)


@operation()
def masked(x, random, values):
    return jnp.where(jnp.arange(x.shape[-1]) % 2 == 0, x, jnp.zeros((), x.dtype))


@operation()
def converted(x, random, values):
    return x.astype(choice(random, [jnp.float32, jnp.bfloat16, jnp.float16, jnp.int32, jnp.float32]))


@operation(number)
def largest(x, random, values):
    return jnp.argmax(x, below(random, x.ndim)).astype(jnp.int32)


@operation()
def repeated(x, random, values):
    return jnp.broadcast_to(x[..., None], x.shape + (1 + below(random, 4),))


def arguments(seed):
    random = np.random.default_rng([seed, 0])
    made = []
    for _ in range(1 + below(random, 3)):
        shape = [choice(random, EXTENTS) for _ in range(1 + below(random, 4))]
        kind = np.dtype(choice(random, TYPES))
        if kind.kind in "iu":
            made.append(random.integers(0, 9, shape).astype(kind))
        else:
            made.append((random.standard_normal(shape) > 0 if kind.kind == "b" else random.standard_normal(shape)).astype(kind))
    return made


def program(seed):
    """The function of a number. Values that are empty or large are left out."""

    def function(*given):
        random = np.random.default_rng([seed, 1])
        values = [jnp.asarray(x) for x in given]
        for _ in range(6 + below(random, 12)):
            x = choice(random, values) if random.random() < 0.5 else values[-1]
            needs, apply = choice(random, OPERATIONS)
            y = apply(x, random, values) if needs(x) else x
            if y is not x and 0 < y.size <= LARGEST and 0 < y.ndim <= 6:
                values.append(y)
        return tuple(values[len(given):][-3:]) or (values[0],)

    return function


def executed(tilewright, text, arrays, count):
    """The outputs of the text of a module, or what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        given, made, file = (os.path.join(folder, x) for x in ("in", "out", "m.txt"))
        with open(file, "w") as out:
            out.write(text)
        save(given, arrays)
        os.makedirs(made)
        done = subprocess.run(
            [tilewright, "run", "-repeat", "1", "-timeout", "2m", "-args", given, "-out", made, file],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        if done.returncode:
            return done.stderr.strip()
        return [np.load(os.path.join(made, f"{k}.npy")) for k in range(count)]


def off(got, want):
    """What is wrong with outputs; "" where nothing is."""
    for k, (g, w) in enumerate(zip(got, map(np.asarray, want))):
        g = g.view(w.dtype) if w.dtype.kind == "V" else g
        d = difference(g, w)
        if not d <= ALLOWED.get(str(w.dtype), 0):
            return f"output {k}, {w.dtype}{list(w.shape)}: relative difference {d:.2g}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", default="out/tilewright")
    parser.add_argument("-keep", help="a folder for the texts that fail")
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("last", nargs="?", type=int, default=100)
    o = parser.parse_args()
    bad = 0
    for seed in range(o.first, o.last):
        function, arrays = program(seed), arguments(seed)
        lowered = jax.jit(function, keep_unused=True).lower(*arrays)
        compiled = lowered.compile()
        want = compiled(*arrays)
        for kind, text in ("mlir", lowered.as_text()), ("hlo", compiled.as_text()):
            if kind == "hlo" and "{...}" in text:
                continue  # XLA leaves large constants out
            got = executed(o.tilewright, text, arrays, len(want))
            why = got if isinstance(got, str) else off(got, want)
            if why and not isinstance(got, str):
                with jax.disable_jit():
                    why = off(got, function(*arrays))
            if not why:
                continue
            bad += 1
            print(f"{seed}.{kind}: {why}", flush=True)
            if o.keep:
                os.makedirs(o.keep, exist_ok=True)
                with open(os.path.join(o.keep, f"{seed}.{kind}"), "w") as file:
                    file.write(text)
    print(f"{o.last - o.first} programs, {bad} texts fail")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
