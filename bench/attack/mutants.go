//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// The texts that mutants are made of, relative to the root of the tree.
var mutated = []string{"testdata/hlo/*.hlo", "testdata/stablehlo/*.mlir"}

// corpus reads the texts, in the order of their names.
func corpus() (texts [][]byte, err error) {
	for _, pattern := range mutated {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s matches nothing: attack runs in the root of the tree (%v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// numbers are sizes that are worth a try.
var numbers = []string{
	"0",
	"1",
	"2",
	"3",
	"7",
	"16",
	"64",
	"65",
	"127",
	"1000",
	"4096",
	"24577",
	"32768",
	"65536",
	"262144",
	"1048577",
	"-1",
	"2147483648",
	"4294967295",
	"9223372036854775807",
	"-9223372036854775808",
	"18446744073709551616",
	"1e9",
	"nan",
}

// mutant is a text with one to four errors, or, of every other one, with changes that
// may leave another program; n determines it.
func mutant(texts [][]byte, seed uint64, n int) []byte {
	rng := rand.New(
		rand.NewPCG(seed, uint64(n)),
	)
	text := slices.Clone(texts[rng.IntN(len(texts))])
	kinds := mutations
	if n%2 == 1 {
		kinds = variations
	}
	for range 1 + rng.IntN(4) {
		other := texts[rng.IntN(len(texts))]
		text = kinds[rng.IntN(len(kinds))](rng, text, other)
	}
	return text
}

// variations leave most texts a program, of other extents and operations. They reach
// the analysis and the ranking, which most errors do not: a parser finds them.
var variations = []func(rng *rand.Rand, text, other []byte) []byte{
	changeEverywhere,
	changeEverywhere,
	changeEverywhere,
	changeOpcode,
}

// mutations make one error each. The first, which are named most often, tend to
// leave a text that can be parsed.
var mutations = []func(rng *rand.Rand, text, other []byte) []byte{
	changeNumber,
	changeNumber,
	changeNumber,
	changeNumber,
	changeNumber,
	swapWords,
	swapWords,
	copyWord,
	copyWord,
	copyLine,
	copyLine,
	dropLine,
	flipByte,
	cutOut,
	cutOff,
}

// words are the positions of runs of bytes of a class.
func words(text []byte, in func(c byte) bool) (at [][2]int) {
	for k := 0; k < len(text); k++ {
		begin := k
		for k < len(text) && in(text[k]) {
			k++
		}
		if k > begin {
			at = append(at, [2]int{begin, k})
		}
	}
	return at
}

// isDigit is the class of numbers.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord is the class of names, opcodes, types and numbers with signs and points.
func isWord(c byte) bool {
	return isDigit(c) ||
		'a' <= c && c <= 'z' ||
		'A' <= c && c <= 'Z' ||
		strings.IndexByte("_-.%", c) >= 0
}

// isText is the class of lines.
func isText(c byte) bool { return c != '\n' }

// pick draws one of the runs of a class; false where there is none.
func pick(rng *rand.Rand, text []byte, in func(c byte) bool) (at [2]int, ok bool) {
	all := words(text, in)
	if len(all) == 0 {
		return at, false
	}
	return all[rng.IntN(len(all))], true
}

// replace puts b in the place of a run.
func replace(text []byte, at [2]int, b []byte) []byte {
	return slices.Concat(text[:at[0]], b, text[at[1]:])
}

// changeNumber puts another size, or something that is no size, in the place of a
// number: an extent, an attribute, or a digit in a name.
func changeNumber(rng *rand.Rand, text, _ []byte) []byte {
	at, ok := pick(rng, text, isDigit)
	if !ok {
		return text
	}
	return replace(text, at, []byte(numbers[rng.IntN(len(numbers))]))
}

// changeEverywhere puts another number in all places of one: an extent keeps agreeing
// with itself, in shapes, in attributes and in what is computed of it by hand.
func changeEverywhere(rng *rand.Rand, text, _ []byte) []byte {
	at, ok := pick(rng, text, isDigit)
	if !ok {
		return text
	}
	number := string(text[at[0]:at[1]])
	other := []byte(numbers[rng.IntN(len(numbers))])
	all := words(text, isWord)               // runs of digits in names stay what they are
	for _, w := range slices.Backward(all) { // positions before w stay what they are
		if string(text[w[0]:w[1]]) == number {
			text = replace(text, w, other)
		}
	}
	return text
}

// opcodes are operations of one operand, and of two, which take each other's place:
// cheap ones and functions, those that a reduction may be made of and those that not.
var opcodes = [][]string{
	strings.Fields("abs negate exponential log tanh sqrt rsqrt floor sign cosine copy"),
	strings.Fields("add subtract multiply divide maximum minimum power remainder atan2"),
}

// changeOpcode puts another operation of as many operands in the place of one. What it
// does to a reduction is of most interest: sums become products, whose order matters
// more, or remainders, which no backend may reorder.
func changeOpcode(rng *rand.Rand, text, _ []byte) []byte {
	at, ok := pick(rng, text, isWord)
	for tries := 0; ok && tries < 50; tries++ {
		for _, alike := range opcodes {
			if slices.Contains(alike, string(text[at[0]:at[1]])) {
				other := alike[rng.IntN(len(alike))]
				return replace(text, at, []byte(other))
			}
		}
		at, ok = pick(rng, text, isWord)
	}
	return text
}

// swapWords exchanges two words: operands that become cyclic, opcodes of another
// arity, types of others.
func swapWords(rng *rand.Rand, text, _ []byte) []byte {
	a, _ := pick(rng, text, isWord)
	b, ok := pick(rng, text, isWord)
	if !ok || a == b {
		return text
	}
	if a[0] > b[0] {
		a, b = b, a
	}
	first := text[a[0]:a[1]]
	between := text[a[1]:b[0]]
	second := text[b[0]:b[1]]
	return slices.Concat(
		text[:a[0]],
		second, between, first,
		text[b[1]:],
	)
}

// copyWord takes a word from another text.
func copyWord(rng *rand.Rand, text, other []byte) []byte {
	at, ok := pick(rng, text, isWord)
	from, _ := pick(rng, other, isWord)
	if !ok {
		return text
	}
	return replace(text, at, other[from[0]:from[1]])
}

// copyLine takes a line from another text: an instruction, mostly, which refers to
// names that may be there with another shape.
func copyLine(rng *rand.Rand, text, other []byte) []byte {
	at, ok := pick(rng, text, isText)
	from, _ := pick(rng, other, isText)
	if !ok {
		return text
	}
	line := slices.Concat([]byte("\n"), other[from[0]:from[1]])
	return replace(text, [2]int{at[1], at[1]}, line)
}

// dropLine empties a line: an instruction that others refer to, or a brace.
func dropLine(rng *rand.Rand, text, _ []byte) []byte {
	at, ok := pick(rng, text, isText)
	if !ok {
		return text
	}
	return replace(text, at, nil)
}

// flipByte flips one bit, which can also leave what is no UTF-8.
func flipByte(rng *rand.Rand, text, _ []byte) []byte {
	if len(text) > 0 {
		text[rng.IntN(len(text))] ^= 1 << rng.IntN(8)
	}
	return text
}

// cutOut takes up to 20 bytes out.
func cutOut(rng *rand.Rand, text, _ []byte) []byte {
	if len(text) < 2 {
		return text
	}
	begin := rng.IntN(len(text) - 1)
	end := begin + 1 + rng.IntN(20)
	end = min(end, len(text))
	return replace(text, [2]int{begin, end}, nil)
}

// cutOff ends a text early, as an interrupted copy does.
func cutOff(rng *rand.Rand, text, _ []byte) []byte {
	return text[:rng.IntN(len(text)+1)]
}

// mutantCounts are what became of mutants, by the word that a worker says.
type mutantCounts struct {
	mu sync.Mutex
	r  result
	// Number of mutants by fate: refused (by the parser), untileable, ranked, uncompiled
	// (a plan that is offered cannot be compiled) or panic.
	said map[string]int
	// The most memory that one needed beyond that of its process, in MB.
	peak int
}

// shareOfMutants is the number of mutants that a worker process tries at most.
const shareOfMutants = 500

// mutate lets worker processes try the mutants: whatever one does to its process,
// the others are tried.
func mutate(s *session) (result, error) {
	texts, err := corpus()
	if err != nil {
		return result{}, err
	}
	c := &mutantCounts{said: map[string]int{}}
	var all sync.WaitGroup
	shares := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for from := range shares {
				s.tryShare(c, texts, from, min(from+shareOfMutants, s.mutants))
			}
		})
	}
	for from := 0; from < s.mutants; from += shareOfMutants {
		shares <- from
	}
	close(shares)
	all.Wait()
	c.r.note = fmt.Sprintf("%d refused, %d without a tiling, %d ranked, at most %d MB",
		c.said["refused"], c.said["untileable"], c.said["ranked"], c.peak)
	return c.r, nil
}

// tryShare starts workers until all mutants of a range are tried. A worker ends
// early when a mutant ends it; the next one begins behind that.
func (s *session) tryShare(c *mutantCounts, texts [][]byte, from, to int) {
	for from < to {
		next, last, err := s.tryRange(c, from, to)
		if next == to {
			return
		}
		kept := s.save(next, mutant(texts, s.seed, next))
		c.mu.Lock()
		c.r.tried++
		c.r.harm("number %d ends the process: %v, %s; saved as %s", next, err, last, kept)
		c.mu.Unlock()
		from = next + 1
	}
}

// maxStall is the wall time after which a worker that says nothing is killed; it
// watches its processor time itself.
const maxStall = 3 * time.Minute

// tryRange runs one worker and returns the first mutant that it did not finish,
// with the end of what it said.
func (s *session) tryRange(c *mutantCounts, from, to int) (next int, last string, err error) {
	self, err := os.Executable()
	if err != nil {
		return from, "", err
	}
	cmd := exec.Command(self, "-worker", fmt.Sprintf("%d:%d", from, to), "-seed", fmt.Sprint(s.seed))
	var complaint strings.Builder
	cmd.Stderr = &limitedWriter{&complaint, 2_000}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return from, "", err
	}
	stall := time.AfterFunc(maxStall, func() { cmd.Process.Kill() })
	next = from
	for in := bufio.NewScanner(out); in.Scan(); {
		stall.Reset(maxStall)
		last = in.Text()
		if c.count(s, next, last) {
			next++
		}
	}
	stall.Stop()
	if err := cmd.Wait(); err != nil {
		return next, last + " " + complaint.String(), err
	}
	return next, last, nil
}

// count takes a line of a worker: the fate of a mutant and the memory in MB. A fate
// that is harm ends with its reason. It is false for a line that is no fate.
func (c *mutantCounts) count(s *session, n int, line string) bool {
	var fate string
	var mb int
	if k, _ := fmt.Sscanf(line, "done %s %d", &fate, &mb); k < 2 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.tried++
	c.said[fate]++
	c.peak = max(c.peak, mb)
	if fate == "panic" || fate == "uncompiled" {
		c.r.harm("number %d: %s", n, line)
	}
	return true
}

// save keeps a mutant that does harm.
func (s *session) save(n int, text []byte) string {
	path := filepath.Join(s.keep, fmt.Sprintf("mutant-%d-%d.txt", s.seed, n))
	err := os.MkdirAll(s.keep, 0o755)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return err.Error()
	}
	return path
}

// A limitedWriter keeps the first bytes of what is written.
type limitedWriter struct {
	w    io.Writer
	left int
}

// Write keeps what there is room for and pretends to have written everything: the
// command is not to notice.
func (l *limitedWriter) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	if _, err := l.w.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}
