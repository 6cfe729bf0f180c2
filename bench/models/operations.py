"""Small programs of one or a few operations: the default plans beside XLA:CPU.

python operations.py [-tilewright PROGRAM] [-old PROGRAM] [-rounds 2] [-runs 15] [-o FILE] [PATTERN …]
python operations.py -check [-tilewright PROGRAM] [PATTERN …]

The programs are those of operation_programs.py whose name or kind matches a pattern. Times
are the least of the runs of all rounds, by the same threads, in turns; inputs are random
numbers, which each side makes for itself. FILE gets a line a program: its name, and
microseconds by PROGRAM, by the other PROGRAM where one is given, and by XLA:CPU. With
-check nothing is timed: the outputs are compared with those of jax.jit, number by number.
"""

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# XLA leaves out conversions to a narrow type and back unless told not to.
os.environ.setdefault("XLA_FLAGS", "--xla_allow_excess_precision=false")

import jax
import numpy as np

import rival
from compare import difference, executed
from operation_programs import PROGRAMS, argument

# Relative to the largest element of an output: a few steps of the narrowest type in the program.
# Rounding to whole numbers may go the other way.
ALLOWED = {"int8": 8e-3, "bf16": 2e-2, "f16": 3e-3, "e4m3": 0.2, "e5m2": 0.3}
# XLA:CPU adds a million numbers of bf16 in bf16, and loses half of the sum.
UNLIKE = {"sum_bf16"}


def text(name):
    """The StableHLO of a program, with 64-bit types only where its name or arguments have them."""
    program = PROGRAMS[name]
    jax.config.update("jax_enable_x64", bool(re.search("[fs]64|c128", " ".join((name, *program.shapes)))))
    return jax.jit(program.function, keep_unused=True).lower(*map(argument, program.shapes)).as_text()


def seconds(tilewright, file, runs):
    """The least time of the default plan; infinite where it fails."""
    command = [tilewright, "run", "-json", "-check=false", "-repeat", str(runs), file]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{file}: {done.stderr.strip()[:200]}", file=sys.stderr)
        return math.inf
    return min(json.loads(done.stdout)["times"])


def timed(programs, file, options):
    """The least seconds by each program and by XLA:CPU."""
    other = rival.Program(file)
    other.run()
    best = [math.inf] * (len(programs) + 1)
    for _ in range(options.rounds):
        for k, program in enumerate(programs):
            best[k] = min(best[k], seconds(program, file, options.runs))
        best[-1] = min(best[-1], *(other.run() for _ in range(options.runs)))
    return best


def mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def summary(rows):
    """Ratios of our time to XLA:CPU's, a line a kind, and the slowest programs."""
    kinds = collections.defaultdict(list)
    for name, (ours, *_, xla) in rows.items():
        kinds[PROGRAMS[name].kind].append(ours / xla)
    kinds["all"] = [r for ratios in kinds.values() for r in ratios]
    print("| kind | programs | our time over XLA's | over 1.1 | over 2 | over 5 | most |\n| --- | --- | --- | --- | --- | --- | --- |")
    for kind, ratios in kinds.items():
        over = (str(sum(r > limit for r in ratios)) for limit in (1.1, 2, 5))
        print(f"| {kind} | {len(ratios)} | {mean(ratios):.2f} | {' | '.join(over)} | {max(ratios):.1f} |")
    slow = sorted(((ours / xla, name) for name, (ours, *_, xla) in rows.items()), reverse=True)
    print("\nslowest:", ", ".join(f"{name} {ratio:.1f}" for ratio, name in slow[:40] if ratio > 1.1))


def compared(tilewright, name):
    """The largest difference from jax.jit, and what is allowed."""
    module, program = text(name), PROGRAMS[name]
    arrays = [random(s, k) for k, s in enumerate(program.shapes)]
    want = [np.asarray(x) for x in jax.tree.leaves(jax.jit(program.function)(*arrays))]
    got = executed(tilewright, module, arrays, len(want))
    kinds = [s.partition(":")[2] for s in program.shapes] + [str(w.dtype) for w in want]
    allowed = max([2e-4] + [ALLOWED[k] for k in ALLOWED if any(k in word for word in (short(x) for x in kinds))])
    return max(difference(*parts(g, w)) for g, w in zip(got, want)), allowed


def short(kind):
    return {"bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}.get(kind, kind)


def parts(got, want):
    """Numbers to be compared: types of ml_dtypes by their bits, complex numbers as pairs."""
    if want.dtype.kind == "V" or want.dtype.itemsize == 1 and want.dtype.kind == "f":
        got = got.view(want.dtype)
    if np.iscomplexobj(want):
        return np.stack([got.real, got.imag]), np.stack([want.real, want.imag])
    return got, want


def random(shape, seed):
    """Numbers of both signs whose sum is not near 0; whole ones index an array."""
    spec = argument(shape)
    generator = np.random.default_rng(seed)
    if np.dtype(spec.dtype).kind in "iub":
        return generator.integers(0, 2 if spec.dtype == bool else 60, spec.shape).astype(spec.dtype)
    x = generator.standard_normal(spec.shape) + 0.5
    return (x + 1j * generator.standard_normal(spec.shape) if np.dtype(spec.dtype).kind == "c" else x).astype(spec.dtype)


def check(options, names):
    """Prints what differs; the number of programs that do."""
    bad = 0
    for name in [n for n in names if n not in UNLIKE]:
        try:
            off, allowed = compared(options.tilewright, name)
        except subprocess.CalledProcessError:
            off, allowed = math.inf, 0
        bad += not off <= allowed
        if not off <= allowed:
            print(f"{name}: largest difference {off:.2g}, allowed {allowed:.2g}", flush=True)
    print(f"{len(names)} programs, {bad} differ")
    return bad


def race(options, names):
    rows, programs = {}, [options.tilewright] + ([options.old] if options.old else [])
    with tempfile.TemporaryDirectory() as folder, open(options.o, "w") as out:
        for name in names:
            file = os.path.join(folder, name + ".mlir")
            with open(file, "w") as f:
                f.write(text(name))
            row = timed(programs, file, options)
            print(name, *(f"{t * 1e6:.1f}" for t in row), file=out, flush=True)
            if row[0] < math.inf:
                rows[name] = row
    summary(rows)
    print(f"\n{len(names) - len(rows)} of {len(names)} programs were not run")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-tilewright", default="out/tilewright")
    parser.add_argument("-old", help="another tilewright, timed in the same turns")
    parser.add_argument("-rounds", type=int, default=2)
    parser.add_argument("-runs", type=int, default=15)
    parser.add_argument("-o", default=os.devnull, help="a file for the times")
    parser.add_argument("-check", action="store_true", help="compare outputs instead")
    parser.add_argument("pattern", nargs="*", default=["."])
    options = parser.parse_args()
    names = [n for n, p in PROGRAMS.items() if any(re.search(x, n) or x == p.kind for x in options.pattern)]
    if options.check:
        sys.exit(check(options, names) > 0)
    race(options, names)


if __name__ == "__main__":
    main()
