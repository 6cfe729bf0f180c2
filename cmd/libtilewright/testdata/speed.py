"""Nanoseconds of Database.get: speed.py SNAPSHOT IDENTITY, with fingerprints on the
standard input; hot, then in turns, the least and the median of batches."""
import statistics
import sys
import time

import tilewright

prints = sys.stdin.read().split()
with tilewright.open(sys.argv[1], sys.argv[2]) as db:
    for order in "hot", "random":
        took = []
        for batch in range(100):
            some = [prints[(batch * 300 + k) % len(prints)] if order == "random" else prints[0] for k in range(300)]
            begin = time.perf_counter_ns()
            for text in some:
                if db.get(text) is None:
                    sys.exit("a record is missed")
            took.append((time.perf_counter_ns() - begin) / len(some))
        print(order, min(took), statistics.median(took))
