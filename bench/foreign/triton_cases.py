"""The launches of triton_kernels.py: arguments, configurations, and NumPy's results."""
import math

import ml_dtypes
import numpy as np
import triton.language as tl

import triton_kernels as k
from case import Address, Descriptor, Launch, eighths, normal, whole

bf16 = ml_dtypes.bfloat16
e4m3 = ml_dtypes.float8_e4m3fn
e5m2 = ml_dtypes.float8_e5m2
f16, f32, f64, s8, s32 = np.float16, np.float32, np.float64, np.int8, np.int32
LANGUAGE = {np.dtype(bf16): tl.bfloat16, np.dtype(f16): tl.float16, np.dtype(f32): tl.float32, np.dtype(s32): tl.int32}


def cdiv(a, b):
    return -(-a // b)


def rows(seed, r, c, dtype):
    return normal(seed, (r, c), dtype)


def row_kernels(arch):
    """Kernels whose blocks compute rows or runs of elements."""
    for dtype, n, block, warps in ((f32, 1000, 256, 4), (bf16, 4096, 1024, 4), (f16, 77, 128, 1), (s32, 512, 128, 2)):
        x, y = (whole(i, n, 50, dtype) for i in (1, 2))
        z = (x.astype(f64) + y.astype(f64)).astype(dtype)
        yield Launch(f"add_{np.dtype(dtype)}", k.add, arch, (cdiv(n, block),), dict(x=x, y=y, z=z, n=n, BLOCK=block), {"z": 0}, warps)
    for dtype, r, c, warps in ((f32, 3, 1000, 4), (bf16, 2, 512, 8), (f32, 4, 33, 1)):
        x = rows(3, r, c, dtype)
        e = np.exp(x.astype(f64) - x.astype(f64).max(1, keepdims=True))
        z = (e / e.sum(1, keepdims=True)).astype(dtype)
        block = 1 << (c - 1).bit_length()
        yield Launch(f"softmax_{np.dtype(dtype)}_{c}", k.softmax, arch, (r,), dict(x=x, z=z, columns=c, BLOCK=block), {"z": 1e-6 if dtype == f32 else 1e-3}, warps)
    for dtype, r, c, warps in ((f32, 3, 768, 4), (bf16, 2, 1000, 8)):
        x = rows(4, r, c, dtype)
        w, b = normal(5, c, f32), normal(6, c, f32)
        v = x.astype(f64)
        d = v - v.mean(1, keepdims=True)
        z = (d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w + b).astype(dtype)
        block = 1 << (c - 1).bit_length()
        yield Launch(f"layernorm_{np.dtype(dtype)}", k.layernorm, arch, (r,), dict(x=x, w=w, b=b, z=z, columns=c, BLOCK=block), {"z": 1e-5 if dtype == f32 else 4e-2}, warps)
    x, w = rows(7, 3, 1000, bf16), normal(8, 1000, f32)
    v = x.astype(f64)
    z = (v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-6) * w).astype(bf16)
    yield Launch("rmsnorm_loop", k.rmsnorm_loop, arch, (3,), dict(x=x, w=w, z=z, columns=1000, BLOCK=256), {"z": 4e-2}, 4)
    for dtype, r, c, R, C, warps in ((f32, 100, 70, 32, 32, 4), (bf16, 64, 128, 64, 64, 4), (s8, 64, 64, 64, 64, 2), (f16, 33, 40, 16, 64, 1)):
        x = whole(9, (r, c), 100, dtype)
        yield Launch(f"transpose_{np.dtype(dtype)}", k.transpose, arch, (cdiv(r, R), cdiv(c, C)), dict(x=x, z=np.ascontiguousarray(x.T), rows=r, columns=c, R=R, C=C), {"z": 0}, warps)
    for dtype, r, c in ((f32, 40, 100), (bf16, 16, 256)):
        x = eighths(10, (r, c), dtype)
        yield Launch(f"row_sum_{np.dtype(dtype)}", k.row_sum, arch, (cdiv(r, 16),), dict(x=x, z=x.astype(f32).sum(1), rows=r, columns=c, R=16, C=64), {"z": 0}, 4)
        yield Launch(f"column_max_{np.dtype(dtype)}", k.column_max, arch, (cdiv(c, 32),), dict(x=x, z=x.astype(f32).max(0), rows=r, columns=c, R=16, C=32), {"z": 0}, 4)
    x = rows(11, 5, 300, f32)
    yield Launch("argmax", k.argmax, arch, (5,), dict(x=x, z=x.argmax(1).astype(s32), columns=300, BLOCK=512), {"z": 0}, 4)
    x = eighths(12, 2000, f32)
    yield Launch("atomic_sum", k.atomic_sum, arch, (4,), dict(x=x, z=x.sum(keepdims=True), n=2000, BLOCK=512), {"z": 0}, 4, zeroed=("z",))
    x = whole(13, (3, 200), 1000, s32)
    yield Launch("prefix_sum", k.prefix_sum, arch, (3,), dict(x=x, z=x.cumsum(1).astype(s32), columns=200, BLOCK=256), {"z": 0}, 4)
    x = rows(14, 2, 256, f32)
    yield Launch("sort", k.sort, arch, (2,), dict(x=x, z=np.sort(x, 1), BLOCK=256), {"z": 0}, 4)
    x = whole(15, 1000, 31, s32) & 31
    yield Launch("histogram", k.histogram, arch, (2,), dict(x=x, z=np.bincount(x, minlength=32).astype(s32), n=1000, BLOCK=512, BINS=32), {"z": 0}, 4, zeroed=("z",))
    z = philox(7, 500)
    yield Launch("random_words", k.random_words, arch, (2,), dict(z=z, n=500, seed=7, BLOCK=256), {"z": 0}, 4)
    x = normal(16, 500, f32)
    keep = uniform(philox(7, 500)) > 0.5
    yield Launch("dropout", k.dropout, arch, (2,), dict(x=x, z=np.where(keep, x * 2, 0).astype(f32), n=500, seed=7, BLOCK=256), {"z": 0}, 4)
    x, y = normal(17, 700, f16), normal(18, 700, f16)
    v = x.astype(f64)
    z = (0.5 * v * (1 + np.vectorize(math.erf)(v * 0.7071067811865476))).astype(f16)
    yield Launch("gelu", k.gelu, arch, (3,), dict(x=x, z=z, n=700, BLOCK=256), {"z": 2e-3}, 4)
    yield Launch("swiglu", k.swiglu, arch, (3,), dict(x=x, y=y, z=(v / (1 + np.exp(-v)) * y.astype(f64)).astype(f16), n=700, BLOCK=256), {"z": 4e-3}, 4)
    x = normal(19, 600, f32)
    v = x.astype(f64)
    z = (np.sin(v) + np.cos(2 * v) * np.tanh(v) + np.abs(v) ** 0.3).astype(f32)
    yield Launch("trig", k.trig, arch, (3,), dict(x=x, z=z, n=600, BLOCK=256), {"z": 2e-6}, 4)
    v = normal(20, 300, f64)
    yield Launch("doubles", k.doubles, arch, (2,), dict(x=v, z=np.exp(v) / np.log1p(np.abs(v)), n=300, BLOCK=256), {"z": 1e-13}, 4)
    x, c, s = rows(21, 4, 128, bf16), rows(22, 4, 64, f32), rows(23, 4, 64, f32)
    a, b = x[:, :64].astype(f64), x[:, 64:].astype(f64)
    yield Launch("rotary", k.rotary, arch, (4,), dict(x=x, cos=c, sin=s, z=np.hstack([a * c - b * s, b * c + a * s]).astype(bf16), columns=128, HALF=64), {"z": 4e-2}, 2)
    x = rows(24, 4, 500, f32)
    label = np.array([3, 499, 0, 77], s32)
    v = x.astype(f64)
    z = (np.log(np.exp(v).sum(1)) - v[np.arange(4), label]).astype(f32)
    yield Launch("cross_entropy", k.cross_entropy, arch, (4,), dict(x=x, label=label, z=z, columns=500, BLOCK=512), {"z": 2e-6}, 4)
    table, index = whole(25, (50, 64), 100, f32), np.random.default_rng(26).integers(0, 50, 32).astype(s32)
    yield Launch("gather_rows", k.gather_rows, arch, (2,), dict(table=table, index=index, z=table[index], columns=64, R=16, C=64), {"z": 0}, 4)
    x = whole(27, (6, 128), 100, f32)
    yield Launch("lock_sum", k.lock_sum, arch, (6,), dict(x=x, z=x.sum(0), lock=np.zeros(1, s32), n=128, BLOCK=128), {"z": 0}, 4, zeroed=("z",))
    x = normal(28, 400, f32) * 30
    yield Launch("conversions", k.conversions, arch, (2,), dict(x=x, h=x.astype(bf16), e=x.astype(f16), i=np.trunc(x).astype(s8), n=400, BLOCK=256), {"h": 0, "e": 0, "i": 0}, 4)
    a, x = (normal(29, (2, 128), f32) * 0.3), normal(30, (2, 128), f32)
    z = np.zeros((2, 128), f64)
    h = np.zeros(2)
    for i in range(128):
        h = a[:, i] * h + x[:, i]
        z[:, i] = h
    yield Launch("chunked_scan", k.chunked_scan, arch, (2,), dict(x=x, a=a, z=z.astype(f32), L=128, C=128), {"z": 1e-5}, 2)


def philox(seed, n):
    """Philox 4x32-10 of counters 0 to n-1: the first word, as signed numbers."""
    c = [np.arange(n, dtype=np.uint64), *(np.zeros(n, np.uint64) for _ in range(3))]
    k0, k1 = np.uint64(seed), np.uint64(0)
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ k0, b & low, (a >> np.uint64(32)) ^ c[3] ^ k1, a & low]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return c[0].astype(np.uint32).view(s32)


def uniform(words):
    words = words.astype(np.int64)
    return np.where(words < 0, -words - 1, words) * 4.6566127342e-10


# Element types, types of sums and results, and the layout of b: "n" is [K, N].
TYPES = {
    "bf16": (bf16, f32, bf16), "f16": (f16, f32, f16), "tf32": (f32, f32, f32),
    "s8": (s8, s32, s32), "e4m3": (e4m3, f32, f32), "e5m2": (e5m2, f32, f16),
}


def operands(kind, m, n, depth, layout, seed=40):
    """a[M,K], b as [K,N] or [N,K], and a·b, exactly."""
    dtype, _, out = TYPES[kind]
    make = (lambda s, shape: whole(s, shape, 9, dtype)) if dtype == s8 else (lambda s, shape: eighths(s, shape, dtype))
    a, b = make(seed, (m, depth)), make(seed + 1, (depth, n))
    c = (a.astype(f64) @ b.astype(f64)).astype(out)
    return a, b if layout == "n" else np.ascontiguousarray(b.T), c


def product(name, kernel, arch, kind, layout, extents, tile, warps, stages, **more):
    m, n, depth = extents
    a, b, c = operands(kind, m, n, depth, layout)
    bm, bn, bk = tile
    _, total, out = TYPES[kind]
    bk_, bn_ = (n, 1) if layout == "n" else (1, depth)
    args = dict(a=a, b=b, c=c, M=m, N=n, K=depth, am=depth, ak=1, bk=bk_, bn=bn_, cm=n, cn=1, BM=bm, BN=bn, BK=bk)
    if kernel is k.matmul:
        args.update(GROUP=4, OUT=LANGUAGE[np.dtype(out)], SUM=LANGUAGE[np.dtype(total)])
        grid = (cdiv(m, bm) * cdiv(n, bn),)
    else:
        args.update(OUT=LANGUAGE[np.dtype(out)], SUM=LANGUAGE[np.dtype(total)])
        grid = (m // bm, n // bn)
    ctas = more.pop("ctas", 1)
    return Launch(f"{name}_{kind}_{layout}{'_%d' % ctas if ctas > 1 else ''}", kernel, arch, grid, args, {"c": 0}, warps, stages, ctas=ctas)


def products(arch):
    """Products by pointers: cp.async and mma.sync on sm_80, wgmma on sm_90a."""
    ragged, full = (150, 200, 72), (128, 128, 192)
    for kind in TYPES:
        eight = kind in ("e4m3", "e5m2")
        if arch < 89 and eight:
            continue
        for layout in "nt":
            if not eight:  # Triton fills masked loads of these types with no number
                yield product("matmul", k.matmul, arch, kind, layout, ragged, (64, 64, 32), 4, 3)
            yield product("matmul_full", k.matmul_full, arch, kind, layout, full, (128, 64, 64), 4, 4)
    yield product("matmul_wide", k.matmul_full, arch, "bf16", "n", (128, 256, 128), (128, 256, 64), 8, 3)
    yield product("matmul_deep", k.matmul_full, arch, "f16", "t", (64, 64, 256), (64, 64, 32), 4, 5)
    yield product("matmul_narrow", k.matmul_full, arch, "bf16", "t", (64, 32, 128), (64, 16, 64), 4, 2)
    if arch == 90:
        yield product("matmul_full", k.matmul_full, arch, "bf16", "n", (256, 128, 128), (128, 128, 64), 4, 3, ctas=2)
    a, b, c = operands("bf16", 64, 64, 256, "n")
    c = c.astype(f64)
    a, b = a.astype(bf16), b.astype(bf16)
    c = (a.astype(f64) @ b.astype(f64)).astype(f32)
    yield Launch("matmul_splitk", k.matmul_splitk, arch, (1, 1, 4), dict(a=a, b=b, c=c, M=64, N=64, K=256, am=256, ak=1, bk=64, bn=1, cm=64, cn=1, BM=64, BN=64, BK=32, SPLIT=4), {"c": 0}, 4, 2, zeroed=("c",))
    sizes = [(128, 64, 64), (64, 128, 96), (64, 64, 32)]
    sets = [operands("f16", m, n, d, "n", 50 + i) for i, (m, n, d) in enumerate(sizes)]
    named = {}
    for i, (a, b, c) in enumerate(sets):
        named.update({f"a{i}": a, f"b{i}": b, f"c{i}": c})
    yield Launch("grouped_matmul", k.grouped_matmul, arch, (3,), dict(pa=Address(["a0", "a1", "a2"]), pb=Address(["b0", "b1", "b2"]), pc=Address(["c0", "c1", "c2"]), sizes=np.array(sizes, s32), groups=3, BLOCKS=3, BM=64, BN=64, BK=32), {f"c{i}": 0 for i in range(3)}, 4, 3, others=named)
    a, b = eighths(60, (2, 50, 40), f16), eighths(61, (2, 40, 70), f16)
    yield Launch("batched_matmul", k.batched_matmul, arch, (1, 2, 2), dict(a=a, b=b, c=(a.astype(f64) @ b.astype(f64)).astype(f32), M=50, N=70, K=40, BM=64, BN=64, BK=32, OUT=tl.float32), {"c": 0}, 4, 2)
    a, q, scale = eighths(62, (64, 128), bf16), whole(63, (128, 128), 20, s8), 2.0 ** -np.arange(128).astype(f32).__mod__(5)
    c = (a.astype(f64) @ q.astype(f64) * scale).astype(bf16)
    yield Launch("dequantise_matmul", k.dequantise_matmul, arch, (1, 2), dict(a=a, q=q, scale=scale.astype(f32), c=c, M=64, N=128, K=128, BM=64, BN=64, BK=64), {"c": 0}, 4, 3)
    x, w = eighths(64, (7, 9, 16), f16), eighths(65, (3, 3, 16, 32), f16)
    z = np.zeros((5, 7, 32))
    for i in range(3):
        for j in range(3):
            z += x[i:i + 5, j:j + 7].astype(f64) @ w[i, j].astype(f64)
    yield Launch("convolution", k.convolution, arch, (1, 1), dict(x=x, w=w, z=z.astype(f16), H=7, W=9, CI=16, CO=32, BP=64, BC=32, BK=16), {"z": 0}, 4, 3)


def heads(q, kk, v, causal, scale):
    s = q.astype(f64) @ kk.astype(f64).transpose(0, 2, 1) * scale * math.log(2)
    if causal:
        s = np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf)
    p = np.exp(s - s.max(2, keepdims=True))
    return p / p.sum(2, keepdims=True) @ v.astype(f64)


def attentions(arch):
    for kind, dtype, causal, d, warps in (("bf16", bf16, 0, 64, 4), ("f16", f16, 1, 64, 4), ("f16", f16, 0, 128, 8)):
        q, kk, v = (normal(70 + i, (2, 128, d), dtype) for i in range(3))
        scale = 1.4426950408889634 / math.sqrt(d)
        yield Launch(f"attention_{kind}_{'causal' if causal else 'full'}_{d}", k.attention, arch, (2 if warps == 4 else 1, 2), dict(q=q, k=kk, v=v, o=heads(q, kk, v, causal, scale).astype(dtype), L=128, scale=scale, BM=64 if warps == 4 else 128, BN=64, D=d, CAUSAL=causal), {"o": 1.6e-2 if dtype == bf16 else 2e-3}, warps, 2 if d == 64 else 3)


def tensor_maps(arch):
    """Kernels whose operands come by tensor copies (TMA)."""
    if arch < 90:
        return
    for kind, layout, tile, extents, warps, stages in (
        ("bf16", "t", (128, 128, 64), (256, 128, 192), 8, 3), ("f16", "n", (64, 128, 64), (128, 128, 128), 4, 4), ("bf16", "n", (128, 64, 32), (150, 72, 136), 4, 2),
        ("e4m3", "t", (64, 64, 128), (64, 128, 256), 4, 3), ("s8", "t", (128, 64, 64), (128, 64, 256), 4, 3), ("tf32", "t", (64, 64, 32), (64, 64, 128), 4, 3),
    ):
        m, n, depth = extents
        bm, bn, bk = tile
        a, b, c = operands(kind, m, n, depth, layout)
        _, total, out = TYPES[kind]
        yield Launch(f"matmul_tma_{kind}_{layout}", k.matmul_tma, arch, (cdiv(m, bm), cdiv(n, bn)), dict(
            a=Descriptor(a, (bm, bk)), b=Descriptor(b, (bk, bn) if layout == "n" else (bn, bk)), c=Descriptor(c, (bm, bn)), K=depth,
            BM=bm, BN=bn, BK=bk, TRANSPOSED=int(layout == "t"), OUT=LANGUAGE[np.dtype(out)], SUM=LANGUAGE[np.dtype(total)]), {"c": 0}, warps, stages)
    for name, special, flatten, warps in (("matmul_persistent", 0, 0, 4), ("matmul_persistent_flat", 0, 1, 8), ("matmul_specialised_flat", 1, 1, 4)):
        a, b, c = operands("bf16", 256, 192, 128, "t")
        yield Launch(name, k.matmul_persistent, arch, (3,), dict(a=Descriptor(a, (128, 64)), b=Descriptor(b, (64, 64)), c=Descriptor(c, (128, 64)), M=256, N=192, K=128,
            BM=128, BN=64, BK=64, BLOCKS=3, SPECIAL=special, FLATTEN=flatten, OUT=tl.bfloat16), {"c": 0}, warps, 3)
    a, b, c = operands("f16", 128, 128, 128, "t")
    yield Launch("matmul_device_tma", k.matmul_device_tma, arch, (2, 2), dict(a=a, b=b, c=c, M=128, N=128, K=128, BM=64, BN=64, BK=64, OUT=tl.float16), {"c": 0}, 4, 3)
    for name, special, warps in (("attention_tma", 0, 4), ("attention_specialised", 1, 4)):
        q, kk, v = (normal(80 + i, (2, 128, 64), f16) for i in range(3))
        scale = 1.4426950408889634 / 8
        o = heads(q, kk, v, 0, scale).astype(f16).reshape(256, 64)
        yield Launch(name, k.attention_tma, arch, (2, 2), dict(q=Descriptor(q.reshape(256, 64), (64, 64)), k=Descriptor(kk.reshape(256, 64), (64, 64)), v=Descriptor(v.reshape(256, 64), (64, 64)),
            o=Descriptor(o, (64, 64)), L=128, scale=scale, BM=64, BN=64, D=64, SPECIAL=special, OUT=tl.float16), {"o": 2e-3}, warps, 2)


def launches(arch):
    for group in (row_kernels, products, attentions, tensor_maps):
        yield from group(arch)
