// Package problem prices plans that others have chosen or measured: a problem is a
// program, a device and plans, and an answer what each plan is expected to take.
//
// Problems and answers are lines of JSON (docs/formats.md). A program that reads the
// timings of a device from elsewhere judges the prices by them; so does bench/judge.
package problem

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Problem is a program whose plans are to be priced on a device.
type Problem struct {
	ID string `json:"id"`
	// HLO or StableHLO text of one fusion: the fusion of the module, or the module
	// itself where it has none.
	HLO string `json:"hlo"`
	// Device is the sheet of a GPU or a processor, or the name of a built-in one as text.
	Device json.RawMessage `json:"device"`
	// Plans as text: "128,128,32 stages=3 warps=8".
	Plans []string `json:"plans"`
}

// An Answer has a price for each plan of a problem.
type Answer struct {
	ID string `json:"id"`
	// Seconds of each plan; null for one that cannot run.
	Seconds []*float64 `json:"seconds"`
	// Valid tells the plans that can run.
	Valid []bool `json:"valid"`
	// Terms of each plan, which add up to its seconds.
	Terms [][]cost.Term `json:"terms"`
	// Why says for the first plan that cannot run what it lacks; "" where all can.
	Why string `json:"why,omitempty"`
	// Error is why the problem has no prices.
	Error string `json:"error,omitempty"`
}

// A Solver answers problems. It keeps the programs and devices that it has read.
type Solver struct {
	devices map[string]pricing
	prior   cost.Model // without samples: the price as it is
}

// A pricing prices the plans of a program on a device.
type pricing func(*symtile.Program) (kernels.Pricer, error)

// NewSolver makes a solver.
func NewSolver() *Solver {
	return &Solver{
		devices: map[string]pricing{},
	}
}

// Answer prices the plans of a problem. A problem that cannot be read has an answer with
// an error.
func (s *Solver) Answer(ctx context.Context, x Problem) Answer {
	a, err := s.answer(ctx, x)
	if err != nil {
		return Answer{ID: x.ID, Error: err.Error()}
	}
	return a
}

// Features are the prices of the plans of a problem in the form that a fit takes. Those of
// a plan that cannot run have no terms.
func (s *Solver) Features(ctx context.Context, x Problem) ([]cost.Features, error) {
	p, pricer, err := s.pricer(ctx, x)
	if err != nil {
		return nil, err
	}
	all := make([]cost.Features, len(x.Plans))
	for k, text := range x.Plans {
		plan, err := planOf(p, text)
		if err != nil {
			continue
		}
		f, err := cost.FeaturesOf(pricer, plan)
		if err != nil {
			continue
		}
		seconds, _ := s.prior.Predict(f)
		if !math.IsInf(seconds, 1) {
			all[k] = f
		}
	}
	return all, nil
}

// pricer analyses the program of a problem and prices it on the device. What it returns
// is for one goroutine.
func (s *Solver) pricer(
	ctx context.Context, x Problem,
) (*symtile.Program, kernels.Pricer, error) {
	on, err := s.device(x.Device)
	if err != nil {
		return nil, nil, err
	}
	p, err := Program(ctx, x.ID, x.HLO)
	if err != nil {
		return nil, nil, err
	}
	pricer, err := on(p)
	return p, pricer, err
}

// answer prices the plans of a problem.
func (s *Solver) answer(ctx context.Context, x Problem) (Answer, error) {
	a := Answer{ID: x.ID}
	p, pricer, err := s.pricer(ctx, x)
	if err != nil {
		return a, err
	}
	for _, text := range x.Plans {
		seconds, terms, err := s.plan(p, pricer, text)
		if err != nil && a.Why == "" {
			a.Why = fmt.Sprintf("%s: %v", text, err)
		}
		a.Valid = append(a.Valid, err == nil)
		a.Seconds = append(a.Seconds, seconds)
		a.Terms = append(a.Terms, terms)
	}
	return a, nil
}

// planOf reads a plan: tile sizes, a comma between them, and knobs. Tiles that are larger than their dimension are cut to it.
func planOf(p *symtile.Program, text string) (kernels.Plan, error) {
	plan, err := kernels.ParsePlan(text)
	dims := p.Space.Dims
	for k := range min(len(dims), len(plan.Tiles)) {
		extent := max(1, dims[k].Extent)
		plan.Tiles[k] = min(plan.Tiles[k], extent)
	}
	return plan, err
}

// plan prices one plan.
func (s *Solver) plan(
	p *symtile.Program, pricer kernels.Pricer, text string,
) (*float64, []cost.Term, error) {
	plan, err := planOf(p, text)
	if err != nil {
		return nil, nil, err
	}
	f, err := cost.FeaturesOf(pricer, plan)
	if err != nil {
		return nil, nil, err
	}
	seconds, terms := s.prior.Predict(f)
	if math.IsInf(seconds, 1) {
		return nil, nil, errTooLarge
	}
	return &seconds, terms, nil
}

// errTooLarge is the reason why a plan has no price.
var errTooLarge = errors.New("a block needs more registers, threads or shared memory than there are")

// device reads a sheet or finds a built-in one.
func (s *Solver) device(text json.RawMessage) (pricing, error) {
	if on, known := s.devices[string(text)]; known {
		return on, nil
	}
	on, err := deviceOf(text)
	if err == nil {
		s.devices[string(text)] = on
	}
	return on, err
}

// deviceOf is a device by its sheet, or by the name of a built-in one.
func deviceOf(text json.RawMessage) (pricing, error) {
	var name string
	if err := json.Unmarshal(text, &name); err == nil {
		name = strings.TrimPrefix(name, "cpu:")
		s, noCPU := sheet.Find(name)
		if noCPU == nil {
			return onCPU(s), nil
		}
		name = strings.TrimPrefix(name, "sim:")
		spec, err := device.ParsePriced(name)
		if err != nil {
			return nil, fmt.Errorf("%w; %w", err, noCPU)
		}
		return onGPU(spec), nil
	}
	if sheet.IsCPU(text) {
		s, err := sheet.Parse(text)
		return onCPU(s), err
	}
	spec, err := device.ReadSheet(bytes.NewReader(text))
	return onGPU(spec), err
}

// onCPU prices plans for the processor of a sheet.
func onCPU(s sheet.Sheet) pricing {
	return cpu.NewPriced(s).Pricer
}

// onGPU prices plans for a GPU.
func onGPU(spec device.Spec) pricing {
	return func(p *symtile.Program) (kernels.Pricer, error) {
		return gpu.NewPricer(p, spec)
	}
}

// Program analyses the only fusion of a text, or the module where it has none.
func Program(ctx context.Context, name, text string) (*symtile.Program, error) {
	m, err := hlo.Parse(name, []byte(text))
	if err != nil {
		return nil, err
	}
	all := m.Fusions()
	if len(all) != 1 {
		return nil, fmt.Errorf("%s has %d fusions; a problem has one", name, len(all))
	}
	return symtile.Analyze(ctx, all[0])
}

// maxProblemBytes bounds a line.
const maxProblemBytes = 64 << 20

// AnswerAll reads problems, a line each, and writes an answer for each of them. A line
// that is no problem ends it with an error.
func AnswerAll(ctx context.Context, r io.Reader, w io.Writer) error {
	s := NewSolver()
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxProblemBytes)
	out := bufio.NewWriter(w)
	line := 0
	for in.Scan() {
		line++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var x Problem
		err := json.Unmarshal(in.Bytes(), &x)
		if err != nil {
			err = fmt.Errorf("problem in line %d: %w", line, err)
			return errors.Join(err, out.Flush())
		}
		err = json.NewEncoder(out).Encode(s.Answer(ctx, x))
		if err != nil {
			return err
		}
	}
	return errors.Join(in.Err(), out.Flush())
}
