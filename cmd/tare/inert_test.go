package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
			if !testing.Short() { // where batches are planned, each plan measures the host's noise for three seconds
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
