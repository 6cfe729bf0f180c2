// Command tilewright tunes block tilings of fused tensor computations.
//
//	show FILE        indexing maps, symbolic tiles, constraints; or why not
//	simplify EXPR    normal form, range, and the rules that fired
//	rank FILE        the cost model's order, with the terms that make it
//	tune FILE…       measure, keep winners, report
//	run FILE         execute one plan; NumPy files in and out
//	lookup FILE      the compiler's question: exit 0 known, 3 not
//	cache …          ls, show, verify, merge, export, import, publish, rm
//	report           self-contained HTML page from the cache
//	devices          what each backend sees, and why one is missing
//	bench-symbolic … time the simplifier on chains of indexing maps
//
// Exit status: 0 ok, 1 bad input or a failure, 2 wrong usage, 3 lookup found
// nothing. Flags may stand before or after arguments.
//
// # JSON
//
// Every command that prints a result takes -json. Other programs may rely on the
// fields below; more may be added. Times are seconds, sizes bytes, fingerprints
// hexadecimal SHA-256.
//
// show:
//
//	{"fusions": [{
//	  "name": "fused_computation.softmax",
//	  "fingerprint": "5644…",
//	  "params": [{"name": "x", "shape": "f32[256,512]"}],
//	  "indexing": [{"param": "x", "output": 0, "maps": ["(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 255], …"]}],
//	  "space": {
//	    "dims": [{"name": "t0", "size": "s0", "extent": 256, "kind": "parallel", "from": "divide", "instr": "divide.11"}],
//	    "where": "always satisfied"},
//	  "tiles": [{"instr": "x", "op": "parameter", "offset": ["t0 * s0", …], "size": […], "stride": […], "lower": […], "bound": […]}],
//	  "tilings": 9000,
//	  "untileable": null,
//	  "program": "…"}]}
//
// maps are in XLA's syntax: d dimensions of the result, s ranges, rt run-time
// values. kind is parallel or sequential; from is the operation, instr the
// instruction, that brought the dimension. A tile's element i of a dimension is
// index offset + i·stride, there when lower ≤ index < bound. With -tiling sizes
// are integers, with -at everything is. When a fusion cannot be tiled, space is
// null and untileable is {"instr", "rule", "reason"}.
//
// simplify: {"input", "form", "range": [lo, hi], "mod": [m, r], "rules": […]};
// range and mod for expressions only; mod means always ≡ r (mod m).
//
// rank: {"fusion", "device", "legal", "plans": [{"plan", "seconds",
// "terms": [{"name", "seconds"}], "features": {…}}]}, cheapest first; terms add
// up to seconds; the features are those of package cost.
//
// tune, a summary: {"device", "fusions": [{"file", "fusion", "plan", "seconds",
// "default", "speedup": [median, low, high], "regret", "ties", "tried", "legal",
// "hit", "refused", "error"}]}. speedup is default over winner with its 95 %
// interval (high 0: unknown); regret bounds winner over the best tried, less 1,
// at 95 % (-1: unknown); legal counts the plans there were to choose from.
// -trace writes one event a line: see package tuner, Event.
//
// lookup: {"found", "fusion", "fingerprint", "device", "plan", "seconds",
// "default", "speedup", "regret", "ties", "checked", "safe"}; safe lists how the
// machine differs from the one measured on in ways that keep the plan valid.
//
// run: {"fusion", "device", "plan", "times", "checked", "allowed", "outputs",
// "notes"}; times has one entry a run; checked says that the result agrees with
// the reference interpreter within allowed times its largest element.
//
// cache ls: {"records": [{"fingerprint", "name", "device", "codegen", "plan",
// "seconds", "speedup", "when"}]}; cache show: {"records": […]} as package
// cache's Record; verify: {"records", "ok"}; merge and import: {"records",
// "kept"}; export writes a Record a line.
//
// devices: {"devices": [{"name", "about", "device", "revision", "safe",
// "lanes", "flops", "levels": [{"name", "bytes", "shared", "bandwidth"}],
// "missing"}]}; a backend that is not there has missing, the reason.
//
// bench-symbolic: {"chains", "columns": [{"column", "median", "geomean", "most",
// "ratio", "least", "slower", "worst"}]}, nanoseconds over the chains; ratio is
// the geomean of column over extract, least the least of those, at chain worst;
// slower counts the chains where the column is not above extract.
package main
