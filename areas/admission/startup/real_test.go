package startup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"tare/areas/admission/node"
	"tare/areas/plane"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// role makes the test binary a simulator of nodes.
const role = "TARE_TEST_NODES"

func serveNodes() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := proc.Serve(ctx, os.Stdin, os.Stdout, func(ctx context.Context, raw json.RawMessage,
		ready func(any) error,
	) error {
		var cfg node.Config
		if err := json.Unmarshal(raw, &cfg); err != nil {
			return err
		}
		return node.Run(ctx, cfg, func(r node.Ready) error { return ready(r) })
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startRealPlane starts a control plane with simulated nodes, and skips the test if its binary is not built.
func startRealPlane(t testing.TB, v plane.Version, nodes int) (*plane.Plane, *proc.Child) {
	t.Helper()
	hosttest.SkipIfShort(t)
	b, ok := plane.Cached(t.Context(), v, plane.Host{Getenv: os.LookupEnv})
	if !ok {
		if os.Getenv(plane.Variable) != "" && v == plane.V136 {
			t.Fatalf("$%s names no binary that works", plane.Variable)
		}
		hosttest.Missing(t, fmt.Sprintf("no control plane of Kubernetes %s is built", v), hosttest.Plane)
	}
	hosttest.Place(t)
	p, err := plane.Start(t.Context(), plane.Config{Binary: b, Dir: t.TempDir(), Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := proc.Start(t.Context(), proc.Spec{
		Name: "nodes", Path: self, Env: append(os.Environ(), role+"=1"), ReadyWithin: 2 * time.Minute,
		LogFile: t.TempDir() + "/nodes.log",
		Config:  node.Config{Server: p.Server(), CA: p.CA, Token: p.NodesToken, Nodes: nodes},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var ready node.Ready
	if err := json.Unmarshal(c.Ready, &ready); err != nil {
		t.Fatal(err)
	}
	t.Logf("plane %s ready after %.1f s, %d nodes after %.2f s more", v, p.ReadySeconds, ready.Nodes, ready.Seconds)
	return p, c
}

func admin(p *plane.Plane) *rest.Config {
	return &rest.Config{Host: p.Server(), BearerToken: p.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAData: p.CA}}
}

// realWatch watches the default namespace of p, and waits until pods can be created there.
func realWatch(t testing.TB, p *plane.Plane) (*Watch, load.Operation) {
	t.Helper()
	w, err := Start(t.Context(), Config{API: admin(p), Namespace: "default", Selector: testSelector})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	o, err := w.Operation(Pods{Caller: admin(p), Pod: podJSON("p-" + load.CallMark)})
	if err != nil {
		t.Fatal(err)
	}
	// the default ServiceAccount may take a moment
	for i, deadline := uint64(1<<32), time.Now().Add(30*time.Second); ; i++ {
		r := o.Call(t.Context(), i)
		if r.Outcome == load.OK {
			return w, o
		}
		if time.Now().After(deadline) {
			t.Fatalf("no pod can be created: %+v", r)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// startPods offers pods at a fixed rate and returns the cells of the calls.
func startPods(t testing.TB, o load.Operation, rate float64, d time.Duration) []load.Cell {
	t.Helper()
	s, err := load.Open(t.Context(), load.Config{
		Engine: load.Std, Operations: []load.Operation{o},
		Timeout: 30 * time.Second, MaxConns: 256,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Offer(t.Context(), load.Constant{Rate: rate, Duration: d}, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), 40*time.Second, 10*time.Millisecond,
		func() bool { return s.Progress().Open() == 0 }); err != nil {
		t.Fatal(err)
	}
	return s.Take()
}

func TestPodsStartOnARealControlPlane(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, v := range []plane.Version{plane.V136, plane.V124} {
		t.Run(string(v), func(t *testing.T) {
			p, _ := startRealPlane(t, v, 10)
			w, o := realWatch(t, p)
			cells := startPods(t, o, 20, 3*time.Second)
			if len(cells) != 1 || cells[0].Outcome != load.OK || cells[0].Response.Count() != 60 {
				t.Fatalf("%d cells, first %+v", len(cells), cells)
			}
			for _, ph := range cells[0].Phases {
				t.Logf("%-17s n %d p50 %.1f p99 %.1f ms", ph.Name, ph.Hist.Count(), ph.Hist.Quantile(0.5)/1e6,
					ph.Hist.Quantile(0.99)/1e6)
				if ph.Hist.Count() != 60 {
					t.Errorf("phase %s was seen %d times", ph.Name, ph.Hist.Count())
				}
			}
			if len(cells[0].Phases) != 7 {
				t.Errorf("%d phases", len(cells[0].Phases))
			}
			// Where the watch's events come 6 s late, as on a very busy host, a list may have shown the pod before.
			slow := cells[0].Response.Quantile(1) > 6e9
			if s := w.Stats(); s.Awaited != 0 || s.Late != 0 || s.Missed != 0 && !slow {
				t.Errorf("statistics %+v, want no pod that is awaited, late or missed", s)
			}
		})
	}
}

// TestWatchSurvivesAServerRestart: no pod that was created is lost.
func TestWatchSurvivesAServerRestart(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	p, _ := startRealPlane(t, plane.V136, 10)
	w, o := realWatch(t, p)
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	var cells []load.Cell
	for deadline := time.Now().Add(time.Minute); ; {
		o2 := o
		cells = startPods(t, o2, 10, 2*time.Second)
		if len(cells) == 1 && cells[0].Outcome == load.OK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a restart: %+v", cells)
		}
	}
	if s := w.Stats(); s.Awaited != 0 || s.Watches < 2 {
		t.Errorf("statistics %+v, want no awaited pod and at least 2 watches", s)
	}
}

// BenchmarkPodStartup creates pods at 25/s for 12 s on planes of 10 and 1000 nodes.
func BenchmarkPodStartup(b *testing.B) {
	for _, nodes := range []int{10, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			p, c := startRealPlane(b, plane.V136, nodes)
			_, o := realWatch(b, p)
			cpu := func() float64 {
				samples, err := probe.Process{Name: "nodes", PID: c.PID, Light: true}.Read(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				seconds, _ := probe.Find(samples, "nodes", probe.CPU)
				return seconds
			}
			before, begin := cpu(), time.Now()
			time.Sleep(20 * time.Second)
			b.ReportMetric((cpu()-before)/time.Since(begin).Seconds(), "idle-cores")
			before, begin = cpu(), time.Now()
			cells := startPods(b, o, 25, 12*time.Second)
			b.ReportMetric((cpu()-before)/time.Since(begin).Seconds(), "busy-cores")
			for i := range cells {
				if cells[i].Outcome != load.OK {
					b.Errorf("%d calls ended as %v", cells[i].Response.Count(), cells[i].Outcome)
					continue
				}
				for _, ph := range cells[i].Phases {
					b.ReportMetric(ph.Hist.Quantile(0.5)/1e6, ph.Name+"-p50-ms")
					b.ReportMetric(ph.Hist.Quantile(0.99)/1e6, ph.Name+"-p99-ms")
				}
			}
		})
	}
}
