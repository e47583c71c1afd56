package admission

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// outside is a policy of which no text shows that it asks a name server, since a variable names the function, and one
// that asks the API server for what it has, by a variable.
const outside = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: asks-names}, spec: {background: false,
  rules: [{name: a, match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {ask: names}}}}]},
  context: [{name: f, variable: {value: is_external}}],
  validate: {failureAction: Enforce, message: denied, deny: {conditions: {any: [
  {key: "{{ {{f}}_url('http://tare.invalid') }}", operator: Equals, value: true}]}}}}]}}
---
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: asks-server}, spec: {background: false,
  rules: [{name: a, match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {ask: server}}}}]},
  context: [{name: x, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}", jmesPath: metadata.name}}],
  validate: {failureAction: Enforce, message: "it is in {{ x }}", deny: {conditions: {any: [
  {key: "{{ x }}", operator: Equals, value: "{{ request.namespace }}"}]}}}}]}}
`

// TestPoliciesAskNoNameServer: a real Kyverno asks no name server for a policy that hides that it wants one; what the
// API server has, policies get.
func TestPoliciesAskNoNameServer(t *testing.T) {
	t.Parallel()
	besideKyverno.take(t)
	p := armOf(t, besideKyverno.target, besideKyverno.with)
	for ask, want := range map[string][]string{
		"names": {"lookup tare.invalid", ": permission denied"}, "server": {"it is in " + p.namespace},
	} {
		pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"ask","labels":{"ask":%q}},
"spec":{"containers":[{"name":"c","image":"x:1"}]}}`, ask)
		path := p.prefix + "/api/v1/namespaces/" + p.namespace + "/pods" + dryRunQuery
		a, err := p.setter.do(t.Context(), http.MethodPost, path, jsonType, []byte(pod))
		for _, word := range want {
			if err != nil || !strings.Contains(string(a.body), word) {
				t.Errorf("%s: %d %s, %v; want %q", ask, a.status, a.body, err, word)
			}
		}
	}
}
