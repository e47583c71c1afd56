package drive

import (
	"fmt"
	"slices"
	"time"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/term"
	"tare/internal/unit"
)

// plainEvery is how often a soak says where it is when there is no terminal to draw on.
const plainEvery = time.Minute

// soakView is what the view of a soak remembers from one event to the next.
type soakView struct {
	*Screen
	treatment string
	rate      []float64 // of the last slices, for the sparkline
	before    record.Slice
	now       moment
	spoke     time.Duration // when the last plain line was said; 0: never
	restarts  int
	out       bool          // no call is answered well
	outSince  time.Duration // on the stream
}

// moment is what one slice shows. Absent values are negative.
type moment struct {
	rate, errors float64 // calls that ended, 1/s; share of them that ended badly
	p99          float64 // of the slowest operation, in seconds
	slowest      string
	cpu, rss     float64 // of all parts of the target: cores, bytes
	good, bad    uint64
}

func viewLong(s *Screen) func(run.Event) { return (&soakView{Screen: s}).show }

// show follows a long run: a few live lines, or one plain line a minute and one for each restart and outage.
func (s *soakView) show(e run.Event) {
	k, ok := e.Detail.(*Soak)
	if !ok {
		s.Phase(e)
		return
	}
	if s.treatment != e.Treatment {
		*s = soakView{Screen: s.Screen, treatment: e.Treatment}
	}
	if k.Cut {
		s.cut(k.Slice)
		s.plain(k)
	}
	s.Update(s.lines(e, k))
}

// cut takes in a slice that has ended.
func (s *soakView) cut(now record.Slice) {
	const shown = 40
	s.now = sliceMoment(s.before, now)
	s.before = now
	if s.rate = append(s.rate, s.now.rate); len(s.rate) > shown {
		s.rate = s.rate[1:]
	}
}

// plain prints where the run is, at most once a minute unless something has happened.
func (s *soakView) plain(e *Soak) {
	head := fmt.Sprintf("%s  %s", s.Name, passed(e.Elapsed))
	if n := e.Restarts; n > s.restarts {
		s.restarts = n
		s.Plain(fmt.Sprintf("%s  the target was started anew: restarts %d", head, n))
	}
	switch out := s.now.good == 0 && s.now.bad > 0; {
	case out && !s.out:
		s.out, s.outSince = true, e.Slice.Start
		s.Plain(fmt.Sprintf("%s  no call is answered well any more", head))
	case s.out && s.now.good > 0:
		s.out = false
		s.Plain(fmt.Sprintf("%s  calls are answered again, after about %s", head, passed(e.Slice.Start-s.outSince)))
	}
	if s.spoke != 0 && e.Elapsed-s.spoke < plainEvery {
		return
	}
	s.spoke = e.Elapsed
	line := fmt.Sprintf("%s  %s  errors %s", head, unit.PerSecond(s.now.rate), unit.Share(s.now.errors))
	if s.now.p99 > 0 {
		line += "  p99 " + unit.Seconds(s.now.p99)
	}
	line += target(s.now, e.Restarts)
	if e.WarmUp {
		line += "  warming up"
	}
	s.Plain(line + "  left " + passed(e.Left))
}

// passed is a length of time, to the second.
func passed(d time.Duration) string { return unit.Seconds(d.Round(time.Second).Seconds()) }

// lines is the live view.
func (s *soakView) lines(e run.Event, k *Soak) []string {
	head := s.Name
	if e.Trials > 1 {
		head += fmt.Sprintf("  treatment %d/%d", e.Trial, e.Trials)
	}
	share := float64(k.Elapsed) / float64(max(1, k.Elapsed+k.Left))
	head += fmt.Sprintf("  %s  %s left of %s", term.Progress(share, 20), passed(k.Left), passed(k.Elapsed+k.Left))
	now := fmt.Sprintf(" now    %s", e.Phase)
	if e.Treatment != "" {
		now += " " + e.Treatment
	}
	if k.WarmUp {
		now += fmt.Sprintf("; %s are measured after that", passed(k.Planned))
	}
	p := k.Progress
	lines := []string{head, now, fmt.Sprintf(" calls  %s", endedCalls(p))}
	if len(s.rate) == 0 {
		return lines
	}
	lines = append(lines, fmt.Sprintf(" rate   %s   errors %s   %s", unit.PerSecond(s.now.rate), unit.Share(s.now.errors),
		term.Sparkline(s.rate)))
	if s.now.p99 > 0 {
		lines = append(lines, fmt.Sprintf(" p99    %s   %s, the slowest operation", unit.Seconds(s.now.p99), s.now.slowest))
	}
	if t := target(s.now, k.Restarts); t != "" {
		lines = append(lines, " target"+t)
	}
	return lines
}

// target is what is known of the target, in words.
func target(m moment, restarts int) (text string) {
	if m.cpu >= 0 {
		text += fmt.Sprintf("  CPU %.2f cores", m.cpu)
	}
	if m.rss >= 0 {
		text += "  RSS " + unit.Bytes(m.rss)
	}
	if restarts > 0 {
		text += fmt.Sprintf("  restarts %d", restarts)
	}
	return text
}

// sliceMoment sums up a slice and what the target used since the one before.
func sliceMoment(before, now record.Slice) moment {
	m := moment{cpu: -1, rss: -1}
	for i := range now.Operations {
		o := &now.Operations[i]
		for _, outcome := range o.Outcomes {
			if outcome.Outcome.Good() {
				m.good += outcome.Count
			} else {
				m.bad += outcome.Count
			}
		}
		p99 := o.P99
		if p99 == 0 {
			p99 = o.Max // there were too few calls to tell them apart
		}
		if p99 > m.p99 {
			m.p99, m.slowest = p99, o.Operation
		}
	}
	if all := m.good + m.bad; all > 0 {
		m.errors = float64(m.bad) / float64(all)
		m.rate = float64(all) / max(1e-9, (now.End-now.Start).Seconds())
	}
	m.usage(before.Samples, now.Samples)
	return m
}

// usage takes processor time and memory from two readings. Of a process that was replaced in between nothing is known.
func (m *moment) usage(before, now []metric.Sample) {
	delta := probe.Delta(before, now)
	var cpu, rss, seconds float64
	for _, s := range delta {
		i := slices.IndexFunc(before, func(b metric.Sample) bool {
			return b.Subject == s.Subject && b.Metric == s.Metric && b.Part == s.Part
		})
		if s.Metric == probe.CPU.Name && i >= 0 && s.At > before[i].At {
			cpu += s.Value
			seconds = (s.At - before[i].At).Seconds()
		}
	}
	if seconds > 0 {
		m.cpu = cpu / seconds
	}
	for _, s := range now {
		if s.Metric == probe.RSS.Name {
			rss += s.Value
		}
	}
	if rss > 0 {
		m.rss = rss
	}
}
