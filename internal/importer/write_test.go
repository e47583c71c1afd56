package importer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
	"tare/internal/importer"
	"tare/internal/record"
)

// TestWrite: the record contains the values that were read, and says that they were not interleaved.
func TestWrite(t *testing.T) {
	for _, name := range []string{"hyperfine.json", "jmh.json", "k6.json", "go-before.txt", "vegeta-report.json"} {
		d := readSample(t, name)
		dir, err := d.Write(t.TempDir(), record.Header{Experiment: record.Experiment{Name: "n", SHA256: "5a"}},
			clock.System{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Warnings) > 0 || !r.Plan.Unblocked || r.Header.Area != importer.Area || r.Header.Question != "compare" ||
			r.Finish == nil || r.Header.Experiment.SHA256 != "5a" {
			t.Errorf("%s: got header %+v, plan %+v, warnings %q", name, r.Header, r.Plan, r.Warnings)
		}
		if !d.Started.IsZero() && !r.Header.Started.Equal(d.Started) {
			t.Errorf("%s: started %v, want %v", name, r.Header.Started, d.Started)
		}
		type key struct{ treatment, operation, metric string }
		want, got := map[key][]importer.Repetition{}, map[key][]importer.Repetition{}
		for _, s := range d.Series {
			want[key{s.Treatment.ID, s.Operation, s.Metric}] = s.Repetitions
		}
		for i, x := range r.Trials {
			if !x.Complete() || x.Index != i {
				t.Errorf("%s: trial %d has index %d, complete %v", name, i, x.Index, x.Complete())
			}
			for _, b := range x.Batches {
				k := key{b.Treatment, b.Operation, b.Metric}
				if b.Block != len(got[k]) {
					t.Errorf("%s: %v has block %d where %d comes next", name, k, b.Block, len(got[k]))
				}
				got[k] = append(got[k], importer.Repetition{N: b.N, Values: b.Values})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
