package budget_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/rigs/memtest"
)

func absolute(v float64, u metric.Unit) budget.Limit {
	return budget.Limit{Value: v, Unit: u, Against: budget.Absolute}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want budget.Budget
	}{
		{"capacity >= 100/s", budget.Budget{Metric: "capacity", Op: ">=", Limit: absolute(100, metric.PerSecond)}},
		{"response.p99 <= 500ms at 50/s", budget.Budget{
			Metric: "response", Quantile: "p99", Op: "<=",
			Limit: absolute(0.5, metric.Seconds), At: 50,
		}},
		{"seccomp: exec.cpu <= +5%", budget.Budget{
			Treatment: "seccomp", Operation: "exec", Metric: "cpu", Op: "<=",
			Limit: budget.Limit{Value: 0.05, Unit: metric.Ratio, Against: budget.Ratio},
		}},
		{"create-pod.cpu <= 10ms", budget.Budget{
			Operation: "create-pod", Metric: "cpu", Op: "<=",
			Limit: absolute(0.01, metric.Seconds),
		}},
		{"error <= 0.1%", budget.Budget{Metric: "error", Op: "<=", Limit: absolute(0.001, metric.Ratio)}},
		{"monitoring.response.p99 <= 50ms", budget.Budget{
			Operation: "monitoring", Metric: "response", Quantile: "p99",
			Op: "<=", Limit: absolute(0.05, metric.Seconds),
		}},
		{"rss drift <= 1MiB/h", budget.Budget{Metric: "rss", Drift: true, Op: "<=", Limit: absolute(1<<20, metric.Bytes)}},
		{"response.p50 drift <= +2 ms / min", budget.Budget{
			Metric: "response", Quantile: "p50", Drift: true, Op: "<=",
			Limit: budget.Limit{Value: 0.12, Unit: metric.Seconds, Against: budget.Difference},
		}},
		{"response.p99 <= +3ms", budget.Budget{
			Metric: "response", Quantile: "p99", Op: "<=",
			Limit: budget.Limit{Value: 0.003, Unit: metric.Seconds, Against: budget.Difference},
		}},
		{"capacity >= -5%", budget.Budget{Metric: "capacity", Op: ">=", Limit: budget.Limit{
			Value: -0.05, Unit: metric.Ratio,
			Against: budget.Ratio,
		}}},
		{
			"mode=enforce policies=10: a.b.response.p99.9<=1s",
			budget.Budget{
				Treatment: "mode=enforce policies=10", Operation: "a.b", Metric: "response", Quantile: "p999",
				Op: "<=", Limit: absolute(1, metric.Seconds),
			},
		},
		{"image=x:1: response.max <= 1s", budget.Budget{
			Treatment: "image=x:1", Metric: "response", Quantile: "max", Op: "<=",
			Limit: absolute(1, metric.Seconds),
		}},
		{"  threads  <=  30  ", budget.Budget{Metric: "threads", Op: "<=", Limit: absolute(30, metric.Count)}},
		{"x: rss <= 64 MiB at 6000/min", budget.Budget{
			Treatment: "x", Metric: "rss", Op: "<=",
			Limit: absolute(64<<20, metric.Bytes), At: 100,
		}},
	} {
		got, err := budget.Parse(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		c.want.Text = c.text
		near, noText := cmpopts.EquateApprox(1e-12, 0), cmpopts.IgnoreFields(budget.Limit{}, "Text")
		if d := cmp.Diff(c.want, got, near, noText); d != "" {
			t.Errorf("%q: (-want +got)\n%s", c.text, d)
		}
		again, err := budget.Parse(got.String())
		if again.Text = c.text; err != nil || !cmp.Equal(again, got) {
			t.Errorf("%q prints as %q, which reads as %+v, %v", c.text, got.String(), again, err)
		}
	}
}

// TestLimitRoundTrips: a limit prints in the unit and for the duration in which it was given, and is read back exactly.
func TestLimitRoundTrips(t *testing.T) {
	for text, want := range map[string]string{
		"rss drift <= 1MiB/d":             "rss drift <= 1MiB/d",
		"rss drift <= 1.3 B / min":        "rss drift <= 1B/min", // whole bytes are judged
		"response.p50 drift <= +1ms/day":  "response.p50 drift <= +1ms/day",
		"response drift <= 0.1us/d":       "response drift <= 100ns/d",
		"error drift <= 1%/d":             "error drift <= 1%/d",
		"goodput drift >= -1000/min/d":    "goodput drift >= -1000/min/d",
		"threads drift <= 1/d":            "threads drift <= 1/d",
		"rss <= 1.5GiB":                   "rss <= 1536MiB",
		"rss <= 9223372036854775807B":     "rss <= 9223372036854775807B",
		"response <= 1ms at 1000/min":     "response <= 1ms at 1000/min",
		"capacity >= -0%":                 "capacity >= +0%",
		"response <= 9007199254740993ns":  "response <= 2501h59m59.254740993s",
		"monitoring.response.p99.9 <= 1d": "monitoring.response.p999 <= 24h",
	} {
		b, err := budget.Parse(text)
		if err != nil {
			t.Error(err)
			continue
		}
		again, err := budget.Parse(b.String())
		if again.Text = text; b.String() != want || err != nil || !cmp.Equal(again, b) {
			t.Errorf("%q prints as %q, want %q, which reads as %+v, not %+v: %v", text, b.String(), want, again, b, err)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		column int
		want   string
	}{
		{"", 1, "no <= or >="},
		{"response.p99 500ms", 19, "no <= or >="},
		{"response.p99 < 500ms", 14, "operators are <= and >="},
		{"response.p99 ≤ 500ms", 14, "operators are <= and >="},
		{"response.p99 <=", 16, "no limit"},
		{"<= 5ms", 1, "no metric"},
		{": cpu <= 5ms", 1, "no treatment"},
		{"kontrolle é: re$ponse <= 5ms", 16, "a name is expected"},
		{"exec..cpu <= 5ms", 6, "a name is expected"},
		{"p99 <= 5ms", 1, "is a quantile, not a metric"},
		{"response p99 <= 5ms", 10, "only \"drift\""},
		{"response.p99 <= fast", 17, "write it like 500ms"},
		{"response.p99 <= 500ms at noon", 26, "write it like 150/s"},
		{"response.p99 <= 500ms at 50", 26, "did you mean 50/s"},
		{"response.p99 <= 500ms at 0/s", 26, "above 0"},
		{"rss <= 64K", 8, "cannot be read"},
		{"rss drift <= 1MiB", 14, "like 1MiB/h"},
		{"rss drift <= 1MiB/parsec", 14, "is no time"},
		{"x <= " + strings.Repeat("9", 308) + "G/s", 6, "the limit is too large"},
		{"x drift <= " + strings.Repeat("9", 308) + "/s", 12, "the limit is too large"},
		{"x <= 1 at " + strings.Repeat("9", 308) + "G/s", 11, "the rate is too large"},
		{"cpu <= ++5%", 8, "share \"+5%\" does not begin with a number"},
	} {
		b, err := budget.Parse(c.text)
		var syntax *budget.SyntaxError
		if !errors.As(err, &syntax) || syntax.Column != c.column || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %+v, error %v; want column %d, %q", c.text, b, err, c.column, c.want)
		}
	}
}

func TestFraction(t *testing.T) {
	for q, want := range map[string]float64{
		"p50": 0.5, "p99": 0.99, "p999": 0.999, "p9999": 0.9999, "p5": 0.05,
		"p05": 0.05, "p90": 0.9,
	} {
		if got, ok := budget.Fraction(q); !ok || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %v, %v; want %v", q, got, ok, want)
		}
	}
	for _, q := range []string{"", "p", "p0", "p100", "p1234567", "max", "q50", "px"} {
		if got, ok := budget.Fraction(q); ok {
			t.Errorf("%s = %v, want none", q, got)
		}
	}
}

func TestDecide(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		text string
		x    budget.Interval
		want budget.Verdict
	}{
		{"response.p99 <= 500ms", budget.Interval{Value: 0.4, Lo: 0.3, Hi: 0.5}, budget.Pass}, // the limit itself is kept
		{"response.p99 <= 500ms", budget.Interval{Value: 0.4, Lo: 0.3, Hi: 0.51}, budget.Inconclusive},
		{"response.p99 <= 500ms", budget.Interval{Value: 0.6, Lo: 0.5, Hi: 0.7}, budget.Inconclusive},
		{"response.p99 <= 500ms", budget.Interval{Value: 0.6, Lo: 0.501, Hi: 0.7}, budget.Fail},
		{"capacity >= 100/s", budget.Interval{Value: 150, Lo: 100, Hi: 160}, budget.Pass},
		{"capacity >= 100/s", budget.Interval{Value: 150, Lo: 99, Hi: 160}, budget.Inconclusive},
		{"capacity >= 100/s", budget.Interval{Value: 90, Lo: 80, Hi: 100}, budget.Inconclusive},
		{"capacity >= 100/s", budget.Interval{Value: 90, Lo: 80, Hi: 99.9}, budget.Fail},
		{"capacity >= 100/s", budget.Interval{Value: 2000, Lo: 2000, Hi: inf}, budget.Pass},
		{"capacity >= 100/s", budget.Interval{Value: 50, Lo: 50, Hi: inf}, budget.Inconclusive},
		{"cpu <= +5%", budget.Interval{Value: 0.02, Lo: 0.01, Hi: 0.03}, budget.Pass},
		{"cpu <= +5%", budget.Interval{Value: 0.08, Lo: 0.06, Hi: 0.1}, budget.Fail},
		{"cpu <= -5%", budget.Interval{Value: -0.02, Lo: -0.03, Hi: -0.01}, budget.Fail},
		{"capacity >= -5%", budget.Interval{Value: -0.02, Lo: -0.03, Hi: 0}, budget.Pass},
		{"cpu <= 5ms", budget.Interval{Value: 0.005, Lo: 0.005, Hi: 0.005}, budget.Pass}, // exact
		{"cpu <= 5ms", budget.Interval{Value: nan, Lo: 0, Hi: 1}, budget.NotMeasured},
		{"cpu <= 5ms", budget.Interval{Value: 0.001, Lo: nan, Hi: 0.002}, budget.NotMeasured},
		{"cpu <= 5ms", budget.Interval{Value: 0.001, Lo: 0.002, Hi: 0.001}, budget.NotMeasured},
		{"cpu <= 5ms", budget.Interval{Value: 0.001, Lo: -inf, Hi: inf}, budget.Inconclusive},
	} {
		b, err := budget.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := budget.Decide(b, c.x); got != c.want {
			t.Errorf("%s with %+v: %s, want %s", c.text, c.x, got, c.want)
		}
	}
}

// TestDecideMirrors: negating everything turns <= into >=, and a wider interval never decides more.
func TestDecideMirrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		limit, mid, half := rng.NormFloat64(), rng.NormFloat64(), rng.ExpFloat64()
		b := budget.Budget{Op: budget.AtMost, Limit: budget.Limit{Value: limit}}
		m := budget.Budget{Op: budget.AtLeast, Limit: budget.Limit{Value: -limit}}
		x := budget.Interval{Value: mid, Lo: mid - half, Hi: mid + half}
		got := budget.Decide(b, x)
		if mirror := budget.Decide(m, budget.Interval{Value: -mid, Lo: -x.Hi, Hi: -x.Lo}); mirror != got {
			t.Fatalf("limit %v, %+v: %s, mirrored %s", limit, x, got, mirror)
		}
		wide := budget.Decide(b, budget.Interval{Value: mid, Lo: mid - 2*half, Hi: mid + 2*half})
		if wide != got && wide != budget.Inconclusive {
			t.Fatalf("limit %v, %+v: %s, wider %s", limit, x, got, wide)
		}
	}
}

func TestOverall(t *testing.T) {
	for _, c := range []struct {
		in   []budget.Verdict
		want budget.Verdict
	}{
		{nil, budget.None},
		{[]budget.Verdict{budget.Pass, budget.Pass}, budget.Pass},
		{[]budget.Verdict{budget.Pass, budget.NotMeasured}, budget.Inconclusive},
		{[]budget.Verdict{budget.Inconclusive, budget.Pass}, budget.Inconclusive},
		{[]budget.Verdict{budget.Inconclusive, budget.Fail, budget.Pass}, budget.Fail},
	} {
		if got := budget.Overall(c.in); got != c.want {
			t.Errorf("%v: %s, want %s", c.in, got, c.want)
		}
	}
	var v budget.Verdict
	if err := v.UnmarshalText([]byte("not-measured")); err != nil || v != budget.NotMeasured {
		t.Errorf("got %v, %v; want not-measured", v, err)
	}
	if err := v.UnmarshalText([]byte("ok")); err == nil {
		t.Error("\"ok\" is a verdict")
	}
}

func TestBound(t *testing.T) {
	for text, want := range map[string]float64{"cpu <= +5%": 2.1, "cpu <= -500ms": 1.5, "cpu <= 7s": 7} {
		b, err := budget.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Limit.Bound(2); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s with baseline 2: bound %v, want %v", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"capacity >= 100/s", "response.p99 <= 500ms at 50/s", "seccomp: exec.cpu <= +5%", "rss drift <= 1MiB/h",
		"a=b: c.p99.9 >= -0.5GB at 1k/min",
		"x drift <= 3/h/d", "é:é<=1", "p99.p99 <= 7", "a.p990 <= 1d", "rss drift <= 1MiB/d",
		"x drift <= 0.5 ns / day", "a <= 1.5PB", "b drift <= 1%/min",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer memtest.Bound(t, len(text))()
		b, err := budget.Parse(text)
		if err != nil {
			var syntax *budget.SyntaxError
			if !errors.As(err, &syntax) || syntax.Column < 1 || syntax.Column > len(text)+1 {
				t.Errorf("%q: got %#v, want a syntax error at its column", text, err)
			}
			return
		}
		if b.Metric == "" || math.IsNaN(b.Limit.Value) || math.IsInf(b.Limit.Value, 0) || b.At < 0 {
			t.Errorf("%q is accepted as invalid budget %+v", text, b)
		}
		again, err := budget.Parse(b.String())
		again.Text = b.Text
		if err != nil || !cmp.Equal(again, b) {
			t.Errorf("%q prints as %q, which is read back with %v\n%s", text, b.String(), err, cmp.Diff(b, again))
		}
	})
}
