// Package cache keeps the winners and samples of tuning in a file, and publishes
// immutable snapshots of the winners for lookups. It knows strings, numbers and
// bytes; what a plan or a fusion is, its callers know (package tuner).
//
// # Database
//
// A DB is a bbolt file, named by Open. bbolt locks its file against other
// processes while it is open, so nothing here holds it: every method opens the
// file, does one transaction and closes it. Any number of tuners and readers, in
// any number of processes, can use one file.
//
//	Get, All                 read records; a missing file is an empty one
//	Put                      stores a record, unless the one that is stored has
//	                         better evidence; the samples of both are kept
//	Replace                  stores a record in any case
//	PutTrials, Trials        the samples of a race that is not over
//	KeepTrials               the same without waiting: in a journal if need be
//	Merge, Import, Export    exchange records with other files, as JSON lines
//	Verify, Damaged          find damage
//	Delete, DeleteDamaged    remove a record, or damage alone
//	Publish                  writes a snapshot
//
// The file has three buckets. meta holds the version of the schema; winners maps
// the encoding of a Key to a Record; trials maps it to the Trials of an
// unfinished race. Values are JSON behind a CRC-32C: any bbolt tool shows them to
// a person, fields can be added, and flipped bits do not go unseen. Before a file
// is read its page structure is walked, because bbolt trusts the page numbers it
// finds: no damage makes this package panic, hang or overwrite data.
//
// # Snapshot
//
// A Snapshot is a perfect hash table of keys and winning plans in a mapped file: to open
// one reads its header only, and the processes of a machine share its memory. Get and
// Nearest take no lock and allocate nothing (but once for each device, revision and
// safe context that they find); what they find is copied into the caller's Hit before
// its digest is compared. So nothing that happens to the file ends a process or changes
// an answer: a new snapshot is moved into the place of the old one, and one that is
// truncated or changed in its place is an error. The revision in its header is a digest
// of the contents, which OpenSnapshotAt demands. docs/formats.md describes the file.
//
// Nearest finds the winner of a fusion that differs in its extents, the revision of
// the code generator or the device. Fusions that differ in their extents only have one
// Structure.
//
// # Exact and safe context
//
// A Key holds everything that could make an answer wrong: the canonical fusion,
// the device, the backend and the revision of its code generator. The safe
// context of a record, such as the version of a driver, can only make its times
// out of date: SafeDiff lists what differs, and a lookup reports it.
//
// # Errors
//
// ErrBusy, ErrForeign, ErrNewer and ErrDamaged tell errors.Is what is wrong with
// a file; a *DamagedError is about one record of it. Other errors come from the
// file system.
package cache
