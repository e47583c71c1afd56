package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/loader"
)

// A problem is what is wrong in a file of a bundle.
type problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Says   string `json:"says"`
}

// check compiles a bundle as OPA would when it loads it.
func check(cfg config, out io.Writer) error {
	found := problems(compile(cfg))
	if found == nil {
		found = []problem{}
	}
	return json.NewEncoder(out).Encode(map[string]any{"problems": found})
}

func compile(cfg config) error {
	b, err := load(cfg)
	if err != nil {
		return err
	}
	const most = 10
	compiler := compilerOf(cfg).SetErrorLimit(most)
	if compiler.Compile(b.ParsedModules("")); compiler.Failed() {
		return compiler.Errors
	}
	return nil
}

// load reads the bundle.
func load(cfg config) (*bundle.Bundle, error) {
	return loader.NewFileLoader().WithRegoVersion(version(cfg)).WithSkipBundleVerification(true).AsBundle(cfg.File)
}

func compilerOf(cfg config) *ast.Compiler {
	return ast.NewCompiler().WithDefaultRegoVersion(version(cfg))
}

func version(cfg config) ast.RegoVersion {
	if cfg.V0 {
		return ast.RegoV0
	}
	return ast.RegoV1
}

// problems are the single errors of one, each with its place if it has one.
func problems(err error) (out []problem) {
	var several ast.Errors
	var one *ast.Error
	switch {
	case err == nil:
	case errors.As(err, &several):
		for _, e := range several {
			out = append(out, problems(e)...)
		}
	case errors.As(err, &one):
		p := problem{Says: one.Code + ": " + one.Message}
		if l := one.Location; l != nil {
			p.File, p.Line, p.Column = l.File, l.Row, l.Col
		}
		out = append(out, p)
	default:
		out = append(out, problem{Says: err.Error()})
	}
	return out
}
