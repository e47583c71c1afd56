package bpflsm

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/areas/sandbox/policy"
	"tare/rigs/hosttest"
)

// timeTries returns the nanoseconds of the fastest of some tries, without those of reading the clock. Its arguments are
// their number and the try.
func timeTries(args []string) int {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		panic(err)
	}
	clock := fastest(n, func() {})
	return fastest(n, func() { _ = try(args[1], args[2:]) }) - clock
}

func fastest(n int, do func()) int {
	best := math.MaxInt
	for range n {
		start := time.Now()
		do()
		best = min(best, int(time.Since(start)))
	}
	return best
}

// requireVM skips the test where time is not exact: the virtual machine's nanoseconds are instructions.
func requireVM(t testing.TB) {
	t.Helper()
	if os.Getenv("TARE_IN_VM") == "" {
		hosttest.Missing(t, "only the lab VM counts instructions", "boot the lab VM: TestLab")
	}
}

// TestPlantedCostsWhatItSays compares open(2) under planted programs of different lengths.
func TestPlantedCostsWhatItSays(t *testing.T) {
	requireVM(t)
	file := filepath.Join(hookFiles(t), "secret")
	w := unconfined(t)
	cost := map[int]int{}
	for _, n := range []int{0, 1000, 2000, 10_000} {
		p, err := LoadPlanted(n)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := p.Attach(); err != nil {
				t.Fatal(err)
			}
			cost[n] = w.ask("time", "1000", "read", file)
			if err := p.Detach(); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	without := w.ask("time", "1000", "read", file)
	t.Logf("open and close: %d, with planted instructions: %v", without, cost)
	for _, n := range []int{1000, 2000, 10_000} {
		if got := cost[n] - cost[0]; math.Abs(float64(got-n)) > 0.05*float64(n) {
			t.Errorf("%d planted instructions cost %d, want %d ± 5 %%", n, got, n)
		}
	}
	if cost[0] <= without {
		t.Errorf("an attached program costs nothing: %d, without it %d", cost[0], without)
	}
}

// costCase is a try, and n rules that it passes, at the first byte or, where near, at the last.
type costCase struct {
	name  string
	tries string
	try   []string
	rules func(n int, near bool) policy.Policy
	// linear: each rule costs, and a near miss costs more.
	linear bool
}

func costCases(dir, pid string) []costCase {
	secret, prog := filepath.Join(dir, "secret"), filepath.Join(dir, "secret2")
	paths := func(like string, n int, near bool) (all []policy.Path) {
		for i := range n {
			path := fmt.Sprintf("/varmor%02d/secret", i)
			if near {
				path = fmt.Sprintf("%s%02d", strings.TrimSuffix(like, like[len(like)-1:]), i)
			}
			all = append(all, policy.Path(path))
		}
		return all
	}
	all := policy.Policy{Ptrace: true, Umount: true, Capabilities: []string{"syslog"}}
	return []costCase{
		{"file_open", "1000", []string{"read", secret}, func(n int, near bool) (p policy.Policy) {
			for _, path := range paths(secret, n, near) {
				p = p.And(fileRule(string(path), policy.Read))
			}
			return p
		}, true},
		{"bprm_check_security", "1000", []string{"execute", prog}, func(n int, near bool) policy.Policy {
			return policy.Policy{Execs: paths(prog, n, near)}
		}, true},
		{"socket_connect", "1000", []string{"connect", "127.0.0.1:9"}, func(n int, near bool) (p policy.Policy) {
			for i := range n {
				address := fmt.Sprintf("10.0.0.%d", i)
				if near {
					address = fmt.Sprintf("127.0.0.1:%d", 100+i)
				}
				p.Connects = append(p.Connects, policy.Address(address))
			}
			return p
		}, true},
		{"sb_mount", "1000", []string{"remount", "/dev/source", secret}, func(n int, near bool) (p policy.Policy) {
			for _, path := range paths("/dev/source", n, near) {
				p.Mounts = append(p.Mounts, policy.Mount{Source: path})
			}
			return p
		}, true},
		{"capable", "1000", []string{"chroot"}, func(n int, _ bool) policy.Policy { return only(n, all) }, false},
		{"sb_umount", "1000", []string{"expire", "/dev"}, func(int, bool) policy.Policy { return policy.Policy{} }, false},
		{"ptrace_access_check", "1000", []string{"readlink", "/proc/" + pid + "/exe"}, func(n int, _ bool) policy.Policy {
			return only(n, policy.Policy{Umount: true})
		}, false},
	}
}

// only returns p for one rule, nothing for none.
func only(n int, p policy.Policy) policy.Policy {
	if n == 0 {
		return policy.Policy{}
	}
	return p
}

// TestCosts measures what the hooks cost by the number of rules, and that near misses cost more. One process does all
// tries, since the cost of execve(2) depends on the process.
func TestCosts(t *testing.T) {
	requireVM(t)
	loopback(t)
	p := load(t, ByMountNamespace)
	w, victim := confined(t, p, 1), unconfined(t)
	profile, err := p.Confined(w.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	cases := costCases(hookFiles(t), strconv.Itoa(victim.cmd.Process.Pid))
	cost := func(c costCase) int { return w.ask(append([]string{"time", c.tries}, c.try...)...) }
	detached := map[string]int{}
	for _, c := range cases {
		detached[c.name] = cost(c)
	}
	if err := errors.Join(p.Attach(), p.Forget(profile.Key)); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, c := range cases {
		lines[c.name] = fmt.Sprintf("%s: detached %d, unconfined +%d", c.name, detached[c.name], cost(c)-detached[c.name])
	}
	if err := putProfile(profile.profiles, profile.Key, 1); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Log(lines[c.name] + costsByRules(t, p, c, func() int { return cost(c) - detached[c.name] }))
	}
}

// costsByRules changes the rules of slot 1 and returns what each set costs.
func costsByRules(t *testing.T, p *Programs, c costCase, cost func() int) (line string) {
	t.Helper()
	last := 0
	for _, r := range []struct {
		n    int
		near bool
	}{{0, false}, {1, false}, {8, false}, {50, false}, {50, true}} {
		if err := p.SetRules(1, c.rules(r.n, r.near)); err != nil {
			t.Fatal(err)
		}
		got := cost()
		line += fmt.Sprintf(", %d rules (near: %t) +%d", r.n, r.near, got)
		if c.linear && got <= last {
			t.Errorf("%s: %d rules (near: %t) cost %d, want more than %d", c.name, r.n, r.near, got, last)
		}
		last = got
	}
	return line
}
