package doctor

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"tare/internal/stat"
)

// RunLength is the length of the run to which noise floors refer.
const RunLength = 2 * time.Minute

const (
	floorLevel = 0.95
	// blocks is the number of blocks of neighbouring pairs in a comparison; below fewBlocks there is no result.
	blocks    = 20
	fewBlocks = 5
)

// Noise is the result of an A/A comparison: both arms do the same work, in pairs, each in random order.
type Noise struct {
	Seed       uint64  `json:"seed"`
	Seconds    float64 `json:"seconds"`     // of the comparison
	RunSeconds float64 `json:"run_seconds"` // of the run to which the floors refer
	// Wall and CPU are the largest floors of all kinds of work, as ratios: 0.03 is 3 %. Absent if some kind has no floor.
	Wall *float64 `json:"wall,omitempty"`
	CPU  *float64 `json:"cpu,omitempty"`
	Work []Work   `json:"work"`
}

// Work is one kind of work and its noise.
type Work struct {
	Name    string  `json:"name"`
	Pairs   int     `json:"pairs"`
	Seconds float64 `json:"seconds"` // that its pairs took
	Wall    *Floor  `json:"wall,omitempty"`
	CPU     *Floor  `json:"cpu,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// Floor is the smallest visible difference in one measure.
type Floor struct {
	// Ratio is exp(HalfWidth × √(Work.Seconds ÷ Noise.RunSeconds)) − 1: the half width of the interval shrinks with the
	// square root of the time. A run of that length detects a difference of this size (its interval excludes 0) every
	// other time, and one 1.4 times as large four times in five.
	Ratio float64 `json:"ratio"`
	// HalfWidth is half the width of Student's 95 % interval of the mean of ln(B ÷ A), over Blocks, where B and A do the
	// same work.
	HalfWidth float64 `json:"half_width"`
	Blocks    int     `json:"blocks"`
	// Difference is the measured difference of the arms, exp(mean) − 1. Differs: it is significant at 5 % over all
	// measures together.
	Difference float64 `json:"difference"`
	Differs    bool    `json:"differs"`
}

// effort is the cost of one sample, in seconds for each operation.
type effort struct{ wall, cpu float64 }

// micro is one kind of work, small enough to be repeated hundreds of times.
type micro struct {
	name string
	run  func(context.Context) (effort, error)
}

// series are the pairs of one kind of work.
type series struct {
	pairs [][2]effort
	spent time.Duration
	err   error
}

// interleave repeats all work in pairs until length has passed. It draws from rng the order of the work in each round
// and of the arms in each pair. Work that fails is left out from then on. now is a monotonic clock in nanoseconds.
func interleave(ctx context.Context, work []micro, length time.Duration, rng *rand.Rand, now func() int64) []series {
	out := make([]series, len(work))
	for end := now() + int64(length); now() < end && ctx.Err() == nil; {
		idle := true
		for _, k := range rng.Perm(len(work)) {
			s := &out[k]
			if s.err != nil {
				continue
			}
			idle = false
			from := now()
			if pair, err := runPair(ctx, work[k], rng.IntN(2)); err != nil {
				s.err = err
			} else {
				s.pairs = append(s.pairs, pair)
				s.spent += time.Duration(now() - from)
			}
		}
		if idle {
			break
		}
	}
	return out
}

// runPair runs arm first, then the other.
func runPair(ctx context.Context, m micro, first int) (pair [2]effort, err error) {
	for _, arm := range []int{first, 1 - first} {
		if pair[arm], err = m.run(ctx); err != nil {
			return pair, err
		}
	}
	return pair, nil
}

// floorOf computes the floor from pairs that together took spent, for one of several measures (tests). It returns nil
// if there are too few pairs.
func floorOf(pairs [][2]effort, measure func(effort) float64, spent time.Duration, tests int) *Floor {
	ratios := logRatios(pairs, measure)
	if len(ratios) < fewBlocks {
		return nil
	}
	e, ok := stat.MeanInterval(ratios, floorLevel)
	strict, ok2 := stat.MeanInterval(ratios, 1-(1-floorLevel)/float64(max(tests, 1)))
	if !ok || !ok2 {
		return nil
	}
	half := (e.Hi - e.Lo) / 2
	return &Floor{
		Ratio: math.Expm1(half * math.Sqrt(spent.Seconds()/RunLength.Seconds())), HalfWidth: half, Blocks: e.N,
		Difference: math.Expm1(e.Value), Differs: strict.Lo > 0 || strict.Hi < 0,
	}
}

// logRatios returns the mean of ln(B ÷ A) over the pairs of each block of neighbouring pairs. Blocks, not pairs, count
// as independent, since disturbances of a host last longer than one pair. It averages logarithms of pairs rather than
// taking the logarithm of sums: in a sum over a few seconds one stall of 100 ms dominates, so a short run could not
// predict the spread of a long one.
func logRatios(pairs [][2]effort, measure func(effort) float64) []float64 {
	n := min(blocks, len(pairs))
	out := make([]float64, 0, n)
	for k := range n {
		block := pairs[k*len(pairs)/n : (k+1)*len(pairs)/n]
		sum := 0.0
		for _, p := range block {
			a, b := measure(p[0]), measure(p[1])
			if !(a > 0) || !(b > 0) {
				return nil // the clock is too coarse for this work
			}
			sum += math.Log(b / a)
		}
		out = append(out, sum/float64(len(block)))
	}
	return out
}

// noise runs the A/A comparison, and measures the generator's lateness with the same server.
func (x *examiner) noise(ctx context.Context, d *Diagnosis) {
	server, err := serve(ctx)
	if err != nil {
		d.add(Check{
			Group: groupGenerator, Name: "lateness", State: Broken, Found: "no server could be started on loopback",
			Cause: err.Error(),
		})
		return
	}
	defer server.close()
	late, check := lateness(ctx, server.addr, x.timeShare(4, 2*time.Second))
	d.Lateness = late
	d.add(check)
	stream, err := openStream(ctx, server.addr)
	if err != nil {
		return // lateness has reported it
	}
	defer stream.Close() //nolint:errcheck // nothing to lose
	work := []micro{
		{"CPU-bound loop", newLoop().run},
		{"HTTP exchange on loopback", exchange{stream}.run},
		{"start of a process", x.fork},
	}
	began := monotonic()
	found := interleave(ctx, work, x.Time, rand.New(rand.NewPCG(x.Seed, 2)), monotonic)
	d.Noise = summarize(work, found)
	d.Noise.Seed, d.Noise.Seconds = x.Seed, time.Duration(monotonic()-began).Seconds()
}

// Rehearse runs an A/A comparison of a loop and of starting a process, as a comparison with batches does: in blocks of
// so many rounds, with the median of the rounds as a block's value. It returns the standard deviation of a block's log
// ratio of CPU time, the larger of the two. It takes length, and on a busy host up to five times that; where that
// allows fewer than four blocks, it returns NaN. self is this program's file.
func Rehearse(ctx context.Context, self string, rounds int, length time.Duration) (float64, error) {
	x := &examiner{Options: Options{Self: self, Time: length}}
	work := []micro{{"CPU-bound loop", newLoop().run}, {"start of a process", x.fork}}
	pairs := make([][][2]effort, len(work))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		enough := true
		for k, s := range interleave(ctx, work, length, rng, monotonic) {
			if s.err != nil {
				return math.NaN(), s.err
			}
			pairs[k] = append(pairs[k], s.pairs...)
			enough = enough && len(pairs[k]) >= fewestBlocks
		}
		if enough || ctx.Err() != nil {
			break
		}
	}
	worst := 0.0
	for _, p := range pairs {
		worst = max(worst, blockNoise(p, rounds)) // NaN stays NaN
	}
	return worst, ctx.Err()
}

// fewestBlocks are those that a rehearsal needs.
const fewestBlocks = 4

// blockNoise returns the standard deviation of ln(median B ÷ median A) over blocks of so many pairs.
func blockNoise(pairs [][2]effort, rounds int) float64 {
	rounds = max(1, min(rounds, len(pairs)/fewestBlocks))
	var ratios []float64
	for ; len(pairs) >= rounds; pairs = pairs[rounds:] {
		var arms [2][]float64
		for _, p := range pairs[:rounds] {
			arms[0], arms[1] = append(arms[0], p[0].cpu), append(arms[1], p[1].cpu)
		}
		ratios = append(ratios, math.Log(stat.Quantile(arms[1], 0.5)/stat.Quantile(arms[0], 0.5)))
	}
	if len(ratios) < fewestBlocks {
		return math.NaN()
	}
	return math.Sqrt(stat.Variance(ratios))
}

func summarize(work []micro, found []series) *Noise {
	n := &Noise{RunSeconds: RunLength.Seconds()}
	for k, s := range found {
		w := Work{Name: work[k].name, Pairs: len(s.pairs), Seconds: s.spent.Seconds()}
		if s.err != nil {
			w.Error = s.err.Error()
		}
		w.Wall = floorOf(s.pairs, func(e effort) float64 { return e.wall }, s.spent, 2*len(work))
		w.CPU = floorOf(s.pairs, func(e effort) float64 { return e.cpu }, s.spent, 2*len(work))
		n.Work = append(n.Work, w)
	}
	n.Wall = largest(n.Work, func(w *Work) *Floor { return w.Wall })
	n.CPU = largest(n.Work, func(w *Work) *Floor { return w.CPU })
	return n
}

// largest returns the largest floor, or nil if one is missing, since that could be larger.
func largest(work []Work, floor func(*Work) *Floor) *float64 {
	var most *float64
	for i := range work {
		f := floor(&work[i])
		if f == nil {
			return nil
		}
		if most == nil || f.Ratio > *most {
			most = &f.Ratio
		}
	}
	return most
}
