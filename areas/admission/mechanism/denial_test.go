package mechanism

import (
	"encoding/json"
	"fmt"
	"testing"
)

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
