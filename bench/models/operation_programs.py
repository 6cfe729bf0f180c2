"""Programs of one or a few operations each, by the kind of operation, for operations.py.

A program is a name, a function, and the shapes of its arguments: "8,16" is f32,
"8,16:bf16" another type. What they compute is of the size of one layer: microseconds
to milliseconds on a core or two.
"""

import collections
import functools
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

Program = collections.namedtuple("Program", "kind function shapes")
PROGRAMS = {}

FLOATS = ("f32", "bf16", "f16", "f64")
TYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i1": np.bool_,
    "s8": np.int8, "u8": np.uint8, "s16": np.int16, "s32": np.int32, "u32": np.uint32, "s64": np.int64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "c64": np.complex64, "c128": np.complex128,
}


def add(kind, name, function, *shapes):
    assert name not in PROGRAMS, name
    PROGRAMS[name] = Program(kind, function, shapes)


def argument(shape):
    """The shape and type of an argument."""
    dims, _, kind = shape.partition(":")
    return jax.ShapeDtypeStruct([int(d) for d in dims.split(",") if d], TYPES[kind or "f32"])


def convolutions():
    """Images and weights; N is the batch, C or I and O features, the others places."""
    forms = {
        "NHWC": ("NHWC", "HWIO", "NHWC"), "NCHW": ("NCHW", "OIHW", "NCHW"), "NWC": ("NWC", "WIO", "NWC"),
        "NDHWC": ("NDHWC", "DHWIO", "NDHWC"), "CHWN": ("CHWN", "IHWO", "HWNC"),
    }

    def conv(name, x, w, form="NHWC", stride=1, pad="SAME", out=None, **more):
        strides = (stride,) * (len(form) - 2)
        function = lambda x, w: lax.conv_general_dilated(x, w, strides, pad, dimension_numbers=forms[form], preferred_element_type=out, **more)
        add("convolutions", "conv_" + name, function, x, w)

    conv("3x3", "1,56,56,64", "3,3,64,64")
    conv("3x3_dilated", "1,56,56,64", "3,3,64,64", rhs_dilation=(2, 2))
    conv("transposed", "1,28,28,64", "4,4,64,64", pad=[(2, 2), (2, 2)], lhs_dilation=(2, 2))
    conv("groups_4", "1,56,56,64", "3,3,16,64", feature_group_count=4)
    conv("groups_32", "1,28,28,128", "3,3,4,128", feature_group_count=32)
    conv("depthwise_3x3", "1,56,56,128", "3,3,1,128", feature_group_count=128)
    conv("depthwise_5x5_stride_2", "1,56,56,96", "5,5,1,96", stride=2, feature_group_count=96)
    conv("depthwise_two_each", "1,28,28,64", "3,3,1,128", feature_group_count=64)
    conv("nchw_3x3", "1,64,56,56", "64,64,3,3", "NCHW")
    conv("nchw_depthwise", "1,128,56,56", "128,1,3,3", "NCHW", feature_group_count=128)
    conv("nchw_1x1", "1,64,56,56", "128,64,1,1", "NCHW")
    conv("1x1_stride_2", "1,56,56,128", "1,1,128,256", stride=2)
    conv("7x7_stride_2", "1,224,224,3", "7,7,3,64", stride=2, pad=[(3, 3), (3, 3)])
    conv("1d_causal", "4,1000,64", "7,64,64", "NWC", pad=[(6, 0)])
    conv("1d_depthwise", "2,1024,256", "4,1,256", "NWC", pad=[(3, 0)], feature_group_count=256)
    conv("3d", "1,8,28,28,16", "3,3,3,16,32", "NDHWC")
    conv("batch_groups", "8,28,28,16", "3,3,16,32", batch_group_count=4)
    conv("few_channels", "1,112,112,3", "3,3,3,32", stride=2)
    conv("one_channel_out", "1,112,112,32", "3,3,32,1")
    conv("gradient_of_weights", "4,28,28,64", "4,28,28,64", "CHWN", pad=[(1, 1), (1, 1)])
    for t in ("bf16", "f16"):
        conv(f"3x3_{t}", f"1,56,56,64:{t}", f"3,3,64,64:{t}")
    conv("3x3_s8", "1,56,56,64:s8", "3,3,64,64:s8", out=jnp.int32)
    conv("3x3_f64", "1,28,28,32:f64", "3,3,32,32:f64")


def products():
    """dot_general: contracted and batch dimensions by einsum's letters."""

    def dot(name, letters, x, y, out=None):
        add("products", "dot_" + name, functools.partial(jnp.einsum, letters, preferred_element_type=out), x, y)

    dot("primes", "mk,kn->mn", "509,509", "509,509")
    dot("both_transposed", "km,nk->mn", "500,300", "700,500")
    dot("right_transposed", "mk,nk->mn", "512,512", "512,512")
    dot("batch_8x8", "bmk,bkn->bmn", "2000,8,8", "2000,8,8")
    dot("batch_16x64", "kbm,kbn->bmn", "256,16,64", "256,16,64")
    dot("batch_of_vectors", "bk,bk->b", "512,256", "512,256")
    dot("batch_of_gemv", "bmk,bkn->bmn", "64,1,128", "64,128,256")
    dot("two_contracted", "akbmc,ckbna->abcmn", "4,16,8,32,6", "6,16,8,24,4")
    dot("rows_1", "mk,kn->mn", "1,2048", "2048,2048")
    dot("vector", "mk,k->m", "2048,2048", "2048")
    dot("rows_4", "mk,kn->mn", "4,2048", "2048,2048")
    dot("rows_17", "mk,kn->mn", "17,1024", "1024,1024")
    dot("columns_3", "mk,kn->mn", "4096,256", "256,3")
    dot("outer", "mk,kn->mn", "1024,1", "1,1024")
    dot("inner", "k,k->", "1000000", "1000000")
    dot("terms_7", "mk,kn->mn", "1024,7", "7,1024")
    dot("terms_40000", "mk,kn->mn", "8,40000", "40000,8")
    square = ("384,384:", "384,384:")
    for t, out in (("bf16", None), ("bf16", "f32"), ("f16", None), ("f16", "f32"), ("f64", None), ("c64", None), ("s32", None),
                   ("s8", "s32"), ("u8", "s32"), ("s16", "s32"), ("e4m3", "f32")):
        dot(f"{t}_to_{out or t}", "mk,kn->mn", *(s + t for s in square), out=TYPES.get(out))
    for t, out in (("bf16", None), ("f16", None), ("s8", "s32"), ("f64", None)):
        dot(f"rows_1_{t}", "mk,kn->mn", f"1,2048:{t}", f"2048,2048:{t}", out=TYPES.get(out))
    fusion = functools.partial(add, "products")
    fusion("dot_dequantized_rows_1", lambda x, w, s: x @ (w.astype(x.dtype) * s[None]), "1,2048", "2048,2048:s8", "2048")
    fusion("dot_dequantized_rows_32", lambda x, w, s: x @ (w.astype(x.dtype) * s[None]), "32,1024", "1024,1024:s8", "1024")
    fusion("dot_dequantized_groups", lambda x, w, s: x @ (w.reshape(32, 64, 2048).astype(x.dtype) * s[:, None]).reshape(2048, 2048),
           "1,2048", "2048,2048:s8", "32,2048")
    fusion("swiglu", lambda x, a, b: jax.nn.silu(x @ a) * (x @ b), "64,512", "512,1024", "512,1024")
    fusion("dot_bias_gelu", lambda x, a, b: jax.nn.gelu(x @ a + b), "256,512", "512,1024", "1024")
    fusion("mlp", lambda x, a, b: jax.nn.relu(x @ a) @ b, "128,256", "256,1024", "1024,256")
    fusion("lora", lambda x, a, b, w: x @ w + (x @ a) @ b, "64,1024", "1024,8", "8,1024", "1024,1024")
    fusion("router", lambda x, w: jax.nn.softmax(x @ w, -1), "1024,512", "512,8")


def attention():
    """Batch, heads, queries, keys and width."""

    def attend(name, batch, heads, queries, width, keys=None, groups=1, kind="f32", mask=lambda q, k: None):
        keys = keys or queries

        def function(q, k, v):
            k, v = (jnp.repeat(x, groups, 1) for x in (k, v))
            scores = jnp.einsum("bhqd,bhkd->bhqk", q, k).astype(jnp.float32) / math.sqrt(width)
            kept = mask(jnp.arange(queries)[:, None] + keys - queries, jnp.arange(keys)[None])
            if kept is not None:
                scores = jnp.where(kept, scores, -1e9)
            return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1).astype(q.dtype), v)

        q, k = (f"{batch},{h},{n},{width}:{kind}" for h, n in ((heads, queries), (heads // groups, keys)))
        add("attention", "attention_" + name, function, q, k, k)

    causal = lambda q, k: q >= k
    attend("256", 1, 8, 256, 64)
    attend("causal", 1, 8, 512, 64, mask=causal)
    attend("width_80", 1, 8, 256, 80)
    attend("width_256", 1, 4, 256, 256)
    attend("decoding", 4, 16, 1, 64, keys=512)
    attend("grouped", 1, 16, 256, 64, groups=4)
    attend("grouped_decoding", 4, 16, 1, 128, keys=512, groups=4)
    attend("bf16", 1, 8, 256, 64, kind="bf16", mask=causal)
    attend("f16", 1, 8, 256, 64, kind="f16")
    attend("window", 1, 4, 1024, 64, mask=lambda q, k: (q >= k) & (q - k < 128))
    attend("short", 64, 8, 16, 32)
    attend("197", 2, 12, 197, 64)


def reductions():
    """Of 1024×1024 elements, along rows and columns."""
    for t in (*FLOATS, "s32", "s8"):
        x = f"1024,1024:{t}"
        for axis, word in ((-1, "rows"), (0, "columns")):
            add("reductions", f"argmax_{word}_{t}", functools.partial(jnp.argmax, axis=axis), x)
            add("reductions", f"sum_{word}_{t}", lambda x, axis=axis: jnp.sum(x, axis, dtype=x.dtype), x)
            add("reductions", f"max_{word}_{t}", functools.partial(jnp.max, axis=axis), x)
        add("reductions", f"sum_{t}", lambda x: jnp.sum(x, dtype=x.dtype), x)
        add("scans", f"cumsum_{t}", lambda x: jnp.cumsum(x, 1, dtype=x.dtype), x)
    reduction, scan, x = functools.partial(add, "reductions"), functools.partial(add, "scans"), "1024,1024"
    scan("cumsum_columns", lambda x: jnp.cumsum(x, 0), x)
    scan("cumsum_backwards", lambda x: lax.cumsum(x, 1, reverse=True), x)
    scan("cumsum_one_row", jnp.cumsum, "1048576")
    scan("cummax", lambda x: lax.cummax(x, 1), x)
    scan("cumprod", lambda x: lax.cumprod(x, 1), x)
    scan("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), "128,512")
    reduction("sum_s8_to_s32", lambda x: jnp.sum(x, -1, dtype=jnp.int32), x + ":s8")
    reduction("sum_middle", lambda x: x.sum(1), "64,256,64")
    reduction("sum_outer_and_inner", lambda x: x.sum((0, 2)), "64,128,128")
    reduction("sum_of_33", lambda x: x.sum(-1), "30000,33")
    reduction("sum_of_3", lambda x: x.sum(-1), "300000,3")
    reduction("product_rows", lambda x: jnp.prod(x, -1), x)
    reduction("count_positive", lambda x: (x > 0).sum(-1), x)
    reduction("all_rows", lambda x: (x > -9).all(-1), x)
    reduction("std_columns", lambda x: jnp.std(x, 0), x)
    reduction("mean_squared_error", lambda x, y: ((x - y) ** 2).mean(), x, x)
    reduction("distances", lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1), "256,64", "256,64")
    reduction("cosine", lambda x, y: (x * y).sum(-1) * lax.rsqrt((x * x).sum(-1) * (y * y).sum(-1)), x, x)
    reduction("sum_of_exponentials", lambda x: jnp.exp(-x * x).sum(-1), x)
    reduction("mean_of_images", lambda x: x.mean((1, 2)), "4,28,28,256")
    reduction("batch_statistics", lambda x: (x.mean((0, 1, 2)), (x * x).mean((0, 1, 2))), "8,56,56,64")
    window = lambda name, by, first, size, stride, pad, x: reduction(
        name, lambda x: lax.reduce_window(x, np.float32(first), by, size, stride, pad), x)
    window("max_pool_3", lax.max, -np.inf, (1, 3, 3, 1), (1, 2, 2, 1), "SAME", "1,112,112,64")
    window("max_pool_2", lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1), "VALID", "1,112,112,64")
    window("max_pool_nchw", lax.max, -np.inf, (1, 1, 2, 2), (1, 1, 2, 2), "VALID", "1,64,112,112")
    window("sum_pool_3", lax.add, 0, (1, 3, 3, 1), (1, 1, 1, 1), "SAME", "1,56,56,64")
    window("sum_pool_7", lax.add, 0, (1, 7, 7, 1), (1, 7, 7, 1), "VALID", "1,56,56,64")
    window("sum_of_5_in_rows", lax.add, 0, (1, 5), (1, 1), "SAME", x)


def indexing():
    """Gathers and scatters; indices are in range."""
    index, take = functools.partial(add, "indexing"), functools.partial(jnp.take, axis=0, mode="clip")
    index("embedding", take, "32000,256", "2048:s32")
    index("embedding_bf16", take, "32000,256:bf16", "2048:s32")
    index("embedding_of_8", take, "1000,8", "65536:s32")
    index("gather_elements", take, "100000", "300000:s32")
    index("take_along", lambda x, k: jnp.take_along_axis(x, k, 1, mode="clip"), "1024,1024", "1024,64:s32")
    index("scatter_add", lambda x, k, u: x.at[k].add(u, mode="drop"), "10000,64", "4096:s32", "4096,64")
    index("segment_sum", lambda u, k: jax.ops.segment_sum(u, k, 100), "20000,32", "20000:s32")
    index("count", lambda k: jnp.zeros(256, jnp.int32).at[k].add(1), "300000:s32")
    index("one_hot", lambda k: jax.nn.one_hot(k, 1024), "2048:s32")
    index("cross_entropy", lambda x, k: -jnp.take_along_axis(jax.nn.log_softmax(x, -1), k[:, None], 1, mode="clip")[:, 0],
          "64,32000", "64:s32")
    index("cross_entropy_gradient", lambda x, k: jax.nn.softmax(x, -1) - jax.nn.one_hot(k, x.shape[-1]), "64,32000", "64:s32")


def layernorm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def rmsnorm(x, scale):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def groupnorm(axes, shape):
    def function(x):
        y = x.reshape(shape)
        y = (y - y.mean(axes, keepdims=True)) * lax.rsqrt(y.var(axes, keepdims=True) + 1e-5)
        return y.reshape(x.shape)

    return function


def in_f32(function):
    return lambda x, *more: function(x.astype(jnp.float32), *more).astype(x.dtype)


def norms():
    norm, x = functools.partial(add, "norms"), "1024,1024"
    for rows, width in ((262144, 1), (131072, 8), (32768, 31), (10000, 100), (1000, 1000), (250, 4097), (8, 100000), (1, 1000000)):
        norm(f"softmax_{width}", jax.nn.softmax, f"{rows},{width}")
    for rows, width in ((100000, 7), (30000, 33), (1024, 768), (250, 4097), (20, 50000)):
        norm(f"layernorm_{width}", layernorm, f"{rows},{width}", str(width), str(width))
        norm(f"rmsnorm_{width}", rmsnorm, f"{rows},{width}", str(width))
    for t in ("bf16", "f16", "f64"):
        norm(f"softmax_{t}", in_f32(jax.nn.softmax) if t == "bf16" else jax.nn.softmax, f"1024,1024:{t}")
    for t in ("bf16", "f16"):
        norm(f"layernorm_{t}", in_f32(layernorm), f"1024,768:{t}", "768", "768")
    norm("layernorm_f64", layernorm, *(s + ":f64" for s in ("512,768", "768", "768")))
    norm("softmax_columns", functools.partial(jax.nn.softmax, axis=0), x)
    norm("softmax_middle", functools.partial(jax.nn.softmax, axis=1), "32,256,128")
    norm("softmax_masked", lambda x, m: jax.nn.softmax(jnp.where(m, x, -1e9), -1), x, x + ":i1")
    norm("log_softmax", jax.nn.log_softmax, x)
    norm("logsumexp", functools.partial(jax.nn.logsumexp, axis=-1), x)
    norm("groupnorm", groupnorm((1, 2, 4), (2, 32, 32, 8, 16)), "2,32,32,128")
    norm("groupnorm_nchw", groupnorm(2, (4, 8, -1)), "4,64,32,32")
    norm("batchnorm_applied", lambda x, a, b: jax.nn.relu(x * a + b), "8,56,56,64", "64", "64")
    norm("l2norm", lambda x: x * lax.rsqrt((x * x).sum(-1, keepdims=True) + 1e-12), x)
    norm("l2norm_columns", lambda x: x / jnp.sqrt((x * x).sum(0)), x)
    norm("layernorm_gradient", jax.grad(lambda x, y: (layernorm(x, 1, 0) * y).sum()), "1024,768", "1024,768")
    norm("quantize", lambda x: jnp.round(x / jnp.max(jnp.abs(x), -1, keepdims=True) * 127).astype(jnp.int8), "1000,1024")


def movement():
    move, x = functools.partial(add, "movement"), "1024,1024"
    for shape, order in (("16,32,16,8,16", (4, 2, 0, 3, 1)), ("8,16,4,8,4,16", (5, 3, 1, 4, 2, 0)), ("1023,1025", (1, 0)),
                         ("64,3,4096", (2, 0, 1)), ("64,128,128", (0, 2, 1)), ("128,64,128", (1, 0, 2)), ("1024,1024,3", (2, 0, 1)),
                         ("3,512,512", (1, 2, 0)), ("2,128,12,64", (0, 2, 1, 3)), ("2,128,12,64", (0, 2, 3, 1)), ("1000000,2", (1, 0)),
                         ("2,1000000", (1, 0)), ("4096,256", (1, 0))):
        for t in ("f32", "bf16", "s8"):
            name = f"transpose_{shape.replace(',', 'x')}_{''.join(map(str, order))}_{t}"
            move(name, functools.partial(jnp.transpose, axes=order), f"{shape}:{t}")
    for t in (*FLOATS, "s32", "s8"):
        move(f"transpose_{t}", jnp.transpose, f"1024,1024:{t}")
    move("transpose_c128", jnp.transpose, "500,500:c128")
    move("transpose_and_add", lambda x, y: x.T + y, x, x)
    move("transpose_and_convert", lambda x: x.T.astype(jnp.bfloat16), x)
    join = lambda axis: lambda *parts: jnp.concatenate(parts, axis)
    move("concatenate_rows", join(0), "500,1000", "500,1000")
    move("concatenate_columns", join(1), "1000,500", "1000,500")
    move("concatenate_odd_columns", join(1), "2000,5", "2000,300", "2000,77")
    move("stack_inner", lambda x, y: jnp.stack([x, y], -1), x, x)
    move("pad", lambda x: jnp.pad(x, ((3, 5), (7, 9))), x)
    move("pad_between", lambda x: lax.pad(x, np.float32(0), ((0, 0, 1), (0, 0, 1))), "500,500")
    move("repeat_middle", lambda x: jnp.repeat(x, 4, 1), "8,4,128,64")
    move("repeat_inner", lambda x: jnp.repeat(x, 4, -1), "1000,250")
    move("tile", lambda x: jnp.tile(x, (4, 4)), "256,256")
    move("upsample", lambda x: jnp.repeat(jnp.repeat(x, 2, 1), 2, 2), "1,64,64,64")
    move("reverse_inner", lambda x: x[:, ::-1], x)
    move("reverse_rows", lambda x: x[::-1], x)
    move("every_second", lambda x: x[::2, ::2], "2000,2000")
    move("every_second_column", lambda x: x[:, 1::2], "1000,2000")
    move("slice", lambda x: x[3:1003, 5:1005], "1010,1010")
    move("roll", lambda x: jnp.roll(x, (3, -5), (0, 1)), x)
    move("lower_triangle", jnp.tril, x)
    move("patches", lambda x: x.reshape(2, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 196, 768), "2,224,224,3")
    move("pixel_shuffle", lambda x: x.reshape(64, 64, 2, 2, 16).transpose(0, 2, 1, 3, 4).reshape(128, 128, 16), "64,64,64")
    move("split_heads", lambda x: x.reshape(2, 256, 3, 12, 64).transpose(2, 0, 3, 1, 4), "2,256,2304")

    def turned(x, c, s, join, first, second):
        a, b = x[..., first], x[..., second]
        return join([a * c - b * s, b * c + a * s], -1).reshape(x.shape)

    halves = functools.partial(turned, join=jnp.concatenate, first=slice(32), second=slice(32, 64))
    pairs = functools.partial(turned, join=jnp.stack, first=slice(0, None, 2), second=slice(1, None, 2))
    move("rotary_halves", halves, "2,256,16,64", "256,1,32", "256,1,32")
    move("rotary_pairs", pairs, "2,256,16,64", "256,1,32", "256,1,32")


def constant(x, number):
    return np.asarray(number, x.dtype)


FUNCTIONS = {
    "exp": jnp.exp, "log": jnp.log, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid, "erf": lax.erf, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt,
    "cbrt": jnp.cbrt, "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "floor": jnp.floor, "rint": jnp.rint, "round": lax.round,
    "sign": jnp.sign, "abs": jnp.abs, "reciprocal": lambda x: 1 / (x + 9), "gelu_tanh": jax.nn.gelu,
    "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False), "silu": jax.nn.silu, "softplus": jax.nn.softplus, "expm1": jnp.expm1,
    "log1p": jnp.log1p, "atan": jnp.arctan, "asin": jnp.arcsin, "sinh": jnp.sinh, "pow": lambda x: jnp.power(x, constant(x, 1.7)),
    "cube": lambda x: x**3, "square": lambda x: jnp.power(x, 2.0), "atan2": lambda x: jnp.arctan2(x, x[::-1]),
    "rem": lambda x: lax.rem(x, constant(x, 0.07)), "mod": lambda x: jnp.mod(x, constant(x, 0.07)), "erf_inv": lax.erf_inv,
    "is_finite": jnp.isfinite, "floor_divide": lambda x: jnp.floor_divide(x, constant(x, 0.07)),
    "leaky_relu": lambda x: jnp.where(x > 0, x, x * constant(x, 0.1)), "hard_swish": jax.nn.hard_swish,
    "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)), "add_reversed": lambda x: x + x[::-1],
    "clip": lambda x: jnp.clip(x * 2 + 1, -3, 9), "select": lambda x: jnp.where(x > 0, x, -x),
}
INTEGERS = {
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "div": lax.div, "rem": lax.rem, "shift": lambda x, y: lax.shift_left(x, y & 3),
    "xor": lambda x, y: x ^ y, "max": jnp.maximum, "less": lambda x, y: x < y, "popcount": lambda x, y: lax.population_count(x),
    "to_f32": lambda x, y: x.astype(jnp.float32) * 0.5,
}


def elementwise():
    for name, function in FUNCTIONS.items():
        for t in FLOATS:
            add("functions", f"{name}_{t}", function, f"512,1024:{t}")
    for t in ("s8", "u8", "s16", "s32", "u32", "s64"):
        for name, function in INTEGERS.items():
            add("integers", f"{name}_{t}", function, *(f"512,1024:{t}",) * 2)
    for t in ("f32", "bf16", "f16", "f64", "s8", "u8", "s32", "s64", "i1", "e4m3", "e5m2"):
        for to in ("f32", "bf16", "f16", "f64", "s8", "s32", "e4m3", "e5m2"):
            if t != to:
                add("conversions", f"convert_{t}_to_{to}", lambda x, to=to: x.astype(TYPES[to]), f"512,1024:{t}")


def chains():
    chain, x = functools.partial(add, "chains"), "1024,1024"
    adam = lambda g, m, v: (0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g)
    chain("adam", lambda p, m, v, g: (p - 1e-3 * adam(g, m, v)[0] / (jnp.sqrt(adam(g, m, v)[1]) + 1e-8), *adam(g, m, v)), x, x, x, x)
    chain("dequantize", lambda q, s: q.astype(jnp.float32) * s[:, None], "1000,1024:s8", "1000")
    chain("dropout", lambda x, m: jnp.where(m, x * 1.25, 0), x, x + ":i1")
    chain("outer_sum", lambda x, y: x[:, None] + y[None], "1000", "1000")
    chain("outer_exponential", lambda x, y: jnp.exp(x[:, None] - y[None]), "1000", "1000")
    chain("logaddexp", lambda x: jnp.logaddexp(x[0], x[1]), "2,512,1024")
    chain("gated", lambda x: x[:, :1024] * jax.nn.sigmoid(x[:, 1024:]), "1000,2048")
    chain("polynomial", lambda x: ((((x * 0.1 + 0.2) * x + 0.3) * x + 0.4) * x + 0.5) * x, x)
    chain("twenty", lambda x: functools.reduce(lambda a, k: a * 0.9 + jnp.abs(a - k), range(20), x), x)
    chain("state_space_step", lambda h, a, b, x: h * jnp.exp(a[None, :, None] * x[..., None]) + b[:, None] * x[..., None],
          "4,512,16", "512", "4,16", "4,512")
    chain("hash", lambda k: (k ^ (k >> 16)) * np.uint32(0x85EBCA6B) >> 13, x + ":u32")
    chain("complex_product", lambda x, y: x * y, "512,512:c64", "512,512:c64")
    chain("complex_exponential", jnp.exp, "512,512:c64")
    chain("complex_absolute", jnp.abs, "512,512:c64")


for section in (convolutions, products, attention, reductions, indexing, norms, movement, elementwise, chains):
    section()
