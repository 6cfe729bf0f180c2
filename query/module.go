package query

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hloproto"
	"github.com/tilewright/tilewright/symtile/partition"
)

// A Part is a module of a file: the Number-th, from 1, of Of.
type Part struct {
	*hlo.Module
	Number, Of int
}

// Modules parses the modules of a text, which lines "// -----" separate, of a message of
// XLA's, or of a queue of misses (Miss), either as it is or compressed by gzip. A number
// above 0 chooses one of them, and given are extents that texts leave open. Those that can
// be read come with the errors of the others, which the name begins.
func Modules(name string, src []byte, number int, given hlo.Extents) ([]Part, error) {
	src, err := uncompressed(name, src)
	if err != nil {
		return nil, err
	}
	src = bytes.TrimPrefix(src, byteOrderMark)
	if isQueue(src) {
		return queued(name, src, number)
	}
	if hloproto.Detected(src) {
		text, err := hloproto.Text(name, src)
		if err != nil {
			return nil, err
		}
		src = text
	}
	texts := separateModules(src)
	if number > len(texts) {
		return nil, fmt.Errorf("%s has %d modules; there is no %d", name, len(texts), number)
	}
	var all []Part
	var failed []error
	for k, text := range texts {
		if number > 0 && k != number-1 {
			continue
		}
		m, err := hlo.ParseFor(name, text, given)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, Part{m, k + 1, len(texts)})
	}
	return all, joinFew(name, failed, len(texts), "modules")
}

// byteOrderMark begins texts in UTF-8 that some editors have saved.
var byteOrderMark = []byte("\ufeff")

// joinFew joins the first errors of the parts of a file, and says how many more there are.
func joinFew(name string, failed []error, of int, parts string) error {
	if more := len(failed) - maxReported; more > 0 {
		failed = append(failed[:maxReported:maxReported], fmt.Errorf("%s: %d more of its %d %s cannot be read", name, more, of, parts))
	}
	return errors.Join(failed...)
}

// maxReported bounds the parts of a file of which an error says what is wrong.
const maxReported = 8

// MaxBytes bounds the text of a module, also of what gzip has compressed. The largest
// that compilers dump have some tens of megabytes.
const MaxBytes = 256 << 20

// Compressed reports whether a file that begins so was compressed by gzip.
func Compressed(src []byte) bool { return bytes.HasPrefix(src, []byte("\x1f\x8b")) }

// uncompressed is the content of a text that gzip may have compressed.
func uncompressed(name string, src []byte) ([]byte, error) {
	if !Compressed(src) {
		return src, nil
	}
	content, err := gzip.NewReader(bytes.NewReader(src))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err) // "gzip: invalid header"
	}
	text, err := io.ReadAll(io.LimitReader(content, MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: gzip: %w", name, err)
	case len(text) > MaxBytes:
		return nil, TooLong(name)
	}
	return text, nil
}

// TooLong is the error of a text of more than MaxBytes.
func TooLong(name string) error {
	return fmt.Errorf("%s is longer than %d MiB; a module is shorter", name, MaxBytes>>20)
}

// Read parses a text that is one module and splits it into fusions for a target, unless it
// has some. The error is also the cause of a ctx that ended before.
func Read(ctx context.Context, name string, src []byte, target hlo.Target) (*partition.Result, error) {
	all, err := Modules(name, src, 0, nil)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s has %d modules; one is expected", name, len(all))
	}
	return Partitioned(ctx, all[0].Module, target)
}

// Closed is a text that is one module with the extents that it leaves open, as HLO. A name
// that none of its open parameters has is an error.
func Closed(name string, src []byte, given hlo.Extents) (string, error) {
	for parameter, dims := range given {
		if len(dims) == 0 || slices.Min(dims) < 0 || parameter == "?" && len(dims) != 1 {
			return "", fmt.Errorf("%v are no extents of %q", dims, parameter)
		}
	}
	all, err := Modules(name, src, 0, given)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "", fmt.Errorf("%s has %d modules; one is expected", name, len(all))
	}
	for parameter := range given {
		if !slices.Contains(all[0].Open, parameter) && (parameter != "?" || len(all[0].Open) == 0) {
			return "", fmt.Errorf("%s has no parameter %.40q with an open extent; it has %q", name, parameter, all[0].Open)
		}
	}
	return all[0].String(), nil
}

// Partitioned is the partition of a module into fusions that a target computes. The
// error is the cause of a ctx that ended before.
func Partitioned(ctx context.Context, m *hlo.Module, target hlo.Target) (*partition.Result, error) {
	return partition.Module(ctx, m, partition.Options{
		Outside: func(i *hlo.Instr) string { return notComputed(i, target) },
	})
}

// TargetOf is what computes the fusions of a device: hlo.GPU or hlo.CPU.
func TargetOf(id kernels.Identity) hlo.Target {
	if id.Backend == "gpu" {
		return hlo.GPU
	}
	return hlo.CPU
}

// notComputed is the reason why an operation stays out of fusions: the reference,
// with which every kernel is compared, or the target does not compute it. Those that are
// not tiled have reasons of their own.
func notComputed(i *hlo.Instr, target hlo.Target) string {
	if !i.Op.Elementwise() && i.Op != hlo.OpScatter {
		return ""
	}
	if why := cmp.Or(i.Op.Not(hlo.Reference), i.Op.Not(target)); why != "" {
		return why
	}
	for _, o := range i.Operands {
		if d := o.Shape.DType; i.Op.NotOf(target, d) {
			return fmt.Sprintf("%s of %s is not computed on a %s", i.Op, d, target)
		}
	}
	return ""
}

// An Outside is an instruction of an unfused module that is in no fusion.
type Outside struct {
	// Name, opcode, and why no fusion takes it.
	Instr  string `json:"instr"`
	Op     string `json:"op"`
	Reason string `json:"reason"`
}

// NewOutside lists what stays outside, but for instructions that do no work, such as
// constants and tuples.
func NewOutside(all []partition.Unfused) (list []Outside) {
	for _, o := range all {
		if !slices.Contains(workless, o.Instr.Op) {
			list = append(list, Outside{o.Instr.Name, string(o.Instr.Op), o.Reason})
		}
	}
	return list
}

// workless operations do no work.
var workless = []hlo.Opcode{hlo.OpConstant, hlo.OpIota, hlo.OpTuple, hlo.OpGetTupleElement}

// separator is a line between modules, as in the tests of compilers.
var separator = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(//|#) -----.*$`) })

// separateModules cuts a text at its separators and leaves out parts without
// instructions. Each part keeps its place by the empty lines in front of it.
func separateModules(src []byte) [][]byte {
	cuts := separator().FindAllIndex(src, -1)
	if len(cuts) == 0 {
		return [][]byte{src}
	}
	var all [][]byte
	start := 0
	for _, cut := range append(cuts, []int{len(src), len(src)}) {
		if part := src[start:cut[0]]; hasInstructions(part) {
			lines := bytes.Count(src[:start], []byte("\n"))
			all = append(all, append(bytes.Repeat([]byte("\n"), lines), part...))
		}
		start = cut[1]
	}
	if all == nil {
		return [][]byte{src}
	}
	return all
}

// hasInstructions reports whether a line of the text is neither empty nor a comment.
func hasInstructions(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			return true
		}
	}
	return false
}
