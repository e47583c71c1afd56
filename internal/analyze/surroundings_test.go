package analyze

import (
	"math"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// TestBusySearch: a capacity that was found on a host with other work to do says so; the target's own work is no
// other's, whether tare has started it or not.
func TestBusySearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                           string
		busy, own, target, gen, stolen float64 // CPU-seconds, of 200
		want                           string
	}{
		{"idle but for a target of ours", 100, 98, 60, 38, 0, ""},
		{"idle but for a target that is not ours", 100, 39, 60, 38, 0, ""},
		{
			"others beside a target that is not ours", 160, 39, 60, 38, 0,
			"other work used 31 % of this host's CPU time during the search",
		},
		{"others beside a target of ours", 160, 98, 60, 38, 0, "other work used 31 %"},
		{"stolen", 100, 98, 60, 38, 10, "the hypervisor took 5 % of this host's CPU time during the search"},
	} {
		sample := func(subject, name string, v float64) metric.Sample {
			return metric.Sample{Subject: subject, Metric: name, Value: v}
		}
		a := &analysis{rep: &report.Report{}, rec: &record.Record{
			Host: []record.Surroundings{{Samples: []metric.Sample{
				sample(probe.HostSubject, probe.HostAll.Name, 200), sample(probe.HostSubject, probe.HostCPU.Name, c.busy),
				sample(probe.HostSubject, probe.Steal.Name, c.stolen), sample("tare", probe.CPU.Name, c.own),
			}}},
			Trials: []*record.Trial{{
				Generator: []record.Generator{{CPUSeconds: c.gen}},
				Samples: []record.Samples{
					{When: record.Before, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7)}},
					{When: record.After, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7+c.target)}},
				},
			}},
		}}
		a.busySearch()
		if got := strings.Join(a.rep.Warnings, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	silent := &analysis{rep: &report.Report{}, rec: &record.Record{Host: []record.Surroundings{{}}}}
	if silent.busySearch(); len(silent.rep.Warnings) > 0 {
		t.Errorf("a host that says nothing: %q", silent.rep.Warnings)
	}
}

// TestTheServerIsNoOtherWork: what the target of a comparison used is not other work; where it is hidden, that is said.
func TestTheServerIsNoOtherWork(t *testing.T) {
	t.Parallel()
	sample := func(subject, name string, v float64) metric.Sample {
		return metric.Sample{Subject: subject, Metric: name, Value: v}
	}
	for _, c := range []struct {
		name         string
		target       float64 // CPU-seconds; NaN: hidden
		local        bool
		busy         float64
		want, absent string
	}{
		{name: "its own", target: 60, local: true, busy: 100, absent: "used"},
		{name: "beside others", target: 60, local: true, busy: 160, want: "other work used 31 %"},
		{
			name: "hidden", target: math.NaN(), local: true, busy: 100,
			want: "other processes, the server under test among them, used 30 %",
		},
		{name: "elsewhere", target: math.NaN(), busy: 100, want: "other work used 30 %"},
	} {
		trial := &record.Trial{
			TrialBegin: record.TrialBegin{Trial: design.Trial{Treatment: "a", Block: 3}},
			Generator:  []record.Generator{{CPUSeconds: 38, Placement: &record.Placement{Local: c.local}}},
		}
		if !math.IsNaN(c.target) {
			trial.Samples = []record.Samples{
				{When: record.Before, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7)}},
				{When: record.After, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7+c.target)}},
			}
		}
		a := &analysis{rep: &report.Report{}, rec: &record.Record{
			Host: []record.Surroundings{{Block: 3, Samples: []metric.Sample{
				sample(probe.HostSubject, probe.HostAll.Name, 200), sample(probe.HostSubject, probe.HostCPU.Name, c.busy),
				sample(probe.HostSubject, probe.Steal.Name, 0), sample("tare", probe.CPU.Name, 39),
			}}},
			Trials: []*record.Trial{trial},
		}}
		for what, do := range map[string]func(){"comparison": a.surroundings, "search": a.busySearch} {
			a.rep.Warnings = nil
			do()
			got := strings.Join(a.rep.Warnings, "; ")
			if !strings.Contains(got, c.want) || c.absent != "" && strings.Contains(got, c.absent) {
				t.Errorf("%s, %s: %q, want %q", c.name, what, got, c.want)
			}
		}
	}
}
