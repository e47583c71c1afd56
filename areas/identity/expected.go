package identity

import (
	"cmp"

	"tare/internal/clock"
	"tare/internal/load"
)

// An expected knows what the tokens of each identity must say: what the file expects, and whose token Prepare has
// learned that it gets.
type expected struct {
	clock     clock.Clock
	subjects  []string
	audiences []*load.Template // by identity; of length 0: any
	issuer    string
}

func newExpected(s session) *expected {
	x := &expected{
		clock: s.clock, subjects: make([]string, s.identities()),
		audiences: make([]*load.Template, s.identities()),
	}
	var e Expect
	if s.spec != nil && s.spec.Expect != nil {
		e = *s.spec.Expect
	}
	x.issuer = e.Issuer
	for key := range x.subjects {
		c := s.caller(key)
		learned := ""
		if key < len(s.subjects) {
			learned = s.subjects[key]
		}
		x.subjects[key] = cmp.Or(c.Subject, e.Subject, learned)
		audience := e.Audience
		if audience != "" && c.Audience != "" {
			audience = c.Audience
		}
		x.audiences[key] = load.NewTemplate([]byte(s.unique(audience)))
	}
	return x
}

// of returns what the token of call i must be. It does not allocate unless the audience differs from call to call.
func (x *expected) of(i uint64, key int) wanted {
	a := x.audiences[key]
	w := wanted{subject: x.subjects[key], issuer: x.issuer, now: x.clock.Now().Unix()}
	if fixed, ok := a.Fixed(); ok {
		w.audience = fixed
	} else {
		w.audience = a.AppendTo(nil, i)
	}
	return w
}
