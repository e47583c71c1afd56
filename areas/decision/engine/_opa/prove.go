package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/util"
)

// A ruleProof says whether a rule of a bundle holds for anything.
type ruleProof struct {
	problem      // where it stands; Says is its name
	Asked   bool `json:"asked"`  // it holds for a request
	Tested  bool `json:"tested"` // it holds in a test of the bundle's own
}

// proofs are what is known of a bundle.
type proofs struct {
	Rules  []*ruleProof `json:"rules"`
	Tests  int          `json:"tests"`            // of the bundle's own that were run
	Failed []problem    `json:"failed,omitempty"` // of them; Says is the name, and why
	Cut    bool         `json:"cut,omitempty"`    // not all were run in time
	Reach  []string     `json:"reach,omitempty"`  // functions that the policies call, which reach other servers
}

const (
	oneTest  = 5 * time.Second // as 'opa test' has it
	allTests = 30 * time.Second
)

// prove evaluates the rule of a path for the requests, and runs the bundle's own tests: which rules hold?
func prove(cfg config, out io.Writer) error {
	b, err := load(cfg)
	if err != nil {
		return err
	}
	compiler := compilerOf(cfg)
	if compiler.Compile(b.ParsedModules("")); compiler.Failed() {
		return compiler.Errors
	}
	p, byPlace := rulesOf(compiler)
	p.Reach = reaching(compiler)
	if err := p.ask(cfg, b, compiler, holds(func(at string) {
		if r := byPlace[at]; r != nil {
			r.Asked = true
		}
	})); err != nil {
		return err
	}
	if err := p.test(cfg, b, holds(func(at string) {
		if r := byPlace[at]; r != nil {
			r.Tested = true
		}
	})); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(p)
}

// rulesOf lists the rules that are neither defaults nor tests, and finds them by their place.
func rulesOf(compiler *ast.Compiler) (*proofs, map[string]*ruleProof) {
	p, byPlace := &proofs{Rules: []*ruleProof{}}, map[string]*ruleProof{}
	for _, module := range compiler.Modules {
		ast.WalkRules(module, func(r *ast.Rule) bool {
			name := strings.TrimPrefix(r.Path().String(), "data.")
			if r.Default || r.Location == nil || isTestFile(r.Location.File) || isTest(name) {
				return false
			}
			one := &ruleProof{problem: problem{r.Location.File, r.Location.Row, r.Location.Col, name}}
			if byPlace[place(r)] == nil { // one head with several bodies is several rules at one place
				byPlace[place(r)] = one
				p.Rules = append(p.Rules, one)
			}
			return false
		})
	}
	slices.SortFunc(p.Rules, func(a, b *ruleProof) int {
		return cmpPlace(a.problem, b.problem)
	})
	return p, byPlace
}

func cmpPlace(a, b problem) int {
	if c := strings.Compare(a.File, b.File); c != 0 {
		return c
	}
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return a.Column - b.Column
}

func isTestFile(name string) bool {
	return strings.HasSuffix(name, "_test.rego") || strings.HasPrefix(path.Base(name), "test_")
}

func isTest(name string) bool {
	last := name[strings.LastIndex(name, ".")+1:]
	return strings.HasPrefix(last, "test_") || strings.HasPrefix(last, "todo_test_")
}

func place(r *ast.Rule) string {
	return fmt.Sprintf("%s:%d:%d", r.Location.File, r.Location.Row, r.Location.Col)
}

// holds calls do with the place of each rule whose body is true.
type holds func(at string)

// Enabled is topdown.QueryTracer.Enabled, and so on.
func (holds) Enabled() bool { return true }

// Config asks for nothing.
func (holds) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent is told when a rule's body has been found true.
func (do holds) TraceEvent(e topdown.Event) {
	if r, ok := e.Node.(*ast.Rule); ok && e.Op == topdown.ExitOp && r.Location != nil {
		do(place(r))
	}
}

// ask evaluates the rule for each request, as the server would, but for the short cuts: each rule that holds is seen.
func (p *proofs) ask(cfg config, b *bundle.Bundle, compiler *ast.Compiler, seen topdown.QueryTracer) error {
	ctx := context.Background()
	store := inmem.NewFromObject(b.Data)
	query := "data"
	for part := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(cfg.Path, "/v1/data"), "/"), "/") {
		name, err := json.Marshal(part)
		if err != nil {
			return err
		}
		query += "[" + string(name) + "]"
	}
	prepared, err := rego.New(rego.Compiler(compiler), rego.Store(store), rego.Query(query)).PrepareForEval(ctx)
	if err != nil {
		return err
	}
	for _, body := range cfg.Bodies {
		var doc struct {
			Input any `json:"input"`
		}
		if err := util.NewJSONDecoder(bytes.NewReader(body)).Decode(&doc); err != nil {
			continue // the server refuses it, and the run says so
		}
		// An evaluation that fails has seen what held until then; the run says that it fails.
		_, _ = prepared.Eval(ctx, rego.EvalInput(doc.Input), rego.EvalQueryTracer(seen), rego.EvalEarlyExit(false))
	}
	return nil
}

// test runs the bundle's own tests. They reach no other server.
func (p *proofs) test(cfg config, b *bundle.Bundle, seen topdown.QueryTracer) error {
	ctx, cancel := context.WithTimeout(context.Background(), allTests)
	defer cancel()
	store := inmem.New()
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		return err
	}
	defer store.Abort(ctx, txn)
	alone := ast.CapabilitiesForThisVersion()
	alone.AllowNet = []string{}
	results, err := tester.NewRunner().SetCompiler(compilerOf(cfg).WithCapabilities(alone)).SetStore(store).
		SetBundles(map[string]*bundle.Bundle{"": b}).SetTimeout(oneTest).SetParallel(1).SetCoverageQueryTracer(seen).
		RunTests(ctx, txn)
	if err != nil {
		return err
	}
	for r := range results {
		switch {
		case r == nil || r.Skip:
			continue
		case ctx.Err() != nil:
			p.Cut = true
			continue
		case r.Fail || r.Error != nil:
			one := problem{Says: strings.TrimPrefix(r.Package, "data.") + "." + r.Name}
			if r.Error != nil {
				one.Says += ": " + r.Error.Error()
			}
			if r.Location != nil {
				one.File, one.Line = r.Location.File, r.Location.Row
			}
			p.Failed = append(p.Failed, one)
		}
		p.Tests++
	}
	p.Cut = p.Cut || ctx.Err() != nil
	slices.SortFunc(p.Failed, cmpPlace)
	return nil
}
