// Package hlo reads HLO text, the form XLA dumps, and StableHLO text, the form
// JAX and PyTorch/XLA print; it prints HLO, gives every computation a
// fingerprint, and splits modules that are not fused yet into fusions.
//
// Parse takes HLO as whole modules, single computations and bare lists of
// instructions, separated by new lines or semicolons. Every declared shape is
// checked against the shape rule of its operation, so that what comes out can
// be trusted; errors say file, line and column, show the line and put a caret
// under the place. Operations without a row in the table of opcodes are an
// error; those only known by name are parsed with their attributes as text.
//
// # Forms of HLO text
//
// The text is that of every XLA since 2020, and of its tests:
//
//   - a shape may be left out where it follows from the operands (tuple(a, b),
//     add(p, q)); an operand may be written in place (negate(f32[] constant(1)))
//     or be an element of a tuple (t#0#1); a computation may stand in place of its
//     name (to_apply={…});
//   - constant(1) of an array is a broadcast scalar, as a splat of StableHLO is;
//   - fusion-start, call-start and the like are async-start of a computation with
//     that one operation in it;
//   - replica_groups in any notation become lists (package replicas);
//   - a source place given by number becomes file and line (package origin);
//   - b(f32[8]) is a buffer, which custom-calls pass on.
//
// An extent with a bound, f32[<=128,512], is taken at its bound and printed as it
// was: the canonical form has it, too.
//
// # Operations
//
// An operation is an Opcode, and what is known of each is one row of a table:
//
//   - its constant, which is its name in HLO text, and its operations of MLIR;
//   - how many operands it takes, and its shape rule;
//   - its Class: how elements of the result depend on the operands. Passes over
//     programs, such as the partition into fusions, ask for the class rather than
//     for a list of operations;
//   - its cost in flop for an element, for models of cost;
//   - its Traits: whether it only presents its operand in another shape (View),
//     needs no rounding (Exact), keeps whole numbers and their magnitude
//     (KeepsMagnitude), jumps (Discontinuous) or may be reassociated (Monoid).
//
// What an operation computes is in kernels/reference, keyed by the opcode, and
// each backend has its code, or the reason that it has none. A test of the module
// root tries every row everywhere and names the tables that do not know it. So a new
// elementwise operation is a row here, its semantics, and its code in each
// backend.
//
// # StableHLO
//
// Text whose first token opens an MLIR module or function is read as StableHLO
// into the same Module: the same text in either language has one fingerprint.
// Accepted are
//
//   - module @name attributes {…} { func.func public @main(…) -> (…) {…} … },
//     functions alone, and all of it in generic form; attributes of modules,
//     functions, arguments and results, aliases (#map) and metadata ({-# … #-})
//     are passed over; locations of operations, loc(…) and #loc, become
//     metadata={op_name=… source_file=… source_line=…}. The entry is @main, or
//     the only function that is not private.
//   - operations of the stablehlo and mhlo dialects, pretty or generic
//     ("stablehlo.add"(…) <{…}> ({…}) {…} : …), with results %0, %0:2, %a, %b:
//     elementwise and complex arithmetic; constant, iota, broadcast_in_dim,
//     broadcast, reshape, transpose, slice, pad, concatenate, reverse, convert,
//     bitcast_convert, reduce_precision, compare, select, clamp; dot,
//     dot_general with precision and algorithm, convolution; reduce (applies,
//     reducer or a region), reduce_window, select_and_scatter, sort, map;
//     gather, scatter, dynamic_slice, dynamic_update_slice; tuple,
//     get_tuple_element, optimization_barrier; while, if, case; custom_call,
//     composite; rng, rng_bit_generator, fft, cholesky, triangular_solve,
//     batch_norm_*; set_dimension_size; all_gather, all_reduce, all_to_all, reduce_scatter,
//     collective_permute, collective_broadcast, replica_id, partition_id,
//     create_token, after_all, get_dimension_size.
//   - of chlo what HLO has (erf, acos … tan, top_k), erf_inv, which is erf-inv here,
//     or what is a few of HLO's operations
//     (square, atan, erfc, lgamma, digamma, next_after, is_inf, is_pos_inf,
//     is_neg_inf, broadcast_add and so on);
//     func.call and func.return; arith.constant; sdy.mesh, sharding_constraint
//     and reshard, which change no value, are passed over.
//   - linalg.pack and linalg.unpack, or tensor.pack and tensor.unpack, of tensors,
//     as pad, reshape, transpose, slice; tensor.empty.
//   - element types i1 (pred), iN, siN, uiN, f16, bf16, f32, f64, the f8 and f4
//     types, complex<f32>, complex<f64>; tensor, tuple, !stablehlo.token.
//   - values dense<…>: splats (a broadcast scalar in HLO, as XLA writes it),
//     lists, true and false, (re, im), bits in hexadecimal, memory as "0x…", and
//     dense_resource<…> (elided).
//
// What becomes of it is what XLA makes of it: regions are computations; several
// results are a tuple; constants a region uses are copied into it, and other
// values are carried along by while and passed by if and case; a composite is a
// call of its decomposition; scalar conditions and bounds of select and clamp
// are broadcast; a dimension of extent 1 that broadcast_in_dim grows is dropped
// by a reshape first.
//
// A manual_computation of sdy is a call of its body, the program of one device, between
// custom-calls that stand for the steps from arrays to parts of them and back. Host
// transfers and deprecated operations are custom-calls, too; Instr.Unknown says why.
//
// Elements of quantized types are opaque: they are read, and in no fusion.
//
// Refused, with a reason: encodings other than bounds, blocks that branch, bytecode.
//
// # Canonical form
//
// Canonical prints a computation so that two of them have the same text
// exactly when they compute the same thing in the same way, and the fingerprint
// is the SHA-256 of that text:
//
//   - parameters come first, by number; then what the root needs, in the
//     depth-first order of operands. Instructions nobody needs are gone.
//   - instructions are named v0, v1, … by position, computations c0, c1, … as
//     they are met, callees after callers; equal callees are one.
//   - metadata, frontend_attributes, sharding, ids, a fusion's kind and
//     backend_config are gone; a custom-call's backend_config is what it is,
//     and stays. Every other attribute stays, typed ones in a fixed order,
//     the rest by name.
//   - a layout is printed when it is not the default, numbers in the shortest
//     form that reads back.
//
// So renaming, or re-ordering independent instructions, changes nothing, and
// changing a shape, type, layout, literal, attribute or the order of operands
// does. The canonical text is HLO and parses back to itself.
//
// # Open extents
//
// A text may leave extents of parameters open, tensor<?x128xf32> or f32[?,128].
// ParseFor takes those of the entry's parameters and finds the others, with the numbers
// that the program computes of them; refinement.go says how. What depends on an extent
// that is not given is a custom-call, whose Unknown says which, and its value a
// token where the shape is not known. All shapes of a module that was parsed are known.
package hlo
