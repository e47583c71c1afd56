package mechanism_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"tare/areas/admission/mechanism"
	"tare/rigs/memtest"
)

// TestRulingOf judges what a real API server answered, and what must not be taken for its answer.
func TestRulingOf(t *testing.T) {
	for _, c := range refusedCases() {
		body, err := os.ReadFile(statusFile(c.name))
		if err != nil {
			t.Fatal(err)
		}
		if got := mechanism.RulingOf(c.status, body); got != c.want {
			t.Errorf("%s: ruling %d, want %d: %s", c.name, got, c.want, body)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, body, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		if got := mechanism.RulingOf(c.status, pretty.Bytes()); got != c.want {
			t.Errorf("%s, indented: ruling %d, want %d", c.name, got, c.want)
		}
		for _, other := range []int{200, 201, 302, c.status + 1} {
			if got := mechanism.RulingOf(other, body); got != mechanism.NoRuling {
				t.Errorf("%s with status %d: ruling %d, and its code is another", c.name, other, got)
			}
		}
		if n := testing.AllocsPerRun(10, func() { mechanism.RulingOf(c.status, body) }); n > 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// TestRulingOfOthers judges answers that Kubernetes 1.36 does not give.
func TestRulingOfOthers(t *testing.T) {
	status := func(code, message string) string {
		return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"` + message +
			`","code":` + code + "}\n"
	}
	for name, c := range map[string]struct {
		code int
		body string
		want mechanism.Ruling
	}{
		"Kyverno, ValidatingPolicy": {
			400, status("400", `admission webhook \"vpol.validate.kyverno.svc-fail\" denied the request: Policy ban-00001 failed: no`),
			mechanism.PolicyDenied,
		},
		"Kyverno, ClusterPolicy": {
			400,
			status("400", `admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\n`+
				`resource Pod/try/bad was blocked due to the following policies \n\nban-00001:\n  host-network: 'validation error: no'\n`), mechanism.PolicyDenied,
		},
		"PodSecurityPolicy of 1.24": {
			403,
			status("403", `pods \"x\" is forbidden: PodSecurityPolicy: unable to admit pod: []`), mechanism.PolicyDenied,
		},
		"two limits": {
			403,
			status("403", `pods \"x\" is forbidden: [maximum cpu usage per Container is 1, maximum memory usage]`),
			mechanism.PolicyDenied,
		},
		"no right to a path": {
			403, status("403", `forbidden: User \"u\" cannot get path \"/metrics\"`),
			mechanism.AccessDenied,
		},
		"no right to an object": {
			403,
			status("403", `pods \"x\" is forbidden: User \"u\" cannot get resource \"pods\" in API group \"\"`),
			mechanism.AccessDenied,
		},
		"a group of its own": {
			403,
			status("403", `deployments.apps \"x\" is forbidden: violates PodSecurity \"baseline:latest\": x`),
			mechanism.PolicyDenied,
		},
		"a server that starts": {
			403, status("403", `pods \"x\" is forbidden: not yet ready to handle request`),
			mechanism.PolicyFailed,
		},
		"no dry run": {
			400, status("400", `admission webhook \"w\" does not support dry run`),
			mechanism.NoRuling,
		},
		"a webhook without a name": {
			400, status("400", `admission webhook \"\" denied the request: no`),
			mechanism.NoRuling,
		},
		"half a sentence": {400, status("400", `admission webhook \"w denied the request: no`), mechanism.NoRuling},
		"another speaker": {
			400, status("400", `the admission webhook \"w\" denied the request: no`),
			mechanism.NoRuling,
		},
		"a success": {400, strings.Replace(status("400", `admission webhook \"w\" denied the request: no`),
			"Failure", "Success", 1), mechanism.NoRuling},
		"another kind": {400, strings.Replace(status("400", `admission webhook \"w\" denied the request: no`),
			"Status", "Event", 1), mechanism.NoRuling},
		"without a code": {
			400, `{"kind":"Status","message":"admission webhook \"w\" denied the request: no"}`,
			mechanism.NoRuling,
		},
		"a code in quotes": {
			400, status(`"400"`, `admission webhook \"w\" denied the request: no`),
			mechanism.NoRuling,
		},
		"the message of a cause": {
			403, `{"kind":"Status","status":"Failure","details":{"causes":[{"message":"admission webhook \"w\" denied the request: no"}]},"code":403}`,
			mechanism.NoRuling,
		},
		"cut off": {
			400, strings.TrimSuffix(status("400", `admission webhook \"w\" denied the request: no`), "}\n"),
			mechanism.NoRuling,
		},
		"more than one": {
			400, strings.Repeat(status("400", `admission webhook \"w\" denied the request: no`), 2),
			mechanism.NoRuling,
		},
		"a list":         {403, `["forbidden: exceeded quota: q"]`, mechanism.NoRuling},
		"a page":         {403, `<html>admission webhook "w" denied the request: no</html>`, mechanism.NoRuling},
		"nothing":        {403, ``, mechanism.NoRuling},
		"words":          {403, `admission webhook "w" denied the request: no`, mechanism.NoRuling},
		"another 403":    {403, status("403", `pods \"x\" is forbidden: because of the moon`), mechanism.NoRuling},
		"quota, not 403": {422, status("422", `pods \"x\" is forbidden: exceeded quota: q`), mechanism.NoRuling},
		"a quoted one": {422, status("422",
			`Pod \"x\" is invalid: \"y\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no`), mechanism.NoRuling},
		"too many at all": {429, status("429", `too many requests, please try again later`), mechanism.NoRuling},
	} {
		if got := mechanism.RulingOf(c.code, []byte(c.body)); got != c.want {
			t.Errorf("%s: ruling %d, want %d: %s", name, got, c.want, c.body)
		}
	}
}

// speakers are the beginnings of messages that license a ruling, unescaped.
var speakers = map[mechanism.Ruling]*regexp.Regexp{
	mechanism.PolicyDenied: regexp.MustCompile(
		`^(admission webhook "[^"]+" denied the request|([^ :]*( "[^"]*")? is )?forbidden: ` +
			`(ValidatingAdmissionPolicy '.* denied request: |violates PodSecurity "|PodSecurityPolicy: unable to |exceeded quota: |\[?(max|min)imum ))`),
	mechanism.PolicyFailed: regexp.MustCompile(
		`^(admission webhook "[^"]+" denied the request|Internal error occurred: failed calling webhook "|` +
			`([^ :]*( "[^"]*")? is )?forbidden: (ValidatingAdmissionPolicy '.* denied request: |not yet ready|\[?expression '))`),
	mechanism.AccessDenied: regexp.MustCompile(`^([^ :]*( "[^"]*")? is )?forbidden: User ".*" cannot `),
}

// FuzzRulingOf holds that a ruling is read from nothing but a Status whose own message begins as the ruling's speakers
// do.
func FuzzRulingOf(f *testing.F) {
	for _, c := range refusedCases() {
		body, err := os.ReadFile(statusFile(c.name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c.status, body)
	}
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		defer memtest.Bound(t, len(body))()
		ruling := mechanism.RulingOf(code, body)
		var fields map[string]json.RawMessage
		if ruling == mechanism.NoRuling || json.Unmarshal(body, &fields) != nil {
			return // what is broken within is no matter: the API server's answer is JSON, or the words are its own
		}
		var kind, message string
		var own int
		for name, into := range map[string]any{"kind": &kind, "message": &message, "code": &own} {
			if err := json.Unmarshal(fields[name], into); err != nil {
				t.Fatalf("%s of %q: %v", name, body, err)
			}
		}
		if kind != "Status" || own != code || code < 400 {
			t.Errorf("status %d, kind %q, code %d: ruling %d", code, kind, own, ruling)
		}
		message = strings.ReplaceAll(message, "\n", " ")
		if !speakers[ruling].MatchString(message) {
			t.Errorf("ruling %d from %q", ruling, message)
		}
	})
}
