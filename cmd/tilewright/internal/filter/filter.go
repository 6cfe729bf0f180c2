// Package filter selects stored winners by flags: by device, age and regret.
package filter

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// A Filter keeps the records that satisfy all of its flags; those that are not given
// keep everything.
type Filter struct {
	// Device is a pattern of the names of devices, as of path.Match, in which * matches
	// any text, / too; "" matches all.
	Device string
	// Older and Newer bound the age; 0 is no bound.
	Older, Newer Age
	// Regret keeps what may be slower than the best of what was tried by more than this,
	// and what is unknown.
	Regret Ratio
}

// names are the flags, by which Used finds them.
var names = []string{"on", "older", "newer", "regret"}

// Define defines the flags.
func (f *Filter) Define(flags *flag.FlagSet) {
	const regret = "ls: only winners that may be slower than the best plan tried by more than this `ratio`, as 2%, or of which that is unknown"
	flags.StringVar(&f.Device, "on", "", "ls: only winners on devices that match this `pattern`, as 'cpu:*' or '*H100*'")
	flags.Var(&f.Older, "older", "ls: only winners measured longer ago than this `age`, as 30d, 12h or 2w")
	flags.Var(&f.Newer, "newer", "ls: only winners measured within this `age`")
	flags.Var(&f.Regret, "regret", regret)
}

// Used is the name of a flag that was given, "" if none was.
func Used(flags *flag.FlagSet) (name string) {
	flags.Visit(func(f *flag.Flag) {
		if slices.Contains(names, f.Name) {
			name = f.Name
		}
	})
	return name
}

// Check refuses a pattern that is none.
func (f *Filter) Check() error {
	if _, err := path.Match(f.Device, ""); err != nil {
		return fmt.Errorf("-on %q is not a pattern: * stands for any text, ? for a character, [ab] for one of several", f.Device)
	}
	return nil
}

// Keeps reports whether a record satisfies the flags at a time.
func (f *Filter) Keeps(r *cache.Record, now time.Time) bool {
	age := now.Sub(r.When)
	switch {
	case f.Device != "" && !matches(f.Device, r.Device):
		return false
	case f.Older > 0 && age <= time.Duration(f.Older):
		return false
	case f.Newer > 0 && age > time.Duration(f.Newer):
		return false
	}
	return f.Regret.exceeded(r.Regret)
}

// exceeded reports whether a regret is above the ratio, or unknown; without a ratio all
// are.
func (r *Ratio) exceeded(regret float64) bool {
	return !r.set || regret < 0 || regret > r.value
}

// matches is path.Match where no character is special to *.
func matches(pattern, name string) bool {
	plain := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(plain.Replace(pattern), plain.Replace(name))
	return ok
}

// An Age is a duration that also has days and weeks: 30d, 2w, 36h, 1h30m.
type Age time.Duration

// String is the age as Set reads it; empty for 0.
func (a *Age) String() string {
	if a == nil || *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Set parses it.
func (a *Age) Set(text string) error {
	d, err := time.ParseDuration(text)
	for unit, length := range longUnits {
		number, is := strings.CutSuffix(text, unit)
		if !is {
			continue
		}
		var n float64
		n, err = strconv.ParseFloat(number, 64)
		d = scaled(n, length)
	}
	if err != nil || d <= 0 {
		return errAge
	}
	*a = Age(d)
	return nil
}

// longUnits are those that time.ParseDuration does not know.
var longUnits = map[string]time.Duration{
	"d": 24 * time.Hour,
	"w": 7 * 24 * time.Hour,
}

// scaled is n units; 0 where that is no duration.
func scaled(n float64, unit time.Duration) time.Duration {
	n *= float64(unit)
	if !(n < math.MaxInt64) {
		return 0
	}
	return time.Duration(n)
}

var errAge = errors.New("an age is a number above 0 with a unit: 30d, 2w, 12h")

// A Ratio is a number or a percentage, possibly behind ">", which says nothing else.
type Ratio struct {
	value float64
	set   bool
}

// String is the ratio as a percentage; empty if none was given.
func (r *Ratio) String() string {
	if r == nil || !r.set {
		return ""
	}
	return fmt.Sprintf("%g%%", 100*r.value)
}

// Set parses it.
func (r *Ratio) Set(text string) error {
	number, percent := strings.CutSuffix(strings.TrimPrefix(text, ">"), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return errors.New("a ratio is a number such as 0.02, or a percentage such as 2%")
	}
	*r = Ratio{v, true}
	return nil
}
