"""The oracle of whole modules: what jax.jit computes, beside `tilewright run`.

python oracle.py [-tilewright PROGRAM] [-record FILE] [NAME.PASS…]

Each small model is compiled by JAX and run on inputs that a formula makes, then
its StableHLO is executed by `tilewright run` on the same inputs; the largest
difference of each output, relative to the output's largest element, must be at
most ALLOWED. -record writes some of JAX's results for the Go test, which makes
the same inputs.
"""

import argparse
import sys

import jax
import numpy as np

import definitions
import make
from compare import ALLOWED, difference, executed, hashed, kept, record


def bounds(path, leaf):
    """The range that the elements of an argument are drawn from."""
    name = jax.tree_util.keystr(path)
    if np.issubdtype(leaf.dtype, np.integer):
        return (0, 50) if leaf.ndim > 1 else (0, 4)  # tokens and rows; labels, nodes and counts
    if ".nu" in name or "'var'" in name:
        return 0.5, 1.5
    if "scale" in name:
        return 0.8, 1.2
    return -0.2, 0.2


def arguments(abstract):
    """Arrays for the abstract arguments, and the range of each."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(abstract)
    ranges, arrays = [], []
    for number, (path, leaf) in enumerate(leaves):
        lo, hi = bounds(path, leaf)
        x = lo + (hi - lo) * hashed(number, leaf.size)
        x = np.floor(x) if np.issubdtype(leaf.dtype, np.integer) else x
        ranges.append([lo, hi])
        arrays.append(x.astype(leaf.dtype).reshape(leaf.shape))
    return ranges, arrays, jax.tree_util.tree_unflatten(tree, arrays)





def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", help="compare with this program")
    parser.add_argument("-record", help="write some of JAX's results")
    parser.add_argument("name", nargs="*")
    options = parser.parse_args()
    recorded, worst = {}, 0.0
    for name in definitions.MODELS:
        for kind, function, abstract in make.programs(name, True):
            full = f"{name}.{kind}"
            if options.name and full not in options.name:
                continue
            ranges, arrays, values = arguments(abstract)
            lowered = jax.jit(function, keep_unused=True).lower(*abstract)
            want = [np.asarray(x) for x in jax.tree_util.tree_leaves(lowered.compile()(*values))]
            finite = all(np.isfinite(np.asarray(x, np.float64)).all() for x in want)
            recorded[full] = {"inputs": ranges, "outputs": [kept(x) for x in want]}
            line = f"{full}: {len(arrays)} inputs, {len(want)} outputs{'' if finite else ', NOT FINITE'}"
            if options.tilewright:
                got = executed(options.tilewright, lowered.as_text(), arrays, len(want))
                off = max(difference(g, w) for g, w in zip(got, want))
                worst = max(worst, off)
                line += f", largest difference {off:.2g}" + (" WRONG" if off > ALLOWED else "")
            print(line, flush=True)
    if options.record:
        record(options.record, recorded)
    sys.exit(worst > ALLOWED)


if __name__ == "__main__":
    main()
