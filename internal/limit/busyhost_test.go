package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/signature"
)

// limitedAfterWaits makes the experiments of a limiter of 100/s that needs hardly any processor time. Each call waits
// three times, refused or not, and with two in flight the longer the busier others keep the host.
func limitedAfterWaits(r *rand.Rand, alone, host float64) (out []Experiment) {
	const rate, burst, seconds, parts = 100, 10, 2.0, 8
	for k := 1; k <= 2; k *= 2 {
		wait := alone * (1 + host*host*float64(k-1)/2)
		x := Experiment{InFlight: k, Offered: 1000, Seconds: seconds, Counts: make([]int, parts)}
		free := make([]float64, k) // when each caller asks again
		tokens, last := float64(burst), 0.0
		var took, ends []float64
		for {
			i := slices.Index(free, slices.Min(free))
			at := free[i]
			if at >= seconds {
				break
			}
			end := at + wait/3*(r.ExpFloat64()+r.ExpFloat64()+r.ExpFloat64())
			free[i] = end
			tokens = min(burst, tokens+rate*(at-last))
			last = at
			if tokens < 1 {
				x.Bad++
				continue
			}
			tokens--
			if part := int(end / seconds * parts); part < parts {
				x.Counts[part]++
			}
			took, ends = append(took, end-at), append(ends, end)
		}
		x.Observe(took, ends)
		x.Service = took[len(took)/2]
		cpu := .0001 * float64(total(x.Counts)+x.Bad)
		x.Account = &Account{Seconds: seconds, CPU: &cpu, Processors: 2, HostBusy: &host}
		out = append(out, x)
	}
	return out
}

// TestWaitsAreNoPlaces: where others keep the processors busy, what a call takes is mostly the wait for one, and that a
// single caller gets the capacity does not say that there is one place.
func TestWaitsAreNoPlaces(t *testing.T) {
	for _, host := range []float64{.3, .97} {
		for _, wait := range []float64{.004, .008, .009, .01, .012, .016, .03} {
			t.Run(fmt.Sprint(host, wait), func(t *testing.T) {
				const runs = 200
				named := map[Kind]int{}
				for seed := range uint64(runs) {
					x := limitedAfterWaits(rand.New(rand.NewPCG(seed, 2)), wait, host)
					for _, class := range []signature.Class{signature.Unknown, signature.Shedding, signature.Queue} {
						v := Judge(Evidence{
							Rate: 100, Lo: 98, Hi: 102, Idle: 0.9 * wait, Signature: signature.Verdict{Class: class}, Experiments: x,
						})
						named[v.Kind]++
					}
				}
				for kind, n := range named {
					if kind != Unknown && kind != RateLimit && n > 3*runs/100 {
						t.Errorf("%d of %d called %s", n, 3*runs, kind)
					}
				}
			})
		}
	}
}

// TestFailuresBesideOtherWork: a failure that only waiting shows is withheld where others kept the processors busy, and
// not where the target did, or where processors were left.
func TestFailuresBesideOtherWork(t *testing.T) {
	for name, c := range map[string]struct {
		class signature.Class
		busy  float64 // share of two processors' time over 5 s
		each  float64 // processor time of a call, s
		named bool
	}{
		"others, a queue that drops calls": {signature.Shedding, 0.97, .0002, false},
		"others, less under load":          {signature.Collapse, 0.97, .0002, false},
		"others, refusals":                 {signature.TokenBucket, 0.97, .0002, true},
		"the target itself":                {signature.Shedding, 0.97, .008, true},
		"processors are left":              {signature.Shedding, 0.8, .0002, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := counted(8, 100)
			cpu := c.each * float64(total(x.Counts))
			x.Account = &Account{Seconds: x.Seconds, CPU: &cpu, Processors: 2}
			met := signature.Failure{Class: c.class, Certainty: signature.Likely, Evidence: []string{"calls had waited"}}
			e := Evidence{
				Signature: signature.Verdict{Class: c.class, Met: met}, Experiments: []Experiment{x},
				Overload: capacity.Use{All: 10, Busy: 10 * c.busy, Generator: .5, Calls: 1000},
			}
			got := e.Failure()
			if got.Known() != c.named || c.named && got.Class != c.class || !c.named && got.Class != signature.Unknown {
				t.Errorf("%+v", got)
			}
			e.Experiments[0].Account.CPU = nil
			if got := e.Failure(); got.Class != c.class {
				t.Errorf("without the target's processor time: %+v", got)
			}
			e.Overload.Waited, e.Overload.Seconds = 1.5, 5
			if got, kept := e.Failure(), c.class == signature.TokenBucket; (got.Class == c.class) != kept {
				t.Errorf("without the target's processor time, and a generator that had none for long: %+v", got)
			}
		})
	}
}

// TestExclusionsBesideOtherWork: where others kept the processors busy, no class is excluded by how long calls took,
// nor said to be what was seen where it is withheld; what counts of calls exclude remains.
func TestExclusionsBesideOtherWork(t *testing.T) {
	const byTimes, byCounts = "a queue", "a service that does less under load"
	for name, c := range map[string]struct {
		class     signature.Class
		certainty signature.Certainty
		busy      float64
		excluded  []string
		evidence  string // the first words
	}{
		"not known": {signature.Unknown, signature.NotKnown, .97, []string{byCounts}, "other work took 92 %"},
		"withheld":  {signature.Shedding, signature.Likely, .97, []string{byCounts}, "other work took 92 %"},
		"named":     {signature.TokenBucket, signature.Shown, .97, []string{byCounts}, "it is that class"},
		"quiet":     {signature.Unknown, signature.NotKnown, .3, []string{byTimes, byCounts}, "it is that class"},
		"its own":   {signature.Shedding, signature.Likely, .3, []string{byTimes, byCounts}, "it is that class"},
	} {
		x, cpu := counted(8, 100), .001
		x.Account = &Account{Seconds: x.Seconds, CPU: &cpu, Processors: 2}
		met := signature.Failure{
			Class: c.class, Certainty: c.certainty, Evidence: []string{"it is that class", "some calls succeeded"},
			Excluded: []signature.Exclusion{
				{What: byTimes, By: "calls took 3 ms", ByTimes: true}, {What: byCounts, By: "calls were turned away"},
			},
		}
		e := Evidence{
			Signature: signature.Verdict{Class: c.class, Met: met}, Experiments: []Experiment{x},
			Overload: capacity.Use{All: 10, Busy: 10 * c.busy, Generator: .5, Calls: 1000},
		}
		got := e.Failure()
		var excluded []string
		for _, x := range got.Excluded {
			excluded = append(excluded, x.What)
		}
		if !slices.Equal(excluded, c.excluded) || !strings.HasPrefix(got.Evidence[0], c.evidence) {
			t.Errorf("%s: excluded are %q, evidence %q; want %q, %q", name, excluded, got.Evidence, c.excluded, c.evidence)
		}
		if !got.Known() && c.class != signature.Unknown && slices.Contains(got.Evidence, "it is that class") {
			t.Errorf("%s: %q of a class that is withheld", name, got.Evidence)
		}
		if len(met.Excluded) != 2 || met.Excluded[0].What != byTimes {
			t.Errorf("%s: what the search found has changed: %+v", name, met.Excluded)
		}
	}
}

// TestFailuresInACrowd: where what the target had is not known, a failure that only waiting shows is withheld if the
// steps that held show that others kept the processors busy, and is named if they show that they were free.
func TestFailuresInACrowd(t *testing.T) {
	const seconds = 2
	step := func(role capacity.Role, rate, busy float64, passed *bool) capacity.Step {
		return capacity.Step{Role: role, Rate: rate, Attempt: 1, Passed: passed, Segment: load.Segment{
			End: seconds * time.Second, Offered: int(seconds * rate), Effort: &load.Effort{
				Seconds: seconds, CPU: .1, Host: &load.Processors{All: 2 * seconds, Busy: 2 * seconds * busy},
			},
		}}
	}
	for name, x := range map[string]struct {
		low, high, over float64 // how busy the processors were
		class           signature.Class
		named           bool
	}{
		"others all the time":    {low: .97, high: .98, over: .98, class: signature.Collapse},
		"others in the end":      {low: .05, high: .06, over: .98, class: signature.Shedding},
		"its own work":           {low: .2, high: .7, over: .98, class: signature.Collapse, named: true},
		"processors are left":    {low: .05, high: .06, over: .1, class: signature.Collapse, named: true},
		"others, and it refused": {low: .97, high: .98, over: .98, class: signature.TokenBucket, named: true},
	} {
		trace := &capacity.Trace{Steps: []capacity.Step{
			step(capacity.RoleRamp, 40, x.low, new(true)), step(capacity.RoleRamp, 160, x.high, new(true)),
			step(capacity.RoleRamp, 320, x.over, new(false)), step(capacity.RoleOverload, 220, x.over, new(false)),
		}}
		res := &capacity.Result{}
		res.Signature = signature.Verdict{Class: x.class, Met: signature.Failure{
			Class: x.class, Certainty: signature.Likely, Evidence: []string{"calls had waited"},
		}}
		e := EvidenceOf(res, trace, nil, nil)
		if got := e.Failure(); got.Known() != x.named || !x.named && !strings.Contains(got.Evidence[0], "98 % busy") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
