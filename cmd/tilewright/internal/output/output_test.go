package output

import (
	"bufio"
	"net"
	"os"
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

// A file that is replaced keeps its permissions.
func TestModeStays(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	err = File{Name: name, Replace: true}.Write(func(w *bufio.Writer) error {
		_, err := w.WriteString("{\"a\": 1}\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(name)
	if err != nil || after.Size() != 9 || after.Mode() != before.Mode() {
		t.Errorf("%v of %d bytes, before %v; %v", after.Mode(), after.Size(), before.Mode(), err)
	}
}
