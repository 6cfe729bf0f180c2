package query

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// A renamed backend is the CPU's under the name of another device.
type renamed struct {
	*cpu.Backend
	name string
}

func (b renamed) Identity() kernels.Device {
	d := b.Backend.Identity()
	d.Name = b.name
	return d
}

// text is a module of one fusion.
func text(t *testing.T) string {
	t.Helper()
	src, err := os.ReadFile("../testdata/hlo/row_reduce.hlo")
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// stored is the path of a database, or of its snapshot, with the fusion's winners on
// devices.
func stored(t *testing.T, snapshot bool, devices ...string) string {
	t.Helper()
	split, err := Read(t.Context(), "text", []byte(text(t)), hlo.CPU)
	if err != nil {
		t.Fatal(err)
	}
	c := split.Module.Fusions()[0]
	p, err := symtile.Analyze(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
	for k, name := range devices {
		b := renamed{cpu.New(), name}
		plan, err := b.Default(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		r := cache.Record{Canonical: c.Canonical(), Plan: plan.String(), Seconds: float64(k + 1), Checked: true}
		r.Key = tuner.Key(c, kernels.IdentityOf(b))
		if _, err := db.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if !snapshot {
		return db.Path()
	}
	path := filepath.Join(t.TempDir(), "snap")
	if _, err := db.Publish(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLookup: the same answers from a database and from its snapshot. Of GPUs the
// product answers first, then the architecture, then any other.
func TestLookup(t *testing.T) {
	const sxm = "gpu:NVIDIA H100 80GB HBM3"
	for _, c := range []struct {
		stored       []string
		answer, from string
	}{
		{[]string{sxm, "gpu:NVIDIA H100 PCIe"}, "exact", ""},
		{[]string{"gpu:NVIDIA A100-SXM4-80GB", "gpu:NVIDIA H200", "gpu:NVIDIA H100 PCIe"}, "nearest", "gpu:NVIDIA H100 PCIe"},
		{[]string{"gpu:NVIDIA A100-SXM4-80GB", "gpu:NVIDIA H200"}, "nearest", "gpu:NVIDIA H200"},
		{[]string{"gpu:NVIDIA A100-SXM4-80GB"}, "nearest", "gpu:NVIDIA A100-SXM4-80GB"},
		{nil, "predicted", ""},
	} {
		for _, snapshot := range []bool{false, true} {
			t.Run(fmt.Sprint(c.stored, snapshot), func(t *testing.T) {
				s, err := Open(stored(t, snapshot, c.stored...), DeviceOf(renamed{cpu.New(), sxm}))
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				l, err := s.Lookup(t.Context(), text(t), "", false)
				if err != nil || len(l.Fusions) != 1 {
					t.Fatalf("%+v, %v", l, err)
				}
				w := l.Fusions[0]
				if w.Answer != c.answer || w.Plan == "" || w.Device != sxm {
					t.Errorf("%+v", w)
				}
				if said := strings.Join(w.Differs, ", "); c.from != "" && said != "measured on "+c.from {
					t.Errorf("it differs by %q", said)
				}
				exact, err := s.Lookup(t.Context(), text(t), "", true)
				if err != nil || (exact.Fusions[0].Answer == "exact") != (c.answer == "exact") {
					t.Errorf("only exact answers: %+v, %v", exact, err)
				}
			})
		}
	}
}

// TestAppendPlan: a plan by its fingerprint, without a document, of a database and
// of its snapshot.
func TestAppendPlan(t *testing.T) {
	const name = "cpu:test"
	for _, snapshot := range []bool{false, true} {
		s, err := Open(stored(t, snapshot, name), DeviceOf(renamed{cpu.New(), name}))
		if err != nil {
			t.Fatal(err)
		}
		prints, err := s.Prints(t.Context(), text(t))
		if err != nil {
			t.Fatal(err)
		}
		room := make([]byte, 0, 512)
		plan, seconds, found, err := s.AppendPlan(room, prints[0].print)
		if !found || err != nil || len(plan) == 0 || seconds != 1 {
			t.Errorf("%q, %v, %t, %v", plan, seconds, found, err)
		}
		if plan, _, found, err := s.AppendPlan(room, cache.Fingerprint{}); found || err != nil || len(plan) > 0 {
			t.Errorf("nothing is stored: %q, %t, %v", plan, found, err)
		}
		if w, err := s.Get(prints[0].print); err != nil || w.Answer != "exact" || w.Plan != string(plan) {
			t.Errorf("%+v, %v", w, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Get(prints[0].print); !errors.Is(err, ErrClosed) {
			t.Errorf("it is closed: %v", err)
		}
	}
}

// TestOpenRefuses: what is no database and no snapshot is an error when it is asked.
func TestOpenRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("TWSNAP03 and more"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, DeviceOf(cpu.New())); err == nil || !strings.Contains(err.Error(), "publish it again") {
		t.Errorf("a snapshot of another version: %v", err)
	}
	s, err := Open(filepath.Join(t.TempDir(), "none"), DeviceOf(cpu.New()))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := s.Get(cache.Fingerprint{}); err != nil || w.Answer != "none" {
		t.Errorf("no file: %+v, %v", w, err)
	}
}
