package identity

import (
	"fmt"
	"strings"

	"tare/internal/clock"
	"tare/internal/load"
)

// An adapter speaks one protocol for tokens. It is the only thing that knows the protocol's bytes; another one is another file.
type adapter interface {
	// name is the word in experiment files.
	name() string
	// help is one line about it.
	help() string
	// operations are what can be asked for, the default first.
	operations() []string
	// refusals are requests that the endpoint must refuse, and the status with which.
	refusals(s session) []canary
	// whoami asks for the account of the caller, and account reads it from the answer.
	whoami(s session) []byte
	account(body []byte) (email string, err error)
	// wire is the timed operation.
	wire(s session) load.Wire
}

// A session is what an adapter needs to know of a target under one treatment.
type session struct {
	host      string            // the Host header
	headers   map[string]string // besides the protocol's own
	operation string
	account   string   // accountDefault, accountEmail or an address
	emails    []string // the account of each identity; empty ones are unknown
	nonce     string   // makes audiences that nobody has asked for before
	distinct  bool     // identities have accounts of their own, so none may get another's token
	clock     clock.Clock
}

// A canary is one request with the status that it must get.
type canary struct {
	name    string
	request []byte
	status  int
}

// adapters lists what can be measured.
func adapters() []adapter { return []adapter{gceMetadata{}} }

func findAdapter(name string) (adapter, error) {
	var names []string
	for _, a := range adapters() {
		if a.name() == name {
			return a, nil
		}
		names = append(names, a.name())
	}
	return nil, fmt.Errorf("adapter: %q is not one of %s", name, strings.Join(names, ", "))
}

// outcomeOf is what a status other than 200 means to someone who asked for a token of his own. A refusal of access is Wrong, not Denied:
// the control had to say yes.
func outcomeOf(status int) load.Outcome {
	switch {
	case status == 429 || status == 503:
		return load.Refused
	case status >= 500 || status < 200:
		return load.Failed
	default:
		return load.Wrong
	}
}
