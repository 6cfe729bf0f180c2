package gpu

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

var (
	mutantSeed = flag.Uint64("mutant-seed", 8, "by which TestMutants draws places")
	gateSeed   = flag.Int64("gate-seed", 1, "by which inputs are drawn that mutants are found on")
)

// A subject is a kernel that is damaged: emitted for a fusion and a plan, read
// back from its text.
type subject struct {
	class   string
	target  string
	kernel  *kernel
	entry   *ptx.Entry
	module  *ptx.Module
	gate    *check.Verifier
	others  [][]kernels.Buffer // inputs beside those of the verification
	out     [][]byte           // its results
	results []hlo.Shape
	counts  sim.Counters
	budget  int64 // instructions it takes
}

func (s *subject) name() string { return s.class + " for " + s.target }

// subjects reads testdata/mutants.txt and checks each kernel as it is.
func subjects(t *testing.T) (all []*subject) {
	datadriven.RunTest(t, "testdata/mutants.txt", func(t *testing.T, d *datadriven.TestData) string {
		s := &subject{class: strings.ReplaceAll(d.Cmd, "-", " ")}
		d.ScanArgs(t, "target", &s.target)
		sheet, err := device.ParseSpec(s.target)
		if err != nil {
			return err.Error() + "\n"
		}
		d.MaybeScanArgs(t, "sms", &sheet.SMs)
		var words []string
		for _, a := range d.CmdArgs {
			if a.Key == "plan" {
				words = a.Vals
			}
		}
		plan, err := kernels.ParsePlan(strings.ReplaceAll(strings.Join(words, " "), ";", ","))
		if err == nil {
			err = s.compile(d.Input, plan, sheet)
		}
		if err != nil {
			return err.Error() + "\n"
		}
		all = append(all, s)
		return "agrees\n"
	})
	return all
}

func (s *subject) compile(text string, plan kernels.Plan, sheet device.Spec) error {
	m, err := hlo.Parse("mutants.txt", []byte(text+"\n"))
	if err != nil {
		return err
	}
	p, err := symtile.Analyze(context.Background(), m.Entry)
	if err != nil {
		return err
	}
	im, err := compile(p, plan, sheet)
	if err != nil {
		return err
	}
	s.kernel = &kernel{
		in:  len(p.Fusion.Params),
		out: len(kernels.OutputShapes(p.Fusion)),
	}
	s.kernel.work = &device.Executable{
		PTX:     string(im.module.Text()),
		Scratch: im.scratch,
		Zeroed:  im.zeroed,
		Steps:   im.steps,
	}
	// Flags are as they were after a run, which the next one shows.
	if im.zeroed > 0 {
		s.kernel.work.Steps = append(im.steps, im.steps[0])
	}
	if s.module, err = ptx.Parse(s.class, im.module.Text()); err != nil {
		return err
	}
	s.entry = &s.module.Entries[0]
	if s.gate, err = check.NewVerifier(context.Background(), p.Fusion, *gateSeed); err != nil {
		return err
	}
	s.gate = s.gate.For(plan, true)
	for seed := range int64(2) {
		in, err := check.Inputs(p.Fusion, check.Normals, seed+100)
		if err != nil {
			return err
		}
		s.others = append(s.others, in)
	}
	s.results = kernels.OutputShapes(p.Fusion)
	r := s.run(s.entry, everything)
	s.out, s.counts = r.out, r.counters
	for _, n := range r.counters.Instructions {
		s.budget += n
	}
	return r.err
}

// A trial is what came of running an entry.
type trial struct {
	err      error
	findings []sim.Finding
	counters sim.Counters
	out      [][]byte
}

// A prepared driver runs one program, whatever it is asked to load.
type prepared struct {
	*simulator
	program *sim.Program
}

func (d prepared) Load(context.Context, string, device.LoadOptions) (device.Module, error) {
	return simModule{d.program}, nil
}

// A recorded kernel keeps what it computed.
type recorded struct {
	*kernel
	out *[][]byte
}

func (k recorded) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (d time.Duration, err error) {
	d, err = k.kernel.Run(ctx, in, out)
	for _, b := range out {
		*k.out = append(*k.out, slices.Clone(b.Data))
	}
	return d, err
}

// compute is what an entry makes of other inputs.
func (s *subject) compute(
	e *ptx.Entry, in []kernels.Buffer,
) (out []kernels.Buffer, err error) {
	for _, shape := range s.results {
		b, err := kernels.NewBuffer(shape)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	k, _, err := s.load(e, s.options())
	if err != nil {
		return nil, err
	}
	_, err = k.Run(context.Background(), in, out)
	return out, err
}

// options are those of a mutant's run.
func (s *subject) options() sim.Options {
	opt := everything
	opt.Workers, opt.Budget = 1, 2*s.budget+10_000
	return opt
}

// load makes a kernel of an entry in the place of the subject's.
func (s *subject) load(e *ptx.Entry, opt sim.Options) (*kernel, *simulator, error) {
	m := *s.module
	m.Entries = []ptx.Entry{*e}
	if err := m.Check(); err != nil {
		return nil, nil, err
	}
	program, err := sim.Load(&m)
	if err != nil {
		return nil, nil, err
	}
	dev := newSimulator(s.target)
	dev.options = opt
	session, err := device.NewSession(context.Background(), func(context.Context) (device.Driver, error) {
		return prepared{dev, program}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	k := *s.kernel
	k.session = session
	return &k, dev, nil
}

// run puts an entry through the verification in the place of the subject's: text, findings and results.
func (s *subject) run(e *ptx.Entry, opt sim.Options) (r trial) {
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("the simulator panics: %v", p)
		}
	}()
	k, device, err := s.load(e, opt)
	if err != nil {
		return trial{err: err}
	}
	r.err = s.gate.Verify(context.Background(), recorded{k, &r.out})
	r.counters, r.findings = device.last, device.found
	return r
}

// An outcome is what became of a mutant.
type outcome string

const (
	refused   outcome = "refused" // by the checker or the loader
	wrong     outcome = "wrong"   // results
	unreached outcome = "equal: never executed"
	always    outcome = "equal: the guard always holds"
	samely    outcome = "equal: the same value"
	unused    outcome = "equal: nobody reads it"
	undefined outcome = "equal: written again before it is read"
	unseen    outcome = "equal: not even a NaN there is seen"
	indices   outcome = "equal: other indices, the same results on other inputs too"
	traffic   outcome = "memory traffic"
	alike     outcome = "same results"
	near      outcome = "within the tolerance"
)

// A mutant is a subject with one damage.
type mutant struct {
	of     *subject
	damage *damage
	at     int // statement
	became outcome
	err    error
}

// judge runs a mutant, and where nothing tells it from its subject, asks why.
func (m *mutant) judge() {
	s := m.of
	entry := *s.entry
	x := m.damage.at(&entry, m.at)
	damaged := x.apply(&entry)
	r := s.run(&damaged, s.options())
	switch w := (*check.WrongResult)(nil); {
	case r.err == nil:
		m.became = s.equivalent(m.at, x, &entry)
		if m.became == alike {
			m.became = m.tell(r, &damaged)
		}
	case len(r.findings) > 0:
		m.became = outcome(r.findings[0].Kind)
	case errors.As(r.err, &w):
		m.became = wrong
	default:
		m.became = refused
	}
	m.err = r.err
}

// tell says what there is to tell a mutant that passes from its subject.
func (m *mutant) tell(r trial, damaged *ptx.Entry) outcome {
	in := &m.of.entry.Body[m.at].Instr
	equal := slices.EqualFunc(r.out, m.of.out, bytes.Equal)
	switch reason := reasonFor(m); {
	case units(&r.counters) > units(&m.of.counts):
		return traffic
	case reason != "":
		return outcome("equal: " + reason)
	case !equal:
		return near
	case !synchronises(in.Opcode.Op) &&
		!(isFloat(in) && slices.Contains(arithmetics, in.Opcode.Op)) &&
		in.Opcode.Op != ptx.OpMov && m.of.elsewhere(damaged):
		return indices
	}
	return alike
}

// elsewhere reports whether a mutant makes the same of other inputs, too. Where
// only indices were damaged, which depend on no input, that is all there is to
// know.
func (s *subject) elsewhere(damaged *ptx.Entry) bool {
	for _, in := range s.others {
		got, err := s.compute(damaged, in)
		want, err2 := s.compute(s.entry, in)
		if err != nil || err2 != nil ||
			!slices.EqualFunc(got, want, func(x, y kernels.Buffer) bool {
				return bytes.Equal(x.Data, y.Data)
			}) {
			return false
		}
	}
	return true
}

// synchronises reports whether an operation orders others. That results are the
// same without it proves nothing.
func synchronises(op ptx.Op) bool {
	switch op {
	case ptx.OpBarSync, ptx.OpBarArrive, ptx.OpBarrierArrive, ptx.OpBarWarpSync, ptx.OpBarrierClusterArrive, ptx.OpBarrierClusterWait, ptx.OpMembar,
		ptx.OpFence, ptx.OpFenceProxy, ptx.OpFenceMbarrierInit,
		ptx.OpCpAsyncCommitGroup, ptx.OpCpAsyncWaitGroup, ptx.OpCpAsyncWaitAll, ptx.OpWgmmaFence, ptx.OpWgmmaCommitGroup,
		ptx.OpWgmmaWaitGroup,
		ptx.OpMbarrierInit, ptx.OpMbarrierArrive, ptx.OpMbarrierTryWait:
		return true
	}
	return false
}

// reasons are why mutants of a kind, of classes that begin so and instructions
// that contain the text, are as right as their subjects; or why that is not
// found.
var reasons = []struct{ damage, class, text, reason string }{
	{"fence.proxy.async dropped", "", "", eitherFence},
	{"fence.mbarrier_init dropped", "", "", eitherFence},
	{"wgmma.fence dropped", "", "", "after the first iteration nothing but products has written the sums"},
	{"guard negated", "", "fence.", eitherFence},
	{"guard dropped", "", "fence.", "more threads make the mbarriers known than have to"},
	{"barrier of the first warp only", "column reduce", "", "the first warp alone works behind it, and who has left is not waited for"},
	{"registers not asked for", "", "", "the simulator gives every thread the registers it names"},
	{"descriptor: another leading offset", "wgmma for", "", "an operand one swizzle wide has no second"},
	{"descriptor: another leading offset", "wgmma without", "", "an operand one swizzle wide has no second"},
	{"descriptor: another leading offset", "wgmma in", "", "an operand one swizzle wide has no second"},
	{"descriptor: another leading offset", "persistent", "", "an operand one swizzle wide has no second"},
	{"elements of a load swapped", "row reduce", "", "a sum in another order"},
	{"elements of a load swapped", "column reduce", "", "a sum in another order"},
	{"elements of a load swapped", "norm", "", "a sum in another order"},
	{"another first value", "online", "mov.f32", "the first tile multiplies it by exp(−∞), which is 0"},
	{"barrier dropped", "online warpgroups", ", 256", "turns order products in time, and no result depends on them"},
	{"barrier dropped", "boxes", "bar.sync", "found where the wait of the thread that copies comes before the writes; TestWritesBehindCopies of package sim"},
	{"barrier dropped", "in turns", "bar.sync", "a group meets at its turn before it stores again what its warps have loaded"},
	{"comparison's sides swapped", "online", "setp.lt.f32", "what the rounding of a small maximum adds to sums is less than the last bit of a weight"},
	{"elements of a load swapped", "softmax", "", "a sum or a maximum in another order"},
	{"mbarrier of one arrival fewer", "both register", "", "a barrier of each iteration comes before a slot of the one before is released, so that one arrival would do"},
	{"wgmma.commit_group dropped", "register wgmma", "", ownRegisters},
	{"wgmma.wait_group dropped", "register wgmma", "", ownRegisters},
	{"wgmma.wait_group of one too few", "register wgmma", "", ownRegisters},
	{"wgmma.commit_group dropped", "turned register", "", ownRegisters},
	{"wgmma.wait_group dropped", "turned register", "", ownRegisters},
	{"wgmma.wait_group of one too few", "turned register", "", ownRegisters},
	{"barrier before the last store", "turned register", "bar.sync", "after the first fragment of an iteration the products of the one before are complete"},
}

const ownRegisters = "fragments along k have registers of their own, and the next commit or the last wait of the iteration has these products"

const eitherFence = "either fence makes the mbarriers known; both dropped are a kind of their own"

func reasonFor(m *mutant) string {
	text := m.of.entry.InstrText(&m.of.entry.Body[m.at].Instr)
	for _, r := range reasons {
		if r.damage == m.damage.name &&
			strings.HasPrefix(m.of.name(), r.class) &&
			strings.Contains(text, r.text) {
			return r.reason
		}
	}
	return ""
}

// units is all that is moved: sectors, and passes over the banks.
func units(c *sim.Counters) int64 {
	return c.GlobalLoad.Units + c.GlobalStore.Units + c.SharedLoad.Units + c.SharedStore.Units
}

func (o outcome) caught() bool {
	return !strings.HasPrefix(string(o), "equal") && o != alike && o != near
}

// equivalent looks for a reason why an edit of an instruction changes nothing.
func (s *subject) equivalent(k int, x *edit, e *ptx.Entry) outcome {
	in := &s.entry.Body[k].Instr
	stops := func(with ...ptx.Stmt) bool {
		changed := (&edit{k, k + 1, with}).apply(e)
		return s.run(&changed, sim.Options{
			Workers: 1,
			Budget:  2*s.budget + 10_000,
		}).err != nil
	}
	trap := func(g ptx.Guard) ptx.Stmt {
		return instruction(ptx.Instr{Guard: g, Opcode: opcode("trap")})
	}
	original, with := s.entry.Body[k], x.with
	switch {
	case !stops(trap(in.Guard), original):
		return unreached
	case len(with) == 1 && guarded(in) &&
		!guarded(&with[0].Instr) &&
		!stops(trap(ptx.Guard{
			Reg: in.Guard.Reg,
			Neg: !in.Guard.Neg,
		}), original):
		return always
	case len(with) == 0 && guarded(in) &&
		in.Opcode.Op == ptx.OpBra &&
		!stops(trap(in.Guard), original):
		return unreached
	case s.unread(in):
		return unused
	case in.Opcode.Op == ptx.OpMov && in.Operands[1].IsImm() && len(with) == 0: // reads of what is not written are found
		return undefined
	case in.Opcode.Op == ptx.OpMov &&
		in.Operands[1].Kind == ptx.KindF32 &&
		s.unseen(k):
		return unseen
	}
	if compared := comparison(e, in, with); compared != nil && !stops(compared...) {
		return samely
	}
	return alike
}

// unseen reports whether results stay what they are when a register starts as NaN.
func (s *subject) unseen(k int) bool {
	in := s.entry.Body[k].Instr
	in.Operands = []ptx.Operand{
		in.Operands[0], ptx.F32Imm(float32(math.NaN())),
	}
	changed := (&edit{
		k, k + 1, []ptx.Stmt{instruction(in)},
	}).apply(s.entry)
	r := s.run(&changed, sim.Options{Workers: 1})
	return r.err == nil && slices.EqualFunc(r.out, s.out, bytes.Equal)
}

// unread reports whether an instruction has one result and nobody reads it.
func (s *subject) unread(in *ptx.Instr) bool {
	if len(in.Operands) == 0 ||
		in.Operands[0].Kind != ptx.KindReg ||
		in.Opcode.Op == ptx.OpSt || synchronises(in.Opcode.Op) {
		return false
	}
	d := in.Operands[0].Reg
	for k := range s.entry.Body {
		other := &s.entry.Body[k].Instr
		if other == in || s.entry.Body[k].Kind != ptx.StmtInstr {
			continue
		}
		if other.Guard.Reg == d {
			return false
		}
		for n := range other.Operands {
			if mentions(&other.Operands[n], d) &&
				(n > 0 || other.Operands[n].Kind != ptx.KindReg || other.Opcode.Op == ptx.OpSetmaxnreg) {
				return false
			}
		}
	}
	return true
}

func mentions(o *ptx.Operand, r ptx.Reg) bool {
	return o.Reg == r ||
		slices.ContainsFunc(o.List, func(x ptx.Operand) bool { return mentions(&x, r) })
}

// comparison computes both what an instruction and what one in its place does,
// and stops where they differ.
func comparison(e *ptx.Entry, in *ptx.Instr, with []ptx.Stmt) []ptx.Stmt {
	if len(with) != 1 || guarded(in) ||
		len(in.Operands) == 0 ||
		in.Operands[0].Kind != ptx.KindReg {
		return nil
	}
	other, d := with[0].Instr, in.Operands[0]
	t := e.RegType(d.Reg)
	if guarded(&other) || len(other.Operands) == 0 ||
		!same(&other.Operands[0], &d) {
		return nil
	}
	copied, declared := register(e, t)
	differ, declaredToo := register(e, ptx.Pred)
	other.Operands = slices.Clone(other.Operands)
	other.Operands[0] = copied
	all := []ptx.Stmt{declared, declaredToo, instruction(other), instruction(*in)}
	switch t {
	case ptx.Pred:
		all = append(all, instr("xor.pred", differ, d, copied))
	case ptx.F32:
		x, first := register(e, ptx.B32)
		y, second := register(e, ptx.B32)
		all = append(
			all, first, second, instr("mov.b32", x, d),
			instr("mov.b32", y, copied), instr("setp.ne.b32", differ, x, y),
		)
	case ptx.B16, ptx.B32, ptx.B64:
		all = append(all, instr("setp.ne."+t.String(), differ, d, copied))
	default:
		return nil
	}
	return append(
		all,
		instruction(ptx.Instr{Guard: ptx.Guard{Reg: differ.Reg}, Opcode: opcode("trap")}),
	)
}

// siteLimit is how many sites of a kind are damaged in a kernel.
func siteLimit() int {
	if testing.Short() {
		return 1
	}
	return 2
}

// Emitted kernels are damaged in all the ways there are; what damages the
// results has to be found.
func TestMutants(t *testing.T) {
	all := subjects(t)
	if t.Failed() {
		return
	}
	var mutants []*mutant
	rng := rand.New(rand.NewPCG(*mutantSeed, 1))
	for _, s := range all {
		for n := range damages {
			d := &damages[n]
			at := d.sites(s.entry)
			rng.Shuffle(len(at), func(i, j int) {
				at[i], at[j] = at[j], at[i]
			})
			for _, k := range at[:min(len(at), siteLimit())] {
				mutants = append(mutants, &mutant{of: s, damage: d, at: k})
			}
		}
	}
	inTurns(mutants)
	kinds := map[string]bool{}
	for _, m := range mutants {
		kinds[m.damage.name] = true
	}
	t.Logf("%d kinds of damage\n%s", len(kinds), table(mutants))
	if len(kinds) < 60 {
		t.Errorf("only %d kinds of damage find something to damage", len(kinds))
	}
	for _, m := range mutants {
		if m.became == alike || m.became == near {
			in := m.of.entry.Body[m.at]
			t.Errorf(
				"%s: %s: %s at line %d: %s",
				m.of.name(), m.damage.name, m.became,
				in.Line, m.of.entry.InstrText(&in.Instr),
			)
		}
	}
}

// inTurns judges mutants on all cores.
func inTurns(mutants []*mutant) {
	var wg sync.WaitGroup
	next := make(chan *mutant)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for m := range next {
				m.judge()
			}
		})
	}
	for _, m := range mutants {
		next <- m
	}
	close(next)
	wg.Wait()
}

// table counts what became of mutants, by kind and by class.
func table(mutants []*mutant) string {
	var b strings.Builder
	for _, by := range []struct {
		title string
		name  func(m *mutant) string
	}{
		{"kind", func(m *mutant) string { return m.damage.name }},
		{"class", func(m *mutant) string { return m.of.name() }},
	} {
		count, order := map[string]map[string]int{}, []string{}
		for _, m := range mutants {
			name := by.name(m)
			if count[name] == nil {
				count[name] = map[string]int{}
				order = append(order, name)
			}
			c := count[name]
			c["mutants"]++
			if m.became.caught() {
				c["caught"]++
			}
			c[string(m.became)]++
		}
		slices.Sort(order)
		tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(tw, "\n%s\tmutants\tcaught\tof it\n", by.title)
		for _, name := range order {
			c := count[name]
			fmt.Fprintf(tw, "%s\t%d\t%d", name, c["mutants"], c["caught"])
			delete(c, "mutants")
			delete(c, "caught")
			sep := "\t"
			for _, k := range slices.Sorted(maps.Keys(c)) {
				fmt.Fprintf(tw, "%s%s %d", sep, k, c[k])
				sep = ", "
			}
			fmt.Fprintln(tw)
		}
		tw.Flush()
	}
	return fmt.Sprintf("%d mutants\n%s", len(mutants), b.String())
}
