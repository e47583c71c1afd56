package mechanism

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// What Kubernetes 1.36.3 and 1.24.17 answer, but for the names.
const (
	deniedByVAP = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"x\" is forbidden: ValidatingAdmissionPolicy 'tare-r7f3a-1.c-relevant-00002' ` +
		`with binding 'tare-r7f3a-1.c-relevant-00002' denied request: denied by c-relevant-00002","reason":"Invalid","code":422}`
	deniedByWebhook = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"admission webhook \"tare-r7f3a-1.c-relevant-00002.tare.dev\" ` +
		`denied the request: denied by c-relevant-00002","code":403}`
	deniedByPSP = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"x\" is forbidden: PodSecurityPolicy: unable to admit pod: ` +
		`[spec.containers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed]","reason":"Forbidden","code":403}`
	deniedByPSA = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": ` +
		`privileged (container \"main\" must not set securityContext.privileged=true)","reason":"Forbidden","code":403}`
	deniedByQuota = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0","reason":"Forbidden","code":403}`
	webhookIsAway = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Internal error occurred: failed calling webhook \"w\": failed to call webhook",` +
		`"reason":"InternalError","code":500}`
	webhookHasNoCode = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"admission webhook \"w\" denied the request: policy ban-00001: no","code":400}`
	malformed        = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Pod in version \"v1\" cannot be handled as a Pod","reason":"BadRequest","code":400}`
	noRight          = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\"",` +
		`"reason":"Forbidden","code":403}`
	admittedPlain  = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}`
	admittedMarked = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","annotations":{"tare.dev/mutated":"2"}}}`
	admittedByPSP  = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","annotations":{"kubernetes.io/psp":"tare-r7f3a-1.c-relevant-00001"}}}`
	admittedByMAP  = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","annotations":{"tare.dev/mutated":"2000005"}}}`
)

// bad finds a probe of a proof by the end of its name.
func bad(t *testing.T, p Proof, end string) Probe {
	t.Helper()
	for _, one := range p.Bad {
		if strings.HasSuffix(one.Name, end) {
			return one
		}
	}
	t.Fatalf("no probe %s", end)
	return Probe{}
}

func TestJudge(t *testing.T) {
	s := testScope()
	vap := Prove(VAP, Population{Total: 4, Bound: 3, Useable: 2}, s)
	hooks := Prove(Webhook, Population{Total: 4, Bound: 3, Useable: 2}, s)
	changing := Prove(MutatingWebhook, Population{Total: 4, Bound: 3, Useable: 2}, s)
	psp := Prove(PSP, Default(PSP, 4), s)
	inert := Prove(VAP, Population{Total: 4}, s)
	file, err := FileProof(nil, []byte("{apiVersion: v1, kind: Pod, metadata: {name: x}}"),
		[]string{"policy ban-$(TARE_POLICY):"}, 1, s)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		probe  Probe
		status int
		body   string
		fault  string // what the error must speak of; empty: none
	}{
		"denied by one of all": {bad(t, vap, "-bad"), 422, deniedByVAP, ""},
		"denied by itself":     {bad(t, vap, "relevant-00002"), 422, deniedByVAP, ""},
		"denied by its neighbour": {
			bad(t, vap, "bad-c-relevant-00001"), 422, deniedByVAP,
			"not by tare-r7f3a-1.c-relevant-00001",
		},
		"denied by a quota":         {bad(t, vap, "-bad"), 403, deniedByQuota, "not for the reason"},
		"not denied":                {bad(t, vap, "-bad"), 201, admittedPlain, "must be denied"},
		"an irrelevant one denies":  {bad(t, vap, "spared-b-irrelevant-00001"), 422, deniedByVAP, "must be admitted"},
		"an unbound one is spared":  {bad(t, vap, "spared-a-unbound-00001"), 201, admittedPlain, ""},
		"nothing is relevant":       {bad(t, inert, "-bad"), 201, admittedPlain, ""},
		"webhook denies":            {bad(t, hooks, "relevant-00002"), 403, deniedByWebhook, ""},
		"other webhook denies":      {bad(t, hooks, "bad-c-relevant-00001"), 403, deniedByWebhook, "not by"},
		"webhook does not answer":   {bad(t, hooks, "-bad"), 500, webhookIsAway, "failed and decided nothing"},
		"webhook sets no code":      {file.Bad[0], 400, webhookHasNoCode, ""},
		"no code, by another":       {bad(t, hooks, "-bad"), 400, webhookHasNoCode, "not by"},
		"no code for the good pod":  {file.Good, 400, webhookHasNoCode, "must be admitted"},
		"a malformed pod":           {file.Bad[0], 400, malformed, "neither admitted nor denied by a policy: status 400"},
		"the caller has no right":   {file.Bad[0], 403, noRight, "has no right"},
		"policy instead of webhook": {bad(t, hooks, "-bad"), 422, deniedByVAP, "not for the reason"},
		"both webhooks mutate":      {changing.Good, 201, admittedMarked, ""},
		"no webhook mutates":        {changing.Good, 201, admittedPlain, "tare.dev/mutated"},
		"three policies mutate":     {Prove(MAP, Default(MAP, 3), s).Good, 201, admittedByMAP, "tare.dev/mutated"},
		"two policies of three": {
			Prove(MAP, Population{Total: 3, Bound: 2, Useable: 2}, s).Good, 201,
			admittedByMAP, "",
		},
		"an irrelevant one mutates": {
			Prove(MAP, Population{Total: 3, Bound: 2}, s).Good, 201, admittedByMAP,
			"must not be there",
		},
		"no policy of security": {bad(t, psp, "-bad"), 403, deniedByPSP, ""},
		"the last policy admits": {
			Prove(PSP, Population{Total: 4, Bound: 4, Useable: 1, Position: Last}, s).Good, 201,
			admittedByPSP, "",
		},
		"another policy admits": {
			Prove(PSP, Population{Total: 4, Bound: 4, Useable: 1, Position: First}, s).Good, 201,
			admittedByPSP, "kubernetes.io/psp",
		},
		"no plugin":                   {psp.Good, 201, admittedPlain, "kubernetes.io/psp"},
		"restricted":                  {Prove(PSA, Default(PSA, 0), s).Bad[0], 403, deniedByPSA, ""},
		"restricted, not baseline":    {Prove(PSA, Population{Level: Baseline}, s).Bad[0], 403, deniedByPSA, "baseline"},
		"the privileged level":        {Prove(PSA, Population{Level: Privileged}, s).Bad[0], 201, admittedPlain, ""},
		"the baseline is no baseline": {Prove(None, Population{}, s).Bad[0], 403, deniedByPSA, "must be admitted"},
		"the baseline":                {Prove(None, Population{}, s).Bad[0], 201, admittedPlain, ""},
		"not authenticated":           {vap.Good, 401, `{"kind":"Status","message":"Unauthorized","code":401}`, "401"},
		"no JSON":                     {vap.Good, 502, `<html>`, "not JSON"},
		"a pod with an error":         {vap.Good, 500, admittedPlain, "neither"},
		"nothing":                     {vap.Good, 201, ``, "not JSON"},
	} {
		err := c.probe.Judge(c.status, []byte(c.body))
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: got %v, want no error", name, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
	}
}

func TestProofsAreOfOurNamespace(t *testing.T) {
	s := testScope()
	for name, c := range goldens {
		proof := Prove(c.kind, c.p, s)
		names := map[string]bool{}
		for _, p := range append(proof.Bad, proof.Good) {
			var pod struct {
				Metadata struct{ Name, Namespace string }
			}
			if err := json.Unmarshal(p.Pod, &pod); err != nil {
				t.Fatal(err)
			}
			if pod.Metadata.Namespace != s.Namespace || pod.Metadata.Name != p.Name || names[p.Name] || len(p.Name) > 63 {
				t.Errorf("%s: probe %s is pod %s in %s, or there twice", name, p.Name, pod.Metadata.Name, pod.Metadata.Namespace)
			}
			names[p.Name] = true
		}
	}
}

func TestThousandsAreCountedAndSampled(t *testing.T) {
	s := testScope()
	proof := Prove(VAP, Population{Total: 3000, Bound: 2000, Useable: 1000}, s)
	if n := len(proof.Bad); n != 2+3+3+3 {
		t.Errorf("%d probes, want all, privileged, and first, middle and last of each role", n)
	}
	if n := len(proof.Count.Policies); n != 1000 || len(proof.Count.Probe.By) != n {
		t.Errorf("%d policies are counted, want those that are relevant", n)
	}
	if got := Prove(Webhook, Default(Webhook, 2), s).Count.Paths; strings.Join(got,
		" ") != "/validate/c-relevant-00001 /validate/c-relevant-00002" {
		t.Errorf("paths %v", got)
	}
	if got := Prove(MutatingWebhook, Default(MutatingWebhook, 1), s).Count.Paths; strings.Join(got,
		" ") != "/mutate/c-relevant-00001" {
		t.Errorf("paths %v", got)
	}
	want := 0
	for _, one := range withRole(Policies(Population{Total: 30, Bound: 20, Useable: 10}, s), Relevant) {
		want += one.Number
	}
	if got := Prove(MAP, Population{Total: 30, Bound: 20, Useable: 10},
		s).Good.Annotations[MutatedKey]; got != strconv.Itoa(want) {
		t.Errorf("the mark is %s, want %d", got, want)
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }

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

// TestDenialIsThatOfTheProbe: a Denial judges as Probe.Judge does.
func TestDenialIsThatOfTheProbe(t *testing.T) {
	scope := Scope{Run: "r", Namespace: "tare-r-0", WebhookURL: "https://127.0.0.1:1", CABundle: []byte("x")}
	vap, hooks := Prove(VAP, Default(VAP, 3), scope).Bad[1], Prove(Webhook, Default(Webhook, 3), scope).Bad
	psa := Prove(PSA, Default(PSA, 1), scope).Bad[0]
	said := func(code int, format string, args ...any) (int, []byte) {
		b, err := json.Marshal(map[string]any{
			"kind": "Status", "status": "Failure", "code": code, "message": fmt.Sprintf(format, args...),
		})
		if err != nil {
			t.Fatal(err)
		}
		return code, b
	}
	const forbidden = `pods "tare-probe-bad" is forbidden: `
	for _, c := range []struct {
		name   string
		probe  Probe
		code   int
		format string
		args   []any
		want   bool
	}{
		{"level", psa, 403, forbidden + `violates PodSecurity "restricted:latest": privileged (…)`, nil, true},
		{"another level", psa, 403, forbidden + `violates PodSecurity "baseline:latest": privileged (…)`, nil, false},
		{
			"policy", vap, 403, forbidden + `ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s' denied request: no`,
			[]any{vap.By[2]},
			true,
		},
		{
			"another policy", vap, 403, forbidden + `ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no`, nil,
			false,
		},
		{
			"webhook", hooks[3], 403, `admission webhook "%s" denied the request: denied by c-relevant-00003`,
			[]any{hooks[3].By[0]},
			true,
		},
		{
			"another webhook", hooks[3], 403, `admission webhook "%s" denied the request: denied by c-relevant-00001`,
			[]any{hooks[1].By[0]},
			false,
		},
		{
			"webhook that failed", hooks[3], 500, `Internal error occurred: failed calling webhook "%s": timeout`,
			[]any{hooks[3].By[0]},
			false,
		},
		{"no right", vap, 403, forbidden + `User "%s" cannot create resource`, []any{vap.By[2]}, false},
	} {
		d, err := c.probe.Denial()
		if err != nil {
			t.Fatal(err)
		}
		status, body := said(c.code, c.format, c.args...)
		if got := d.Matches(status, body); got != c.want || got != (c.probe.Judge(status, body) == nil) {
			t.Errorf("%s: %v, want %v; the probe: %v", c.name, got, c.want, c.probe.Judge(status, body))
		}
		if n := testing.AllocsPerRun(100, func() { d.Matches(status, body) }); n > 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
