"""XLA:CPU: the HLO of every case, compiled as jax.jit compiles it."""

import protocol

protocol.pin()  # before JAX counts processors for its threads

import jax
import ml_dtypes
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib.mlir import ir
from jaxlib import _hlo, _jax

DTYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64, "complex<f32>": np.complex64,
}


class XLA:
    def version(self):
        return f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"

    def prepare(self, op, dims, text, sets):
        self.device = jax.devices("cpu")[0]
        hlo = _hlo.hlo_module_from_text(text)
        with jax_mlir.make_ir_context():
            module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto()))
            options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
            devices = compiler.xc.DeviceList((self.device,))
            self.loaded = compiler.backend_compile_and_load(self.device.client, module, devices, options, [])
            main = next(o for o in module.body if o.name.value == "main")
            types = [ir.RankedTensorType(t) for t in main.type.inputs]
            self.types = [(tuple(t.shape), DTYPES[str(t.element_type)]) for t in types]
        self.inputs = [[None] * len(self.types) for _ in range(sets)]
        for k, (shape, dtype) in enumerate(self.types):
            self.put(k, np.ones(shape, dtype))
        return len(self.types)

    def put(self, k, array):
        for row in self.inputs:
            row[k] = jax.device_put(array.copy(), self.device)

    def load(self, k, data):
        shape, dtype = self.types[k]
        self.put(k, np.frombuffer(data, dtype).reshape(shape))

    def execute(self, row):
        out = [x for shards in self.loaded.execute_sharded(row).disassemble_into_single_device_arrays() for x in shards]
        for x in out:
            x.block_until_ready()
        return out

    def check(self):
        return b"".join(np.asarray(x).tobytes() for x in self.execute(self.inputs[0]))

    def run(self, k):
        self.execute(self.inputs[k])

    def finish(self):
        self.loaded = self.inputs = None


protocol.serve(XLA())
