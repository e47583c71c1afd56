package simulation

import (
	"strings"
	"testing"

	"tare/internal/capacity"
)

// TestSlowServiceIsBoundedOnly: the break of a service says nothing before it has answered enough calls to be warm, for
// which the time may not suffice.
func TestSlowServiceIsBoundedOnly(t *testing.T) {
	for _, c := range []struct {
		name             string
		mean, maxSeconds float64
		bounded          bool
	}{
		{"4/s, 300 s", 0.25, 300, false},
		{"3/s, 300 s", 0.33, 300, true},
		{"20/s, 300 s", 0.05, 300, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := Composition{Name: c.name, Seed: 1, MaxRate: 1000, Timeout: 10, Latency: 0.002, Parts: []Part{
				{Kind: service, With: map[string]float64{"mean": c.mean, "workers": 1}},
			}}
			o := x.Options()
			o.MaxSeconds = c.maxSeconds
			trace, err := capacity.Search(t.Context(), x.World(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			r, truth := capacity.Assess(trace), 1/c.mean
			warned := strings.Contains(strings.Join(r.Warnings, "\n"), "it may be able to take more once it is warm")
			switch {
			case r.Signature.Class.Traits().Saves:
				t.Errorf("the class is %s", r.Signature.Class)
			case r.AtLeast > 1.01*truth:
				t.Errorf("at least %.3g/s of a service that does %.3g/s", r.AtLeast, truth)
			case c.bounded && (r.Rate > 0 || r.AtMost > 0 || r.VerifiedHigh > 0 || !warned):
				t.Errorf("the answer is %.3g/s, at most %.3g/s, fails at %.3g/s; warnings: %q", r.Rate, r.AtMost, r.VerifiedHigh,
					r.Warnings)
			case !c.bounded && (r.Lo > truth || r.Hi < truth || warned):
				t.Errorf("the answer is %.3g/s [%.3g, %.3g]; warnings: %q", r.Rate, r.Lo, r.Hi, r.Warnings)
			}
		})
	}
}
