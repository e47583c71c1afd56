package driver

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/probe"
	"tare/internal/proc"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	server := exec.Command("/proc/self/exe")
	server.Env = append(os.Environ(), roleEnv+"=sleeper")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	s := newStage(t, actor{At: DoPrepare, How: "ok", Answer: `{"pids":{"server":` +
		strconv.Itoa(server.Process.Pid) + `}}`}, nil)
	if p := s.Probes(baseline()); p != nil {
		t.Errorf("%v before anything runs", p)
	}
	defer s.close(t)
	s.entered(t)
	var subjects []string
	for _, p := range s.Probes(baseline()) {
		subjects = append(subjects, p.Subject())
		got, err := p.Read(t.Context())
		if rss, ok := probe.Find(got, p.Subject(), probe.RSS); err != nil || !ok || rss < 1<<16 {
			t.Errorf("memory of %s: %v, %v", p.Subject(), rss, err)
		}
	}
	if d := cmp.Diff([]string{"actor", "server"}, subjects); d != "" {
		t.Error(d)
	}
	live := s.process(s.arms[0])
	if d := cmp.Diff([]int{live.client.child.PID, server.Process.Pid}, live.roots()); d != "" {
		t.Errorf("whose CPU time is read: %s", d)
	}
}

// TestPinned: the program runs on the given processor.
func TestPinned(t *testing.T) {
	t.Parallel()
	cpus, err := proc.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, actor{}, func(c *Config) { c.CPUs = cpus[:1] })
	defer s.close(t)
	s.entered(t)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.process(s.arms[0]).client.child.PID) + "/status")
	if err != nil || !strings.Contains(string(status), "Cpus_allowed_list:\t"+strconv.Itoa(cpus[0])+"\n") {
		t.Errorf("got status %s, %v; want the first processor only", status, err)
	}
}
