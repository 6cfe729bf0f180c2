package index

// Maps of collectives also say on which replica the results are. Replica is the
// position of that replica in the replica group of the collective (the replica
// id for a collective-permute); a run-time variable named "replica" is the
// position of the replica that asks.

// Replicated reports whether the results may be on another replica.
func (m Map) Replicated() bool { return m.Replica != Expr{} }

// replicaAsResult makes the replica the last result, for what treats all
// results alike; resultAsReplica puts it back.
func (m Map) replicaAsResult() Map {
	if m.Replicated() {
		m.Results = append(
			m.Results[:len(m.Results):len(m.Results)],
			m.Replica,
		)
		m.Replica = Expr{}
	}
	return m
}

func (m Map) resultAsReplica() Map {
	n := len(m.Results) - 1
	m.Results, m.Replica = m.Results[:n:n],
		m.Results[n]
	return m
}

func (s *Substitution) applyReplica(e Expr) Expr {
	if e == (Expr{}) {
		return e
	}
	return s.Apply(e)
}

// composeReplica is the replica of second after first, whichever has one.
func composeReplica(first, second Map, s *Substitution) Expr {
	if second.Replicated() {
		return s.Apply(second.Replica)
	}
	return first.Replica
}
