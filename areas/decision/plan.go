package decision

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/areas/decision/replica"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/unit"
)

const defaultPolicies = 100

// plan is a Spec with the levels of one treatment applied and defaults filled in.
type plan struct {
	spec      *Spec // with the levels applied
	adapter   protocol.Adapter
	kind      engine.Kind   // empty: behind url
	url       *url.URL      // nil: embedded
	bundle    string        // the user's own policies, for an embedded one; empty: tare's
	data      *replica.Data // how often its data are there; nil: as they are
	planted   Planted
	enforcer  *Enforcer // nil: none
	set       model.Set
	position  model.Position
	batch     int
	options   protocol.Options
	questions []model.Question // the mix
	refusals  []model.Question // what must not be permitted, besides the mix
	// loose says that the questions are tare's own: whether an unmet policy means Deny or NotApplicable depends on the
	// policies' language.
	loose bool
}

// plan applies the levels of t to s. Errors begin with the field's name.
func (s *Spec) plan(t design.Treatment) (plan, error) {
	u, err := s.under(t.Levels)
	if err != nil {
		return plan{}, err
	}
	p := plan{spec: u, batch: max(1, u.Batch), position: u.Position}
	if p.position == "" {
		p.position = model.Last
	}
	if p.set.N = u.Policies; p.set.N == 0 {
		p.set.N = defaultPolicies
	}
	if !slices.Contains([]model.Position{model.First, model.Last, model.Absent}, p.position) {
		return p, fmt.Errorf("position: %q is not one of first, last, absent", p.position)
	}
	if err := p.choose(); err != nil {
		return p, err
	}
	if u.RequestFiles != "" {
		more, err := readRequests(u.RequestFiles, p.adapter.Name)
		if err != nil {
			return p, fmt.Errorf("request_files: %w", err)
		}
		u.Requests = slices.Concat(u.Requests, more)
	}
	if err := p.askChecks(t); err != nil {
		return p, fmt.Errorf("bundle: %w", err)
	}
	p.options = u.options(p.adapter)
	if p.url == nil {
		err = p.judgeEmbedded()
	} else {
		err = p.judgeURL()
	}
	if err != nil {
		return p, err
	}
	if p.batch > 1 && !p.adapter.Batches() {
		return p, fmt.Errorf("batch: %s asks one question in a request", p.adapter.Name)
	}
	if err := p.chooseQuestions(); err != nil {
		return p, err
	}
	return p, p.checkOptions()
}

// choose finds where the decision point is, and what it speaks.
func (p *plan) choose() (err error) {
	s := p.spec
	name := string(s.Adapter)
	if name != "" {
		if _, err := protocol.Find(name); err != nil {
			return err
		}
	}
	switch {
	case s.URL != "" && s.Embedded != nil:
		return errors.New("url: url and embedded exclude each other")
	case s.URL != "" && name == "":
		return errors.New("adapter: say which protocol the decision point behind the url speaks")
	case s.URL == "":
		if p.kind, err = s.engine(); err != nil {
			return err
		}
		if name == "" {
			name = p.kind.Adapter()
		}
	}
	if p.adapter, err = protocol.Find(name); err != nil {
		return err
	}
	if p.kind != "" && name != p.kind.Adapter() {
		return fmt.Errorf("adapter: the engine %s speaks %s, not %s", p.kind, p.kind.Adapter(), name)
	}
	if s.URL != "" {
		p.url, err = parseURL(s.URL, p.adapter.Schemes)
	}
	return err
}

// engine returns the embedded decision point that the section asks for, or the first that speaks the adapter's
// protocol.
func (s *Spec) engine() (engine.Kind, error) {
	if s.Embedded != nil && s.Embedded.Engine != "" {
		if !slices.Contains(engine.Kinds(), s.Embedded.Engine) {
			return "", fmt.Errorf("engine: %q is not one of %s", s.Embedded.Engine, engineNames())
		}
		return s.Embedded.Engine, nil
	}
	if s.Adapter == "" {
		return engine.Cedar, nil
	}
	for _, k := range engine.Kinds() {
		if k.Adapter() == string(s.Adapter) {
			return k, nil
		}
	}
	return "", fmt.Errorf("url: there is no embedded decision point that speaks %s: name the one to measure", s.Adapter)
}

// options returns what the file says to the adapter.
func (s *Spec) options(a protocol.Adapter) protocol.Options {
	o := protocol.Options{Path: s.Path}
	if kit.HasSection(s, a.Section) {
		o.Section = kit.Section(s, a.Section).Interface()
	}
	return o
}

// judgeEmbedded rejects options that only a decision point behind a URL has.
func (p *plan) judgeEmbedded() error {
	s := p.spec
	if e := s.Embedded; e != nil {
		p.bundle, p.data, p.enforcer = e.Bundle, e.Data, e.Enforcer
		if e.Planted != nil {
			p.planted = *e.Planted
		}
	}
	for _, x := range []struct {
		field string
		given bool
		why   string
	}{
		{"username", s.Username != "", "an embedded decision point has credentials of its own"},
		{"password", !s.Password.IsZero(), "an embedded decision point has credentials of its own"},
		{"token", !s.Token.IsZero(), "an embedded decision point has credentials of its own"},
		{"tls", s.TLS != nil, "how an embedded decision point is reached is known"},
		{"process", s.Process != nil, "the process of an embedded decision point is known"},
		{"metrics", s.Metrics != nil, "it is for a decision point behind a url"},
		{"load", s.Load, "an embedded decision point is started with its policies"},
		{"secrets", len(s.Secrets) > 0, "it is asked questions of our own, which hold none"},
		{
			"requests", len(s.Requests) > 0 && p.bundle == "",
			"an embedded decision point is asked about tare's policies, unless it is started with a bundle of yours",
		},
		{"path", s.Path != "", "the paths of an embedded decision point are known"},
		{
			"openfga", s.OpenFGA != nil && (s.OpenFGA.Store != "" || s.OpenFGA.Model != ""),
			"an embedded decision point names its store and model itself",
		},
	} {
		if x.given {
			return fmt.Errorf("%s: %s: leave it out, or name a url", x.field, x.why)
		}
	}
	if err := p.judgeBundle(); err != nil {
		return err
	}
	if p.planted != (Planted{}) && p.kind != engine.Cedar && p.kind != engine.PDPX {
		return fmt.Errorf("planted: faults can be planted into cedar and pdpx, which are tare's own servers, not into %s",
			p.kind)
	}
	return errors.Join(p.judgePlanted(), p.judgeEnforcer())
}

// judgePlanted checks words that may be levels.
func (p *plan) judgePlanted() error {
	if a := p.planted.Answer; a != "" && !slices.Contains(plantedAnswers(), a) {
		return fmt.Errorf("planted.answer: %q is not one of %s", a, strings.Join(plantedAnswers(), ", "))
	}
	switch {
	case p.planted.AnswerAfter != 0 && p.planted.Answer == "":
		return errors.New("planted.answer_after: there is no planted answer to begin then")
	case p.planted.AnswerAfter != 0 && p.kind != engine.PDPX:
		return fmt.Errorf("planted.answer_after: %s answers so from its start: leave it out, or use engine pdpx", p.kind)
	case p.planted.Cache != 0 && p.kind != engine.Cedar:
		return fmt.Errorf("planted.cache: only cedar can be given a cache that goes stale, not %s", p.kind)
	case p.planted.Cache < 0 || p.planted.Gap < 0:
		return errors.New("planted: cache and reload_gap are not negative")
	case p.planted.Gap > unit.Duration(callTimeout/2):
		return fmt.Errorf("planted.reload_gap: %v is more than %v", p.planted.Gap, callTimeout/2)
	}
	return nil
}

func plantedAnswers() []string {
	return []string{"always-permit", "not-applicable-as-permit", "indeterminate"}
}

// judgeURL rejects options that have no meaning for a decision point behind a URL.
func (p *plan) judgeURL() error {
	s := p.spec
	loads, own := p.adapter.Load != nil, p.adapter.Questions != nil
	switch {
	case s.Load && !loads:
		return fmt.Errorf("load: %s has no way to put policies into a decision point: load them yourself, and name requests",
			p.adapter.Name)
	case s.Load && len(s.Requests) > 0:
		return errors.New("requests: with load: true the questions are about the policies that are loaded: leave out one " +
			"of them")
	case !s.Load && !own && len(s.Requests) == 0 && loads:
		return errors.New("requests: name questions whose answers are known, or load: true, so that tare puts policies of " +
			"its own there")
	case !s.Load && !own && len(s.Requests) == 0:
		return errors.New("requests: name questions whose answers are known: at least one that is permitted and one that " +
			"is denied")
	case !s.Load && (s.Policies > 0 || s.Position != ""):
		return errors.New("policies: how many policies a decision point behind a url holds is not ours to say; leave out " +
			"policies and position, or load: true")
	case s.Username != "" && !s.Token.IsZero():
		return errors.New("token: username and token exclude each other")
	case s.Username == "" && !s.Password.IsZero():
		return errors.New("username: a password needs its username")
	}
	if err := s.judgeSecrets(p.adapter); err != nil {
		return err
	}
	return p.judgeAttachment()
}

// judgeSecrets checks the placeholders of secrets in the requests.
func (s *Spec) judgeSecrets(a protocol.Adapter) error {
	if len(s.Secrets) > 0 && a.Binary {
		return fmt.Errorf("secrets: a request of %s is no JSON, in which they could stand: use secret_headers", a.Name)
	}
	var texts []string
	for _, r := range s.Requests {
		texts = append(texts, r.Body)
		for _, properties := range []map[string]string{r.Context, r.Subject.Properties, r.Resource.Properties} {
			texts = slices.AppendSeq(texts, maps.Values(properties))
		}
	}
	if err := kit.CheckPlaces(s.Secrets, texts, "n"); err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	return nil
}

// judgeAttachment checks where the decision point's own figures come from.
func (p *plan) judgeAttachment() error {
	if x := p.spec.Process; x != nil {
		n := 0
		for _, given := range []bool{x.PID != 0, x.Port != 0, x.Cgroup != ""} {
			if given {
				n++
			}
		}
		if n != 1 {
			return errors.New("process: name it in one way: pid, port or cgroup")
		}
	}
	if x := p.spec.Metrics; x != nil {
		if u, err := url.Parse(x.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
			u.User != nil {
			return errors.New("metrics.url: want a URL such as http://127.0.0.1:8181/metrics, without credentials")
		}
	}
	return nil
}

// checkOptions hands the options to the adapter. Where policies are loaded, the adapter fills in itself what it makes.
func (p *plan) checkOptions() error {
	if p.spec.Load {
		return p.adapter.CheckPath(p.options.Path)
	}
	return p.adapter.Validate(p.options, p.questions)
}

// parseURL reads the URL of a decision point; without a scheme it has the first of schemes.
func parseURL(text string, schemes []string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = schemes[0] + "://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "": // not quoted, nor the error of url.Parse: it may contain credentials
		return nil, fmt.Errorf("url: this is not a URL such as %s://pdp:8080", schemes[0])
	case u.User != nil:
		return nil, errors.New("url: a URL must not hold credentials: use username and password")
	case !slices.Contains(schemes, u.Scheme):
		return nil, fmt.Errorf("url: scheme %q is not one of %s", u.Scheme, strings.Join(schemes, ", "))
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("url: the URL must end with its host or path: a query may hold secrets, and the adapter " +
			"adds its own")
	}
	if err := kit.CheckPort(u); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return u, nil
}
