package hloproto

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A writer prints a module as HLO text. The layout of the text is of no account:
// it is read again at once, and errors of the reader show its lines.
type writer struct {
	out bytes.Buffer
	// names are the instructions of the computation that is printed, by id.
	names map[int64]string
	// shapes are their shapes.
	shapes map[int64]message
	// computations are all computations by id.
	computations map[int64]string
}

// module prints a module: its name, the tables of source places, computations.
func (w *writer) module(m message) error {
	name := m.text("name")
	if name == "" {
		name = "module"
	}
	// The attributes of a module (layouts of the entry, aliases, schedules) have no
	// part in what its fusions compute.
	fmt.Fprintf(&w.out, "HloModule %s\n\n", name)
	w.frames(m.message("stack_frame_index"))
	all := m.messages("computations")
	for _, c := range all {
		w.computations[c.int("id")] = c.text("name")
	}
	for _, c := range all {
		entry := c.int("id") == m.int("entry_computation_id")
		// Old messages name the entry and have no ids of computations.
		if m.text("entry_computation_name") != "" {
			entry = c.text("name") == m.text("entry_computation_name")
		}
		if entry {
			w.out.WriteString("ENTRY ")
		}
		if err := w.computation(c); err != nil {
			return err
		}
	}
	return nil
}

// frames prints the tables that stack_frame_id refers to, as XLA does in front of
// the computations. Entries count from 1.
func (w *writer) frames(m message) {
	w.out.WriteString("FileNames\n")
	for k, name := range m.list("file_names") {
		fmt.Fprintf(&w.out, "%d %s\n", k+1, quote(name.String()))
	}
	w.out.WriteString("FileLocations\n")
	for k, l := range m.messages("file_locations") {
		file, line := l.int("file_name_id"), l.int("line")
		fmt.Fprintf(&w.out, "%d {file_name_id=%d line=%d}\n", k+1, file, line)
	}
	w.out.WriteString("StackFrames\n")
	for k, f := range m.messages("stack_frames") {
		fmt.Fprintf(&w.out, "%d {file_location_id=%d}\n", k+1, f.int("file_location_id"))
	}
}

// computation prints a computation, whose instructions are in an order in which
// operands come first. The reader takes its parameters and its result from them.
func (w *writer) computation(c message) error {
	fmt.Fprintf(&w.out, "%%%s {\n", c.text("name"))
	instrs := c.messages("instructions")
	// An operand is named by an id, which is unique in the module.
	w.names = make(map[int64]string, len(instrs))
	w.shapes = make(map[int64]message, len(instrs))
	for _, i := range instrs {
		w.names[i.int("id")] = i.text("name")
		w.shapes[i.int("id")] = i.message("shape")
	}
	for _, i := range instrs {
		if i.int("id") == c.int("root_id") {
			w.out.WriteString("ROOT ")
		}
		if err := w.instr(i); err != nil {
			return fmt.Errorf("%s: %w", i.text("name"), err)
		}
	}
	w.out.WriteString("}\n\n")
	return nil
}

// instr prints an instruction.
func (w *writer) instr(i message) error {
	shape, err := shapeText(i.message("shape"))
	if err != nil {
		return err
	}
	operands, err := w.operands(i, shape)
	if err != nil {
		return err
	}
	name, op := i.text("name"), i.text("opcode")
	fmt.Fprintf(&w.out, "%%%s = %s %s(%s)", name, shape, op, operands)
	for _, a := range attrs {
		text, err := a.text(w, i)
		if err != nil {
			return err
		}
		if text != "" {
			w.out.WriteString(", " + a.name + "=" + text)
		}
	}
	if err := w.callees(i); err != nil {
		return err
	}
	w.out.WriteByte('\n')
	return nil
}

// operands are the names of the operands, the number of a parameter or the value of
// a constant.
func (w *writer) operands(i message, shape string) (string, error) {
	switch hlo.Opcode(i.text("opcode")) {
	case hlo.OpParameter:
		return strconv.FormatInt(i.int("parameter_number"), 10), nil
	case hlo.OpConstant:
		// A message without constants is what XLA dumps of a module with large ones.
		if !i.has("literal") {
			return "{...}", nil
		}
		return literalText(i.message("literal"), shape)
	}
	var all []string
	for _, id := range i.ints("operand_ids") {
		name, ok := w.names[id]
		if !ok {
			return "", fmt.Errorf("operand %d is not in the computation", id)
		}
		all = append(all, "%"+name)
	}
	return strings.Join(all, ", "), nil
}

// calleeNames are the attributes that name the called computations of an operation,
// in their order in the message; to_apply of all others.
var calleeNames = map[hlo.Opcode][]string{
	hlo.OpFusion:           {"calls"},
	hlo.OpAsyncStart:       {"calls"},
	hlo.OpWhile:            {"body", "condition"},
	hlo.OpSelectAndScatter: {"select", "scatter"},
}

// callees prints the computations that an instruction calls, under the names that
// HLO text has for them.
func (w *writer) callees(i message) error {
	var all []string
	for _, id := range i.ints("called_computation_ids") {
		name, ok := w.computations[id]
		if !ok {
			return fmt.Errorf("computation %d is not in the module", id)
		}
		all = append(all, "%"+name)
	}
	op := hlo.Opcode(i.text("opcode"))
	names := calleeNames[op]
	if op == hlo.OpConditional && w.choosesByPred(i) {
		names = []string{"true_computation", "false_computation"}
	}
	switch {
	case len(all) == 0 || op == hlo.OpAsyncUpdate || op == hlo.OpAsyncDone:
	case op == hlo.OpConditional && names == nil:
		fmt.Fprintf(&w.out, ", branch_computations={%s}", strings.Join(all, ", "))
	case op == hlo.OpCustomCall:
		fmt.Fprintf(&w.out, ", called_computations={%s}", strings.Join(all, ", "))
	case names == nil:
		fmt.Fprintf(&w.out, ", to_apply=%s", all[0])
	case len(names) != len(all):
		return fmt.Errorf("%s calls %d computations, not %d", op, len(all), len(names))
	default:
		for k, name := range names {
			fmt.Fprintf(&w.out, ", %s=%s", name, all[k])
		}
	}
	return nil
}

// choosesByPred reports whether the first operand of a conditional is a pred; it is
// the number of a branch otherwise.
func (w *writer) choosesByPred(i message) bool {
	ids := i.ints("operand_ids")
	if len(ids) == 0 {
		return false
	}
	shape, ok := w.shapes[ids[0]]
	return ok && shape.word("element_type", "") == "pred"
}

// shapeText is a shape with its layout: an array, a tuple, a buffer, token[] or
// opaque[].
func shapeText(s message) (string, error) {
	dtype := s.word("element_type", "")
	switch dtype {
	case "tuple":
		return tupleText(s)
	case "buffer":
		text, err := tupleText(s)
		return "b" + text, err
	case "opaque_type":
		return "opaque[]", nil
	case "", "primitive_type_invalid":
		return "", fmt.Errorf("it has no shape")
	}
	dims := extentTexts(s)
	text := dtype + "[" + strings.Join(dims, ",") + "]"
	if s.has("layout") && len(dims) > 0 {
		text += layoutText(s.message("layout"))
	}
	return text, nil
}

// tupleText are the shapes of the elements in parentheses.
func tupleText(s message) (string, error) {
	var all []string
	for _, e := range s.messages("tuple_shapes") {
		text, err := shapeText(e)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return "(" + strings.Join(all, ", ") + ")", nil
}

// extentTexts are the extents, <=8 where one is a bound and ? where it has none, which
// the message has as a negative number.
func extentTexts(s message) (dims []string) {
	dynamic := s.list("is_dynamic_dimension")
	for k, n := range s.ints("dimensions") {
		text := strconv.FormatInt(n, 10)
		if k < len(dynamic) && dynamic[k].Bool() {
			if text = "<=" + text; n < 0 {
				text = "?"
			}
		}
		dims = append(dims, text)
	}
	return dims
}

// layoutText is a layout in braces: {1,0:T(8,128)(2,1)E(4)S(1)}. Tiles, padding,
// bits of an element and memory space are printed where they are not the default.
func layoutText(l message) string {
	text := "{" + join(l.ints("minor_to_major"), ",")
	rest := ""
	for k, t := range l.messages("tiles") {
		if k == 0 {
			rest += "T"
		}
		var sizes []string
		for _, n := range t.ints("dimensions") {
			size := strconv.FormatInt(n, 10)
			if n < 0 {
				size = "*" // combined with the next dimension
			}
			sizes = append(sizes, size)
		}
		rest += "(" + strings.Join(sizes, ",") + ")"
	}
	for _, part := range []struct {
		field, letter string
		absent        int64
	}{
		{"tail_padding_alignment_in_elements", "L", 1},
		{"element_size_in_bits", "E", 0},
		{"memory_space", "S", 0},
	} {
		if n := l.int(part.field); n != part.absent && n != 0 {
			rest += fmt.Sprintf("%s(%d)", part.letter, n)
		}
	}
	if rest != "" {
		rest = ":" + rest
	}
	return text + rest + "}"
}

// join prints numbers between separators, as lists of extents, dimensions and
// devices are written.
func join(numbers []int64, separator string) string {
	all := make([]string, len(numbers))
	for k, n := range numbers {
		all[k] = strconv.FormatInt(n, 10)
	}
	return strings.Join(all, separator)
}

// quote is a string of HLO text: in double quotes, in which a backslash comes before
// each of them and before itself.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
