package run

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
)

// weights are the shares of the operations in a mix.
func weights(ops []load.Operation) map[string]float64 {
	total, out := 0.0, map[string]float64{}
	for _, op := range ops {
		total += float64(op.Weight)
	}
	for _, op := range ops {
		out[op.Name] = float64(op.Weight) / total
	}
	return out
}

// TestTwinsHaveTheirShare: trespasses are the share of the calls that was asked for, each operation's as much as the
// operation itself, and the mix of the others does not change.
func TestTwinsHaveTheirShare(t *testing.T) {
	mix := []load.Operation{{Name: "a", Weight: 3}, {Name: "b", Weight: 1}, {Name: "c", Weight: 4}}
	twins := []load.Operation{
		{Name: "a1", Twin: "a"}, {Name: "a2", Twin: "a"}, {Name: "b1", Twin: "b"}, {Name: "x1", Twin: "x"},
	}
	for _, share := range []float64{0.001, 0.02, 0.5} {
		ops, err := addTwins(mix, twins, share)
		if err != nil {
			t.Fatal(err)
		}
		got := weights(ops)
		for name, want := range map[string]float64{
			"a": (1 - share) * 3 / 8, "b": (1 - share) / 8, "c": (1 - share) / 2,
			"a1": share * 3 / 8, "a2": share * 3 / 8, "b1": share / 4, "x1": 0,
		} {
			if math.Abs(got[name]-want) > 0.02*want+1e-5 {
				t.Errorf("share %v: %s is %.5f of the calls, want %.5f", share, name, got[name], want)
			}
		}
	}
	if _, err := addTwins(mix, twins[3:], 0.1); err == nil || !strings.Contains(err.Error(), "no operation of the mix") {
		t.Errorf("without twins of the mix: %v", err)
	}
}

// TestMixesKeepTheirTrespasses: where nobody asked for another mix, a trespass that it names keeps its weight, and
// those that it leaves out have the share.
func TestMixesKeepTheirTrespasses(t *testing.T) {
	for _, c := range []struct {
		name    string
		weights map[string]int
		want    map[string]float64
		twins   string
	}{
		{
			"left out",
			map[string]int{"permit": 3, "other": 2},
			map[string]float64{"permit": 0.594, "other": 0.396, "deny": 0.01},
			"deny",
		},
		{"named", map[string]int{"permit": 3, "deny": 1}, map[string]float64{"permit": 0.75, "deny": 0.25}, "deny"},
		{"nothing else", map[string]int{"deny": 1}, map[string]float64{"deny": 1}, "deny"},
		{"nothing to refuse", map[string]int{"other": 1}, map[string]float64{"other": 1}, ""},
	} {
		x := &Stage{
			Request: Request{Load: Load{Weights: c.weights, Trespass: 0.01, KeepMix: true}}, Target: mixed{},
		}
		ops, err := x.Operations(design.Treatment{ID: "default"})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, weights(ops), cmpopts.EquateApprox(0.001, 0)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		for _, op := range ops {
			if (op.Twin != "") != (op.Name == c.twins) {
				t.Errorf("%s: %s is the twin of %q", c.name, op.Name, op.Twin)
			}
		}
	}
}

// mixed has a mix of which one operation must be refused.
type mixed struct{ area.Target }

func (mixed) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "permit", Weight: 1}, {Name: "other", Weight: 1}, {Name: "deny", Weight: 1}}, nil
}

func (m mixed) Can() area.Can { return area.Can{Trespass: m.Trespasses} }

func (mixed) Trespasses(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "deny", Twin: "permit"}}, nil
}

// yes permits everything, and explains nothing.
type yes struct{}

func (yes) ConnKey(uint64) int                     { return 0 }
func (yes) Render(dst []byte, _ uint64) []byte     { return dst }
func (yes) Explain(uint64, int, []byte) int        { return -1 }
func (yes) Check(uint64, int, []byte) load.Outcome { return load.Permitted }

// standing is a stream that stands still.
type standing struct{ load.Stream }

func (standing) Progress() load.Progress { return load.Progress{Now: 5, InFlight: 3} }

// TestBreachesAreKept: a breach has what the operation tells of it, the first hundred are kept, and none of an
// operation that must be permitted.
func TestBreachesAreKept(t *testing.T) {
	var b breaches
	ops := b.watch([]load.Operation{
		{Name: "a", Wire: yes{}},
		{Name: "a1", Twin: "a", Wire: yes{}, Describe: func(uint64, int, []byte) (string, string) {
			return "asked", "granted"
		}},
	})
	ops[1].Wire.Check(1, 200, nil) // before the stream is open
	b.follow(standing{})
	for i := range uint64(200) {
		ops[0].Wire.Check(i, 200, nil)
		if got := ops[1].Wire.Check(i, 200, []byte("secret")); got != load.Permitted {
			t.Fatalf("the outcome becomes %v", got)
		}
	}
	if got := ops[1].Wire.Explain(0, 200, nil); got != -1 {
		t.Errorf("a wire that explains nothing explains %d", got)
	}
	kept := b.take()
	if len(kept) != keptBreaches || len(b.take()) != 0 {
		t.Fatalf("%d breaches are kept", len(kept))
	}
	x := kept[7]
	if x.Operation != "a1" || x.Call != 7 || x.Status != 200 || x.Request != "asked" || x.Answer != "granted" ||
		x.AnswerBytes != 6 || x.At != 5 || x.InFlight != 3 {
		t.Errorf("a breach is kept as %+v", x)
	}
}

// no refuses everything.
type no struct{ yes }

func (no) Explain(uint64, int, []byte) int        { return -1 }
func (no) Check(uint64, int, []byte) load.Outcome { return load.Denied }

// BenchmarkCheck is what watching costs a trespass that is refused, beside the check itself.
func BenchmarkCheck(b *testing.B) {
	var kept breaches
	for name, w := range map[string]load.Wire{
		"plain": no{}, "watched": kept.watch([]load.Operation{{Twin: "a", Wire: no{}}})[0].Wire,
	} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				w.Check(uint64(i), 403, nil)
			}
		})
	}
}
