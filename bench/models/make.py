"""Makes the texts of the corpus: python make.py [-small] [-layers N] [NAME…] FOLDER.

For each model and each of its passes (forward, train) it writes the StableHLO
and XLA:CPU's optimised HLO, compressed. Weights are parameters; nothing is run.
"""

import argparse
import os
import sys
import time

import jax

import definitions
from jaxlib import _hlo
from texts import write


def optimised(lowered):
    """The module after XLA's optimisations, with its constants in full."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = True
    module = lowered.compile().runtime_executable().hlo_modules()[0]
    return module.to_string(options)


def programs(name, small):
    """The passes of a model: name, function, abstract arguments."""
    model = definitions.MODELS[name](small)
    yield "forward", model.forward, (model.params, *model.inputs)
    yield "train", *model.train()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-small", action="store_true", help="small widths, for run.py")
    parser.add_argument("-layers", type=int, help="layers of llama3, as StableHLO only: 32 is the whole model")
    parser.add_argument("name", nargs="*", help="models; all without")
    parser.add_argument("folder")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    definitions.LAYERS = options.layers or definitions.LAYERS
    for name in options.name or definitions.MODELS:
        for kind, function, arguments in programs(name, options.small):
            start = time.time()
            lowered = jax.jit(function, keep_unused=True).lower(*arguments)
            write(options.folder, f"{name}.{kind}.mlir", lowered.as_text())
            if not options.layers:
                write(options.folder, f"{name}.{kind}.hlo", optimised(lowered))
            print(f"{name}.{kind}: {time.time() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
