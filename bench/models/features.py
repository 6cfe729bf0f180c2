"""Whether what JAX has beside layers can be read: control flow, sorting, scatters, random
numbers, FFT, linear algebra, narrow types, derivatives and programs of many devices.

python features.py [-tilewright PROGRAM] [-keep FOLDER] [NAME …]

Each program is written as StableHLO, with and without source places, as XLA:CPU's module
after its optimisations, as an HloModuleProto of that, and as an export of open extents
where it has one. `tilewright show` has to read all of them; what is no call of a library
is executed, and compared with what jax.jit computes.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from compare import difference, executed

PROGRAMS = {}
Program = collections.namedtuple("Program", "function arguments runs")


def program(*shapes, runs=True):
    """Registers a function with the shapes of its arguments: "8,16" is f32, "8,16:i4" another type."""

    def register(function):
        PROGRAMS[function.__name__] = Program(function, shapes, runs)
        return function

    return register


def argument(random, shape):
    """Random numbers of a shape; whole ones are from 0 to 6."""
    dims, _, kind = shape.partition(":")
    dims = [int(d) for d in dims.split(",") if d]
    dtype = np.dtype(kind or "f4") if kind not in ("bf16", "f8") else jnp.dtype({"bf16": "bfloat16", "f8": "float8_e4m3fn"}[kind])
    if kind.startswith("i") or kind.startswith("u"):
        return random.integers(0, 7, dims).astype(dtype)
    if kind == "?":
        return random.integers(0, 2, dims).astype(bool)
    return random.standard_normal(dims).astype(dtype)


@program("16,32", "32,32")
def scan(xs, w):
    def step(h, x):
        h = jnp.tanh(x @ w + h)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(32), xs)


@program("16,32")
def scan_reverse_grad(xs):
    return jax.grad(lambda y: lax.scan(lambda c, x: (c * 0.9 + jnp.sin(x), c), jnp.zeros(32), y, reverse=True)[1].sum())(xs)


@program("16,32")
def associative(xs):
    return lax.associative_scan(lambda a, b: a * b, xs), jnp.cumsum(xs, 0), lax.cummax(xs, 1)


@program("8,8", ":i4")
def switch(x, k):
    return lax.switch(k, [jnp.sin, lambda y: y * 2, lambda y: y[::-1]], x), lax.cond(k > 2, jnp.exp, jnp.negative, x)


@program("8,8")
def while_data(x):
    return lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] @ s[0] / 8, s[1] + 1), (x, 0))


@program("16,32", ":i4")
def nested_loops(x, n):
    return lax.fori_loop(0, 4, lambda i, y: lax.fori_loop(0, n, lambda j, z: z * 0.5 + j, y) + i, x)


@program("64,16")
def sorting(x):
    return jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 3), jnp.median(x, 1)


@program("64,16", "10:i4", "10,16")
def scatters(x, i, u):
    return x.at[i].add(u), x.at[i].set(u), x.at[i].max(u), x.at[i, 3].multiply(2.0)


@program("64,16", "5,2:i4", "64:i4")
def gathers(x, i, s):
    return x[i[:, 0], i[:, 1]], jnp.take_along_axis(x, s[:, None], 1), x[:, ::-2], jax.ops.segment_sum(x, s, 7)


@program("2:u4", runs=False)
def random_numbers(key):
    k = jax.random.wrap_key_data(key, impl="threefry2x32")
    a, b = jax.random.split(k)
    return jax.random.normal(a, (8, 16)), jax.random.categorical(b, jnp.ones((4, 5))), jax.random.permutation(a, 16)


@program("4:u4", runs=False)
def random_bits(key):
    return jax.random.uniform(jax.random.wrap_key_data(key, impl="rbg"), (8, 16))


@program("8,64", runs=False)
def fourier(x):
    return jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.abs(jnp.fft.fft2(x))


@program("2,16,16", "2,16,4", runs=False)
def linear_algebra(a, b):
    s = a @ a.swapaxes(1, 2) + 16 * jnp.eye(16)
    return jnp.linalg.cholesky(s), jnp.linalg.solve(s, b), jnp.linalg.qr(a)[0], jnp.linalg.eigh(s)[0], jnp.linalg.svd(a)[1]


@program("32,64:bf16", "64,16:f8", "32,64:i1", "64,16:i1")
def narrow(x, y, a, b):
    wide = jnp.dot(x, y.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    low = lax.dot(a, b, preferred_element_type=jnp.int32)
    four = a.astype(jnp.int4).astype(jnp.int8) << 1
    return wide, low, four, x.astype(jnp.float8_e5m2).astype(jnp.float32), lax.reduce_precision(wide, 5, 10)


@program("8,32:i1", "16,32:f8", runs=False)
def very_narrow(a, b):
    return a.astype(jnp.int4), a.astype(jnp.uint2), b.astype(jnp.float4_e2m1fn), lax.bitcast_convert_type(a, jnp.uint8)


@program("16,16:c8")
def complex_numbers(x):
    return jnp.exp(x) * x.conj(), jnp.abs(x), jnp.angle(x), x.real @ x.imag, jnp.sqrt(x)


@jax.custom_vjp
def clipped(x):
    return x * 2


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (jnp.clip(g, -1, 1) * jnp.sign(x),))


@program("8,16", "16,16")
def derivatives(x, w):
    f = lambda y: clipped(jnp.tanh(y @ w)).sum()
    return jax.grad(f)(x), jax.jvp(jnp.sin, (x,), (x,))[1], jax.vmap(jax.grad(lambda r: (r**3).sum()))(x), jax.hessian(lambda v: (v**2).prod())(x[0, :4])


@program("2,8,8,4", "3,3,4,8", "3,3,1,4")
def windows(x, k, d):
    names = ("NHWC", "HWIO", "NHWC")
    return (
        lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=names),
        lax.conv_general_dilated(x, d, (1, 1), "SAME", feature_group_count=4, dimension_numbers=names),
        lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=names),
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        jax.grad(lambda y: lax.reduce_window(y, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME").var())(x),
        jax.image.resize(x, (2, 12, 16, 4), "bilinear"),
    )


@program("2,8,8,4")
def pooling_gradient(x):
    return jax.grad(lambda y: (lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum())(x)


@program("16,16", "16,16:?", "16,16:i4")
def elementwise(x, p, n):
    y = jnp.abs(x) + 0.5
    return (
        [f(x) for f in (jnp.sinh, jnp.arctan, jnp.cbrt, jnp.round, jnp.floor, jnp.expm1, lax.erf, lax.logistic, jnp.tan, jnp.log1p(y).__mul__)],
        [f(y) for f in (lax.lgamma, lax.digamma, lax.erfc, jnp.log2, lax.rsqrt)],
        [y**k for k in (2, 3, 0.5, -1, -0.5, 1.5)],
        jnp.where(p, x, y),
        [lax.population_count(n), lax.clz(n), n // 3, n % 5, n << 2, n >> 1, n ^ 3, ~n],
        jnp.nextafter(x, y),
        jnp.isfinite(x) & p,
    )


@program("8,16", runs=False)
def callback(x):
    jax.debug.print("{}", x.sum())
    return jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct((8, 16), jnp.float32), x) * 2


@program("32,64", "64,32")
def remat(x, w):
    return jax.grad(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y @ w) @ w.T).sum()))(x)


@program("1024")
def empty_and_scalar(x):
    return x[:0], x.sum(), (), jnp.zeros((0, 4)), jnp.arange(5)


def meshed():
    """Programs of eight devices: by annotations, and by hand."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
    shapes = [jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(mesh, P("a", None))), jax.ShapeDtypeStruct((128, 256), jnp.float32, sharding=NamedSharding(mesh, P(None, "b")))]

    def annotated(x, w):
        y = lax.with_sharding_constraint(jax.nn.relu(x @ w), NamedSharding(mesh, P("a", "b")))
        return (y @ w.T).sum(0), lax.with_sharding_constraint(y.T, NamedSharding(mesh, P("b", "a")))

    def by_hand(x, w):
        def block(a, b):
            y = jnp.tanh(a @ b)
            z = lax.psum(y.sum(1), "b")
            g = lax.all_gather(z, "a", tiled=True)
            s = lax.psum_scatter(y, "b", scatter_dimension=1, tiled=True)
            t = lax.all_to_all(s, "b", 0, 1, tiled=True)
            return lax.ppermute(t, "a", [(0, 1), (1, 0)]), g[:1] + lax.axis_index("b"), lax.pmax(z, "a")[:1]

        return jax.shard_map(block, mesh=mesh, in_specs=(P("a", None), P(None, "b")), out_specs=(P("a", "b"), P(("a", "b")), P(("a", "b"))), check_vma=False)(x, w)

    for f in (annotated, by_hand, jax.grad(lambda x, w: annotated(x, w)[0].sum(), 1)):
        yield getattr(f, "__name__", "gradient"), f, shapes


def texts(function, given, opened=None):
    """The forms of a program: its ending and its content."""
    lowered = jax.jit(function).lower(*given)
    yield "mlir", lowered.as_text()
    yield "places.mlir", lowered.as_text(debug_info=True)
    yield "hlo.txt", lowered.as_text("hlo")
    compiled = lowered.compile()
    yield "after_optimizations.txt", compiled.as_text()
    for module in compiled.runtime_executable().hlo_modules():
        yield "pb", module.as_serialized_hlo_module_proto()
    if opened:
        yield "open.mlir", export.export(jax.jit(function))(*opened).mlir_module()


def opened(shapes):
    """The arguments with an open first extent; None where there is none."""
    scope = export.SymbolicScope()
    made = []
    for s in shapes:
        dims, _, kind = s.partition(":")
        x = argument(np.random.default_rng(0), s)
        words = dims.split(",")
        words[0] = "n" + words[0] if words[0] else ""
        made.append(jax.ShapeDtypeStruct(export.symbolic_shape(",".join(words), scope=scope), x.dtype))
    return made


def read(tilewright, folder, name, forms):
    """The forms that cannot be shown, with the error."""
    failed = []
    while True:
        try:
            ending, content = next(forms)
        except StopIteration:
            return failed
        except Exception as e:  # JAX cannot make this form, of open extents for instance
            print(f"{name}: not made: {str(e).splitlines()[0][:100]}")
            return failed
        path = os.path.join(folder, f"{name}.{ending}")
        with open(path, "w" if isinstance(content, str) else "wb") as file:
            file.write(content)
        flags = ["-shape", "?=9"] if ending == "open.mlir" else []
        done = subprocess.run([tilewright, "show", *flags, path], capture_output=True, text=True)
        if done.returncode:
            failed.append((ending, done.stderr.strip()[:400]))


def compared(tilewright, p, arrays):
    """The largest difference of an output."""
    want = [np.asarray(x) for x in jax.tree.leaves(jax.jit(p.function)(*arrays))]
    text = jax.jit(p.function).lower(*arrays).as_text()
    got = executed(tilewright, text, arrays, len(want))
    return max(difference(*parts) for g, w in zip(got, want) for parts in pairs(g, w))


def pairs(got, want):
    """Real arrays: the parts of complex numbers each."""
    if np.iscomplexobj(want):
        return [(got.real, want.real), (got.imag, want.imag)]
    if want.dtype.kind == "V":  # ml_dtypes, as their bits
        got = got.view(want.dtype)
    return [(got, want)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", default="out/tilewright")
    parser.add_argument("-keep", help="a folder for the texts")
    parser.add_argument("name", nargs="*")
    options = parser.parse_args()
    folder = options.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    bad = 0

    def report(name, failed):
        for ending, error in failed:
            print(f"{name}.{ending}: FAILED: {error}", flush=True)
        return len(failed)

    for name, p in PROGRAMS.items():
        if options.name and name not in options.name:
            continue
        random = np.random.default_rng(1)
        arrays = [argument(random, s) for s in p.arguments]
        given = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
        bad += report(name, read(options.tilewright, folder, name, texts(p.function, given, opened(p.arguments))))
        if not p.runs:
            continue
        try:
            off = compared(options.tilewright, p, arrays)
        except subprocess.CalledProcessError as e:
            off = np.inf
        bad += not off <= 1e-4
        print(f"{name}: largest difference {off:.2g}{'' if off <= 1e-4 else ' WRONG'}", flush=True)
    for name, function, given in [] if options.name else meshed():
        bad += report(name, read(options.tilewright, folder, name, texts(function, given)))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
