"""python beside.py ROWS.json FOLDER: the Triton kernels that beside.json names, as PTX with what they are launched with."""
import json
import os
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../foreign"))
import triton_kernels

EXTENTS = ("M", "N", "K", "L")


def compile(row):
    kernel = getattr(triton_kernels, row["Kernel"])
    signature, constants, attributes = {}, {}, {}
    for i, name in enumerate(kernel.arg_names):
        v = row["Args"][name]
        if isinstance(v, str) and v.startswith("tl."):
            v = getattr(tl, v[3:])
        if name.isupper() and name not in EXTENTS or v == 1:
            signature[name], constants[(i,)] = "constexpr", v
        elif isinstance(v, str):
            signature[name] = v
        else:
            signature[name] = "i32"
        if v != 1 and (signature[name][0] == "*" or isinstance(v, int) and v % 16 == 0 and signature[name] == "i32"):
            attributes[(i,)] = [["tt.divisibility", 16]]
    target = GPUTarget("cuda", int(row["Arch"].strip("sm_a")), 32)
    return triton.compile(ASTSource(kernel, signature, constants, attributes), target=target, options=dict(num_warps=row["Warps"], num_stages=row["Stages"]))


def main(rows, folder):
    os.makedirs(folder, exist_ok=True)
    for n, row in enumerate(json.load(open(rows))):
        k = compile(row)
        with open(os.path.join(folder, f"{n}.ptx"), "w") as f:
            f.write(k.asm["ptx"])
        with open(os.path.join(folder, f"{n}.json"), "w") as f:
            json.dump(dict(Shared=k.metadata.shared, Threads=32 * k.metadata.num_warps), f)


main(*sys.argv[1:])
