"""JAX as the judge of extents that a text leaves open.

python open_extents.py [-tilewright PROGRAM]

Functions are exported with symbolic extents; `tilewright run -shape` executes the texts at
several values of them, and the outputs are compared with those of jax.jit.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from compare import difference
from numerics import ours


def softmax(x, w, s):
    y = jax.nn.softmax(x @ w, axis=-1) * s
    return y, y.mean(0)


def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
    s = jnp.where(jnp.tril(jnp.ones(s.shape[2:], bool)), s, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), v)


def embedding(table, ids):
    x = table[ids]
    positions = jnp.arange(ids.shape[1], dtype=jnp.float32)
    return (x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True)) + positions[None, :, None]).reshape(-1, x.shape[-1])


def windows(x):
    y = jnp.pad(x, ((1, 2), (0, 0)))[:-1]
    return jnp.concatenate([y[: x.shape[0]], x * 2]), jax.nn.gelu(x, approximate=False)


def loop(x):
    return jax.lax.fori_loop(0, 5, lambda i, y: jnp.tanh(y + x) * i.astype(x.dtype), x)


def convolution(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


# A case has its arguments as shapes with names of extents, and values of these.
CASES = {
    softmax: ([("b, 128", "f4"), ("128, 64", "f4"), ("64", "f4")], [{"b": 1}, {"b": 37}]),
    attention: ([("b, 4, t, 64", "f4")] * 3, [{"b": 1, "t": 16}, {"b": 3, "t": 9}]),
    embedding: ([("100, 32", "f4"), ("b, t", "i4")], [{"b": 2, "t": 8}, {"b": 1, "t": 5}]),
    windows: ([("n, 16", "f4")], [{"n": 4}, {"n": 33}]),
    loop: ([("n, 16", "f4")], [{"n": 4}, {"n": 33}]),
    convolution: ([("b, 8, 8, 3", "f4"), ("3, 3, 3, 16", "f4")], [{"b": 1}, {"b": 4}]),
}


def check(program, function, arguments, value):
    """The largest difference at one value of the extents."""
    scope = export.SymbolicScope()
    given = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), t) for s, t in arguments]
    text = export.export(jax.jit(function))(*given).mlir_module()
    random = np.random.default_rng(1)
    arrays, flags = [], []
    for k, (shape, kind) in enumerate(arguments):
        words = [w.strip() for w in shape.split(",")]
        dims = [value[w] if w in value else int(w) for w in words]
        arrays.append(random.integers(0, 100, dims, np.int32) if kind == "i4" else random.standard_normal(dims).astype(kind))
        if any(w in value for w in words):
            flags += ["-shape", f"arg{k}={'x'.join(map(str, dims))}"]
    want = jax.tree.leaves(jax.jit(function)(*arrays))
    got = ours(program, text, arrays, len(want), *flags)
    return max(difference(g, np.asarray(w)) for g, w in zip(got, want))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", default="out/tilewright")
    options = parser.parse_args()
    failed = 0
    for function, (arguments, values) in CASES.items():
        for value in values:
            name = f"{function.__name__} {value}"
            try:
                off = check(options.tilewright, function, arguments, value)
            except RuntimeError as e:
                failed += 1
                print(f"{name}: FAILED: {e}")
                continue
            failed += off > 1e-5
            print(f"{name}: largest difference {off:.2g}{' WRONG' if off > 1e-5 else ''}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
