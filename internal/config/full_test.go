package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const shortened = `name: x
area: turnpike
question: scale
target: {}
factors: {n: [1, 2, 3]}
fixed: {position: last}
load: {rate: 10/s, duration: 2s, max_time: 1m}
blocks: 10
full:
  factors: {n: [1, 10, 100, 1000]}
  load: {duration: 20s}
  blocks: 40
`

// TestFullReplacesFields: with --full, the fields of section full replace the file's own, and nothing else changes.
func TestFullReplacesFields(t *testing.T) {
	e, ds := Parse("x.yaml", []byte(shortened), testAreas())
	if e == nil {
		t.Fatal(ds)
	}
	w, ok := e.Whole()
	if !ok {
		t.Fatal("no whole experiment")
	}
	if got := len(e.Treatments()); got != 3 || e.Blocks != 10 || time.Duration(e.Load.Duration) != 2*time.Second {
		t.Errorf("the shortened form has %d treatments, %d blocks, %v", got, e.Blocks, e.Load.Duration)
	}
	if got := len(w.Treatments()); got != 4 || w.Blocks != 40 || time.Duration(w.Load.Duration) != 20*time.Second {
		t.Errorf("the whole has %d treatments, %d blocks, %v", got, w.Blocks, w.Load.Duration)
	}
	if w.Load.Rate != e.Load.Rate || w.Load.MaxTime != e.Load.MaxTime || w.Fixed["position"] != "last" || w.Full != nil {
		t.Errorf("what full does not say has changed: %+v", w)
	}
	if _, ok := w.Whole(); ok {
		t.Error("the whole has a whole of its own")
	}
}

// TestFullIsCheckedAlways: an error that occurs only with --full is reported without it, at its line.
func TestFullIsCheckedAlways(t *testing.T) {
	bad := strings.Replace(shortened, "  load: {duration: 20s}", "  treatments: [{n: 5}]", 1)
	e, ds := Parse("x.yaml", []byte(bad), testAreas())
	if e != nil {
		t.Fatal("a file whose whole is wrong was taken")
	}
	if !slices.ContainsFunc(ds, func(d Diagnostic) bool {
		return d.Line == 11 &&
			strings.Contains(d.Message, "varied under factors")
	}) {
		t.Errorf("diagnostics: %v", ds)
	}
	for i := range ds {
		if slices.ContainsFunc(ds[:i], func(d Diagnostic) bool {
			return d.Line == ds[i].Line &&
				d.Message == ds[i].Message
		}) {
			t.Errorf("told twice: %v", ds[i])
		}
	}
}
