package main

import (
	"cmp"
	"fmt"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// lookupCommand asks for a winner.
var lookupCommand = command{
	name: "lookup", args: "FILE", short: "the compiler's question: which plan? exit 0 known, 3 not",
	long: `Prints the winner of a fusion on this machine's device, or exits with status 3 when none is stored.
A FILE with several fusions is answered for all of them, and - is the standard input. Many questions are
cheaper to a server: tilewright serve. Nothing is compiled, run or written. A winner measured under another driver or Go version is still an
answer; "safe" then says what differs.`,
	run: runLookup,
}

// lookupJSON is the result of lookup -json.
type lookupJSON struct {
	// Found is false where nothing is stored, and then the fields below Device
	// are empty.
	Found bool `json:"found"`
	// Name of the fusion.
	Fusion string `json:"fusion"`
	// Fingerprint of the canonical fusion, hexadecimal.
	Print string `json:"fingerprint"`
	// Stable name of the device.
	Device string `json:"device"`
	// The winner.
	Plan string `json:"plan,omitempty"`
	// Seconds is the median of the winner.
	Seconds float64 `json:"seconds,omitempty"`
	// The plan that the winner is compared with.
	Default string `json:"default,omitempty"`
	// Speedup over the default: median, lower and upper end (0: unknown).
	Speedup [3]float64 `json:"speedup"`
	// Regret bounds the winner's time over that of the best tried plan, minus
	// 1, at 95 %; −1 is unknown.
	Regret float64 `json:"regret"`
	// Ties are the plans that are statistically equal to the winner.
	Ties []string `json:"ties,omitempty"`
	// Checked says that the winner agreed with the reference.
	Checked bool `json:"checked"`
	// DefaultError is how the default plan failed its check.
	DefaultError string `json:"defaultError,omitempty"`
	// Untimed says that Seconds and Speedup are predictions of the cost model.
	Untimed bool `json:"untimed,omitempty"`
	// Provisional says that the race is not over, or that only the default plan was
	// timed.
	Provisional bool `json:"provisional,omitempty"`
	// Safe lists how the safe context of the record differs from this
	// machine's.
	Safe []string `json:"safe,omitempty"`
}

// runLookup looks the fusions of a file up by the identity of the device; nothing is
// opened for running, and nothing is measured: not even the rates of this machine, which
// devices measures. One fusion is answered by a document of its own, several by a list.
func runLookup(c *call) error {
	c.jsonFlag()
	db := c.dbFlag()
	device := c.deviceFlag()
	name := c.String("fusion", "", "the fusion of this `name`, when FILE has several")
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	m, _, err := c.readModule(args[0])
	if err != nil {
		return err
	}
	all, err := fusions(args[0], m, *name)
	if err != nil {
		return err
	}
	b, err := backend(device)
	if err != nil {
		return err
	}
	winners := cache.Open(*db)
	if len(all) != 1 {
		return c.lookupAll(winners, all, b)
	}
	j, err := lookupOne(winners, all[0], b)
	if err != nil {
		return err
	}
	if err := j.print(c); err != nil || j.Found {
		return err
	}
	return errMiss
}

// lookupModuleJSON is the result of lookup -json for a module of several fusions.
type lookupModuleJSON struct {
	// Fusions in the order of the module, each with the document that it has when it is
	// asked for alone.
	Fusions []lookupJSON `json:"fusions"`
}

// lookupAll answers for all fusions of a module, with a line or a document for each. The
// exit status is that of a miss while the winner of one is not known, so that a build
// that needs all of them can ask once.
func (c *call) lookupAll(winners *cache.DB, all []*hlo.Computation, b kernels.Backend) error {
	j := lookupModuleJSON{Fusions: []lookupJSON{}}
	var missed error
	for _, f := range all {
		one, err := lookupOne(winners, f, b)
		if err != nil {
			return err
		}
		if !one.Found {
			missed = errMiss
		}
		j.Fusions = append(j.Fusions, one)
	}
	if c.json {
		return cmp.Or(c.printJSON(j), missed)
	}
	for _, one := range j.Fusions {
		if one.Found {
			fmt.Fprintf(c.out, "%s: ", one.Fusion)
		}
		if err := one.print(c); err != nil {
			return err
		}
	}
	return missed
}

// lookupOne looks a fusion up by its fingerprint and the identity of the device. A
// database that is not there is a miss; an error is one of a damaged record or file.
func lookupOne(winners *cache.DB, fusion *hlo.Computation, b kernels.Backend) (lookupJSON, error) {
	r, found, err := tuner.Lookup(winners, fusion, kernels.IdentityOf(b))
	j := lookupJSON{
		Found:  found,
		Fusion: fusion.Name,
		Print:  fmt.Sprintf("%x", fusion.Fingerprint()),
		Device: b.Identity().Name,
	}
	if found {
		j.Plan = r.Record.Plan
		j.Seconds = r.Record.Seconds
		j.Default = r.Record.Default
		j.Speedup = r.Record.Speedup
		j.Regret = r.Record.Regret
		j.Ties = r.Record.Ties
		j.Checked = r.Record.Checked
		j.Safe = r.SafeGap
		j.Untimed = r.Record.Untimed
		j.Provisional = r.Record.Provisional
		j.DefaultError = r.Record.DefaultFailure()
	}
	return j, err
}

// print prints the plan, and the differences of the safe context as notes.
func (j lookupJSON) print(c *call) error {
	if c.json {
		return c.printJSON(j)
	}
	if !j.Found {
		fmt.Fprintf(c.err, "%s: nothing is known on %s\n", j.Fusion, j.Device)
		return nil
	}
	fmt.Fprintf(c.out, "%s\n", j.Plan)
	if !j.Checked {
		fmt.Fprint(c.err, "note: the record was imported: the plan has not been checked here\n")
	}
	if j.Provisional {
		fmt.Fprint(c.err, "note: the winner is provisional: `tilewright tune` races on\n")
	}
	if j.DefaultError != "" {
		fmt.Fprintf(c.err, "note: %s\n", j.DefaultError)
	}
	for _, s := range j.Safe {
		fmt.Fprintf(c.err, "note: %s\n", s)
	}
	return nil
}
