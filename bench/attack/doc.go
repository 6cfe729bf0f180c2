//go:build unix

// Attack tries to make the program lose data, give a wrong answer, or not end, and
// prints how often it did. It is not part of the program; `make attack` runs it with
// the counts that docs/performance.md quotes, `.ci/run` with small ones.
//
//	kills      kill -9 at random moments of `tune`: what its trace reports is
//	           stored, nothing is left over, and the next run goes on
//	flips      bits of a database: every answer is the stored one, an older one
//	           that verify warns of, or an error, and writing loses nothing more
//	snapshots  bits of a snapshot: the stored answer or a miss
//	mutants    texts with small errors through parse, partition, analysis, plans
//	           and rank: no panic, 10 s of processor time or 1 GB at most
//	disks      outputs that are full, limited or cannot be written
//	locks      a database that another process holds
//	garbage    files that are nothing, of every command: an error, and no trace
//	limits     texts of sizes that algorithms which follow every path do not end
//	           with, of show, rank and tune; what each took is in limits.txt
//	readers    64 goroutines that read beside 2 tuners and a publisher
//	faults     kernels with a fault in a race (TestInjectedFaults of package tuner)
//
// # What counts as harm
//
// A flip does harm when an answer is neither the stored one nor an error while
// verify has nothing to say, when an answer was never stored at all, or when the
// next write loses an entry that could be read before it. That a flip makes a file
// unreadable as a whole is none: it is noticed, and a copy can be restored.
//
// A kill does harm when a line of the trace is about a candidate that is not stored,
// when there are fewer samples than the lines tell of, when verify finds something,
// when the run after the kills fails or has fewer samples, or when it leaves a
// hidden file beside the database.
//
// A mutant does harm by a panic, or by more time or memory than stated above. It is
// tried in a process of its own kind, 500 to a process, which ends itself when a
// limit is passed; the parent notes that and goes on with the next mutant.
//
// A command does harm when it crashes, runs for a minute, has more than 1 GB of
// resident memory, ends with a status other than 0, 1, 2 and 3, or fails without a
// word. After each command every record of the database must be as it was.
//
// # Reading the table
//
// A row has the number of cases, how many of them did harm, the wall time and what
// happened to the others. Below the table is a line for each harm, of at most 2,000
// bytes. The exit status is 1 if there is any. Counts of what did no harm depend on
// the machine: a kill that comes before the race begins has nothing to lose, and a
// reader makes as many reads as it can.
//
// # Repeating one
//
// A mutant of number n is the one of number n in every run with the same seed and
// the same texts; the worker of `-worker n:n+1` tries it alone. A damaged file of
// number n needs those before it. Kills depend on the clock and cannot be repeated:
// what is said of them has to be enough.
//
// Every attack is determined by -seed, apart from times. What was found is described
// below the table; mutants are saved in the folder of -keep.
package main
