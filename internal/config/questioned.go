package config

import (
	"tare/internal/design"
	"tare/internal/question"
)

// questioned shows a file under check to its question.
type questioned struct{ c *checker }

var _ question.File = questioned{}

// Given implements question.File, as do the others.
func (f questioned) Given(path string) bool  { return f.c.given(path) }
func (f questioned) Valid(path string) bool  { return f.c.isValid(path) }
func (f questioned) Broken(path string) bool { return f.c.broken(path) }

func (f questioned) Fail(path, format string, args ...any) { f.c.fail(path, format, args...) }
func (f questioned) Warn(path, format string, args ...any) { f.c.warn(path, format, args...) }

func (f questioned) Refuse(path, format string, args ...any) {
	f.c.errorAt(path, f.c.key(path), format, args...)
}

func (f questioned) Missing(path, asker, message string) {
	if path == "load" && f.c.broken("area") { // some areas need none
		return
	}
	f.c.missing(path, asker, message)
}

func (f questioned) Load() question.Load {
	l := &f.c.e.Load
	out := question.Load{Duration: l.Duration, Ramp: l.Arrivals == Ramp}
	if l.Closed != nil {
		out.WorkerRamp = l.Closed.Ramp
	}
	return out
}

func (f questioned) Factors() []design.Factor { return f.c.e.Factors }

func (f questioned) OwnPace() bool {
	ok := f.c.e.batches()
	if ok {
		f.c.ownPace()
	}
	return ok
}

func (f questioned) CheckWorkloads() { f.c.workloads() }
