package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/manual"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// main runs the command line on the process's arguments and streams. Tests call
// run, which needs no process.
func main() {
	os.Exit(run(
		os.Args[1:], os.Stdin,
		os.Stdout, os.Stderr,
	))
}

// commands is the table, in the order of the overview.
func commands() []command {
	return append(
		[]command{
			showCommand, partitionCommand, simplifyCommand, rankCommand, tuneCommand, runCommand, lookupCommand, serveCommand, cacheCommand,
			reportCommand, replayCommand, layoutCommand, devicesCommand, calibrateCommand, doctorCommand,
			completionCommand, manCommand,
		},
		cudaCommands()...,
	)
}

// run is the whole program: it runs a command and returns the exit status.
func run(args []string, in io.Reader, stdout, stderr io.Writer) int {
	out := &printer{to: stdout}
	errw := &printer{to: stderr}
	defer errw.finish()
	status := dispatch(args, in, out, errw)
	out.finish()
	if out.err != nil {
		fmt.Fprintf(errw, "tilewright %s: cannot print the result: %v\n", shortened(args[0]), out.err)
		return exitBad
	}
	return status
}

// dispatch finds what the first argument asks for, and does it.
func dispatch(args []string, in io.Reader, out, errw io.Writer) int {
	if len(args) == 0 {
		overview(errw)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		return help(args[1:], out, errw)
	case "version", "-version", "--version":
		printVersion(out)
		return exitOK
	}
	cmd, ok := find(args[0])
	if !ok {
		fmt.Fprintf(
			errw, "tilewright: unknown command %q%s; `tilewright help` lists them\n",
			shortened(args[0]), didYouMean(args[0]),
		)
		return exitUsage
	}
	return cmd.invoke(args[1:], in, out, errw)
}

// A printer writes text for people and programs. It passes no control character
// on but tabs and line breaks (report.Printable): ESC of a name, a note or a source reads \u001b, as
// in JSON, and does nothing to a terminal. It remembers the first error of its
// writer, so that a full disk behind standard output does not pass for success.
type printer struct {
	mu   sync.Mutex
	to   io.Writer
	held []byte // the beginning of a UTF-8 sequence
	err  error
}

func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := append(p.held, b...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if !utf8.FullRune(text[len(text)-n:]) {
				whole -= n
			}
			break
		}
	}
	p.held = []byte(string(text[whole:]))
	_, err := io.WriteString(p.to, report.Printable(string(text[:whole])))
	if err != nil && p.err == nil {
		p.err = err
	}
	return len(b), err
}

// raw is the printer for the bytes of a file.
func (p *printer) raw() io.Writer { return rawPrinter{p} }

// A rawPrinter passes every byte on, of files.
type rawPrinter struct{ *printer }

func (p rawPrinter) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// finish writes the beginning of a sequence that has no end.
func (p *printer) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.held) > 0 {
		io.WriteString(p.to, report.Printable(string(p.held)))
	}
}

// find looks up a command by its name.
func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// intro is the first paragraph of the overview.
const intro = `Tilewright tunes block tilings: it reads a fused tensor computation, works out
which tilings are legal, ranks them, measures the best few, and keeps winners
where a compiler can look them up.

usage: tilewright COMMAND [flags] [arguments]

`

// overview prints the commands, one a line.
func overview(w io.Writer) {
	fmt.Fprint(w, intro)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(t, "  %s %s\t%s\n", c.name, c.args, c.short)
	}
	t.Flush()
	fmt.Fprint(w, "\n`tilewright help COMMAND` says more, `tilewright version` what this is. Exit status: 0 ok, 1 bad input,\nor tune and doctor were interrupted, 2 wrong usage, 3 lookup found nothing, 4 ended by -timeout. A file to\nwrite that is named - is the standard output; what the command prints goes to the standard error then.\n")
}

// printVersion prints what this program was built from, as records have it, and Go's
// version.
func printVersion(w io.Writer) {
	fmt.Fprintf(w, "%s %s %s/%s\n", tuner.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// help prints the overview or, for a command, its full help.
func help(args []string, out, errw io.Writer) int {
	if len(args) == 0 {
		overview(out)
		return exitOK
	}
	cmd, ok := find(args[0])
	if !ok {
		fmt.Fprintf(errw, "tilewright: no command %q%s\n", shortened(args[0]), didYouMean(args[0]))
		return exitUsage
	}
	return cmd.invoke([]string{"-h"}, strings.NewReader(""), out, errw)
}

// didYouMean suggests the command with the closest name, if one is close.
func didYouMean(name string) string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	near := hlo.Nearest(name, names)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", near)
}

// completionCommand prints what makes a shell complete command lines.
var completionCommand = command{
	name: "completion", args: "bash|zsh|fish", short: "what makes a shell complete commands and flags",
	long: `Prints the completion of a shell, generated from the table of commands:

  source <(tilewright completion bash)                                     this shell; or in ~/.bashrc
  tilewright completion zsh > "${fpath[1]}/_tilewright"                    then start zsh again
  tilewright completion fish > ~/.config/fish/completions/tilewright.fish`,
}

// manCommand prints the manual page.
var manCommand = command{
	name: "man", args: "", short: "the manual page, for man",
	long: `Prints the manual page, generated from the table of commands:

  tilewright man > tilewright.1 && man ./tilewright.1`,
}

// The functions of both read the table of commands, which has these two.
func init() {
	completionCommand.run = runCompletion
	manCommand.run = runMan
}

// runCompletion prints the completion of a shell.
func runCompletion(c *call) error {
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	write, ok := manual.Completions[args[0]]
	if !ok {
		return usagef("no completion for %q; there are %s", args[0], strings.Join(slices.Sorted(maps.Keys(manual.Completions)), ", "))
	}
	_, err = io.WriteString(c.out, write(program()))
	return err
}

// runMan prints the manual page.
func runMan(c *call) error {
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	_, err := io.WriteString(c.out, program().Page())
	return err
}

// program is the table of commands, with their flags.
func program() *manual.Program {
	p := &manual.Program{
		Name:  "tilewright",
		Short: "tunes block tilings of fused tensor computations",
		Long:  intro[:strings.Index(intro, "usage:")],
	}
	for status, text := range exitTexts {
		p.Exits = append(p.Exits, manual.Exit{Status: status, Text: text})
	}
	for _, cmd := range commands() {
		of := manual.Command{Name: cmd.name, Args: cmd.args, Short: cmd.short, Long: cmd.long}
		if words := strings.Split(strings.TrimSuffix(cmd.args, " …"), "|"); len(words) > 1 {
			of.Words = words
		}
		c := cmd.call([]string{"-h"}, strings.NewReader(""), io.Discard, io.Discard)
		_ = cmd.run(c) // which defines the flags and ends with flag.ErrHelp
		c.VisitAll(func(f *flag.Flag) {
			arg, text := flag.UnquoteUsage(f)
			of.Flags = append(of.Flags, manual.Flag{Name: f.Name, Arg: arg, Text: text + defaultText(f)})
		})
		p.Commands = append(p.Commands, of)
	}
	return p
}
