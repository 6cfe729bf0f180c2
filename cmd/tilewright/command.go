package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/line"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A command is one row of the table of commands: everything that help prints,
// and the function that runs.
type command struct {
	// Name and arguments: "show", "FILE".
	name, args string
	// One line, in lower case, for the overview.
	short string
	// Paragraphs for `help NAME`.
	long string
	// Defines the flags, parses the arguments and does the work.
	run func(*call) error
}

// Exit statuses.
const (
	// The command did what it was asked.
	exitOK = 0
	// The input is bad, or something failed.
	exitBad = 1
	// The command line is wrong.
	exitUsage = 2
	// lookup found nothing.
	exitMiss = 3
	// The command was ended by -timeout.
	exitTimeout = 4
)

// exitTexts say what exit statuses mean.
var exitTexts = [...]string{
	exitOK:      "ok",
	exitBad:     "bad input, or something failed",
	exitUsage:   "wrong usage",
	exitMiss:    "lookup found nothing",
	exitTimeout: "ended by -timeout",
}

// A call is one invocation of a command: its flags, its arguments and its
// streams.
type call struct {
	*flag.FlagSet
	// What ends the call before its work is done.
	*ending
	// The command that was called.
	command command
	// Arguments that are not parsed yet, and those that are no flags.
	rest, operands []string
	// Extents of -shape.
	shapes shapeList
	// What was read from the standard input.
	piped []byte
	// Standard input, output and error.
	in  io.Reader
	out io.Writer
	err io.Writer
	// The standard output where a flag has it for a file, and the flag; nil, "" else.
	given   io.Writer
	givenTo string
	// The result is printed as JSON.
	json bool
	// What computes the fusions that a module without any is split into.
	target hlo.Target
	// The module that a result is of, FILE#2, where a file has several; "" else.
	part string
	// Messages are broken into lines of a terminal's width.
	narrow bool
	// Damaged records that were warned of.
	damaged int
	// What a test does to the backend that is opened; nil does nothing.
	tamper func(kernels.Backend) kernels.Backend
}

// A usageError is a mistake on the command line, with exit status 2.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// usagef makes a usageError.
func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errMiss ends a lookup that found nothing and has reported it, with exit
// status 3.
var errMiss = errors.New("miss")

// errReported ends a command that has printed its errors when they happened.
var errReported = errors.New("reported")

// invoke runs a command until it ends, or something ends it, and returns the exit
// status.
func (cmd command) invoke(
	args []string, in io.Reader, out, errw io.Writer,
) int {
	c := cmd.call(args, in, out, errw)
	return c.conclude(c.work())
}

// call is an invocation that has not begun.
func (cmd command) call(
	args []string, in io.Reader, out, errw io.Writer,
) *call {
	c := &call{
		target:  hlo.CPU,
		FlagSet: flag.NewFlagSet(cmd.name, flag.ContinueOnError),
		ending:  newEnding(),
		command: cmd,
		rest:    args,
		in:      in,
		out:     out,
		err:     errw,
	}
	c.SetOutput(io.Discard)
	c.Usage = func() {}
	c.timeoutFlag()
	return c
}

// conclude turns the error of a command into messages and an exit status.
func (c *call) conclude(err error) int {
	cmd, out, errw := c.command, c.out, c.err
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errAbandoned):
		fmt.Fprintf(errw, "tilewright %s: %s in the middle of a step\n", cmd.name, c.reason())
		return c.endedStatus()
	case c.timedOut():
		if !errors.Is(err, errReported) {
			fmt.Fprintf(errw, "tilewright %s: %s\n", cmd.name, c.reason())
		}
		return exitTimeout
	case errors.Is(err, flag.ErrHelp):
		c.describe(out)
		return exitOK
	case errors.Is(err, errMiss):
		return exitMiss
	case errors.Is(err, errReported):
		return exitBad
	case errors.As(err, &usage):
		fmt.Fprintf(
			errw, "tilewright %s: %s\nusage: tilewright %s %s\n`tilewright help %s` says more\n",
			cmd.name, shortened(usage.msg), cmd.name,
			cmd.args, cmd.name,
		)
		return exitUsage
	}
	c.note("tilewright %s: %s", cmd.name, shortened(err.Error()))
	return exitBad
}

// maxMessage bounds what a message says of an error, in bytes.
const maxMessage = 1600

// shortened is a text of at most maxMessage bytes: its beginning and its end.
func shortened(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	const kept = maxMessage/2 - 40
	return fmt.Sprintf("%s … (%d bytes) … %s",
		strings.ToValidUTF8(text[:kept], ""), len(text)-2*kept, strings.ToValidUTF8(text[len(text)-kept:], ""))
}

// parse reads the flags defined so far, which may stand before, between or
// behind the arguments, and returns the arguments, of which there must be
// atLeast to atMost; an atMost of −1 means any number.
func (c *call) parse(atLeast, atMost int) ([]string, error) {
	var args []string
	for rest := c.rest; len(rest) > 0; {
		if err := c.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usagef("%v", err)
		}
		parsed := len(rest) - c.NArg()
		if parsed > 0 && rest[parsed-1] == "--" {
			args = append(args, c.Args()...)
			break
		}
		if c.NArg() > 0 {
			args = append(args, c.Arg(0))
		}
		rest = c.Args()[min(1, c.NArg()):]
	}
	switch {
	case len(args) < atLeast:
		return nil, usagef("needs %s", c.command.args)
	case atMost >= 0 && len(args) > atMost:
		return nil, usagef("unexpected argument %q", args[atMost])
	}
	c.operands = args
	return args, c.start()
}

// output is a file that the command writes, named by a flag or, where that is "", by an
// argument. It is none of the other files that the command line names, in flags or
// arguments, be they read or written.
func (c *call) output(own, name string, kind output.Kind, replace bool) output.File {
	var others []string
	if f := c.FlagSet.Lookup("db"); f != nil && own != "db" {
		others = append(others, f.Value.String()) // also by default
	}
	c.Visit(func(f *flag.Flag) {
		if f.Name != own {
			others = append(others, strings.Split(f.Value.String(), ",")...)
		}
	})
	for _, a := range c.operands {
		if own != "" || a != name {
			others = append(others, a)
		}
	}
	file := output.File{Name: name, Kind: kind, Others: others, Replace: replace}
	if name == output.Standard {
		file.Stdout, file.Taken = c.standardOutput(own)
	}
	return file
}

// standardOutput gives the standard output to the flag whose value is "-"; what the command
// prints goes to the standard error from then on. The text says why it is not free.
func (c *call) standardOutput(flag string) (w io.Writer, taken string) {
	if c.given == nil {
		c.given, c.out = c.out, c.err
		c.givenTo = flag
	}
	switch {
	case c.json:
		taken = "-json prints the result there"
	case c.givenTo != flag:
		taken = fmt.Sprintf("-%s writes there, too", c.givenTo)
	}
	if p, ok := c.given.(interface{ raw() io.Writer }); ok {
		return p.raw(), taken
	}
	return c.given, taken
}

// jsonFlag defines -json; every command that prints a result has it.
func (c *call) jsonFlag() {
	c.BoolVar(&c.json, "json", false, "print JSON; the fields are in the package comment of cmd/tilewright")
}

// printJSON writes a value as indented JSON, with a newline. Of a module among several of
// a file, the object begins with its name, "file".
func (c *call) printJSON(v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	document := text.Bytes()
	if c.part != "" {
		name, _ := json.Marshal(c.part)
		document = slices.Concat([]byte("{\n  \"file\": "), name, []byte(","), document[1:])
	}
	_, err := c.out.Write(document)
	return err
}

// table begins a table with columns that are aligned by tabs. The caller
// flushes it.
func (c *call) table() *tabwriter.Writer {
	return tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
}

// describe prints the full help of a command, whose flags have been defined.
func (c *call) describe(w io.Writer) {
	fmt.Fprintf(
		w, "usage: tilewright %s [flags] %s\n\n%s\n",
		c.command.name, c.command.args,
		strings.TrimSpace(c.command.long),
	)
	any := false
	c.VisitAll(func(f *flag.Flag) {
		if !any {
			fmt.Fprint(w, "\nflags:\n")
			any = true
		}
		arg, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  -%s\n      %s\n", strings.TrimSpace(f.Name+" "+arg), text+defaultText(f))
	})
}

// replaceFlag defines -f, which lets an output replace a file of another kind.
func (c *call) replaceFlag() *bool {
	return c.Bool("f", false, "replace an output file even if it holds something of another kind")
}

// learnFlag defines -learn.
func (c *call) learnFlag() *bool {
	return c.Bool("learn", false, "correct the prices by all samples of the device in -db: other plans are tried then, depending on what was tuned before")
}

// dbFlag defines -db.
func (c *call) dbFlag() *string {
	return c.String("db", "tilewright.db", "the cache `file`")
}

// note prints a message on the standard error, in lines of a terminal's width if the
// command prints all of its lines so.
func (c *call) note(format string, args ...any) {
	if c.narrow {
		fmt.Fprintln(c.err, wrapped(format, args...))
		return
	}
	fmt.Fprintf(c.err, format+"\n", args...)
}

// wrapped is a message in lines of a terminal's width. One of several lines, which may
// have an excerpt with a caret, stays as it is.
func wrapped(format string, args ...any) string {
	message := strings.TrimSuffix(fmt.Sprintf(format, args...), "\n")
	if strings.Contains(message, "\n") {
		return message
	}
	return line.Wrap(line.Width, message)
}

// firstLine is a text up to its first line break: what a table shows of a message that
// has an excerpt of a program below it.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// defaultText is the default of a flag, if it has one.
func defaultText(f *flag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s":
		return ""
	}
	return fmt.Sprintf(" (default %s)", f.DefValue)
}
