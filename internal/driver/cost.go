package driver

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// counted returns the metrics that a program may count, in the order of reports.
func counted() []metric.Metric {
	return []metric.Metric{
		metric.Wall, metric.CPU, metric.Instructions, metric.Allocations, metric.Allocated, metric.Hits,
		metric.CacheHits, metric.Error,
	}
}

func countedNames() []string {
	var out []string
	for _, m := range counted() {
		out = append(out, m.Name)
	}
	return out
}

// atOnce bounds how many concurrent calls a program may claim: its sums of time may exceed the elapsed time by this
// factor. More is a confusion of units.
const atOnce = 10000

// valid returns an error unless a cost is plausible for the number of calls that were asked for and the time that
// passed.
func (c Cost) valid(calls int, passed time.Duration) error {
	if c.Calls != calls {
		return fmt.Errorf("it made %d calls where %d were asked for", c.Calls, calls)
	}
	if c.Refused < 0 || c.Permitted < 0 || c.Refused+c.Permitted > calls {
		return fmt.Errorf("it says that %d of %d calls were refused and %d permitted", c.Refused, calls, c.Permitted)
	}
	for name, v := range c.Total {
		i := slices.Index(countedNames(), name)
		switch {
		case i < 0:
			return fmt.Errorf("it counts %.80q, which is not a metric that tare knows%s; it knows %s", name,
				spelling.DidYouMean(name, countedNames()),
				strings.Join(countedNames(), ", "))
		case math.IsNaN(v) || math.IsInf(v, 0) || v < 0:
			return fmt.Errorf("it counts %s = %v, which no total can be", name, v)
		}
		switch m := counted()[i]; {
		case m.Unit == metric.Ratio && v > float64(calls):
			return fmt.Errorf("it counts %v of %s in %d calls; the total is a number of calls", v, name, calls)
		case (m.Unit == metric.Seconds || m.Unit == metric.CPUSeconds) && v > atOnce*passed.Seconds():
			return fmt.Errorf("it counts %v seconds of %s while %s passed; totals of time are in seconds", v, name,
				unit.Seconds(passed.Seconds()))
		}
	}
	return nil
}

// names returns the metrics that the program counted, in the order of reports.
func (c Cost) names() []string {
	return slices.DeleteFunc(countedNames(), func(name string) bool {
		_, ok := c.Total[name]
		return !ok
	})
}

// samples divides the totals by the number of calls.
func (c Cost) samples() []load.BatchSample {
	var out []load.BatchSample
	for _, name := range c.names() {
		out = append(out, load.BatchSample{Metric: name, Value: c.Total[name] / float64(c.Calls)})
	}
	return out
}

// source is who measured a metric of an operation. It must be the same in all arms: times by two different clocks
// cannot be compared.
type source uint8

const (
	byNobody source = iota
	byProgram
	byTare
)

func (s source) String() string {
	switch s {
	case byProgram:
		return "the program"
	case byTare:
		return "tare"
	case byNobody:
	}
	return "nobody"
}

// sources says who measured the times of one operation.
type sources struct{ wall, cpu source }
