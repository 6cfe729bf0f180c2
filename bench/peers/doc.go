// Command peers measures tuned plans of the CPU backend against what people would use
// instead: OpenBLAS, MKL, oneDNN, XLA:CPU, PyTorch with and without its compiler, and
// against the rate of the memory. `make bench-peers` installs them (the script install)
// and runs it. Each is a process of its own (see drivers/protocol.h).
//
// # Method
//
// A case is a fusion of one shape. Its competitors are
//
//	tuned      the plan that the tuner finds, and
//	default    the plan without tuning, if that is another;
//	openblas,  the same operation in another library (see drivers), whose outputs have
//	…          to agree with those of the tuned plan before it is timed;
//	copy,      a program that only moves the bytes of the case, by stores past the
//	copy_cached, caches and by ordinary ones, or only reads them, at four places in turn
//	read, read_in_order  and in order: the roof of a fusion that is bound by memory;
//	small,     the tuned plan on as many rows as stay in the first cache, and on
//	double     twice as many: their difference is the time of the code alone.
//
// The competitors take turns in rounds, in shuffled order, and the process of a
// library is suspended while it has no turn. All run on the same processors in a round, on
// other ones in the next, where they use fewer than there are. Only samples of one round are compared,
// as ratios, so that whatever else the machine does affects all sides. The result is
// the median ratio with a distribution-free interval of 95 %, and beside it the ratio
// of the fastest samples, which may come from different rounds. A library of which a
// run takes over two seconds and ten times as long as the tuned plan has one turn, and its
// ratio no interval.
//
// All arrays are used in several sets, in turn, that are together twice as large as
// the last cache: inputs come from memory, as they do in a model.
//
// Memory is on large pages on both sides, and what a library frees is kept for what it
// allocates next, so that no side is timed while new pages are touched.
//
// With -exhaustive every plan of a few small fusions is timed instead. It shows how
// far the tuner, within its normal budget, stays from the best plan that there is.
//
// The fusions of models are in the folder fusions; -pick bench/models/corpus chooses them
// again: those of the most bytes or operations, times their runs in all models, of those
// that are not too large to be measured in many turns. PyTorch runs them by the operations
// of their HLO (drivers/hlo.py).
//
// TVM MetaSchedule tunes a case for as long as the tuner took, and gives its fastest candidate.
// The clock stands while Python loads it (half a minute of parsing that happens once).
//
// # Files
//
// The samples are kept as text, a file a processor in the folder results, and all tables
// are made from that text alone (-render). A line is a fact with fields separated by tabs;
// the first is its kind:
//
//	machine    the processor
//	driver     name, version; no version for a driver that was not there
//	case       family, shape, threads, bytes, load average, revision of the backend
//	tuning     number of plans, seconds to compile, rows of small
//	plan       tuned or default, plan
//	note       competitor, why it has no samples
//	times      competitor, seconds a run of every round
//	landscape  all or sample, the shortest time of every plan
//	spent      seconds of tuning, in an exhaustive search
//
// The lines behind a case line belong to the case. The file is written after every case,
// and a case that it has with the present revision is not measured again: a run that was
// stopped, or that -for has ended, goes on with the next one.
package main
