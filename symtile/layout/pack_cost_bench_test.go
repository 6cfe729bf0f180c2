package layout

import (
	"fmt"
	"testing"
)

// BenchmarkPacking measures what PackCost predicts: copying a matrix of 2048 rows
// into blocks of 64×64, and a visit to every block with 16 sweeps, in place and
// packed. On rows of 2048 a block's rows share one set of the cache; on rows of
// 2064 they do not. Memory.Refetch is the first against the second, per line, over
// what a byte takes to pack.
func BenchmarkPacking(b *testing.B) {
	const n = 2048
	const block = 64
	const sweeps = 16
	packed := make([]float32, n*n)
	for _, stride := range []int{2048, 2064} {
		m := make([]float32, n*stride)
		for i := range m {
			m[i] = 1
		}
		b.Run(fmt.Sprint("pack/", stride), func(b *testing.B) {
			for b.Loop() {
				packBlocks(packed, m, n, stride, block)
			}
		})
		b.Run(fmt.Sprint("inplace/", stride), func(b *testing.B) {
			for b.Loop() {
				for i := 0; i < n; i += block {
					for j := 0; j < n; j += block {
						sweepBlock(m[i*stride+j:], block, stride, sweeps)
					}
				}
			}
		})
		b.Run(fmt.Sprint("packed/", stride), func(b *testing.B) {
			for b.Loop() {
				for at := 0; at < n*n; at += block * block {
					sweepBlock(packed[at:], block, block, sweeps)
				}
			}
		})
	}
}

func packBlocks(packed, m []float32, n, stride, block int) {
	at := 0
	for i := 0; i < n; i += block {
		for j := 0; j < n; j += block {
			for r := range block {
				at += copy(packed[at:at+block], m[(i+r)*stride+j:])
			}
		}
	}
}

var sum float32

// sweepBlock reads every line of a block so many times, once each: the worst
// case, as nothing is computed while lines come.
func sweepBlock(m []float32, block, stride, sweeps int) {
	var s, t, u, v float32
	for range sweeps {
		for i := range block {
			row := m[i*stride : i*stride+block]
			for j := 0; j+64 <= len(row); j += 64 {
				s = s + row[j]
				t = t + row[j+16]
				u = u + row[j+32]
				v = v + row[j+48]
			}
		}
	}
	sum += s + t + u + v
}
