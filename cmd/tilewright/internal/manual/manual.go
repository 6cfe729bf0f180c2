// Package manual writes what a table of commands says as a manual page and as
// completions of shells.
package manual

import (
	"fmt"
	"strings"
)

// A Program is a program of commands.
type Program struct {
	// Name of the program, and what it is in one line.
	Name, Short string
	// Paragraphs about it.
	Long string
	// The commands, in order, and the meaning of exit statuses.
	Commands []Command
	Exits    []Exit
}

// A Command is one of them.
type Command struct {
	// Name, the names of arguments, and what it does in one line.
	Name, Args, Short string
	// Paragraphs about it; lines that begin with two spaces stay as they are.
	Long string
	// Words are what its first argument can be; none: a file.
	Words []string
	Flags []Flag
}

// A Flag is a flag of a command.
type Flag struct {
	// Name without the dash; of the argument, "" for a switch; and what it does.
	Name, Arg, Text string
}

// An Exit is an exit status and what it means.
type Exit struct {
	Status int
	Text   string
}

// Page is the manual page in roff, with the macros of man(7): a section of the commands
// with a subsection for each, its paragraphs and its flags, and one of exit statuses.
// Texts are escaped; the page is ASCII.
func (p *Program) Page() string {
	var b strings.Builder
	name := roff(p.Name)
	fmt.Fprintf(
		&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n",
		strings.ToUpper(name), name, roff(p.Short),
	)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIflags\\fR] [\\fIarguments\\fR]\n", name)
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, p.Long)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range p.Commands {
		fmt.Fprintf(
			&b, ".SS %s %s\n%s.\n.PP\n",
			roff(c.Name), roff(c.Args), roff(c.Short),
		)
		paragraphs(&b, c.Long)
		for _, f := range c.Flags {
			fmt.Fprintf(&b, ".TP\n\\fB\\-%s\\fR", roff(f.Name))
			if f.Arg != "" {
				fmt.Fprintf(&b, " \\fI%s\\fR", roff(f.Arg))
			}
			fmt.Fprintf(&b, "\n%s\n", roff(f.Text))
		}
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range p.Exits {
		fmt.Fprintf(&b, ".TP\n%d\n%s\n", e.Status, roff(e.Text))
	}
	return b.String()
}

// paragraphs writes text: empty lines end paragraphs, and lines that begin with two
// spaces are examples.
func paragraphs(b *strings.Builder, text string) {
	example := false
	for text := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		is := strings.HasPrefix(text, "  ")
		switch {
		case is && !example:
			b.WriteString(".nf\n") // no filling: as it is
		case !is && example:
			b.WriteString(".fi\n")
		}
		example = is
		switch {
		case strings.TrimSpace(text) == "":
			b.WriteString(".PP\n")
		default:
			b.WriteString(roff(text) + "\n")
		}
	}
	if example {
		b.WriteString(".fi\n")
	}
}

// roff escapes a text that is one line: backslashes, dashes, what is not ASCII, and what
// would be a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	var ascii strings.Builder
	for _, r := range text {
		if r < 0x80 {
			ascii.WriteRune(r)
		} else {
			fmt.Fprintf(&ascii, `\[u%04X]`, r)
		}
	}
	text = ascii.String()
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
