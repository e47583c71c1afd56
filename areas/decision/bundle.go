package decision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"tare/area"
	"tare/areas/bundle"
	"tare/areas/decision/cedarset"
	"tare/areas/decision/engine"
	"tare/areas/decision/fga"
	"tare/areas/decision/protocol"
	"tare/areas/decision/reference"
	"tare/internal/kit"
	"tare/internal/unit"
)

// bundles is area.Parts.Program: what says what is measured are the user's own policies, if there are any.
func bundles(_ context.Context, s area.Spec, env area.Env) (area.Program, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return area.Program{}, err
	}
	var paths []string
	stores := map[string]bool{}
	for _, t := range env.Treatments {
		if p, err := spec.plan(t); err == nil && p.bundle != "" { // otherwise Validate reports it
			paths = append(paths, p.bundle)
			stores[p.bundle] = p.kind == engine.OpenFGA
		}
	}
	if spec.RequestFiles != "" {
		paths = append(paths, spec.RequestFiles)
		stores[spec.RequestFiles] = fga.IsStore(spec.RequestFiles)
	}
	sums, err := bundle.Sums(paths, func(from string) (string, error) {
		if stores[from] { // a store names further files
			return fga.Sum(from)
		}
		return bundle.Sum(from)
	})
	return area.Program{Files: true, Identity: sums}, err
}

// judgeBundle checks what the file says of the user's own policies.
func (p *plan) judgeBundle() error {
	if e := p.spec.Embedded; e != nil && (p.bundle == "" || p.kind != engine.OPA) {
		switch {
		case e.RegoV0:
			return errors.New("rego_v0: it is about the Rego of a bundle for opa")
		case e.Network:
			return errors.New("network: it is about the Rego of a bundle for opa")
		}
	}
	if p.data != nil && (p.bundle == "" || !p.kind.HasData()) {
		return errors.New("data: it is about the data of a bundle for opa, cedar or openfga")
	}
	if p.options.HasMessages() && (p.spec.Load || p.url == nil && p.bundle == "") {
		return errors.New("opa.messages: it is about a rule of yours, and tare's gives true or false: leave it out")
	}
	if p.bundle == "" {
		return nil
	}
	if err := p.kind.CheckOwn(p.bundle); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	switch {
	case len(p.spec.Requests) == 0:
		return errors.New("requests: name questions about the policies of the bundle, with their right answers, or " +
			"request_files: at least one must be refused")
	case p.spec.Policies > 0 || p.spec.Position != "":
		return errors.New("policies: a bundle has as many as it has; leave out policies and position")
	}
	return nil
}

// compileBundle reports what is wrong in the user's own policies, as far as tare can compile them itself.
func (p *plan) compileBundle() error {
	if p.bundle == "" {
		return nil
	}
	var err error
	switch p.kind {
	case engine.Cedar:
		_, err = cedarset.Read(p.bundle)
	case engine.ATT, engine.AuthzForce:
		err = engine.CheckXACML(p.bundle)
	case engine.OpenFGA:
		_, err = fga.Read(p.bundle)
	case engine.OPA, engine.PDPX: // OPA's, and the models of OpenFGA, are compiled before a run begins
	}
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if p.data != nil {
		if _, err := p.kind.CheckData(p.bundle, p.data); err != nil {
			return fmt.Errorf("data: %w", err)
		}
	}
	return nil
}

// dataNotes say what the decision point has of the data that grow.
func (p *arm) dataNotes() ([]string, error) {
	if !p.data.Grows() {
		return nil, nil
	}
	n, err := p.kind.CheckData(p.bundle, p.data)
	return []string{fmt.Sprintf("%s: the data are there %d times, under other names: %d entries in place of %d", p.bundle,
		p.data.Times, n*p.data.Times, n)}, err
}

// proofNotes say how many policies of a bundle decide about one of the questions, and which do not: whether those guard
// is not shown.
func (p *arm) proofNotes(ctx context.Context) ([]string, error) {
	switch p.kind {
	case engine.Cedar:
		return p.cedarNotes()
	case engine.OPA:
		notes, err := p.regoNotes(ctx)
		hidden, unread := p.hiddenNotes()
		beside, e := p.besideNotes()
		return slices.Concat(notes, hidden, beside), errors.Join(err, unread, e)
	case engine.OpenFGA:
		return p.relationNotes(ctx)
	case engine.PDPX, engine.ATT, engine.AuthzForce:
	}
	return []string{p.bundle + ": which of its rules decide about a request of the experiment is not known: the engine " +
		"does not say"}, nil
}

func (p *arm) cedarNotes() ([]string, error) {
	set, err := cedarset.Read(p.config.File)
	if err != nil {
		return nil, err
	}
	proved := map[cedar.PolicyID]bool{}
	for _, q := range p.questions {
		body, err := protocol.Evaluation(q)
		if err != nil {
			return nil, err
		}
		deciders, err := reference.Deciders(set, body)
		if err != nil {
			return nil, fmt.Errorf("request %s: %w", q.Name, err)
		}
		for _, id := range deciders {
			proved[id] = true
		}
	}
	tested, failed := runCedarTests(set)
	all, inTests, without := 0, []string(nil), []string(nil)
	for id := range set.Policies.All() {
		all++
		switch {
		case proved[id]:
		case tested[id]:
			inTests = append(inTests, set.Name(id))
		default:
			without = append(without, set.Name(id))
		}
	}
	slices.Sort(inTests)
	slices.Sort(without)
	out := []string{fmt.Sprintf("%s: %s in force; %d of them decide about a request of the experiment", p.bundle,
		unit.Count(all, "policy"), len(proved))}
	if len(inTests) > 0 {
		out = append(out, fmt.Sprintf("%s: %s about no request, but in one of the bundle's own tests, so that what they "+
			"cost where they decide is not in these numbers: %s", p.bundle,
			agree(unit.Count(len(inTests), "policy"), len(inTests), "decides", "decide"), some(inTests)))
	}
	if len(without) > 0 {
		out = append(out, fmt.Sprintf("%s: %s without a proof, since no request is decided on their account; whether they "+
			"guard is not shown: %s", p.bundle, unit.Count(len(without), "policy"), strings.Join(without, ", ")))
	}
	if len(set.Unlinked) > 0 {
		out = append(out, fmt.Sprintf("%s: %s without a link, which decides nothing: %s", p.bundle,
			unit.Count(len(set.Unlinked), "template"), some(set.Unlinked)))
	}
	if len(set.Untaken) > 0 {
		out = append(out, fmt.Sprintf("%s: policies in Cedar's JSON are not taken, and not in these numbers: %s", p.bundle,
			some(set.Untaken)))
	}
	cut := ""
	if set.TestsCut {
		cut = "; there are more, which were not run"
	}
	return append(out, p.testNotes(len(set.Tests), failed, "", cut)...), nil
}

// runCedarTests returns the policies that decide in a set's own tests, and those of the tests that fail.
func runCedarTests(set *cedarset.Set) (tested map[cedar.PolicyID]bool, failed []string) {
	const most = 200 // characters of a stranger's text
	tested = map[cedar.PolicyID]bool{}
	for _, t := range set.Tests {
		deciders, err := set.Run(t)
		if err != nil {
			failed = append(failed, kit.Clipped(t.Name, most)+" ("+kit.Clipped(err.Error(), most)+")")
		}
		for _, id := range deciders {
			tested[id] = true
		}
	}
	return tested, failed
}

// mostNamed bounds the names of rules and tests in a note.
const mostNamed = 20

// regoNotes say which rules of a bundle are true for one of the questions, which only in the bundle's own tests, and
// which of these tests fail.
func (p *arm) regoNotes(ctx context.Context) ([]string, error) {
	if !p.launch.CanProve() {
		why := ": which of its rules are true for requests is not known: an opa in PATH is not asked"
		return []string{p.bundle + why}, nil
	}
	var bodies []json.RawMessage
	for _, q := range p.questions {
		body, err := protocol.OPABody(q)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	proofs, err := p.launch.Prove(ctx, p.config, bodies)
	if err != nil {
		return []string{fmt.Sprintf("%s: which of its rules are true for a request is not known: %v", p.bundle, err)}, nil
	}
	out := p.regoWords(proofs)
	if len(proofs.Reach) > 0 && !p.config.Network {
		p.held = fmt.Sprintf("%s: its rules call %s, which reaches loopback only: embedded: {network: true} lets it reach "+
			"other servers", p.bundle, strings.Join(proofs.Reach, " and "))
		out = append(out, p.held)
	}
	return out, nil
}

// hiddenNotes name what is hidden in a bundle for OPA, besides what a bundle says of itself.
func (p *arm) hiddenNotes() ([]string, error) {
	var hidden []string
	err := bundle.Each(p.config.File, func(name string, _ []byte) error {
		if bundle.Hidden(name) && name != ".manifest" && name != ".signatures.json" {
			hidden = append(hidden, name)
		}
		return nil
	})
	if len(hidden) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%s: hidden, and in force, as OPA loads a bundle unless its option --ignore leaves that "+
		"out: %s", p.bundle, some(hidden))}, err
}

// besideNotes name the files that OPA takes for data only where it is not given a bundle.
func (p *arm) besideNotes() ([]string, error) {
	var beside []string
	err := engine.EachBesideOPA(p.config.File, func(name string, _ []byte) error {
		beside = append(beside, name)
		return nil
	})
	if len(beside) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%s: not in force, since OPA takes the data of a bundle from files called data.json, "+
		"data.yaml or data.yml; 'opa run FOLDER' takes these, too: %s", p.bundle, some(beside))}, err
}

func (p *arm) regoWords(proofs *engine.Proofs) (out []string) {
	var tested, without []string
	name := p.bundle
	asked := 0
	for _, r := range proofs.Rules {
		switch {
		case r.Asked:
			asked++
		case r.Tested:
			tested = append(tested, r.String())
		default:
			without = append(without, r.String())
		}
	}
	out = append(out, fmt.Sprintf("%s: of %s, defaults aside, %s for a request of the experiment", name,
		unit.Count(len(proofs.Rules), "rule"), wereTrue(strconv.Itoa(asked), asked)))
	if len(tested) > 0 {
		out = append(out, fmt.Sprintf("%s: %s for no request, but in one of the bundle's own tests, so that what they cost "+
			"where they are true is not in these numbers: %s", name, wereTrue(unit.Count(len(tested), "rule"), len(tested)),
			some(tested)))
	}
	if len(without) > 0 {
		out = append(out, fmt.Sprintf("%s: %s without a proof: they were seen to be true for no request, nor in a test of "+
			"the bundle's own, since they are not, or since the decision does not come to them; whether they guard is not "+
			"shown: %s", name, unit.Count(len(without), "rule"), some(without)))
	}
	cut := ""
	if proofs.Cut {
		cut = "; not all of them were run in the time that tare gives them"
	}
	var failed []string
	for _, t := range proofs.Failed {
		failed = append(failed, t.String())
	}
	return append(out, p.testNotes(proofs.Tests, failed, ", run without a network,", cut)...)
}

// testNotes say that a bundle's own tests passed, and keep the warning of those that fail.
func (p *arm) testNotes(tests int, failed []string, how, cut string) []string {
	switch {
	case len(failed) > 0:
		p.failing = append(p.failing, fmt.Sprintf("%s: of %s of its own%s %d failed%s: %s", p.bundle,
			unit.Count(tests, "test"), cmp.Or(how, ","), len(failed), cut, some(failed)))
	case tests > 0:
		return []string{fmt.Sprintf("%s: %s of its own%s passed%s", p.bundle, unit.Count(tests, "test"), how, cut)}
	}
	return nil
}

// wereTrue says of rules that they were seen to be true: OPA evaluates what a decision comes to, and no others.
func wereTrue(what string, n int) string {
	return agree(what, n, "was seen to be true", "were seen to be true")
}

// agree says one thing of n, in the singular or in the plural.
func agree(what string, n int, one, more string) string {
	if n == 1 {
		return what + " " + one
	}
	return what + " " + more
}

// some names the first.
func some(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}
