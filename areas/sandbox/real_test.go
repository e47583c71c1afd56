package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/proc"
	"tare/internal/question"
	"tare/rigs/hosttest"
)

// TestRealWorkloads runs every installed daemon under every enforcer.
func TestRealWorkloads(t *testing.T) {
	spec := &Spec{}
	for _, name := range realNames() {
		if s := (&Spec{Real: []string{name}}); name != realSysbench && len(s.missing()) == 0 {
			spec.Real = append(spec.Real, name)
		}
	}
	if len(spec.Real) == 0 {
		_, err := exec.LookPath("redis-server")
		hosttest.Missing(t, fmt.Sprintf("none of %v is installed: %v", realNames(), err), "apt-get install nginx-light")
	}
	if testing.Short() {
		spec.Real = spec.Real[:1]
	}
	arms := []design.Treatment{
		baseline(), treatment("enforcer", "seccomp", "mode", "RuntimeDefault"),
		treatment("enforcer", "landlock", "rules", "3"),
	}
	tg, j := prepared(t, spec, arms...)
	for _, a := range arms {
		enter(t, tg, a)
		if err := tg.Verify(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		for _, name := range spec.Real {
			o := operationOf(t, tg, a, name)
			if o.Negative {
				t.Errorf("%s under %s is a negative control", name, a.ID)
			}
			s, err := o.Batch(t.Context(), 2)
			if err != nil {
				t.Fatalf("%s under %s: %v", name, a.ID, err)
			}
			if wall, cpu := value(t, s, metricWall), value(t, s, metricCPU); cpu > 10*wall {
				t.Errorf("%s under %s: %g CPU-s in %g s", name, a.ID, cpu, wall)
			}
		}
	}
	if want := 1 + len(arms)*(1+len(spec.daemons())); len(j.Pending()) != want {
		t.Errorf("%d changes are journaled, want %d: a folder, and a worker and its daemons for each arm",
			len(j.Pending()), want)
	}
	if len(workload.Daemons()) == 0 {
		t.Error("package workload knows no daemons")
	}
}

// installedLoads returns the kinds of requests to servers that are installed, or skips the test.
func installedLoads(t *testing.T) (out []string) {
	t.Helper()
	for _, name := range workload.Loads() {
		if len((&Spec{Real: []string{name}}).missing()) == 0 {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		hosttest.Missing(t, "no server is installed", "apt-get install nginx-light")
	}
	return out
}

// TestConnections asks every installed server on several numbers of connections. A batch has a request for each.
func TestConnections(t *testing.T) {
	kinds := installedLoads(t)
	spec := &Spec{Real: append(kinds, kinds[0]+"-100"), Connections: []int{1, 50}}
	under := treatment("enforcer", "seccomp", "mode", "RuntimeDefault", "planted", "2%")
	tg, _ := prepared(t, spec, under)
	enter(t, tg, under)
	var want []string
	for _, kind := range kinds {
		want = append(want, kind+"-1", kind+"-50")
	}
	want = append(want, kinds[0]+"-100")
	if got := spec.Forecast(question.Of(design.Compare).Asked(), under).Operations; !slices.Equal(got, want) {
		t.Errorf("operations %q, want %q", got, want)
	}
	for _, name := range want {
		s, err := operationOf(t, tg, under, name).Batch(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if wall := value(t, s, metricWall); wall <= 0 {
			t.Errorf("%s: %g s", name, wall)
		}
	}
	for _, c := range []struct{ n, whole, want int }{{1, 0, 1}, {7, 1, 7}, {1, 500, 500}, {501, 500, 1000}, {0, 50, 50}} {
		if got := roundUp(c.n, c.whole); got != c.want {
			t.Errorf("%d rounded up to a multiple of %d: %d", c.n, c.whole, got)
		}
	}
}

// TestServerListensItself: whatever answers on the port of a server may be another process that has taken it.
func TestServerListensItself(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // nothing to lose
	server := exec.CommandContext(t.Context(), "sleep", "60")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }() // it is of no more use
	port := other.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		name      string
		port, pid int
		says      string
	}{
		{"the server", port, os.Getpid(), ""},
		{"another process", port, server.Process.Pid, fmt.Sprintf("process %d (", os.Getpid())},
		{"a server without a port", 0, server.Process.Pid, ""},
	} {
		x := &served{daemon: &workload.Daemon{Port: c.port}, child: &proc.Child{ID: proc.ID{PID: c.pid}}}
		if err := x.listens(); (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s listens: got %v, want an error that says %q", c.name, err, c.says)
		}
	}
}

// TestApacheUnderNetworkRights: a ruleset that handles networking grants the port on which Apache listens.
func TestApacheUnderNetworkRights(t *testing.T) {
	if !slices.Contains(installedLoads(t), "apache") {
		hosttest.Missing(t, "apache2 is not installed", "apt-get install apache2-bin")
	}
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 4 {
		hosttest.Missing(t, fmt.Sprintf("Landlock has no rights on networking: ABI %d, %v", abi, err),
			"run on Linux 6.7 or later")
	}
	under := treatment("enforcer", "landlock", "rights", "network")
	tg, _ := prepared(t, &Spec{Real: []string{"apache-20"}}, under)
	enter(t, tg, under)
	if err := tg.Verify(t.Context(), under); err != nil {
		t.Error(err)
	}
	if _, err := operationOf(t, tg, under, "apache-20").Batch(t.Context(), 40); err != nil {
		t.Error(err)
	}
}

// TestConnectionsNeedOpenFiles: what this process may not open is found before the run.
func TestConnectionsNeedOpenFiles(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	spec := &Spec{Real: []string{"redis-get-500", "redis-50", "apache-1000", "sysbench-cpu"}}
	if found := spec.checkConnections(1); limit.Max >= 3256 && len(found) > 0 {
		t.Errorf("of %d files: %v", limit.Max, found)
	}
	many := int(limit.Max/1500) + 1
	found := spec.checkConnections(many)
	if len(found) != 1 || found[0].Severity != area.Error || found[0].Path != "connections" ||
		!strings.Contains(found[0].Message, fmt.Sprint((many+1)*1500+256)) || !strings.Contains(found[0].Hint, "ulimit") {
		t.Errorf("%d treatments: %+v", many, found)
	}
	if found := (&Spec{Workloads: []string{"open"}}).checkConnections(1); len(found) > 0 {
		t.Errorf("without servers: %v", found)
	}
}
