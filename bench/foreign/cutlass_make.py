"""python cutlass_make.py FOLDER [NAME...]: compiles kernels in CUTLASS's DSL (CuTe), with NumPy's results.

The compiler is of one architecture, which it reads from the environment, so that each has a process."""
import dataclasses
import os
import subprocess
import sys
import tempfile
import warnings

ARCHES = ("80", "90a")
ARCH = os.environ.get("FOREIGN_ARCH")
if ARCH:
    os.environ.update(CUTE_DSL_ARCH="sm_" + ARCH, CUTE_DSL_KEEP_PTX="1", CUTE_DSL_DUMP_DIR=tempfile.mkdtemp(), CUTE_DSL_DISABLE_FILE_CACHING="1")
    warnings.simplefilter("ignore")

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import ml_dtypes
import numpy as np
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor

from case import NAMES, Writer, eighths, normal

F32, BF16 = cutlass.Float32, cutlass.BFloat16
f32, bf16 = np.float32, ml_dtypes.bfloat16


@cute.kernel
def axpy(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    i = b * 128 + t
    if i < cute.size(x):
        z[i] = x[i] * F32(2.0) + y[i]


@cute.jit
def axpy_host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    axpy(x, y, z).launch(grid=[8, 1, 1], block=[128, 1, 1])


@cute.kernel
def softmax(x: cute.Tensor, z: cute.Tensor):
    """A warp a row."""
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    n = cute.size(x, mode=[1])
    most = F32(-1e30)
    for i in range(t, n, 32):
        most = cutlass.max(most, x[b, i])
    most = cute.arch.warp_reduction_max(most)
    total = F32(0.0)
    for i in range(t, n, 32):
        total += cute.math.exp(x[b, i] - most)
    total = cute.arch.warp_reduction_sum(total)
    for i in range(t, n, 32):
        z[b, i] = cute.math.exp(x[b, i] - most) / total


@cute.jit
def softmax_host(x: cute.Tensor, z: cute.Tensor):
    softmax(x, z).launch(grid=[3, 1, 1], block=[32, 1, 1])


@cute.kernel
def transpose(x: cute.Tensor, z: cute.Tensor):
    """Tiles of 32 by 32 through shared memory."""
    t, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    tile = utils.SmemAllocator().allocate_tensor(F32, cute.make_layout((32, 32), stride=(33, 1)), 16)
    for r in cutlass.range_constexpr(8):
        tile[t // 32 + 4 * r, t % 32] = x[by * 32 + t // 32 + 4 * r, bx * 32 + t % 32]
    cute.arch.sync_threads()
    for r in cutlass.range_constexpr(8):
        z[bx * 32 + t // 32 + 4 * r, by * 32 + t % 32] = tile[t % 32, t // 32 + 4 * r]


@cute.jit
def transpose_host(x: cute.Tensor, z: cute.Tensor):
    transpose(x, z).launch(grid=[2, 3, 1], block=[128, 1, 1])


@cute.kernel
def matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma):
    """Warps multiply fragments that they load from global memory."""
    t, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    mine = tiled.get_slice(t)
    ca = mine.partition_A(cute.local_tile(a, (32, 16), (bx, None)))
    cb = mine.partition_B(cute.local_tile(b, (32, 16), (by, None)))
    cc = mine.partition_C(cute.local_tile(c, (32, 32), (bx, by)))
    ra = tiled.make_fragment_A(ca[None, None, None, 0])
    rb = tiled.make_fragment_B(cb[None, None, None, 0])
    rc = tiled.make_fragment_C(cc)
    rc.fill(0.0)
    for k in range(cute.size(ca, mode=[3])):
        cute.autovec_copy(ca[None, None, None, k], ra)
        cute.autovec_copy(cb[None, None, None, k], rb)
        cute.gemm(tiled, rc, ra, rb, rc)
    cute.autovec_copy(rc, cc)


@cute.jit
def matmul_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tiled = cute.make_tiled_mma(warp.MmaF16BF16Op(BF16, F32, (16, 8, 16)), (2, 2, 1))
    matmul(a, b, c, tiled).launch(grid=[2, 2, 1], block=[128, 1, 1])


@cute.kernel
def tma_matmul(copy_a: cute.CopyAtom, a: cute.Tensor, copy_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma, layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout):
    """A warpgroup multiplies tiles of 64 that tensor copies bring."""
    t, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    w = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    shared = utils.SmemAllocator()
    sa = shared.allocate_tensor(BF16, layout_a.outer, 1024, swizzle=layout_a.inner)
    sb = shared.allocate_tensor(BF16, layout_b.outer, 1024, swizzle=layout_b.inner)
    bar = shared.allocate_array(cutlass.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    ga, gb = cute.local_tile(a, (64, 64), (bx, None)), cute.local_tile(b, (64, 64), (by, None))
    to_a, from_a = cpasync.tma_partition(copy_a, 0, cute.make_layout(1), cute.group_modes(sa, 0, 2), cute.group_modes(ga, 0, 2))
    to_b, from_b = cpasync.tma_partition(copy_b, 0, cute.make_layout(1), cute.group_modes(sb, 0, 2), cute.group_modes(gb, 0, 2))
    mine = tiled.get_slice(t)
    ra, rb = tiled.make_fragment_A(mine.partition_A(sa)), tiled.make_fragment_B(mine.partition_B(sb))
    cc = mine.partition_C(cute.local_tile(c, (64, 64), (bx, by)))
    rc = tiled.make_fragment_C(cc)
    for k in range(cute.size(ga, mode=[2])):
        if t == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 2 * 64 * 64 * 2)
        if w == 0:
            cute.copy(copy_a, from_a[None, k], to_a[None, 0], tma_bar_ptr=bar)
            cute.copy(copy_b, from_b[None, k], to_b[None, 0], tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, k & 1)
        warpgroup.fence()
        tiled.set(warpgroup.Field.ACCUMULATE, k != 0)
        for i in cutlass.range_constexpr(cute.size(ra, mode=[2])):
            cute.gemm(tiled, rc, ra[None, None, i, 0], rb[None, None, i, 0], rc)
            tiled.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.sync_threads()
    cute.autovec_copy(rc, cc)


@cute.jit
def tma_matmul_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tiled = utils.sm90.make_trivial_tiled_mma(BF16, BF16, OperandMajorMode.K, OperandMajorMode.K, F32, (1, 1, 1), (64, 64))
    rows = utils.LayoutEnum.ROW_MAJOR
    layout_a = utils.sm90.make_smem_layout_a(rows, (64, 64, 64), BF16, 1)
    layout_b = utils.sm90.make_smem_layout_b(rows, (64, 64, 64), BF16, 1)
    load = cpasync.CopyBulkTensorTileG2SOp()
    copy_a, a_map = cpasync.make_tiled_tma_atom(load, a, cute.slice_(layout_a, (None, None, 0)), (64, 64))
    copy_b, b_map = cpasync.make_tiled_tma_atom(load, b, cute.slice_(layout_b, (None, None, 0)), (64, 64))
    tma_matmul(copy_a, a_map, copy_b, b_map, c, tiled, layout_a, layout_b).launch(grid=[2, 1, 1], block=[128, 1, 1])


@dataclasses.dataclass
class Case:
    """A host function that launches one kernel. Arrays are its arguments in order, the last one the result."""
    name: str
    host: object
    grid: tuple
    block: tuple
    arrays: dict
    tolerance: float = 0
    shared: int = 0
    # The box of the operands that are tensor maps, in elements, innermost first.
    box: tuple = ()
    # Parameters of no bytes that follow: what the kernel is told of layouts.
    empty: int = 0


def cases():
    x, y = eighths(200, 1000, f32), eighths(201, 1000, f32)
    yield Case("axpy", axpy_host, (8,), (128,), dict(x=x, y=y, z=2 * x + y))
    x = normal(202, (3, 100), f32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    yield Case("softmax", softmax_host, (3,), (32,), dict(x=x, z=(e / e.sum(1, keepdims=True)).astype(f32)), 1e-6)
    x = normal(203, (96, 64), f32)
    yield Case("transpose", transpose_host, (2, 3), (128,), dict(x=x, z=np.ascontiguousarray(x.T)), shared=32 * 33 * 4)
    a, b = eighths(204, (64, 48), bf16), eighths(205, (64, 48), bf16)
    yield Case("matmul", matmul_host, (2, 2), (128,), dict(a=a, b=b, c=a.astype(f32) @ b.astype(f32).T))
    if ARCH == "90a":
        a, b = eighths(206, (128, 128), bf16), eighths(207, (64, 128), bf16)
        yield Case("tma_matmul", tma_matmul_host, (2, 1), (128,), dict(a=a, b=b, c=a.astype(f32) @ b.astype(f32).T), shared=2 * 64 * 64 * 2 + 8, box=(64, 64), empty=1)


def tensor(v):
    """An array in the order of C, as the compiler is told of it."""
    order = tuple(range(v.ndim))[::-1]
    return make_fake_compact_tensor({"f32": F32, "bf16": BF16}[NAMES[str(v.dtype)]], v.shape, stride_order=order, assumed_align=16)


def main(folder, *only):
    os.makedirs(folder, exist_ok=True)
    failed = 0
    for c in cases():
        full = f"cutlass_{c.name}_sm{ARCH}"
        if only and not any(o in full for o in only):
            continue
        try:
            ptx = cute.compile(c.host, *map(tensor, c.arrays.values())).__ptx__
        except Exception as e:
            failed += 1
            print(full, str(e)[-400:], file=sys.stderr)
            continue
        # The compiler's name of an entry is that of all its types.
        entry = ptx.split(".entry ")[1].split("(")[0]
        ptx = ptx.replace(entry, c.name)
        w = Writer(c.name, c.grid, c.block, c.shared)
        last = list(c.arrays)[-1]
        for name, v in c.arrays.items():
            w.array(name, v, c.tolerance if name == last else None)
            if c.box and name != last:
                w.map(name, NAMES[str(v.dtype)], list(v.shape)[::-1], [v.strides[0]], list(c.box), 3)
            else:
                w.pointer(name)
        for _ in range(c.empty):
            w.value("b", 0)
        w.write(os.path.join(folder, full + ".zip"), ptx)
    return failed


if __name__ == "__main__":
    if ARCH:
        sys.exit(main(*sys.argv[1:]) > 0)
    runs = [subprocess.run([sys.executable] + sys.argv, env=dict(os.environ, FOREIGN_ARCH=arch)) for arch in ARCHES]
    sys.exit(any(r.returncode for r in runs))
