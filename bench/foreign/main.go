package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "foreign:", err)
		os.Exit(1)
	}
}

// run judges the cases and modules of folders, and prints what is wrong.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("foreign", flag.ContinueOnError)
	cases := flags.String("cases", "out/foreign/cases", "`folder` of cases, zip files")
	only := flags.String("only", "", "run only cases whose names contain `text`")
	verbose := flags.Bool("v", false, "print each case")
	if err := flags.Parse(args); err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(*cases, "*"+*only+"*.zip"))
	if err != nil {
		return err
	}
	bad := 0
	for _, path := range paths {
		said := judge(path)
		if said != "" {
			bad++
		}
		if said != "" || *verbose {
			fmt.Fprintf(out, "%s: %s\n", strings.TrimSuffix(filepath.Base(path), ".zip"), said)
		}
	}
	fmt.Fprintf(out, "%d of %d cases bad\n", bad, len(paths))
	return nil
}

// judge runs a case, and says what is wrong.
func judge(path string) string {
	c, err := readCase(path)
	if err != nil {
		return err.Error()
	}
	m, err := ptx.Parse(c.Name+".ptx", c.PTX)
	if err != nil {
		return "parse: " + firstLine(err)
	}
	p, err := sim.Load(m)
	if err != nil {
		return "load: " + firstLine(err)
	}
	o, err := c.run(p)
	if err != nil {
		return "launch: " + firstLine(err)
	}
	said := ""
	for _, f := range o.Findings[:min(2, len(o.Findings))] {
		said += "finding: " + f.String() + "\n"
	}
	if o.Wrong > 0 {
		said += fmt.Sprintf("wrong: %d, %s", o.Wrong, o.First)
	}
	return said
}

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}
