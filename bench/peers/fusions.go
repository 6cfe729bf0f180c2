package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// The dearest fusions of bench/models, in canonical form, the dearest first: their names
// begin with their rank. -pick chooses them.
//
//go:embed fusions/*.hlo
var fusionTexts embed.FS

const fusionFolder = "fusions"

// modelCases are the fusions of models.
func modelCases() (all []testCase) {
	files, err := fusionTexts.ReadDir(fusionFolder)
	if err != nil {
		panic(err) // it is part of the program
	}
	for _, f := range files {
		all = append(all, testCase{family: "model", name: strings.TrimSuffix(f.Name(), ".hlo")})
	}
	return all
}

// modelText is the HLO of a fusion of a model, "" when there is no such fusion.
func modelText(name string) string {
	text, err := fusionTexts.ReadFile(fusionFolder + "/" + name + ".hlo")
	if err != nil {
		return ""
	}
	return string(text)
}

// Parameters of the choice of fusions.
const (
	pickedFusions = 40
	// Rates that decide how dear a fusion is, of no processor in particular.
	pickBytes = 1e10 // a second
	pickFLOPs = 1e11
	// A fusion with more than this is left out: its inputs are in memory several times
	// for every peer, and the reference interpreter computes it once. Products of more
	// operations are among the other cases.
	pickMaxBytes = 128 << 20
	pickMaxFLOPs = 3e9
)

// A picked fusion is one with the seconds that all its runs take in all models.
type picked struct {
	name, text string
	seconds    float64
}

// pick writes the dearest fusions of the StableHLO in a folder to another one.
func pick(ctx context.Context, from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.mlir.gz"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s has no texts: %v", from, err)
	}
	found := map[[32]byte]*picked{}
	for _, file := range files {
		if err := pickFrom(ctx, file, found); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	var all []*picked
	for _, p := range found {
		all = append(all, p)
	}
	slices.SortFunc(all, func(x, y *picked) int {
		return cmp.Or(cmp.Compare(y.seconds, x.seconds), strings.Compare(x.text, y.text))
	})
	for k, p := range all[:min(pickedFusions, len(all))] {
		name := fmt.Sprintf("%02d-%s.hlo", k+1, p.name)
		if err := os.WriteFile(filepath.Join(to, name), []byte(p.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pickFrom adds the fusions of a model to those that were found.
func pickFrom(ctx context.Context, file string, found map[[32]byte]*picked) error {
	name := strings.TrimSuffix(filepath.Base(file), ".mlir.gz")
	text, err := readCompressed(file)
	if err != nil {
		return err
	}
	m, err := hlo.Parse(name, text)
	if err != nil {
		return err
	}
	split, err := partition.Module(ctx, m, partition.Options{})
	if err != nil {
		return err
	}
	runs := partition.Executions(split.Module)
	for _, c := range split.Module.Fusions() {
		of := split.Fusions[c]
		if of == nil || !measurable(ctx, c, of.Price) {
			continue
		}
		print := c.Fingerprint()
		p := found[print]
		if p == nil {
			p = &picked{name: name + "-" + mainOperation(c), text: c.Canonical()}
			found[print] = p
		}
		p.seconds += runs[c].Times * max(of.Price.Bytes/pickBytes, of.Price.Work/pickFLOPs)
	}
	return nil
}

// mainOperation names the operation that says most about a fusion: the first of these
// that it has, or else that of its root.
func mainOperation(c *hlo.Computation) string {
	for _, op := range []hlo.Opcode{
		hlo.OpConvolution, hlo.OpDot, hlo.OpScatter, hlo.OpGather, hlo.OpReduceWindow, hlo.OpReduce,
	} {
		if slices.ContainsFunc(c.Instrs, func(i *hlo.Instr) bool { return i.Op == op }) {
			return string(op)
		}
	}
	return string(c.Root.Op)
}

// measurable reports whether a fusion has inputs, can be tiled and is not too large.
func measurable(ctx context.Context, c *hlo.Computation, price partition.Price) bool {
	bytes := int64(0)
	for _, s := range slices.Concat(c.ParamShapes(), kernels.OutputShapes(c)) {
		bytes += s.Bytes()
	}
	if len(c.Params) == 0 || bytes > pickMaxBytes || price.Work > pickMaxFLOPs {
		return false
	}
	_, err := symtile.Analyze(ctx, c)
	return err == nil
}

// readCompressed is the content of a gzip file.
func readCompressed(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacked)
}
