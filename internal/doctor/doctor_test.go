package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

var update = flag.Bool("update", false, "write the goldens")

// TestExamine examines this machine briefly and checks what every examination must return, and that it leaves nothing
// behind.
func TestExamine(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Examine(t.Context(), Options{Self: testBinary(t), Clock: clock.System{}, Time: MinTime, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d.Broken() {
		t.Errorf("this host runs the tests, and yet:\n%s", text(t, d))
	}
	seen := map[string]bool{}
	for _, c := range d.Checks {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		if c.Group == "" || c.State == "" || c.Found == "" {
			t.Errorf("check lacks its group, state or finding: %+v", c)
		}
		if (c.State == Limited || c.State == Missing) && (c.Cause == "" || c.Next == "") {
			t.Errorf("neither cause nor next step: %+v", c)
		}
	}
	for _, want := range []string{
		"timers", "real-time priority", "clock", "open files", "ephemeral ports", "listen backlog", "loopback",
		"source addresses", "lateness", "CPUs", "CPU quota",
		"CPU frequency", "virtualisation", "steal", "CPU pressure", "child processes", "control groups", "user name spaces",
		"instruction counter", "io_uring", "container runtime",
	} {
		if !seen[want] {
			t.Errorf("no check of %s", want)
		}
		delete(seen, want)
	}
	if len(seen) > 0 {
		t.Errorf("checks that this test does not know: %v", seen)
	}
	if d.Noise == nil || len(d.Noise.Work) != 3 || d.Lateness == nil || d.Stalls == nil || d.Seconds < MinTime.Seconds() {
		t.Fatalf("noise %+v, lateness %+v", d.Noise, d.Lateness)
	}
	for _, w := range d.Noise.Work {
		if w.Pairs == 0 || w.Error != "" || w.Seconds <= 0 {
			t.Errorf("work was not measured: %+v", w)
		}
	}
	if after, err := os.Hostname(); err != nil || after != name {
		t.Errorf("the host was called %s and is called %s (%v)", name, after, err)
	}
	if group, err := proc.PlanCgroup("tare-doctor-x"); err == nil {
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(group), proc.CgroupName("doctor", "")+"*")); err != nil ||
			len(left) > 0 {
			t.Errorf("control groups are left: %v (%v)", left, err)
		}
	}
}

func TestExamineEndsWithItsContext(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Examine(ctx, Options{Self: testBinary(t), Clock: clock.System{}, Time: time.Hour, Seed: 1}); err == nil {
		t.Error("no error")
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	o := Options{Self: testBinary(t), Clock: clock.System{}, Time: time.Millisecond}
	if _, err := Examine(t.Context(), o); err == nil {
		t.Error("a millisecond is enough")
	}
}

func TestTrials(t *testing.T) {
	if err := runTrial(t.Context(), testBinary(t), trialNothing, nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if err := runTrial(t.Context(), testBinary(t), "nonsense", nil); err == nil ||
		!strings.Contains(err.Error(), "no trial") {
		t.Errorf("nonsense: %v", err)
	}
	if err := runTrial(t.Context(), "/nowhere/tare", trialNothing, nil); err == nil {
		t.Error("a program that is not there was started")
	}
}

// TestNamespaceRightsAreProved: the trial must not claim rights when it runs outside of a new name space.
func TestNamespaceRightsAreProved(t *testing.T) {
	if unix.Geteuid() == 0 {
		hosttest.Missing(t, "root may name this host", "run as an ordinary user")
	}
	if err := tryNamespaceRights(); err == nil {
		t.Error("an ordinary user has the rights of root")
	}
}

func TestChildThatFailsIsReported(t *testing.T) {
	x := &examiner{Options: Options{Self: "/nowhere/tare"}, root: os.DirFS("/")}
	var d Diagnosis
	x.children(t.Context(), &d)
	if !d.Broken() || d.Checks[0].Cause == "" || d.Checks[0].Next == "" {
		t.Errorf("got %+v, want Broken with a cause and a next step", d.Checks)
	}
	if _, err := x.fork(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("fork: %v", err)
	}
}

func text(t *testing.T, d *Diagnosis) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d, func(s State) string { return string(s) }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sample() *Diagnosis {
	floor := func(ratio float64) *Floor {
		return &Floor{Ratio: ratio, HalfWidth: 5 * ratio, Blocks: 20, Difference: 0.001}
	}
	differs := floor(0.0231)
	differs.Differs, differs.Difference = true, -0.12
	return &Diagnosis{
		Schema: Schema, Tare: "0.1.0", Host: "host\x1b[31m", Kernel: "Linux 6.1.0", CPUs: 2,
		Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Seconds: 14.2,
		Checks: []Check{
			{
				Group: groupGenerator, Name: "timers", State: OK,
				Found: "epoll_pwait2: late by p50 10.9 µs, p99 49.9 µs, max 441 µs; with real-time priority p50 9.68 µs, p99 " +
					"21.2 µs, max 162 µs", Values: map[string]float64{"p50": 10.9e-6},
			},
			{
				Group: groupGenerator, Name: "loopback", State: Broken, Found: "no connection within this host",
				Cause: "dial tcp 127.0.0.1:1: connect: network is unreachable",
				Next:  "bring the loopback interface up: \"ip link set lo up\"",
			},
			{
				Group: groupCPU, Name: "steal", State: Limited, Found: "7.3% of the CPU time during this examination",
				Cause: "the hypervisor gave the CPUs to other machines while this one wanted them",
				Next:  "measure on a machine with dedicated CPUs, or at another time; compare CPU time rather than wall time",
			},
			{
				Group: groupKernel, Name: "BPF", State: Missing, Found: "no program could be loaded",
				Cause: "operation not permitted; kernel.unprivileged_bpf_disabled=2", Next: "experiments with BPF need root",
			},
			{Group: groupTools, Name: "Java", State: Info, Found: "not found in JAVA_HOME or PATH"},
		},
		Lateness: &Lateness{Rate: 1000, Seconds: 2, Calls: 2000, P50: 11e-6, P99: 27e-6, Max: 1e-3, Achieved: 1},
		Stalls: &Stalls{
			Seconds: 3, CPUs: 2, Priority: true, Lost: 0.0931, Taken: 0.0904, TakenLow: new(0.041), TakenHigh: new(0.1377),
			Count: 43, Longest: 0.0294, Tail: 0.0217, Steal: new(0.0893), Waited: new(0.002),
		},
		Noise: &Noise{
			Seed: 7, Seconds: 10, RunSeconds: 120, Wall: new(0.03), CPU: new(0.0052),
			Work: []Work{
				{Name: "CPU-bound loop", Pairs: 400, Seconds: 4, Wall: floor(0.01), CPU: floor(0.00018)},
				{Name: "HTTP exchange on loopback", Pairs: 400, Seconds: 4, Wall: floor(0.03), CPU: differs},
				{Name: "start of a process", Pairs: 400, Seconds: 2, Wall: floor(0.0094), CPU: floor(0.0021)},
			},
		},
	}
}

func TestGoldens(t *testing.T) {
	var asJSON bytes.Buffer
	if err := JSON(&asJSON, sample()); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"sample.txt": text(t, sample()), "sample.json": asJSON.String()} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var back Diagnosis
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), &back); diff != "" {
		t.Errorf("JSON does not read back (-want +got):\n%s", diff)
	}
}

func TestTextIsPlainAndNarrow(t *testing.T) {
	for line := range strings.Lines(text(t, sample())) {
		if n := len([]rune(line)); n > width+1 {
			t.Errorf("%d columns: %q", n, line)
		}
		for _, r := range strings.TrimSuffix(line, "\n") {
			if r < ' ' {
				t.Errorf("%U in %q", r, line)
			}
		}
	}
	none := sample()
	none.Noise.Wall = nil
	none.Noise.Work[2] = Work{
		Name: "start of a process", Pairs: 3,
		Error: "start process: resource temporarily unavailable",
	}
	if s := text(t, none); !strings.Contains(s, "\n    start process: resource") ||
		!strings.Contains(s, "no noise floor can be stated") || strings.Contains(s, "cannot be seen") {
		t.Errorf("without a floor:\n%s", s)
	}
	good := sample()
	good.Checks = good.Checks[:1]
	if s := text(t, good); !strings.HasSuffix(s, "\nthis host can run tare\n") {
		t.Errorf("with all well:\n%s", s)
	}
}

func TestContainers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"DOCKER_HOST": "unix://" + file}
	x := &examiner{Options: Options{Getenv: func(k string) string { return env[k] }}}
	if c := x.containers(t.Context()); !strings.Contains(c.Found, file+" does not answer") || c.State != Info {
		t.Errorf("got %+v, want %s does not answer", c, file)
	}
	env = nil
	if c := x.containers(t.Context()); strings.Contains(c.Found, file) || c.Found == "" {
		t.Errorf("nothing is set, and %+v", c)
	}
}

// TestChecksOfAreas: they stand in the groups of the core, before its own, and tools are sorted by name.
func TestChecksOfAreas(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	of := func(checks ...Check) func(context.Context) []Check {
		return func(context.Context) []Check { return checks }
	}
	d, err := Examine(t.Context(), Options{
		Self: testBinary(t), Clock: clock.System{}, Time: MinTime, Seed: 1, Areas: []func(context.Context) []Check{
			of(Check{Group: "ovens", Name: "oven"}, Check{Group: groupTools, Name: "zester"},
				Check{Group: groupKernel, Name: "yeast"}),
			of(Check{Group: groupKernel, Name: "flour"}, Check{Group: groupTools, Name: "apron"}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.Checks {
		if c.Group == groupKernel || c.Group == groupTools || c.Group == "ovens" {
			got = append(got, c.Name)
		}
	}
	want := []string{"yeast", "flour", "instruction counter", "io_uring", "apron", "container runtime", "zester", "oven"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
