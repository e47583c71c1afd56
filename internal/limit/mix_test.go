package limit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/signature"
)

// TestLimitOfSomeOperations: a limit that refuses calls of some operations, and none of the others', is one on those,
// of their share of the rate.
func TestLimitOfSomeOperations(t *testing.T) {
	idle := counted(1, 130)
	idle.Service, idle.Bad = .002, 94
	for name, c := range map[string]struct {
		answered []Answered
		of       []string
		value    string
	}{
		"one subject": {
			[]Answered{{"alice-read", 2869, 746}, {"bob-read", 3615, 0}, {"alice-delete", 2910, 706}},
			[]string{"alice-read", "alice-delete"},
			"about 48.5/s",
		},
		"all":               {[]Answered{{"a", 2869, 746}, {"b", 3000, 615}, {"c", 2910, 706}}, nil, "about 72.8/s"},
		"a few of the rest": {[]Answered{{"a", 2869, 746}, {"b", 3000, 2}, {"c", 2910, 706}}, nil, "about 72.8/s"},
		"by chance":         {[]Answered{{"a", 100, 5}, {"b", 90, 0}, {"c", 100, 5}}, nil, "about 72.8/s"},
		"hardly called":     {[]Answered{{"a", 2000, 40}, {"b", 20, 0}}, nil, "about 72.8/s"},
		"none refused":      {[]Answered{{"a", 2000, 0}, {"b", 2000, 0}}, nil, "about 72.8/s"},
		"one operation":     {nil, nil, "about 72.8/s"},
	} {
		bucket := signature.Verdict{Class: signature.TokenBucket, Evidence: []string{"calls were refused"}}
		e := Evidence{
			Rate: 72.8, Lo: 71, Hi: 74, Signature: bucket, Experiments: []Experiment{idle}, Answered: c.answered,
		}
		v := Judge(e)
		said := strings.Contains(strings.Join(v.Evidence, "\n"), "only calls of alice-read and alice-delete were refused, "+
			"1452 of 7231, and none of the 3615 of bob-read")
		if v.Kind != RateLimit || !slices.Equal(v.Operations, c.of) || v.Value != c.value || said != (c.of != nil) {
			t.Errorf("%s: %s %q of %q, %q", name, v.Kind, v.Value, v.Operations, v.Evidence)
		}
		if p := v.Prediction; p == nil || p.Rate != 2*72.8 || c.of != nil && p.Hi > 150 {
			t.Errorf("%s: prediction %+v", name, p)
		}
		e.Rate, e.Lo, e.Hi = 0, 0, 0
		e.Experiments = append(slices.Clone(e.Experiments), counted(4, 130))
		if v := Judge(e); (v.Prediction == nil) != (c.of != nil) {
			t.Errorf("%s, without a capacity: prediction %+v", name, v.Prediction)
		}
	}
	v := Judge(Evidence{Answered: []Answered{{"a", 1000, 100}, {"b", 1000, 0}}})
	said := strings.Join(v.Evidence, "\n")
	if v.Known() || v.Operations != nil || !strings.Contains(said, "only calls of a were refused") {
		t.Errorf("an unknown limit: %q of %q, %q", v.Kind, v.Operations, v.Evidence)
	}
}

// TestAnsweredBy: calls are counted by operation and outcome, where there are several operations.
func TestAnsweredBy(t *testing.T) {
	trace := capacity.Trace{Calls: load.Calls{
		{Done: time.Second},
		{Operation: 1, Done: time.Second, Outcome: load.Refused},
		{Operation: 1, Done: time.Second, Outcome: load.Denied},
		{Operation: 1},
		{Operation: 1, Done: time.Second, Outcome: load.Timeout},
		{Operation: 2, Done: time.Second},
	}}
	want := []Answered{{"a", 1, 0}, {"b", 1, 1}}
	if got := answeredBy(&trace, []string{"a", "b"}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := answeredBy(&trace, []string{"a"}); got != nil {
		t.Errorf("of one operation: %v", got)
	}
}
