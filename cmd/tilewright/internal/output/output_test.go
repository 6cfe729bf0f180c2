package output

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be written is named once, with the reason.
func TestWritable(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "a.db") // opening one fails for everyone, root too
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	want := "cannot write " + socket + ": no such device or address"
	if err := Writable(socket); err == nil || err.Error() != want {
		t.Errorf("%v, not %s", err, want)
	}
	if err := Writable(filepath.Join(t.TempDir(), "none", "b.db")); err == nil ||
		strings.Contains(err.Error(), ".tilewright") {
		t.Errorf("%v", err)
	}
}
