package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
)

// An experiment makes records of comparisons whose truth is known.
type experiment struct {
	question   design.Question
	treatments []design.Treatment // without the A/A arm; nil: none (the baseline) and seccomp
	factors    []record.Factor
	blocks     int
	operations []string
	negative   []string // operations that no treatment but the baseline can reach
	budget     []string
	margin     float64
	seed       uint64
	rounds     int // 0: 16
	unblocked  bool
	// cost is the true cost of one call; 0: 1 µs of CPU. block counts from 0.
	cost func(treatment, operation string, block int) float64
	// noise of a batch, of a block for all its arms, and of an arm within a block: standard deviations of logarithms. 0: 2
	// %, 10 %, 0.5 %.
	batch, block, arm float64
	// heavy is how often a batch takes three times as long.
	heavy float64
	// calls turn the trials into wire trials with so many calls in the window.
	calls int
	spoil func(treatment string, block int) bool // the generator is late
	fail  func(treatment string, block, call int) bool
	took  time.Duration // of calls that fail, after they were sent; 0: as long as others
	// share of the few calls of a batch that failed; nil: batches do not say.
	share func(treatment string, block, round int) float64
	drop  func(treatment string, block int) bool // the trial is cut short
	end   record.Status
	// area is "padlock", or "turnpike" for calls, unless it is said; beside writes what else a trial leaves behind.
	area   string
	beside func(t *testing.T, w *record.Writer, trial design.Trial)
}

func (x experiment) withDefaults() experiment {
	set := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&x.batch, .02)
	set(&x.block, .1)
	set(&x.arm, .005)
	set(&x.margin, .02)
	if x.question == "" {
		x.question = design.Compare
	}
	if x.rounds == 0 {
		x.rounds = 16
	}
	if x.treatments == nil {
		x.treatments = []design.Treatment{
			{ID: "enforcer=none", Baseline: true, Levels: map[string]string{"enforcer": "none"}},
			{ID: "enforcer=seccomp", Levels: map[string]string{"enforcer": "seccomp"}},
		}
	}
	if x.operations == nil {
		x.operations = []string{"open"}
	}
	if x.cost == nil {
		x.cost = func(string, string, int) float64 { return 1e-6 }
	}
	if x.end == "" {
		x.end = record.Complete
	}
	return x
}

// plan is what was to be done.
func (x *experiment) plan() (record.Plan, []design.Trial) {
	arms := design.Arms(x.treatments)
	if x.unblocked {
		arms = x.treatments
	}
	trials := design.Plan(design.Experiment{Treatments: arms, Blocks: x.blocks, Seed: x.seed})
	p := record.Plan{
		Treatments: arms, Trials: trials, Budget: x.budget, Margin: x.margin, Factors: x.factors, Blocks: x.blocks,
		Looks:     design.Looks(x.blocks),
		Unblocked: x.unblocked,
	}
	if x.calls > 0 {
		p.Load = record.Load{Engine: "fast", Arrivals: "constant", Timeout: 5, Rate: 1000, Duration: float64(x.calls) / 1000}
	}
	return p, trials
}

// truth is the noise-free cost under an arm; the A/A arm's is asked for under its own name.
func (x *experiment) truth(arm, operation string, block int) float64 {
	return x.cost(arm, operation, block)
}

// batches are an arm's samples of one block. rngBlock is shared by the arms of a block.
func (x *experiment) batches(t design.Trial, operation string, shared float64, rng *rand.Rand) []record.Batches {
	own := math.Exp(rng.NormFloat64() * x.arm)
	var cpu, wall []float64
	for range x.rounds {
		v := x.truth(t.Treatment, operation, t.Block) * shared * own * math.Exp(rng.NormFloat64()*x.batch)
		w := v * 1.1 * math.Exp(rng.ExpFloat64()*3*x.batch)
		if rng.Float64() < x.heavy {
			v, w = v*3, w*3
		}
		cpu, wall = append(cpu, v), append(wall, w)
	}
	of := func(m string, v []float64) record.Batches {
		return record.Batches{Treatment: t.Treatment, Block: t.Block, Operation: operation, Metric: m, N: 5000, Values: v}
	}
	out := []record.Batches{of("cpu", cpu), of("wall", wall)}
	if x.share != nil {
		b := of("error", nil)
		b.N = fewCalls
		for round := range x.rounds {
			b.Values = append(b.Values, x.share(t.Treatment, t.Block, round))
		}
		out = append(out, b)
	}
	return out
}

// fewCalls are in a batch that says how many of them failed.
const fewCalls = 5

func (x *experiment) begin(t design.Trial) record.TrialBegin {
	b := record.TrialBegin{Trial: t, Operations: x.operations}
	for _, arm := range x.treatments {
		if arm.ID == t.Treatment && !arm.Baseline {
			b.Negative = x.negative
		}
	}
	return b
}

// record makes the record in memory, for experiments of batches: nothing is written, so that many can be made.
func (x experiment) record() *record.Record {
	x = x.withDefaults()
	plan, trials := x.plan()
	r := &record.Record{Plan: plan, Finish: &record.Finish{Status: x.end, Seconds: 60}}
	r.Header = record.Header{
		Experiment: record.Experiment{Name: "enforcers", Seed: x.seed}, Area: "padlock", Question: x.question, Started: epoch,
	}
	x.each(trials, func(t design.Trial, shared func(operation string) float64, rng *rand.Rand) {
		trial := &record.Trial{TrialBegin: x.begin(t), End: &record.TrialEnd{Status: record.Complete}}
		if x.drop != nil && x.drop(t.Treatment, t.Block) {
			trial.End.Status = record.Dropped
		}
		for _, op := range x.operations {
			trial.Batches = append(trial.Batches, x.batches(t, op, shared(op), rng)...)
		}
		r.Trials = append(r.Trials, trial)
	})
	return r
}

// each calls f for every trial, with the luck that all arms of a block share.
func (x *experiment) each(trials []design.Trial, f func(design.Trial, func(string) float64, *rand.Rand)) {
	for _, t := range trials {
		rng := rand.New(rand.NewPCG(x.seed, t.Seed))
		f(t, func(op string) float64 {
			h := uint64(t.Block+1) * 0x9e3779b97f4a7c15
			for _, c := range op {
				h = (h ^ uint64(c)) * 1099511628211
			}
			return math.Exp(rand.New(rand.NewPCG(x.seed+1, h)).NormFloat64() * x.block)
		}, rng)
	}
}

// write writes the record as a run does, and returns its folder.
func (x experiment) write(t *testing.T, dir string) string {
	t.Helper()
	x = x.withDefaults()
	clk := clock.NewFake(epoch)
	area := "padlock"
	if x.calls > 0 {
		area = "turnpike"
	}
	if x.area != "" {
		area = x.area
	}
	w, err := record.Create(dir, record.Header{
		Tool:       record.Tool{Version: "0.2.0", Commit: "ed6cf0d"},
		Experiment: record.Experiment{Name: "enforcers", File: "enforcers.yaml", Seed: x.seed},
		Area:       area, Question: x.question,
		Host: record.Host{Name: "host", Kernel: "Linux 6.1.0", CPUs: 2, Go: "go1.26.8", Arch: "amd64"},
	}, []byte("name: enforcers\narea: "+area+"\nquestion: "+string(x.question)+"\n"), clk)
	must(t, err)
	plan, trials := x.plan()
	must(t, w.Plan(plan))
	for _, arm := range plan.Treatments {
		must(
			t, w.Prepare(record.Prepare{Treatment: arm.ID, Seconds: 0.1}), w.Verify(record.Verify{Treatment: arm.ID, OK: true}),
		)
	}
	x.each(trials, func(trial design.Trial, shared func(string) float64, rng *rand.Rand) {
		clk.Advance(time.Second)
		must(t, w.TrialBegin(x.begin(trial)))
		if x.calls > 0 {
			x.wire(t, w, trial, shared, rng)
		} else {
			for _, op := range x.operations {
				for _, b := range x.batches(trial, op, shared(op), rng) {
					must(t, w.Batches(b))
				}
			}
		}
		if x.beside != nil {
			x.beside(t, w, trial)
		}
		end := record.TrialEnd{Treatment: trial.Treatment, Block: trial.Block, Seconds: 1, Status: record.Complete}
		if x.drop != nil && x.drop(trial.Treatment, trial.Block) {
			end.Status = record.Dropped
		}
		must(t, w.TrialEnd(end))
	})
	if x.end != "killed" {
		must(t, w.Look(record.Look{Blocks: x.blocks, Stop: true, Reason: fmt.Sprintf("%d blocks are done", x.blocks)}))
		must(t, w.Finish(record.Finish{Status: x.end, Seconds: 60}))
	}
	must(t, w.Close())
	return w.Dir()
}

const warmUp = 100 * time.Millisecond

// wire writes one trial under a constant load of 1000/s: warm-up of 100 ms that takes ten times as long, then the
// window.
func (x *experiment) wire(
	t *testing.T, w *record.Writer, trial design.Trial, shared func(string) float64, rng *rand.Rand,
) {
	t.Helper()
	id, block := trial.Treatment, trial.Block
	own := math.Exp(rng.NormFloat64() * x.arm)
	var calls []load.Call
	good := 0
	window := record.Window{
		Treatment: id, Block: block, Start: warmUp, End: warmUp + time.Duration(x.calls)*time.Millisecond,
	}
	for i := range x.calls + 100 {
		op := i % len(x.operations)
		took := x.truth(id, x.operations[op], block) * shared(x.operations[op]) * own * math.Exp(rng.NormFloat64()*.3)
		c := load.Call{Operation: uint8(op), Conn: 1, Intended: time.Duration(i) * time.Millisecond, Status: 200}
		if c.Intended < warmUp {
			took *= 10
		}
		c.Ready = c.Intended + 1
		c.Sent = c.Ready + 20_000
		if x.spoil != nil && x.spoil(id, block) {
			c.Sent += 5 * time.Millisecond
		}
		c.FirstByte = c.Sent + time.Duration(took*1e9)
		c.Done = c.FirstByte + 1000
		if x.fail != nil && x.fail(id, block, i) {
			if c.Outcome, c.Status = load.Failed, 500; x.took > 0 {
				c.FirstByte, c.Done = c.Sent+x.took, c.Sent+x.took
			}
		} else if c.Intended >= warmUp {
			good++
		}
		calls = append(calls, c)
	}
	cpu := x.truth(id, x.operations[0], block) * shared("cpu") * own * float64(good)
	around(t, w, trial, []metric.Sample{
		{Subject: "endpoint", Metric: "cpu", Value: 10},
		{Subject: "sts", Metric: "cpu", Value: 5},
		{Subject: "endpoint", Metric: "upstream_calls", Value: 7},
		{Subject: "generator", Metric: "cpu", Value: 1},
		{Subject: "host", Metric: "host_cpu", Value: 1},
	}, []metric.Sample{
		{Subject: "endpoint", Metric: "cpu", Value: 10 + cpu*.75},
		{Subject: "sts", Metric: "cpu", Value: 5 + cpu*.25},
		{Subject: "endpoint", Metric: "upstream_calls", Value: 7 + float64(good)/4},
		{Subject: "generator", Metric: "cpu", Value: 3},
		{Subject: "host", Metric: "host_cpu", Value: 20},
	})
	must(t,
		w.Window(window), w.Calls(id, block, calls),
		w.Generator(
			record.Generator{
				Treatment: id, Block: block, Engine: "fast", Offered: uint64(x.calls), Sent: uint64(x.calls),
				Seconds: float64(x.calls) / 1000, CPUSeconds: .05,
			},
		),
	)
}

// around writes what probes read before and after a trial.
func around(t *testing.T, w *record.Writer, trial design.Trial, before, after []metric.Sample) {
	t.Helper()
	x := record.Samples{Treatment: trial.Treatment, Block: trial.Block, When: record.Before, Samples: before}
	must(t, w.Samples(x))
	x.When, x.Samples = record.After, after
	must(t, w.Samples(x))
}

// slower makes seccomp cost more by a factor; other arms cost a microsecond.
func slower(factor float64) func(string, string, int) float64 {
	return func(treatment, _ string, _ int) float64 {
		if treatment == seccomp {
			return 1e-6 * factor
		}
		return 1e-6
	}
}
