package protocol

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tare/areas/decision/model"
	"tare/internal/load"
)

// An Adapter is one protocol, as a value. It is the only thing that knows the protocol's bytes; another one is another
// file, and a line in adapters.
type Adapter struct {
	Name string // the word in experiment files
	Help string // one line about it
	// Section is the name of the adapter's own options below `target`; empty: it has none. Other adapters' sections are
	// refused.
	Section string
	// Schemes are those of URLs that it can be reached at; a URL without a scheme gets the first.
	Schemes []string
	// Path reports that the file may say at which path below the URL questions are asked.
	Path bool
	// Binary reports that requests are no JSON, in which a secret could stand.
	Binary bool

	title     string           // how messages call it
	decisions []model.Decision // that its answers can say
	// statuses are questions that ask for no decision, by their names.
	statuses []string
	// options says what is wrong with the options; the error begins with the option's name. nil: all are good.
	options func(o Options) error
	// body says what is wrong with the body of a question; the error goes on with "the body of …". nil: any object is
	// good.
	body func(raw []byte) error

	// list says what is wrong with a question for a list; the error goes on with "the body of …". nil: the protocol has
	// no lists.
	list func(q model.Question) error

	// call renders the request of a question.
	call func(s *Session, q model.Question) (call, error)
	// batch renders one request with the same question n times; nil: a request carries one question.
	batch func(s *Session, q model.Question, n int) (call, error)
	// operation and ask are instead of call for a protocol that is not HTTP.
	operation func(s *Session, q model.Question) (load.Operation, error)
	ask       func(ctx context.Context, s *Session, q model.Question) (Answer, error)

	// Plain returns an answer that says Permit or Deny and nothing more, of an enforcement point; nil: there is none.
	Plain func(permit bool) string
	// Questions are the protocol's own, instead of the model's: the mix about the policy at position of set, and what must
	// be refused besides. nil: the model's.
	Questions func(o Options, set model.Set, position model.Position) (mix, refusals []model.Question, err error)
	// Load fills a running decision point with policies under name, which is unique to the run, and returns the options
	// with which they are asked for: the caller stores them in Session.Options before the first question. Policies that
	// were there before are not touched. nil: the protocol has no way to do so.
	Load func(ctx context.Context, s *Session, set model.Set, name string) (Options, error)
	// Unload removes what Load made under name, even after an error and from another process; it needs no options. It
	// succeeds if there is nothing to remove.
	Unload func(ctx context.Context, s *Session, name string) error
	// Counted reads the decision point's own counts, by the words of model.Decision; nil: it keeps no counts.
	Counted func(ctx context.Context, s *Session) (map[string]float64, error)
	// CheckCounts asks q, which wants Permit, a few times, and compares the answers with what the decision point counted
	// meanwhile; nil: its answers say what it counts.
	CheckCounts func(ctx context.Context, s *Session, q model.Question) (CountCheck, error)
}

// adapters lists what can be measured, in the order of the schema. A test holds the documentation to it.
func adapters() []Adapter {
	return []Adapter{
		pdpx(),
		authZEN(),
		opa(),
		xacml(),
		openFGA(),
		extAuthz(),
		k8sSAR(),
	}
}

// Adapters lists what can be measured, in the order of the schema.
func Adapters() []Adapter { return adapters() }

// Names returns the words of all adapters in experiment files.
func Names() (names []string) {
	for _, a := range adapters() {
		names = append(names, a.Name)
	}
	return names
}

// Find returns the adapter of that name.
func Find(name string) (Adapter, error) {
	all := adapters()
	if i := slices.IndexFunc(all, func(a Adapter) bool { return a.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Adapter{}, fmt.Errorf("adapter: %q is not one of %s", name, strings.Join(Names(), ", "))
}

// webSchemes returns the schemes of adapters over HTTP.
func webSchemes() []string { return []string{"http", "https"} }

// Batches reports whether one request can carry several questions.
func (a Adapter) Batches() bool { return a.batch != nil }

// Operation returns the timed call: of one question, or of a batch of the same question n times. Its Causes and
// CauseAnswers are those of this package; its answers are judged by the question's Want.
func (a Adapter) Operation(s *Session, q model.Question, n int) (load.Operation, error) {
	if a.operation != nil {
		return a.operation(s, q)
	}
	render := a.call
	if n > 1 && a.batch != nil {
		render = func(s *Session, q model.Question) (call, error) { return a.batch(s, q, n) }
	}
	c, err := render(s, q)
	if err != nil {
		return load.Operation{}, err
	}
	return c.operation(s, q), nil
}

// Ask asks once, outside of the load, and says what came back, for canaries: it needs no particular speed.
func (a Adapter) Ask(ctx context.Context, s *Session, q model.Question) (Answer, error) {
	if a.ask != nil {
		return a.ask(ctx, s, q)
	}
	c, err := a.call(s, q)
	if err != nil {
		return Answer{}, err
	}
	return s.ask(ctx, c)
}
