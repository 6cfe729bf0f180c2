// Package tilewright documents how the packages of this module fit together; it
// has no code of its own. Tilewright finds the block tiling of a fused tensor
// computation that runs fastest on a device, and keeps it where a compiler can look
// it up in well under a microsecond.
//
// # Five nouns
//
//	Expr    an integer expression, always in normal form        symtile/index
//	Map     an indexing map: expressions over dimensions, with
//	        the domain on which they are defined                symtile/index
//	Tile    offset, size, stride and bounds for each dimension
//	        of a tensor                                         symtile
//	Plan    tile sizes and the launch parameters (knobs) that
//	        go with them                                        kernels
//	Winner  the plan that was kept, with the evidence for it    tuner, cache
//
// # From text to a winner
//
//	hlo.Parse           HLO or StableHLO text → Module        symtile/hlo
//	partition.Module    an unfused module → fusions           symtile/partition
//	tuner.Lookup        is there a winner already?            tuner, cache
//	symtile.Analyze     fusion → Program with symbolic tile
//	                    sizes, or *Untileable                 symtile
//	Backend.Plans       Program → legal plans                 kernels, kernels/cpu,
//	                                                          kernels/gpu
//	cost.Model.Rank     plans → plans by predicted time       cost
//	Backend.Compile     plan → Kernel                         kernels
//	check.Verifier      the kernel's results are compared
//	                    with the reference interpreter        kernels/check,
//	                                                          kernels/reference
//	tuner.Tuner.Tune    all of the above, and a race of the
//	                    best plans against each other         tuner
//	cache.DB.Publish    winners → snapshot                    cache
//
// Whatever can take long takes a context, and returns its cause soon after it ended.
//
// Data flow down this list, and so do imports: symtile/index knows nothing of HLO,
// symtile nothing of backends, cost names no backend, and cache knows only strings
// and bytes. A test compares the imports with a table.
//
// # A program
//
// The following program tunes the fusions of a module and asks for the winners as a
// compiler would. Error handling is left out; the example of this package is the
// same program with it.
//
//	src, _ := os.ReadFile("module.hlo")
//	module, _ := hlo.Parse("module.hlo", src)
//	split, _ := partition.Module(ctx, module, partition.Options{}) // unless it is fused already
//	module = split.Module
//
//	db := cache.Open("winners.db")
//	t := &tuner.Tuner{Backend: cpu.New(), Cache: db}
//	for _, fusion := range module.Fusions() {
//		t.Tune(ctx, fusion)
//	}
//	db.Publish("winners.snapshot")
//
//	// In the compiler, which links no backend:
//	snapshot, _ := tuner.OpenSnapshot("winners.snapshot")
//	id, _ := kernels.ParseIdentity(text) // or kernels.IdentityOf(backend)
//	winner, found, _ := snapshot.Lookup(fusion, id)
//	if found {
//		emit(winner.Plan.Tiles, winner.Plan.Knobs)
//	}
//
// # Where to go on
//
//	symtile/index    expressions, maps, constraints by themselves
//	symtile          tiles of a fusion, symbolic and concrete
//	symtile/layout   tiled memory layouts, pack and unpack
//	kernels          the interfaces of a backend; its example is a whole backend
//	cost             ranking, fitting and judging of predicted times
//	tuner            tuning and looking up, errors and events
//	cache            the database and the snapshots
//	cmd/tilewright   the commands and their JSON
//
// docs/design.md has the decisions, CONTRIBUTING.md the places that a change
// touches.
package tilewright
