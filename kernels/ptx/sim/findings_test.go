package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels/ptx"
)

func TestFindings(t *testing.T) {
	datadriven.RunTest(t, "testdata/findings.txt", func(t *testing.T, d *datadriven.TestData) string {
		var kernel string
		d.ScanArgs(t, "kernel", &kernel)
		for i := range mutants {
			if m := &mutants[i]; m.kernel == kernel && m.name == strings.TrimSpace(d.Input) {
				_, r := kernelCases[kernel](t, m.mutate(t, kernelText(t, kernel)), everything)
				return strings.ReplaceAll(r.Findings[0].String(), "; ", ";\n  ") + "\n"
			}
		}
		return "no such mutant\n"
	})
}

// TestRefused launches what no device would take.
func TestRefused(t *testing.T) {
	m := New(Sheet{Target: ptx.Target{SM: 80}, SharedPerBlock: 64 << 10})
	vadd := mustLoad(t, readText(t, "vadd.ptx"))
	gemm := mustLoad(t, readText(t, "gemm.ptx"))
	cluster := mustLoad(t, readText(t, "cluster.ptx"))
	a, err := m.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	args := [][]byte{
		Value(a), Value(a), Value(a), Value(uint32(16)),
	}
	for _, c := range []struct {
		program *Program
		launch  Launch
		want    string
	}{
		{vadd, Launch{Entry: "sub", Args: args}, `no entry "sub"`},
		{vadd, Launch{Entry: "vadd", Args: args[:3]}, "3 arguments, the entry has 4 parameters"},
		{vadd, Launch{Entry: "vadd", Args: [][]byte{
			Value(a), Value(a), Value(a), Value(uint64(16)),
		}}, "argument 3 is 8 bytes, parameter n is 4"},
		{vadd, Launch{Entry: "vadd", Block: [3]int{
			1025, 1, 1,
		}, Args: args}, "1025 threads, at most 1024"},
		{vadd, Launch{Entry: "vadd", Grid: [3]int{
			1, 70000, 1,
		}, Args: args}, "at most 65535 CTAs in y"},
		{vadd, Launch{Entry: "vadd", Grid: [3]int{
			-1, 1, 1,
		}, Args: args}, "negative"},
		{vadd, Launch{Entry: "vadd", Grid: [3]int{
			3, 1, 1,
		}, Cluster: [3]int{2, 1, 1}, Args: args}, "no multiple of the cluster"},
		{gemm, Launch{Entry: "gemm", Block: [3]int{
			256, 1, 1,
		}, Args: args}, "256 threads, at most 128"},
		{gemm, Launch{Entry: "gemm", Block: [3]int{
			128, 1, 1,
		}, Shared: 65537, Args: args}, "65537 bytes of shared memory a CTA, at most 65536"},
		{cluster, Launch{Entry: "cluster", Args: args[:2]}, "does not run on"},
	} {
		_, err := m.Launch(context.Background(), c.program, c.launch, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.launch, err, c.want)
		}
	}
}

// TestMemory uses the host's side of memory wrongly, and freed memory in a
// kernel.
func TestMemory(t *testing.T) {
	m := New(Sheet{Memory: 1 << 20})
	a, err := m.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	fails := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err = m.Alloc(1 << 20)
	fails(err, "out of device memory")
	_, err = m.Alloc(-1)
	fails(err, "-1 bytes")
	fails(m.Write(a+992, make([]byte, 16)), "its last 8 bytes lie past the end")
	fails(m.Read(a+1000, make([]byte, 1)), "0 bytes past the end")
	fails(m.Read(a-4, make([]byte, 4)), "4 bytes before")
	fails(m.Set(8, 0, 4), "a null pointer")
	fails(m.Free(a+8), "not the start")
	if err := m.Free(a); err != nil {
		t.Fatal(err)
	}
	fails(m.Free(a), "not the start of a live allocation")
	fails(m.Read(a, make([]byte, 4)), "freed")
	r, err := m.Launch(
		context.Background(), mustLoad(t, readText(t, "vadd.ptx")),
		Launch{Entry: "vadd", Args: [][]byte{
			Value(a), Value(a), Value(a), Value(uint32(16)),
		}},
		everything,
	)
	if err != nil {
		t.Fatal(err)
	}
	fails(r.Err(), "freed")
}

// TestCancelled stops a kernel that never ends.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	text := ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nL: bra.uni L;\n}\n"
	_, err := New(Sheet{}).Launch(
		ctx, mustLoad(t, text), Launch{Entry: "k"}, Options{},
	)
	if err != context.Canceled {
		t.Error(err)
	}
}

func TestNotModelled(t *testing.T) {
	m, err := ptx.Parse("x.ptx", []byte(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<3>;\nmov.u32 %r0, 1;\nfns.b32 %r1, %r0, 0, 1;\nret;\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(m); err == nil || fmt.Sprint(err) != "sim: entry k: line 8: fns.b32: is not modelled" {
		t.Error(err)
	}
}

// Other threads write what a bulk copy reads behind a barrier after the wait of the thread that
// copies. A barrier before the wait is none of it.
func TestWritesBehindCopies(t *testing.T) {
	text := kernelText(t, "bulkstore")
	head, copies, ok := strings.Cut(text, "\t@%p1 ret;\n")
	copies, wait, _ := strings.Cut(copies, "\tcp.async.bulk.wait_group.read 0;\n")
	if !ok || wait == "" {
		t.Fatal("bulkstore.ptx has another end")
	}
	const barrier = "\tbar.sync 0;\n"
	for _, c := range []struct {
		what, behind string
		races        bool
	}{
		{"a barrier", barrier, false},
		{"none", "", true},
	} {
		kernel := head + "\t@%p1 bra ISSUED;\n" + copies + "ISSUED:\n" + barrier +
			"\t@%p1 bra DONE;\n\tcp.async.bulk.wait_group.read 0;\nDONE:\n" + c.behind +
			"\tst.shared.f32 [%r8], %f2;\n" + wait
		_, r := kernelCases["bulkstore"](t, kernel, everything)
		// A write that comes before the wait is another finding.
		raced := false
		for _, f := range r.Findings {
			raced = raced || f.Kind == Race
		}
		if raced != c.races || !c.races && len(r.Findings) > 0 {
			t.Errorf("%s between the wait and the writes: %v", c.what, r.Findings)
		}
	}
}
