package mechanism

import (
	"errors"
	"strings"
	"testing"
)

func TestDefaultsMakeSense(t *testing.T) {
	for _, k := range Kinds() {
		for _, total := range []int{1, 2, 1000, MostPolicies} {
			p := Default(k, total)
			if err := Check(k, p); err != nil {
				t.Errorf("%s of %d: %v", k, total, err)
			}
			if k.Populated() && (p.Total != total || p.Bound != total) {
				t.Errorf("%s of %d: total %d, bound %d", k, total, p.Total, p.Bound)
			}
		}
	}
	if got := Default(PSP, 1000).Useable; got != 1 {
		t.Errorf("%d PodSecurityPolicies allow the pod, want 1: the worst case", got)
	}
	if got := Default(VAP, 1000).Useable; got != 1000 {
		t.Errorf("%d policies are relevant, want all", got)
	}
}

func TestCheckRefuses(t *testing.T) {
	with := func(k Kind, total int, change func(*Population)) Population {
		p := Default(k, total)
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		kind    Kind
		p       Population
		field   string
		instead string // what it must offer
	}{
		"unknown kind":        {"gatekeeper", Population{}, "mechanism", "manifests"},
		"bound over total":    {VAP, Population{Total: 5, Bound: 6, Useable: 5}, "bound", "total: 6"},
		"useable over bound":  {VAP, Population{Total: 9, Bound: 2, Useable: 3}, "useable", "bound: 3"},
		"params of a webhook": {Webhook, Population{Total: 1, Bound: 1, Params: 1}, "params", "mechanism: vap"},
		"params negative":     {VAP, Population{Total: 1, Bound: 1, Params: -1}, "params", "0 or more"},
		"too many params":     {VAP, Population{Total: 20, Bound: 20, Params: 20000}, "params", "write 4999 or less"},
		"negative":            {VAP, Population{Total: 9, Bound: 2, Useable: -1}, "bound", "0 or more"},
		"nothing":             {Webhook, Population{}, "total", "mechanism: none"},
		"too many":            {PSP, Default(PSP, MostPolicies+1), "total", "99999"},
		"none in numbers":     {None, Population{Total: 1}, "total", "leave out"},
		"psa in numbers":      {PSA, Population{Level: Baseline, Total: 3}, "total", "leave out"},
		"psp that denies all": {PSP, with(PSP, 5, func(p *Population) { p.Useable = 0 }), "useable", "useable: 1"},
		"level unknown":       {PSA, Population{Level: "strict"}, "level", "restricted"},
		"level missing":       {PSA, Population{}, "level", "restricted"},
		"level of vap":        {VAP, with(VAP, 5, func(p *Population) { p.Level = Baseline }), "level", "mechanism: psa"},
		"position of vap":     {VAP, with(VAP, 5, func(p *Population) { p.Position = Last }), "position", "useable: N"},
		"position of webhook": {
			Webhook, with(Webhook, 5, func(p *Population) { p.Position = First }),
			"position", "useable: N",
		},
		"position of none": {None, Population{Position: First}, "position", "leave it out"},
		"position unknown": {
			PSP, with(PSP, 5, func(p *Population) { p.Position = "middle" }), "position",
			"first or last",
		},
		"bindings of vap": {VAP, with(VAP, 5, func(p *Population) { p.Bindings = One }), "bindings", "bound: N"},
		"bindings of webhook": {
			Webhook, with(Webhook, 5, func(p *Population) { p.Bindings = Each }), "bindings",
			"leave it out",
		},
		"bindings unknown": {PSP, with(PSP, 5, func(p *Population) { p.Bindings = "two" }), "bindings", "one or each"},
		"irrelevance unknown": {
			VAP, with(VAP, 5, func(p *Population) { p.Irrelevant = "luck" }), "irrelevant",
			"match-conditions",
		},
		"irrelevance of none": {None, Population{Irrelevant: ResourceRule}, "irrelevant", "leave it out"},
		"psp by conditions": {
			PSP, with(PSP, 5, func(p *Population) { p.Irrelevant = MatchConditions }),
			"irrelevant", "rejects",
		},
		"vap that rejects": {
			VAP, with(VAP, 5, func(p *Population) { p.Irrelevant = Rejects }), "irrelevant",
			"namespace-selector",
		},
		"unauthorized but bound": {
			PSP, with(PSP, 5, func(p *Population) { p.Irrelevant = Unauthorized }),
			"irrelevant", "bound: 1",
		},
	} {
		err := Check(c.kind, c.p)
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok {
			t.Errorf("%s: %v, want a refusal", name, err)
			continue
		}
		if refusal.Field != c.field || !strings.Contains(refusal.Instead, c.instead) {
			t.Errorf("%s: refused %s (%v), want %s and to offer %q", name, refusal.Field, refusal, c.field, c.instead)
		}
		if _, err := Render(c.kind, c.p, testScope()); err == nil {
			t.Errorf("%s: rendered what is refused", name)
		}
	}
}

func testScope() Scope {
	return Scope{
		Run: "r7f3a", Namespace: "tare-r7f3a-1", Caller: "tare-caller",
		WebhookURL: "https://127.0.0.1:34567", CABundle: []byte("-----BEGIN CERTIFICATE-----\n"),
	}
}

func TestScopeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Scope){
		"no namespace":      func(s *Scope) { s.Namespace = "" },
		"namespace of dots": func(s *Scope) { s.Namespace = "a.b" },
		"long namespace":    func(s *Scope) { s.Namespace = strings.Repeat("a", 64) },
		"no run":            func(s *Scope) { s.Run = "" },
		"run with blanks":   func(s *Scope) { s.Run = "a b" },
		"no authority":      func(s *Scope) { s.CABundle = nil },
		"plain http":        func(s *Scope) { s.WebhookURL = "http://127.0.0.1:1" },
		"no host":           func(s *Scope) { s.WebhookURL = "https:///x" },
		"query":             func(s *Scope) { s.WebhookURL = "https://127.0.0.1/?a=b" },
		"password":          func(s *Scope) { s.WebhookURL = "https://a:b@127.0.0.1/" },
	} {
		s := testScope()
		change(&s)
		if r, err := Render(Webhook, Default(Webhook, 1), s); err == nil {
			t.Errorf("%s: rendered %v", name, r.Objects)
		}
	}
}
