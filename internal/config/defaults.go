package config

import (
	"slices"
	"time"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/question"
	"tare/internal/unit"
)

// The defaults.
const (
	defaultTimeout    = unit.Duration(30 * time.Second)
	defaultTrial      = unit.Duration(10 * time.Second) // of a comparison
	longestTrial      = unit.Duration(time.Minute)      // that is a default
	defaultBlocks     = 40
	defaultMaxTime    = unit.Duration(30 * time.Minute) // of a comparison
	defaultMargin     = unit.Percent(0.02)
	defaultShare      = unit.Percent(0.01)
	defaultAbortError = unit.Percent(0.5)
	defaultPoint      = 5 * time.Second // of a ladder, as package capacity has it
)

// WithDefaults returns a copy in which every field is set that has a default independent of the run. MaxRate, Seed and
// the start of a search stay zero if the file omits them, and so do Blocks and MaxTime unless the question compares.
func (e *Experiment) WithDefaults() *Experiment {
	out := *e
	l, asked := &out.Load, question.Of(e.Question)
	if l.Arrivals == "" && l.Closed == nil {
		l.Arrivals = Constant
	}
	if l.Engine == "" {
		l.Engine = Auto
	}
	l.Timeout = l.timeout()
	if l.MaxConnections == 0 {
		l.MaxConnections = asked.MaxConnections
		if l.Closed != nil {
			l.MaxConnections = max(l.MaxConnections, l.Closed.Workers) // each has one
		}
	}
	if e.blocked() {
		out.layOut()
	}
	if l.Trespass == 0 {
		l.Trespass = asked.Trespass
		if asked.Drive.LongTrials && e.asks() {
			l.Trespass, l.KeepMix = unit.Percent(guard.SoakShare(float64(l.Rate)*time.Duration(l.Duration).Seconds())), true
		}
	}
	if l.Trespass > 0 {
		out.Budget = withDefault(e.Budget, noneIsPermitted)
	}
	if l.Abort == nil && e.Target != nil && !kit.Loopback(e.Target, e.Treatments()) {
		l.Abort = &Abort{Error: defaultAbortError, For: unit.Duration(asked.AbortAfter)}
	}
	if l.SLO != nil && l.SLO.Share == 0 {
		l.SLO = &SLO{Limit: l.SLO.Limit, Share: defaultShare}
	}
	return &out
}

// asks reports whether trespasses of the target only ask.
func (e *Experiment) asks() bool {
	if e.Target == nil {
		return false
	}
	asks := e.Target.Says().Asks
	return asks != nil && asks(e.Treatments(), e.Load.Operations.Names())
}

// noneIsPermitted is judged wherever there are trespasses, unless the file limits them.
const noneIsPermitted = "permitted <= 0"

// withDefault adds a budget to those of the file, unless one of them limits the same metric.
func withDefault(given []string, own string) []string {
	limit, err := budget.Parse(own)
	if err != nil {
		return given
	}
	for _, text := range given {
		if b, err := budget.Parse(text); err == nil && b.Metric == limit.Metric {
			return given
		}
	}
	return append(slices.Clone(given), own)
}

// blocked reports whether all treatments are measured in turn, in blocks.
func (e *Experiment) blocked() bool { return question.Of(e.Question).Drive.InBlocks }

// searches reports whether the experiment chooses its own rates, or takes them from a ladder.
func (e *Experiment) searches() bool { return question.Of(e.Question).Drive.Overloads }

// layOut sets the defaults of trials in blocks.
func (e *Experiment) layOut() {
	if e.Blocks == 0 {
		e.Blocks = defaultBlocks
	}
	if e.Margin == 0 {
		e.Margin, e.DefaultMargin = defaultMargin, true
	}
	if e.Load.MaxTime == 0 {
		e.Load.MaxTime = defaultMaxTime
	}
	if e.Load.Duration == 0 {
		e.Load.Duration, e.Load.DefaultDuration = defaultTrial, true
		switch t, _ := e.LayTurns(); {
		case t != nil:
			e.Load.Duration = unit.Duration(t.Length) * unit.Duration(t.Rounds)
		case e.Load.Rate > 0 && !e.readsCPU():
			if enough := unit.Duration(design.LongEnough(float64(e.Load.Rate))); enough <= longestTrial {
				e.Load.Duration = max(e.Load.Duration, enough)
			}
		}
	}
}

// readsCPU reports whether the CPU time of every treatment can be read, so that it decides. Otherwise the median
// response has to, of calls enough.
func (e *Experiment) readsCPU() bool {
	for _, t := range e.Treatments() {
		if arm := e.arm(&t); !arm.Open && !slices.Contains(arm.Metrics, metric.CPU.Name) {
			return false
		}
	}
	return true
}

func (l Load) timeout() unit.Duration {
	if l.Timeout == 0 {
		return defaultTimeout
	}
	return l.Timeout
}

// Ladder reports whether the experiment measures given rates instead of searching.
func (l Load) Ladder() bool { return len(l.Rates)+len(l.Workloads) > 0 }

// Config returns the load engine's configuration. The caller adds Endpoint, Operations and KeepCalls.
func (l Load) Config(seed uint64) load.Config {
	engine := load.Auto
	if l.Engine != "" && l.Engine != Auto {
		engine = load.Engine(l.Engine)
	}
	return load.Config{
		Engine: engine, Timeout: time.Duration(l.Timeout), MaxConns: l.MaxConnections, MaxRate: float64(l.MaxRate),
		Shards: l.Shards, Spin: time.Duration(l.Spin), Precise: l.Precise, Seed: seed,
	}
}

// Process returns the arrival process at one rate for the load's duration.
func (l Load) Process(rate unit.Rate, seed uint64) load.Process {
	r, d := float64(rate), time.Duration(l.Duration)
	switch l.Arrivals {
	case Poisson:
		return load.Poisson{Rate: r, Duration: d, Seed: seed}
	case Ramp:
		return load.Ramp{From: 0, To: r, Duration: d}
	case Constant:
	}
	return load.Constant{Rate: r, Duration: d}
}

// Points returns the lengths of a ladder's points under one treatment, in order; none for a search.
func (e *Experiment) Points() []time.Duration {
	var out []time.Duration
	for range e.Load.Rates {
		point := time.Duration(e.Load.Duration)
		if point == 0 {
			point = defaultPoint
		}
		out = append(out, point)
	}
	for _, w := range e.Load.Workloads {
		out = append(out, w.window())
	}
	return out
}

// Peak returns the highest rate, in 1/s, that the file can make the generator offer; 0 if it is unbounded (closed
// workers, or a search without max_rate).
func (e *Experiment) Peak() float64 {
	l := e.Load
	switch {
	case l.Closed != nil:
		return 0
	case l.Ladder():
		peak := 0.0
		for _, r := range l.Rates {
			peak = max(peak, float64(r))
		}
		for _, w := range l.Workloads {
			peak = max(peak, w.PerSecond())
		}
		return peak
	case e.searches():
		return float64(l.MaxRate)
	}
	return float64(l.Rate)
}

// LayTurns lays out the turns of the treatments within a block; nil: they have trials of their own, and why says why.
// It is empty where the question has no blocks, or where operations have a clock of their own.
func (e *Experiment) LayTurns() (t *design.Turns, why string) {
	if !e.blocked() || e.OwnPace() {
		return nil, ""
	}
	if e.Load.Turns == TurnsOff {
		return nil, "the file says load: {turns: off}"
	}
	if alone := e.alone(); alone != "" {
		return nil, alone
	}
	l := design.TurnLoad{
		Rate: float64(e.Load.Rate), Ramp: e.Load.Arrivals == Ramp, Arms: len(e.Arms()), Afresh: e.Afresh(),
	}
	if e.Load.Closed != nil {
		l.Workers = e.Load.Closed.Workers
	}
	if !e.Load.DefaultDuration {
		l.Time = time.Duration(e.Load.Duration)
	}
	laid, why := design.LayTurns(l)
	if why != "" {
		return nil, why
	}
	return &laid, ""
}

// Afresh is about how long it takes to start afresh what the target starts for the arms; 0: that is no matter.
func (e *Experiment) Afresh() time.Duration {
	if e.Target == nil || !e.blocked() {
		return 0
	}
	if afresh := e.Target.Says().Afresh; afresh != nil {
		return afresh(e.Arms())
	}
	return 0
}

// alone says why the treatments cannot be in force together; empty: they can.
func (e *Experiment) alone() string {
	if e.Target == nil {
		return ""
	}
	if alone := e.Target.Says().Alone; alone != nil {
		return alone(e.Treatments(), e.Load.Operations.Names())
	}
	return ""
}
