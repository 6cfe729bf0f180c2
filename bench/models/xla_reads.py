"""XLA as the judge of `tilewright partition -o`: does it read what is written, and
does it mean the same?

python xla_reads.py [-tilewright PROGRAM] [-run] [PATH…]

Each module (.hlo, .mlir, either compressed; the cases of a .txt of the tests; by
default those of bench/models/small, testdata and symtile/hlo/testdata) is written
by `tilewright partition -o` and read by XLA's parser of HLO, which verifies
shapes, too. -run compiles the module as it was and as it was written with XLA:CPU
and compares the outputs on random inputs.
"""

import argparse
import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile

from jaxlib import _hlo

DEFAULT = [
    "bench/models/small/*.hlo.gz", "bench/models/small/*.mlir.gz", "testdata/hlo/*.hlo",
    "testdata/stablehlo/*.*", "symtile/hlo/testdata/forms.txt", "symtile/hlo/testdata/stablehlo_pairs.txt",
]
# Operations that are here and not in XLA, which expands them.
OURS = re.compile(r" (erf-inv|lgamma|digamma|next-after)\(")
# The relative difference that is allowed with -run: sums in another order.
ALLOWED = 1e-4


def modules(path):
    """Names and texts of the modules of a file."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        text = file.read()
    if not path.endswith(".txt"):
        return [(path, text)]
    found = re.findall(r"^(?:parse|pair)\n(.*?)\n----", text, re.M | re.S)
    return [(f"{path}#{k}", m.split("\n=>\n")[0]) for k, m in enumerate(found)]


def written(program, text, folder):
    """What partition -o makes of a text; None and the reason if it refuses it."""
    before, after = os.path.join(folder, "before"), os.path.join(folder, "after.hlo")
    with open(before, "w") as file:
        file.write(text)
    done = subprocess.run([program, "partition", "-f", "-o", after, before], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip()
    with open(after) as file:
        return file.read(), ""


def compared(text, fused):
    """The largest relative difference of the outputs of two texts in XLA."""
    import numpy as np

    import rival
    from compare import difference

    with tempfile.TemporaryDirectory() as folder:
        outputs = []
        for k, t in enumerate([text, fused]):
            file = os.path.join(folder, str(k))
            with open(file, "w") as f:
                f.write(t)
            p = rival.Program(file)
            arrays = p.loaded.execute_sharded(p.inputs).disassemble_into_single_device_arrays()
            outputs.append([np.asarray(x[0]) for x in arrays])
    return max([difference(a, b) for a, b in zip(*outputs, strict=True)], default=0.0)


def judge(program, text, folder, run):
    """One word on a module, and what there is to say."""
    fused, why = written(program, text, folder)
    if fused is None:
        return "refused here", why.splitlines()[0]
    if OURS.search(fused):
        return "ours", "it has an operation that XLA's HLO lacks"
    try:
        _hlo.hlo_module_from_text(fused)
    except Exception as e:
        return "REFUSED BY XLA", str(e)[:400]
    if not run:
        return "read", ""
    try:
        off = compared(text, fused)
    except Exception as e:
        return "not executed", str(e).splitlines()[0][:200]
    return ("WRONG" if off > ALLOWED else "same"), f"{off:.2g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", default="out/tilewright")
    parser.add_argument("-run", action="store_true")
    parser.add_argument("path", nargs="*")
    options = parser.parse_args()
    counts = {}
    paths = options.path or sorted(f for pattern in DEFAULT for f in glob.glob(pattern))
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            for name, text in modules(path):
                word, said = judge(options.tilewright, text, folder, options.run)
                counts[word] = counts.get(word, 0) + 1
                if word not in ("read", "same"):
                    print(f"{name}: {word}: {said}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in sorted(counts.items())))
    sys.exit("REFUSED BY XLA" in counts or "WRONG" in counts)


if __name__ == "__main__":
    main()
