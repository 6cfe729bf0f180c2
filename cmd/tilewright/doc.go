// Command tilewright tunes block tilings of fused tensor computations.
//
//	show FILE        indexing maps, symbolic tiles, constraints; or why not
//	simplify EXPR    normal form, range, and the rules that fired
//	rank FILE        the cost model's order, with the terms that make it
//	tune PATH…       measure, keep winners, report
//	run FILE         execute one plan; NumPy files in and out
//	lookup FILE      the compiler's question: exit 0 known, 3 not
//	serve            the same question from other programs, as lines of JSON
//	cache …          ls, show, verify, merge, export, import, publish, rm
//	report           self-contained HTML page from the cache
//	replay TABLE…    search recorded spaces: how near to the best, how soon
//	layout SHAPE     tiled layouts, pack and unpack, access patterns; pictures
//	devices          what each backend sees, and why one is missing
//	calibrate        measure the rates of the device once, for all commands
//	doctor           check a device from end to end
//	completion SHELL what makes bash, zsh or fish complete commands and flags
//	man              the manual page
//
// FILE is HLO or StableHLO text; the first token tells which. It may be compressed by
// gzip. A module that no compiler has fused is split into fusions: see symtile/partition.
//
// Exit status: 0 ok, 1 bad input or a failure, 2 wrong usage, 3 lookup found
// nothing, 4 ended by -timeout, which every command has. Flags may stand before or
// after arguments.
//
// # Files
//
// main.go has the table of commands and the help; every command has a file of its
// own, with a variable of type command (its help and its function) and the types of
// its JSON. A new command is such a file and one name in the table. What several
// commands share lies below them:
//
//	command.go     flags, exit statuses, printing of JSON and tables
//	time_limit.go  -timeout, signals, and a new process where a kernel hangs
//	shapes.go      -shape: extents that a module leaves open
//	input.go       files, fusions, plans and sizes from the command line
//	backend.go     the device of -device; cuda*.go, with the build tag cuda, the GPU
//	tuned.go       the outcome of tuning a fusion, as JSON and as a line
//	status.go      the live line of a terminal
//
// internal/filter selects what cache ls lists, internal/line breaks text into lines,
// internal/output writes files that are replaced as a whole; package query has the
// documents about fusions, which a server and the C library print, too.
//
// A function run… parses the flags and arguments of its command, does the work and
// returns an error, which command.invoke turns into a message and an exit status:
// a usageError is 2, errMiss 3, the end of -timeout 4, any other error 1. A result is
// a struct with JSON tags and a method print for people, so that both forms have the
// same content.
//
// # JSON
//
// Every command that prints a result takes -json. Other programs may rely on the
// fields below; more may be added. Times are seconds, sizes bytes, fingerprints
// hexadecimal SHA-256. A plan is as it is stored, "8,512 threads=2": the sizes of tiles
// and knobs; "dims" beside it has the names of its dimensions, in order. Of several
// values of -shape each has a document, in their order; so has each module of a file of
// several that could be read, which begins with its name, "file": "FILE#2".
//
// show:
//
//	{"fusions": [{
//	  "name": "fused_computation.softmax", "structure": "the first fusion that differs in extents only",
//	  "source": "jit(f)/softmax at model.py:12", "config": "{…}", "attributes": "{…}",
//	  "fingerprint": "5644…", "same": "the first fusion with it, where this is another",
//	  "params": [{"name": "x", "shape": "f32[256,512]"}],
//	  "indexing": [{"param": "x", "output": 0, "maps": ["(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 255], …"],
//	                "variables": [[{"name": "d0", "role": "dimension", "lo": 0, "hi": 255}, …]]}],
//	  "space": {
//	    "dims": [{"name": "t0", "size": "s0", "role": "row", "extent": 256, "kind": "parallel", "from": "divide", "instr": "divide.11"}],
//	    "where": "always satisfied", "boxes": "always satisfied", "cpu": "all",
//	    "runtime": [{"name": "r0", "from": "i", "lo": 0, "hi": 63}]},
//	  "tiles": [{"instr": "x", "op": "parameter", "offset": ["t0 * s0", …], "size": […], "stride": […], "lower": […], "bound": […]}],
//	  "tilings": 9000,
//	  "untileable": null,
//	  "program": "…"}],
//	 "outside": [{"instr": "while.2", "op": "while", "reason": "control flow is not part of a tile program"}]}
//
// tilings is a lower bound with "moreTilings": true, where 63 bits do not count them.
// maps are in XLA's syntax: d dimensions of the result, s ranges, rt run-time
// values; role is the name by which plans are printed; notes, by the number of the map, say where run-time values are read,
// or why a map is unknown. kind is parallel or sequential; from is the operation, instr the
// instruction, that brought the dimension. A tile's element i of a dimension is
// index offset + i·stride, there when lower ≤ index < bound. With -tiling sizes
// are integers, with -at everything is. A dimension that is not a run has its
// digits, outermost first, under "digits" by its number, and stride 0; tilings
// that satisfy boxes have none, and cpu says whether that backend runs "all"
// tilings or "boxes" only. runtime are variables of offsets whose value is that
// of a scalar when a tile program runs, clamped. When a fusion cannot be tiled, space is
// null and untileable is {"instr", "rule", "reason"}. outside is there for
// modules that were not fused when they were read: what is in no fusion.
//
// partition: {"fusions": [{"name", "fingerprint", "runs", "unknown", "instrs",
// "apart": {"bytes", "flop", "launches"}, "price": {…}, "why": [text]}],
// "distinct", "structures": [{"name", "fusions", "distinct", "shapes", "price"}] (of fusions
// that differ in extents only), "outside", "apart": {…}, "price": {…}}; runs is for one run of the
// entry, and unknown says that a loop or branch around it counts once for want of its
// trip count; apart is every operation by itself; the sums at the end are weighted by
// runs.
//
// simplify: {"input", "form", "range": [lo, hi], "mod": [m, r], "rules": […]};
// range and mod for expressions only; mod means always ≡ r (mod m).
//
// rank: {"fusion", "source", "device", "legal", "tilings", "moreTilings", "legalPlans", "morePlans", "proven", "dims", "plans": [{"plan", "seconds",
// "terms": [{"name", "seconds"}], "features": {…}}], "defaultError"}, cheapest first;
// terms add up to seconds; the features are those of package cost. With -problems, a line
// for each problem: docs/formats.md, which also has the device sheets of devices -sheet.
//
// tune, a summary: {"device", "fusions": [{"file", "fusion", "source", "otherSources", "plan", "dims",
// "seconds", "default", "speedup": [median, low, high], "regret", "ties", "tried", "legal", "tilings", "moreTilings", "legalPlans", "morePlans", "proven", "like",
// "structure", "shape", "copies", "uses", "state", "predicted", "provisional", "unkept", "hit", "untimed", "notChecked", "defaultError", "refused",
// "error"}], "model": {"seconds", "speedup", "like", "structures", "tunedStructures", "parts": {STATE: {"fusions", "uses",
// "share"}}, "outside": {OPERATION: instructions}}, "mean"}, each distinct fusion once.
// speedup, here and in other commands, is the median of default over winner in the same blocks of the race with
// its 95 % interval (high 0: unknown), and seconds the median of all runs of a plan: the ratio of two is another number; regret bounds winner over the best tried, less 1,
// at 95 % (-1: unknown); legal counts the plans that are offered, tilings the
// legal tilings, each a plan without knobs (with moreTilings there are at least so many), of which there may be more than plans that are offered. legalPlans
// are the tilings with the settings of knobs that are worth a try (absent: not counted; with morePlans at least so many), and proven
// how many of the plans offered, the first ones by the backend's price, are the cheapest of these.
// source, here and in other commands, is the operation and the line of the user's program that the fusion comes from;
// otherSources are those of fusions that are alike, the first eight together; run says "from", where source is the kernel's;
// structure is the first fusion that differs in extents only, shape that of the first result, copies the fusions that are alike;
// uses counts the executions in one run of the modules; state is waiting (not
// reached or, with notChecked as the reason, begun without a check that ended in time), refused, failed, checked (provisional, not raced), unfinished (provisional, raced so far), tuned or known; model sums up the
// shares of the model's time by state, and "outside" of the fusions.
// untimed says that the device cannot time: seconds and speedup are predictions;
// mean is the geometric one of the speedups of several fusions that were timed.
// defaultError, here and in other commands, is how the default plan failed its check,
// which makes the exit status 1 but for lookup.
// -trace writes one event a line: see package tuner, Trace.
//
// lookup: {"found", "fusion", "source", "fingerprint", "device", "plan", "dims",
// "seconds", "default", "speedup", "regret", "ties", "checked", "untimed", "provisional", "like", "defaultError", "safe"}; safe lists how the
// machine differs from the one measured on in ways that keep the plan valid; like, here and of tune, is the fusion, different in
// extents only, whose winner was raced beside the default, and nothing else.
//
// show -ptx: {"fusion", "target", "plan", "dims", "ptx"}.
//
// show -threads: {"fusion", "target", "plan", "dims", "threads": [{"array", "kind",
// "bytes", "map", "requests", "sectors", "fewest"}], "svg"}, a line for each load and
// store of global memory; kind is load or store, map goes from block, thread and loops to
// the first byte, and the numbers are of warp 0 of the middle block.
//
// run: {"fusion", "from", "device", "plan", "dims", "times", "checked", "allowed", "outputs",
// "notes", "source", "untimed", "counters"}; times has one entry a run; checked says that the result agrees with
// the reference interpreter within allowed times its largest element.
//
// cache ls: {"records": [{"fingerprint", "name", "source", "otherSources", "device", "codegen", "plan",
// "dims", "seconds", "speedup", "regret", "when", "untimed", "provisional"}]}; cache show: {"records":
// […]} as package cache's Record, with dims; verify: {"records", "ok"}; merge and import: {"records",
// "kept"}; export writes a Record a line.
//
// layout: {"shape", "physical": [extents], "elements", "padding", "bytes",
// "steps": [text], "map", "inverse", "element": {"index", "physical",
// "position", "bit"}, "pack": {"op", "packed", "steps", "toPacked", "toSource",
// "roundTrip", "judgement": {"operand", "visits", "packing", "waste": {"lines",
// "pages", "conflicts"}, "left": {…}, "breakEven", "pays", "why"},
// "measured": {"device", "inPlace", "packed", "packing", "ratio": [median, low, high], "pairs", "paysFrom"}}, "access":
// {"map", "vector", "proof", "whyNoMore", "coalescing": [{"vector", "warps",
// "requests", "bytes", "sectors", "fewest", "once", "lines", "wasted", "mean",
// "worst": {"block", "warp", "sectors", "fewest"}}], "parts": [{"fixed",
// "vector", "masked", "map"}]}, "svg", "out"}.
// Parts that were not asked for are left out. element.index is null in padding;
// breakEven counts visits, 0 is never; coalescing is by single elements, then by
// the widest vectors; once counts a sector once a warp; fixed names the
// variables of a part with one value, which its map leaves out.
//
// cache verify -remeasure prints a document for each record: {"fusion", "plan",
// "claimed", "measured", "refuted", "visit", "error"}.
//
// devices: {"devices": [{"name", "about", "device", "revision", "safe",
// "lanes", "flops", "levels": [{"name", "bytes", "shared", "bandwidth"}],
// "calibration", "missing"}]}; a backend that is not there has missing, the reason.
// calibration is where stored rates come from: {"when", "by", "quick", "busy",
// "spread" of the flops and of each level, "mismeasured"}. calibrate prints the
// document of its device.
package main
