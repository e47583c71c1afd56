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

// A foreignFile is an experiment of somebody else.
type foreignFile struct{ area, text string }

// searched is one that asks for the capacity of a target.
func searched(area, target string) foreignFile {
	return foreignFile{area, "name: x\narea: " + area + "\nquestion: capacity\ntarget: {" + target + "}\n" +
		"load: {max_rate: 20/s}\n"}
}

// compared is one that compares two treatments.
func compared(area, target, baseline, treatment string) foreignFile {
	text := "name: x\narea: " + area + "\nquestion: compare\ntarget: {" + target + "}\nbaseline: {" + baseline +
		"}\ntreatments: [{" + treatment + "}]\n"
	if area == "admission" || area == "decision" {
		text += "load: {rate: 10/s, duration: 10s, max_rate: 20/s}\n"
	}
	return foreignFile{area, text}
}

// askedRequests are those by which a decision point is known.
const askedRequests = "requests: [" +
	"{name: a, subject: {type: user, id: a}, action: read, resource: {type: doc, id: x}, expect: permit}, " +
	"{name: b, subject: {type: user, id: b}, action: read, resource: {type: doc, id: x}, expect: deny}]"

// pipeFiles name a file, @PIPE@, in each field that may name one.
var pipeFiles = map[string]foreignFile{
	"an authority": searched("identity", `adapter: oidc-token, url: "https://127.0.0.1:1", tls: {ca: @PIPE@}, `+
		"oidc: {client_id: a, client_secret: {env: HOME}}"),
	"a certificate": searched("decision", `adapter: authzen, url: "https://127.0.0.1:1", `+
		"tls: {cert: @PIPE@, key: {file: @PIPE@}}, "+askedRequests),
	"a secret": searched("identity", `adapter: oidc-token, url: "https://127.0.0.1:1", `+
		"oidc: {client_id: a, client_secret: {file: @PIPE@}}"),
	"files of a body": searched("identity", `adapter: http-token, url: "http://127.0.0.1:1", `+
		`http: {path: /t, body: "{a}", files: {a: @PIPE@}, token: /token}`),
	"a bundle of policies": compared("admission", "embedded: {}", "bundle: none", "bundle: @PIPE@"),
	"requests":             compared("admission", "embedded: {}, requests: @PIPE@", "bundle: none", "bundle: policies"),
	"a pod that is refused": compared("admission", "embedded: {}, manifests: {before: policies, bad: @PIPE@, says: [x]}",
		"mechanism: none", "mechanism: manifests"),
	"a kubeconfig": compared("admission", "kubeconfig: @PIPE@", "mechanism: none", "mechanism: vap, policies: 1"),
	"a control plane": compared("admission", "embedded: {binary: @PIPE@}", "mechanism: none",
		"mechanism: vap, policies: 1"),
	"a Cedar set": compared("decision", "embedded: {engine: cedar}, adapter: authzen, request_files: @PIPE@",
		"bundle: none", "bundle: @PIPE@"),
	"Cedar policies": searched("decision", "embedded: {engine: cedar, bundle: @PIPE@}, "+askedRequests),
	"an OPA bundle": compared("decision", "embedded: {engine: opa}, adapter: opa, opa: {path: a/b}, request_files: @PIPE@",
		"bundle: none", "bundle: @PIPE@"),
	"a seccomp profile": compared("sandbox", `commands: [{name: c, run: ["true"]}]`, "enforcer: none",
		"enforcer: seccomp, profile: @PIPE@"),
	"an AppArmor profile": compared("sandbox", `commands: [{name: c, run: ["true"]}]`, "enforcer: none",
		"enforcer: apparmor, profile: @PIPE@"),
	"a program":             compared("exec", "program: [@PIPE@, @PIPE@]", "mode: off", "mode: on"),
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

// TestLinksOutOfAFolderAreRefused: a link to private files, in the place of a file or a folder that a trusted
// experiment names, or of a folder on the way to it, shows none of them.
func TestLinksOutOfAFolderAreRefused(t *testing.T) {
	t.Parallel()
	bin := tareBinary(t)
	for _, name := range []string{
		"files of a body", "a bundle of policies", "requests", "a pod that is refused", "a Cedar set", "Cedar policies",
		"an OPA bundle", "a seccomp profile", "an AppArmor profile", "the experiment itself",
	} {
		for way, c := range map[string]struct{ path, link, to string }{
			"a file":     {"p.cedar", "p.cedar", "p.cedar"},
			"a folder":   {"p.cedar", "p.cedar", "."},
			"on the way": {"ci/p.cedar", "ci", "."},
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				f, file := pipeFiles[name], "x.yaml"
				if f.text == "" {
					file = c.path
				}
				needsAreas(t, f.area)
				private, dir := t.TempDir(), t.TempDir()
				put := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
				if err := errors.Join(os.Symlink(filepath.Join(private, c.to), filepath.Join(dir, c.link)),
					os.Mkdir(filepath.Join(dir, "policies"), 0o700), put(filepath.Join(dir, "policies", "p.yaml"), onePolicy),
					put(filepath.Join(dir, "x.yaml"), strings.ReplaceAll(f.text, "@PIPE@", c.path)),
					put(filepath.Join(private, "p.cedar"), "hunter2\n")); err != nil {
					t.Fatal(err)
				}
				refused := false
				for _, args := range [][]string{{"validate", file}, {"plan", file}, {"plan", "--try", file}} {
					out, _ := execTare(t, bin, dir, args...)
					if strings.Contains(out, "hunter2") {
						t.Errorf("tare %v shows a private file:\n%s", args, out)
					}
					refused = refused || strings.Contains(out, "name what it leads to")
					t.Logf("tare %v:\n%s", args, out)
				}
				if !refused {
					t.Error("no command refuses the link")
				}
			})
		}
	}
}
