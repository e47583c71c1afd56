package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pipeFiles are experiments that name a file, @PIPE@, in each field that may name one.
var pipeFiles = map[string]struct{ area, text string }{
	"an authority": {"identity", `name: x
area: identity
question: capacity
target:
  adapter: oidc-token
  url: "https://127.0.0.1:1"
  tls: {ca: @PIPE@}
  oidc: {client_id: a, client_secret: {env: HOME}}
load: {max_rate: 20/s}
`},
	"a certificate": {"decision", `name: x
area: decision
question: capacity
target:
  adapter: authzen
  url: "https://127.0.0.1:1"
  tls: {cert: @PIPE@, key: {file: @PIPE@}}
  requests:
    - {name: a, subject: {type: user, id: a}, action: read, resource: {type: doc, id: x}, expect: permit}
    - {name: b, subject: {type: user, id: b}, action: read, resource: {type: doc, id: x}, expect: deny}
load: {max_rate: 20/s}
`},
	"a secret": {"identity", `name: x
area: identity
question: capacity
target:
  adapter: oidc-token
  url: "https://127.0.0.1:1"
  oidc: {client_id: a, client_secret: {file: @PIPE@}}
load: {max_rate: 20/s}
`},
	"files of a body": {"identity", `name: x
area: identity
question: capacity
target:
  adapter: http-token
  url: "http://127.0.0.1:1"
  http: {path: /t, body: "{a}", files: {a: @PIPE@}, token: /token}
load: {max_rate: 20/s}
`},
	"a bundle of policies": {"admission", `name: x
area: admission
question: compare
target: {embedded: {}}
load: {rate: 10/s, duration: 10s}
baseline: {bundle: none}
treatments: [{bundle: @PIPE@}]
`},
	"requests": {"admission", `name: x
area: admission
question: compare
target: {embedded: {}, requests: @PIPE@}
load: {rate: 10/s, duration: 10s}
baseline: {bundle: none}
treatments: [{bundle: policies}]
`},
	"a pod that is refused": {"admission", `name: x
area: admission
question: compare
target: {embedded: {}, manifests: {before: policies, bad: @PIPE@, says: [x]}}
load: {rate: 10/s, duration: 10s}
baseline: {mechanism: none}
treatments: [{mechanism: manifests}]
`},
	"a kubeconfig": {"admission", `name: x
area: admission
question: compare
target: {kubeconfig: @PIPE@}
load: {rate: 10/s, duration: 10s, max_rate: 20/s}
baseline: {mechanism: none}
treatments: [{mechanism: vap, policies: 1}]
`},
	"a control plane": {"admission", `name: x
area: admission
question: compare
target: {embedded: {binary: @PIPE@}}
load: {rate: 10/s, duration: 10s}
baseline: {mechanism: none}
treatments: [{mechanism: vap, policies: 1}]
`},
	"a Cedar set": {"decision", `name: x
area: decision
question: compare
target: {embedded: {engine: cedar}, adapter: authzen, request_files: @PIPE@}
load: {rate: 10/s, duration: 10s}
baseline: {bundle: none}
treatments: [{bundle: @PIPE@}]
`},
	"Cedar policies": {"decision", `name: x
area: decision
question: capacity
target:
  embedded: {engine: cedar, bundle: @PIPE@}
  requests:
    - {name: a, subject: {type: user, id: a}, action: read, resource: {type: doc, id: x}, expect: permit}
    - {name: b, subject: {type: user, id: b}, action: read, resource: {type: doc, id: x}, expect: deny}
load: {max_rate: 20/s}
`},
	"an OPA bundle": {"decision", `name: x
area: decision
question: compare
target: {embedded: {engine: opa}, adapter: opa, opa: {path: a/b}, request_files: @PIPE@}
load: {rate: 10/s, duration: 10s}
baseline: {bundle: none}
treatments: [{bundle: @PIPE@}]
`},
	"a seccomp profile": {"sandbox", `name: x
area: sandbox
question: compare
target: {commands: [{name: c, run: ["true"]}]}
baseline: {enforcer: none}
treatments: [{enforcer: seccomp, profile: @PIPE@}]
`},
	"an AppArmor profile": {"sandbox", `name: x
area: sandbox
question: compare
target: {commands: [{name: c, run: ["true"]}]}
baseline: {enforcer: none}
treatments: [{enforcer: apparmor, profile: @PIPE@}]
`},
	"a program": {"exec", `name: x
area: exec
question: compare
target: {program: [@PIPE@, @PIPE@]}
baseline: {mode: off}
treatments: [{mode: on}]
`},
	"the experiment itself": {"exec", ""},
}

// refusesPipe finds what is said of a file that is a pipe.
var refusesPipe = regexp.MustCompile(`regular file|is a pipe that nobody|is no program|is no file`)

// TestPipesAreNotWaitedFor: a named pipe that nobody writes, in the place of any file that an experiment names, and in
// that of the experiment, lets nothing wait.
func TestPipesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	bin := tareBinary(t)
	for name, f := range pipeFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needsAreas(t, f.area)
			dir := t.TempDir()
			pipe := filepath.Join(dir, "pipe.cedar")
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "x.yaml")
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(f.text, "@PIPE@", pipe)), 0o600); err != nil {
				t.Fatal(err)
			}
			if f.text == "" {
				file = pipe
			}
			policies := filepath.Join(dir, "policies")
			if err := errors.Join(os.Mkdir(policies, 0o700), os.WriteFile(filepath.Join(policies, "p.yaml"),
				[]byte(onePolicy), 0o600)); err != nil {
				t.Fatal(err)
			}
			named := false
			for _, args := range [][]string{{"validate", file}, {"plan", file}, {"plan", "--try", file}} {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				cmd := exec.CommandContext(ctx, bin, args...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("tare %s waits: %v\n%s", args[0], err, out)
				}
				cancel()
				named = named || refusesPipe.Match(out)
				t.Logf("tare %s: %v\n%s", args[0], err, out)
			}
			if !named {
				t.Error("no command refuses the pipe: none has opened it")
			}
		})
	}
}

// onePolicy is a policy with its binding.
const onePolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.metadata.name != 'x'", message: x}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
`
