package manual

import (
	"fmt"
	"strings"
)

// Completions are the shells, by name, and what writes the completion of each: commands,
// the flags of the command behind a dash, the words that its first argument can be, and
// files for anything else.
var Completions = map[string]func(*Program) string{
	"bash": (*Program).bash,
	"zsh":  (*Program).zsh,
	"fish": (*Program).fish,
}

// bash completes commands, then flags behind a dash, words of the command, and files.
func (p *Program) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for bash: source it.\n_%s() {\n", p.Name, p.Name)
	b.WriteString("  local cur=${COMP_WORDS[COMP_CWORD]} flags= words=\n  case ${COMP_WORDS[1]} in\n")
	var names []string
	for _, c := range p.Commands {
		names = append(names, c.Name)
		var flags []string
		for _, f := range c.Flags {
			flags = append(flags, "-"+f.Name)
		}
		all, words := strings.Join(flags, " "), strings.Join(c.Words, " ")
		fmt.Fprintf(
			&b, "  %s) flags=%s words=%s ;;\n",
			c.Name, quoted(all), quoted(words),
		)
	}
	fmt.Fprintf(&b, `  esac
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W %s -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif ((COMP_CWORD == 2)) && [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}
complete -o default -F _%s %s
`, quoted(strings.Join(names, " ")), p.Name, p.Name)
	return b.String()
}

// zsh completes the same with descriptions. A flag that takes a value completes files for
// it.
func (p *Program) zsh() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(`#compdef NAME
# Completion of NAME for zsh: a file _NAME in a folder of $fpath.
_NAME() {
  local -a commands
  commands=(
`, "NAME", p.Name))
	for _, c := range p.Commands {
		short := strings.ReplaceAll(c.Short, ":", `\:`)
		fmt.Fprintf(&b, "    %s\n", quoted(c.Name+":"+short))
	}
	// _arguments is to see the words of the command alone, without the program.
	b.WriteString(`  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
`)
	special := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "  %s)\n    _arguments", c.Name)
		for _, f := range c.Flags {
			spec := fmt.Sprintf("-%s[%s]", f.Name, special.Replace(f.Text))
			if f.Arg != "" {
				spec += ":" + special.Replace(f.Arg) + ":_files"
			}
			fmt.Fprintf(&b, " \\\n      %s", quoted(spec))
		}
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, " \\\n      %s", quoted("1:word:("+strings.Join(c.Words, " ")+")"))
		}
		b.WriteString(" \\\n      '*:file:_files'\n    ;;\n")
	}
	// The file is the function when it is loaded from $fpath, and defines it when sourced.
	b.WriteString(strings.ReplaceAll(`  esac
}
if [[ $funcstack[1] == _NAME ]]; then
  _NAME "$@"
else
  compdef _NAME NAME
fi
`, "NAME", p.Name))
	return b.String()
}

// fish completes the same with descriptions. Flags are in its old style: a dash and a
// long name.
func (p *Program) fish() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for fish: a file in ~/.config/fish/completions.\n", p.Name)
	for _, c := range p.Commands {
		short := fishQuoted(c.Short)
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", p.Name, c.Name, short)
		under := fishQuoted("__fish_seen_subcommand_from " + c.Name)
		for _, w := range c.Words {
			fmt.Fprintf(&b, "complete -c %s -n %s -f -a %s\n", p.Name, under, w)
		}
		for _, f := range c.Flags {
			takes := "" // -r is for flags that take a value
			if f.Arg != "" {
				takes = " -r"
			}
			text := fishQuoted(f.Text)
			fmt.Fprintf(
				&b, "complete -c %s -n %s -o %s%s -d %s\n",
				p.Name, under, f.Name, takes, text,
			)
		}
	}
	return b.String()
}

// quoted is a word of bash and zsh, in single quotes, in which nothing is special but
// the quote itself.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// fishQuoted is a word of fish, in single quotes.
func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
