package simulation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/signature"
)

// ruleFunc is a rule.
type ruleFunc func(t float64) answer

func (f ruleFunc) decide(t float64) answer { return f(t) }

func failed(done float64, status uint16) answer {
	return answer{done: done, outcome: load.Failed, status: status}
}

// timed answers up to each waiting calls every period seconds.
func timed(period, each float64) func(*rand.Rand) rule {
	return func(rng *rand.Rand) rule {
		next, used := 0.0, 0.0
		return ruleFunc(func(t float64) answer {
			if k := math.Floor(t/period) + 1; k > next {
				next, used = k, 0
			}
			if used >= each {
				next, used = next+1, 0
			}
			used++
			return ok(next*period + 0.0002*rng.Float64())
		})
	}
}

// slowlyRefuses has five places of 50 ms; a call that finds none is refused after 50 ms.
func slowlyRefuses(*rand.Rand) rule {
	l := &line{free: make([]float64, 5), service: func(float64) float64 { return 0.05 }}
	return ruleFunc(func(t float64) answer {
		if slices.Min(l.free) > t {
			return answer{done: t + 0.05, outcome: load.Refused, status: 503}
		}
		return l.decide(t)
	})
}

// perSecond takes a hundred calls in each second; each thirtieth of them takes 600 ms.
func perSecond(rng *rand.Rand) rule {
	l, n := &lumps{latency: latency{rng, 0.004}, per: 100, burst: 100, period: 1, offset: 0.3}, 0
	return ruleFunc(func(t float64) answer {
		a := l.decide(t)
		if n++; a.outcome == load.OK && n%30 == 0 {
			a.done += 0.6
		}
		return a
	})
}

// retries asks four workers of 30 ms up to three times, each time for 150 ms: they go on with what nobody waits for.
func retries(status uint16) func(*rand.Rand) rule {
	return func(*rand.Rand) rule {
		l := &line{free: make([]float64, 4), service: func(float64) float64 { return 0.03 }}
		return ruleFunc(func(t float64) answer {
			for try := range 3 {
				at := t + 0.15*float64(try)
				if a := l.decide(at); a.done-at <= 0.15 {
					return a
				}
			}
			a := failed(t+0.45, status)
			if status == 503 {
				a.outcome = load.Refused
			}
			return a
		})
	}
}

// breaks has eight workers of 80 ms, and gives up calls that wait for 300 ms. After more than ten of those of twenty,
// it refuses all for two seconds.
func breaks(*rand.Rand) rule {
	l := &line{free: make([]float64, 8), service: func(float64) float64 { return 0.08 }}
	type end struct {
		at  float64
		bad bool
	}
	var ends []end
	until := -1.0
	return ruleFunc(func(t float64) answer {
		slices.SortFunc(ends, func(a, b end) int { return int(math.Copysign(1, a.at-b.at)) })
		n, bad := 0, 0
		for n < len(ends) && ends[n].at <= t {
			n++
		}
		for _, e := range ends[max(0, n-20):n] {
			if e.bad {
				bad++
			}
		}
		if n >= 20 && bad > 10 {
			until, ends = ends[n-1].at+2, ends[n:]
		}
		if t < until {
			return answer{done: t + 0.0005, outcome: load.Refused, status: 503}
		}
		if slices.Min(l.free)-t > 0.3 {
			ends = append(ends, end{t + 0.3, true})
			return failed(t+0.3, 504)
		}
		a := l.decide(t)
		ends = append(ends, end{a.done, false})
		return a
	})
}

// TestLookalikes: targets that look like a limiter or a quota from outside are given the name of neither, and what they
// are is not excluded.
func TestLookalikes(t *testing.T) {
	for _, c := range []struct {
		name string
		rule func(*rand.Rand) rule
		// classes are right names besides Unknown, not the phrases that must not be excluded.
		classes []signature.Class
		not     []string
	}{
		{"a timer of 100 ms", timed(0.1, 20), []signature.Class{signature.Queue}, nil},
		{"a timer of 40 ms", timed(0.04, 8), []signature.Class{signature.Queue}, nil},
		{"a timer of 30 ms", timed(0.03, 6), []signature.Class{signature.Queue}, nil},
		{"a timer of 1 s", timed(1, 150), []signature.Class{signature.Queue}, nil},
		{"slow refusals", slowlyRefuses, []signature.Class{signature.ConcurrencyLimit}, []string{"calls in flight"}},
		{"a window", perSecond, []signature.Class{signature.FixedWindow}, []string{"window of time"}},
		{"retries, 504", retries(504), []signature.Class{signature.Collapse}, []string{"less under load"}},
		{"retries, 503", retries(503), []signature.Class{signature.Collapse}, []string{"less under load"}},
		{"a circuit breaker", breaks, []signature.Class{signature.Collapse}, []string{"less under load"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := capacity.Options{MaxRate: 2000, Timeout: 5 * time.Second, MaxSeconds: 180}.Defaults()
			w := &World{
				server: open{rule: c.rule(rand.New(rand.NewPCG(1, 5)))}, timeout: o.Timeout, maxConns: o.MaxConns,
				maxRate: o.MaxRate,
			}
			r := capacity.Assess(searched(t, w, o))
			f := r.Signature.Failure()
			v := limit.Judge(limit.Evidence{
				Rate: r.Rate, Lo: r.Lo, Hi: r.Hi, AtLeast: r.AtLeast, AtMost: r.AtMost, Signature: r.Signature, Idle: r.BaseP50,
			})
			said := fmt.Sprintf("%.4g/s [%.4g, %.4g], at least %.4g, at most %.4g; class %s; fails as %s: %q, excluded %+v; "+
				"limit %s: %q; %+v %q", r.Rate, r.Lo, r.Hi, r.AtLeast, r.AtMost, r.Signature.Class, f.Statement(), f.Evidence,
				f.Excluded, v.Kind, v.Evidence, r.Findings, r.Warnings)
			t.Log(said)
			if f.Known() && !slices.Contains(c.classes, f.Class) || v.Kind == limit.CPUQuota ||
				v.Kind == limit.RateLimit && f.Class != signature.FixedWindow {
				t.Error(said)
			}
			for _, e := range f.Excluded {
				if slices.ContainsFunc(c.not, func(s string) bool { return strings.Contains(e.What, s) }) {
					t.Errorf("%s is excluded by %s", e.What, e.By)
				}
			}
			if strings.Contains(said, "cold-start") {
				t.Errorf("nothing was cold: %s", said)
			}
		})
	}
}
