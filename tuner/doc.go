// Package tuner finds, keeps and looks up the best plan of a fusion on a
// device.
//
// # Looking up
//
// A compiler asks for the winner of a fusion in its hot path. The question
// needs a parsed fusion, the identity of a device and what was stored; it needs
// no backend, and it never compiles, runs or writes anything:
//
//	Key        (fusion, identity) → cache.Key
//	Lookup     (database, fusion, identity) → Result
//	Snapshot   a published file of winners, mapped: Lookup, and Get for a compiler
//	           that keeps keys, which allocates nothing
//
// With a backend every fusion that has tiles gets an Answer: its winner, the nearest
// one whose plan is legal for it, or the backend's default plan, and its Basis says
// which (Snapshot.Answer, AnswerFrom).
//
// An identity (kernels.Identity) is a few strings. A Backend reports its own,
// and kernels.ParseIdentity reads one that was written down, for a device that
// is not there.
//
// A winner is found by its exact context: the canonical form of the fusion, the
// device, the backend and the revision of its code generator. A winner that was
// measured in another safe context, for instance under another driver, is still
// found; the result then lists what differs.
//
// # Tuning
//
// Tuner.Tune answers like Lookup where it can, and otherwise measures:
//
//	symtile.Analyze     the tile program of the fusion, or why there is none
//	Backend.Plans       the legal plans
//	cost.Model.Rank     the plans by predicted time
//	proposals           the default plan, the cheapest plans, and then, one at a
//	                    time, what a search proposes from the times of those before;
//	                    then the neighbourhood of the fastest, while there is time
//	verification        every candidate is compiled and compared with the
//	                    reference interpreter before it is timed
//	race                the candidates that are right are timed in blocks
//	cache.DB.Put        the winner is stored with every sample
//
// A race is a randomised block design: in each block every remaining candidate
// is timed once, in shuffled order, and only samples of one block are compared,
// as ratios, so that a slow drift of the machine cancels. The first sample of each is
// in no block, since it is seconds from those of others. A candidate is dropped
// when the 99 % interval of its ratio to the best lies above 1. The winner is
// the best candidate, or of those that cannot be told from it the default or else the
// one of the lowest price, provided that it beats the default plan by
// Options.Margin with 95 % confidence; otherwise the default plan is kept.
//
// The regret of a record is a claim against every plan that ran, dropped ones too: their
// comparisons are completed after the race. certificate.go has the intervals and why they
// hold together; cache.Certificate is what is stored of them. A race ends after 40 blocks,
// or with Options.Regret when that is reached or the budget is spent: a larger budget
// buys a smaller regret only there, and the certificate says which end it was.
//
// What is timed is compared again with what was verified (check.Witness): the first
// sample of every candidate, one in four of the others, and after the last block one
// more of every finalist. The winner and the default are then run until 90 of their
// runs have been compared, or an eighth of the budget is spent. A plan whose results
// change is recorded as a wrong one, and candidates that it drove out come back.
//
// A device that cannot time kernels, a simulator, has its candidates verified in
// the order of their predicted times, and the record says that nothing was
// timed.
//
// # A whole model
//
// A Workload is the distinct fusions of modules, with how often each is used. A
// Schedule tunes them within one time: it prices all, checks all by their default
// plans, and divides what is left by the expected gain. It visits a
// fusion again after others, half a minute later. No fusion stops the others,
// whether it is refused, fails, or panics.
//
// # Interruption
//
// When the context of Tune ends, the samples that were taken are kept in the
// database, and a later Tune of the same fusion adds blocks to them. The best plan
// by then is stored as a provisional winner: lookups find it, and a Tune races on.
//
// # Errors
//
// The errors of this package fall into three groups, which errors.Is and
// errors.As tell apart; errors.go lists them. An error of the fusion
// (*symtile.Untileable) is permanent. An error of the plans (*NoWinnerError)
// says that no candidate was right and ran, with the reason of each; a *TooSlowError
// that the budget has no room for a run. An error of
// the database (cache.ErrForeign, cache.ErrNewer and others) leaves what is stored
// as it was; one that is busy or damaged in part does not end a race. The error of a context that ended is passed on as it is.
//
// # Events
//
// Options.Observe receives every step of a tuning run as a typed Event. Trace
// writes them as lines of JSON.
package tuner
