"""python triton_make.py FOLDER [NAME...]: compiles the launches of triton_cases.py.

Cases are for sm_80 and sm_90a, further modules for sm_89 and sm_120a."""
import os
import sys
import traceback

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import triton_cases
from case import NAMES, Address, Descriptor, Launch, Writer

TYPES = {
    "f32": "fp32", "f64": "fp64", "f16": "fp16", "bf16": "bf16", "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64",
    "u8": "u8", "u64": "u64", "e4m3": "fp8e4nv", "e5m2": "fp8e5",
}


def triton_type(array):
    return TYPES[NAMES[str(array.dtype)]]


def compile(l: Launch):
    """The compiled kernel, with the specialisation that Triton's launcher chooses."""
    signature, constants, attributes = {}, {}, {}
    aligned = [["tt.divisibility", 16]]
    for i, name in enumerate(l.kernel.arg_names):
        v = l.args[name]
        if name.isupper() and name not in ("M", "N", "K", "H", "W", "L", "CI", "CO"):
            signature[name], constants[(i,)] = "constexpr", v
        elif isinstance(v, Descriptor):
            signature[name] = f"tensordesc<{triton_type(v.array)}{list(v.block)}>"
        elif isinstance(v, Address):
            signature[name], attributes[(i,)] = "*u64", aligned
        elif isinstance(v, np.ndarray):
            signature[name], attributes[(i,)] = "*" + triton_type(v), aligned
        elif isinstance(v, float):
            signature[name] = "fp32"
        elif v == 1:
            signature[name], constants[(i,)] = "constexpr", 1
        else:
            signature[name] = "i32"
            if v % 16 == 0:
                attributes[(i,)] = aligned
    source = ASTSource(l.kernel, signature, constants, attributes)
    options = dict(num_warps=l.warps, num_stages=l.stages, num_ctas=l.ctas)
    return signature, triton.compile(source, target=GPUTarget("cuda", l.arch, 32), options=options)


def case(l: Launch, signature, compiled):
    m = compiled.metadata
    threads = 32 * getattr(m, "num_warps", l.warps)
    w = Writer(m.name, (l.grid[0] * l.ctas, *l.grid[1:]), (threads,), m.shared, (l.ctas, 1, 1))
    descriptors = list(getattr(m, "tensordesc_meta", None) or [])
    arrays = {**l.args, **l.others}
    for name, v in arrays.items():
        v = v.array if isinstance(v, Descriptor) else v
        if isinstance(v, Address):
            w.addresses(name, v.names)
        elif isinstance(v, np.ndarray):
            w.array(name, v, l.expect.get(name), name in l.zeroed)
    for name in l.kernel.arg_names:
        v, form = l.args[name], signature[name]
        if form == "constexpr":
            continue
        if isinstance(v, Descriptor):
            d = descriptors.pop(0)
            shape, size = v.array.shape, v.array.dtype.itemsize
            strides = [s for s in v.array.strides]
            w.map(name, NAMES[str(v.array.dtype)], list(shape)[::-1], strides[:-1][::-1], list(d["block_size"])[::-1], d["swizzle"])
            for s in shape:
                w.value("i", s)
            for s in strides:
                w.value("q", s // size)
        elif isinstance(v, (np.ndarray, Address)):
            w.pointer(name)
        else:
            w.value("f" if form == "fp32" else "i", v)
    blocks = int(np.prod(l.grid)) * l.ctas
    for kind in ("global", "profile"):
        size = getattr(m, kind + "_scratch_size", 0)
        if size:
            w.scratch(kind, size * blocks)
            w.pointer(kind)
        else:
            w.value("Q", 0)
    return w


def main(folder, *only):
    os.makedirs(os.path.join(folder, "modules"), exist_ok=True)
    failed = 0
    for arch in (80, 89, 90, 120):
        for l in triton_cases.launches(arch):
            name = f"triton_{l.name}_sm{arch}"
            if only and not any(o in name for o in only):
                continue
            try:
                signature, compiled = compile(l)
                ptx = compiled.asm["ptx"]
                with open(os.path.join(folder, "modules", name + ".ptx"), "w") as f:
                    f.write(ptx)
                if arch in (80, 90):
                    case(l, signature, compiled).write(os.path.join(folder, name + ".zip"), ptx)
            except Exception as e:
                failed += 1
                print(name, "".join(traceback.format_exception_only(e))[-400:], file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
