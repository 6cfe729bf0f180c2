package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// readModule parses a file that is one module, of HLO or StableHLO, as text or a
// message; "-" is the standard input, and FILE#2 the second of several. A module that
// no compiler has fused is split into fusions; the second result is what stays outside
// of them.
func (c *call) readModule(file string) (*hlo.Module, []partition.Unfused, error) {
	split, err := c.partitioned(file)
	if err != nil {
		return nil, nil, err
	}
	return split.Module, split.Outside, nil
}

// partitioned parses a file as readModule does, and keeps the decisions.
func (c *call) partitioned(file string) (*partition.Result, error) {
	all, err := c.readModules(file)
	if err != nil {
		return nil, err
	}
	if err := c.shapes.unused(); err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, usagef("%s has %d modules; choose one: %s#1 to %s#%d", file, len(all), file, file, len(all))
	}
	return query.Partitioned(c.ctx, all[0].Module, c.target)
}

// eachModule does something with every module of a file, split into fusions, under a line
// FILE#2 where there are several, which with JSON is the "file" of its document. What is
// wrong with one does not stop the others. Where the command line chooses a fusion or names
// files of arrays, there is one.
func (c *call) eachModule(file string, one bool, do func(name string, split *partition.Result) error) error {
	all, failed := c.readModules(file)
	if one || len(all) == 0 {
		split, err := c.partitioned(file)
		if err != nil {
			return err
		}
		return do(file, split)
	}
	if err := c.shapes.unused(); err != nil {
		return errors.Join(failed, err)
	}
	var missed error
	for k, m := range all {
		name := partName(file, m)
		c.beginPart(name, name != file, k == 0)
		split, err := query.Partitioned(c.ctx, m.Module, c.target)
		if err == nil {
			err = do(name, split)
		}
		if errors.Is(err, errMiss) {
			missed, err = err, nil
		}
		if failed = errors.Join(failed, err); c.ctx.Err() != nil {
			break
		}
	}
	return cmp.Or(failed, missed)
}

// beginPart says of which module what follows is, where a file has several.
func (c *call) beginPart(name string, several, first bool) {
	switch {
	case !several:
	case c.json:
		c.part = name
	case first:
		fmt.Fprintln(c.out, name)
	default:
		fmt.Fprintln(c.out, "\n"+name)
	}
}

// partName is FILE#2 for a module of a file that has several.
func partName(file string, m query.Part) string {
	if _, number := moduleNumber(file); m.Of > 1 && number == 0 {
		return fmt.Sprintf("%s#%d", file, m.Number)
	}
	return file
}

// readModules parses the modules of a file, which lines "// -----" separate. Those
// that can be read come with the errors of the others.
func (c *call) readModules(file string) ([]query.Part, error) {
	path, number := moduleNumber(file)
	src, err := c.readFile(path)
	if err != nil {
		return nil, err
	}
	all, err := query.Modules(path, src, number, c.shapes.given())
	return c.shapes.take(all), err
}

// moduleNumber splits FILE#2 into the file and the number of a module in it; a file
// of that name comes first.
func moduleNumber(file string) (path string, number int) {
	path, digits, ok := strings.Cut(file, "#")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 {
		return file, 0
	}
	if _, err := os.Stat(file); err == nil {
		return file, 0
	}
	return path, n
}

// moduleNames are the names of files of modules in a folder, the first kind that it
// has: what XLA dumps for a backend, after its passes, any text, or messages. Each may
// be compressed, and then ends in .gz, too.
var moduleNames = [][]string{
	{"after_optimizations.txt"},
	{".hlo", ".mlir", ".stablehlo", ".txt"},
	{".pb", ".pbtxt"},
}

// modulesOf lists the files that the paths of a command line mean: files and "-" as
// they are, patterns that are no file, and folders with all folders below. Each file
// is listed once.
func modulesOf(paths []string) (files []string, err error) {
	seen := map[string]bool{}
	for _, path := range paths {
		some, err := pathModules(path)
		if err != nil {
			return nil, err
		}
		for _, file := range some {
			if !seen[file] {
				seen[file] = true
				files = append(files, file)
			}
		}
	}
	return files, nil
}

// pathModules are the files that one path means.
func pathModules(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return folderModules(path)
	case err == nil || !strings.ContainsAny(path, "*?["):
		return []string{path}, nil // that it is not there is an error of this file alone
	}
	matches, err := filepath.Glob(path)
	if err != nil {
		return nil, usagef("%q is not a pattern: %v", path, err)
	}
	if len(matches) == 0 {
		return []string{path}, nil // the same
	}
	var files []string
	for _, match := range matches {
		some, err := pathModules(match)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	return files, nil
}

// folderModules are the modules below a folder, in the order of their names. Folders in it
// where the system shows its state are passed by.
func folderModules(folder string) ([]string, error) {
	kinds := make([][]string, len(moduleNames))
	states := stateFolders()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if full, _ := filepath.Abs(path); states[full] && path != folder {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() {
			return err
		}
		for k, endings := range moduleNames {
			if hasEnding(strings.TrimSuffix(path, ".gz"), endings) {
				kinds[k] = append(kinds[k], path)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, files := range kinds {
		if len(files) > 0 {
			return files, nil
		}
	}
	return nil, fmt.Errorf("%s has no module: no file that ends in %s", folder, strings.Join(slices.Concat(moduleNames...), ", "))
}

// stateKinds are file systems that have no files of anybody's: what they show is made
// when it is read. Their names are those of the third column of /proc/self/mounts (proc(5)).
var stateKinds = strings.Fields("proc sysfs cgroup cgroup2 debugfs tracefs securityfs devtmpfs devpts configfs bpf pstore mqueue")

// stateFolders are the places of such file systems, where Linux lists them. On other
// systems, and where /proc is not mounted, there are none: a walk of all folders then takes
// what it finds, and a folder that cannot be read ends it with an error that names it.
func stateFolders() map[string]bool {
	places := map[string]bool{}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		words := strings.Fields(line) // device, place, kind, …
		if len(words) > 2 && slices.Contains(stateKinds, words[2]) {
			places[words[1]] = true
		}
	}
	return places
}

// hasEnding reports whether a name ends in one of the endings.
func hasEnding(name string, endings []string) bool {
	return slices.ContainsFunc(endings, func(e string) bool {
		return strings.HasSuffix(name, e)
	})
}

// readProfile reads lines NAME,TIME, or with a tab for the comma; lines that begin with #
// are comments. Times of one name are added; the first line is a header if its time begins
// with a letter. A name may have the % of HLO text.
func (c *call) readProfile(file string) (map[string]float64, error) {
	text, err := c.readFile(file)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	rows := csv.NewReader(bytes.NewReader(text))
	rows.FieldsPerRecord = 2
	rows.TrimLeadingSpace = true
	rows.Comment = '#'
	if !bytes.Contains(text, []byte(",")) && bytes.Contains(text, []byte("\t")) {
		rows.Comma, rows.TrimLeadingSpace = '\t', false
	}
	profile := map[string]float64{}
	for first := true; ; first = false {
		row, err := rows.Read()
		if err == io.EOF {
			return profile, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: a profile has lines NAME,TIME: %w", file, err)
		}
		name, time := strings.TrimPrefix(strings.TrimSpace(row[0]), "%"), strings.TrimSpace(row[1])
		seconds, err := strconv.ParseFloat(time, 64)
		line, _ := rows.FieldPos(0)
		switch {
		case err != nil && first && headerTime().MatchString(time):
		case err != nil || !(seconds >= 0) || math.IsInf(seconds, 0):
			return nil, fmt.Errorf("%s:%d: %q is not a time: a number, in any unit that is that of all lines", file, line, row[1])
		default:
			profile[name] += seconds
		}
	}
}

// headerTime is how the name of the column of times begins.
var headerTime = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\pL`) })

// A ratio is a flag that is written as a number or as a percentage: 0.02 or 2%.
type ratio float64

// String is the ratio as a percentage; empty for 0, the default of every such flag.
func (r *ratio) String() string {
	if *r == 0 {
		return ""
	}
	return fmt.Sprintf("%g%%", 100*float64(*r))
}

// Set parses it.
func (r *ratio) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0) || v > 1 {
		return errors.New("a ratio is a number from 0 to 1, or a percentage")
	}
	*r = ratio(v)
	return nil
}

// A span is a flag of a time, whose error says how one is written.
type span time.Duration

// String is the time with its unit.
func (s *span) String() string { return time.Duration(*s).String() }

// Set parses it.
func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("a time is a number with a unit, as 500ms, 1s or 1h30m")
	}
	*s = span(d)
	return nil
}

// Duration defines a flag of a time.
func (c *call) Duration(name string, value time.Duration, usage string) *time.Duration {
	d := new(time.Duration)
	c.DurationVar(d, name, value, usage)
	return d
}

// DurationVar defines a flag of a time that is kept in d.
func (c *call) DurationVar(d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	c.Var((*span)(d), name, usage)
}

// readFile reads a file, or the standard input for "-".
func (c *call) readFile(file string) ([]byte, error) {
	if file == "-" {
		if c.piped == nil {
			var err error
			if c.piped, err = readText(file, c.in); err != nil {
				return nil, err
			}
		}
		return c.piped, nil
	}
	f, err := openInput(file)
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(file, "*?[") {
		return nil, fmt.Errorf("%s matches no file", file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return readText(file, f)
	case info.Size() > query.MaxBytes:
		return nil, query.TooLong(file)
	}
	return io.ReadAll(f) // a message has zero bytes
}

// An inputFile is a file of the command line. The first read of a FIFO that nobody writes
// to is an error: it is not waited for, and not taken as empty.
type inputFile struct {
	*os.File
	unread bool // a FIFO of which nothing was read
}

// openInput opens a file of the command line. A pipe of the shell, <(…), has its writer.
func openInput(file string) (*inputFile, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return &inputFile{f, err == nil && info.Mode()&fs.ModeNamedPipe != 0}, nil
}

// Read reads from the file.
func (f *inputFile) Read(b []byte) (n int, err error) {
	n, err = f.File.Read(b)
	if f.unread && n == 0 && err == io.EOF {
		return 0, fmt.Errorf("%s is a pipe that nobody writes to: start its writer first", f.Name())
	}
	f.unread = false
	return n, err
}

// readText reads all of a text of at most query.MaxBytes. A zero byte ends it, unless
// it is compressed or a message: no text has one, so that the parser fails there, and a
// device or a binary file is not read to its end.
func readText(file string, r io.Reader) ([]byte, error) {
	var all []byte
	chunk := make([]byte, 1<<16)
	for {
		n, err := r.Read(chunk)
		all = append(all, chunk[:n]...)
		if zero := bytes.IndexByte(chunk[:n], 0); zero >= 0 && !query.Compressed(all) && !beginsMessage(all) {
			return all[:len(all)-n+zero+1], nil
		}
		switch {
		case len(all) > query.MaxBytes:
			return nil, query.TooLong(file)
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}

// beginsMessage reports whether a message of XLA's may begin so: with a field of bytes,
// the first or the second.
func beginsMessage(text []byte) bool { return text[0] == 1<<3|2 || text[0] == 2<<3|2 }

// fusions selects the fusions of a module by name; "" selects all.
func fusions(
	file string, m *hlo.Module, name string,
) ([]*hlo.Computation, error) {
	all := m.Fusions()
	if name == "" {
		return all, nil
	}
	var names []string
	for _, f := range all {
		if f.Name == name {
			return []*hlo.Computation{f}, nil
		}
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf(
		"%s has no fusion %q; it has %s", file, name, strings.Join(names, ", "),
	)
}

// oneFusion selects the fusion of a command that works on one.
func oneFusion(file string, m *hlo.Module, name string) (*hlo.Computation, error) {
	fs, err := fusions(file, m, name)
	if err != nil {
		return nil, err
	}
	if len(fs) == 1 {
		return fs[0], nil
	}
	var names []string
	for _, f := range fs {
		names = append(names, f.Name)
	}
	return nil, usagef(
		"%s has %d fusions; choose one with -fusion: %s",
		file, len(fs), strings.Join(names, ", "),
	)
}

// readFusion reads the fusion of a command that works on one.
func (c *call) readFusion(file, name string) (*hlo.Computation, error) {
	m, _, err := c.readModule(file)
	if err != nil {
		return nil, err
	}
	return oneFusion(file, m, name)
}

// parseSizes parses "64,32,16".
func parseSizes(text string) (symtile.Tiling, error) {
	var t symtile.Tiling
	for _, word := range strings.Split(text, ",") {
		v, err := strconv.ParseInt(
			strings.TrimSpace(word), 10, 64,
		)
		if err != nil {
			return nil, usagef("%q in %q is not a whole number", word, text)
		}
		t = append(t, v)
	}
	return t, nil
}

// planNames are the names of the dimensions of a fusion's plans; nil if it has no tiles.
func planNames(ctx context.Context, f *hlo.Computation) kernels.PlanNames {
	p, err := symtile.Analyze(ctx, f)
	if err != nil {
		return nil
	}
	return kernels.PlanNamesOf(p)
}

// chosenPlan parses -plan, or makes a plan of the sizes of -tiling, or takes
// the default plan; standard returns that.
func chosenPlan(
	tiling, plan string, names kernels.PlanNames, standard func() (kernels.Plan, error),
) (kernels.Plan, error) {
	switch {
	case plan != "" && tiling != "":
		return kernels.Plan{}, usagef("-tiling and -plan exclude each other")
	case plan != "":
		return names.Parse(plan)
	case tiling != "":
		t, err := parseSizes(tiling)
		return kernels.Plan{Tiles: t}, err
	}
	return standard()
}

// warn says that a damaged entry of a database is left out, and how to remove it.
func (c *call) warn(d *cache.DamagedError) {
	c.damaged++
	c.note("tilewright %s: warning: %v; it is left out (`tilewright cache rm %x` removes it)", c.command.name, d, d.Key.Fusion[:4])
}

// warnOfDamage warns of every damaged record and unfinished race. Its error is that
// of a database that cannot be read at all.
func (c *call) warnOfDamage(db *cache.DB) error {
	all, err := db.Damaged()
	for _, d := range all {
		c.warn(d)
	}
	return err
}

// soundRecords reads the records of a database and warns of the damaged ones.
func (c *call) soundRecords(db *cache.DB) (sound []cache.Record, err error) {
	for r, err := range db.All() {
		var damaged *cache.DamagedError
		switch {
		case errors.As(err, &damaged):
			c.warn(damaged)
		case err != nil:
			return nil, err
		default:
			sound = append(sound, r)
		}
	}
	return sound, nil
}

// recordsOf are the records of a database or, if one is named, of a snapshot, in the
// order of their keys. Those of a snapshot have no name of the fusion, and the first
// digits of its fingerprint instead.
func (c *call) recordsOf(db, snapshot string) ([]cache.Record, error) {
	if snapshot == "" {
		if _, err := os.Stat(db); err != nil {
			return nil, fmt.Errorf("cannot read the database: %w", err)
		}
		return c.soundRecords(cache.Open(db))
	}
	s, err := openSnapshot(snapshot)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	// A damaged record is warned of, as one of a database is. It has no key by which
	// it could be removed: the snapshot is published again.
	var all []cache.Record
	for r, err := range s.All() {
		if err != nil {
			c.damaged++
			c.note("tilewright %s: warning: %s: %v", c.command.name, snapshot, err)
			continue
		}
		r.Name = hex.EncodeToString(r.Fusion[:6])
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b cache.Record) int { return a.Key.Compare(&b.Key) })
	return all, nil
}

// snapshotFlag is the flag of commands that read a snapshot as they do a database.
func (c *call) snapshotFlag() *string {
	return c.String("snapshot", "", "read a snapshot instead of the database: `FILE`, or FILE@REVISION to accept that one only")
}

// defaultFails says so if the default plan of a record is known to be wrong or not to
// run: whoever does not look the winner up gets that.
func (c *call) defaultFails(r cache.Record) bool {
	why := r.DefaultFailure()
	if why != "" {
		c.note("tilewright %s: %s: %s", c.command.name, r.Name, why)
	}
	return why != ""
}

// warnOfLeftOut warns of what an operation has left out; another error remains.
func (c *call) warnOfLeftOut(err error) error {
	var left *cache.LeftOutError
	if !errors.As(err, &left) {
		return err
	}
	for _, d := range left.Damaged {
		c.warn(d)
	}
	return nil
}
