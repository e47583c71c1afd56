package identity

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
)

// Trespass is a request that must be refused: that of the operation with what the entry changes.
type Trespass struct {
	Name          string                 `yaml:"name" json:"name" jsonschema:"required" jsonschema_description:"What it is: \"an expired token\"."`
	Without       []string               `yaml:"without,omitempty" json:"without,omitempty" jsonschema_description:"Headers that it leaves out, also those of the protocol, such as Authorization."`
	Headers       map[string]string      `yaml:"headers,omitempty" json:"headers,omitempty" jsonschema_description:"Headers that it has instead of those of that name. They must hold no secret."`
	SecretHeaders map[string]area.Secret `yaml:"secret_headers,omitempty" json:"secret_headers,omitempty" jsonschema_description:"The same with secrets: {env: NAME} or {file: path}."`
	Token         area.Secret            `yaml:"token,omitempty" json:"token,omitzero" jsonschema_description:"The credential that it has instead of the caller's: one that has expired or was revoked, is somebody else's, or is for another audience."`
	As            string                 `yaml:"as,omitempty" json:"as,omitempty" jsonschema_description:"Client, role or user that it names instead of the caller's."`
	Audience      string                 `yaml:"audience,omitempty" json:"audience,omitempty" jsonschema_description:"Audience that it asks for, and that the caller must not get."`
	Account       string                 `yaml:"account,omitempty" json:"account,omitempty" jsonschema_description:"Account whose token it asks for (gce-metadata)."`
	Method        string                 `yaml:"method,omitempty" json:"method,omitempty" jsonschema:"enum=GET,enum=POST,enum=PUT" jsonschema_description:"Its method (http-token)."`
	Path          string                 `yaml:"path,omitempty" json:"path,omitempty" jsonschema_description:"Its path and query, from the root of the server (http-token). An answer with the status of a good one is then a breach, whatever its body is."`
	Refused       []int                  `yaml:"refused,omitempty" json:"refused,omitempty" jsonschema:"minItems=1" jsonschema_description:"Statuses of a refusal. Default: 401 and 403."`
}

// Trespasses is area.Can.Trespass: the requests that Verify expects to be refused, made by every identity, in
// the words of the operation.
func (t *target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	s := p.session("run-" + strconv.Itoa(t.asked)) // as the calls that must be allowed
	t.mu.Unlock()
	s.distinct = false // whoever the token is for: nobody was to get it
	var out []load.Operation
	for _, c := range p.canaries(s) {
		if c.alone != "" {
			continue
		}
		w := p.adapter.trespass(s, c)
		if key, same := w.legitimate(p.adapter.operation(p.operation), s); same {
			return nil, fmt.Errorf("%s: for identity %d it is the very request that is allowed", c.name, key)
		}
		out = append(out, load.Operation{
			Name: c.name, Twin: p.operation, Expect: "must " + c.want(), Wire: w, Describe: w.describe, Causes: causes(),
		})
	}
	if len(out) == 0 {
		return nil, p.noTrespass(s)
	}
	return out, nil
}

// canaries are all requests that must be refused.
func (p *plan) canaries(s session) []canary {
	out := p.adapter.canaries(s)
	for _, x := range p.spec.Trespass {
		out = append(out, x.canary(p.adapter, s))
	}
	return out
}

// noTrespass says why there is nothing that must be refused, and what to do.
func (p *plan) noTrespass(s session) error {
	why := "nothing that it sends proves who it is"
	for _, c := range p.adapter.canaries(s) {
		if c.alone != "" {
			why = c.name + ": " + c.alone
		}
	}
	return fmt.Errorf("%s, operation %s, has no request that must be refused (%s): say what must be, such as trespass: "+
		"[{name: a request without its credential, without: [Authorization]}]", p.adapter.name, p.operation, why)
}

// canary returns the request of each identity with what x changes.
func (x *Trespass) canary(a adapter, s session) canary {
	c := canary{name: x.Name, statuses: x.Refused, byStatus: x.Path != ""}
	if len(c.statuses) == 0 {
		c.statuses = []int{http.StatusUnauthorized, http.StatusForbidden}
	}
	op := a.operation(s.operation)
	if op.denied != nil && !x.Token.IsZero() {
		statuses := c.statuses
		c.refused = func(status int, body []byte) bool {
			return slices.Contains(statuses, status) || status == op.status && op.denied(body)
		}
	}
	changed := x.change(s)
	c.request = func(key int) []byte { return x.replaceHeaders(op.request(changed, key), s) }
	return c
}

// change returns a session whose requests have what x changes, except for headers.
func (x *Trespass) change(s session) session {
	spec := *s.spec
	spec.Callers = make([]Caller, s.identities())
	for key := range spec.Callers {
		c := s.caller(key)
		if !x.Token.IsZero() {
			c.Token = x.Token
		}
		c.Name, c.Audience = cmp.Or(x.As, c.Name), cmp.Or(x.Audience, c.Audience)
		spec.Callers[key] = c
	}
	if x.Method != "" || x.Path != "" {
		o := optionsOf(s.spec, func(s *Spec) *HTTP { return s.HTTP })
		o.Method, o.Path = cmp.Or(x.Method, o.Method), cmp.Or(x.Path, o.Path)
		spec.HTTP = &o
	}
	if x.Path != "" {
		s.base = ""
	}
	s.spec, s.account = &spec, cmp.Or(x.Account, s.account)
	return s
}

// replaceHeaders leaves headers out of a request, and adds those of x in their place.
func (x *Trespass) replaceHeaders(request []byte, s session) []byte {
	more := maps.Clone(x.Headers)
	if more == nil {
		more = map[string]string{}
	}
	for name, secret := range x.SecretHeaders {
		more[name] = s.secret(secret)
	}
	head, body, _ := strings.Cut(string(request), "\r\n\r\n")
	var lines []string
	for line := range strings.SplitSeq(head, "\r\n") {
		name, _, ok := strings.Cut(line, ":")
		given := func(other string) bool { return ok && strings.EqualFold(other, name) }
		names := slices.Sorted(maps.Keys(more))
		if i := slices.IndexFunc(names, given); i >= 0 { // in its place, so that the order of headers tells nothing
			lines = append(lines, names[i]+": "+more[names[i]])
			delete(more, names[i])
		} else if !slices.ContainsFunc(x.Without, given) {
			lines = append(lines, line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		lines = append(lines, name+": "+more[name])
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + body)
}

// A trespassWire makes requests that must be refused, and judges their answers.
type trespassWire struct {
	*requests
	canary
	good  int       // the status of a good answer
	legit load.Wire // judges an answer as if the request were allowed
	why   load.Wire
}

var _ load.Wire = (*trespassWire)(nil)

// trespass returns the wire of a canary.
func (a adapter) trespass(s session, c canary) *trespassWire {
	o := a.operation(s.operation)
	w := &trespassWire{
		requests: s.requests(c.request), canary: c, legit: a.wire(s), good: cmp.Or(o.status, http.StatusOK),
	}
	if a.section == "http" {
		w.good = httpOptions(s.spec).Status
	}
	w.why = w.legit
	return w
}

// legitimate reports whether the request of an identity is the one that it is allowed.
func (w *trespassWire) legitimate(o operation, s session) (key int, same bool) {
	for key := range s.identities() {
		if bytes.Equal(w.render(key), o.request(s, key)) {
			return key, true
		}
	}
	return 0, false
}

// ConnKey implements load.Wire.
func (w *trespassWire) ConnKey(i uint64) int { return w.key(i) }

// Render implements load.Wire.
func (w *trespassWire) Render(dst []byte, i uint64) []byte { return w.appendTo(dst, i) }

// Check implements load.Wire. A breach is an answer that would be good if the request were allowed, or that holds a
// token for somebody or something else. A good status without a token decides nothing, and neither does an answer that
// means that the endpoint is busy or has failed, whatever its status.
func (w *trespassWire) Check(i uint64, status int, body []byte) load.Outcome {
	o := w.legit.Check(i, status, body)
	switch {
	case o == load.OK, o == load.Wrong && status == w.good && (w.byStatus || foreign(w.cause(i, status, body))):
		return load.Permitted
	case o == load.Wrong && w.wasRefused(status, body):
		return load.Denied
	}
	return o
}

// Explain implements load.Wire.
func (w *trespassWire) Explain(i uint64, status int, body []byte) int {
	return int(w.cause(i, status, body))
}

func (w *trespassWire) cause(i uint64, status int, body []byte) verdict {
	if w.why == nil {
		return noCause
	}
	return verdict(w.why.Explain(i, status, body))
}

// foreign reports whether a verdict means that there is a token, and that it is not the caller's.
func foreign(v verdict) bool {
	return v == otherSubject || v == otherAudience || v == otherIssuer || v == alreadyOthers
}

// describe tells a request and its answer without query, headers and bodies, which can hold what is secret.
func (w *trespassWire) describe(i uint64, status int, body []byte) (request, answer string) {
	line, _, _ := strings.Cut(string(w.appendTo(nil, i)), " HTTP/1.1\r\n")
	if path, _, asks := strings.Cut(line, "?"); asks {
		line = path + "?…"
	}
	request = fmt.Sprintf("%s, of identity %d", line, w.key(i))
	switch v := w.cause(i, status, body); {
	case w.byStatus:
		answer = fmt.Sprintf("status %d, by which it is judged alone", status)
	case v == noCause:
		answer = fmt.Sprintf("status %d, a good answer", status)
	default:
		answer = fmt.Sprintf("status %d, and %s", status, causes()[v])
	}
	return request, answer
}

// describe tells a call that was allowed, and answered with a token for somebody else.
func (p *arm) describe(i uint64, status int, _ []byte) (request, answer string) {
	return fmt.Sprintf("%s, of identity %d", p.operation, i%uint64(p.identities)),
		fmt.Sprintf("status %d, with a token of somebody else", status)
}

// judgeTrespasses looks at what must be refused.
func (s *Spec) judgeTrespasses() (out []area.Finding) {
	names := map[string]bool{}
	for _, name := range OperationName("").Words() {
		names[name] = true
	}
	for i := range s.Trespass {
		x, path := &s.Trespass[i], fmt.Sprintf("trespass[%d].", i)
		if names[x.Name] {
			out = append(out, area.Fault(path+"name", fmt.Errorf("name: %q is the name of an operation, or of another trespass",
				x.Name), "give it one of its own"))
		}
		names[x.Name] = true
		out = append(out, kit.CheckHeaders(path, x.Headers, x.SecretHeaders)...)
		if field, err := x.check(s); err != nil {
			out = append(out, area.Fault(strings.TrimSuffix(path+field, "."), err, ""))
		}
	}
	return out
}

// check finds what is wrong in an entry, and in which field.
func (x *Trespass) check(s *Spec) (field string, err error) {
	http := s.Adapter == "http-token"
	switch {
	case x.Name == "":
		return "name", errors.New("name: say what it is, such as \"an expired token\"")
	case x.Path != "" && (!plainPath(x.Path) || querySecret(x.Path)):
		return "path", errors.New("path: want a path such as /admin, without blanks and secrets")
	case (x.Path != "" || x.Method != "") && !http:
		return "path", errors.New("path: only http-token has one that can be changed")
	case x.Account != "" && (s.Adapter != "gce-metadata" || !plainAddress(x.Account)):
		return "account", errors.New("account: want the address of a service account, for gce-metadata")
	case len(x.Without)+len(x.Headers)+len(x.SecretHeaders) == 0 && x.Token.IsZero() &&
		x.As+x.Audience+x.Account+x.Method+x.Path == "":
		return "", errors.New("it changes nothing in the request that is allowed: say what must be refused")
	}
	for _, status := range x.Refused {
		if status < 400 || status > 499 {
			return "refused", fmt.Errorf("refused: %d is no status of a refusal, from 400 to 499", status)
		}
	}
	for _, name := range x.Without {
		if len(kit.CheckHeaders("", nil, map[string]area.Secret{name: {}})) > 0 {
			return "without", fmt.Errorf("without: %q is not a header that can be left out", name)
		}
	}
	return "", nil
}

// judgeGuard finds out whether there is anything to guard.
func (p *plan) judgeGuard(t design.Treatment) []area.Finding {
	s := session{spec: p.spec, operation: p.operation, account: p.as, emails: make([]string, p.identities)}
	if slices.ContainsFunc(p.canaries(s), func(c canary) bool { return c.alone == "" }) {
		return nil
	}
	f := area.Fault("", p.noTrespass(s), "")
	if len(t.Levels) > 0 {
		f = f.In(t)
	}
	return []area.Finding{f}
}
