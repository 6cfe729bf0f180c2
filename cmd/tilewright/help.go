package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tilewright/tilewright/symtile/hlo"
)

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
		fmt.Fprintf(
			t, "  %s %s\t%s\n", c.name, c.args, c.short,
		)
	}
	t.Flush()
	fmt.Fprint(w, "\n`tilewright help COMMAND` says more. Exit status: 0 ok, 1 bad input, 2 wrong usage,\n3 lookup found nothing.\n")
}

// help prints the overview or, for a command, its full help.
func help(args []string, out, errw io.Writer) int {
	if len(args) == 0 {
		overview(out)
		return exitOK
	}
	cmd, ok := find(args[0])
	if !ok {
		fmt.Fprintf(
			errw, "tilewright: no command %q%s\n", args[0], didYouMean(args[0]),
		)
		return exitUsage
	}
	return cmd.invoke(
		[]string{"-h"}, strings.NewReader(""), out, errw,
	)
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
		if f.DefValue != "" && f.DefValue != "false" &&
			f.DefValue != "0" && f.DefValue != "0s" {
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(
			w, "  -%s\n      %s\n",
			strings.TrimSpace(f.Name+" "+arg), text,
		)
	})
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
