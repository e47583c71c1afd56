package probe_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/rigs/hosttest"
)

// churn allocates on demand: for each line that it reads, it makes garbage, asks for a full collection, and says so. It
// listens too.
const churn = `
import java.io.*;
import java.net.*;

public class Churn {
    static Object keep;
    public static void main(String[] args) throws Exception {
        ServerSocket socket = new ServerSocket(0, 5, InetAddress.getByName("127.0.0.1"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready " + socket.getLocalPort());
        while (in.readLine() != null) {
            for (int i = 0; i < 600; i++) {
                byte[][] block = new byte[64][];
                for (int j = 0; j < block.length; j++) block[j] = new byte[10000];
                keep = block;
            }
            System.gc();
            System.out.println("done");
        }
    }
}
`

// java needs a JDK: it skips, loudly, where there is none.
func java(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			hosttest.Missing(t, tool+" is not installed", "apt-get install default-jdk-headless")
		}
	}
}

// A jvm is a live one that runs churn.
type jvm struct {
	pid  int
	port uint16
	in   io.Writer
	out  *bufio.Reader
}

// startJVM gives a JVM that is ended with the test. newPIDs puts it in a namespace of processes of its own, as a
// container does.
func startJVM(t testing.TB, newPIDs bool, flags ...string) jvm {
	t.Helper()
	source := filepath.Join(t.TempDir(), "Churn.java")
	if err := os.WriteFile(source, []byte(churn), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("java", append(flags, "-XX:TieredStopAtLevel=1", "-Xmx64m", source)...) // compiles itself cheaply
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if newPIDs {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		if newPIDs && errors.Is(err, syscall.EPERM) {
			hosttest.Missing(t, "only root may", hosttest.Root)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	v := jvm{pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
	if _, err := fmt.Sscanf(v.line(t), "ready %d", &v.port); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v jvm) line(t testing.TB) string {
	t.Helper()
	s, err := v.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the JVM said nothing: %v", err)
	}
	return strings.TrimSpace(s)
}

func (v jvm) work(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprintln(v.in, "work"); err != nil {
		t.Fatal(err)
	}
	if got := v.line(t); got != "done" {
		t.Fatalf("the JVM said %q", got)
	}
}

// jstat gives the columns of "jstat -gc".
func jstat(t *testing.T, pid int) map[string]float64 {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "jstat", "-gc", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2 {
		t.Fatalf("jstat: %q", text)
	}
	names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
	m := make(map[string]float64)
	for i, name := range names {
		if v, err := strconv.ParseFloat(values[i], 64); err == nil { // "-" where the collector has no such figure
			m[name] = v
		}
	}
	return m
}

// sumParts adds up a quantity over its parts, and counts them.
func sumParts(list []metric.Sample, q probe.Quantity) (total float64, parts int) {
	for _, s := range list {
		if s.Metric == q.Name {
			total += s.Value
			parts++
		}
	}
	return total, parts
}

func readAll(t *testing.T, p probe.Probe) []metric.Sample {
	t.Helper()
	list, err := p.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestJVMAgainstJstat compares what a stretch of work did, by our reading and by jstat's. jstat prints milliseconds and
// tenths of KiB.
func TestJVMAgainstJstat(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	java(t, "java", "jstat")
	for _, c := range []struct {
		flag       string
		young, all string
		collectors int
	}{
		{"-XX:+UseSerialGC", "Serial young collection pauses", "Serial", 2},
		{"-XX:+UseG1GC", "G1 young collection pauses", "G1", 3},
	} {
		t.Run(c.flag, func(t *testing.T) {
			v := startJVM(t, false, c.flag)
			p := probe.JVM{Name: "pdp", PID: v.pid}
			before, was := readAll(t, p), jstat(t, v.pid)
			v.work(t)
			after, is := readAll(t, p), jstat(t, v.pid)
			delta := probe.Delta(before, after)
			later := readAll(t, p) // the JVM samples the use of some spaces every 50 ms, and jstat took longer to start

			count, parts := sumParts(delta, probe.GCCount)
			counted := 0.0
			for _, name := range []string{"YGC", "FGC", "CGC"} {
				counted += is[name] - was[name]
			}
			if count != counted || count < 2 || parts != c.collectors {
				t.Errorf("%v collections by %d collectors, jstat says %v", count, parts, counted)
			}
			for _, s := range delta {
				if s.Metric == "gc_count" && s.Part == c.young && s.Value != is["YGC"]-was["YGC"] {
					t.Errorf("%s: %v, jstat says %v", s.Part, s.Value, is["YGC"]-was["YGC"])
				}
				if s.Metric == "gc_count" && !strings.HasPrefix(s.Part, c.all) {
					t.Errorf("a collector %q", s.Part)
				}
			}
			if spent, _ := sumParts(delta, probe.GCTime); math.Abs(spent-(is["GCT"]-was["GCT"])) > 0.0021 || spent <= 0 {
				t.Errorf("%.4f s of collections, jstat says %.3f", spent, is["GCT"]-was["GCT"])
			}
			for q, columns := range map[probe.Quantity][]string{
				probe.HeapUsed:      {"S0U", "S1U", "EU", "OU"},
				probe.HeapCommitted: {"S0C", "S1C", "EC", "OC"},
				probe.Metaspace:     {"MU"},
			} {
				want := 0.0
				for _, name := range columns {
					want += is[name] * 1024
				}
				if got, ok := probe.Find(later, "pdp", q); !ok || math.Abs(got-want) > 64<<10 || got <= 0 {
					t.Errorf("%s = %.0f, jstat says %.0f", q.Name, got, want)
				}
			}
			stops, _ := probe.Find(delta, "pdp", probe.Safepoints)
			stopped, _ := probe.Find(delta, "pdp", probe.SafepointTime)
			if spent, _ := sumParts(delta, probe.GCTime); stops < count || stopped < spent/2 {
				t.Errorf("%v safepoints in %v s, but %v collections in %v s", stops, stopped, count, spent)
			}
			attachedToJVM(t, v, after)
		})
	}
}

// attachedToJVM finds the JVM by its port: one subject has what the process uses and what the JVM says.
func attachedToJVM(t *testing.T, v jvm, jvm []metric.Sample) {
	t.Helper()
	a := &probe.Attached{Name: "pdp", Port: v.port, Light: true}
	list := readAll(t, a)
	for _, q := range []probe.Quantity{probe.GCCount, probe.GCTime} {
		got, parts := sumParts(list, q)
		if want, n := sumParts(jvm, q); got != want || parts != n {
			t.Errorf("attached: %s = %v of %d collectors, want %v of %d", q.Name, got, parts, want, n)
		}
	}
	if cpu, ok := probe.Find(list, "pdp", probe.CPU); !ok || cpu <= 0 {
		t.Errorf("attached: cpu = %v, %v", cpu, ok)
	}
	if _, n := sumParts(list, probe.Started); n != 1 {
		t.Errorf("attached: %d births", n)
	}
}

// TestJVMInAContainer: in its own namespace of processes the JVM is process 1 and names its file so.
func TestJVMInAContainer(t *testing.T) {
	java(t, "java")
	v := startJVM(t, true, "-XX:+UseSerialGC")
	p := probe.JVM{Name: "pdp", PID: v.pid}
	before := readAll(t, p)
	v.work(t)
	delta := probe.Delta(before, readAll(t, p))
	if n, parts := sumParts(delta, probe.GCCount); n < 2 || parts != 2 {
		t.Errorf("%v collections by %d collectors", n, parts)
	}
	if _, err := (probe.JVM{PID: 1}).Read(t.Context()); !errors.Is(err, probe.ErrNoJVM) {
		t.Errorf("process 1 of this host shares the number, and the directory: %v, want ErrNoJVM", err)
	}
}

func TestNoJVM(t *testing.T) {
	if _, err := (probe.JVM{PID: os.Getpid()}).Read(t.Context()); !errors.Is(err, probe.ErrNoJVM) {
		t.Errorf("this test: %v, want ErrNoJVM", err)
	}
	java(t, "java")
	v := startJVM(t, false, "-XX:-UsePerfData")
	if _, err := (probe.JVM{PID: v.pid}).Read(t.Context()); !errors.Is(err, probe.ErrNoJVM) {
		t.Errorf("a JVM without performance data: %v, want ErrNoJVM", err)
	}
}

// A server is a child that listens until it is killed.
type server struct {
	cmd  *exec.Cmd
	port uint16
}

// startServer listens on port; 0: on a free one. flags are of clone(2).
func startServer(t *testing.T, port uint16, flags uintptr) server {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "TARE_PROBE_TEST_CHILD=listen "+strconv.Itoa(int(port)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: flags}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		if flags != 0 && errors.Is(err, syscall.EPERM) {
			hosttest.Missing(t, "only root may", hosttest.Root)
		}
		t.Fatal(err)
	}
	s := server{cmd: cmd}
	t.Cleanup(s.end)
	if _, err := fmt.Fscanf(out, "listening %d\n", &s.port); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s server) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// TestAttachedFollowsRestarts: the successor on the same port is another birth, so that nothing is subtracted across.
func TestAttachedFollowsRestarts(t *testing.T) {
	first := startServer(t, 0, 0)
	a := &probe.Attached{Name: "pdp", Port: first.port}
	before := readAll(t, a)
	if d := probe.Delta(before, readAll(t, a)); !slices.ContainsFunc(d,
		func(s metric.Sample) bool { return s.Metric == "cpu" }) {
		t.Errorf("no CPU time between two readings of one process: %v", d)
	}
	first.end()
	for range 2 {
		if _, err := a.Read(t.Context()); !errors.Is(err, probe.ErrGone) {
			t.Fatalf("while nobody listens: %v, want ErrGone", err)
		}
	}
	for range 10 { // two processes of one clock tick have one birth
		time.Sleep(2 * time.Millisecond)
	}
	second := startServer(t, first.port, 0)
	after := readAll(t, a)
	was, _ := probe.Find(before, "pdp", probe.Started)
	if is, ok := probe.Find(after, "pdp", probe.Started); !ok || is == was {
		t.Errorf("births %v and %v", was, is)
	}
	if v, ok := probe.Find(probe.Delta(before, after), "pdp", probe.CPU); ok {
		t.Errorf("%v CPU-s between two processes", v)
	}

	byPID := &probe.Attached{Name: "pdp", PID: second.cmd.Process.Pid}
	both := &probe.Attached{Name: "pdp", PID: second.cmd.Process.Pid, Port: first.port}
	readAll(t, byPID)
	readAll(t, both)
	second.end()
	third := startServer(t, first.port, 0)
	if _, err := byPID.Read(t.Context()); !errors.Is(err, probe.ErrGone) {
		t.Errorf("a pid without a port: %v, want ErrGone", err)
	}
	if now, _ := probe.Find(readAll(t, both), "pdp", probe.Started); now == 0 {
		t.Errorf("a pid with a port has not found process %d", third.cmd.Process.Pid)
	}
}

func TestListenerOfARealSocket(t *testing.T) {
	self, err := probe.ByPID(os.Getpid())
	if err != nil || !strings.Contains(self.Command, ".test") {
		t.Fatalf("%+v, %v", self, err)
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			hosttest.Untried(t, fmt.Sprintf("%s: %v", address, err), "have the address on this host")
			continue
		}
		defer func() { _ = ln.Close() }()
		pid, start, err := probe.Listener(nil, ln.Addr().(*net.TCPAddr).AddrPort())
		if err != nil || pid != self.PID || start != self.StartTicks {
			t.Errorf("%s: %d, %d, %v; want %+v", address, pid, start, err, self)
		}
	}
	child := startServer(t, 0, 0)
	at := netip.AddrPortFrom(netip.Addr{}, child.port)
	if pid, _, err := probe.Listener(nil, at); err != nil || pid != child.cmd.Process.Pid {
		t.Errorf("a child: %d, %v; want %d", pid, err, child.cmd.Process.Pid)
	}
	child.end()
	if _, _, err := probe.Listener(nil, at); !errors.Is(err, probe.ErrGone) {
		t.Errorf("an ended child: %v, want ErrGone", err)
	}
	if _, err := probe.ByPID(child.cmd.Process.Pid); !errors.Is(err, probe.ErrGone) {
		t.Errorf("an ended child: %v, want ErrGone", err)
	}
}

// TestListenerInAnotherNetwork: what a container listens on is not ours, and the error says whose it is.
func TestListenerInAnotherNetwork(t *testing.T) {
	child := startServer(t, 0, syscall.CLONE_NEWNET)
	_, _, err := probe.Listener(nil, netip.AddrPortFrom(netip.Addr{}, child.port))
	if !errors.Is(err, probe.ErrGone) ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d ", child.cmd.Process.Pid)) {
		t.Errorf("%v, want ErrGone and the process %d", err, child.cmd.Process.Pid)
	}
}
