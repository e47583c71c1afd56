package doctor

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"tare/internal/stat"
)

// RunLength is the length of the run for which noise floors are stated.
const RunLength = 2 * time.Minute

const (
	floorLevel = 0.95
	// blocks is into how many blocks of neighbouring pairs a comparison is cut; with fewer than fewBlocks nothing is said.
	blocks    = 20
	fewBlocks = 5
)

// Noise is what a comparison of equals found: work that is the same in both arms, in pairs, each in random order.
type Noise struct {
	Seed       uint64  `json:"seed"`
	Seconds    float64 `json:"seconds"`     // of the comparison
	RunSeconds float64 `json:"run_seconds"` // of the run for which floors are stated
	// Wall and CPU are the largest floors of all work, as ratios: 0.03 is 3 %. Absent where some work has none.
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

// Floor is the smallest difference that can be seen, by one measure.
type Floor struct {
	// Ratio is exp(HalfWidth × √(Work.Seconds ÷ Noise.RunSeconds)) − 1: the half width of the interval shrinks with the root of the time.
	// In a run of that length a difference of this size excludes 0 every other time, and one 1.4 times as large four times of five.
	Ratio float64 `json:"ratio"`
	// HalfWidth is that of Student's 95 % interval of the mean of ln(B ÷ A), by Blocks, where B and A are equal.
	HalfWidth float64 `json:"half_width"`
	Blocks    int     `json:"blocks"`
	// Difference is what the arms differed by, exp(mean) − 1. Differs: by more than chance explains, at 5 % over all measures together.
	Difference float64 `json:"difference"`
	Differs    bool    `json:"differs"`
}

// effort is what one sample cost, in seconds for each operation.
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

// interleave repeats all work in pairs until length has passed, in an order drawn from rng: of the work in each round, and within each pair.
// Work that fails is left out from then on. now is a monotonic clock in nanoseconds.
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

// runPair runs arm first and then the other.
func runPair(ctx context.Context, m micro, first int) (pair [2]effort, err error) {
	for _, arm := range []int{first, 1 - first} {
		if pair[arm], err = m.run(ctx); err != nil {
			return pair, err
		}
	}
	return pair, nil
}

// floorOf computes the floor from pairs that took spent together. tests is of how many measures this is one. It is nil for too few pairs.
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

// logRatios is the mean of ln(B ÷ A) over the pairs of each block of neighbouring pairs. Blocks, not pairs, are what may be called
// independent: what disturbs a host lasts longer than one pair. Means of logarithms, not logarithms of sums: in a sum over a few seconds one
// stall of 100 ms outweighs everything else, so that its spread in a long run could not be foretold from a short one.
func logRatios(pairs [][2]effort, measure func(effort) float64) []float64 {
	n := min(blocks, len(pairs))
	out := make([]float64, 0, n)
	for k := range n {
		block := pairs[k*len(pairs)/n : (k+1)*len(pairs)/n]
		sum := 0.0
		for _, p := range block {
			a, b := measure(p[0]), measure(p[1])
			if !(a > 0) || !(b > 0) {
				return nil // a clock that does not see work this small
			}
			sum += math.Log(b / a)
		}
		out = append(out, sum/float64(len(block)))
	}
	return out
}

// noise compares equals, and measures the generator's lateness with the same server.
func (x *examiner) noise(ctx context.Context, d *Diagnosis) {
	server, err := serve(ctx)
	if err != nil {
		d.add(Check{Group: groupGenerator, Name: "lateness", State: Broken, Found: "no server could be started on loopback", Cause: err.Error()})
		return
	}
	defer server.close()
	late, check := lateness(ctx, server.addr, x.part(4, 2*time.Second))
	d.Lateness = late
	d.add(check)
	stream, err := openStream(ctx, server.addr)
	if err != nil {
		return // lateness said so
	}
	defer stream.Close() //nolint:errcheck // nothing to lose
	work := []micro{{"CPU-bound loop", newLoop().run}, {"HTTP exchange on loopback", exchange{stream}.run}, {"start of a process", x.fork}}
	began := monotonic()
	found := interleave(ctx, work, x.Time, rand.New(rand.NewPCG(x.Seed, 2)), monotonic)
	d.Noise = sumUp(work, found)
	d.Noise.Seed, d.Noise.Seconds = x.Seed, time.Duration(monotonic()-began).Seconds()
}

// Rehearse compares a loop and the start of a process with themselves as a comparison with batches does: in blocks of so many rounds, with the
// median of the rounds as a block's value. It returns the standard deviation of a block's log ratio of CPU time, the larger of the two; NaN when
// there was no time for at least four blocks. self is this program's file.
func Rehearse(ctx context.Context, self string, rounds int, length time.Duration) (float64, error) {
	x := &examiner{Options: Options{Self: self, Time: length}}
	work := []micro{{"CPU-bound loop", newLoop().run}, {"start of a process", x.fork}}
	worst := 0.0
	for _, s := range interleave(ctx, work, length, rand.New(rand.NewPCG(1, 2)), monotonic) {
		if s.err != nil {
			return math.NaN(), s.err
		}
		worst = max(worst, blockNoise(s.pairs, rounds)) // NaN stays NaN
	}
	return worst, ctx.Err()
}

// blockNoise is the standard deviation of ln(median B ÷ median A) over blocks of so many pairs.
func blockNoise(pairs [][2]effort, rounds int) float64 {
	const fewest = 4
	rounds = max(1, min(rounds, len(pairs)/fewest))
	var ratios []float64
	for ; len(pairs) >= rounds; pairs = pairs[rounds:] {
		var arms [2][]float64
		for _, p := range pairs[:rounds] {
			arms[0], arms[1] = append(arms[0], p[0].cpu), append(arms[1], p[1].cpu)
		}
		ratios = append(ratios, math.Log(stat.Quantile(arms[1], 0.5)/stat.Quantile(arms[0], 0.5)))
	}
	if len(ratios) < fewest {
		return math.NaN()
	}
	return math.Sqrt(stat.Variance(ratios))
}

func sumUp(work []micro, found []series) *Noise {
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

// largest is the largest floor; nil if one is missing, since that could be larger.
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
