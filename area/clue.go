package area

import (
	"net/url"
	"strings"
)

// An Adapter is a protocol or a program of an area, by the word of experiment files.
type Adapter struct {
	Name, Help string
	// Schemes are those of its addresses; empty: http and https.
	Schemes []string
	// Needs says what an experiment needs besides an address, for commands that ask without a file; empty: see the page.
	Needs string
	// Query says which options of a command line send the query of an address; empty: none do.
	Query string
	// Trespass writes what a server must refuse as lines of the `target:` section: the request without a header, or for
	// another path. nil: the adapter knows itself what must be refused.
	Trespass func(without, forbidden []string) string
	// GuardNeeds says what guard needs where nothing of that is given; empty: nothing.
	GuardNeeds string
	// Request writes the request of a command line as lines of the `target:` section. It fails if the adapter cannot send
	// such a request. nil: the protocol prescribes the requests.
	Request func(r Request) (string, error)
}

// A Request is what a command line says about the request to a server.
type Request struct {
	Method   string // empty: the usual one
	Body     []BodyPart
	Bearer   Secret // sent as Authorization: Bearer …
	ByStatus bool   // an answer is good by its status alone
}

// A BodyPart is a part of a request body, joined to the next one by "&". Exactly one field is set.
type BodyPart struct {
	Text string // copied into the experiment
	File string // path of a file whose content is sent and not copied
}

// A Clue is a GET request whose answer tells which protocol a server speaks. Clues are asked in the order of the areas,
// those that are Last after all others.
type Clue struct {
	Path string // below the address
	Last bool   // it takes any good answer
	// Tells returns what the answer proves; its Adapter is empty if that is nothing. An error ends the search.
	Tells func(u *url.URL, h Heard) (Spoken, error)
	// Instead says what else the user could give, where nothing tells: "give an OIDC server by the address of its issuer".
	Instead string
	// Address refuses an address, before anything is asked, with what to write instead. nil: all are good.
	Address func(u *url.URL) error
}

// A Heard is the answer to a clue's request.
type Heard struct {
	Status int
	Header func(name string) string
	Body   map[string]any // the JSON object in the body; nil if it is not one or is too long
	Begin  string         // the beginning of the body, as it is
}

// Text returns a member of the answer's body that is a text; names are joined by dots.
func (h Heard) Text(path string) string {
	at, names := h.Body, strings.Split(path, ".")
	for _, n := range names[:len(names)-1] {
		at, _ = at[n].(map[string]any)
	}
	s, _ := at[names[len(names)-1]].(string)
	return s
}

// A Spoken is a server at an address, and the adapter that speaks its protocol.
type Spoken struct {
	Adapter  string
	URL      string
	Options  string // lines of the target section below the URL
	Evidence string // what the answer was, in words
}
