package doctor

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// forecast writes what the stalls mean for the results of a run here.
func (s *Stalls) forecast(b *bytes.Buffer) {
	if s == nil {
		fmt.Fprintf(b, "\nforecast: not known, since no thread could watch the processors\n")
		return
	}
	fmt.Fprintf(b, "\nforecast: what this host does to a run, if it stays as it was for %s\n", unit.Seconds(s.Seconds))
	for _, x := range []struct{ label, text string }{
		{"searches", s.searches()},
		{"times", fmt.Sprintf("at most about %s of a p99 are this host's; each report bounds its own run",
			unit.Seconds(twoDigits(s.Tail)))},
		{"stalls", s.blame()},
	} {
		fmt.Fprintf(b, "  %-9s%s\n", x.label, wrap(x.text, 11))
	}
}

// negligible is a share of lost time that no search can tell from none.
const negligible = 0.005

// searches says how a capacity that is found here differs from that on a host of its own. It rests on searches on a
// host from which 10 % were taken: rates that a clock limits were found within 0.2 %, and services took fewer calls
// by about the share that was taken. Processes that compete with the service take more from it, by an amount that
// the threads of stalls do not show: these sleep, and so are preferred by the scheduler.
func (s *Stalls) searches() string {
	text := "limits of a rate are found within 0.2%; a service that runs here takes "
	competes := s.Lost-s.Taken >= negligible
	switch {
	case s.Taken < negligible && !competes:
		return text + "as many calls as on a host of its own, within 1%"
	case s.Taken < negligible:
		text += "fewer calls than on a host of its own, since other processes compete with it: how many is not known"
	default:
		text += "about " + rounded(s.Taken) + " fewer calls than on a host of its own"
		if s.TakenLow != nil && s.TakenHigh != nil {
			text += fmt.Sprintf(" (%s to %s, by half seconds)", rounded(*s.TakenLow), rounded(*s.TakenHigh))
		}
		if competes {
			text += ", and fewer still for other processes that compete with it: how many is not known"
		}
	}
	return text + "; a search takes little longer (simulated: 1.05 times where 10% is taken), and load.max_time bounds it"
}

// blame says how long the stalls were, and whose.
func (s *Stalls) blame() string {
	text := "none of 1 ms or more"
	if s.Count > 0 {
		text = fmt.Sprintf("%d of 1 ms or more on %s at the generator's priority, the longest %s", s.Count,
			unit.Count(s.CPUs, "CPU"), unit.Seconds(twoDigits(s.Longest)))
	}
	var whose []string
	least := max(0.001, s.Lost/10)
	if s.Steal != nil && *s.Steal >= least {
		whose = append(whose, "the hypervisor took "+rounded(*s.Steal)+" of the CPU time")
	}
	if s.Waited != nil && *s.Waited >= least {
		whose = append(whose, "an ordinary thread waited "+rounded(*s.Waited)+" of the time for other processes")
	}
	if s.Throttled >= least {
		whose = append(whose, "a CPU quota stopped this process for "+rounded(s.Throttled)+" of the time")
	}
	switch {
	case len(whose) > 0:
		text += "; " + strings.Join(whose, "; ")
	case s.Lost >= negligible:
		text += "; whose they are is not known"
	}
	return text
}

// rounded prints a share with two digits: a few seconds tell no more.
func rounded(v float64) string { return unit.Share(twoDigits(v)) }

func twoDigits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64)
	if err != nil {
		return v
	}
	return r
}
