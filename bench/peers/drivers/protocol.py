"""The protocol of drivers in Python: what protocol.h says, and before `open` `text FILE`,
which names the HLO of the case, and for a driver that tunes `spend SECONDS`.

A driver is an object with version(), prepare(op, dims, text, sets) that returns the
number of inputs, load(k, bytes), check() that returns the outputs as bytes, and run(set),
which returns when the outputs are there. What cannot be done is an exception; Missing
says that there is no such operation.
"""

import os
import statistics
import sys
import time

MAX_RUNS = 1000


class Missing(Exception):
    def __init__(self):
        super().__init__("not an operation of this driver")


def pin():
    """Leaves the process as many processors as it is to have threads, and returns that."""
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    return threads


class Session:
    def __init__(self, driver):
        self.driver, self.text, self.sets, self.next = driver, "", 0, 0

    def answer(self, line):
        word, _, rest = line.partition(" ")
        return getattr(self, "do_" + word)(rest)

    def do_hello(self, _):
        return "version " + self.driver.version()

    def do_text(self, file):
        with open(file) as f:
            self.text = f.read()
        return "ok"

    def do_spend(self, rest):
        self.driver.spend(float(rest))
        return "ok"

    def do_open(self, rest):
        op, sets, *dims = rest.split()
        self.do_close("")
        inputs = self.driver.prepare(op, [int(d) for d in dims], self.text, int(sets))
        self.sets, self.next = int(sets), 0
        return f"ok {inputs}"

    def do_load(self, rest):
        k, _, file = rest.partition(" ")
        with open(file, "rb") as f:
            self.driver.load(int(k), f.read())
        return "ok"

    def do_check(self, file):
        with open(file, "wb") as f:
            f.write(self.driver.check())
        return "ok"

    def turn(self):
        start = time.perf_counter()
        self.driver.run(self.next)
        seconds = time.perf_counter() - start
        self.next = (self.next + 1) % self.sets
        return seconds

    def do_time(self, rest):
        runs = int(rest)
        if not 1 <= runs <= MAX_RUNS:
            raise ValueError(f"between 1 and {MAX_RUNS} runs are timed")
        if runs > 1:
            self.turn()  # wakes threads
        return f"seconds {statistics.median(self.turn() for _ in range(runs)):.9g}"

    def do_close(self, _):
        if self.sets:
            self.driver.finish()
        self.sets = 0
        return "ok"


def serve(driver):
    """Answers the standard input. What a library prints goes to the standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session(driver)
    for line in sys.stdin:
        try:
            answer = session.answer(line.rstrip("\n"))
        except Exception as e:  # whatever the library says is the answer
            kind = "" if isinstance(e, Missing) else type(e).__name__ + ": "
            answer = "error " + " ".join((kind + str(e)).split())[:300]
        print(answer, file=out, flush=True)
