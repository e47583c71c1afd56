package analyze

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/unit"
)

// memoryFinding is the most resident memory that all parts of the target had at a time during the trials of a
// treatment: at least what was read before or after one of them, and at most the peaks of all processes together.
func (a *analysis) memoryFinding(treatment string) finding {
	out, found := finding{}, false
	for _, t := range a.trials() {
		if t.Treatment != treatment {
			continue
		}
		f, ok := mostMemory(reading(t, record.Before, 0), reading(t, record.After, 0))
		if ok && (!found || f.Hi > out.Hi) {
			out.Hi, out.how = f.Hi, f.how
		}
		if ok {
			out.Lo, found = max(out.Lo, f.Lo), true
		}
	}
	if !found {
		return unmeasured("no probe read it")
	}
	out.Value = out.Lo
	return out
}

// mostMemory is that between two readings. A peak is the kernel's, since the process began: that of one process which
// grew between the readings is exact, an older one bounds what was needed since.
func mostMemory(before, after []metric.Sample) (f finding, found bool) {
	var first, last, peaks float64
	unknown, exact := "", true // unknown: whose peak nobody read
	for _, subject := range subjects(slices.Concat(before, after)) {
		was, had := probe.Find(before, subject, probe.RSS)
		is, has := probe.Find(after, subject, probe.RSS)
		if !partOfTarget(subject) || !had && !has {
			continue
		}
		first, last, found = first+was, last+is, true
		old, known := probe.Find(before, subject, probe.RSSPeak)
		peak, read := probe.Find(after, subject, probe.RSSPeak)
		if !read || processesEnded(before, after, subject) {
			unknown = subject
		}
		peaks += peak
		processes, _ := probe.Find(after, subject, probe.Processes)
		if grew := had && known && peak > old; grew && processes == 1 {
			f.Lo = max(f.Lo, peak)
		} else {
			exact = false
		}
	}
	f.Lo = max(f.Lo, first, last)
	f.Hi = max(f.Lo, peaks)
	switch {
	case unknown != "":
		f.Hi, f.how = math.Inf(1), fmt.Sprintf("read before and after; the peak of %s in between is not known", unknown)
	case exact && f.Lo == f.Hi:
		f.how = "the peak of its process"
	default:
		f.how = fmt.Sprintf("it had %s, and at most what its processes had since they began, %s", unit.Bytes(f.Lo),
			unit.Bytes(f.Hi))
	}
	return f, found
}

// processesEnded reports whether processes of a subject that a reading has are gone in the later one: their peaks went
// with them.
func processesEnded(before, after []metric.Sample, subject string) bool {
	born, had := probe.Find(before, subject, probe.Started)
	is, has := probe.Find(after, subject, probe.Started)
	n, _ := probe.Find(before, subject, probe.Processes)
	left, _ := probe.Find(after, subject, probe.Processes)
	return had && has && born != is || left < n
}

// withPeaks opens an interval of readings after trials up to the most memory that the target may have had in them:
// what it gave back before a reading keeps no limit from above.
func (a *analysis) withPeaks(b *budget.Budget, treatment string, f finding) finding {
	if b.Metric != probe.RSS.Name || b.Op != budget.AtMost || b.Limit.Against != budget.Absolute || f.why != "" {
		return f
	}
	if most := a.memoryFinding(treatment); most.why == "" && most.Hi > f.Hi {
		f.Hi = most.Hi
		f.how += "; " + most.how
	}
	return f
}
