"""XLA:CPU as a rival: times modules on request.

Each line of the standard input is {"file": a text of HLO or StableHLO, "runs": n};
each line of the output {"seconds": [one a run]} or {"error": why not}. A file is
compiled when it is first named; inputs are random. "drop": true forgets it.
"""

import json
import sys
import time

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib.mlir import ir
from jaxlib import _hlo, _jax


def module_of(text, context):
    """The text as an MLIR module; HLO is converted."""
    if not text.lstrip().startswith(("module", "func")):
        hlo = _hlo.hlo_module_from_text(text)
        return ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto()))
    return ir.Module.parse(text)


class Program:
    """A compiled module with its inputs."""

    def __init__(self, file):
        with open(file) as f:
            text = f.read()
        device = jax.devices("cpu")[0]
        client = device.client
        with jax_mlir.make_ir_context() as context:
            module = module_of(text, context)
            options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
            devices = compiler.xc.DeviceList((device,))
            self.loaded = compiler.backend_compile_and_load(client, module, devices, options, [])
            main = next(op for op in module.body if op.name.value == "main")
            self.inputs = [jax.device_put(random(t), device) for t in main.type.inputs]

    def run(self):
        start = time.perf_counter()
        for out in self.loaded.execute_sharded(self.inputs).disassemble_into_single_device_arrays():
            for x in out:
                x.block_until_ready()
        return time.perf_counter() - start


def random(tensor):
    """An array of an MLIR type: small numbers, indices that are in range."""
    tensor = ir.RankedTensorType(tensor)
    dtype = dtypes()[str(tensor.element_type)]
    shape = tuple(tensor.shape)
    generator = np.random.default_rng(0)
    if np.dtype(dtype).kind in "iub":
        return generator.integers(0, 2, shape).astype(dtype)
    x = np.empty(shape, dtype)
    flat = x.reshape(-1)
    some = generator.uniform(0.01, 0.2, min(flat.size, 1 << 20) or 1).astype(dtype)
    for k in range(0, flat.size, some.size):
        flat[k:k + some.size] = some[:flat.size - k]
    return x


def dtypes():
    """The types of arrays by their names in MLIR."""
    import ml_dtypes

    return {
        "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i1": np.bool_,
        "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
        "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
        "complex<f32>": np.complex64, "complex<f64>": np.complex128,
    }


def main():
    programs = {}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            file = asked["file"]
            if asked.get("drop"):
                programs.pop(file, None)
                answer = {"seconds": []}
            else:
                if file not in programs:
                    programs[file] = Program(file)
                    programs[file].run()
                answer = {"seconds": [programs[file].run() for _ in range(asked["runs"])]}
        except Exception as e:  # whatever XLA says is the answer
            answer = {"error": f"{type(e).__name__}: {e}"[:500]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
