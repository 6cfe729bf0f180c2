package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// Every command ends by -timeout, with a status of its own: also one that looks at
// nothing, and one that hears of it and returns another error.
func TestTimeout(t *testing.T) {
	for _, c := range []struct {
		name, want string
		run        func(*call) error
	}{
		{"deaf", "deaf: ended by -timeout 1ms in the middle of a step\n", func(c *call) error { select {} }},
		{"listening", "listening: ended by -timeout 1ms\n", func(c *call) error {
			<-c.ctx.Done()
			return c.ctx.Err()
		}},
	} {
		cmd := command{name: c.name, run: func(k *call) error {
			if _, err := k.parse(0, 0); err != nil {
				return err
			}
			return c.run(k)
		}}
		var errs strings.Builder
		status := cmd.invoke([]string{"-timeout", "1ms"}, strings.NewReader(""), io.Discard, &errs)
		if status != exitTimeout || errs.String() != "tilewright "+c.want {
			t.Errorf("status %d, %q; want %d, %q", status, errs.String(), exitTimeout, c.want)
		}
	}
	for _, c := range commands() {
		var text, errs strings.Builder
		c.invoke([]string{"-h"}, strings.NewReader(""), &text, &errs)
		if !strings.Contains(text.String(), "-timeout time") {
			t.Errorf("%s has no -timeout: %s%s", c.name, &text, &errs)
		}
	}
}

// A panic is a bug, and is reported as one.
func TestPanicIsReported(t *testing.T) {
	var errs strings.Builder
	cmd := command{name: "broken", run: func(*call) error { panic("a bug") }}
	status := cmd.invoke(nil, strings.NewReader(""), io.Discard, &errs)
	if status != exitBad || !strings.Contains(errs.String(), "internal error: a bug\nThis is a bug in tilewright") {
		t.Errorf("status %d, %q", status, errs.String())
	}
}

// A process that replaces others knows how many there were, and when the command
// began, from which -timeout and -run-budget count.
func TestLineage(t *testing.T) {
	began := time.Unix(1700000000, 5)
	environ := []string{"HOME=/", restartVariable + "=", "PATH=/bin"}
	for n := range 3 {
		environ = firstProcess().next(environ, began.Add(time.Duration(n)*time.Hour))
		name, value, _ := strings.Cut(environ[len(environ)-1], "=")
		if len(environ) != 3 || name != restartVariable {
			t.Fatalf("%q", environ)
		}
		t.Setenv(name, value)
		if l := firstProcess(); l.restarts != n+1 || !l.began.Equal(began) {
			t.Errorf("%d restarts since %v", l.restarts, l.began)
		}
	}
}
