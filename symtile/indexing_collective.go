package symtile

import "slices"

// Maps of collectives: besides the index, on which replica of the replica group
// it is. What depends on the replica that asks has a run-time variable
// "replica", its position in the group.

// maxReplicas bounds a replica group whose size the instruction does not say.
const maxReplicas = 1 << 20

// group is the size of the replica groups; 0 when it is not said, or differs.
func (x *indexer) group() int64 {
	groups := x.in.Attrs.ReplicaGroups
	if len(groups) == 0 {
		return 0
	}
	n := len(groups[0])
	if slices.ContainsFunc(groups, func(g []int64) bool { return len(g) != n }) {
		return 0
	}
	return int64(n)
}

// position is the place of the replica that asks in its group of n.
func (x *indexer) position(n int64) Expr {
	return x.r.RuntimeVar(Origin{Source: InstrSource{Instr: x.in, Replica: Asking}}, 0, n-1)
}

// unmoved is the identity on the operand that goes with the output.
func (x *indexer) unmoved() Map {
	if x.output < 0 || x.output >= len(x.in.Operands) || !slices.Equal(x.from(x.output), x.shape.Dims) {
		return x.unknown("the operand and the result have different extents")
	}
	return Map{Results: x.dims}
}

// all is a map that holds for every replica of a group of n.
func (x *indexer) all(n int64, m Map) Map {
	if m.State != Known {
		return m
	}
	if n == 0 {
		n, m.Over = maxReplicas, true
	}
	m.Ranges = x.ranges([]int64{n})
	return on(n, m.Ranges[0], m)
}

// on puts a map on a replica of a group of n; that of a group of one asks itself.
func on(n int64, replica Expr, m Map) Map {
	if n != 1 {
		m.Replica = replica
	}
	return m
}

// asks adds the position to the run-time variables.
func asks(position Expr, m Map) Map {
	m.Runtime = append(m.Runtime, position)
	return m
}

// replaced is index with dimension d replaced by e.
func replaced(indices []Expr, d int64, e Expr) []Expr {
	out := slices.Clone(indices)
	out[d] = e
	return out
}

// A sharding is an array cut into n shards along a dimension.
type sharding struct{ dim, shard, n int64 }

// sharded compares an array with its shard: equal extents but along the
// dimension of the instruction, and there a multiple that fits its groups.
func (x *indexer) sharded(whole, shard []int64) (sharding, bool) {
	dims := x.in.Attrs.Dimensions
	if len(dims) != 1 || dims[0] < 0 || dims[0] >= int64(len(whole)) || len(whole) != len(shard) {
		return sharding{}, false
	}
	s := sharding{dim: dims[0], shard: shard[dims[0]]}
	rest := slices.Clone(shard)
	rest[s.dim] = whole[s.dim]
	if s.shard == 0 || whole[s.dim]%s.shard != 0 || !slices.Equal(rest, whole) {
		return sharding{}, false
	}
	s.n = whole[s.dim] / s.shard
	return s, x.group() == 0 || x.group() == s.n
}

const notSharded = "the extents of the operand and the result, the dimension and the replica groups do not go together"

// alone is the map for the operand that goes with the output; the others of a
// variadic collective are not read.
func (x *indexer) alone(m Map) []Map {
	maps := make([]Map, len(x.in.Operands))
	for k := range maps {
		maps[k].State = Empty
	}
	if x.output < 0 || x.output >= len(maps) {
		return x.undefined("it has more results than operands")
	}
	maps[x.output] = m
	return maps
}

// mine is m when the operand goes with the output.
func (x *indexer) mine(m Map) Map {
	if x.operand != x.output {
		return Map{State: Empty}
	}
	return m
}

// fromShard is the index in the whole of an index of shard number k.
func (s sharding) fromShard(indices []Expr, k Expr) []Expr {
	return replaced(indices, s.dim, indices[s.dim].Add(k.Scale(s.shard)))
}

// toShard is the index in its shard, and the number of that.
func (s sharding) toShard(indices []Expr) (in []Expr, k Expr) {
	return replaced(indices, s.dim, indices[s.dim].Mod(s.shard)), indices[s.dim].Div(s.shard)
}

func operandsAllGather(x *indexer) []Map {
	if x.output < 0 || x.output >= len(x.in.Operands) {
		return x.undefined(notSharded)
	}
	s, ok := x.sharded(x.shape.Dims, x.from(x.output))
	if !ok {
		return x.undefined(notSharded)
	}
	in, k := s.toShard(x.dims)
	return x.alone(on(s.n, k, Map{Results: in}))
}

func usersAllGather(x *indexer) Map {
	if x.operand != x.output {
		return Map{State: Empty}
	}
	s, ok := x.sharded(x.shape.Dims, x.from(x.operand))
	if !ok {
		return x.unknown(notSharded)
	}
	position := x.position(s.n)
	return asks(position, x.all(s.n, Map{Results: s.fromShard(x.dims, position)}))
}

func operandsReduceScatter(x *indexer) []Map {
	if x.output < 0 || x.output >= len(x.in.Operands) {
		return x.undefined(notSharded)
	}
	s, ok := x.sharded(x.from(x.output), x.shape.Dims)
	if !ok {
		return x.undefined(notSharded)
	}
	position := x.position(s.n)
	return x.alone(asks(position, x.all(s.n, Map{Results: s.fromShard(x.dims, position)})))
}

func usersReduceScatter(x *indexer) Map {
	if x.operand != x.output {
		return Map{State: Empty}
	}
	s, ok := x.sharded(x.from(x.operand), x.shape.Dims)
	if !ok {
		return x.unknown(notSharded)
	}
	in, k := s.toShard(x.dims)
	return on(s.n, k, Map{Results: in})
}

func operandsAllReduce(x *indexer) []Map { return x.alone(x.all(x.group(), x.unmoved())) }

func usersAllReduce(x *indexer) Map { return x.mine(x.all(x.group(), x.unmoved())) }

// operandsCollectiveBroadcast: only the first replica of a group is read.
func operandsCollectiveBroadcast(x *indexer) []Map {
	m := x.unmoved()
	return x.alone(on(x.group(), x.r.Const(0), m))
}

func usersCollectiveBroadcast(x *indexer) Map {
	n := x.group()
	m := x.all(n, x.unmoved())
	if n == 0 {
		n = maxReplicas
	}
	position := x.position(n)
	m.Where = Require(position, 0, 0)
	return x.mine(asks(position, m))
}

// operandsCollectivePermute: from which replica is known at run time only; a
// replica without a source gets zeros.
func operandsCollectivePermute(x *indexer) []Map { return x.alone(x.permuted(PermuteSource)) }

func usersCollectivePermute(x *indexer) Map { return x.mine(x.permuted(PermuteTarget)) }

// permuted is the identity on the source or the target of the replica that asks.
func (x *indexer) permuted(role ReplicaRole) Map {
	pairs, m := x.in.Attrs.SourceTargets, x.unmoved()
	if len(pairs) == 0 || m.State != Known {
		m.State = max(m.State, Empty)
		return m
	}
	var ids []int64
	for _, p := range pairs {
		ids = append(ids, p[role-PermuteSource])
	}
	least := min(slices.Min(ids), slices.Max(ids)-1) // one id alone has to be the one that asks, too
	m.Replica = x.r.RuntimeVar(Origin{Source: InstrSource{Instr: x.in, Replica: role}}, least, slices.Max(ids))
	return asks(m.Replica, m)
}

// operandsAllToAll: block k of replica j goes to replica k as its block j.
func operandsAllToAll(x *indexer) []Map {
	if len(x.in.Attrs.Dimensions) == 0 {
		return x.exchanged()
	}
	m := x.blocks()
	maps := make([]Map, len(x.in.Operands))
	for k := range maps {
		maps[k] = m
	}
	return maps
}

func usersAllToAll(x *indexer) Map {
	if len(x.in.Attrs.Dimensions) > 0 {
		return x.blocks()
	}
	n := int64(len(x.in.Operands))
	position := x.position(n)
	return asks(position, on(n, x.r.Const(int64(x.operand)), Map{Results: x.dims, Where: Require(position, int64(x.output), int64(x.output))}))
}

// blocks is the exchange along a dimension of one array, the same both ways.
func (x *indexer) blocks() Map {
	n := x.group()
	if len(x.in.Operands) != 1 || !slices.Equal(x.from(0), x.shape.Dims) {
		return x.unknown(notSharded)
	}
	d := x.in.Attrs.Dimensions[0]
	if n == 0 || d < 0 || d >= int64(len(x.dims)) || x.shape.Dims[d]%n != 0 {
		return x.unknown("the replica groups do not say into how many blocks")
	}
	s := sharding{d, x.shape.Dims[d] / n, n}
	in, k := s.toShard(x.dims)
	position := x.position(n)
	return asks(position, on(n, k, Map{Results: s.fromShard(in, position)}))
}

// exchanged: array k of the result is what replica k has for the one that asks.
func (x *indexer) exchanged() []Map {
	n := int64(len(x.in.Operands))
	position := x.position(n)
	maps := make([]Map, n)
	for k := range maps {
		maps[k] = asks(position, on(n, x.r.Const(int64(x.output)), Map{Results: x.dims, Where: Require(position, int64(k), int64(k))}))
	}
	return maps
}
