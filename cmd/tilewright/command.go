package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"text/tabwriter"
)

// A command is one row of the table: everything help says, and what runs.
type command struct {
	name, args string // "show", "FILE"
	short      string // one line, lower case
	long       string // paragraphs for `help NAME`
	run        func(*call) error
}

// commands is the table, in the order help shows it.
func commands() []command {
	return append(
		[]command{
			showCommand, simplifyCommand, rankCommand, tuneCommand, runCommand, lookupCommand, cacheCommand,
			reportCommand, layoutCommand, devicesCommand, doctorCommand, benchSymbolicCommand,
		},
		cudaCommands()...,
	)
}

// Exit statuses.
const (
	exitOK    = 0
	exitBad   = 1 // bad input, or something failed
	exitUsage = 2 // wrong usage
	exitMiss  = 3 // lookup: nothing is known
)

// A call is one invocation of a command.
type call struct {
	*flag.FlagSet
	command command
	rest    []string // arguments not parsed yet
	in      io.Reader
	out     io.Writer
	err     io.Writer
	json    bool
}

// A usageError is the caller's mistake on the command line: exit status 2.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errMiss ends a lookup that found nothing: exit status 3, already reported.
var errMiss = errors.New("miss")

// errReported ends a command whose errors were printed as they happened.
var errReported = errors.New("reported")

// run is the program: it never panics and returns the exit status.
func run(args []string, in io.Reader, out, errw io.Writer) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(errw, "tilewright: internal error: %v\nThis is a bug in tilewright: please report it with the input that caused it.\n\n%s", p, debug.Stack())
			status = exitBad
		}
	}()
	if len(args) == 0 {
		overview(errw)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		return help(args[1:], out, errw)
	}
	cmd, ok := find(args[0])
	if !ok {
		fmt.Fprintf(
			errw, "tilewright: unknown command %q%s; `tilewright help` lists them\n",
			args[0], didYouMean(args[0]),
		)
		return exitUsage
	}
	return cmd.invoke(args[1:], in, out, errw)
}

func (cmd command) invoke(
	args []string, in io.Reader, out, errw io.Writer,
) int {
	c := &call{
		FlagSet: flag.NewFlagSet(cmd.name, flag.ContinueOnError),
		command: cmd,
		rest:    args,
		in:      in,
		out:     out,
		err:     errw,
	}
	c.SetOutput(io.Discard)
	c.Usage = func() {}
	err := cmd.run(c)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
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
			cmd.name, usage.msg, cmd.name,
			cmd.args, cmd.name,
		)
		return exitUsage
	}
	fmt.Fprintf(errw, "tilewright %s: %v\n", cmd.name, err)
	return exitBad
}

// parse reads the flags defined so far, which may stand before, between or
// after the arguments, and returns between minOperands and maxOperands (-1: any number
// of) arguments.
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
	return args, nil
}

// jsonFlag defines -json; every command that prints a result has it.
func (c *call) jsonFlag() {
	c.BoolVar(&c.json, "json", false, "print JSON; the fields are in the package comment of cmd/tilewright")
}

// printJSON writes v, indented, with a newline.
func (c *call) printJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table starts columns aligned by tabs; Flush it.
func (c *call) table() *tabwriter.Writer {
	return tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}
