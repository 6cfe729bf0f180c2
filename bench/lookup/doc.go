// Command lookup measures lookups in snapshots of 10³, 10⁵ and 10⁶ records, from Go, C
// (tilewright_snapshot.h and libtilewright) and Python, beside the goals: `make
// bench-lookup` prints its table.
//
//	lookup [-records 1000,100000]      the table
//	lookup -make FOLDER -records 1000  a database, its snapshot, fingerprints, and what Go
//	                                   answers to them: for tests of other readers
//
// # What is measured
//
// A time of a lookup is the least and the median of 300 batches of 1,000 lookups. The
// batches are short, so that on a machine that others use some of them run alone: the
// least is what the code takes, and the median says how busy the machine was.
//
//	one key again and again   the record stays in the first cache
//	keys in random order      every record once; at 10⁶ none of them is in a cache, and
//	                          what is measured is an access to memory, with the walk
//	                          through the page table that goes before it
//	nearest                   fusions that are not stored, of stored structures
//	fingerprint, predicted    of the fusions of testdata/hlo, each called many times: the
//	                          one that nine tenths are faster than
//	serve: a hit              a request by fingerprint and its response over a Unix socket,
//	                          for a thousand keys in turns: those of a database are
//	                          remembered after the first time
//	open, first lookup        what a process pays that asks once
//	import                    10⁵ records of keys in random order, in one transaction
//	merge                     all records of a database into an empty one
//	publish                   in a process of its own: its time, the most memory that it
//	                          had, mapped pages of the database included, and the sizes
//	                          of the files
//
// Readers in C and Python are built and run as processes of their own, which time
// themselves. One that cannot be built or run is left out, and named on the standard
// error; the library and Python are left out where -library does not say where the
// library is.
//
// # Records
//
// They are made from their number: 16 structures of four arrays each, random extents,
// and a race of two plans with eight samples each.
package main
