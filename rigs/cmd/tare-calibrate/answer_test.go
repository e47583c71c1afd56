package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/rigs/servers"
)

// TestRead judges reports of a server whose truth is 100/s.
func TestRead(t *testing.T) {
	bucket := servers.Truth{Rate: 100, Classes: []signature.Class{signature.TokenBucket}}
	down := bucket
	down.Findings = []capacity.FindingKind{capacity.StaysDown}
	most := bucket
	most.AtMost = true
	for name, c := range map[string]struct {
		truth                          servers.Truth
		capacity, budgets              string
		number, class, besides, limits mark
	}{
		"right": {
			bucket, `"rate": 101, "lo": 99, "hi": 103, "failure": {"class": "token-bucket"}, "verified_low": 98, "verified_high": 104`, "pass fail",
			right, right, right, right,
		},
		"within 5 %":       {bucket, `"rate": 106, "lo": 104, "hi": 108, "failure": {"class": "unknown"}`, "pass inconclusive", right, unknown, right, unknown},
		"beyond 5 %":       {bucket, `"rate": 108, "lo": 106, "hi": 110, "failure": {"class": "queue"}`, "pass pass", wrong, wrong, right, wrong},
		"too low":          {bucket, `"rate": 90, "lo": 85, "hi": 94`, "fail fail", wrong, unknown, right, wrong},
		"at most":          {most, `"rate": 50, "lo": 45, "hi": 55, "verified_high": 60`, "fail fail", unknown, unknown, right, unknown},
		"above the most":   {most, `"rate": 150, "lo": 145, "hi": 155`, "pass pass", wrong, unknown, right, wrong},
		"a bound":          {bucket, `"at_least": 100, "failure": {"class": "client"}`, "pass inconclusive", unknown, unknown, right, unknown},
		"a false bound":    {bucket, `"at_least": 160`, "pass pass", wrong, unknown, right, wrong},
		"bounds":           {bucket, `"at_least": 80, "at_most": 130, "broke": true`, "pass inconclusive", unknown, unknown, right, unknown},
		"a false roof":     {bucket, `"at_most": 94`, "inconclusive fail", wrong, unknown, right, unknown},
		"held above":       {bucket, `"rate": 100, "lo": 99, "hi": 101, "verified_low": 106`, "pass fail", wrong, unknown, right, right},
		"failed below":     {bucket, `"rate": 100, "lo": 99, "hi": 101, "verified_high": 94`, "pass fail", wrong, unknown, right, right},
		"no interval":      {bucket, `"rate": 150`, "", unknown, unknown, right, unknown},
		"found nothing":    {down, `"rate": 100, "lo": 99, "hi": 101`, "pass fail", right, unknown, unknown, right},
		"found down":       {down, `"rate": 100, "lo": 99, "hi": 101, "findings": [{"kind": "stays-down"}]`, "pass fail", right, unknown, right, right},
		"wedged":           {down, `"rate": 100, "lo": 99, "hi": 101, "wedged": true`, "pass fail", right, unknown, right, right},
		"recovers, it did": {bucket, `"rate": 100, "lo": 99, "hi": 101, "recovery_seconds": 0.1`, "pass fail", right, unknown, right, right},
		"recovers, not so": {down, `"rate": 100, "lo": 99, "hi": 101, "recovery_seconds": 0.1`, "pass fail", right, unknown, wrong, right},
		"found too much":   {bucket, `"rate": 100, "lo": 99, "hi": 101, "findings": [{"kind": "cold-start"}]`, "pass fail", right, unknown, wrong, right},
	} {
		var budgets []string
		for v := range strings.FieldsSeq(c.budgets) {
			budgets = append(budgets, `{"verdict": "`+v+`"}`)
		}
		b := []byte(`{"seconds": 12, "capacity": [{` + c.capacity + `}], "budgets": [` + strings.Join(budgets, ", ") + `]}`)
		a, err := read(b, servers.Fixture{Name: "x", Truth: c.truth}, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, want := []mark{a.Number, a.Named, a.Beside, a.Budgets}, []mark{c.number, c.class, c.besides, c.limits}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestLimitIsJudged: a name that is not right is wrong, also where the truth has no name, and so is to exclude the
// truth, or to count other than its 8 slots; unknown is not.
func TestLimitIsJudged(t *testing.T) {
	for _, c := range []struct {
		truth  []limit.Kind
		answer string
		want   mark
	}{
		{[]limit.Kind{limit.OneThread, limit.Slots}, `, "limit": {"kind": "slots"}`, right},
		{[]limit.Kind{limit.Slots}, `, "limit": {"kind": "connections"}`, wrong},
		{[]limit.Kind{limit.Slots}, `, "limit": {"kind": "unknown"}`, unknown},
		{[]limit.Kind{limit.Slots}, "", unknown},
		{[]limit.Kind{limit.CPUQuota}, `, "limit": {"kind": "unknown", "excluded": [{"what": "a CPU quota"}]}`, wrong},
		{[]limit.Kind{limit.Slots}, `, "limit": {"kind": "unknown", "excluded": [{"what": "a CPU quota"}]}`, unknown},
		{[]limit.Kind{limit.Slots}, `, "limit": {"kind": "slots", "value": "about 9 at a time"}`, right},
		{[]limit.Kind{limit.Slots}, `, "limit": {"kind": "slots", "value": "32 in flight"}`, wrong},
		{[]limit.Kind{limit.Connections}, `, "limit": {"kind": "connections", "value": "16 at a time"}`, wrong},
		{[]limit.Kind{limit.CPUQuota}, `, "limit": {"kind": "cpu-quota", "value": "500m"}`, right},
		{nil, `, "limit": {"kind": "unknown"}`, unknown},
		{nil, `, "limit": {"kind": "slots"}`, wrong},
	} {
		f := servers.Fixture{Name: "x", Truth: servers.Truth{Rate: 100, Limits: c.truth, Slots: 8}}
		a, err := read([]byte(`{"capacity": [{"broke": true`+c.answer+`}]}`), f, 1)
		if err != nil {
			t.Fatal(err)
		}
		if a.Limited != c.want {
			t.Errorf("truth %v, answer {%s}: %s, want %s", c.truth, c.answer, a.Limited, c.want)
		}
	}
}

func TestReadNeedsACapacity(t *testing.T) {
	for _, text := range []string{`{}`, `{"capacity": []}`, `not a report`} {
		if a, err := read([]byte(text), servers.Fixture{}, 1); err == nil {
			t.Errorf("%s is accepted as %+v", text, a)
		}
	}
}

// TestTable prints a right answer, a wrong one, a search without a report, and what was left out.
func TestTable(t *testing.T) {
	of := func(name string, rate float64) *answer {
		return &answer{
			Server: name, Truth: 100, Formula: "rate 100/s", Rate: &rate, Lo: &rate, Hi: &rate,
			Class: signature.TokenBucket, Limit: limit.RateLimit,
			Tried:   []limit.Experiment{{Seconds: 1}, {Seconds: 2}},
			Seconds: 12,
			Below:   report.Pass, Above: report.NotMeasured, Wedged: true, Findings: []capacity.FindingKind{capacity.ColdStart},
		}
	}
	good, bad := of("good", 100.04), of("bad", 20000)
	truth := servers.Truth{
		Rate: 100, Formula: "rate 100/s",
		Classes: []signature.Class{signature.TokenBucket}, Limits: []limit.Kind{limit.RateLimit}, Seen: true,
		Findings: []capacity.FindingKind{capacity.ColdStart},
	}
	good.judge(truth, false)
	bad.judge(truth, false)
	low, high := 80.0, 130.5
	bound, open := of("bound", 0), of("open", 0)
	bound.Rate, bound.AtLeast, bound.AtMost = nil, &low, &high
	open.Rate = nil
	bound.judge(truth, false)
	open.judge(truth, false)
	late := of("late", 300)
	late.Late = 0.02
	late.judge(truth, false)
	s := &survey{
		answers: []*answer{good, bad, bound, open, late, nil}, todo: make([]task, 6),
		options: options{retries: 2}, skipped: []string{"proxy: SKIPPED: it is not installed"}, spoiled: 2,
	}
	for i := range s.todo[:5] {
		s.todo[i].Truth = truth
	}
	good.Twice = &limit.Prediction{Lo: 170, Hi: 185}
	open.Twice = &limit.Prediction{Lo: 190, Hi: 210}
	bad.Limit = limit.Slots
	bad.judge(truth, false)
	s.todo[5].Fixture = servers.Fixture{Name: "silent", Truth: truth}
	var b bytes.Buffer
	if err := s.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| good | rate 100/s | 100 | 100 [100, 100] | rate-limit | token-bucket | cold-start, wedged | 12 | pass | – | " +
			"right | right | right | right | unknown |",
		"| bad | rate 100/s | 100 | 20000 [20000, 20000] | slots | token-bucket | cold-start, wedged | 12 | pass | – | " +
			"wrong | wrong | right | right | unknown |",
		"| silent | rate 100/s | 100 | no report |",
		"| bound | rate 100/s | 100 | ≥ 80, ≤ 130.5 |",
		"| open | rate 100/s | 100 | – |",
		"| late | rate 100/s | 100 | 300 [300, 300] | rate-limit | token-bucket | cold-start, wedged | 12 | not judged |",
		"1 searches cannot be judged: the host held up the server, in each of 3 attempts.",
		"| of 4 searches | right | unknown | wrong |",
		"| number | 1 | 2 | 1 |",
		"| all | 0 | 3 | 1 |",
		"| Limit: truth \\ answer | rate-limit | slots | right | unknown | wrong |",
		"| rate-limit | 3 | 1 | 3 | 0 | 1 |",
		"| Failure: truth \\ answer | token-bucket | right | unknown | wrong |",
		"| token-bucket | 4 | 4 | 0 | 0 |",
		"Of 4 limits that can be named, 3 were.",
		"2 times it was said what twice the limit gives. False is: good (170 to 185).",
		"4 searches made 8 experiments, measured for 1.5 s each",
		"2 further searches were repeated",
		"proxy: SKIPPED",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing from\n%s", want, &b)
		}
	}
}
