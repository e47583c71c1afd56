package drive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/run"
	"tare/rigs/hosttest"
)

// A fakeStream is a stream on a fake clock: a day passes in seconds. It makes up its calls one by one and adds them to
// histograms as an engine does, from one Take to the next.
type fakeStream struct {
	clock    *clock.Fake
	began    time.Time
	ops      int
	rng      *rand.PCG
	owed     float64
	progress load.Progress
	cells    []*load.Cell // by operation and outcome
	bundles  []bundle
}

// A bundle is what bundleSize calls add up to. A busy stream draws its calls by the bundle, which is cheaper.
type bundle struct {
	progress load.Progress
	cells    []load.Cell
}

const bundleSize = 2500

func newFakeStream(c *clock.Fake) func(context.Context, load.Config) (load.Stream, error) {
	return func(_ context.Context, conf load.Config) (load.Stream, error) {
		if conf.KeepCalls {
			return nil, errors.New("a long run must not keep its calls")
		}
		return &fakeStream{
			clock: c, began: c.Now(), ops: len(conf.Operations), rng: rand.NewPCG(conf.Seed, 1),
			cells: make([]*load.Cell, len(conf.Operations)*load.Outcomes),
		}, nil
	}
}

func (h *fakeStream) Meter() load.Meter { return load.Meter{} }

func (h *fakeStream) Now() time.Duration { return h.clock.Now().Sub(h.began) }

func (h *fakeStream) Offer(ctx context.Context, p load.Process, poll time.Duration, stop func() bool,
) (load.Segment, error) {
	seg := load.Segment{Start: h.Now(), End: h.Now() + p.Length()}
	for h.Now() < seg.End {
		if err := ctx.Err(); err != nil {
			seg.End = h.Now()
			return seg, err
		}
		step := min(poll, seg.End-h.Now())
		h.clock.Advance(step)
		for h.owed += p.Peak() * step.Seconds(); h.owed >= bundleSize; h.owed -= bundleSize {
			h.addBundle()
		}
		for ; h.owed >= 1 && p.Peak() < 100; h.owed-- {
			h.addCall()
		}
		if stop() {
			seg.Stopped, seg.End = true, h.Now()
			break
		}
	}
	return seg, nil
}

// addCall makes up a call: times spread over two decades, and one call in a thousand fails for one of many reasons.
func (h *fakeStream) addCall() {
	i := h.progress.Due
	h.progress.Due++
	h.progress.Sent++
	op, o := int(i)%h.ops, load.OK
	draw := h.rng.Uint64()
	var why load.CauseCount
	if draw%1000 == 0 {
		o = []load.Outcome{load.Wrong, load.Timeout, load.ConnFailed, load.Failed}[draw/1000%4]
		why = load.CauseCount{Cause: load.Cause(draw / 4000 % 20), Status: uint16(500 + draw/80000%5), Count: 1}
	}
	h.progress.Done[o]++
	h.progress.BytesIn += 300
	h.progress.BytesOut += 200
	c := h.cell(op, o)
	u := float64(draw>>11) / (1 << 53)
	service := int64(1e6 * (1 + 100*u*u*u*u*u*u*u*u))
	late := int64(1e3 * (1 + 50*u))
	c.Response.Record(service + late)
	c.Service.Record(service)
	c.PoolWait.Record(0)
	c.Lateness.Record(late)
	c.BytesIn += 300
	c.BytesOut += 200
	if !o.Good() {
		one := emptyCell(op, o)
		one.Causes = []load.CauseCount{why}
		c.Merge(one)
	}
}

// addBundle offers the calls of one of eight bundles, each of which was drawn call by call.
func (h *fakeStream) addBundle() {
	if h.bundles == nil {
		for range 8 {
			maker := &fakeStream{ops: h.ops, rng: h.rng, cells: make([]*load.Cell, len(h.cells))}
			for range bundleSize {
				maker.addCall()
			}
			h.bundles = append(h.bundles, bundle{maker.progress, maker.Take()})
		}
	}
	b := &h.bundles[h.rng.Uint64()%uint64(len(h.bundles))]
	h.progress.Due += b.progress.Due
	h.progress.Sent += b.progress.Sent
	h.progress.BytesIn += b.progress.BytesIn
	h.progress.BytesOut += b.progress.BytesOut
	for o := range b.progress.Done {
		h.progress.Done[o] += b.progress.Done[o]
	}
	for i := range b.cells {
		h.cell(b.cells[i].Operation, b.cells[i].Outcome).Merge(&b.cells[i])
	}
}

func (h *fakeStream) cell(op int, o load.Outcome) *load.Cell {
	c := &h.cells[op*load.Outcomes+int(o)]
	if *c == nil {
		*c = emptyCell(op, o)
	}
	return *c
}

func emptyCell(op int, o load.Outcome) *load.Cell {
	return &load.Cell{
		Operation: op, Outcome: o, Response: &hist.Histogram{}, Service: &hist.Histogram{},
		PoolWait: &hist.Histogram{}, Lateness: &hist.Histogram{},
	}
}

func (h *fakeStream) Take() []load.Cell {
	var out []load.Cell
	for i, c := range h.cells {
		if c != nil {
			out = append(out, *c)
		}
		h.cells[i] = nil
	}
	return out
}

func (h *fakeStream) Progress() load.Progress { p := h.progress; p.Now = h.Now(); return p }

func (h *fakeStream) Cycle(context.Context, load.Closed, time.Duration, func() bool) (load.Segment, error) {
	return load.Segment{}, errors.New("this stream has no workers")
}

func (h *fakeStream) Wait(context.Context, time.Duration, time.Duration, func() bool) error {
	return nil
}

func (h *fakeStream) Fresh(context.Context, int, uint64, time.Duration) load.Call { return load.Call{} }
func (h *fakeStream) DropIdle()                                                   {}
func (h *fakeStream) Reset()                                                      {}
func (h *fakeStream) Calls(time.Duration) []load.Call                             { return nil }

func (h *fakeStream) Close() error { return nil }

// fiveOperations is a target with five operations, and with as many values of probes as a JVM in a control group has.
type fiveOperations struct {
	exactTarget
	clock *clock.Fake
	began time.Time
}

func (*fiveOperations) Operations(design.Treatment) ([]load.Operation, error) {
	var ops []load.Operation
	for _, name := range []string{"healthcheck", "statistics", "monitoring", "guard-minmax", "guard-frequency"} {
		ops = append(ops, load.Operation{Name: name, Weight: 1, Wire: serverCall{"/", name}, Answer: "permit"})
	}
	return ops, nil
}

func (f *fiveOperations) Can() area.Can {
	return area.Can{Enter: f.Enter, Leave: f.Leave, Probes: f.Probes}
}

func (f *fiveOperations) Probes(design.Treatment) []probe.Probe { return []probe.Probe{f} }
func (*fiveOperations) Subject() string                         { return "policy decision point" }

func (f *fiveOperations) Read(context.Context) ([]metric.Sample, error) {
	at := f.clock.Now().Sub(f.began)
	var out []metric.Sample
	for i, q := range probe.Quantities() {
		value := at.Seconds() * math.Sqrt(float64(i))
		if q.Name == probe.Started.Name {
			value = math.Floor(at.Hours()) // restarted every hour
		}
		out = append(out, metric.Sample{Subject: f.Subject(), Metric: q.Name, Value: value})
	}
	return out, nil
}

// TestSoakOfHours records three hours at 1,000/s and checks an eighth of a day's bound on disk, 200 MB, and what the
// live memory may be then, so that a day's is less than 100 MB; the collector runs as often as in the program.
func TestSoakOfHours(t *testing.T) {
	hosttest.SkipIfShort(t)
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	length, rate := 3*time.Hour, 1000.0
	clk := clock.NewFake(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	f := &fiveOperations{clock: clk, began: clk.Now()}
	req, open := soakRequest(t, f, run.Load{Config: load.Config{Timeout: 5 * time.Second}, Rate: rate, Duration: length})
	req.Env.Clock, req.Open = clk, newFakeStream(clk)
	var live, peak, held uint64
	cuts := 0
	var last Soak
	req.Events = func(e run.Event) {
		if soakState(e) == nil || !soakState(e).Cut {
			return
		}
		last = *soakState(e)
		var m runtime.MemStats
		if cuts++; cuts%100 == 1 {
			runtime.ReadMemStats(&m)
			peak, held = max(peak, m.HeapAlloc), max(held, m.Sys-m.HeapReleased)
		}
		if cuts%250 == 1 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			live = max(live, m.HeapAlloc)
		}
	}
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	disk := folderSize(t, req.Writer.Dir())
	t.Logf("%v at %g/s, %d slices: %.1f MB on disk; %.1f MB of heap are live at most, %.1f MB allocated; %.1f MB held "+
		"from the system with the tests before",
		length, rate, cuts, float64(disk)/1e6, float64(live)/1e6, float64(peak)/1e6, float64(held)/1e6)
	if disk > 200e6/8 || peak > 100e6 || live > 18e6 {
		t.Errorf("%d bytes on disk, %d live, %d at the peak", disk, live, peak)
	}
	trial := auditSoak(t, open())
	_, measured, _ := sumEndedCalls(trial.Slices)
	if want := rate * length.Seconds(); math.Abs(float64(measured)-want) > want/1000 {
		t.Errorf("%d calls were measured, want %g", measured, want)
	}
	if warm := trial.Window.Start; warm.Round(time.Second) != 5*time.Minute ||
		(trial.Window.End-warm).Round(time.Second) != length {
		t.Errorf("the window is %+v", trial.Window)
	}
	if want := int((length + 5*time.Minute - time.Second) / time.Hour); last.Restarts != want {
		t.Errorf("%d restarts were seen, want %d", last.Restarts, want)
	}
}

func folderSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("size of %s: %w", d.Name(), err)
		}
		size += info.Size()
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return size
}

// heldBackStream is a stream of which max_rate holds back 5 calls during the warm-up, and 7 later.
type heldBackStream struct{ load.Stream }

func (h heldBackStream) Progress() load.Progress {
	p := h.Stream.Progress()
	if p.Held = 5; p.Now > 10*time.Second {
		p.Held = 12
	}
	return p
}

// TestSoakWarningsIgnoreWarmUp: calls that were held back during the warm-up cause no warning about the measured part.
func TestSoakWarningsIgnoreWarmUp(t *testing.T) {
	clk := clock.NewFake(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	f := &fiveOperations{clock: clk, began: clk.Now()}
	req, open := soakRequest(t, f, run.Load{
		Config: load.Config{Timeout: time.Second}, Rate: 10, Duration: 30 * time.Second,
	})
	req.Env.Clock = clk
	req.Open = func(ctx context.Context, c load.Config) (load.Stream, error) {
		s, err := newFakeStream(clk)(ctx, c)
		return heldBackStream{s}, err
	}
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	if w := open().Warned; len(w) != 1 || !strings.HasPrefix(w[0].Text, "max_rate held calls back, 7 times") {
		t.Errorf("warnings %v", w)
	}
}
