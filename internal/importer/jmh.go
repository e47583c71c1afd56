package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// jmhResult is one benchmark of JMH's JSON. RawData has the score of every iteration of every fork; mode "sample" has
// histograms instead, of [value, count] by iteration.
type jmhResult struct {
	Version   string                     `json:"jmhVersion"`
	JDK       string                     `json:"jdkVersion"`
	VM        string                     `json:"vmName"`
	Benchmark string                     `json:"benchmark"`
	Mode      string                     `json:"mode"`
	Params    map[string]json.RawMessage `json:"params"`
	Primary   struct {
		Score     json.RawMessage `json:"score"` // "NaN" is a string
		Unit      string          `json:"scoreUnit"`
		Raw       forks           `json:"rawData"`
		Histogram json.RawMessage `json:"rawDataHistogram"` // [][][][]float64, of millions of pairs
	} `json:"primaryMetric"`
	Secondary map[string]json.RawMessage `json:"secondaryMetrics"`
}

// forks are the scores of each iteration, by fork.
type forks [][]float64

// UnmarshalJSON implements json.Unmarshaler. It refuses more forks than a record has repetitions, and of few forks,
// whose iterations are the repetitions, more iterations.
func (f *forks) UnmarshalJSON(b []byte) error {
	n, scores := bytes.Count(b, []byte("["))-1, bytes.Count(b, []byte(","))+1
	if n > maxRepeats {
		return fmt.Errorf("rawData has %d forks, and %d can be imported", n, maxRepeats)
	}
	if n < fewForks && scores > maxRepeats {
		return fmt.Errorf("rawData has %d iterations, and %d can be imported", scores, maxRepeats)
	}
	return json.Unmarshal(b, (*[][]float64)(f))
}

// fewForks is the number of forks from which on the forks are the repetitions: five against five is the least that can
// decide at the level of a look, with a two-sample rank test.
const fewForks = 5

func (p *parser) jmh(results *[]jmhResult) error {
	p.data.Unit = "fork, or iteration where there are fewer than 5 forks"
	for i := range *results {
		r := &(*results)[i]
		if r.Benchmark == "" {
			return fmt.Errorf("read %s: result %d has no benchmark: write the file again with %s", p.file, i+1, producers[JMH])
		}
		if r.Version != "" {
			p.note("JMH %s, %s %s", r.Version, r.VM, r.JDK)
			p.made("JMH", r.Version)
			p.made("JVM", r.VM+" "+r.JDK)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Secondary)) {
			p.ignore("secondary metric " + strings.TrimPrefix(name, "·"))
		}
		if err := p.jmhBenchmark(r); err != nil {
			return err
		}
	}
	return nil
}

// jmhBenchmark adds one benchmark. Iterations within one fork share a process, its memory layout and its JIT's choices,
// so that they are no independent repetitions: the forks are, where there are enough of them.
func (p *parser) jmhBenchmark(r *jmhResult) error {
	name, scale, err := jmhUnit(r.Primary.Unit)
	if err != nil {
		p.ignore(fmt.Sprintf("%s in %q: %v", r.Benchmark, r.Primary.Unit, err))
		return nil
	}
	operation := r.Benchmark
	forks := [][]float64(r.Primary.Raw)
	if r.Mode == "sample" {
		operation += " (sampled)" // single calls: not to be mixed with averages over an iteration
	}
	if len(forks) == 0 {
		if forks, err = unfold(r.Primary.Histogram); err != nil {
			return p.finding(1, "write the file again with "+producers[JMH], "rawDataHistogram of %s is not what JMH writes: %v",
				r.Benchmark, err)
		}
	}
	if len(forks) < fewForks {
		p.warn("%s ran in %s: its iterations are taken as repetitions, and differences between processes are not "+
			"seen; use -f 5 or more", r.Benchmark, unit.Count(len(forks), "fork"))
	}
	t := treatment(levelsOf(r.Params))
	// other threads or another mode: not to be mixed
	for n := 2; p.index[seriesKey{t.ID, plain(operation), name}] != nil; n++ {
		operation = fmt.Sprintf("%s (%d)", r.Benchmark, n)
	}
	for n, fork := range forks {
		values := make([]float64, len(fork))
		for i, v := range fork {
			values[i] = v * scale
			if !good(values[i]) {
				return fmt.Errorf("read %s: %s, fork %d, iteration %d: %v %s is no result", p.file, r.Benchmark, n+1, i+1, v,
					r.Primary.Unit)
			}
		}
		if len(values) == 0 {
			continue
		}
		if len(forks) >= fewForks {
			if err := p.add(t, operation, name, Repetition{N: 1, Values: values}); err != nil {
				return err
			}
			continue
		}
		for _, v := range values {
			if err := p.add(t, operation, name, Repetition{N: 1, Values: []float64{v}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// jmhUnit reads "ns/op" as seconds a call and "ops/ms" as calls a second.
func jmhUnit(u string) (name string, scale float64, err error) {
	per := map[string]float64{
		"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "hr": 3600,
		"h": 3600, "day": 86400,
	}
	if t, ok := strings.CutSuffix(u, "/op"); ok && per[t] > 0 {
		return metric.Wall.Name, per[t], nil
	}
	if t, ok := strings.CutPrefix(u, "ops/"); ok && per[t] > 0 {
		return metric.Goodput.Name, 1 / per[t], nil
	}
	return "", 0, errors.New("no metric of a record has this unit")
}

// maxSampled is how many pairs, iterations and forks the histograms of one benchmark may have: five forks of ten
// iterations come to a hundred thousand.
const maxSampled = 2_000_000

// unfold turns the histograms of an iteration into the median of what it sampled, since a call in the middle of an
// iteration is no repetition of its own. It decodes one iteration at a time.
func unfold(histogram json.RawMessage) ([][]float64, error) {
	if len(histogram) == 0 {
		return nil, nil
	}
	if n := bytes.Count(histogram, []byte("[")); n > maxSampled {
		return nil, fmt.Errorf("it has %d pairs, iterations and forks, and %d can be imported", n, maxSampled)
	}
	var raw [][]json.RawMessage
	if err := json.Unmarshal(histogram, &raw); err != nil {
		return nil, err
	}
	forks := make([][]float64, 0, len(raw))
	for _, fork := range raw {
		var medians []float64
		for _, iteration := range fork {
			var pairs [][]float64
			if err := json.Unmarshal(iteration, &pairs); err != nil {
				return nil, err
			}
			if m, ok := histogramMedian(pairs); ok {
				medians = append(medians, m)
			}
		}
		forks = append(forks, medians)
	}
	return forks, nil
}

// histogramMedian is the nearest-rank median of [value, count] pairs.
func histogramMedian(pairs [][]float64) (float64, bool) {
	total := 0.0
	sorted := make([][2]float64, 0, len(pairs))
	for _, pair := range pairs {
		if len(pair) == 2 && good(pair[1]) {
			sorted = append(sorted, [2]float64{pair[0], pair[1]})
			total += pair[1]
		}
	}
	slices.SortFunc(sorted, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	seen := 0.0
	for _, pair := range sorted {
		if seen += pair[1]; seen > 0 && seen >= total/2 {
			return pair[0], true
		}
	}
	return 0, false
}
