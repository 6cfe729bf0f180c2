package cache

import (
	"cmp"
	"errors"
	"fmt"
)

// Errors of a file as a whole, for errors.Is. Nothing is lost by any of them:
// what is stored stays as it is.
var (
	// ErrBusy is returned when other processes held the file for longer than a
	// transaction can take: 5 s for a reader, 20 s for a writer.
	ErrBusy = errors.New("the file is busy")

	// ErrForeign is returned for a file that this package has not written. It
	// is never overwritten.
	ErrForeign = errors.New("the file is not tilewright's")

	// ErrNewer is returned for a file of a later version of the schema.
	ErrNewer = errors.New("the file is of a newer version")

	// ErrShrinks is returned for a snapshot that would lose more than half of
	// its records.
	ErrShrinks = errors.New("the snapshot would lose more than half of its records")

	// ErrDamaged is returned for a file, or a part of one, that is not as it was
	// written. A *DamagedError is one.
	ErrDamaged = errors.New("the file is damaged")
)

// A kindError is an error that errors.Is also finds to be one of the errors
// above; its text is its own.
type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() []error {
	return []error{e.error, e.kind}
}

// kindf makes a kindError with a formatted text.
func kindf(kind error, format string, args ...any) error {
	return &kindError{fmt.Errorf(format, args...), kind}
}

// A DamagedError is about one record or one unfinished race; the others of its
// file are sound. DeleteDamaged removes it.
type DamagedError struct {
	Key        Key    // zero but for the fingerprint when the key itself is damaged
	Unfinished bool   // the trials of an unfinished race, not a record
	Err        error  // what is wrong
	stored     []byte // the key as it is stored
}

// Error names the fusion by the first digits of its fingerprint.
func (e *DamagedError) Error() string {
	device := cmp.Or(e.Key.Device, "an unknown device")
	what := "record"
	if e.Unfinished {
		what = "unfinished race"
	}
	return fmt.Sprintf(
		"the %s of fusion %x on %.60q is damaged: %v", what, e.Key.Fusion[:4], device, e.Err,
	)
}

// Unwrap returns what is wrong with the record, and ErrDamaged.
func (e *DamagedError) Unwrap() []error {
	return []error{e.Err, ErrDamaged}
}

// A LeftOutError is the error of an operation that was completed for everything
// that is sound. It names what was left out.
type LeftOutError struct {
	Damaged []*DamagedError // at least one
}

// Error has a line for each damaged entry.
func (e *LeftOutError) Error() string {
	return errors.Join(e.Unwrap()...).Error()
}

// Unwrap returns the damaged entries.
func (e *LeftOutError) Unwrap() []error {
	var all []error
	for _, d := range e.Damaged {
		all = append(all, d)
	}
	return all
}

// leftOut is the error of an operation without damaged entries: nil where there
// are none.
func leftOut(damaged []*DamagedError) error {
	if len(damaged) == 0 {
		return nil
	}
	return &LeftOutError{damaged}
}
