package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// An answer is what an engine makes of a chain: a line of the files that -answers
// writes and -results reads.
type answer struct {
	// Name of the engine.
	Engine string `json:"engine"`
	// Name of the chain.
	ID string `json:"id"`
	// Number of pieces of the composed map; ours has one.
	Pieces int `json:"pieces"`
	// Results over d0.. and s0.., as the simplifier numbers them.
	Exprs []string `json:"exprs"`
	// Ranges of the variables that remain, both ends included.
	Vars [][2]int64 `json:"vars"`
	// Number of the constraints that remain.
	NCons int `json:"ncons"`
	// Operations of the results.
	Ops int `json:"ops"`
}

// writeAnswers writes our answer to every chain, a line each.
func (s *session) writeAnswers(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, p := range s.problems {
		a := answer{Engine: ours, ID: p.ID, Pieces: 1}
		a.Ops = p.solver.Solve()
		a.Exprs = p.solver.Texts()
		a.NCons = p.solver.Constraints()
		for _, in := range p.solver.Ranges() {
			ends := [2]int64{in.Lo, in.Hi}
			a.Vars = append(a.Vars, ends)
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

// writeTimes writes our times, a line a chain.
func (s *session) writeTimes(w io.Writer) error {
	_, err := fmt.Fprintln(w, "id\tsimplify\textract\tallocs\teval")
	t := s.engines[0].times
	simplify, extract := t.medians(columnSimplify), t.medians(columnOurs)
	allocs, eval := t.medians(columnAllocs), t.medians(columnEval)
	for _, p := range s.problems {
		if err != nil {
			return err
		}
		const format = "%s\t%.0f\t%.0f\t%.2f\t%.1f\n"
		id := p.ID
		_, err = fmt.Fprintf(w, format, id, simplify[id], extract[id], allocs[id], eval[id])
	}
	return err
}

// readResults reads what another engine answered.
func readResults(path string, ps []*problem) (*engine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := map[string]*problem{}
	for _, p := range ps {
		at[p.ID] = p
	}
	out := newEngine(filepath.Base(path), "")
	for dec := json.NewDecoder(f); dec.More(); {
		var line answer
		if err := dec.Decode(&line); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p := at[line.ID]
		if p == nil {
			continue
		}
		err := out.answer(p.ID, line.Exprs, numberOf(p.names()))
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
