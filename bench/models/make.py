"""Makes the texts of the corpus: python make.py [-small] [-layers N] [NAME…] FOLDER.

For each model and each of its passes (forward, train) it writes the StableHLO
and XLA:CPU's optimised HLO, compressed. Weights are parameters; nothing is run.
"""

import argparse
import gzip
import os
import re
import sys
import sysconfig
import time

import jax

import definitions
from jaxlib import _hlo


def optimised(lowered):
    """The module after XLA's optimisations, with its constants in full."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = True
    module = lowered.compile().runtime_executable().hlo_modules()[0]
    return module.to_string(options)


def without_paths(text):
    """The text without the folders of the machine that made it."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), here):
        text = text.replace(folder + os.sep, "")
    left = re.search(r'"/[^"]*\.py"', text)
    if left:
        raise ValueError(f"a path of this machine is left: {left.group()}")
    return text


def write(folder, name, text):
    """Writes a compressed text that is the same each time."""
    with open(os.path.join(folder, name + ".gz"), "wb") as file:
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
            out.write(without_paths(text).encode())


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
