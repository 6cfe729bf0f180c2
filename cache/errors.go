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

// A DamagedError is about one record; the others of its file are sound.
type DamagedError struct {
	Key Key   // zero when the key itself is damaged
	Err error // what is wrong
}

// Error names the fusion by the first digits of its fingerprint.
func (e *DamagedError) Error() string {
	device := cmp.Or(e.Key.Device, "an unknown device")
	return fmt.Sprintf(
		"the record of fusion %x on %s is damaged: %v", e.Key.Fusion[:4], device, e.Err,
	)
}

// Unwrap returns what is wrong with the record, and ErrDamaged.
func (e *DamagedError) Unwrap() []error {
	return []error{e.Err, ErrDamaged}
}
