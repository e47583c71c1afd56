package stat

import (
	"encoding/binary"
	"math"
	"testing"
)

// floats reads the bits of float64 values, so that NaN, infinities and the smallest numbers occur.
func floats(b []byte) []float64 {
	var x []float64
	for ; len(b) >= 8 && len(x) < 400; b = b[8:] {
		x = append(x, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return x
}

func bytesOf(x ...float64) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func ordered(t *testing.T, e Estimate) {
	t.Helper()
	if math.IsNaN(e.Value) || math.IsNaN(e.Lo) || math.IsNaN(e.Hi) || !(e.Lo <= e.Value && e.Value <= e.Hi) {
		t.Errorf("%v is not within %v … %v", e.Value, e.Lo, e.Hi)
	}
}

func FuzzHodgesLehmann(f *testing.F) {
	f.Add(bytesOf(1, -2, 3, 0, 0, 7, 8, 9), 0.95)
	f.Add(bytesOf(math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64), 0.5)
	f.Add(bytesOf(math.NaN(), 1), 0.9)
	f.Add(bytesOf(math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64), 0.1)
	f.Fuzz(func(t *testing.T, b []byte, level float64) {
		x := floats(b)
		if h, err := HodgesLehmann(x, level); err == nil {
			ordered(t, h.Estimate)
			if !(h.P >= 0 && h.P <= 1) {
				t.Errorf("P = %v", h.P)
			}
		}
		if e, err := MedianInterval(x, level); err == nil {
			ordered(t, e)
		}
		half := len(x) / 2
		if h, err := HodgesLehmannShift(x[:half], x[half:], level); err == nil && !(h.P >= 0 && h.P <= 1) {
			t.Errorf("P = %v", h.P)
		}
	})
}

func FuzzPValues(f *testing.F) {
	f.Add(bytesOf(0.01, 0.5, math.NaN(), 1), 0.05)
	f.Fuzz(func(t *testing.T, b []byte, alpha float64) {
		p := floats(b)
		if len(Holm(p)) != len(p) || len(BenjaminiHochberg(p)) != len(p) || len(HolmLevels(p, alpha)) != len(p) {
			t.Error("hypotheses are lost")
		}
	})
}

func FuzzQuantileRatio(f *testing.F) {
	f.Add(bytesOf(1, 2, 3, 4, 5, 6, 7), uint8(20), uint16(20), 0.5)
	f.Add(bytesOf(-1, 0, 1e308, 1e-308), uint8(25), uint16(90), 0.95)
	f.Fuzz(func(t *testing.T, b []byte, blocks uint8, calls uint16, q float64) {
		x := floats(b)
		if len(x) == 0 {
			return
		}
		arms := [2][][]float64{make([][]float64, blocks), make([][]float64, blocks)}
		for i := range int(calls%512) * int(blocks) {
			arms[i%2][i%int(blocks)] = append(arms[i%2][i%int(blocks)], x[i%len(x)])
		}
		if r, err := QuantileRatio(samples(arms[0]), samples(arms[1]), q, 0.95); err == nil && !(r.P >= 0 && r.P <= 1) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzFitGrowth(f *testing.F) {
	f.Add(bytesOf(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000), bytesOf(1, 1.1, 2, 3, 4, 9, 20, 40, 90, 210), 30.0)
	f.Add(bytesOf(0, 1, 2, 3, 4, 5, 6), bytesOf(5, 5, 5, 5, 5, 5, 5), 5.0)
	f.Add(bytesOf(1e300, 2, 5, 1e-300, 20, 50, 100), bytesOf(1e308, 1e-308, 2, 3, 4, 9, 20), math.Inf(1))
	f.Add(bytesOf(10, 20, 50, 100, 200, 500), bytesOf(4, 4.1, 4, 25, 24, 25, 4.1, 4, 4.2, 25, 26, 25, 4, 4, 4.1,
		24, 25, 26), 10.0)
	f.Add(bytesOf(0, 1, 2, 3, 4, 5, 6), bytesOf(0, 0, 0, 0, 0, 0, 0), 5.0)
	f.Fuzz(func(t *testing.T, sizes, costs []byte, budget float64) {
		n, y := floats(sizes), floats(costs)
		if len(n) == 0 || len(n) > 30 || len(y) < len(n) {
			return
		}
		blocks := make([][]float64, len(n))
		for i, v := range y[:len(y)-len(y)%len(n)] {
			blocks[i%len(n)] = append(blocks[i%len(n)], v)
		}
		g, err := FitGrowth(n, blocks, GrowthOptions{Level: 0.95, Budget: budget, Margin: 0.02})
		if err != nil {
			return
		}
		if g.Best.C0 < 0 || g.Best.C1 < 0 || math.IsNaN(g.Best.C0) || math.IsNaN(g.Best.C1) || math.IsNaN(g.Best.BIC) ||
			g.Best.BIC > g.Fits[0].BIC {
			t.Errorf("%+v", g.Best)
		}
		g.Band(7)
		if s := g.Step; s != nil && (g.Knee != nil || g.Named || !(s.From < s.To) ||
			!(s.Factor.Lo <= s.Factor.Value && s.Factor.Value <= s.Factor.Hi)) {
			t.Errorf("step %+v, knee %+v, named %v", s, g.Knee, g.Named)
		}
		if k := g.Knee; k != nil && !(k.Lo <= k.Value && k.Value <= k.Hi) {
			t.Errorf("knee %+v", k)
		}
		if g.Exact && (g.Best.Law != Constant || g.C0.Lo != g.C0.Hi) {
			t.Errorf("%+v", g)
		}
		if b := g.Breaks; b != nil && !(b.Lo <= b.Value && b.Value <= b.Hi) {
			t.Errorf("breaks at %+v", b)
		}
	})
}
