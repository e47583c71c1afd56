package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nosyFiles name a program, @MARK@, or an address, @ADDR@. tries: --try starts it, or connects.
var nosyFiles = map[string]struct {
	foreignFile
	tries bool
}{
	"a driver":       {compared("exec", "program: [@MARK@]", "mode: off", "mode: on"), true},
	"a pull manager": {compared("imagepull", "binary: @MARK@", "accessor: directfs", "accessor: cached"), true},
	"a control plane": {
		compared("admission", "embedded: {binary: @MARK@}", "mechanism: none", "mechanism: vap, policies: 1"), true,
	},
	"a credential plugin": {
		compared("admission", "kubeconfig: kubeconfig", "mechanism: none", "mechanism: vap, policies: 1"), true,
	},
	"a token endpoint": {searched("identity", `adapter: gce-metadata, url: "http://@ADDR@"`), true},
	"a decision point": {searched("decision", `adapter: authzen, url: "http://@ADDR@", `+askedRequests), true},
	"a condition": {foreignFile{"identity", "name: x\narea: identity\nquestion: guard\n" +
		`target: {adapter: gce-metadata, url: "http://@ADDR@"}` + "\n" +
		"load: {max_rate: 20/s, conditions: [{name: gone, do: [@MARK@], undo: [@MARK@], for: 1s}]}\n"}, true},
	"a command": {
		compared("sandbox", "commands: [{name: c, run: [@MARK@]}]", "enforcer: none",
			"enforcer: seccomp, profile: profile.json"), true,
	},
}

// kubeconfig names a cluster at an address, and a program that gives the credential.
const nosyKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://@ADDR@"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: @MARK@, interactiveMode: Never}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// TestPlansAreInert reads experiments of somebody else: only --try starts what they name, and connects.
func TestPlansAreInert(t *testing.T) {
	t.Parallel()
	bin := tareBinary(t)
	for name, f := range nosyFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needsAreas(t, f.area)
			n := newNosyFolder(t, f.text)
			commands := [][]string{{"validate", "x.yaml"}, {"run", "--dry-run", "x.yaml"}}
			// A plan of batches measures the host's noise for three seconds, and so does --dry-run, which is a plan.
			if !slices.Contains([]string{"exec", "imagepull", "sandbox"}, f.area) {
				commands = append(commands, []string{"plan", "x.yaml"})
			}
			for _, args := range commands {
				if out, code := execTare(t, bin, n.dir, args...); code != 0 {
					t.Fatalf("tare %s: exit code %d\n%s", strings.Join(args, " "), code, out)
				}
				if what := n.touched(t); what != "" {
					t.Errorf("tare %s %s", strings.Join(args, " "), what)
				}
			}
			out, _ := execTare(t, bin, n.dir, "plan", "--try", "x.yaml")
			if what := n.touched(t); (what != "") != f.tries {
				t.Errorf("tare plan --try: touched %q, want any: %v\n%s", what, f.tries, out)
			}
		})
	}
}

// A nosyFolder notices the start of its program and connections to its address.
type nosyFolder struct {
	dir, started string
	address      string
	connected    chan string // from whom, in the order of the listen queue
}

func newNosyFolder(t *testing.T, experiment string) *nosyFolder {
	t.Helper()
	n := &nosyFolder{dir: t.TempDir(), connected: make(chan string, 1000)}
	n.started = filepath.Join(n.dir, "started")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.connected <- c.RemoteAddr().String()
			_ = c.Close()
		}
	}()
	n.address = l.Addr().String()
	mark := filepath.Join(n.dir, "mark.sh")
	fill := strings.NewReplacer("@MARK@", mark, "@ADDR@", n.address).Replace
	for name, text := range map[string]string{
		"mark.sh": fmt.Sprintf("#!/bin/sh\necho started >> '%s'\n", n.started), "x.yaml": experiment,
		"kubeconfig": nosyKubeconfig, "profile.json": `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
			{"names": ["ptrace"], "action": "SCMP_ACT_ERRNO"}]}`,
	} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(fill(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(mark, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return n
}

// touched says what was started or connected to since it was last called; empty: nothing.
func (n *nosyFolder) touched(t *testing.T) string {
	t.Helper()
	var out []string
	if err := os.Remove(n.started); err == nil {
		out = append(out, "started the program")
	}
	own, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.address) // all others are before it in the queue
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close() //nolint:errcheck // nothing was sent
	others := 0
	for from := range n.connected {
		if from == own.LocalAddr().String() {
			break
		}
		others++
	}
	if others > 0 {
		out = append(out, "connected to the address")
	}
	return strings.Join(out, " and ")
}

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
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a busy host plans for long
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
