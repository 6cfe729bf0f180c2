package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestErrorKinds(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, make([]byte, 1<<14), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(text).Get(Key{}); !errors.Is(err, ErrForeign) && !errors.Is(err, ErrDamaged) {
		t.Errorf("a file of zeros: %v", err)
	}
	if _, err := OpenSnapshot(text); !errors.Is(err, ErrForeign) {
		t.Errorf("a snapshot of zeros: %v", err)
	}
	if _, _, err := Open(dir).Get(Key{}); !errors.Is(err, ErrForeign) {
		t.Errorf("a directory: %v", err)
	}
	if err := error(&DamagedError{Err: errors.New("bits")}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a record: %v", err)
	}
}
