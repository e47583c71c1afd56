package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tare/internal/stat"
)

// Looks are the numbers of blocks at which a comparison may stop.
func Looks() []int { return []int{10, 20, 40, 80, 160} }

// Host is how the logarithm of a trial's cost varies on a machine when nothing was changed.
type Host struct {
	Name string
	// Series is the cost of n trials that follow each other.
	Series func(r *rand.Rand, n int) []float64
}

// Hosts are a quiet one, one with heavy tails, one whose speed wanders, and one that does both.
func Hosts() []Host {
	series := func(noise func(*rand.Rand) float64, wander float64) func(*rand.Rand, int) []float64 {
		return func(r *rand.Rand, n int) []float64 {
			const memory = 0.95
			x, speed := make([]float64, n), r.NormFloat64()
			for i := range x {
				speed = memory*speed + math.Sqrt(1-memory*memory)*r.NormFloat64()
				x[i] = 0.02*noise(r) + wander*speed
			}
			return x
		}
	}
	normal := func(r *rand.Rand) float64 { return r.NormFloat64() }
	heavy := student
	return []Host{
		{"normal, 2 %", series(normal, 0)},
		{"heavy tails, 2 %", series(heavy, 0)},
		{"speed wanders by 3 %", series(normal, 0.03)},
		{"heavy tails, speed wanders by 10 %", series(heavy, 0.1)},
	}
}

// False is how often designs find a difference between two equal arms.
type False struct {
	Host string
	// Looks: five looks at an error of stat.LookAlpha each, Hodges–Lehmann over randomised blocks. Naive5: five looks,
	// 5 % at each. EveryBlock: Student's t after every block from 10 to 160, 5 % at each.
	Looks, Naive5, EveryBlock float64
	// Sequential: all runs of one arm before the other's, Mann–Whitney at 5 %, for 10, 40 and 160 runs of each.
	Sequential [3]float64
}

// FalsePositives counts them on one host.
func FalsePositives(ctx context.Context, s Study, h Host) (False, error) {
	type found struct {
		looks, naive, every bool
		sequential          [3]bool
	}
	runs, err := repeat(ctx, s, "looks "+h.Name, func(r *rand.Rand) found {
		var f found
		d := blocked(r, h.Series(r, 320))
		for _, n := range Looks() {
			p := pValue(stat.HodgesLehmann(d[:n], 0.95))
			f.looks, f.naive = f.looks || p <= stat.LookAlpha, f.naive || p <= 0.05
		}
		for n := 10; n <= len(d) && !f.every; n++ {
			e, _ := stat.MeanInterval(d[:n], 0.95)
			f.every = e.Lo > 0 || e.Hi < 0
		}
		for i, n := range []int{10, 40, 160} {
			x := h.Series(r, 2*n)
			f.sequential[i] = pValue(stat.HodgesLehmannShift(x[:n], x[n:], 0.95)) <= 0.05
		}
		return f
	})
	f := False{
		Host:       h.Name,
		Looks:      share(runs, func(f found) bool { return f.looks }),
		Naive5:     share(runs, func(f found) bool { return f.naive }),
		EveryBlock: share(runs, func(f found) bool { return f.every }),
	}
	for i := range f.Sequential {
		f.Sequential[i] = share(runs, func(f found) bool { return f.sequential[i] })
	}
	return f, err
}

// blocked pairs consecutive trials of a series in random order: block differences of two equal arms.
func blocked(r *rand.Rand, x []float64) []float64 {
	d := make([]float64, len(x)/2)
	for b := range d {
		d[b] = x[2*b+1] - x[2*b]
		if r.IntN(2) == 0 {
			d[b] = -d[b]
		}
	}
	return d
}

// pValue is a test's p-value; data on which it fails would show as a false positive.
func pValue(t stat.Test, err error) float64 {
	if err != nil {
		return 0
	}
	return t.P
}

// FalseTable is the false positives on all hosts.
func FalseTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "False positives between equal arms",
		Note: "The share of comparisons of an arm with itself that find a difference, at any look. Interleaved: " +
			"randomised blocks; " +
			"sequential: all runs of one arm, then all of the other.",
		Columns: []string{
			"host", "**five looks, α 0.013**", "five looks, 5 % each", "every block 10–160, 5 % each",
			"sequential Mann–Whitney 5 %, 10 runs", "40 runs", "160 runs",
		},
	}
	for _, h := range Hosts() {
		f, err := FalsePositives(ctx, s, h)
		if err != nil {
			return t, err
		}
		row := []string{f.Host, percent(f.Looks), percent(f.Naive5), percent(f.EveryBlock)}
		for _, v := range f.Sequential {
			row = append(row, percent(v))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// Noise is a distribution of a block's difference with standard deviation 1.
type Noise struct {
	Name string
	Draw func(r *rand.Rand) float64
}

// Noises are normal, heavy-tailed, and one that is an outlier in one block of ten.
func Noises() []Noise {
	return []Noise{
		{"normal", func(r *rand.Rand) float64 { return r.NormFloat64() }},
		{"Student t, 3 degrees of freedom", student},
		{"one block in ten 5 times as noisy", func(r *rand.Rand) float64 {
			scale := 1 / math.Sqrt(0.9+0.1*25)
			if r.Float64() < 0.1 {
				scale *= 5
			}
			return scale * r.NormFloat64()
		}},
	}
}

// differences is n blocks' differences around centre.
func (n Noise) differences(r *rand.Rand, blocks int, centre, sd float64) []float64 {
	d := make([]float64, blocks)
	for i := range d {
		d[i] = centre + sd*n.Draw(r)
	}
	return d
}

// FalseEquivalence is how often the interval at 1 − stat.LookAlpha calls equivalent what differs by exactly the margin:
// at a look of so many blocks, and at any of the five.
func FalseEquivalence(ctx context.Context, s Study, noise Noise) (at []float64, overall float64, err error) {
	m := math.Log1p(margin)
	runs, err := repeat(ctx, s, "tost "+noise.Name, func(r *rand.Rand) []bool {
		d := noise.differences(r, 160, m, 0.01)
		out := make([]bool, len(Looks()))
		for i, n := range Looks() {
			t, err := stat.HodgesLehmann(d[:n], 1-stat.LookAlpha)
			out[i] = err != nil || stat.Equivalent(t.Estimate, -m, m)
		}
		return out
	})
	for i := range Looks() {
		at = append(at, share(runs, func(o []bool) bool { return o[i] }))
	}
	return at, share(runs, func(o []bool) bool { return o[0] || o[1] || o[2] || o[3] || o[4] }), err
}

// EquivalenceTable is false equivalence under all noises.
func EquivalenceTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "False equivalence at the margin",
		Note: fmt.Sprintf("The true effect is exactly the margin (2 %%), block noise 1 %%; the share called equivalent. "+
			"Each look promises at most %.2f %%.", 100*stat.LookAlpha/2),
		Columns: []string{"noise", "10 blocks", "20", "40", "80", "160", "any look"},
	}
	for _, n := range Noises() {
		at, overall, err := FalseEquivalence(ctx, s, n)
		if err != nil {
			return t, err
		}
		row := []string{n.Name}
		for _, v := range append(at, overall) {
			row = append(row, percent(v))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
