package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestRightsOfThisKernel proves the rights that this kernel has, and says which those are.
func TestRightsOfThisKernel(t *testing.T) {
	requireEnforcer(t, enforcerLandlock)
	for _, r := range landlockRightsKnown() {
		err := needABI(Policy{Rights: r.name})
		if err != nil && !strings.Contains(err.Error(), "and this kernel has version") {
			t.Errorf("%s: %v", r.name, err)
		}
		t.Logf("%s: %v", r.name, err)
		tr := treatment("enforcer", "landlock", "rights", r.name)
		tg, j := areatest.Open[*target](t, Area{}, &Spec{Workloads: []string{"connect"}}, areatest.Env(t))
		got := tg.Prepare(t.Context(), tr, j)
		if (got == nil) != (err == nil) {
			t.Errorf("%s: prepared with %v, want %v", r.name, got, err)
		}
		if got != nil {
			continue
		}
		enter(t, tg, tr)
		if err := tg.Verify(t.Context(), tr); err != nil {
			t.Error(err)
		}
		if _, err := operationOf(t, tg, tr, "connect").Batch(t.Context(), 3); errors.Is(err, unix.ENETUNREACH) {
			hosttest.Untried(t, fmt.Sprintf("the loopback device is down: %v", err), "ip link set lo up")
		} else if err != nil {
			t.Errorf("connect under %s: %v", r.name, err)
		}
	}
}

// TestRightsNeedABI: the error names the version that the kernel has and the one that is needed.
func TestRightsNeedABI(t *testing.T) {
	for _, c := range []struct {
		rights string
		abi    int
		want   string
	}{
		{"", 1, ""},
		{"files", 1, ""},
		{"network", 4, ""},
		{"network", 3, "network needs version 4 of Landlock's ABI, and this kernel has version 3"},
		{"files+network", 2, "network needs version 4 of Landlock's ABI, and this kernel has version 2"},
		{"scopes", 5, "scopes needs version 6 of Landlock's ABI, and this kernel has version 5"},
		{"files+network+scopes", 6, ""},
	} {
		err := rightsNeed(Policy{Rights: c.rights}, c.abi)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q on ABI %d: %v, want %q", c.rights, c.abi, err, c.want)
		}
		if err != nil && area.HintOf(err) == "" {
			t.Errorf("%q on ABI %d: no next step", c.rights, c.abi)
		}
	}
}

// TestPorts: the worker's own port is granted, and never the one that must be refused.
func TestPorts(t *testing.T) {
	for _, c := range []struct {
		p    Policy
		want []int
	}{
		{Policy{Rights: "files", Port: 40000, Rules: 3}, nil},
		{Policy{Rights: "files+network", Port: 40000, Rules: 3}, []int{40000}},
		{Policy{Rights: "network", Port: 40000, Rules: 3}, []int{40000, 1, 2, 3}},
		{Policy{Rights: "network", Port: 2, Rules: 3}, []int{2, 1, 4, 5}},
	} {
		if d := cmp.Diff(c.want, portsOf(c.p)); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.p, d)
		}
	}
	if p := (Policy{Port: 65535}); otherPort(p) != 65534 {
		t.Errorf("beside the last port: %d", otherPort(p))
	}
}

// TestProofsOfRightsRejectEachFlaw runs the proofs against a worker with one flaw at a time.
func TestProofsOfRightsRejectEachFlaw(t *testing.T) {
	all := Policy{Enforcer: "landlock", Mode: AlwaysAllow, Rights: "files+network+scopes", Port: 500, Scratch: "/x/s"}
	files := all
	files.Rights = ""
	outer := map[string]syscall.Errno{
		"fifo /x/s/proof.fifo": unix.EACCES, "bind 501": unix.EACCES, "connect 501": unix.EACCES,
		"connect 500": unix.ECONNREFUSED, "abstract x-s": unix.EPERM, "signal parent": unix.EPERM,
	}
	only := map[string]syscall.Errno{"fifo /x/s/proof.fifo": unix.EACCES, "connect 501": unix.ECONNREFUSED}
	for _, c := range []struct {
		policy  Policy
		base    map[string]syscall.Errno
		attempt string // answered differently
		errno   syscall.Errno
		wrong   string
	}{
		{policy: all, base: outer},
		{policy: files, base: only},
		{all, outer, "fifo /x/s/proof.fifo", 0, "fifo /x/s/proof.fifo must be refused"},
		{all, outer, "bind 501", 0, "bind 501 must be refused with EACCES"},
		{all, outer, "connect 501", unix.ECONNREFUSED, "connect 501 must be refused with EACCES"},
		{all, outer, "bind 500", unix.EACCES, "bind 500 must be allowed"},
		{all, outer, "connect 500", unix.EACCES, "connect 500 must not be refused"},
		{all, outer, "abstract x-s", 0, "abstract x-s must be refused with EPERM"},
		{all, outer, "abstract x-s", unix.ECONNREFUSED, "abstract x-s must be refused with EPERM"},
		{all, outer, "ownabstract x-s-own", unix.EPERM, "ownabstract x-s-own must be allowed"},
		{all, outer, "signal parent", 0, "signal parent must be refused with EPERM"},
		{all, outer, "signal self", unix.EPERM, "signal self must be allowed"},
		{files, only, "bind 501", unix.EACCES, "bind 501 must not be refused"},
		{files, only, "abstract x-s", unix.EPERM, "abstract x-s must not be refused"},
		{files, only, "signal parent", unix.EPERM, "signal parent must not be refused"},
	} {
		w := fakeWorker{workload.Status{NoNewPrivs: true}, func(what string, args []string) (syscall.Errno, error) {
			if attempt(what, args) == c.attempt {
				return c.errno, nil
			}
			return c.base[attempt(what, args)], nil
		}}
		err := (stack{landlockRules{}}).prove(t.Context(), c.policy, w)
		if (err == nil) != (c.wrong == "") || (err != nil && !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%q: %v, want %q", c.attempt, err, c.wrong)
		}
	}
	bare := fakeWorker{workload.Status{NoNewPrivs: true}, func(what string, _ []string) (syscall.Errno, error) {
		return map[string]syscall.Errno{tryBind: unix.EACCES}[what], nil
	}}
	err := (stack{none{}}).prove(t.Context(), Policy{Enforcer: "none", Port: 500, Scratch: "/x/s"}, bare)
	if err == nil || !strings.Contains(err.Error(), "bind 501 must not be refused") {
		t.Errorf("a bare worker that may not bind: %v", err)
	}
}

// TestInertUnderRights: a workload is a negative control only for rights that cannot affect it.
func TestInertUnderRights(t *testing.T) {
	for rights, want := range map[string]string{
		"":               "fork connect udpconnect syscall compute",
		"network":        "fork open stat create read pipe switch copy copy1024 copy256 syscall compute",
		"files+network":  "fork syscall compute",
		"scopes":         "fork open stat create connect udpconnect read pipe switch copy copy1024 copy256 syscall compute",
		"network+scopes": "fork open stat create read pipe switch copy copy1024 copy256 syscall compute",
	} {
		var got []string
		for _, k := range kinds() {
			if (stack{landlockRules{}}).inert(Policy{Rights: rights}, k) {
				got = append(got, k)
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q (-want +got):\n%s", rights, d)
		}
		text := landlockRules{}.Describe(Policy{Rights: rights})
		if strings.Contains(text, "TCP") != strings.Contains(rights, "network") ||
			strings.Contains(text, "signals") != strings.Contains(rights, "scopes") {
			t.Errorf("%q is described as %s", rights, text)
		}
	}
}
