package analyze

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"tare/area"
	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// limitedTrace makes the trace of a search against a server that answers after 5 ms, accepts 150 calls a second and
// rejects the rest: a token bucket without depth.
func limitedTrace(seed uint64) capacity.Trace { return fastTrace(seed, 1) }

// fastTrace is limitedTrace at factor times its rates.
func fastTrace(seed uint64, factor float64) capacity.Trace {
	limit := 150 * factor
	rng := rand.New(rand.NewPCG(seed, 7))
	tr := capacity.Trace{
		Timeout: 30 * time.Second, MaxRate: 2000, MaxConns: 4096, Stop: capacity.StopFound, Reason: "found and confirmed",
	}
	now, next := time.Duration(0), 0.0
	step := func(role capacity.Role, rate float64, d time.Duration, attempt int, passed *bool) {
		rate *= factor
		s := capacity.Step{Role: role, Rate: rate, Attempt: attempt, Passed: passed}
		s.Segment = load.Segment{Start: now, End: now + d, Offered: int(rate * d.Seconds()), CPU: 0.04 * d.Seconds()}
		for i := range s.Segment.Offered {
			c := load.Call{Conn: 1, Intended: now + time.Duration(float64(i)/rate*1e9)}
			c.Ready = c.Intended + 1
			c.Sent = c.Ready + time.Duration(rng.IntN(20_000))
			at := c.Sent.Seconds()
			took := 5*time.Millisecond + time.Duration(rng.IntN(1_000_000))
			c.Outcome, c.Status = load.OK, 200
			if at < next {
				c.Outcome, c.Status, took = load.Refused, 429, time.Millisecond
			} else {
				next = max(next+1/limit, at-0.3/limit)
			}
			c.FirstByte = c.Sent + took
			c.Done = c.FirstByte + 1000
			tr.Calls = append(load.CallsOf(tr.Calls), c)
			s.Segment.Sent++
		}
		now += d
		tr.Steps = append(tr.Steps, s)
	}
	yes, no := true, false
	for i, rate := range []float64{10, 20, 40, 80} {
		step(capacity.RoleRamp, rate, 2*time.Second, i+1, &yes)
	}
	step(capacity.RoleRamp, 160, 500*time.Millisecond, 5, &no)
	step(capacity.RoleOverload, 195, 4*time.Second, 1, nil)
	step(capacity.RoleConfirmHigh, 153, 5*time.Second, 1, &no)
	step(capacity.RoleConfirmLow, 147, 5*time.Second, 1, &yes)
	tr.Recovery = &capacity.Recovery{
		Start: now, Limit: time.Second, Deadline: time.Minute, Recovered: true, Complete: true,
		Probes: []capacity.Probe{{At: now + 10*time.Millisecond, Response: 5 * time.Millisecond, Good: true}},
	}
	tr.Read = now + 3*time.Second
	return tr
}

// journal writes a record as a run does. Each option changes one thing on the way.
type journal struct {
	treatments []design.Treatment
	budget     []string
	trace      func(treatment string) capacity.Trace
	unverified bool
	undecided  uint64 // requests that the target let pass unjudged
	noCalls    bool
	operation  string // empty: "token"
	killed     bool   // after the steps, before the calls are written
	status     record.Status
	pending    bool
	placement  *record.Placement // of generator and target; nil: not known
}

func (j journal) write(t *testing.T, dir string) string {
	t.Helper()
	clk := clock.NewFake(epoch)
	if j.treatments == nil {
		j.treatments = []design.Treatment{{ID: "default"}}
	}
	if j.trace == nil {
		j.trace = func(string) capacity.Trace { return limitedTrace(1) }
	}
	w, err := record.Create(dir, record.Header{
		Tool:       record.Tool{Version: "0.1.0", Commit: "947ae69"},
		Experiment: record.Experiment{Name: "limited", File: "limited.yaml", Seed: 4211},
		Area:       "turnpike", Question: design.Capacity,
		Host: record.Host{Name: "host", Kernel: "Linux 6.1.0", CPUs: 2, Go: "go1.26.8", Arch: "amd64"},
	}, []byte("name: limited\narea: turnpike\nquestion: capacity\n"), clk)
	must(t, err)
	plan := design.Plan(design.Experiment{Treatments: j.treatments, Blocks: 1, Seed: 4211})
	must(t, w.Plan(record.Plan{
		Treatments: j.treatments, Trials: plan, Budget: j.budget,
		Load: record.Load{Engine: "fast", Arrivals: "constant", Timeout: 30, MaxRate: 2000, MaxConnections: 4096},
	}))
	change := area.Change{Area: "turnpike", Kind: "process", ID: "endpoint"}
	must(t, w.Intend(change))
	for _, trial := range plan {
		must(
			t, w.Prepare(record.Prepare{Treatment: trial.Treatment, Seconds: 0.4}),
			w.Note(record.Note{Text: "the endpoint runs on this host"}),
		)
		j.trial(t, w, clk, trial)
	}
	if !j.pending {
		must(t, w.Undone(change))
	}
	if !j.killed {
		if j.status == "" {
			j.status = record.Complete
		}
		must(t, w.Finish(record.Finish{Status: j.status, Seconds: 31.5}))
	}
	must(t, w.Close())
	return w.Dir()
}

func (j journal) trial(t *testing.T, w *record.Writer, clk *clock.Fake, trial design.Trial) {
	t.Helper()
	id, block := trial.Treatment, trial.Block
	verify := record.Verify{Treatment: id, OK: !j.unverified}
	if j.unverified {
		verify.Error = "a call without the header was answered"
	}
	must(
		t, w.Verify(verify),
		w.TrialBegin(record.TrialBegin{Trial: trial, Operations: []string{cmp.Or(j.operation, "token")}}),
	)
	tr := j.trace(id)
	must(t, w.Samples(record.Samples{Treatment: id, When: record.Before, Samples: []metric.Sample{
		{Subject: "endpoint", Metric: "cpu", Value: 10},
		{Subject: "endpoint", Metric: "rss", Value: 18e6},
		{Subject: "endpoint", Metric: "throttled_periods", Value: 5},
		{Subject: "host", Metric: "steal", Value: 1},
		{Subject: "host", Metric: "host_all", Value: 1000},
	}}))
	for _, s := range tr.Steps {
		clk.Advance(s.Length())
		must(t, w.Step(id, block, "step", s))
	}
	if j.killed {
		return
	}
	must(t, w.Samples(record.Samples{Treatment: id, When: record.After, Samples: []metric.Sample{
		{Subject: "endpoint", Metric: "cpu", Value: 12.5},
		{Subject: "endpoint", Metric: "rss", Value: 41e6},
		{Subject: "endpoint", Metric: "throttled_periods", Value: 9},
		{Subject: "host", Metric: "steal", Value: 4},
		{Subject: "host", Metric: "host_all", Value: 1060},
		{Subject: "endpoint", Metric: "listen_overflows", Value: 3},
	}}))
	if !j.noCalls {
		must(t, w.Calls(id, block, load.CallsOf(tr.Calls)))
	}
	if j.undecided > 0 {
		must(t, w.Served(record.Served{Treatment: id, Block: block, Served: area.Served{Parts: []area.ServedPart{
			{Part: area.Undecided, Name: "gate", Action: "validating", Count: j.undecided},
			{Part: area.Undecided, Name: "other", Action: "validating", Count: j.undecided},
		}}}))
	}
	must(t, w.Cells(id, block, cells(load.CallsOf(tr.Calls))))
	must(t, w.Step(id, block, "trace", tr), w.Generator(record.Generator{
		Treatment: id, Engine: "fast", Offered: uint64(tr.Calls.Len()), Sent: uint64(tr.Calls.Len()), Seconds: 23.5,
		CPUSeconds: 0.94, BytesIn: 1000, BytesOut: 500,
		Placement: j.placement,
	}))
	end := record.TrialEnd{Treatment: id, Seconds: 23.5, Status: record.Complete}
	if j.status == record.Interrupted {
		end.Status = record.Dropped
	}
	must(t, w.TrialEnd(end))
}

// cells makes the histograms that a stream would have made.
func cells(calls []load.Call) []load.Cell {
	per := map[load.Outcome]*load.Cell{}
	for _, c := range calls {
		x := per[c.Outcome]
		if x == nil {
			x = &load.Cell{
				Outcome: c.Outcome, Response: &hist.Histogram{}, Service: &hist.Histogram{}, PoolWait: &hist.Histogram{},
				Lateness: &hist.Histogram{},
			}
			per[c.Outcome] = x
		}
		x.Response.Record(int64(c.Response()))
		x.Service.Record(int64(c.Service()))
		x.PoolWait.Record(int64(c.PoolWait()))
		x.Lateness.Record(int64(c.Lateness()))
	}
	var out []load.Cell
	for o := range load.Outcome(load.Outcomes) {
		if x := per[o]; x != nil {
			out = append(out, *x)
		}
	}
	return out
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
