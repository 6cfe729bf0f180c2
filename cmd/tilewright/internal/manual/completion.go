package manual

import (
	"fmt"
	"strings"
)

// Completions are the shells and what writes their completions.
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
		fmt.Fprintf(&b, "  %s) flags=%s words=%s ;;\n", c.Name, quoted(strings.Join(flags, " ")), quoted(strings.Join(c.Words, " ")))
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

// zsh completes the same with descriptions.
func (p *Program) zsh() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# Completion of %s for zsh: a file _%s in a folder of $fpath.\n_%s() {\n  local -a commands\n  commands=(\n", p.Name, p.Name, p.Name, p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "    %s\n", quoted(c.Name+":"+strings.ReplaceAll(c.Short, ":", `\:`)))
	}
	b.WriteString("  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n")
	b.WriteString("  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n")
	special := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "  %s)\n    _arguments", c.Name)
		for _, f := range c.Flags {
			spec := "-" + f.Name + "[" + special.Replace(f.Text) + "]"
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
	fmt.Fprintf(&b, "  esac\n}\nif [[ $funcstack[1] == _%s ]]; then\n  _%s \"$@\"\nelse\n  compdef _%s %s\nfi\n", p.Name, p.Name, p.Name, p.Name)
	return b.String()
}

// fish completes the same with descriptions.
func (p *Program) fish() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for fish: a file in ~/.config/fish/completions.\n", p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", p.Name, c.Name, fishQuoted(c.Short))
		under := fishQuoted("__fish_seen_subcommand_from " + c.Name)
		for _, w := range c.Words {
			fmt.Fprintf(&b, "complete -c %s -n %s -f -a %s\n", p.Name, under, w)
		}
		for _, f := range c.Flags {
			takes := ""
			if f.Arg != "" {
				takes = " -r"
			}
			fmt.Fprintf(&b, "complete -c %s -n %s -o %s%s -d %s\n", p.Name, under, f.Name, takes, fishQuoted(f.Text))
		}
	}
	return b.String()
}

// quoted is a word of bash and zsh, in single quotes.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// fishQuoted is a word of fish, in single quotes.
func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
