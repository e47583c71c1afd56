package limit

import (
	"testing"

	"tare/internal/signature"
)

// TestPlacesOrARate: a limit on the rate that saves up about as many calls as are in flight refuses like places. It is
// not called so where calls are refused while places would be free, where more are served at once than there would be,
// or where it accepts another number after a pause than under overload.
func TestPlacesOrARate(t *testing.T) {
	spread := .003
	of := func(inFlight int, rate float64, bad int) Experiment {
		e := counted(inFlight, rate)
		e.Service, e.Spread, e.Bad = .05, &spread, bad
		return e
	}
	quiet := []Experiment{of(1, 20, 0), of(2, 40, 0)}
	for name, x := range map[string]struct {
		full, atOnce int
		rate         float64
		experiments  []Experiment
		value        string // of the places; "": they are not named
	}{
		"places":                        {4, 4, 80, append(quiet, of(4, 80, 4), of(8, 80, 40)), "4 in flight"},
		"places, one is not seen":       {3, 4, 80, append(quiet, of(4, 80, 4), of(8, 80, 40)), "4 in flight"},
		"places, without bursts":        {4, 0, 80, append(quiet, of(4, 80, 30), of(8, 80, 40)), "4 in flight"},
		"an allowance after a pause":    {2, 4, 50, append(quiet, of(4, 50, 39), of(8, 50, 40)), ""},
		"more under overload":           {5, 4, 80, append(quiet, of(4, 80, 4), of(8, 80, 40)), ""},
		"refused while some are free":   {4, 4, 70, append(quiet, of(3, 58, 30), of(8, 70, 40)), ""},
		"one place":                     {1, 1, 20, []Experiment{of(1, 20, 4), of(2, 20, 40)}, "1 in flight"},
		"one place that is idle":        {1, 1, 4, []Experiment{of(1, 4, 40), of(2, 4, 40)}, ""},
		"more served than there can be": {4, 4, 95, append(quiet, of(4, 80, 4), of(8, 95, 40)), ""},
	} {
		s := signature.Verdict{Class: signature.ConcurrencyLimit, InFlight: x.full, AtOnce: x.atOnce}
		v := Judge(Evidence{Rate: x.rate, Lo: x.rate - 1, Hi: x.rate + 1, Signature: s, Experiments: x.experiments})
		if v.Value != x.value || (v.Kind == Slots) != (x.value != "") {
			t.Errorf("%s: %+v", name, v)
		}
		excluded := false
		for _, not := range v.Excluded {
			excluded = excluded || not.What == "places for calls"
		}
		if excluded != (x.value == "") {
			t.Errorf("%s: excluded are %+v", name, v.Excluded)
		}
	}
}
