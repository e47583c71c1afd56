package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// concurrent lists the packages whose code, not that of their tests, starts goroutines or shares something between
// them.
func concurrent(_ context.Context, _ []string, out io.Writer) error {
	var dirs []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return isLeftOut(path)
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"),
			slices.Contains(dirs, filepath.Dir(path)):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil && isConcurrent(f) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "./"+strings.Join(dirs, " ./"))
	return err
}

// isLeftOut returns fs.SkipDir for a folder that ./... leaves out.
func isLeftOut(folder string) error {
	if folder == "." {
		return nil
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod")) // of another module
	if name := filepath.Base(folder); err == nil || strings.ContainsAny(name[:1], "._") || name == "testdata" {
		return fs.SkipDir
	}
	return nil
}

// isConcurrent reports whether a file has a go statement, calls a method Go, as groups have, or uses package sync for
// more than a value that is computed once, or sync/atomic.
func isConcurrent(f *ast.File) (is bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			is = true
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			is = is || ok && s.Sel.Name == "Go"
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			is = is || ok && (x.Name == "atomic" || x.Name == "sync" && !strings.HasPrefix(n.Sel.Name, "Once"))
		}
		return !is
	})
	return is
}
