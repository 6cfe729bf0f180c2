package hloproto

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An attr is an attribute of HLO text; its text is "" where an instruction has none.
type attr struct {
	name string
	text func(*writer, message) (string, error)
}

// of is an attribute that cannot fail.
func of(name string, text func(message) string) attr {
	return attr{name, func(_ *writer, i message) (string, error) {
		return text(i), nil
	}}
}

// listAttr is a list of numbers in braces, of the field of that name when it is not
// empty.
func listAttr(name string) attr {
	return of(name, func(i message) string {
		if all := i.ints(name); len(all) > 0 {
			return braces(all)
		}
		return ""
	})
}

// wordAttr is a word that a field holds as it is in HLO text; absent when empty.
func wordAttr(name, field string) attr {
	return of(name, func(i message) string {
		return i.text(field)
	})
}

// numberAttr is a number that one operation always has, 0 included.
func numberAttr(name, field string, op hlo.Opcode) attr {
	number := func(i message) string {
		return strconv.FormatInt(i.int(field), 10)
	}
	return isOp(of(name, number), op)
}

// fieldsOf are the attributes that are lists of numbers of a message in an
// instruction, as name and field. They are printed when the message is there, empty
// lists included.
func fieldsOf(part string, fields ...[2]string) (all []attr) {
	for _, f := range fields {
		all = append(all, of(f[0], func(i message) string {
			if !i.has(part) {
				return ""
			}
			return braces(i.message(part).ints(f[1]))
		}))
	}
	return all
}

// intAttr is a number that is not the one it has when it is left out; a message has
// 0 for what is not set.
func intAttr(name, field string, absent int64) attr {
	return of(name, func(i message) string {
		if n := i.int(field); n != absent && n != 0 {
			return strconv.FormatInt(n, 10)
		}
		return ""
	})
}

// flagAttr is true where it is set.
func flagAttr(name string) attr {
	return of(name, func(i message) string {
		if i.flag(name) {
			return "true"
		}
		return ""
	})
}

// textAttr is a string in quotes.
func textAttr(name string) attr {
	return of(name, func(i message) string {
		if text := i.text(name); text != "" {
			return quote(text)
		}
		return ""
	})
}

// braces are numbers in braces.
func braces(numbers []int64) string {
	return "{" + join(numbers, ",") + "}"
}

// isOp is an attribute of some operations only: others have its field, too, at its
// zero value or without a meaning.
func isOp(a attr, ops ...hlo.Opcode) attr {
	return attr{a.name, func(w *writer, i message) (string, error) {
		if !slices.Contains(ops, hlo.Opcode(i.text("opcode"))) {
			return "", nil
		}
		return a.text(w, i)
	}}
}

// attrs are the attributes in the order in which they are printed. Those that say
// nothing about what is computed, such as sharding, are left out, but for what
// people know a fusion by.
var attrs = slices.Concat([]attr{
	// What the elements of the result are made of.
	of("dimensions", dimensions),
	isOp(of("iota_dimension", iotaDimension), hlo.OpIota),
	numberAttr("index", "tuple_index", hlo.OpGetTupleElement),
	of("slice", slice),
	of("padding", padding),
	of("window", window),
	of("dim_labels", dimLabels),
	isOp(intAttr("feature_group_count", "feature_group_count", 1), hlo.OpConvolution),
	isOp(intAttr("batch_group_count", "batch_group_count", 1), hlo.OpConvolution),
	listAttr("dynamic_slice_sizes"),
	wordAttr("direction", "comparison_direction"),
	isOp(of("type", totalOrder), hlo.OpCompare),
	wordAttr("kind", "fusion_kind"),
},
	// The dimensions that a dot pairs.
	fieldsOf(
		"dot_dimension_numbers",
		[2]string{"lhs_batch_dims", "lhs_batch_dimensions"},
		[2]string{"lhs_contracting_dims", "lhs_contracting_dimensions"},
		[2]string{"rhs_batch_dims", "rhs_batch_dimensions"},
		[2]string{"rhs_contracting_dims", "rhs_contracting_dimensions"},
	),
	// How indices and slices make the result of a gather.
	fieldsOf(
		"gather_dimension_numbers",
		[2]string{"offset_dims", "offset_dims"},
		[2]string{"collapsed_slice_dims", "collapsed_slice_dims"},
		[2]string{"start_index_map", "start_index_map"},
		[2]string{"operand_batching_dims", "operand_batching_dims"},
		[2]string{"start_indices_batching_dims", "start_indices_batching_dims"},
	),
	// How indices and updates change the operand of a scatter.
	fieldsOf(
		"scatter_dimension_numbers",
		[2]string{"update_window_dims", "update_window_dims"},
		[2]string{"inserted_window_dims", "inserted_window_dims"},
		[2]string{"scatter_dims_to_operand_dims", "scatter_dims_to_operand_dims"},
		[2]string{"input_batching_dims", "input_batching_dims"},
		[2]string{"scatter_indices_batching_dims", "scatter_indices_batching_dims"},
	),
	[]attr{
		of("index_vector_dim", indexVectorDim),
		isOp(of("slice_sizes", sliceSizes), hlo.OpGather),
		flagAttr("indices_are_sorted"),
		flagAttr("unique_indices"),
		// Which devices a collective joins.
		intAttr("channel_id", "channel_id", 0),
		of("replica_groups", replicaGroups),
		of("source_target_pairs", sourceTargets),
		flagAttr("use_global_device_ids"),
		// How exact the arithmetic is.
		of("operand_precision", operandPrecision),
		of("algorithm", algorithm),
		of("result_accuracy", resultAccuracy),
		intAttr("exponent_bits", "exponent_bits", 0),
		numberAttr("mantissa_bits", "mantissa_bits", hlo.OpReducePrecision),
		// Operations that are opaque here: sorts, transforms, solvers, generators.
		flagAttr("is_stable"),
		isOp(of("fft_type", fftType), hlo.OpFft),
		listAttr("fft_length"),
		isOp(of("distribution", distribution), hlo.OpRng),
		solverFlag("left_side"),
		solverFlag("lower"),
		solverFlag("unit_diagonal"),
		intAttr("delta", "delta", 0),
		intAttr("k", "k", 0),
		isOp(flagAttr("largest"), hlo.OpTopK),
		// Routines of libraries.
		textAttr("custom_call_target"),
		flagAttr("custom_call_has_side_effect"),
		isOp(of("api_version", apiVersion), hlo.OpCustomCall),
		isOp(attr{"operand_layout_constraints", layoutConstraints}, hlo.OpCustomCall),
		of("output_to_operand_aliasing", aliasing),
		textAttr("async_execution_thread"),
		// What people and compilers noted.
		of("frontend_attributes", frontendAttributes),
		of("metadata", metadata),
		of("backend_config", backendConfig),
	},
)

// dimensions is the list of broadcast, reduce and the like, which may be empty; an
// iota has one of another name.
func dimensions(i message) string {
	all := i.ints("dimensions")
	switch hlo.Opcode(i.text("opcode")) {
	case hlo.OpIota:
		return ""
	case hlo.OpBroadcast, hlo.OpReduce, hlo.OpTranspose, hlo.OpReverse, hlo.OpMap:
		return braces(all)
	}
	if len(all) == 0 {
		return ""
	}
	return braces(all)
}

// iotaDimension is the dimension along which an iota counts.
func iotaDimension(i message) string {
	return join(i.ints("dimensions"), ",")
}

// sliceSizes are those of a gather, one for each dimension of the operand.
func sliceSizes(i message) string {
	return braces(i.ints("gather_slice_sizes"))
}

// fftType is the kind of transform, in upper case as XLA prints it.
func fftType(i message) string {
	return strings.ToUpper(i.word("fft_type", ""))
}

// distribution is what a generator draws from.
func distribution(i message) string {
	return i.word("distribution", "")
}

// solverFlag is a flag of cholesky and triangular-solve that is set.
func solverFlag(name string) attr {
	return of(name, func(i message) string {
		set := i.message("triangular_solve_options").flag(name) ||
			name == "lower" && i.message("cholesky_options").flag(name)
		if set {
			return "true"
		}
		return ""
	})
}

// slice is {[start:limit:stride], …}, one range for each dimension; a stride of 1 is
// left out.
func slice(i message) string {
	var all []string
	for _, s := range i.messages("slice_dimensions") {
		text := fmt.Sprintf("[%d:%d", s.int("start"), s.int("limit"))
		if stride := s.int("stride"); stride > 1 {
			text += fmt.Sprintf(":%d", stride)
		}
		all = append(all, text+"]")
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// padding is low_high_interior for each dimension of a pad; low and high crop when
// they are negative.
func padding(i message) string {
	var all []string
	for _, d := range i.message("padding_config").messages("dimensions") {
		low, high := d.int("edge_padding_low"), d.int("edge_padding_high")
		inside := d.int("interior_padding")
		all = append(all, fmt.Sprintf("%d_%d_%d", low, high, inside))
	}
	return strings.Join(all, "x")
}

// window is {size=… stride=… pad=… lhs_dilate=… rhs_dilate=… rhs_reversal=…}, all of
// it: the reader leaves out again what is the default.
func window(i message) string {
	// Each list has a word for each dimension.
	var size, stride, pad, base, dilate, reversal []string
	for _, d := range i.message("window").messages("dimensions") {
		size = append(size, strconv.FormatInt(d.int("size"), 10))
		stride = append(stride, strconv.FormatInt(d.int("stride"), 10))
		low, high := d.int("padding_low"), d.int("padding_high")
		pad = append(pad, fmt.Sprintf("%d_%d", low, high))
		base = append(base, strconv.FormatInt(d.int("base_dilation"), 10))
		dilate = append(dilate, strconv.FormatInt(d.int("window_dilation"), 10))
		reversed := "0"
		if d.flag("window_reversal") {
			reversed = "1"
		}
		reversal = append(reversal, reversed)
	}
	if size == nil {
		return ""
	}
	text := "size=" + strings.Join(size, "x")
	for _, word := range []struct {
		name   string
		values []string
	}{
		{"stride", stride},
		{"pad", pad},
		{"lhs_dilate", base},
		{"rhs_dilate", dilate},
		{"rhs_reversal", reversal},
	} {
		text += " " + word.name + "=" + strings.Join(word.values, "x")
	}
	return "{" + text + "}"
}

// dimLabels is b01f_01io->b01f: input, kernel and output.
func dimLabels(i message) string {
	if !i.has("convolution_dimension_numbers") {
		return ""
	}
	c := i.message("convolution_dimension_numbers")
	input := c.labels("bf", "input_batch", "input_feature", "input_spatial")
	kernel := c.labels("io", "kernel_input_feature", "kernel_output_feature", "kernel_spatial")
	output := c.labels("bf", "output_batch", "output_feature", "output_spatial")
	return input + "_" + kernel + "->" + output
}

// labels names the dimensions of one side of a convolution: two letters, for the
// fields x and y, and digits for the spatial ones in order.
func (c message) labels(letters, x, y, spatial string) string {
	dims := c.ints(spatial + "_dimensions")
	text := make([]byte, len(dims)+2)
	// A number out of range leaves a zero byte, which the reader refuses.
	set := func(at int64, label byte) {
		if at >= 0 && at < int64(len(text)) {
			text[at] = label
		}
	}
	set(c.int(x+"_dimension"), letters[0])
	set(c.int(y+"_dimension"), letters[1])
	for k, d := range dims {
		set(d, byte('0'+k))
	}
	return string(text)
}

// totalOrder is the type of a comparison when it is not that of its operands. The
// message always has one; text only says it where it is not implied.
func totalOrder(i message) string {
	if i.text("comparison_type") == "TOTALORDER" {
		return "TOTALORDER"
	}
	return ""
}

// indexVectorDim is that of a gather or scatter: the dimension of the indices along
// which an index vector lies.
func indexVectorDim(i message) string {
	for _, part := range []string{"gather_dimension_numbers", "scatter_dimension_numbers"} {
		if i.has(part) {
			return strconv.FormatInt(i.message(part).int("index_vector_dim"), 10)
		}
	}
	return ""
}

// replicaGroups are the groups of a collective, as a list or [groups,size]<=[…]. They
// have been in three fields, of which the newest that is there counts.
func replicaGroups(i message) string {
	groups := i.messages("replica_groups")
	if i.has("collective_device_list") {
		groups = i.message("collective_device_list").messages("replica_groups")
	}
	if i.has("iota_collective_device_list") {
		iota := i.message("iota_collective_device_list")
		shape := []int64{
			iota.int("num_replica_groups"),
			iota.int("num_devices_per_group"),
		}
		dims := iota.ints("iota_reshape_dims")
		text := "[" + join(shape, ",") + "]<=[" + join(dims, ",") + "]"
		if order := iota.ints("iota_transpose_perm"); len(order) > 1 {
			text += "T(" + join(order, ",") + ")"
		}
		return text
	}
	var all []string
	for _, g := range groups {
		all = append(all, braces(g.ints("replica_ids")))
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, ",") + "}"
}

// sourceTargets are the pairs of a collective-permute: the device that sends, and the
// one that receives.
func sourceTargets(i message) string {
	var all []string
	for _, p := range i.messages("source_target_pairs") {
		pair := []int64{p.int("source"), p.int("target")}
		all = append(all, braces(pair))
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, ",") + "}"
}

// operandPrecision is {highest,default} where it is not the default of all operands,
// as XLA prints it.
func operandPrecision(i message) string {
	p := i.message("precision_config")
	var all []string
	special := false
	for _, v := range p.list("operand_precision") {
		all = append(all, enumWord(p.field("operand_precision"), v.Enum(), ""))
		special = special || v.Enum() != 0
	}
	if !special {
		return ""
	}
	return "{" + strings.Join(all, ",") + "}"
}

// algorithm is how a dot multiplies (dot_bf16_bf16_f32), or how a generator draws
// (rng_three_fry).
func algorithm(i message) string {
	if p := i.message("precision_config"); p.has("algorithm") {
		return p.word("algorithm", "ALG_")
	}
	if hlo.Opcode(i.text("opcode")) == hlo.OpRngBitGenerator {
		return i.word("rng_algorithm", "")
	}
	return ""
}

// resultAccuracy is a mode or a tolerance that is asked for, of an elementwise
// function such as exponential.
func resultAccuracy(i message) string {
	r := i.message("result_accuracy")
	if r.has("tolerance") {
		t := r.message("tolerance")
		return fmt.Sprintf(
			"{tolerance={atol=%g, rtol=%g, ulps=%d}}",
			t.float("atol"), t.float("rtol"), t.int("ulps"),
		)
	}
	if mode := r.word("mode", ""); r.has("mode") && mode != "default" {
		return "{mode=" + mode + "}"
	}
	return ""
}

// frontendAttributes are names and values, sorted by name: a message has them in no
// order.
func frontendAttributes(i message) string {
	var all []string
	for _, a := range i.message("frontend_attributes").messages("map") {
		all = append(all, a.text("key")+"="+quote(a.text("value")))
	}
	if all == nil {
		return ""
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ",") + "}"
}

// metadata is the operation of the framework and the place in the user's program,
// which newer versions of XLA give by the number of a frame.
func metadata(i message) string {
	m := i.message("metadata")
	var all []string
	for _, name := range []string{"op_type", "op_name", "source_file"} {
		if text := m.text(name); text != "" {
			all = append(all, name+"="+quote(text))
		}
	}
	for _, name := range []string{"source_line", "stack_frame_id"} {
		if n := m.int(name); n != 0 {
			all = append(all, fmt.Sprintf("%s=%d", name, n))
		}
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, " ") + "}"
}

// apiVersion is how a custom-call is called, where it is not the first way.
func apiVersion(i message) string {
	switch v := i.word("custom_call_api_version", ""); v {
	case "", "api_version_unspecified", "api_version_original":
		return ""
	default:
		return strings.ToUpper(v)
	}
}

// layoutConstraints are the shapes with layouts that a custom-call asks for, one for
// each operand.
func layoutConstraints(_ *writer, i message) (string, error) {
	if !i.flag("constrain_layout") {
		return "", nil
	}
	var all []string
	for _, s := range i.messages("operand_shapes_with_layout") {
		text, err := shapeText(s)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return "{" + strings.Join(all, ", ") + "}", nil
}

// aliasing says which outputs are written where operands were: {{0}: (1, {})} is
// element 0 of the result in the place of operand 1.
func aliasing(i message) string {
	var all []string
	for _, a := range i.messages("output_operand_aliasing") {
		output := braces(a.ints("output_shape_index"))
		operand := braces(a.ints("operand_shape_index"))
		all = append(all, fmt.Sprintf("%s: (%d, %s)", output, a.int("operand_index"), operand))
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// backendConfig is a dictionary as it is, anything else a string, as XLA prints it:
// a custom-call may have any text there.
func backendConfig(i message) string {
	text := i.text("backend_config")
	if text == "" || isDictionary(text) {
		return text
	}
	return quote(text)
}

// closing are the brackets with those that close them.
var closing = map[byte]byte{
	'{': '}',
	'[': ']',
	'(': ')',
}

// isDictionary reports whether text is in braces, and brackets and quotes in it are
// closed, so that it ends where it should in HLO text.
func isDictionary(text string) bool {
	var open []byte
	for k := 0; k < len(text); k++ {
		switch c := text[k]; c {
		case '"':
			end := strings.IndexByte(text[k+1:], '"')
			if end < 0 || strings.Contains(text[k+1:k+1+end], `\`) {
				return false
			}
			k += end + 1
		case '{', '[', '(':
			open = append(open, closing[c])
		case '}', ']', ')':
			if len(open) == 0 || open[len(open)-1] != c {
				return false
			}
			open = open[:len(open)-1]
			if len(open) == 0 && k < len(text)-1 {
				return false
			}
		case '/', '\n':
			return false
		}
	}
	return text[0] == '{' && len(open) == 0
}
