package report

import (
	"strings"
	"testing"
)

// TestPublishedVerdict: PASS and FAIL are clusterloader2's, over requests and pods; where it has not judged what is
// measured, there is none.
func TestPublishedVerdict(t *testing.T) {
	row := func(name string, f Formula, v Verdict) SLO {
		return SLO{Treatment: "x", Name: name, Subject: name, Formula: f, Verdict: v}
	}
	for want, rows := range map[string][]SLO{
		"":                             {row("mutating", Official, Fail)},
		"PASS":                         {row("mutating", ClusterLoader2, Pass), row("read", KubeBurner, Fail)},
		"FAIL: 1 high-latency request": {row("mutating", ClusterLoader2, Fail), row("pod-startup", ClusterLoader2, Pass)},
		"FAIL: 2 high-latency requests": {
			row("mutating", ClusterLoader2, Fail), row("read", ClusterLoader2, Fail),
			row("read", ClusterLoader2, NotMeasured),
		},
		"FAIL: pod startup": {row("mutating", ClusterLoader2, Pass), row("pod-startup", ClusterLoader2, Fail)},
	} {
		r := &Report{SLO: rows}
		if got := r.passed("x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if r.passed("y") != "" {
			t.Error("another treatment has the verdict")
		}
	}
	r := &Report{SLO: []SLO{row("mutating", ClusterLoader2, NotMeasured), row("read", ClusterLoader2, Pass)}}
	if got := r.passed("x"); got != "" {
		t.Errorf("dry runs are not judged, and the verdict is %q", got)
	}
}

// TestPublishedNumbers: as the tables of 2017 print them.
func TestPublishedNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		8.637055: "8.637055s", 798e-6: "798µs", 66.485e-3: "66.485ms", 1.1e-3: "1.1ms",
		24.237e-3: "24.237ms", 60: "1m0s",
	} {
		if got := span(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		3.386182578: "3386.182578", 1.86783022: "1867.83022",
		2.23124665: "2231.24665",
	} {
		if got := milliseconds(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// TestDisagreement: only pass against fail is one; the A/A arm has no rows, and what passes is not listed kind by kind.
func TestDisagreement(t *testing.T) {
	r := psp()
	if got := r.disagreement(); got != "the formulas DISAGREE on pod-startup bound=1 psp policies=5005" {
		t.Errorf("%q", got)
	}
	tables, quiet := r.levelTables()
	var heads []string
	for _, x := range tables {
		heads = append(heads, x[0].head)
		for _, cell := range x[0].cells {
			if strings.Contains(cell, "A/A") {
				t.Errorf("%s has the A/A arm", x[0].head)
			}
		}
	}
	if len(tables) != 3 || quiet != "all other requests pass" {
		t.Errorf("tables %q, %q", heads, quiet)
	}
	for i := range r.SLO {
		if r.SLO[i].Verdict == Fail {
			r.SLO[i].Verdict = Inconclusive
		}
	}
	if got := r.disagreement(); got != "" {
		t.Errorf("inconclusive is no disagreement: %q", got)
	}
}
