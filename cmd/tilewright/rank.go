package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/cost/problem"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// rankCommand shows the order of the cost model.
var rankCommand = command{
	name: "rank", args: "FILE", short: "the cost model's order, with the terms that make it",
	long: `Ranks the plans that are offered for a fusion by the cost model and prints the first ones with the terms
each prediction is the sum of. The model is the price of the backend; with -learn it has a correction that is fitted to the
samples in -db, when there are enough. Nothing is measured; without samples the first plan is the default.

Of terms that overlap (CPU: arithmetic and the levels of memory; GPU: memory, arithmetic, tensor cores,
shared memory, L2 and blocks) the longest counts whole and of each of the others a fifth (CPU) or an
eighth (GPU), and so they are printed; the rest is added. A term that is 0 for all plans shown has no
column. On a GPU, "waiting" is how long blocks take from start to end, less what the longest term hides
of it, and "blocks" is starting them; plans that tie (1 %, products 0.1 %) are in the order of the bytes
they move, then products of the bytes in flight, the most first, then of what they take of the device,
the least first.

With -problems FILE and -json, a line of JSON for each problem, the plans that the problem names are
priced on the GPU or processor that it names or describes, and a line of JSON is printed for each: see
docs/formats.md. Then there is no other FILE, no -db and no correction; "-" is the standard input.

The exit status is 1 when -db says that the default plan of the fusion fails its check.`,
	run: runRank,
}

// rankJSON is the result of rank -json.
type rankJSON struct {
	// Device that the plans are ranked for, and name of the fusion.
	Fusion string `json:"fusion"`
	// Source is the operation and the line of the user's program that it comes from.
	Source string `json:"source,omitempty"`
	Device string `json:"device"`
	// Legal counts the plans that the backend offers.
	Legal int `json:"legal"`
	// Tilings counts the legal tilings, each of which is a plan without knobs; with
	// MoreTilings there are at least so many.
	Tilings     int64 `json:"tilings"`
	MoreTilings bool  `json:"moreTilings,omitempty"`
	// LegalPlans counts the tilings that the device can run, with the settings of knobs that are
	// worth a try with each, and is 0 where they are not counted; with MorePlans there are at
	// least so many. Proven is how many of the plans offered, the first ones by the backend's
	// price, are the cheapest of these.
	LegalPlans int64 `json:"legalPlans,omitempty"`
	MorePlans  bool  `json:"morePlans,omitempty"`
	Proven     int   `json:"proven,omitempty"`
	// DefaultError is how the default plan failed its check, by the record in -db.
	DefaultError string `json:"defaultError,omitempty"`
	// Dims are the names of the dimensions of plans, in order.
	Dims kernels.PlanNames `json:"dims,omitempty"`
	// Plans in the order of the cost model, the cheapest first.
	Plans []rankedJSON `json:"plans"`
}

// rankedJSON is one plan with its predicted time.
type rankedJSON struct {
	Plan string `json:"plan"`
	// Predicted time.
	Seconds float64 `json:"seconds"`
	// Terms of the prediction, in seconds; they add up to Seconds.
	Terms []cost.Term `json:"terms"`
	// Inputs of the cost model.
	Features cost.Features `json:"features"`
}

// rankFlags are the flags of rank.
type rankFlags struct {
	device deviceFlags
	// Names of the database and of the fusion.
	db, name *string
	// Number of plans that are printed.
	top *int
	// Correct the prices by what is stored.
	learn *bool
}

// runRank ranks the plans of a fusion by the cost model.
func runRank(c *call) error {
	c.jsonFlag()
	f := rankFlags{
		db: c.dbFlag(), device: c.pricedDeviceFlag(), learn: c.learnFlag(),
		name: c.String("fusion", "", "the fusion of this `name`, when FILE has several"),
		top:  c.Int("top", 10, "print this many `plans`"),
	}
	problems := c.String("problems", "", "price the plans of the problems in this `file` of JSON lines; needs -json")
	c.shapeFlag()
	args, err := c.parse(0, 1)
	switch {
	case err != nil:
		return err
	case *problems != "":
		return c.rankProblems(*problems, args)
	case len(args) == 0:
		return usagef("it needs FILE, or -problems")
	case *f.top < 1:
		return usagef("-top %d: at least 1 plan is printed", *f.top)
	}
	return c.eachShape(func() error { return c.rank(args[0], f) })
}

// rank ranks the plans of the fusion of a name and prints the first ones.
func (c *call) rank(file string, f rankFlags) error {
	spareGarbage()
	b, err := c.open(f.device)
	if err != nil {
		return err
	}
	return c.eachModule(file, *f.name != "", func(file string, split *partition.Result) error {
		return c.rankIn(file, split.Module, b, f)
	})
}

// rankIn ranks the plans of the fusion of a name of a module for a backend.
func (c *call) rankIn(file string, m *hlo.Module, b kernels.Backend, f rankFlags) error {
	fusion, err := oneFusion(file, m, *f.name)
	if err != nil {
		return err
	}
	p, err := symtile.Analyze(c.ctx, fusion)
	if err != nil {
		return err
	}
	winners := cache.Open(*f.db)
	if err := c.warnOfDamage(winners); err != nil {
		return err
	}
	model := new(cost.Model)
	if *f.learn {
		if model, err = tuner.FitStored(winners, kernels.IdentityOf(b)); err != nil {
			return err
		}
	}
	pricer, err := kernels.PricerOf(b, p)
	if err != nil {
		return err
	}
	standard, err := b.Default(c.ctx, p)
	if err != nil {
		return err // why there are no plans, or none that the device computes
	}
	offer := kernels.OfferOf(c.ctx, b, p)
	ranked, err := model.Rank(c.ctx, pricer, offer.Plans)
	if err != nil {
		return err
	}
	j := rankJSON{
		Fusion: fusion.Name,
		Source: m.SourceOf(fusion),
		Device: b.Identity().Name,
		Legal:  len(offer.Plans),
		Dims:   kernels.PlanNamesOf(p),

		LegalPlans: offer.Legal,
		MorePlans:  offer.MoreLegal,
		Proven:     offer.Proven,
	}
	j.Tilings = p.Space.Count()
	j.MoreTilings = j.Tilings == math.MaxInt64
	for _, r := range ranked[:min(*f.top, len(ranked))] {
		j.Plans = append(j.Plans, rankedJSON{
			r.Plan.String(), r.Seconds, r.Terms(), r.Features(),
		})
	}
	stored, found, _ := tuner.Lookup(winners, fusion, kernels.IdentityOf(b)) // damage has been said
	record := stored.Record
	if !found {
		record = tuner.Unwon(winners, fusion, kernels.IdentityOf(b), standard)
	}
	j.DefaultError = record.DefaultFailure()
	if c.json {
		err = c.printJSON(j)
	} else {
		err = j.print(c, b.Identity())
	}
	if c.defaultFails(record) && err == nil {
		return errReported
	}
	return err
}

// provenText says how many of the plans that are offered are proven to be the cheapest.
func provenText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; the first is proven to be the cheapest of all"
	}
	return fmt.Sprintf("; the first %d are proven to be the cheapest of all", n)
}

// rankProblems prices the plans of a file of problems, or of the standard input, on the
// devices that the problems describe. No backend is opened and no database is read, so that
// the answers depend on the problems alone.
func (c *call) rankProblems(file string, args []string) error {
	if len(args) > 0 || !c.json {
		return usagef("-problems needs -json, and takes no other FILE")
	}
	in := c.in
	if file != "-" {
		f, err := openInput(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	return problem.AnswerAll(c.ctx, in, c.out)
}

// termsThatCount are the positions of the terms that are not 0 for every plan.
func (j rankJSON) termsThatCount() (shown []int) {
	if len(j.Plans) == 0 {
		return nil
	}
	for k := range j.Plans[0].Terms {
		if slices.ContainsFunc(j.Plans, func(p rankedJSON) bool { return p.Terms[k].Seconds != 0 }) {
			shown = append(shown, k)
		}
	}
	return shown
}

// print prints the first plans as a table, with the terms as columns.
func (j rankJSON) print(c *call, d kernels.Device) error {
	fmt.Fprintf(c.out, "%s on %s: %d plans offered%s%s\n", j.Fusion, d.Name, j.Legal, spaceText(j.LegalPlans, j.MorePlans, j.Tilings), provenText(j.Proven))
	if j.Source != "" {
		fmt.Fprintf(c.out, "from %s\n", j.Source)
	}
	fmt.Fprintln(c.out)
	t := c.table()
	fmt.Fprint(t, "predicted\tplan")
	shown := j.termsThatCount()
	for _, k := range shown {
		fmt.Fprintf(t, "\t%s", j.Plans[0].Terms[k].Name)
	}
	fmt.Fprintln(t)
	for _, p := range j.Plans {
		fmt.Fprintf(t, "%s\t%s", report.Seconds(p.Seconds), j.Dims.Stored(p.Plan))
		for _, k := range shown {
			fmt.Fprintf(t, "\t%s", report.Seconds(p.Terms[k].Seconds))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
