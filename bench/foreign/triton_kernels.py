"""Triton kernels, written for this repository, that judge the simulator.

Each kernel is compiled ahead of time, which needs no GPU; make.py has their cases.
"""
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, z, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(z + row * columns + at, e / tl.sum(e, 0), mask=at < columns)


@triton.jit
def layernorm(x, w, b, z, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / columns
    d = tl.where(inside, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, 0) / columns + 1e-5)
    out = d * scale * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)
    tl.store(z + row * columns + at, out, mask=inside)


@triton.jit
def rmsnorm_loop(x, w, z, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        total += v * v
    scale = tl.rsqrt(tl.sum(total, 0) / columns + 1e-6)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        tl.store(z + row * columns + at, v * scale * tl.load(w + at, mask=at < columns), mask=at < columns)


@triton.jit
def transpose(x, z, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns))
    tl.store(z + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < columns) & (r[None, :] < rows))


@triton.jit
def row_sum(x, z, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    total = tl.zeros([R], tl.float32)
    for first in range(0, columns, C):
        c = first + tl.arange(0, C)
        v = tl.load(x + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns), other=0.0)
        total += tl.sum(v.to(tl.float32), 1)
    tl.store(z + r, total, mask=r < rows)


@triton.jit
def column_max(x, z, rows, columns, R: tl.constexpr, C: tl.constexpr):
    c = tl.program_id(0) * C + tl.arange(0, C)
    best = tl.full([C], -float("inf"), tl.float32)
    for first in range(0, rows, R):
        r = first + tl.arange(0, R)
        v = tl.load(x + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns), other=-float("inf"))
        best = tl.maximum(best, tl.max(v.to(tl.float32), 0))
    tl.store(z + c, best, mask=c < columns)


@triton.jit
def argmax(x, z, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    tl.store(z + row, tl.argmax(v, 0))


@triton.jit
def atomic_sum(x, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(z, tl.sum(v, 0))


@triton.jit
def prefix_sum(x, z, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=0)
    tl.store(z + row * columns + at, tl.cumsum(v, 0), mask=at < columns)


@triton.jit
def sort(x, z, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(z + row * BLOCK + at, tl.sort(tl.load(x + row * BLOCK + at)))


@triton.jit
def histogram(x, z, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(z + tl.arange(0, BINS), h)


@triton.jit
def dropout(x, z, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > 0.5
    tl.store(z + at, tl.where(keep, tl.load(x + at, mask=at < n, other=0.0) * 2, 0.0), mask=at < n)


@triton.jit
def random_words(z, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.randint(seed, at), mask=at < n)


@triton.jit
def gelu(x, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(z + at, 0.5 * v * (1 + tl.erf(v * 0.7071067811865476)), mask=at < n)


@triton.jit
def swiglu(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(z + at, v * tl.sigmoid(v) * tl.load(y + at, mask=at < n).to(tl.float32), mask=at < n)


@triton.jit
def trig(x, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(z + at, tl.sin(v) + tl.cos(2 * v) * libdevice.tanh(v) + libdevice.pow(tl.abs(v), 0.3), mask=at < n)


@triton.jit
def doubles(x, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(z + at, libdevice.exp(v) / libdevice.log1p(tl.abs(v)), mask=at < n)


@triton.jit
def rotary(x, cos, sin, z, columns, HALF: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, HALF)
    a = tl.load(x + row * columns + at).to(tl.float32)
    b = tl.load(x + row * columns + HALF + at).to(tl.float32)
    c = tl.load(cos + row * HALF + at)
    s = tl.load(sin + row * HALF + at)
    tl.store(z + row * columns + at, a * c - b * s)
    tl.store(z + row * columns + HALF + at, b * c + a * s)


@triton.jit
def cross_entropy(x, label, z, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    top = tl.max(v, 0)
    total = tl.log(tl.sum(tl.exp(v - top), 0)) + top
    tl.store(z + row, total - tl.load(x + row * columns + tl.load(label + row)))


@triton.jit
def gather_rows(table, index, z, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    at = tl.load(index + r)
    tl.store(z + r[:, None] * columns + c[None, :], tl.load(table + at[:, None] * columns + c[None, :]))


@triton.jit
def lock_sum(x, z, lock, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(z + at, tl.load(z + at) + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def conversions(x, h, e, i, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(h + at, v.to(tl.bfloat16), mask=at < n)
    tl.store(e + at, v.to(tl.float16), mask=at < n)
    tl.store(i + at, v.to(tl.int8), mask=at < n)


@triton.jit
def matmul(a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, OUT: tl.constexpr, SUM: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP * columns
    first = pid // width * GROUP
    size = min(rows - first, GROUP)
    pm = first + (pid % width) % size
    pn = (pid % width) // size
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + (m % M)[:, None] * am + k[None, :] * ak
    pb = b + k[:, None] * bk + (n % N)[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=SUM)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=k[None, :] < K - step * BK, other=0)
        y = tl.load(pb, mask=k[:, None] < K - step * BK, other=0)
        acc = tl.dot(x, y, acc)
        pa += BK * ak
        pb += BK * bk
    tl.store(c + m[:, None] * cm + n[None, :] * cn, acc.to(OUT), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_full(a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OUT: tl.constexpr, SUM: tl.constexpr):
    """matmul without masks: extents are multiples of the tile."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * am + k[None, :] * ak
    pb = b + k[:, None] * bk + n[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=SUM)
    for step in range(0, K // BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK * ak
        pb += BK * bk
    tl.store(c + m[:, None] * cm + n[None, :] * cn, acc.to(OUT))


@triton.jit
def matmul_splitk(a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.program_id(2) * BK + tl.arange(0, BK)
    pa = a + m[:, None] * am + k[None, :] * ak
    pb = b + k[:, None] * bk + n[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK * SPLIT)):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK * SPLIT * ak
        pb += BK * SPLIT * bk
    tl.atomic_add(c + m[:, None] * cm + n[None, :] * cn, acc)


@triton.jit
def matmul_tma(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANSPOSED: tl.constexpr,
               OUT: tl.constexpr, SUM: tl.constexpr):
    """a, b and c are tensor descriptors of the host."""
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=SUM)
    for step in range(0, tl.cdiv(K, BK)):
        x = a.load([m, step * BK])
        if TRANSPOSED:
            acc = tl.dot(x, b.load([n, step * BK]).T, acc)
        else:
            acc = tl.dot(x, b.load([step * BK, n]), acc)
    c.store([m, n], acc.to(OUT))


@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                      BLOCKS: tl.constexpr, SPECIAL: tl.constexpr, FLATTEN: tl.constexpr, OUT: tl.constexpr):
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    for tile in tl.range(tl.program_id(0), tiles, BLOCKS, flatten=FLATTEN, warp_specialize=SPECIAL):
        m = tile // columns * BM
        n = tile % columns * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(a.load([m, step * BK]), b.load([n, step * BK]).T, acc)
        c.store([m, n], acc.to(OUT))


@triton.jit
def matmul_device_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OUT: tl.constexpr):
    """The kernel makes its descriptors itself."""
    da = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    dc = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(da.load([m, step * BK]), db.load([n, step * BK]).T, acc)
    dc.store([m, n], acc.to(OUT))


@triton.jit
def grouped_matmul(pa, pb, pc, sizes, groups, BLOCKS: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of several sizes by one persistent kernel; pa, pb, pc are arrays of addresses."""
    tile = tl.program_id(0)
    done = 0
    for g in range(groups):
        M = tl.load(sizes + g * 3)
        N = tl.load(sizes + g * 3 + 1)
        K = tl.load(sizes + g * 3 + 2)
        columns = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * columns
        while tile >= done and tile < done + tiles:
            a = tl.load(pa + g).to(tl.pointer_type(tl.float16))
            b = tl.load(pb + g).to(tl.pointer_type(tl.float16))
            c = tl.load(pc + g).to(tl.pointer_type(tl.float16))
            m = (tile - done) // columns * BM + tl.arange(0, BM)
            n = (tile - done) % columns * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            xa = a + m[:, None] * K + k[None, :]
            xb = b + k[:, None] * N + n[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for step in range(0, tl.cdiv(K, BK)):
                tl.multiple_of(xa, [16, 16])
                tl.multiple_of(xb, [16, 16])
                acc += tl.dot(tl.load(xa), tl.load(xb))
                xa += BK
                xb += BK * N
            tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16))
            tile += BLOCKS
        done += tiles


@triton.jit
def batched_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OUT: tl.constexpr):
    batch = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        x = tl.load(a + batch * M * K + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + batch * K * N + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
    tl.store(c + batch * M * N + m[:, None] * N + n[None, :], acc.to(OUT), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def dequantise_matmul(a, q, scale, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """a is bf16[M,K], q s8[K,N], scale f32[N]."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * K + k[None, :]
    pq = q + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K // BK):
        acc = tl.dot(tl.load(pa), tl.load(pq).to(tl.bfloat16), acc)
        pa += BK
        pq += BK * N
    tl.store(c + m[:, None] * N + n[None, :], (acc * tl.load(scale + n)[None, :]).to(tl.bfloat16))


@triton.jit
def attention(q, k, v, o, L, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    """Flash attention: q, k, v, o are [heads, L, D]."""
    head = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = head.to(tl.int64) * L * D
    x = tl.load(q + base + m[:, None] * D + d[None, :])
    top = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    last = L
    if CAUSAL:
        last = (tl.program_id(0) + 1) * BM
    for first in range(0, last, BN):
        n = first + tl.arange(0, BN)
        s = tl.dot(x, tl.load(k + base + n[None, :] * D + d[:, None])) * scale
        if CAUSAL:
            s = tl.where(m[:, None] >= n[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        a = tl.exp2(top - new)
        total = total * a + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype.element_ty), tl.load(v + base + n[:, None] * D + d[None, :]), acc * a[:, None])
        top = new
    tl.store(o + base + m[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty))


@triton.jit
def attention_tma(q, k, v, o, L, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, SPECIAL: tl.constexpr, OUT: tl.constexpr):
    """Flash attention by tensor descriptors of [heads * L, D]."""
    first_row = tl.program_id(1) * L
    m = first_row + tl.program_id(0) * BM
    x = q.load([m, 0])
    top = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for first in tl.range(0, L, BN, warp_specialize=SPECIAL):
        s = tl.dot(x, k.load([first_row + first, 0]).T) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        a = tl.exp2(top - new)
        total = total * a + tl.sum(p, 1)
        acc = tl.dot(p.to(OUT), v.load([first_row + first, 0]), acc * a[:, None])
        top = new
    o.store([m, 0], (acc / total[:, None]).to(OUT))


@triton.jit
def convolution(x, w, z, H, W, CI, CO, BP: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr):
    """A 3x3 convolution of [H, W, CI] without padding, as products over the nine offsets."""
    ow = W - 2
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    n = tl.program_id(1) * BC + tl.arange(0, BC)
    y0, x0 = p // ow, p % ow
    inside = p < (H - 2) * ow
    acc = tl.zeros((BP, BC), dtype=tl.float32)
    for tap in range(9):
        for first in range(0, CI, BK):
            k = first + tl.arange(0, BK)
            at = ((y0 + tap // 3) * W + x0 + tap % 3) * CI
            u = tl.load(x + at[:, None] + k[None, :], mask=inside[:, None] & (k[None, :] < CI), other=0.0)
            v = tl.load(w + (tap * CI + k[:, None]) * CO + n[None, :], mask=(k[:, None] < CI) & (n[None, :] < CO), other=0.0)
            acc += tl.dot(u, v)
    tl.store(z + p[:, None] * CO + n[None, :], acc.to(tl.float16), mask=inside[:, None] & (n[None, :] < CO))


@triton.jit
def chunked_scan(x, a, z, L, C: tl.constexpr):
    """h = a h + x along rows, by an associative scan."""
    row = tl.program_id(0)
    at = tl.arange(0, C)
    u = tl.load(a + row * L + at)
    v = tl.load(x + row * L + at)
    _, h = tl.associative_scan((u, v), 0, _combine)
    tl.store(z + row * L + at, h)


@triton.jit
def _combine(a0, x0, a1, x1):
    return a0 * a1, x0 * a1 + x1
