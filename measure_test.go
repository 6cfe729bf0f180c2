package tilewright_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// A sourcePackage is one package of the tree with the files of the default
// build, tests and generated files left out.
type sourcePackage struct {
	Path  string // import path
	Name  string
	Dir   string
	Files []sourceFile
	Info  *types.Info
	Types *types.Package
	fset  *token.FileSet
}

type sourceFile struct {
	Name   string
	Syntax *ast.File
	Text   []byte
}

// loadPackages parses and type-checks the packages that the patterns name.
// Imports are read from the export data of the build cache, so that each
// package is checked once and none is checked for the sake of another.
func loadPackages(patterns ...string) ([]*sourcePackage, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Name,Dir,GoFiles,Export,DepOnly"}, patterns...)
	list := exec.Command("go", args...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	type listed struct {
		ImportPath string
		Name       string
		Dir        string
		GoFiles    []string
		Export     string
		DepOnly    bool
	}
	var named []listed
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			named = append(named, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var packages []*sourcePackage
	for _, l := range named {
		p := &sourcePackage{Path: l.ImportPath, Name: l.Name, Dir: l.Dir, fset: fset}
		if err := p.check(l.GoFiles, imports); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// parsePackages parses every package below a directory, whatever build tags
// its files have, without checking types.
func parsePackages(root string) ([]*sourcePackage, error) {
	fset := token.NewFileSet()
	packages := map[string]*sourcePackage{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir, name := filepath.Split(path)
		dir = filepath.ToSlash(filepath.Clean(dir))
		p := packages[dir]
		if p == nil {
			p = &sourcePackage{Path: dir, Dir: dir, fset: fset}
			packages[dir] = p
		}
		_, err = p.parse(name)
		return err
	})
	return slices.SortedFunc(maps.Values(packages), func(a, b *sourcePackage) int {
		return strings.Compare(a.Dir, b.Dir)
	}), err
}

// parse reads one file of the package and keeps it if a person wrote it.
func (p *sourcePackage) parse(name string) (*ast.File, error) {
	path := filepath.Join(p.Dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(p.fset, path, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	p.Name = f.Name.Name
	if !ast.IsGenerated(f) {
		p.Files = append(p.Files, sourceFile{name, f, text})
	}
	return f, nil
}

// check parses the files and type-checks them together.
func (p *sourcePackage) check(names []string, imports types.Importer) error {
	var syntax []*ast.File
	for _, name := range names {
		f, err := p.parse(name)
		if err != nil {
			return err
		}
		syntax = append(syntax, f)
	}
	p.Info = &types.Info{
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{Importer: imports}
	var err error
	p.Types, err = conf.Check(p.Path, p.fset, syntax, p.Info)
	return err
}

// A fileGraph says which file of a package uses which other file, and by
// which names: Uses[a][b] holds the names declared in b that a mentions, with
// the number of mentions.
type fileGraph struct {
	Files []string
	Uses  map[string]map[string]map[string]int
}

// filesOf builds the graph of a package. An edge from a to b exists when a
// mentions a package-level name, a method or a field that b declares.
func filesOf(p *sourcePackage) fileGraph {
	g := fileGraph{Uses: map[string]map[string]map[string]int{}}
	for _, f := range p.Files {
		g.Files = append(g.Files, f.Name)
	}
	names := memberNames(p.Types)
	for _, f := range p.Files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if obj := origin(p.Info.Uses[id]); obj != nil && obj.Pkg() == p.Types && isShared(obj) {
				g.add(f.Name, filepath.Base(p.fset.Position(obj.Pos()).Filename), nameOf(obj, names))
			}
			return true
		})
	}
	return g
}

func (g *fileGraph) add(from, to, name string) {
	if from == to || !slices.Contains(g.Files, to) {
		return
	}
	if g.Uses[from] == nil {
		g.Uses[from] = map[string]map[string]int{}
	}
	if g.Uses[from][to] == nil {
		g.Uses[from][to] = map[string]int{}
	}
	g.Uses[from][to][name]++
}

// origin is the declared object of an instance of a generic one.
func origin(obj types.Object) types.Object {
	switch o := obj.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return obj
}

// isShared reports whether an object may be mentioned by other files: it is
// declared at package level, or it is a method or a field.
func isShared(obj types.Object) bool {
	if obj.Parent() == obj.Pkg().Scope() {
		return true
	}
	switch o := obj.(type) {
	case *types.Func:
		return o.Signature().Recv() != nil
	case *types.Var:
		return o.IsField()
	}
	return false
}

// memberNames maps each field of a package-level struct to Type.field.
func memberNames(p *types.Package) map[types.Object]string {
	names := map[types.Object]string{}
	for _, n := range p.Scope().Names() {
		declared, ok := p.Scope().Lookup(n).(*types.TypeName)
		if !ok {
			continue
		}
		if s, ok := declared.Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if _, known := names[f]; !known {
					names[f] = n + "." + f.Name()
				}
			}
		}
	}
	return names
}

func nameOf(obj types.Object, fields map[types.Object]string) string {
	if f, ok := obj.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			return types.TypeString(recv.Type(), func(*types.Package) string { return "" }) + "." + f.Name()
		}
	}
	if name, ok := fields[obj]; ok {
		return name
	}
	return obj.Name()
}

// knots returns the strongly connected components of the graph that have
// more than one file, largest first, by Tarjan's algorithm.
func (g fileGraph) knots() [][]string {
	t := tarjan{graph: g, index: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, f := range g.Files {
		if t.index[f] == 0 {
			t.visit(f)
		}
	}
	sort.SliceStable(t.found, func(i, j int) bool { return len(t.found[i]) > len(t.found[j]) })
	return t.found
}

type tarjan struct {
	graph fileGraph
	count int
	index map[string]int // order of the first visit, from 1
	low   map[string]int // smallest index that is reached from the file
	stack []string
	open  map[string]bool // the file is on the stack
	found [][]string
}

func (t *tarjan) visit(f string) {
	t.count++
	t.index[f], t.low[f] = t.count, t.count
	t.stack = append(t.stack, f)
	t.open[f] = true
	for to := range t.graph.Uses[f] {
		if t.index[to] == 0 {
			t.visit(to)
			t.low[f] = min(t.low[f], t.low[to])
		} else if t.open[to] {
			t.low[f] = min(t.low[f], t.index[to])
		}
	}
	if t.low[f] != t.index[f] {
		return
	}
	at := slices.Index(t.stack, f)
	component := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, member := range component {
		t.open[member] = false
	}
	if len(component) > 1 {
		slices.Sort(component)
		t.found = append(t.found, component)
	}
}

// A density counts what a package's lines hold.
type density struct {
	Tokens       []int // of each code line, ascending
	Dense        []string
	CommentLines int   // lines that hold a comment and no code
	Functions    []int // lines of each function, ascending
	Long         []string
	Exported     int
	Undocumented []string
}

const (
	denseLine    = 30 // tokens
	longFunction = 70 // lines
)

func densityOf(p *sourcePackage) density {
	var d density
	for _, f := range p.Files {
		d.lines(f, filepath.Join(p.Dir, f.Name))
		d.functions(p.fset, f.Syntax)
		if p.Name != "main" {
			d.exports(p, f.Syntax)
		}
	}
	slices.Sort(d.Tokens)
	slices.Sort(d.Functions)
	return d
}

// lines counts the tokens of each line of a file. A semicolon that the
// scanner inserts is no token; a token of several lines counts on its first.
func (d *density) lines(f sourceFile, path string) {
	file := token.NewFileSet().AddFile(f.Name, -1, len(f.Text))
	var s scanner.Scanner
	s.Init(file, f.Text, nil, scanner.ScanComments)
	code, comment := map[int]int{}, map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		line := file.Line(pos)
		switch {
		case tok == token.COMMENT:
			for i := range strings.Count(lit, "\n") + 1 {
				comment[line+i] = true
			}
		case tok == token.SEMICOLON && lit == "\n":
		default:
			code[line]++
		}
	}
	for line, n := range code {
		d.Tokens = append(d.Tokens, n)
		if n > denseLine {
			d.Dense = append(d.Dense, fmt.Sprintf("%s:%d: %d tokens", path, line, n))
		}
	}
	for line := range comment {
		if code[line] == 0 {
			d.CommentLines++
		}
	}
	sort.Strings(d.Dense)
}

func (d *density) functions(fset *token.FileSet, f *ast.File) {
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		d.Functions = append(d.Functions, lines)
		if lines > longFunction && !isOneSwitch(fn) {
			d.Long = append(d.Long, fmt.Sprintf("%s: %s has %d lines", fset.Position(fn.Pos()), fn.Name.Name, lines))
		}
	}
}

// exports lists the exported identifiers that have no comment: functions,
// methods of exported types, types, and the names of var and const
// declarations, for which the comment of the group counts.
func (d *density) exports(p *sourcePackage, f *ast.File) {
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if recv := receiverName(decl); recv != "" {
				if !ast.IsExported(recv) {
					continue
				}
				name = recv + "." + name
			}
			d.export(p, decl.Name, name, decl.Doc != nil)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					d.export(p, spec.Name, spec.Name.Name, decl.Doc != nil && len(decl.Specs) == 1 || spec.Doc != nil || spec.Comment != nil)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						d.export(p, name, decl.Tok.String()+" "+name.Name, decl.Doc != nil || spec.Doc != nil || spec.Comment != nil)
					}
				}
			}
		}
	}
}

func (d *density) export(p *sourcePackage, id *ast.Ident, name string, documented bool) {
	if !id.IsExported() {
		return
	}
	d.Exported++
	if !documented {
		d.Undocumented = append(d.Undocumented, fmt.Sprintf("%s: %s", p.fset.Position(id.Pos()), name))
	}
}

// receiverName is the type that a method belongs to, "" for a function.
func receiverName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr:
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// merge adds the counts of another package.
func (d *density) merge(o density) {
	d.Tokens = append(d.Tokens, o.Tokens...)
	d.Dense = append(d.Dense, o.Dense...)
	d.CommentLines += o.CommentLines
	d.Functions = append(d.Functions, o.Functions...)
	d.Long = append(d.Long, o.Long...)
	d.Exported += o.Exported
	d.Undocumented = append(d.Undocumented, o.Undocumented...)
	slices.Sort(d.Tokens)
	slices.Sort(d.Functions)
}

func (d density) meanTokens() float64 {
	sum := 0
	for _, n := range d.Tokens {
		sum += n
	}
	return float64(sum) / float64(max(1, len(d.Tokens)))
}

// commentShare is the share of comment lines in the lines that are not blank.
func (d density) commentShare() float64 {
	return float64(d.CommentLines) / float64(max(1, d.CommentLines+len(d.Tokens)))
}

// denseShare is the share of code lines with more than denseLine tokens.
func (d density) denseShare() float64 {
	return float64(len(d.Dense)) / float64(max(1, len(d.Tokens)))
}

// quantile is the element of an ascending list below which the share q lies.
func quantile(ascending []int, q float64) int {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[min(len(ascending)-1, int(q*float64(len(ascending))))]
}

func (d density) String() string {
	return fmt.Sprintf("%d code lines, tokens a line p50 %d p90 %d mean %.2f, %.2f %% over %d; comments %.1f %%; %d functions p50 %d p90 %d max %d lines; %d exported, %d undocumented",
		len(d.Tokens), quantile(d.Tokens, 0.5), quantile(d.Tokens, 0.9), d.meanTokens(), 100*d.denseShare(), denseLine, 100*d.commentShare(),
		len(d.Functions), quantile(d.Functions, 0.5), quantile(d.Functions, 0.9), quantile(d.Functions, 1), d.Exported, len(d.Undocumented))
}

// isOneSwitch reports whether a switch makes up most of fn.
func isOneSwitch(fn *ast.FuncDecl) bool {
	whole := fn.Body.End() - fn.Body.Pos()
	for _, s := range fn.Body.List {
		switch s.(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt:
			if s.End()-s.Pos() > whole*8/10 {
				return true
			}
		}
	}
	return false
}
