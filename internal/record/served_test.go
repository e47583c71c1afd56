package record

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/hist"
	"tare/internal/load"
)

func phased(names ...string) load.Cell {
	c := load.Cell{Outcome: load.OK, Response: &hist.Histogram{}}
	c.Response.Record(5)
	for i, name := range names {
		h := &hist.Histogram{}
		for k := range i + 1 {
			h.Record(int64(1000 * (k + 1)))
		}
		c.Phases = append(c.Phases, load.Phase{Name: name, Hist: h})
	}
	return c
}

// TestPhasesRoundTrip: phases of any name are read back, also without a name or without a value.
func TestPhasesRoundTrip(t *testing.T) {
	names := []string{"post", "created-to-watch", "a b,c|d\n%=é", ""}
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Cells("a", 0, []load.Cell{phased(names...)}),
		w.Cells("a", 0, []load.Cell{phased("post")}), w.Close())
	r := open(t, w.Dir())
	got := map[string]uint64{}
	var measures []Measure
	damaged, err := r.Trials[0].Histograms(func(iv *Interval) {
		if name, ok := iv.Measure.Phase(); ok {
			got[name] += iv.Hist.Count()
			if iv.Measure != PhaseMeasure(name) || iv.Operation != "token" || iv.Outcome != load.OK {
				t.Errorf("got interval %+v", iv)
			}
			return
		}
		measures = append(measures, iv.Measure)
	})
	if err != nil || damaged > 0 || len(r.Warnings) > 0 {
		t.Fatal(damaged, err, r.Warnings)
	}
	want := map[string]uint64{"post": 2, "created-to-watch": 2, names[2]: 3, "": 4}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values by phase (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Measure{Response, Response}, measures); d != "" {
		t.Error(d)
	}
	if len(r.Trials[0].Counts) != 1 || r.Trials[0].Counts[0].Count != 2 {
		t.Errorf("phases are counted as calls: %+v", r.Trials[0].Counts)
	}
	// The format's own rule: no comma, blank or line break within a tag.
	b, err := os.ReadFile(filepath.Join(w.Dir(), LatencyFile))
	must(t, err)
	tags := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if tag, ok := strings.CutPrefix(line, "Tag="); ok {
			tag, _, _ = strings.Cut(tag, ",")
			tags[tag[strings.LastIndexByte(tag, '|')+1:]] = true
		}
	}
	if d := cmp.Diff([]string{
		"phase.", "phase.a+b%2Cc%7Cd%0A%25%3D%C3%A9", "phase.created-to-watch", "phase.post",
		"response",
	}, slices.Sorted(maps.Keys(tags))); d != "" {
		t.Error(d)
	}
}

func testServed() Served {
	return Served{
		Treatment: "a", Restarted: true,
		Served: area.Served{
			Started: 1.79e9,
			Requests: []area.ServedRequests{{
				Verb: "POST", Resource: "pods/binding", Scope: "resource", Count: 10, DryRuns: 3, Seconds: 0.5, SLICount: 7,
				SLISeconds: 0.25,
				Buckets:    []area.ServedBucket{{LE: 0.005, Count: 4}, {LE: 60, Count: 10}},
				SLIBuckets: []area.ServedBucket{{LE: 0.05, Count: 7}},
			}},
			Parts: []area.ServedPart{{Part: "admission", Name: "x", Action: "validate CREATE", Count: 2, Seconds: 1e-6}},
		},
	}
}

func TestServed(t *testing.T) {
	w, _ := create(t)
	failed := Served{Treatment: "a", Error: "forbidden"}
	must(t, w.TrialBegin(begin("a", 0)), w.Served(testServed()), w.Served(failed),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	r := open(t, w.Dir())
	if len(r.Unknown) > 0 || len(r.Warnings) > 0 {
		t.Errorf("unknown %v, warnings %v", r.Unknown, r.Warnings)
	}
	if d := cmp.Diff([]Served{testServed(), failed}, r.Trials[0].Served); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
}
