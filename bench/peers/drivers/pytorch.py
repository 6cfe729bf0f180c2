"""PyTorch: eager, or by torch.compile (Inductor), as the argument says.

The operations are written as in an application; those of a fusion of a model are its
HLO's, one by one (hlo.py). Weights of convolutions are laid out
before anything is timed, as oneDNN's are.
"""

import os
import sys

import protocol

threads = protocol.pin()
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(os.path.dirname(sys.executable), "..", "inductor"))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import numpy as np
import torch
import torch.nn.functional as F

import hlo

torch.set_num_threads(threads)
torch.set_grad_enabled(False)

f32, bf16, s8, s32 = torch.float32, torch.bfloat16, torch.int8, torch.int32


def chain(x, row):
    b = (x + row) * 0.5
    c = torch.clamp_min(b, 0)
    return torch.minimum(torch.abs(c - x) * row, x) + 0.5


def attention(q, k, v):
    return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def convolution(d):
    return lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w, None, d[6], d[4] // 2).permute(0, 2, 3, 1)


def gelu(x):
    return F.gelu(x, approximate="tanh")


# For each operation of dims d: the shapes and types of its inputs, and the function.
OPERATIONS = {
    "sgemm": lambda d: ([(d[0], d[2], f32), (d[2], d[1], f32)], torch.mm),
    "s8gemm": lambda d: ([(d[0], d[2], s8), (d[2], d[1], s8)], torch._int_mm),
    "gemm_bias_gelu": lambda d: ([(d[0], d[2], f32), (d[2], d[1], f32), (d[1], f32)], lambda x, y, b: gelu(torch.addmm(b, x, y))),
    "gemv": lambda d: ([(d[0], d[1], f32), (d[1], 1, f32)], torch.mm),
    "gemv_columns": lambda d: ([(d[1], d[0], f32), (d[1], 1, f32)], lambda x, y: x.t() @ y),
    "gevm": lambda d: ([(1, d[1], f32), (d[1], d[0], f32)], torch.mm),
    "gevm_rows": lambda d: ([(1, d[1], f32), (d[0], d[1], f32)], lambda x, y: x @ y.t()),
    "attention": lambda d: ([(*d, f32)] * 3, attention),
    "bf16attention": lambda d: ([(*d, bf16)] * 3, attention),
    "layernorm": lambda d: ([(*d, f32), (d[1], f32), (d[1], f32)], lambda x, g, b: F.layer_norm(x, (d[1],), g, b, 1e-5)),
    "rmsnorm": lambda d: ([(*d, f32), (d[1], f32)], lambda x, g: F.rms_norm(x, (d[1],), g, 1e-6)),
    "softmax": lambda d: ([(*d, f32)], lambda x: torch.softmax(x, 1)),
    "gelu": lambda d: ([(*d, f32)], gelu),
    "bias_gelu": lambda d: ([(*d, f32), (d[1], f32)], lambda x, b: gelu(x + b)),
    "chain": lambda d: ([(*d, f32), (d[1], f32)], chain),
    "add": lambda d: ([(*d, f32)] * 2, torch.add),
    "row_sum": lambda d: ([(*d, f32)], lambda x: x.sum(1)),
    "column_sum": lambda d: ([(*d, f32)], lambda x: x.sum(0)),
    "argmax": lambda d: ([(*d, f32)], lambda x: tuple(torch.max(x, 1))),
    "cumsum": lambda d: ([(*d, f32)], lambda x: torch.cumsum(x, 1)),
    "embedding": lambda d: ([(d[0], d[1], f32), (d[2], s32)], lambda x, t: F.embedding(t, x)),
    "transpose": lambda d: ([(*d, f32)], lambda x: x.t().contiguous()),
    "swap": lambda d: ([(*d, f32)], lambda x: x.permute(0, 2, 1, 3).contiguous()),
    "conv": lambda d: ([(*d[:4], f32), (d[4], d[4], d[3], d[5], f32)], convolution(d)),
}


class PyTorch:
    def __init__(self, compiled):
        self.compiled = compiled

    def version(self):
        return f"torch {torch.__version__}"

    def prepare(self, op, dims, text, sets):
        if op == "model":
            self.function = hlo.Program(text)
            self.types = self.function.types()
        elif op in OPERATIONS:
            self.types, self.function = OPERATIONS[op](dims)
        else:
            raise protocol.Missing()
        self.op, self.rows = op, dims[0] if dims else 0
        if self.compiled:
            torch._dynamo.reset()
            self.function = torch.compile(self.function, dynamic=False, fullgraph=True)
        self.inputs = [[torch.ones(t[:-1], dtype=t[-1]) for t in self.types] for _ in range(sets)]
        return len(self.types)

    def load(self, k, data):
        *shape, dtype = self.types[k]
        x = torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)
        if self.op == "embedding" and k == 1:
            x = x.clamp(0, self.rows - 1)  # as HLO's gather does; PyTorch has an error
        if self.op == "conv" and k == 1:
            x = x.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        for row in self.inputs:
            row[k] = x.clone()

    def check(self):
        out = self.function(*self.inputs[0])
        out = out if isinstance(out, tuple) else (out,)
        return b"".join(self.bytes(x) for x in out)

    @staticmethod
    def bytes(x):
        if x.dtype == torch.int64:  # places, which are s32 in HLO
            x = x.to(torch.int32)
        return x.contiguous().view(torch.uint8).numpy().tobytes()

    def run(self, k):
        self.function(*self.inputs[k])

    def finish(self):
        self.function = self.inputs = None


protocol.serve(PyTorch(sys.argv[1] == "compile"))
