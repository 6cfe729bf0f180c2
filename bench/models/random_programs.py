"""Random programs of JAX: what tilewright computes of them is what JAX computes.

python random_programs.py [-tilewright PROGRAM] [-device DEVICE] [-keep FOLDER] [FIRST LAST]

Programs are numbered; FIRST to LAST-1 are tried (0 to 99). Each applies some of OPERATIONS,
from number 1000 on also of MORE (loops, gradients, sorting, scatters, bits, random numbers),
to small arrays of several types, and returns its last three values. Its StableHLO, and
XLA:CPU's module after its optimisations, are executed by tilewright, which compares with
its own reference; the outputs are those of jax.jit, or those of JAX without jit where the
two differ, as they do in some programs that gather from what was gathered.

Where they are not, the program is also computed with f64 in place of f32, types of 16 bits
being rounded to as before, and how far both are from that is printed. XLA leaves roundings to
bf16 and f16 out, so that it is often the one that is off; this is no more than a hint, since
tilewright computes the f64, too.
"""

import argparse
import os
import re
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

OPERATIONS, MORE = [], []


def operation(needs=lambda x: True, among=OPERATIONS):
    """Registers a function of a value, a source of random numbers and all values; needs says of which values."""

    def register(function):
        among.append((needs, function))
        return function

    return register


def more(needs=lambda x: True):
    return operation(needs, MORE)


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


def integer(x):
    return x.dtype in (jnp.int32, jnp.uint8)


def mild(random):
    """A function of floats whose iterations stay bounded."""
    k = below(random, 7)
    return [
        lambda a: jnp.tanh(a) * 0.9,
        lambda a: a * 0.5 + jnp.roll(a, 1, -1) * 0.25,
        lambda a: a - a.mean(0, keepdims=True),
        lambda a: jnp.where(a > 0, a, jnp.sin(a)),
        lambda a: jax.nn.softmax(a, -1),
        lambda a: jnp.flip(a, 0) * 0.7,
        lambda a: a.at[0].set(a[-1]) * 0.8,
    ][k]


@more(is_float)
def looped(x, random, values):
    f, n = mild(random), 1 + below(random, 6)
    return lax.fori_loop(0, n, lambda i, a: (f(a) + i * 0.01).astype(a.dtype), x)


@more(is_float)
def looped_while(x, random, values):
    f = mild(random)
    most = 1 + below(random, 8)
    return lax.while_loop(lambda s: (s[0] < most) & (jnp.abs(s[1]).max() > 0.1), lambda s: (s[0] + 1, (f(s[1]) * 0.6).astype(x.dtype)), (0, x))[1]


@more(is_float)
def scanned(x, random, values):
    def step(carry, row):
        carry = (carry * 0.5 + jnp.tanh(row)).astype(x.dtype)
        return carry, carry * carry if k else (carry, row)[0]

    k = below(random, 2)
    last, rows = lax.scan(step, jnp.zeros(x.shape[1:], x.dtype), x, reverse=random.random() < 0.3)
    return rows if random.random() < 0.7 else jnp.atleast_1d(last)


@more(is_float)
def mapped(x, random, values):
    f = mild(random)
    return lax.map(lambda row: f(row[None])[0].astype(x.dtype), x)


@more(is_float)
def conditional(x, random, values):
    f, g = mild(random), mild(random)
    where = x.reshape(-1)[0] > x.reshape(-1)[-1]
    return lax.cond(where, lambda a: f(a).astype(a.dtype), lambda a: g(a).astype(a.dtype), x)


@more(is_float)
def switched(x, random, values):
    branches = [mild(random) for _ in range(3)]
    return lax.switch(jnp.argmax(x.reshape(-1)) % 3, [lambda a, f=f: f(a).astype(a.dtype) for f in branches], x)


@more(lambda x: x.dtype == jnp.float32)
def differentiated(x, random, values):
    indices = jnp.asarray(random.integers(0, x.shape[0], 5))
    weights = jnp.sin(jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape)
    functions = [
        lambda a: (jax.nn.softmax(a, -1) * weights).sum(),
        lambda a: (jnp.cumsum(a, 0) * weights).sum(),
        lambda a: (a[indices] ** 2).sum(),
        lambda a: (jnp.sort(a, -1) * weights).sum(),
        lambda a: jax.nn.logsumexp(a, -1).sum(),
        lambda a: (jnp.max(a, -1) ** 2).sum(),
        lambda a: (jnp.tanh(a) * weights).sum() / (1 + (a * a).sum()),
        lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1,) * (a.ndim - 1) + (min(2, a.shape[-1]),), (1,) * (a.ndim - 1) + (min(2, a.shape[-1]),), "VALID").sum(),
        lambda a: jnp.einsum("...i,...j->", a, a * weights) * 1e-2,
        lambda a: (normalised(a, random, values) * weights).sum(),
        lambda a: lax.scan(lambda c, r: (c * 0.5 + jnp.sin(r), c.sum()), a[0] * 0, a)[1].sum(),
        lambda a: jnp.prod(jnp.cos(a), -1).sum(),
    ]
    return jax.grad(choice(random, functions))(x)


@more()
def sorted_(x, random, values):
    at = below(random, x.ndim)
    if x.dtype == jnp.bool_:
        return jnp.sort(x, at)
    k = 1 + below(random, x.shape[-1])
    return choice(random, [
        lambda: jnp.sort(x, at),
        lambda: -jnp.sort(-x, at),
        lambda: jnp.argsort(x, at, stable=True).astype(jnp.int32),
        lambda: lax.top_k(x, k)[0],
        lambda: lax.top_k(x, k)[1],
        lambda: jnp.median(x.astype(jnp.float32), at),
    ])()


@more(number)
def scattered(x, random, values):
    n = 1 + below(random, 5)
    places = tuple(jnp.asarray(random.integers(0, s, n)) for s in x.shape[: 1 + below(random, x.ndim)])
    rows = jnp.flip(x[places], 0)
    at = x.at[places]
    return choice(random, [lambda: at.add(rows), lambda: at.max(rows), lambda: at.min(rows), lambda: x.at[places[0][:1]].set(x[:1]), lambda: at.multiply(2)])()


@more()
def gathered(x, random, values):
    n = 1 + below(random, 5)
    places = tuple(jnp.asarray(random.integers(-s, s, n)) for s in x.shape[: 1 + below(random, x.ndim)])
    along = jnp.asarray(random.integers(0, x.shape[-1], x.shape))
    return choice(random, [
        lambda: x[places],
        lambda: jnp.take_along_axis(x, along, -1),
        lambda: jnp.take_along_axis(x, jnp.argsort(x, -1, stable=True), -1),
        lambda: x[..., None, places[0] % x.shape[-1]],
    ])()


@more()
def updated(x, random, values):
    start = jnp.argmax(x.reshape(-1).astype(jnp.float32))
    part = jnp.flip(x[tuple(slice(0, max(1, s // 2)) for s in x.shape)], 0)
    return lax.dynamic_update_slice(x, part, [start % (s + 1) - 1 for s in x.shape])


@more()
def sliced_of_each(x, random, values):
    if x.ndim < 2:
        return x
    starts = jnp.asarray(random.integers(0, x.shape[1], x.shape[0]))
    return jax.vmap(lambda row, s: lax.dynamic_slice_in_dim(row, s, max(1, row.shape[0] // 2)))(x, starts)


@more(integer)
def bits(x, random, values):
    k = x.dtype.type(1 + below(random, 5))
    return choice(random, [
        lambda: x << k, lambda: x >> k, lambda: lax.shift_right_logical(x, jnp.full_like(x, k)), lambda: x ^ k, lambda: ~x, lambda: x // k, lambda: x % k,
        lambda: lax.population_count(x), lambda: lax.clz(x), lambda: lax.rem(x, jnp.full_like(x, k)), lambda: lax.div(x, jnp.full_like(x, k)), lambda: x & k | 2,
    ])()


@more(number)
def bit_cast(x, random, values):
    wide = {jnp.dtype(jnp.float32): jnp.int32, jnp.dtype(jnp.int32): jnp.uint8, jnp.dtype(jnp.bfloat16): jnp.uint8}.get(jnp.dtype(x.dtype))
    if wide is None:
        return x
    # Bits of what is rounded coarsely: those of other numbers differ.
    return lax.bitcast_convert_type(jnp.round(x * 4) / 4 if is_float(x) else x, wide)


@more(lambda x: x.ndim >= 2 and number(x))
def typed_product(x, random, values):
    kind = choice(random, [jnp.bfloat16, jnp.float16, jnp.int8])
    a = jnp.clip(x, -4, 4).astype(kind)
    batch = tuple(range(x.ndim - 2))
    to = jnp.int32 if kind == jnp.int8 else jnp.float32
    return lax.dot_general(a, jnp.flip(a, -1), (((x.ndim - 1,), (x.ndim - 1,)), (batch, batch)), preferred_element_type=to)


@more(lambda x: is_float(x) and x.ndim >= 3)
def convolution_2d(x, random, values):
    groups = choice(random, [1, 2, 3])
    image = x.astype(jnp.float32).reshape(-1, x.shape[-2], x.shape[-1], 1) * jnp.ones(groups * 2)
    filters = jnp.cos(jnp.arange(2 * 3 * 2 * 2 * groups, dtype=jnp.float32)).reshape(2, 3, 2, 2 * groups)
    return lax.conv_general_dilated(
        image, filters, (1 + below(random, 2), 1 + below(random, 2)), [(below(random, 3), 2), (0, 3)],
        lhs_dilation=(1 + below(random, 2), 1), rhs_dilation=(1, 1 + below(random, 2)), dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups,
    )


@more(is_float)
def window_sum(x, random, values):
    w = tuple(1 + below(random, min(3, s)) for s in x.shape)
    step = tuple(1 + below(random, 2) for _ in x.shape)
    edges = [(below(random, p), below(random, p)) for p in w]
    zero = jnp.zeros((), x.dtype)
    return lax.reduce_window(x, zero, lax.add, w, step, edges)


@more(is_float)
def cumulated_otherwise(x, random, values):
    a = jnp.tanh(x.astype(jnp.float32))
    f = choice(random, [lax.cummax, lax.cummin, lax.cumprod, lax.cumlogsumexp])
    return f(a, below(random, x.ndim), reverse=random.random() < 0.5)


@more()
def one_hot(x, random, values):
    return jax.nn.one_hot(jnp.clip(x, 0, 6).astype(jnp.int32), 7, dtype=choice(random, [jnp.float32, jnp.bfloat16]))


@more(lambda x: x.ndim >= 2)
def triangle(x, random, values):
    k = below(random, 3) - 1
    return jnp.tril(x, k) if random.random() < 0.5 else jnp.triu(x, k)


@more(is_float)
def random_numbers(x, random, values):
    key = jax.random.PRNGKey(below(random, 99))
    f = choice(random, [jax.random.normal, jax.random.uniform])
    return (x + f(key, x.shape)).astype(x.dtype)


@more(number)
def segments(x, random, values):
    return jax.ops.segment_sum(x, jnp.asarray(random.integers(0, 4, x.shape[0])), 4)


@more(lambda x: is_float(x) and x.ndim >= 2)
def resized(x, random, values):
    to = x.shape[:-1] + (1 + below(random, 20),)
    return jax.image.resize(x.astype(jnp.float32), to, choice(random, ["linear", "nearest", "cubic"]))


@more(is_float)
def statistics(x, random, values):
    a = x.astype(jnp.float32)
    return choice(random, [
        lambda: jnp.var(a, -1, keepdims=True) + a, lambda: jax.nn.logsumexp(a, -1, keepdims=True) * a, lambda: a / (1 + jnp.linalg.norm(a, axis=0)),
        lambda: lax.reduce_precision(a, 5, 7), lambda: jnp.nan_to_num(jnp.log(a)), lambda: jnp.round(a * 3), lambda: jnp.logaddexp(a, -a),
        lambda: jnp.arctan2(a, 1 + a * a), lambda: jnp.expm1(jnp.tanh(a)), lambda: jax.nn.softplus(a), lambda: lax.erf_inv(jnp.tanh(a) * 0.9),
        lambda: lax.lgamma(jnp.abs(a) + 0.5), lambda: jnp.real(jnp.exp(lax.complex(a * 0.1, a))), lambda: jnp.abs(lax.complex(a, a) * lax.complex(a, -a)),
    ])()


@more(number)
def reduced_by_two(x, random, values):
    def least(a, b):
        first = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    a = x.astype(jnp.float32)
    at = below(random, x.ndim)
    pair = lax.reduce((a, lax.broadcasted_iota(jnp.int32, x.shape, at)), (np.float32(np.inf), np.int32(99)), least, (at,))
    return jnp.atleast_1d(choice(random, pair))


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
        operations = OPERATIONS + MORE if seed >= 1000 else OPERATIONS
        for _ in range(6 + below(random, 12)):
            x = choice(random, values) if random.random() < 0.5 else values[-1]
            needs, apply = choice(random, operations)
            y = apply(x, random, values) if needs(x) else x
            if y is not x and 0 < y.size <= LARGEST and 0 < y.ndim <= 6:
                values.append(y)
        return tuple(values[len(given):][-3:]) or (values[0],)

    return function


def executed(tilewright, device, text, arrays, count):
    """The outputs of the text of a module, or what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        given, made, file = (os.path.join(folder, x) for x in ("in", "out", "m.txt"))
        with open(file, "w") as out:
            out.write(text)
        save(given, arrays)
        os.makedirs(made)
        done = subprocess.run(
            [tilewright, "run", "-device", device, "-repeat", "1", "-timeout", "5m", "-args", given, "-out", made, file],
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


def doubled(text):
    """StableHLO with f64 in place of f32, but where bits are taken of f32 or made it."""
    def constant(match):
        wide = np.frombuffer(bytes.fromhex(match[1])[::-1], np.float32).astype(np.float64)
        return f"0x{wide.view(np.uint64)[0]:016X}"

    text = re.sub(r"\b0x([0-9A-F]{8})\b(?=[^\n]*f32>)", constant, text)
    text = re.sub(r"(\b|x)f32\b", r"\1f64", text)
    bits = r"( *)(%\w+) = stablehlo.bitcast_convert (%\w+) : \(tensor<(.*?)f64>\) -> (.*)"
    text = re.sub(bits, r"\1\2f = stablehlo.convert \3 : (tensor<\4f64>) -> tensor<\4f32>\n\1\2 = stablehlo.bitcast_convert \2f : (tensor<\4f32>) -> \5", text)
    made = r"( *)(%\w+) = stablehlo.bitcast_convert (%\w+) : (\(.*\)) -> tensor<(.*)f64>"
    return re.sub(made, r"\1\2f = stablehlo.bitcast_convert \3 : \4 -> tensor<\5f32>\n\1\2 = stablehlo.convert \2f : (tensor<\5f32>) -> tensor<\5f64>", text)


def beside_float64(o, text, arrays, got, want):
    """How far the outputs of tilewright and of JAX are from those of the program in f64."""
    wide = [x.astype(np.float64) if x.dtype == np.float32 else x for x in arrays]
    exact = executed(o.tilewright, o.device, doubled(text), wide, len(want))
    if isinstance(exact, str):
        return "no f64: " + exact.splitlines()[0]

    def furthest(outputs):
        return max(difference(seen(x, w), seen(e, w)) for x, e, w in zip(outputs, exact, map(np.asarray, want)))

    return f"from f64 ours is {furthest(got):.2g}, JAX's {furthest(want):.2g}"


def seen(x, like):
    """x, whose elements may be the bits of a type of ml_dtypes, that of like."""
    x = np.asarray(x)
    return x.view(like.dtype) if like.dtype.kind == "V" and x.dtype.kind == "u" else x


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", default="out/tilewright")
    parser.add_argument("-device", default="cpu", help="of tilewright run; sim:H100 takes minutes a program")
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
            got = executed(o.tilewright, o.device, text, arrays, len(want))
            why = got if isinstance(got, str) else off(got, want)
            if why and not isinstance(got, str):
                with jax.disable_jit():
                    why = off(got, function(*arrays))
            if not why:
                continue
            bad += 1
            if kind == "mlir" and not isinstance(got, str):
                why += "; " + beside_float64(o, text, arrays, got, want)
            print(f"{seed}.{kind}: {why}", flush=True)
            if o.keep:
                os.makedirs(o.keep, exist_ok=True)
                with open(os.path.join(o.keep, f"{seed}.{kind}"), "w") as file:
                    file.write(text)
    print(f"{o.last - o.first} programs, {bad} texts fail")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
