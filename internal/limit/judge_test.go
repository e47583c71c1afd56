package limit

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/signature"
)

// A service is a closed queue: k callers, each of which calls again at once, and n places.
type service struct {
	places  int
	takes   func(*rand.Rand) float64 // s
	overlap float64                  // what each call takes besides, without a place, s
	late    float64                  // mean by which the host delays an answer, s
}

type instants []float64

func (h instants) Len() int           { return len(h) }
func (h instants) Less(i, j int) bool { return h[i] < h[j] }
func (h instants) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *instants) Push(x any)        { *h = append(*h, x.(float64)) }
func (h *instants) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// with returns the experiment with k calls in flight over so many seconds.
func (s service) with(k int, seconds float64, r *rand.Rand) Experiment {
	const parts = 8
	x := Experiment{InFlight: k, Offered: 1e9, Seconds: seconds, Counts: make([]int, parts)}
	callers := &instants{} // when each caller asks again
	for range k {
		heap.Push(callers, r.Float64()*0.01)
	}
	free := make([]float64, s.places) // when each place is free
	const warm = 0.3
	var took, ends []float64
	for {
		at := heap.Pop(callers).(float64)
		if at > seconds+warm {
			break
		}
		i := slices.Index(free, slices.Min(free))
		end := max(at+s.overlap, free[i]) + s.takes(r)
		free[i] = end
		end += s.late * r.ExpFloat64()
		heap.Push(callers, end)
		if part := int((end - warm) / seconds * parts); end >= warm && part < parts {
			x.Counts[part]++
			took, ends = append(took, end-at), append(ends, end)
		}
	}
	slices.Sort(took)
	x.Observe(took, ends)
	if len(took) > 0 {
		x.Service = took[len(took)/2]
	}
	return x
}

func fixed(d float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return d } }
func varied(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean * r.ExpFloat64() }
}

// curve makes the experiments of a search, each with an account by what share of a call's time a processor is busy.
func (s service) experiments(r *rand.Rand, processors int, cpu float64) (out []Experiment) {
	for k := 1; k <= 64; k *= 2 {
		x := s.with(k, 2, r)
		if cpu >= 0 {
			used := cpu * float64(total(x.Counts))
			host := min(1, used/x.Seconds/float64(processors)+0.1)
			x.Account = &Account{Seconds: x.Seconds, CPU: &used, Processors: processors, HostBusy: &host}
		}
		out = append(out, x)
	}
	return out
}

func queueing() signature.Verdict { return signature.Verdict{Class: signature.Queue} }

// TestSimulatedServices asks of services whose limit is known, many times: what is named is right, and what only looks
// alike from outside is not named.
func TestSimulatedServices(t *testing.T) {
	for name, c := range map[string]struct {
		service
		cpu  float64 // processor time of a call, s; -1: no account
		want Kind
		idle float64
		// value is what may be said of the setting besides nothing.
		value string
	}{
		"a lock, idle":               {service{1, fixed(.005), .0002, 0}, .0002, Slots, .0052, "1 in flight"},
		"four workers, idle":         {service{4, varied(.02), .0002, 0}, .0002, Slots, .02, "about 4 in flight"},
		"a pool of eight":            {service{8, fixed(.04), .0002, 0}, .0002, Slots, .04, "about 8 in flight"},
		"side by side, then a lock":  {service{1, fixed(.00625), .02, 0}, .0002, Unknown, .026, ""}, // or a paced limit
		"the same, seen late":        {service{1, fixed(.00625), .02, .003}, .0002, Unknown, .026, ""},
		"a paced limit, slow calls":  {service{1, fixed(.0125), .04, .001}, .0002, Unknown, .041, ""},
		"a paced limit, seen late":   {service{1, fixed(.0125), .015, .001}, .0002, Unknown, .016, ""},
		"a pool of twelve":           {service{12, varied(.1), .001, 0}, .0003, Slots, .1, "about 12 in flight"},
		"two processors":             {service{2, varied(.01), .0001, 0}, .01, Processors, .01, "2 processors"},
		"one thread":                 {service{1, fixed(.005), .0001, 0}, .005, OneThread, .005, ""},
		"a lock, from outside":       {service{1, fixed(.005), .0002, 0}, -1, Unknown, .005, ""},
		"four workers, from outside": {service{4, varied(.02), .0002, 0}, -1, Unknown, .02, ""},
		"a paced limiter":            {service{1, fixed(.00625), 0, 0}, .0001, RateLimit, .001, "about 160/s"},
	} {
		t.Run(name, func(t *testing.T) {
			right, wrong, misvalued := 0, 0, 0
			const runs = 200
			for seed := range uint64(runs) {
				r := rand.New(rand.NewPCG(seed, 1))
				x := c.experiments(r, 2, c.cpu)
				rate, lo, hi := x[len(x)-1].interval()
				v := Judge(Evidence{Rate: rate, Lo: lo, Hi: hi, Idle: c.idle, Signature: queueing(), Experiments: x})
				switch v.Kind { //nolint:exhaustive // all others are wrong
				case c.want:
					right++
					if !isNear(v.Value, c.value) {
						misvalued++
						t.Logf("seed %d: %+v", seed, v)
					}
				case Unknown:
				default:
					wrong++
					t.Logf("seed %d: %+v", seed, v)
				}
			}
			if right < runs*7/10 || wrong > runs/100 || misvalued > runs/10 {
				t.Errorf("%d of %d right, %d wrong, %d with another setting", right, runs, wrong, misvalued)
			}
		})
	}
}

// TestSlowServices: where a call takes so long that few end in an experiment, two rates look the same by chance. The
// target is not said to be full with calls in flight that get far less than it is known to hold, or may get less.
func TestSlowServices(t *testing.T) {
	for name, c := range map[string]service{
		"40 places of 1.5 s": {40, fixed(1.5), 0, 0},
		"20 places of 1 s":   {20, fixed(1), 0, 0},
		"12 places of 1.2 s": {12, fixed(1.2), 0, 0},
		"10 places of 0.8 s": {10, fixed(.8), 0, 0},
		"10, each other":     {10, varied(.8), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			idle := c.takes(rand.New(rand.NewPCG(0, 0)))
			const runs = 300
			wrong := 0
			for seed := range uint64(runs) {
				r := rand.New(rand.NewPCG(seed, 3))
				rate := float64(c.places) / idle
				var x []Experiment
				for k := 1; k <= 4; k *= 2 { // there is no time for more
					x = append(x, c.with(k, 3, r))
				}
				for _, e := range []Evidence{
					{Rate: rate, Lo: 0.6 * rate, Hi: 1.4 * rate}, {AtLeast: 0.9 * rate}, {},
				} {
					e.Idle, e.Experiments, e.Signature = idle, x, queueing()
					v := Judge(e)
					said := strings.Join(v.Evidence, "\n")
					if v.Known() || strings.Contains(said, "it is full with") || strings.Contains(said, "the rate is") {
						wrong++
						t.Logf("seed %d: %s %q", seed, v.Kind, v.Evidence)
					}
					if !strings.Contains(said, "before it was full") && !strings.Contains(said, "too few calls ended") {
						wrong++
						t.Logf("seed %d does not say why: %q", seed, v.Evidence)
					}
				}
			}
			if wrong > 3*runs/100 {
				t.Errorf("%d of %d are wrong", wrong, 3*runs)
			}
		})
	}
}

// TestOneSlowPlace: a single place for calls of a second is named where the search found as much as it does.
func TestOneSlowPlace(t *testing.T) {
	lock := service{1, fixed(1), 0, 0}
	var x []Experiment
	for k := 1; k <= 4; k *= 2 {
		e := lock.with(k, 3, rand.New(rand.NewPCG(1, 3)))
		e.Account = &Account{Seconds: 3, CPU: new(0.001), Processors: 2, HostBusy: new(0.2)}
		x = append(x, e)
	}
	v := Judge(Evidence{Rate: 1, Lo: 0.95, Hi: 1.05, Idle: 1, Experiments: x, Signature: queueing()})
	if v.Kind != Slots || v.Value != "1 in flight" {
		t.Errorf("%+v", v)
	}
	v = Judge(Evidence{Rate: 1, Lo: 0.6, Hi: 1.4, Idle: 1, Experiments: x, Signature: queueing()})
	if v.Known() || !strings.Contains(v.Evidence[0], "too few calls ended") {
		t.Errorf("of a capacity that is less well known: %+v", v)
	}
}

// TestLessThanInTheSearch: a target that lets calls wait at a rate far below one that it held is full, and slower than
// it was: what fills it is not stated, nor that the experiments ended before.
func TestLessThanInTheSearch(t *testing.T) {
	x := []Experiment{counted(1, 10), counted(2, 20), counted(4, 20), counted(8, 20)}
	v := Judge(Evidence{Rate: 100, Lo: 95, Hi: 105, Idle: .01, Experiments: x, Signature: queueing()})
	said := strings.Join(v.Evidence, "\n")
	if v.Known() || strings.Contains(said, "it is full with") || strings.Contains(said, "before it was full") {
		t.Errorf("%s %q", v.Kind, v.Evidence)
	}
}

// isNear reports whether a setting is what it should be, its number within a fifth.
func isNear(got, want string) bool {
	number := regexp.MustCompile(`[0-9.]+`)
	a, _ := strconv.ParseFloat(number.FindString(got), 64)
	b, _ := strconv.ParseFloat(number.FindString(want), 64)
	return number.ReplaceAllString(got, "") == number.ReplaceAllString(want, "") && math.Abs(a-b) <= b/5
}

// counted is an experiment of that rate, as even as counts are.
func counted(k int, rate float64) Experiment {
	x := Experiment{InFlight: k, Seconds: 2, Counts: make([]int, 8), Service: float64(k) / rate}
	for i := range x.Counts {
		x.Counts[i] = int(rate/4 + float64(i%2))
	}
	return x
}

// TestLever moves a quota: a rate that follows shows the limit, one that stays excludes it, and one that rises by less
// shows nothing.
func TestLever(t *testing.T) {
	lever := &Lever{Kind: CPUQuota, From: "100m", To: "200m", Factor: 2}
	throttled := .97
	for name, c := range map[string]struct {
		after     float64
		want      Kind
		certainty signature.Certainty
		came      bool
	}{
		"follows":     {324, CPUQuota, signature.Shown, true},
		"rises a bit": {250, CPUQuota, signature.Likely, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := []Experiment{counted(1, 160), counted(2, 163), counted(4, 162), counted(8, 163)}
			for i := range x {
				x[i].Account = &Account{Seconds: 2, Processors: 2, Throttled: &throttled, Quota: .1}
			}
			moved := counted(8, c.after)
			moved.Lever = lever
			v := Judge(Evidence{
				Rate: 163, Lo: 158, Hi: 168, Signature: signature.Verdict{Class: signature.AcceptQueue, Stuck: 1025}, Accepted: 64,
				Experiments: append(x, moved),
			})
			if v.Kind != c.want || v.Certainty != c.certainty || v.Value != "100m" {
				t.Fatalf("%+v", v)
			}
			if p := v.Prediction; p == nil || p.Tried == nil || p.Tried.Came != c.came || p.Rate < 315 || p.Rate > 335 {
				t.Errorf("prediction %+v", p)
			}
			if len(v.Excluded) == 0 || v.Excluded[0].What != "a limit on connections" {
				t.Errorf("excluded %+v", v.Excluded)
			}
		})
	}
	t.Run("stays", func(t *testing.T) {
		x := []Experiment{counted(1, 160), counted(2, 163), counted(4, 162), counted(4, 163)}
		x[3].Lever = lever
		v := Judge(Evidence{Rate: 163, Lo: 158, Hi: 168, Signature: queueing(), Experiments: x})
		if v.Kind != Unknown || len(v.Excluded) != 1 || v.Excluded[0].What != "a CPU quota" {
			t.Errorf("%+v", v)
		}
	})
	t.Run("unclear", func(t *testing.T) {
		x := []Experiment{counted(1, 160), counted(2, 163), counted(4, 162), counted(4, 300)}
		x[3].Lever = lever
		x[3].Counts = []int{0, 200, 0, 200, 0, 200, 0, 0}
		v := Judge(Evidence{Rate: 163, Lo: 158, Hi: 168, Signature: queueing(), Experiments: x})
		if v.Certainty == signature.Shown {
			t.Errorf("%+v", v)
		}
	})
	t.Run("the generator was late", func(t *testing.T) {
		x := []Experiment{counted(1, 160), counted(2, 163), counted(4, 162), counted(4, 326)}
		x[3].Lever, x[3].Late = lever, "late"
		if v := Judge(Evidence{Rate: 163, Lo: 158, Hi: 168, Signature: queueing(), Experiments: x}); v.Kind != Unknown {
			t.Errorf("%+v", v)
		}
	})
}

// TestLimiters: a limiter that refuses while hardly a call is in flight is shown; one before a service that is at its
// end is not named.
func TestLimiters(t *testing.T) {
	bucket := signature.Verdict{Class: signature.TokenBucket, Evidence: []string{"refused"}}
	one := counted(1, 150)
	one.Service, one.Bad = .001, 140
	v := Judge(Evidence{Rate: 150, Lo: 149, Hi: 151, Signature: bucket, Experiments: []Experiment{one}})
	if v.Kind != RateLimit || v.Certainty != signature.Shown || v.Value != "about 150/s" ||
		!strings.Contains(v.Evidence[0], "85 %") {
		t.Errorf("%+v", v)
	}
	v = Judge(Evidence{Rate: 150, Lo: 149, Hi: 151, Signature: bucket})
	if v.Kind != RateLimit || v.Certainty != signature.Likely {
		t.Errorf("without experiments: %+v", v)
	}
	unnamed := signature.Verdict{Class: signature.Unknown}
	idle := one
	cpu, host := .05, .5
	idle.Account = &Account{Seconds: 2, CPU: &cpu, HostBusy: &host, Processors: 2}
	two := idle
	two.InFlight = 2
	v = Judge(Evidence{Rate: 150, Lo: 149, Hi: 151, Signature: unnamed, Experiments: []Experiment{idle, two}})
	if v.Kind != RateLimit {
		t.Errorf("a failure without a name: %+v", v)
	}
	busy := one
	hog := 1.98
	busy.Account = &Account{Seconds: 2, CPU: &hog, Busiest: &hog, HostBusy: &host, Processors: 2}
	v = Judge(Evidence{Rate: 150, Lo: 149, Hi: 151, Signature: bucket, Experiments: []Experiment{busy}})
	if v.Kind != RateLimit {
		t.Errorf("a thread computes besides: %+v", v)
	}
	bucket.Queued = true
	if v := Judge(Evidence{Rate: 150, Lo: 149, Hi: 151, Signature: bucket}); v.Kind != Unknown {
		t.Errorf("queued: %+v", v)
	}

	places := signature.Verdict{Class: signature.ConcurrencyLimit, InFlight: 8}
	for name, c := range map[string]struct {
		one  float64
		want Kind
	}{"each call takes the same": {20, Slots}, "two fill the service": {80, Unknown}} {
		v := Judge(Evidence{Rate: 160, Lo: 158, Hi: 162, Signature: places, Experiments: []Experiment{counted(1, c.one)}})
		if v.Kind != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestConnections: as many connections as were served are busy all the time, or few do as well.
func TestConnections(t *testing.T) {
	v := signature.Verdict{Class: signature.AcceptQueue, Stuck: 1025}
	slow := service{64, fixed(.4), 0, 0}
	x := slow.experiments(rand.New(rand.NewPCG(1, 1)), 2, .0001)
	got := Judge(Evidence{Rate: 160, Lo: 158, Hi: 162, Idle: .4, Signature: v, Accepted: 64, Experiments: x})
	if got.Kind != Connections || got.Value != "64 at a time" {
		t.Errorf("%+v", got)
	}
}

// TestSpinning: a thread that computes as much for few calls as for many does not set the rate.
func TestSpinning(t *testing.T) {
	for name, c := range map[string]struct {
		alone float64 // processors in use for one call at a time
		want  Kind
	}{"computes always": {.98, Unknown}, "computes for calls": {.3, OneThread}} {
		x := []Experiment{counted(1, 50), counted(2, 100), counted(4, 160), counted(8, 160), counted(16, 160)}
		for i := range x {
			used, host := 2*.98, .6
			if i == 0 {
				used = 2 * c.alone
			}
			x[i].Account = &Account{Seconds: 2, CPU: &used, Busiest: &used, HostBusy: &host, Processors: 2}
		}
		v := Judge(Evidence{Rate: 160, Lo: 158, Hi: 162, Idle: .02, Signature: queueing(), Experiments: x})
		if v.Kind != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestQuotaOrTimer: answers that come in bursts are those of a CPU quota (likely) where calls that come one at a time
// do not wait for the clock. Otherwise a timer makes them as well, and nothing is named.
func TestQuotaOrTimer(t *testing.T) {
	s := signature.Verdict{Class: signature.CPUThrottling, Period: .1, Evidence: []string{"answers come in bursts"}}
	for name, c := range map[string]struct {
		idle, service float64
		experiments   int
		want          Kind
	}{
		"neither waits":        {.004, .005, 3, CPUQuota},
		"a rare one waits":     {.05, .005, 3, Unknown},
		"one at a time waits":  {.004, .1, 3, Unknown},
		"nothing was tried":    {.004, .005, 0, Unknown},
		"no response is known": {0, .005, 3, Unknown},
	} {
		x := []Experiment{counted(1, 100), counted(2, 100), counted(4, 100)}
		x[0].Service = c.service
		v := Judge(Evidence{Rate: 100, Lo: 98, Hi: 102, Idle: c.idle, Signature: s, Experiments: x[:c.experiments]})
		if v.Kind != c.want || v.Kind == Unknown && !strings.Contains(v.Evidence[0], "look alike") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestQuotaOnBusyHost: one call in flight reaches the rate and uses the quota up; with more, other work on the host
// gets the time.
func TestQuotaOnBusyHost(t *testing.T) {
	for name, c := range map[string]struct {
		first float64 // in flight on the plateau with the quota used up
		want  Kind
	}{"on the plateau": {100, CPUQuota}, "below it": {50, Unknown}} {
		x := []Experiment{counted(1, c.first), counted(2, 100), counted(4, 100), counted(8, 100)}
		for i := range x {
			used, host, throttled := .8, 1., .46
			if i == 0 {
				used, throttled = .9, .75
			}
			x[i].Account = &Account{
				Seconds: 2, CPU: &used, HostBusy: &host, Processors: 2, Throttled: &throttled, Quota: .5,
			}
		}
		v := Judge(Evidence{Rate: 100, Lo: 98, Hi: 102, Signature: queueing(), Experiments: x})
		if v.Kind != c.want || v.Kind == CPUQuota && v.Value != "500m" {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// FuzzJudge: no evidence makes it fail, or state a number that is none.
func FuzzJudge(f *testing.F) {
	f.Add(1, 2.0, 10, 3, 0.01, 0.5)
	f.Add(0, 0.0, 0, 0, 0.0, 0.0)
	f.Fuzz(func(t *testing.T, k int, seconds float64, a, b int, service, share float64) {
		x := Experiment{InFlight: k, Seconds: seconds, Counts: []int{a, b}, Service: service, Transfer: share * service}
		x.Account = &Account{
			Seconds: seconds, CPU: &share, Busiest: &share, HostBusy: &share, Throttled: &share, Processors: k,
		}
		y := x
		y.InFlight, y.Lever = 2*k, &Lever{Kind: CPUQuota, Factor: share}
		for _, c := range signature.Classes() {
			v := Judge(Evidence{
				Rate: service, Signature: signature.Verdict{Class: c, InFlight: k}, Idle: share, Accepted: a,
				Experiments: []Experiment{x, x, y},
			})
			if v.Kind == Unknown && v.Certainty != signature.NotKnown || v.Kind == "" {
				t.Errorf("%+v", v)
			}
		}
	})
}

// TestHangingCalls: a limit that leaves calls without an answer soon has none of the calls in flight end. What ended
// before is no rate, from which nothing is predicted.
func TestHangingCalls(t *testing.T) {
	hung := func(k, sources int, counts ...int) Experiment {
		return Experiment{InFlight: k, Offered: 400, Seconds: 1, Counts: counts, Service: .003, Sources: sources}
	}
	made := []Experiment{
		hung(1, 0, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0), hung(4, 0, 16, 6, 0, 0, 0, 0, 0, 0, 0, 0),
		hung(4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
	}
	hang := signature.Verdict{Class: signature.QuotaHang, Evidence: []string{"calls were left hanging"}}
	v := Judge(Evidence{Signature: hang, Idle: .003, Experiments: made})
	if v.Kind != RateLimit || v.Value != "" || v.Prediction != nil {
		t.Errorf("no capacity was found: %+v, prediction %+v", v, v.Prediction)
	}
	if said := strings.Join(v.Evidence, "\n"); strings.Contains(said, "as those from one") ||
		!strings.Contains(said, "does not tell whether each address has a limit of its own") {
		t.Errorf("of source addresses it says %q", said)
	}
	v = Judge(Evidence{Rate: 100, Lo: 98, Hi: 102, Signature: hang, Idle: .003, Experiments: made})
	if p := v.Prediction; v.Value != "about 100/s" || p == nil || p.Rate != 200 || p.Lo < 190 || p.Hi > 210 {
		t.Errorf("a capacity was found: %+v, prediction %+v", v, p)
	}
}

// TestHangs: calls hang where none end any more, and not where some end now and then, or are refused.
func TestHangs(t *testing.T) {
	for name, c := range map[string]struct {
		x    Experiment
		want bool
	}{
		"hung soon":      {Experiment{Seconds: 1, Counts: []int{16, 1, 0, 0, 0, 0, 0, 0, 0, 0}, Service: .003}, true},
		"never answered": {Experiment{Seconds: 1, Counts: []int{0, 0, 0, 0}}, true},
		"slow calls":     {Experiment{Seconds: 3, Counts: []int{0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, Service: 1.5}, false},
		"refused":        {Experiment{Seconds: 1, Counts: []int{9, 1, 0, 0, 0, 0}, Bad: 90, Service: .003}, false},
		"a pause":        {Experiment{Seconds: 1, Counts: []int{5, 5, 5, 0, 0, 0, 0, 1}, Service: .003}, false},
		"nothing":        {Experiment{}, false},
	} {
		if got := c.x.hangs(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestBandwidth: answers whose time passes after the first byte are short of bandwidth only if they have so many bytes
// that a limit on them can be. A small one waits for something else after its head: for a place, if the target idles.
func TestBandwidth(t *testing.T) {
	for name, c := range map[string]struct {
		bytes float64
		want  Kind
	}{
		"long answers":      {200_000, Bandwidth},
		"of a size unknown": {0, Bandwidth},
		"one packet":        {140, Slots},
		"a few bytes more":  {1600, Unknown}, // 80 kB/s
		"over a slow line":  {6000, Bandwidth},
	} {
		line := service{1, fixed(.02), .0002, 0}
		var x []Experiment
		for k := 1; k <= 4; k *= 2 {
			e := line.with(k, 2, rand.New(rand.NewPCG(1, 5)))
			e.Transfer, e.Bytes = 0.99*e.Service, c.bytes
			e.Account = &Account{Seconds: 2, CPU: new(0.01), Processors: 2, HostBusy: new(0.2)}
			x = append(x, e)
		}
		v := Judge(Evidence{Rate: 50, Lo: 49, Hi: 51, Idle: .02, Signature: queueing(), Experiments: x})
		excluded := slices.ContainsFunc(v.Excluded, func(e signature.Exclusion) bool { return e.What == "bandwidth" })
		if v.Kind != c.want || excluded != (c.want == Slots) {
			t.Errorf("%s: %s %q, excluded %+v", name, v.Kind, v.Evidence, v.Excluded)
		}
		for i := range x {
			x[i].Account = nil
		}
		v = Judge(Evidence{Rate: 50, Lo: 49, Hi: 51, Idle: .02, Signature: queueing(), Experiments: x})
		if c.want == Slots && (v.Known() || !strings.Contains(v.Evidence[0], "a lock, or a limit that lets calls wait")) {
			t.Errorf("%s, from outside: %s %q", name, v.Kind, v.Evidence)
		}
	}
}

// TestPredictions: twice a limit is computed from the capacity with its interval, and of processors that others use,
// too, nothing is predicted.
func TestPredictions(t *testing.T) {
	bucket := signature.Verdict{Class: signature.TokenBucket}
	saved := counted(1, 130) // from an allowance
	v := Judge(Evidence{Rate: 100, Lo: 98, Hi: 102, Signature: bucket, Experiments: []Experiment{saved}})
	if p := v.Prediction; p == nil || p.Rate != 200 || p.Lo > 196 || p.Hi < 204 {
		t.Errorf("%+v", p)
	}
	cpu, host := 1.2, 0.99
	busy := []Experiment{counted(1, 100), counted(2, 110), counted(4, 110)}
	for i := range busy {
		busy[i].Account = &Account{Seconds: 1, CPU: &cpu, HostBusy: &host, Processors: 2}
	}
	v = Judge(Evidence{Rate: 110, Lo: 105, Hi: 115, Signature: queueing(), Experiments: busy})
	if v.Kind != Processors || v.Prediction != nil {
		t.Errorf("%+v", v)
	}
}

// TestFullWith: what fills a target is not said to be one call where more in flight did more.
func TestFullWith(t *testing.T) {
	one := Experiment{InFlight: 1, Seconds: 1, Counts: []int{4, 3, 4, 4, 4, 5, 4, 2, 4, 5}, Service: .0224}
	four := Experiment{InFlight: 4, Seconds: 1, Counts: []int{6, 6, 5, 6, 5, 6, 6, 6, 6, 4}, Service: .07}
	more := four
	more.InFlight = 8
	two := one
	two.InFlight, two.Service = 2, .05
	for name, x := range map[string]struct {
		made []Experiment
		want string
	}{
		"more than one":  {[]Experiment{one, four, more}, "it is full with more than 1 and at most 4 in flight:"},
		"not than noise": {[]Experiment{one, two}, "it is full with 1 in flight:"},
	} {
		v := Judge(Evidence{Rate: 60, Lo: 55, Hi: 65, Idle: .022, Signature: queueing(), Experiments: x.made})
		if v.Kind != Unknown || !strings.HasPrefix(v.Evidence[0], x.want) {
			t.Errorf("%s: %+v, want %q", name, v, x.want)
		}
	}
}

// TestWhatIsSaidWithoutALimit: experiments that were spoiled were made, and what an observation contradicts is not
// among what may be full.
func TestWhatIsSaidWithoutALimit(t *testing.T) {
	full := []Experiment{counted(1, 50), counted(2, 100), counted(4, 200), counted(8, 200), counted(16, 200)}
	idle := slices.Clone(full)
	for i := range full {
		full[i].Service = max(0.02, 0.005*float64(full[i].InFlight))
		idle[i] = full[i]
		idle[i].Account = &Account{Seconds: 2, CPU: new(0.05), HostBusy: new(0.2), Processors: 2}
	}
	late, hung := counted(1, 29), Experiment{InFlight: 4, Seconds: 1, Counts: []int{1, 0, 0, 0, 0, 0}, Service: 0.003}
	late.Late = "it had no processor for 26 % of the time"
	const alike = "it is full with about 4 in flight: "
	for name, c := range map[string]struct {
		made []Experiment
		want string
	}{
		"none":                       {nil, "no experiment was made that would tell"},
		"late":                       {[]Experiment{late, late}, "of 2 experiments, the generator spoiled 2: it had"},
		"hung":                       {[]Experiment{hung}, "of 1 experiment, calls hung in 1"},
		"full, from outside":         {full, alike + "processors, workers, a pool, a lock, bandwidth, or a limit"},
		"full, with idle processors": {idle, alike + "workers, a pool, a lock, bandwidth, or a limit"},
	} {
		v := Judge(Evidence{Rate: 200, Lo: 195, Hi: 205, Idle: .02, Signature: queueing(), Experiments: c.made})
		if v.Kind != Unknown || !strings.HasPrefix(v.Evidence[0], c.want) {
			t.Errorf("%s: %s %q", name, v.Kind, v.Evidence)
		}
	}
}

// TestFarBeyondTheCapacity: a target that does far more on few connections than the rate at which it breaks on many is
// not "full" with so few, whatever it uses up then. Where calls hang on connections that never carry an answer, and the
// others are as fast as ever, its connections are limited.
func TestFarBeyondTheCapacity(t *testing.T) {
	plateau := func(rate float64) []Experiment {
		out := []Experiment{counted(1, rate), counted(2, rate), counted(4, rate)}
		for i := range out {
			out[i].Service = 0.0002 * float64(out[i].InFlight)
		}
		return out
	}
	computes := plateau(4900)
	for i := range computes {
		computes[i].Account = &Account{Seconds: 1, CPU: new(1.9), HostBusy: new(0.99), Processors: 2}
	}
	refuses := plateau(4900)
	for i := range refuses {
		refuses[i].Bad = 4900
	}
	hung := Hung{Rate: 264, Calls: 467, Unserved: 460, Service: 0.0002}
	for name, c := range map[string]struct {
		made         []Experiment
		hung         Hung
		lo, rate, hi float64
		atMost       float64
		want         Kind
		says, not    string
	}{
		"new connections hang": {
			plateau(4900), hung, 180, 235, 277, 0, Connections,
			"with 1 in flight at most it does 4902/s, 21 times the capacity", "full",
		},
		"it computes": {computes, hung, 180, 235, 277, 0, Connections, "460 of 467 calls", "full"},
		"no capacity": {plateau(4900), hung, 0, 0, 0, 264, Connections, "times the rate at which it broke", "full"},
		"all hang": {
			plateau(4900),
			Hung{264, 467, 90, 0.0002},
			180, 235, 277, 0, Unknown,
			"it broke by how many calls", "full",
		},
		"few hang": {plateau(4900), Hung{264, 9, 9, 0.0002}, 180, 235, 277, 0, Unknown, "it broke by how many", "full"},
		"all wait": {plateau(4900), Hung{264, 467, 460, 3}, 180, 235, 277, 0, Unknown, "it broke by how many", "full"},
		"refusals": {refuses, hung, 180, 235, 277, 0, Unknown, "fits no single limit", "times the capacity"},
		"the same": {plateau(250), hung, 180, 235, 277, 0, Unknown, "the rate is 250/s with 1", "times the capacity"},
	} {
		v := Judge(Evidence{
			Rate: c.rate, Lo: c.lo, Hi: c.hi, AtMost: c.atMost, Idle: 0.00025, Hung: c.hung, Experiments: c.made,
			Signature: signature.Verdict{Class: signature.Unknown},
		})
		said := strings.Join(v.Evidence, "\n")
		if v.Kind != c.want || !strings.Contains(said, c.says) || strings.Contains(said, c.not) || v.Prediction != nil {
			t.Errorf("%s: %s %q, prediction %+v", name, v.Kind, v.Evidence, v.Prediction)
		}
	}
}
