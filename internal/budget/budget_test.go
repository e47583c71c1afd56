package budget_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"capacity >= 100/s":                 "/ /capacity//false >= 100 1/s absolute at 0",
		"response.p99 <= 500ms at 50/s":     "/ /response/p99/false <= 0.5 s absolute at 50",
		"seccomp: exec.cpu <= +5%":          "/seccomp exec/cpu//false <= 0.05 ratio ratio at 0",
		"create-pod.cpu <= 10ms":            "/ create-pod/cpu//false <= 0.01 s absolute at 0",
		"error <= 0.1%":                     "/ /error//false <= 0.001 ratio absolute at 0",
		"monitoring.response.p99 <= 50ms":   "/ monitoring/response/p99/false <= 0.05 s absolute at 0",
		"rss drift <= 1MiB/h":               "/ /rss//true <= 1048576 B absolute at 0",
		"response.p50 drift <= +2 ms / min": "/ /response/p50/true <= 0.12 s difference at 0",
		"response.p99 <= +3ms":              "/ /response/p99/false <= 0.003 s difference at 0",
		"capacity >= -5%":                   "/ /capacity//false >= -0.05 ratio ratio at 0",
		"mode=enforce policies=10: a.b.response.p99.9<=1s": "/mode=enforce policies=10 a.b/response/p999/false <= 1 s " +
			"absolute at 0",
		"image=x:1: response.max <= 1s": "/image=x:1 /response/max/false <= 1 s absolute at 0",
		"  threads  <=  30  ":           "/ /threads//false <= 30 1 absolute at 0",
		"x: rss <= 64 MiB at 6000/min":  "/x /rss//false <= 67108864 B absolute at 100",
	} {
		got, err := budget.Parse(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if of := fmt.Sprintf("/%s %s/%s/%s/%v %s %.12g %s %s at %.12g", got.Treatment, got.Operation, got.Metric,
			got.Quantile, got.Drift, got.Op, got.Limit.Value, got.Limit.Unit, got.Limit.Against, got.At); of != want ||
			got.Text != text {
			t.Errorf("%q is read as %s of %q, want %s", text, of, got.Text, want)
		}
		again, err := budget.Parse(got.String())
		if again.Text = text; err != nil || !cmp.Equal(again, got) {
			t.Errorf("%q prints as %q, which reads as %+v, %v", text, got.String(), again, err)
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

// TestUnprovable: a soak that is too short to show that a budget is kept is told so before it begins, with what would
// do.
func TestUnprovable(t *testing.T) {
	soak := budget.Rules{
		Question: "soak", Drift: true,
		Calls: append(budget.Times(budget.Kind{Quantiles: []string{"min", "mean", "max"}, Samples: true}),
			budget.Means(metric.Error, metric.Goodput)...),
		Probed: []string{"rss"},
	}
	for _, c := range []struct {
		text    string
		calls   float64
		maxRate float64
		want    string // empty: it can be shown
	}{
		{"error <= 0.1%", 3000, 0, "even if none fails: it takes 3838, as in 1m17s, or at 64/s"},
		{"error <= 0.1%", 3000, 50, "it takes 3838, as in 1m17s"},
		{"error <= 0.1%", 3838, 0, ""},
		{"error <= 0.1%", 3837, 0, "it takes 3838"},
		{"error <= 1%", 3000, 0, ""},
		{"error <= 0%", 1e9, 0, "no number of calls shows that none will ever fail"},
		{"error >= 1%", 10, 0, ""},
		{"response.p99 <= 20ms", 380, 0, "it takes 381"},
		{"response.p99 <= 20ms", 381, 0, ""},
		{"response.p99.9 <= 20ms", 3000, 0, "it takes 3838"},
		{"response.p5 >= 1ms", 50, 0, "it takes 73"},
		{"response.p5 <= 1ms", 20, 0, ""},
		{"response <= 20ms", 20, 0, ""},
		{"response.mean <= 20ms", 20, 0, ""},
		{"response.max <= 20ms", 20, 0, ""},
		{"goodput >= 40/s", 20, 0, ""},
		{"rss <= 1GiB", 20, 0, ""},
		{"error <= 0.1%", 0, 0, ""}, // closed workers: nobody knows
		{"wall <= 1s", 20, 0, ""},   // is refused for another reason
	} {
		s := &budget.Scope{
			Rules: soak, Treatments: []design.Treatment{{ID: "default"}}, Length: time.Minute, Rate: 50, MaxRate: c.maxRate,
			Of: func(*design.Treatment) budget.Arm {
				return budget.Arm{Open: true, Samples: func(string) float64 { return c.calls }}
			},
		}
		b, err := budget.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Unprovable(b); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %.0f calls: %q, want %q", c.text, c.calls, got, c.want)
		}
		if got := s.Unprovable(b); c.want != "" && c.maxRate > 0 && strings.Contains(got, "or at") {
			t.Errorf("a rate above max_rate is offered: %q", got)
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
