package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/importer"
	"tare/internal/record"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

// correlated writes what a load generator says of a stream whose times are correlated, as those of queues are: the
// logarithm follows an autoregressive process with coefficient 0.9.
func correlated(median float64, rng *rand.Rand) string {
	var b strings.Builder
	x := rng.NormFloat64() * .3
	at := epoch
	for range 2000 {
		x = .9*x + math.Sqrt(1-.9*.9)*.3*rng.NormFloat64()
		at = at.Add(10 * time.Millisecond)
		fmt.Fprintf(
			&b, "{\"code\":200,\"timestamp\":%q,\"latency\":%d}\n", at.Format(time.RFC3339Nano), int64(median*1e9*math.Exp(x)),
		)
	}
	return b.String()
}

// imported reads a tool's file and opens the record that becomes of it.
func imported(t *testing.T, name, src string) Run {
	t.Helper()
	d, err := importer.Read(strings.NewReader(src), name, "")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := d.Write(
		t.TempDir(), record.Header{Experiment: record.Experiment{Name: name, SHA256: name}}, clock.System{},
	)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Run{Name: name, Record: rec}
}

func serviceEffect(t *testing.T, a, b Run) report.Effect {
	t.Helper()
	arms, _, err := MatchArms(a, b, "", "")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := CompareRuns(a, b, arms, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rep.Effects {
		if e.Metric == "service" {
			return e
		}
	}
	t.Fatalf("no effect on service among %+v: %q", rep.Effects, rep.Notes)
	return report.Effect{}
}

// TestImportedCalls: calls that follow one another are no independent values. With each call as a value of its own, 118
// of 200 comparisons of equals found a difference on these streams, at a nominal 1.3 %.
func TestImportedCalls(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	rng := rand.New(rand.NewPCG(5, 6))
	told := 0
	const runs = 20
	for i := range runs {
		e := serviceEffect(
			t, imported(t, fmt.Sprint("a", i), correlated(.01, rng)), imported(t, fmt.Sprint("b", i), correlated(.01, rng)),
		)
		if e.Measurable {
			told++
		}
		if e.Verdict == report.Equivalent || e.Blocks != 20 {
			t.Fatalf("%+v", e)
		}
	}
	if told > 3 {
		t.Errorf("%d of %d comparisons of equals found a difference", told, runs)
	}
	e := serviceEffect(t, imported(t, "a", correlated(.01, rng)), imported(t, "b", correlated(.013, rng)))
	if e.Verdict != report.Regressed || e.Lo > .3 || e.Hi < .3 {
		t.Errorf("a true +30 %%: %+v", e)
	}
	t.Logf("%d of %d comparisons of equals found a difference", told, runs)
}
