"""Texts of PyTorch models: python torch_models.py [-small] [-tilewright PROGRAM] [-record FILE] FOLDER.

transformers' PyTorch definitions go through torch.export and torchax to StableHLO.
The weights are parameters, in front of the inputs. -tilewright lets `tilewright run`
execute each text on inputs that a formula makes, and compares the output with what
PyTorch computes of them; -record adds some of PyTorch's results for the Go test.
"""

import argparse
import os
import sys

import jax
import numpy as np
import torch
import torchax  # noqa: F401, before transformers, whose models it traces
import transformers
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from torchax import export

from compare import ALLOWED, difference, executed, hashed, kept, record
from texts import write

# Both with attention as it is written out, since torchax takes the constants of the
# masks that other forms make for weights; Llama is given its mask for the same reason.
COMMON = {"num_hidden_layers": 2, "attn_implementation": "eager"}


class Bert(torch.nn.Module):
    """BERT base, of 8x128 tokens."""

    def __init__(self, small):
        super().__init__()
        sizes = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 50} if small else {}
        self.model = transformers.BertModel(transformers.BertConfig(**COMMON, **sizes), add_pooling_layer=False)
        tokens = (2, 16) if small else (8, 128)
        self.inputs = [torch.zeros(tokens, dtype=torch.int64) for _ in range(3)]
        self.ranges = [(0, 50), (0, 2), (0, 2)]

    def forward(self, tokens, mask, kinds):
        return self.model(tokens, mask, kinds).last_hidden_state


class Llama(torch.nn.Module):
    """Llama with the widths of Llama 3.2 1B, of 128 tokens."""

    def __init__(self, small):
        super().__init__()
        sizes = {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256}
        if small:
            sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 50}
        self.model = transformers.LlamaModel(transformers.LlamaConfig(**COMMON, **sizes))
        batch, tokens = (2, 16) if small else (1, 128)
        self.inputs = [
            torch.zeros(batch, tokens, dtype=torch.int64),
            torch.zeros(batch, 1, tokens, tokens),
            torch.arange(tokens)[None],
        ]
        self.ranges = [(0, 50), (-0.2, 0.2), (0, tokens)]

    def forward(self, tokens, mask, positions):
        return self.model(tokens, mask, positions, use_cache=False).last_hidden_state


MODELS = {"torch_bert": Bert, "torch_llama": Llama}


def exported(model):
    """The text of a model, and the names of the weights that are its first parameters."""
    for part in model.modules():
        part._non_persistent_buffers_set.clear()  # torchax passes persistent ones in their order
    with torch.no_grad():
        program = torch.export.export(model, tuple(model.inputs))
        names, _, _ = export.exported_program_to_jax(program, export_raw=True)
        _, lowered = export.exported_program_to_stablehlo(program)
    with mlir.make_ir_context():
        text = ir.Module.parse(lowered.mlir_module()).operation.get_asm(enable_debug_info=False)
    used = [names[k] for k in lowered.module_kept_var_idx if k < len(names)]
    if len(used) + len(model.inputs) != len(lowered.module_kept_var_idx):
        raise ValueError("an input is not used")
    return text, used


def weight_range(name, tensor):
    """The range that the elements of a weight are drawn from; whole numbers are positions."""
    if tensor.dtype == torch.int64:
        return 0, 50
    return (0.8, 1.2) if "norm" in name.lower() and name.endswith("weight") else (-0.2, 0.2)


def filled(model, used):
    """Arrays for the parameters of the text, which the model takes, too, and their ranges."""
    state = model.state_dict()
    ranges = [weight_range(name, state[name]) for name in used] + model.ranges
    arrays, tensors = [], [state[name] for name in used] + model.inputs
    for number, (tensor, (lo, hi)) in enumerate(zip(tensors, ranges)):
        x = lo + (hi - lo) * hashed(number, tensor.numel())
        if tensor.dtype == torch.int64:
            x = np.floor(x).astype(np.int32)
        x = x.astype(np.int32 if tensor.dtype == torch.int64 else np.float32).reshape(tensor.shape)
        tensor.copy_(torch.from_numpy(x))
        arrays.append(x)
    return arrays, ranges


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-small", action="store_true", help="small widths, to execute")
    parser.add_argument("-tilewright", help="compare with this program")
    parser.add_argument("-record", help="write some of PyTorch's results")
    parser.add_argument("folder")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    recorded, worst = {}, 0.0
    for name, definition in MODELS.items():
        torch.manual_seed(0)
        model = definition(options.small).eval()
        text, used = exported(model)
        write(options.folder, f"{name}.forward.mlir", text)
        if not options.tilewright and not options.record:
            continue
        arrays, ranges = filled(model, used)
        with torch.no_grad():
            want = model(*model.inputs).numpy()
        recorded[f"{name}.forward"] = {"inputs": ranges, "outputs": [kept(want)]}
        if options.tilewright:
            off = difference(executed(options.tilewright, text, arrays, 1)[0], want)
            worst = max(worst, off)
            print(f"{name}: {len(arrays)} inputs, largest difference {off:.2g}" + (" WRONG" if off > ALLOWED else ""))
    if options.record:
        record(options.record, recorded)
    sys.exit(worst > ALLOWED)


if __name__ == "__main__":
    main()
