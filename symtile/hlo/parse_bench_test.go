package hlo

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// chain is a computation of n additions, on one line or one a line.
func chain(n int, separator string) []byte {
	var b strings.Builder
	b.WriteString("HloModule chain" + "\nENTRY %main { %p0 = f32[128,64] parameter(0)" + separator)
	for k := range n {
		fmt.Fprintf(&b, "%%p%d = f32[128,64] add(%%p%d, %%p0)%s", k+1, k, separator)
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

func stablehloChain(n int) []byte {
	var b strings.Builder
	b.WriteString("module @chain {\n  func.func public @main(%arg0: tensor<128x64xf32>) -> tensor<128x64xf32> {\n")
	last := "%arg0"
	for k := range n {
		fmt.Fprintf(&b, "    %%%d = stablehlo.add %s, %%arg0 : tensor<128x64xf32>\n", k, last)
		last = fmt.Sprintf("%%%d", k)
	}
	fmt.Fprintf(&b, "    return %s : tensor<128x64xf32>\n  }\n}\n", last)
	return []byte(b.String())
}

// Time and memory are in proportion to the text.
func BenchmarkParseLarge(b *testing.B) {
	for _, form := range []struct {
		name string
		text func(n int) []byte
	}{
		{"line", func(n int) []byte { return chain(n, "; ") }},
		{"lines", func(n int) []byte { return chain(n, "\n") }},
		{"stablehlo", stablehloChain},
	} {
		for _, n := range []int{12_000, 120_000, 1_200_000} {
			text := form.text(n)
			b.Run(fmt.Sprintf("%s/%d", form.name, n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Parse("chain", text); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(
					float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/instr",
				)
			})
		}
	}
}

// BenchmarkFingerprint is that of every fusion of the corpus; p90 is the time of the
// fusion that nine tenths are faster than, in nanoseconds.
func BenchmarkFingerprint(b *testing.B) {
	fusions := corpusFusions(b)
	b.ReportAllocs()
	times := make([]float64, len(fusions))
	for b.Loop() {
		for k, c := range fusions {
			begin := time.Now()
			c.Fingerprint()
			times[k] += float64(time.Since(begin).Nanoseconds())
		}
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)*9/10]/float64(b.N), "p90-ns")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(fusions)), "ns/fusion")
}

// TestIsTyped: an attribute that a row of the table prints is not passed over, whichever
// field it is in.
func TestIsTyped(t *testing.T) {
	printed := 0
	for k := range reflect.TypeFor[Attrs]().NumField() {
		var a Attrs
		switch f := reflect.ValueOf(&a).Elem().Field(k); f.Kind() {
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.String:
			f.SetString("x")
		default:
			f.SetInt(2)
		}
		has := slices.ContainsFunc(attrTable, func(row attrRow) bool { return row.has(&a) })
		if has {
			printed++
		}
		if has && !a.isTyped() {
			t.Errorf("field %d of Attrs is passed over", k)
		}
	}
	if printed != len(attrTable) {
		t.Errorf("%d of %d rows have a field", printed, len(attrTable))
	}
	if a := (Attrs{RHSBatch: []int64{}}); !a.isTyped() {
		t.Error("an empty list is passed over")
	}
}

// TestFingerprintAllocatesNothing: a compiler asks for every fusion that it meets.
func TestFingerprintAllocatesNothing(t *testing.T) {
	total := 0.0
	fusions := corpusFusions(t)
	for _, c := range fusions {
		total += testing.AllocsPerRun(5, func() { c.Fingerprint() })
	}
	if mean := total / float64(len(fusions)); mean > 2 {
		t.Errorf("%.1f allocations a fingerprint", mean)
	}
}

// corpusFusions are the fusions of testdata/hlo.
func corpusFusions(t testing.TB) (all []*Computation) {
	files, err := filepath.Glob("../../testdata/hlo/*.hlo")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Fusions()...)
	}
	return all
}
