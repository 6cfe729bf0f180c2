package indexing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// Maps of collectives say, besides the index of an element, on which replica of
// the replica group it is. Where that depends on the replica that executes the
// instruction, the map has a run-time variable "replica": the position of the
// executing replica in its group.
//
// For an all-gather of f32[4] to f32[16] along dimension 0 over 4 replicas, the
// operand's map is (d0) -> (d0 mod 4) on replica d0 floordiv 4.

// maxReplicas bounds a replica group whose size the instruction does not say.
const maxReplicas = 1 << 20

// groupSize is the size of the replica groups; 0 where it is not stated, or
// differs.
func (x *indexer) groupSize() int64 {
	groups := x.in.Attrs.ReplicaGroups
	if len(groups) == 0 {
		return 0
	}
	n := len(groups[0])
	if slices.ContainsFunc(groups, func(g []int64) bool {
		return len(g) != n
	}) {
		return 0
	}
	return int64(n)
}

// position is the run-time variable for the position of the executing replica
// in its group of n.
func (x *indexer) position(n int64) index.Expr {
	return x.r.RuntimeVar(
		index.Origin{Source: InstrSource{Instr: x.in, Replica: GroupPosition}},
		0,
		n-1,
	)
}

// identityCollective is the identity on the operand that belongs to the output.
func (x *indexer) identityCollective() index.Map {
	if x.output < 0 ||
		x.output >= len(x.in.Operands) ||
		!slices.Equal(x.operandDims(x.output), x.shape.Dims) {
		return x.unknown("the operand and the result have different extents")
	}
	return index.Map{Results: x.dims}
}

// forAllReplicas is a map that holds for every replica of a group of n.
func (x *indexer) forAllReplicas(n int64, m index.Map) index.Map {
	if m.State != index.StateKnown {
		return m
	}
	if n == 0 {
		n, m.Approximate = maxReplicas, true
	}
	m.Ranges = x.ranges([]int64{n})
	return mapOnReplica(n, m.Ranges[0], m)
}

// mapOnReplica makes the results of a map elements of the given replica of a
// group of n. The only replica of a group of one is the executing one.
func mapOnReplica(n int64, replica index.Expr, m index.Map) index.Map {
	if n != 1 {
		m.Replica = replica
	}
	return m
}

// withRuntime adds the position to the run-time variables of a map.
func withRuntime(position index.Expr, m index.Map) index.Map {
	m.Runtime = append(m.Runtime, position)
	return m
}

// replaced is a copy of indices with dimension d replaced by e.
func replaced(indices []index.Expr, d int64, e index.Expr) []index.Expr {
	out := slices.Clone(indices)
	out[d] = e
	return out
}

// A sharding is an array that is divided into n shards of extent shard along
// dimension dim.
type sharding struct{ dim, shard, n int64 }

// sharded compares an array with its shard. Their extents are equal, except
// along the dimension of the instruction, where that of the array is a multiple
// that fits the replica groups.
func (x *indexer) sharded(whole, shard []int64) (sharding, bool) {
	dims := x.in.Attrs.Dimensions
	if len(dims) != 1 || dims[0] < 0 ||
		dims[0] >= int64(len(whole)) ||
		len(whole) != len(shard) {
		return sharding{}, false
	}
	s := sharding{
		dim:   dims[0],
		shard: shard[dims[0]],
	}
	rest := slices.Clone(shard)
	rest[s.dim] = whole[s.dim]
	if s.shard == 0 ||
		whole[s.dim]%s.shard != 0 ||
		!slices.Equal(rest, whole) {
		return sharding{}, false
	}
	s.n = whole[s.dim] / s.shard
	return s, x.groupSize() == 0 ||
		x.groupSize() == s.n
}

// notSharded is the reason for collectives whose shapes do not fit.
const notSharded = "the extents of the operand and the result, the dimension and the replica groups do not go together"

// onlyForOutput is the map for the operand that belongs to the output; a
// variadic collective does not read the others for it.
func (x *indexer) onlyForOutput(m index.Map) []index.Map {
	maps := make([]index.Map, len(x.in.Operands))
	for k := range maps {
		maps[k].State = index.StateEmpty
	}
	if x.output < 0 || x.output >= len(maps) {
		return x.undefined("it has more results than operands")
	}
	maps[x.output] = m
	return maps
}

// ifReadByOutput is m if the operand belongs to the output, else an empty map.
func (x *indexer) ifReadByOutput(m index.Map) index.Map {
	if x.operand != x.output {
		return index.Map{State: index.StateEmpty}
	}
	return m
}

// fromShard is the index in the whole array of an index in shard k.
func (s sharding) fromShard(indices []index.Expr, k index.Expr) []index.Expr {
	return replaced(
		indices,
		s.dim,
		indices[s.dim].Add(k.Scale(s.shard)),
	)
}

// toShard is the index within its shard, and the number of the shard, of an
// index in the whole array.
func (s sharding) toShard(indices []index.Expr) (in []index.Expr, k index.Expr) {
	return replaced(
		indices, s.dim, indices[s.dim].Mod(s.shard),
	), indices[s.dim].Div(s.shard)
}

// operandsAllGather: an element comes from the replica whose number is that of
// its shard.
func operandsAllGather(x *indexer) []index.Map {
	if x.output < 0 ||
		x.output >= len(x.in.Operands) {
		return x.undefined(notSharded)
	}
	s, ok := x.sharded(
		x.shape.Dims, x.operandDims(x.output),
	)
	if !ok {
		return x.undefined(notSharded)
	}
	in, k := s.toShard(x.dims)
	return x.onlyForOutput(mapOnReplica(s.n, k, index.Map{Results: in}))
}

// usersAllGather: every replica of the group has the element, at the place of
// the executing replica's shard.
func usersAllGather(x *indexer) index.Map {
	if x.operand != x.output {
		return index.Map{State: index.StateEmpty}
	}
	s, ok := x.sharded(
		x.shape.Dims, x.operandDims(x.operand),
	)
	if !ok {
		return x.unknown(notSharded)
	}
	position := x.position(s.n)
	return withRuntime(
		position,
		x.forAllReplicas(s.n, index.Map{
			Results: s.fromShard(x.dims, position),
		}),
	)
}

// operandsReduceScatter: an element is reduced over the same element of all
// replicas, in the shard of the executing replica.
func operandsReduceScatter(x *indexer) []index.Map {
	if x.output < 0 ||
		x.output >= len(x.in.Operands) {
		return x.undefined(notSharded)
	}
	s, ok := x.sharded(
		x.operandDims(x.output), x.shape.Dims,
	)
	if !ok {
		return x.undefined(notSharded)
	}
	position := x.position(s.n)
	return x.onlyForOutput(withRuntime(position, x.forAllReplicas(s.n, index.Map{
		Results: s.fromShard(x.dims, position),
	})))
}

// usersReduceScatter: an element is used by the replica whose shard it is in.
func usersReduceScatter(x *indexer) index.Map {
	if x.operand != x.output {
		return index.Map{State: index.StateEmpty}
	}
	s, ok := x.sharded(
		x.operandDims(x.operand), x.shape.Dims,
	)
	if !ok {
		return x.unknown(notSharded)
	}
	in, k := s.toShard(x.dims)
	return mapOnReplica(
		s.n, k, index.Map{Results: in},
	)
}

// operandsAllReduce: an element is reduced over the same element of all
// replicas.
func operandsAllReduce(x *indexer) []index.Map {
	return x.onlyForOutput(x.forAllReplicas(x.groupSize(), x.identityCollective()))
}

// usersAllReduce: an element is used by the same element on all replicas.
func usersAllReduce(x *indexer) index.Map {
	return x.ifReadByOutput(x.forAllReplicas(x.groupSize(), x.identityCollective()))
}

// operandsCollectiveBroadcast: only the first replica of a group is read.
func operandsCollectiveBroadcast(x *indexer) []index.Map {
	m := x.identityCollective()
	return x.onlyForOutput(mapOnReplica(x.groupSize(), x.r.Const(0), m))
}

// usersCollectiveBroadcast: the elements of the first replica are used by all.
func usersCollectiveBroadcast(x *indexer) index.Map {
	n := x.groupSize()
	m := x.forAllReplicas(n, x.identityCollective())
	if n == 0 {
		n = maxReplicas
	}
	position := x.position(n)
	m.Where = index.Require(position, 0, 0)
	return x.ifReadByOutput(withRuntime(position, m))
}

// operandsCollectivePermute: which replica is read is known at run time only; a
// replica without a source gets zeros.
func operandsCollectivePermute(x *indexer) []index.Map {
	return x.onlyForOutput(x.permuted(PermuteSource))
}

// usersCollectivePermute: which replica uses an element is known at run time
// only.
func usersCollectivePermute(x *indexer) index.Map {
	return x.ifReadByOutput(x.permuted(PermuteTarget))
}

// permuted is the identity on the source or the target of the executing
// replica.
func (x *indexer) permuted(role ReplicaRole) index.Map {
	pairs, m := x.in.Attrs.SourceTargets, x.identityCollective()
	if len(pairs) == 0 || m.State != index.StateKnown {
		m.State = max(m.State, index.StateEmpty)
		return m
	}
	var ids []int64
	for _, p := range pairs {
		ids = append(ids, p[role-PermuteSource])
	}
	// The range of a single id is widened: its variable must not be a constant.
	minID := min(slices.Min(ids), slices.Max(ids)-1)
	m.Replica = x.r.RuntimeVar(
		index.Origin{Source: InstrSource{Instr: x.in, Replica: role}},
		minID,
		slices.Max(ids),
	)
	return withRuntime(m.Replica, m)
}

// operandsAllToAll: block k of replica j becomes block j of replica k.
func operandsAllToAll(x *indexer) []index.Map {
	if len(x.in.Attrs.Dimensions) == 0 {
		return x.exchanged()
	}
	m := x.blocks()
	maps := make([]index.Map, len(x.in.Operands))
	for k := range maps {
		maps[k] = m
	}
	return maps
}

// usersAllToAll is operandsAllToAll, which is its own inverse.
func usersAllToAll(x *indexer) index.Map {
	if len(x.in.Attrs.Dimensions) > 0 {
		return x.blocks()
	}
	n := int64(len(x.in.Operands))
	position := x.position(n)
	return withRuntime(
		position,
		mapOnReplica(n, x.r.Const(int64(x.operand)), index.Map{
			Results: x.dims,
			Where:   index.Require(position, int64(x.output), int64(x.output)),
		}),
	)
}

// blocks is the exchange along a dimension of one array, the same in both
// directions.
func (x *indexer) blocks() index.Map {
	n := x.groupSize()
	if len(x.in.Operands) != 1 ||
		!slices.Equal(x.operandDims(0), x.shape.Dims) {
		return x.unknown(notSharded)
	}
	d := x.in.Attrs.Dimensions[0]
	if n == 0 || d < 0 ||
		d >= int64(len(x.dims)) ||
		x.shape.Dims[d]%n != 0 {
		return x.unknown("the replica groups do not say into how many blocks")
	}
	s := sharding{d, x.shape.Dims[d] / n, n}
	in, k := s.toShard(x.dims)
	position := x.position(n)
	return withRuntime(
		position,
		mapOnReplica(n, k, index.Map{Results: s.fromShard(in, position)}),
	)
}

// exchanged: array k of the result is what replica k has for the executing one.
func (x *indexer) exchanged() []index.Map {
	n := int64(len(x.in.Operands))
	position := x.position(n)
	maps := make([]index.Map, n)
	for k := range maps {
		maps[k] = withRuntime(
			position,
			mapOnReplica(n, x.r.Const(int64(x.output)), index.Map{
				Results: x.dims,
				Where:   index.Require(position, int64(k), int64(k)),
			}),
		)
	}
	return maps
}
