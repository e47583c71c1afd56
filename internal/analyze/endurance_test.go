package analyze

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// An endurance makes records of soaks whose truth is known. Instants are in seconds since the load began.
type endurance struct {
	window, warm, measured float64 // seconds; 0: 2 s, 60 s, 600 s
	planned                float64 // 0: measured
	operations             []string
	rate                   float64 // calls of each operation a second; 0: 50
	workers                int     // 0 with open: an open loop
	open                   bool
	budget                 []string
	seed                   uint64
	response               func(at float64) float64 // seconds; nil: 10 ms
	rss                    func(at float64) float64 // nil: 30 MiB with a sawtooth
	peak                   func(at float64) float64 // of it, since its process began; nil: 60 MiB
	cpu                    func(at float64) float64 // CPU-seconds a call; nil: 2 ms
	// share of the host's CPU time that others use; nil: the host does not say
	others   func(at float64) float64
	restarts []float64
	outage   [2]float64
	noProbes bool
	// calls of the first operation in a window that are answered "permit" instead of "deny"
	wrong      func(at float64) uint64
	twin       bool       // "deny" is a trespass beside "permit"
	lateness   float64    // of every call, seconds
	tardy      float64    // of one call in fifty, seconds: its response takes that much longer
	held       [2]float64 // when every call is late by 10 ms, though lateness says otherwise
	stolen     float64    // share of the host's CPU time that the hypervisor takes meanwhile
	local      bool       // the target runs on the generator's host
	unsent     float64    // share of what was due that was not sent
	poolWait   float64    // of every call, seconds
	refused    bool       // in an outage no connection can be made: nothing is sent
	answers    func(seen map[string]uint64) record.Answers
	status     record.Status
	killed     bool
	unverified bool
	effort     *load.Effort      // of the generator; nil: an early record does not say it
	placement  *record.Placement // of generator and target; nil: not known
}

const mib = 1 << 20

func (x endurance) withDefaults() endurance {
	set := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&x.window, 2)
	set(&x.warm, 60)
	set(&x.measured, 600)
	set(&x.planned, x.measured)
	set(&x.rate, 50)
	if x.operations == nil {
		x.operations = []string{"deny", "permit"}
	}
	if x.workers == 0 && !x.open {
		x.workers = 1
	}
	if x.response == nil {
		x.response = func(float64) float64 { return 0.01 }
	}
	if x.rss == nil {
		x.rss = func(at float64) float64 { return 30*mib + sawtooth(at) }
	}
	if x.peak == nil {
		x.peak = func(float64) float64 { return 60 * mib }
	}
	if x.cpu == nil {
		x.cpu = func(float64) float64 { return 0.002 }
	}
	if x.status == "" {
		x.status = record.Complete
	}
	return x
}

// sawtooth is what a collector leaves and takes away: up to 6 MiB, every 23 s.
func sawtooth(at float64) float64 { return 6 * mib * math.Mod(at, 23) / 23 }

// endured is the state of the making of a record.
type endured struct {
	endurance
	w       *record.Writer
	clk     *clock.Fake
	rng     *rand.Rand
	cells   map[load.Outcome][]load.Cell // what is measured since the last flush, by operation
	seen    map[string]uint64
	cpuUsed float64
	hostCPU float64
	steal   float64 // by the host's account
	calls   float64 // by the target's own count
	born    float64 // of the process
}

func (x endurance) write(t *testing.T, dir string) string {
	t.Helper()
	x = x.withDefaults()
	clk := clock.NewFake(epoch)
	w, err := record.Create(dir, record.Header{
		Tool:       record.Tool{Version: "0.1.0", Commit: "947ae69"},
		Experiment: record.Experiment{Name: "soak", File: "soak.yaml", Seed: 11},
		Area:       "tribunal", Question: design.Soak,
		Host: record.Host{Name: "host", Kernel: "Linux 6.1.0", CPUs: 2, Go: "go1.26.8", Arch: "amd64"},
	}, []byte("name: soak\narea: tribunal\nquestion: soak\n"), clk)
	must(t, err)
	arms := []design.Treatment{{ID: "engine=cedar"}}
	trial := design.Trial{Treatment: arms[0].ID, Seed: 11}
	rate := 0.0
	if x.open {
		rate = x.rate * float64(len(x.operations))
	}
	must(t, w.Plan(record.Plan{
		Treatments: arms, Trials: []design.Trial{trial}, Budget: x.budget,
		Load: record.Load{Duration: x.planned, Workers: x.workers, Rate: rate, Timeout: 30},
	}))
	verify := record.Verify{Treatment: trial.Treatment, OK: !x.unverified}
	if x.unverified {
		verify.Error = "a known deny was permitted"
	}
	var twins map[string]string
	if x.twin {
		twins = map[string]string{"deny": "permit"}
	}
	must(t, w.Prepare(
		record.Prepare{Treatment: trial.Treatment, Seconds: 0.2},
	), w.Verify(verify), w.TrialBegin(record.TrialBegin{
		Trial: trial, Operations: x.operations, Twins: twins,
		Causes:  [][]string{{"the answer is permit"}, {"the answer is deny"}},
		Answers: []string{"deny", "permit"}, CauseAnswers: [][]string{{"permit"}, {"deny"}},
	}))
	if x.local && x.placement == nil {
		x.placement = &record.Placement{Generator: []int{0}, Local: true, Target: []int{1}}
	}
	e := &endured{
		endurance: x, w: w, clk: clk, rng: rand.New(rand.NewPCG(x.seed, 5)), seen: map[string]uint64{},
		cells: map[load.Outcome][]load.Cell{},
	}
	e.run(t, trial.Treatment)
	if !x.killed {
		must(t, w.Finish(record.Finish{Status: x.status, Seconds: x.warm + x.measured}))
	}
	must(t, w.Close())
	return w.Dir()
}

func (e *endured) run(t *testing.T, id string) {
	t.Helper()
	const flush = 300
	next := e.warm + flush
	for at := 0.0; at < e.warm+e.measured-1e-9; {
		end := math.Min(at+e.window, e.warm+e.measured)
		if at < e.warm {
			end = math.Min(end, e.warm)
		}
		must(t, e.w.Slice(e.slice(id, at, end)))
		e.clk.Advance(seconds(end - at))
		at = end
		if at == e.warm && !e.noProbes {
			must(t, e.w.Samples(record.Samples{Treatment: id, When: record.Before, Samples: e.samples(at)}))
		}
		if at >= next {
			next += flush
			e.flush(t, id)
		}
	}
	if e.killed {
		return
	}
	e.flush(t, id)
	if !e.noProbes {
		must(t, e.w.Samples(record.Samples{Treatment: id, When: record.After, Samples: e.samples(e.warm + e.measured)}))
	}
	if e.answers != nil {
		a := e.answers(e.seen)
		a.Treatment, a.Seen = id, e.seen
		must(t, e.w.Answers(a))
	}
	must(
		t,
		e.w.Generator(
			record.Generator{
				Treatment: id, Engine: "fast", Offered: 1, Sent: 1, Seconds: e.measured, CPUSeconds: 3, Workers: e.workers,
				Effort: e.effort, Placement: e.placement,
			},
		),
	)
	must(t, e.w.TrialEnd(record.TrialEnd{Treatment: id, Seconds: e.warm + e.measured, Status: e.status}))
}

func seconds(v float64) time.Duration { return time.Duration(math.Round(v * 1e9)) }

func (e *endured) down(at float64) bool { return at >= e.outage[0] && at < e.outage[1] }

// slice makes the calls of a window.
func (e *endured) slice(id string, at, end float64) record.Slice {
	out := record.Slice{
		Treatment: id, Start: seconds(at), End: seconds(end), WarmUp: at < e.warm, LatenessP50: e.lateness,
		LatenessP99: max(e.lateness, e.tardy), LatenessMax: max(e.lateness, e.tardy), CPU: 0.01,
	}
	mid := (at + end) / 2
	if mid >= e.held[0] && mid < e.held[1] {
		out.LatenessP50, out.LatenessP99, out.LatenessMax = 0.01, 0.01, 0.01
		e.steal += e.stolen * 2 * (end - at)
	}
	for k, name := range e.operations {
		n := uint64(math.Round(e.rate * (end - at)))
		wrong := uint64(0)
		if k == 0 && e.wrong != nil {
			wrong = e.wrong(mid)
		}
		o := record.SliceOperation{Operation: name, BytesIn: n * 200, BytesOut: n * 300}
		if e.down(mid) {
			if !e.refused {
				n /= 10
			}
			o.Outcomes = []record.SliceOutcome{
				{Outcome: load.ConnFailed, Count: n, Causes: []load.CauseCount{{Cause: load.CauseConnect, Errno: 111, Count: n}}},
			}
			e.record(out.WarmUp, k, load.ConnFailed, n, 0.0001, e.lateness)
			o.Mean, o.Max = 0.0001, 0.0002
		} else {
			right, other := e.outcomes(k)
			o.Outcomes = []record.SliceOutcome{{Outcome: right, Count: n - wrong}}
			if wrong > 0 {
				o.Outcomes = append(o.Outcomes, record.SliceOutcome{
					Outcome: other, Count: wrong, Causes: []load.CauseCount{{Cause: load.OwnCauses, Status: 200, Count: wrong}},
				})
			}
			e.good(&o, out.WarmUp, k, n-wrong, wrong, mid)
			e.seen[[]string{"deny", "permit"}[k]] += n - wrong
			if wrong > 0 {
				e.seen["permit"] += wrong
			}
		}
		out.Operations = append(out.Operations, o)
		out.Due += n
		if !e.refused || !e.down(mid) {
			out.Sent += uint64(float64(n) * (1 - e.unsent))
		}
		cost := float64(n) * e.cpu(mid) * math.Exp(0.05*e.rng.NormFloat64())
		e.cpuUsed, e.hostCPU = e.cpuUsed+cost, e.hostCPU+cost
		e.calls += float64(n)
	}
	if e.others != nil {
		e.hostCPU += out.CPU + e.others(mid)*2*(end-at)*math.Exp(0.05*e.rng.NormFloat64())
	}
	for _, r := range e.restarts {
		if r > at && r <= end {
			e.born, e.cpuUsed, e.calls = r, 0.3, 3
		}
	}
	if !e.noProbes && !e.down(end) {
		out.Samples = e.samples(end)
	}
	return out
}

// outcomes are those of a right answer to an operation, and of the other.
func (e *endured) outcomes(k int) (right, other load.Outcome) {
	if e.twin && k == 0 {
		return load.Denied, load.Permitted
	}
	return load.OK, load.Wrong
}

// good makes the times of calls that were answered.
func (e *endured) good(o *record.SliceOperation, warm bool, k int, n, wrong uint64, mid float64) {
	level := e.response(mid) * math.Exp(0.03*e.rng.NormFloat64())
	h := &hist.Histogram{}
	for range n + wrong {
		v := level * math.Exp(0.3*e.rng.NormFloat64()-0.045)
		late := e.lateness
		if e.tardy > 0 && h.Count()%50 == 7 {
			late = e.tardy
			v += late
		}
		h.Record(int64(v * 1e9))
		outcome, other := e.outcomes(k)
		if h.Count() > n {
			outcome = other
		}
		e.record(warm, k, outcome, 1, v, late)
	}
	o.Mean, o.Service, o.Max = h.Mean()/1e9, h.Mean()/1e9, float64(h.Max())/1e9
	o.P50, o.P90 = h.Quantile(.5)/1e9, h.Quantile(.9)/1e9
	if n >= 100 {
		o.P99 = h.Quantile(.99) / 1e9
	}
}

func (e *endured) record(warm bool, k int, outcome load.Outcome, n uint64, took, late float64) {
	if warm {
		return
	}
	if e.cells[outcome] == nil {
		e.cells[outcome] = make([]load.Cell, len(e.operations))
		for i := range e.cells[outcome] {
			e.cells[outcome][i] = load.Cell{
				Operation: i, Outcome: outcome, Response: &hist.Histogram{}, Service: &hist.Histogram{},
				PoolWait: &hist.Histogram{}, Lateness: &hist.Histogram{},
			}
		}
	}
	c := &e.cells[outcome][k]
	c.Response.RecordN(int64(took*1e9), n)
	c.Service.RecordN(int64(took*1e9), n)
	c.PoolWait.RecordN(int64(e.poolWait*1e9), n)
	if !e.refused || outcome != load.ConnFailed {
		c.Lateness.RecordN(int64(late*1e9), n)
	}
}

func (e *endured) flush(t *testing.T, id string) {
	t.Helper()
	for o := range load.Outcome(load.Outcomes) {
		if len(e.cells[o]) > 0 {
			must(t, e.w.Cells(id, 0, e.cells[o]))
		}
	}
	clear(e.cells)
}

// samples is what the probes read.
func (e *endured) samples(at float64) []metric.Sample {
	rss := e.rss(at-e.born) + 0.3*mib*e.rng.NormFloat64()
	var host []metric.Sample
	if e.others != nil {
		host = []metric.Sample{{Subject: "host", Metric: probe.HostCPU.Name, Value: e.hostCPU}}
	}
	return append(host, []metric.Sample{
		{Subject: "pdp", Metric: probe.Started.Name, Value: 1000 + 100*e.born},
		{Subject: "pdp", Metric: probe.CPU.Name, Value: e.cpuUsed},
		{Subject: "pdp", Metric: probe.RSS.Name, Value: rss},
		{Subject: "pdp", Metric: probe.RSSPeak.Name, Value: e.peak(at)},
		{Subject: "pdp", Metric: probe.GCCount.Name, Part: "young", Value: math.Floor((at - e.born) / 10)},
		{Subject: "pdp", Metric: probe.GCTime.Name, Part: "young", Value: math.Floor((at-e.born)/10) * 0.004},
		{Subject: "pdp", Metric: probe.GCCount.Name, Part: "full", Value: 1},
		{Subject: "pdp", Metric: probe.GCTime.Name, Part: "full", Value: 0.1},
		{Subject: "pdp", Metric: probe.HeapUsed.Name, Value: rss / 2},
		{Subject: "pdp", Metric: probe.HeapCommitted.Name, Value: 40 * mib},
		{Subject: "pdp", Metric: probe.StartSeconds.Name, Value: 0.05},
		{Subject: "pdp", Metric: probe.LoadSeconds.Name, Value: 0.01},
		{Subject: "pdp", Metric: probe.SeriesTotal.Name, Part: `requests{code="200"}`, Value: e.calls},
		{Subject: "generator", Metric: probe.CPU.Name, Value: at * 0.05},
		{Subject: "host", Metric: probe.HostAll.Name, Value: 2 * at},
		{Subject: "host", Metric: probe.Steal.Name, Value: e.steal},
	}...)
}
