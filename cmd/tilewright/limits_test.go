package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSmallInputsEnd runs commands on small texts that once took all memory or
// did not end. Each ends with a result or with an error that says why.
func TestSmallInputsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name, text, want string
		commands         []string
	}{
		{"doubling", doublingCalls(60), "visits more than 1048576 instructions", []string{"show", "rank"}},
		{"nested", nestedCalls(20_000), "", []string{"show", "rank"}},
		{"computed", "HloModule m\nENTRY e {\n" + concatenateOfNegates(20_000) + "}\n", "priced for at most 16384", []string{"show"}},
		{"wide", concatenateOf(50_000), "priced for at most 16384", []string{"rank"}},
		{"flat", shapeOf(100_000), "more than 256 dimensions", []string{"show", "rank"}},
		{"sums", reductions(46), "priced for at most 64", []string{"rank"}},
		{"chain", negates(500), "", []string{"show", "rank"}},
		{"moves", reshapes(11), "", []string{"show", "rank"}},
		{"overflow", reshapes(12), "numbers of more than 64 bits", []string{"rank"}},
		{"long", uneven(14), "have expressions of more than 2 MiB; sizes given", []string{"show"}},
	} {
		file := filepath.Join(dir, c.name+".hlo")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range c.commands {
			var out, errs strings.Builder
			status := run([]string{command, file}, strings.NewReader(""), &out, &errs)
			if c.want == "" && status != exitOK {
				t.Errorf("%s of %s ends with %d: %s", command, c.name, status, errs.String())
			}
			if !strings.Contains(out.String()+errs.String(), c.want) {
				t.Errorf("%s of %s does not say %q: %s", command, c.name, c.want, errs.String())
			}
		}
	}
}

// doublingCalls has n computations, each of which calls the one before twice.
func doublingCalls(n int) string {
	var b strings.Builder
	b.WriteString("c0 { p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p) }\n")
	for k := 1; k < n; k++ {
		fmt.Fprintf(&b, "c%d { p = f32[4] parameter(0)\n q = f32[4] call(p), to_apply=c%d\n ROOT r = f32[4] call(q), to_apply=c%d }\n", k, k-1, k-1)
	}
	fmt.Fprintf(&b, "ENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[4] call(p), to_apply=c%d }\n", n-1)
	return b.String()
}

// nestedCalls has n computations, each of which calls the one before.
func nestedCalls(n int) string {
	var b strings.Builder
	b.WriteString("c0 { p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p) }\n")
	for k := 1; k < n; k++ {
		fmt.Fprintf(&b, "c%d { p = f32[4] parameter(0)\n ROOT r = f32[4] call(p), to_apply=c%d }\n", k, k-1)
	}
	fmt.Fprintf(&b, "ENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[4] call(p), to_apply=c%d }\n", n-1)
	return b.String()
}

// concatenateOf concatenates an array n times.
func concatenateOf(n int) string {
	return fmt.Sprintf(
		"x = f32[2] parameter(0)\nROOT c = f32[%d] concatenate(x%s), dimensions={0}\n",
		2*n, strings.Repeat(", x", n-1),
	)
}

// concatenateOfNegates concatenates n arrays that are computed.
func concatenateOfNegates(n int) string {
	var b strings.Builder
	b.WriteString("x = f32[2] parameter(0)\n")
	var names []string
	for k := range n {
		names = append(names, fmt.Sprintf("y%d", k))
		fmt.Fprintf(&b, "y%d = f32[2] negate(x)\n", k)
	}
	fmt.Fprintf(&b, "ROOT c = f32[%d] concatenate(%s), dimensions={0}\n", 2*n, strings.Join(names, ", "))
	return b.String()
}

// shapeOf negates an array of n dimensions.
func shapeOf(n int) string {
	dims := "1" + strings.Repeat(",1", n-1)
	return fmt.Sprintf("x = f32[%s] parameter(0)\nROOT r = f32[%s] negate(x)\n", dims, dims)
}

// reductions sums n arrays of their own.
func reductions(n int) string {
	var params, sums, names, shapes strings.Builder
	for k := range n {
		fmt.Fprintf(&params, "x%d = f32[64,%d] parameter(%d)\n", k, 64+k, k)
		fmt.Fprintf(&sums, "r%d = f32[] reduce(x%d, z), dimensions={0,1}, to_apply=add\n", k, k)
		fmt.Fprintf(&names, ", r%d", k)
		shapes.WriteString(", f32[]")
	}
	return fmt.Sprintf(
		"%sz = f32[] constant(0)\n%sROOT t = (%s) tuple(%s)\n",
		params.String(), sums.String(), shapes.String()[2:], names.String()[2:],
	)
}

// negates is a chain of n negations.
func negates(n int) string {
	var b strings.Builder
	b.WriteString("n0 = f32[1024,1024] parameter(0)\n")
	for k := 1; k <= n; k++ {
		fmt.Fprintf(&b, "n%d = f32[1024,1024] negate(n%d)\n", k, k-1)
	}
	return b.String()
}

// reshapes is n pairs of a reshape and a transpose.
func reshapes(n int) string {
	var b strings.Builder
	b.WriteString("t0 = f32[24,35] parameter(0)\n")
	for k := 1; k <= n; k++ {
		fmt.Fprintf(&b, "r%[1]d = f32[35,24] reshape(t%[2]d)\nt%[1]d = f32[24,35] transpose(r%[1]d), dimensions={1,0}\n", k, k-1)
	}
	return b.String()
}

// uneven is n pairs of a reshape and a transpose, of which no rows are those of the pair
// before.
func uneven(n int) string {
	var b strings.Builder
	b.WriteString("t0 = f32[6,35] parameter(0)\n")
	sizes := []int{6, 15, 5, 14, 42, 10, 35, 21}
	for k := 1; k <= n; k++ {
		d := sizes[k%len(sizes)]
		fmt.Fprintf(&b, "r%[1]d = f32[%[3]d,%[4]d] reshape(t%[2]d)\nt%[1]d = f32[%[4]d,%[3]d] transpose(r%[1]d), dimensions={1,0}\n", k, k-1, d, 210/d)
	}
	return "HloModule uneven\nENTRY e {\n" + b.String() + "}\n"
}

// TestCompressedTexts reads a module that gzip has compressed, as a file, in a folder
// and from a pipe. What is no module, or too long when it is unpacked, is an error.
func TestCompressedTexts(t *testing.T) {
	const text = "// -----\nHloModule a\nENTRY a { x = f32[64] parameter(0) ROOT y = tanh(x) }\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "m.hlo.gz")
	whole := compressed(t, []byte(text))
	show := func(name string, content []byte) string {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		run([]string{"show", name}, bytes.NewReader(content), &out, &errs)
		return out.String() + errs.String()
	}
	want := show("-", []byte(text))
	for _, name := range []string{file, file + "#1", "-"} {
		if got := show(name, whole); got != want || !strings.Contains(got, "fused.y") {
			t.Errorf("show %s prints %q, want %q", name, got, want)
		}
	}
	if all, err := folderModules(dir); err != nil || len(all) != 1 {
		t.Errorf("the folder has %v, %v; want %s", all, err, file)
	}
	for want, content := range map[string][]byte{
		"m.hlo.gz: gzip: unexpected EOF": whole[:len(whole)-9],
		"m.hlo.gz: gzip: invalid header": append(whole[:2:2], make([]byte, 16)...),
		"longer than 256 MiB":            compressed(t, bytes.Repeat([]byte(" "), 256<<20+1)),
	} {
		if got := show(file, content); !strings.Contains(got, want) {
			t.Errorf("show prints %q, want %q", got, want)
		}
	}
}

// compressed is a gzip file.
func compressed(t *testing.T, content []byte) []byte {
	var to bytes.Buffer
	z, err := gzip.NewWriterLevel(&to, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// Messages quote what is wrong, and stay short.
func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("A", 100_000)
	for _, args := range [][]string{
		{long},
		{"help", long},
		{"show", long},
		{"show", "-fusion", long, long},
		{"rank", "-device", long, "x"},
		{"tune", "-budget", long, "x"},
		{"lookup", "-require", long, "x"},
		{"cache", long},
		{"cache", "rm", long},
		{"layout", "-pack", long, "f32[8,8]"},
		{"simplify", long},
	} {
		var out, errors strings.Builder
		if status := run(args, strings.NewReader(""), &out, &errors); status == 0 || errors.Len() == 0 || errors.Len() > 2048 {
			t.Errorf("%.20q: status %d, %d bytes of messages", args, status, errors.Len())
		}
	}
}

// A walk of all folders passes by those where Linux shows the state of the system.
func TestStateFolders(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || !strings.Contains(string(mounts), " /proc proc ") {
		t.Skip("no list of file systems with /proc: ", err)
	}
	if all := stateFolders(); !all["/proc"] || all["/"] || all[t.TempDir()] {
		t.Errorf("%v", all)
	}
}
