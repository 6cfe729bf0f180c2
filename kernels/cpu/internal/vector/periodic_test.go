package vector

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// TestPeriodic copies by random periods of random streams, of every width, rows that are
// whole iterations and others, beside a loop over bytes.
func TestPeriodic(t *testing.T) {
	if !Supported() {
		t.Skip("no machine code here")
	}
	r := rand.New(rand.NewPCG(7, 8))
	made := 0
	for range 3000 {
		p := &Periodic{Width: 1 << r.IntN(4)}
		for range 1 + r.IntN(4) {
			p.Steps = append(p.Steps, p.Width*int64(r.IntN(9)-3))
		}
		for range 1 + r.IntN(20) {
			p.Period = append(p.Period, PeriodElement{
				Stream: int64(r.IntN(len(p.Steps))), At: p.Width * int64(r.IntN(40)-20),
			})
		}
		a := &amd64.Assembler{}
		if !p.Emit(a) {
			continue
		}
		made++
		f, ok := LoadRoutine(func(a *amd64.Assembler) error { p.Emit(a); return nil })
		if !ok {
			t.Fatalf("%+v: not assembled", p)
		}
		checkPeriodic(t, r, p, &f)
	}
	if made < 1000 {
		t.Errorf("code for %d periods", made)
	}
}

func checkPeriodic(t *testing.T, r *rand.Rand, p *Periodic, f *amd64.Func) {
	t.Helper()
	const size = 1 << 15
	rows := PeriodicRows{N: 1 + r.Int64N(3), Periods: p.Turn() + r.Int64N(3*p.Turn())}
	row := rows.Periods * p.Bytes()
	rows.ToStep = row + 7
	got := bytes.Repeat([]byte{0xa5}, int(rows.N*rows.ToStep))
	want := bytes.Clone(got)
	rows.To = unsafe.Pointer(&got[0])
	from := make([][]byte, len(p.Steps))
	for k := range from {
		from[k] = make([]byte, 2*size)
		for i := range from[k] {
			from[k][i] = byte(r.Uint32())
		}
		rows.From[k], rows.FromStep[k] = unsafe.Pointer(&from[k][size]), r.Int64N(200)-100
	}
	for n := range rows.N {
		for i := range rows.Periods {
			for e, x := range p.Period {
				at := size + n*rows.FromStep[x.Stream] + i*p.Steps[x.Stream] + x.At
				copy(want[n*rows.ToStep+i*p.Bytes()+int64(e)*p.Width:][:p.Width], from[x.Stream][at:])
			}
		}
	}
	var args PeriodicArgs
	args.Run(f, p, &rows)
	if !bytes.Equal(got, want) {
		t.Fatalf("%+v, %d rows of %d: other bytes", p, rows.N, rows.Periods)
	}
}
