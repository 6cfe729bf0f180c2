package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/tuner"
)

// ErrClosed is the error of a question to a Store that is closed.
var ErrClosed = errors.New("the database or snapshot is closed")

// A StoreError is an error of the database or the snapshot, not of the question.
type StoreError struct{ Err error }

// Error is that of the file.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap is that of the file.
func (e *StoreError) Unwrap() error { return e.Err }

// A Device is what plans are asked for.
type Device struct {
	// Identity is a part of the key of a winner.
	Identity kernels.Identity
	// Backend gives a default plan where nothing is stored; nil gives none. A Store
	// calls it from one goroutine at a time.
	Backend kernels.Backend
}

// DeviceOf is the device of a backend.
func DeviceOf(b kernels.Backend) Device {
	return Device{kernels.IdentityOf(b), b}
}

// Target is what computes the fusions of the device of the store.
func (s *Store) Target() hlo.Target { return TargetOf(s.device.Identity) }

// A Store answers from a database or from a published snapshot, for one device. Any
// number of goroutines may ask it.
type Store struct {
	device   Device
	db       *cache.DB
	watch    *cache.Watch // of db
	snapshot *tuner.Snapshot

	open   sync.RWMutex // held for writing by Close
	closed bool
	plans  sync.Mutex // held while the backend makes a plan
	texts  texts
	known  known
}

// Open opens the database or the snapshot at a path: the first bytes tell which. A
// file that does not exist is a database without winners.
func Open(path string, d Device) (*Store, error) {
	s := &Store{device: d}
	published, err := isSnapshot(path)
	if err != nil {
		return nil, err
	}
	if !published {
		s.db = cache.Open(path)
		s.watch = s.db.Watch()
		return s, nil
	}
	snapshot, err := tuner.OpenSnapshot(path)
	s.snapshot = &snapshot
	return s, err
}

// isSnapshot reads the first bytes of a file.
func isSnapshot(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return false, err // to open a pipe would wait; the database says what it is
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(snapshotMagic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == snapshotMagic, nil
}

// AppendPlan is Get without a document: it appends the text of the plan to a slice and
// returns the seconds of the winner. Of a snapshot nothing is allocated for it.
func (s *Store) AppendPlan(to []byte, print cache.Fingerprint) (plan []byte, seconds float64, found bool, err error) {
	if s.snapshot == nil {
		w, err := s.Get(print)
		return append(to, w.Plan...), w.Seconds, w.Answer == "exact", err
	}
	key := s.key(print)
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return to, 0, false, &StoreError{ErrClosed}
	}
	hit := hits.Get().(*cache.Hit)
	defer hits.Put(hit)
	found, err = s.snapshot.Get(&key, hit)
	if err != nil {
		return to, 0, false, &StoreError{err}
	}
	if !found {
		return to, 0, false, nil
	}
	return append(to, hit.Plan...), hit.Seconds, true, nil
}

// hits are for reuse: one that has been used allocates nothing.
var hits = sync.Pool{New: func() any { return new(cache.Hit) }}

// key is that of a fusion on the device.
func (s *Store) key(print cache.Fingerprint) cache.Key {
	id := s.device.Identity
	return cache.Key{
		Fusion:  print,
		Device:  id.Device,
		Backend: id.Backend,
		Codegen: id.Revision,
	}
}

// Instant reports whether Get takes no lock and reads no file: a snapshot.
func (s *Store) Instant() bool { return s.snapshot != nil }

// snapshotMagic begins the snapshots of all versions.
const snapshotMagic = "TWSNAP"

// Close waits for the questions that are being answered and frees the snapshot.
// Later questions fail with ErrClosed.
func (s *Store) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	closed := s.closed
	s.closed = true
	switch {
	case closed:
		return nil
	case s.snapshot != nil:
		return s.snapshot.Close()
	case s.watch != nil:
		return s.watch.Close()
	}
	return nil
}

// A Winner is the plan of one fusion.
type Winner struct {
	// Answer says where the plan is from: "exact", what is stored for this fusion on
	// this device; "nearest", what is stored for other extents, another revision of the
	// code generator or another device, and is legal for this fusion; "predicted", the
	// default plan, which is the first by price; "default", a default plan without a
	// price; or "none".
	Answer string `json:"answer"`
	// Name of the fusion; empty for a question by fingerprint.
	Fusion string `json:"fusion,omitempty"`
	// Source is the operation and the line of the user's program that the fusion that was
	// asked for comes from; empty if unknown.
	Source string `json:"source,omitempty"`
	// Fingerprint of the canonical fusion, hexadecimal.
	Fingerprint string `json:"fingerprint"`
	// Stable name of the device.
	Device string `json:"device"`
	// Plan, as "64,256,32 threads=2": tile sizes and knobs.
	Plan string `json:"plan,omitempty"`
	// Dims are the names of the dimensions that the plan has tile sizes of, in their
	// order; absent of a winner that an older version has stored.
	Dims []string `json:"dims,omitempty"`
	// Seconds is the median of what is stored, or a prediction.
	Seconds float64 `json:"seconds,omitempty"`
	// Predicted says that Seconds are of the cost model.
	Predicted bool `json:"predicted,omitempty"`
	// Differs lists how what a nearest plan was measured for differs from what was
	// asked.
	Differs []string `json:"differs,omitempty"`
	// Reason why there is no plan, or why it is not the stored winner, which is damaged, or
	// not the default, which fails its check.
	Reason string `json:"reason,omitempty"`
	// Safe lists how the safe context of the record differs from the device's.
	Safe []string `json:"safe,omitempty"`
	// Evidence is there for winners; DefaultError only for those of a database.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Evidence is how a winner was chosen.
type Evidence struct {
	// Default is the plan that the winner is compared with.
	Default string `json:"default,omitempty"`
	// Speedup over the default: median, lower and upper end (0: unknown).
	Speedup [3]float64 `json:"speedup"`
	// Regret bounds the winner's time over that of the best tried plan, less 1, at
	// 95 %; −1 is unknown.
	Regret float64 `json:"regret"`
	// Ties are the plans that are statistically equal to the winner.
	Ties []string `json:"ties,omitempty"`
	// Checked says that the winner agreed with the reference on this machine.
	Checked bool `json:"checked"`
	// Provisional says that the race is not over, or only the default was timed.
	Provisional bool `json:"provisional,omitempty"`
	// Like is the fusion, different in extents only, whose winner was raced beside the
	// default, and nothing else; a snapshot does not know it.
	Like string `json:"like,omitempty"`
	// DefaultError is how the default plan failed its check.
	DefaultError string `json:"defaultError,omitempty"`
	// When the winner was measured (RFC 3339), and by which tool.
	When string `json:"when,omitempty"`
	By   string `json:"by,omitempty"`
}

// dateText is a date of a record; empty where there is none.
func dateText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Get answers for a fingerprint. A miss is "none": there is no fusion to make a plan
// of.
func (s *Store) Get(print cache.Fingerprint) (Winner, error) {
	key := s.key(print)
	w := Winner{
		Answer:      "none",
		Fingerprint: fmt.Sprintf("%x", print[:]),
		Device:      key.Device,
	}
	s.open.RLock()
	defer s.open.RUnlock()
	switch {
	case s.closed:
		return w, &StoreError{ErrClosed}
	case s.snapshot != nil:
		err := s.published(&w, &key)
		return w, err
	case s.db == nil:
		return w, &StoreError{errors.New("no database and no snapshot is open")}
	}
	return s.remembered(asked{print: print}, func() (Winner, bool, error) {
		err := s.stored(&w, &key)
		return w, true, err
	})
}

// published fills in what the snapshot has.
func (s *Store) published(w *Winner, key *cache.Key) error {
	hit := hits.Get().(*cache.Hit)
	defer hits.Put(hit)
	found, err := s.snapshot.Get(key, hit)
	if err != nil {
		return &StoreError{err}
	}
	if !found {
		return nil
	}
	w.Answer = "exact"
	w.Plan = string(hit.Plan)
	w.Dims = hit.DimNames()
	w.Seconds = hit.Seconds
	w.Predicted = hit.Untimed
	w.Safe = hit.SafeDiff(s.device.Identity.Safe)
	w.Evidence = &Evidence{
		Default:     string(hit.Default),
		Speedup:     hit.Speedup,
		Regret:      hit.Regret,
		Ties:        hit.Ties(),
		Checked:     hit.Checked,
		Provisional: hit.Provisional,
		When:        dateText(hit.When()),
		By:          string(hit.By),
	}
	return nil
}

// stored fills in what the database has.
func (s *Store) stored(w *Winner, key *cache.Key) error {
	r, found, err := s.db.Get(*key)
	if err != nil {
		return &StoreError{err}
	}
	if !found {
		return nil
	}
	w.Answer = "exact"
	w.Plan = r.Plan
	w.Dims = r.Dims
	w.Seconds = r.Seconds
	w.Predicted = r.Untimed
	w.Safe = cache.SafeDiff(r.Safe, s.device.Identity.Safe)
	w.Evidence = &Evidence{
		Default:      r.Default,
		Speedup:      r.Speedup,
		Regret:       r.Regret,
		Ties:         r.Ties,
		Checked:      r.Checked,
		Provisional:  r.Provisional,
		Like:         r.Like,
		DefaultError: r.DefaultFailure(),
		When:         dateText(r.When),
		By:           r.By,
	}
	return nil
}

// Default is the plan that the backend takes without tuning, which is the first by
// price, with the time that the model predicts for it. Nothing is measured.
func (s *Store) Default(ctx context.Context, c *hlo.Computation) Winner {
	w := Winner{
		Answer:      "none",
		Fusion:      c.Name,
		Fingerprint: fmt.Sprintf("%x", c.Fingerprint()),
		Device:      s.device.Identity.Device,
	}
	if err := s.setDefault(ctx, &w, c); err != nil {
		w.Reason = err.Error()
	}
	return w
}

// missed answers for a fusion of which nothing is stored: with the nearest winner, or
// the default plan. It is remembered unless there is none, which may be for want of time.
func (s *Store) missed(ctx context.Context, c *hlo.Computation) Winner {
	w, _ := s.remembered(asked{c.Fingerprint(), c.Name}, func() (Winner, bool, error) {
		w := s.plan(ctx, c)
		return w, w.Answer != "none", nil
	})
	return w
}

// plan is missed, not remembered.
func (s *Store) plan(ctx context.Context, c *hlo.Computation) Winner {
	b := s.device.Backend
	if b == nil {
		return s.Default(ctx, c)
	}
	a, err := s.ask(ctx, c, b)
	w := Winner{
		Answer:      string(a.Basis),
		Fusion:      c.Name,
		Fingerprint: fmt.Sprintf("%x", c.Fingerprint()),
		Device:      s.device.Identity.Device,
	}
	if err != nil {
		w.Answer, w.Reason = "none", err.Error()
		return w
	}
	w.Plan = a.Plan.String()
	w.Dims = a.Dims
	w.Seconds = a.Seconds
	w.Predicted = a.Untimed
	w.Differs = a.Differs
	w.Safe = a.SafeGap
	w.Reason = cmp.Or(a.Damage, a.DefaultFailure)
	if a.Default != "" {
		w.Evidence = &Evidence{
			Default:     a.Default,
			Speedup:     a.Speedup,
			Regret:      a.Regret,
			Ties:        a.Ties,
			Checked:     a.Checked,
			Provisional: a.Provisional,
			When:        dateText(a.When),
			By:          a.By,
		}
	}
	return w
}

// ask asks for an answer of any basis.
func (s *Store) ask(ctx context.Context, c *hlo.Computation, b kernels.Backend) (tuner.Answer, error) {
	s.open.RLock()
	defer s.open.RUnlock()
	s.plans.Lock()
	defer s.plans.Unlock()
	switch {
	case s.closed:
		return tuner.Answer{}, &StoreError{ErrClosed}
	case s.snapshot != nil:
		return s.snapshot.Answer(ctx, c, b)
	}
	return tuner.AnswerFrom(ctx, s.db, c, b)
}

// setDefault fills in the default plan.
func (s *Store) setDefault(ctx context.Context, w *Winner, c *hlo.Computation) error {
	b := s.device.Backend
	if b == nil {
		return errors.New("there is no backend of this device here, which could make a plan")
	}
	p, err := symtile.Analyze(ctx, c)
	if err != nil {
		return err
	}
	s.plans.Lock()
	defer s.plans.Unlock()
	plan, err := b.Default(ctx, p)
	if err != nil {
		return err
	}
	w.Answer = "default"
	w.Plan = plan.String()
	w.Dims = p.DimNames()
	w.Predicted = true
	pricer, err := kernels.PricerOf(b, p)
	if err != nil {
		return err
	}
	ranked, err := new(cost.Model).Rank(ctx, pricer, []kernels.Plan{plan})
	if err == nil {
		w.Seconds = ranked[0].Seconds
	}
	return err
}

// A Lookup is the answer for all fusions of a text.
type Lookup struct {
	// Fusions in the order in which they run.
	Fusions []Winner `json:"fusions"`
	// Instructions of a module without fusions that are in none.
	Outside []Outside `json:"outside,omitempty"`
}

// Lookup answers for the fusions of a text, or for the one of a name. Fusions of which
// nothing is stored get the nearest winner or the default plan, unless only exact answers
// are wanted. A text that was seen before is not parsed again, unless one is missed.
func (s *Store) Lookup(ctx context.Context, text, fusion string, exact bool) (*Lookup, error) {
	known, err := s.texts.read(ctx, text, s.Target())
	if err != nil {
		return nil, err
	}
	l := &Lookup{Fusions: []Winner{}, Outside: known.outside}
	missed := map[string]bool{}
	for _, f := range known.prints {
		if fusion != "" && f.Name != fusion {
			continue
		}
		w, err := s.Get(f.print)
		if err != nil && (exact || !s.isOneRecord(err)) {
			return nil, err
		}
		w.Fusion = f.Name
		if w.Answer == "none" && !exact {
			missed[f.Name] = !s.recall(asked{f.print, f.Name}, &w)
		}
		w.Source = f.Source
		l.Fusions = append(l.Fusions, w)
	}
	if fusion != "" && len(l.Fusions) == 0 {
		return nil, fmt.Errorf("there is no fusion %q", fusion)
	}
	return l, s.setDefaults(ctx, l, text, missed)
}

// isOneRecord reports whether an error is that of one damaged record, beside which there
// are others.
func (s *Store) isOneRecord(err error) bool {
	var damaged *cache.DamagedError
	return errors.As(err, &damaged) || s.snapshot != nil && errors.Is(err, cache.ErrDamaged)
}

// setDefaults replaces the answers of fusions that were missed.
func (s *Store) setDefaults(ctx context.Context, l *Lookup, text string, missed map[string]bool) error {
	for k, w := range l.Fusions {
		if !missed[w.Fusion] {
			continue
		}
		split, err := Read(ctx, "text", []byte(text), s.Target())
		if err != nil {
			return err
		}
		for _, c := range split.Module.Fusions() {
			for j := k; missed[c.Name] && j < len(l.Fusions); j++ {
				if l.Fusions[j].Fusion == c.Name {
					source := l.Fusions[j].Source
					l.Fusions[j] = s.missed(ctx, c)
					l.Fusions[j].Source = source
				}
			}
		}
		return nil
	}
	return nil
}

// A Print is the fingerprint of a fusion.
type Print struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	// Source is the operation and the line of the user's program that it comes from.
	Source string `json:"source,omitempty"`

	print cache.Fingerprint
}

// Prints lists the fusions of a text with their fingerprints.
func (s *Store) Prints(ctx context.Context, text string) ([]Print, error) {
	known, err := s.texts.read(ctx, text, s.Target())
	return known.prints, err
}

// texts remembers the fingerprints of the fusions of texts, for one target, since the processes of a
// job ask for the same ones.
type texts struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]readText
}

// A readText is what is remembered of a text.
type readText struct {
	prints  []Print
	outside []Outside
}

// maxTexts is how many texts are remembered: some hundred bytes for each fusion.
const maxTexts = 1 << 12

// read reads a text, unless it is remembered.
func (t *texts) read(ctx context.Context, text string, target hlo.Target) (readText, error) {
	sum := sha256.Sum256([]byte(text))
	t.mu.Lock()
	known, ok := t.seen[sum]
	t.mu.Unlock()
	if ok {
		return known, nil
	}
	split, err := Read(ctx, "text", []byte(text), target)
	if err != nil {
		return readText{}, err
	}
	known = readText{prints: Prints(split.Module), outside: NewOutside(split.Outside)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil || len(t.seen) >= maxTexts {
		t.seen = map[[sha256.Size]byte]readText{}
	}
	t.seen[sum] = known
	return known, nil
}

// Prints lists the fusions of a module with their fingerprints.
func Prints(m *hlo.Module) []Print {
	list := []Print{}
	callers := m.Callers()
	for _, c := range m.Fusions() {
		print := c.Fingerprint()
		source, _ := origin.First(c.Sources(callers[c]))
		list = append(list, Print{c.Name, fmt.Sprintf("%x", print[:]), source, print})
	}
	return list
}
