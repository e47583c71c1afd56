package gobench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/internal/build"
)

// jmh runs benchmarks of the Java Microbenchmark Harness from the jar that holds it.
type jmh struct{}

// jmhIterations is how many iterations warm up, and how many are measured.
const jmhIterations = 5

func (jmh) says(p *Plan) string {
	return fmt.Sprintf("each value is the mean of one call in a JVM of its own (JMH with -bm avgt -f 1): %d iterations "+
		"of %v warm up and are not measured, %d of %v are; what the benchmark's annotations say of modes, forks and "+
		"iterations is not used", jmhIterations, p.Warm/jmhIterations, jmhIterations, p.Span/jmhIterations)
}

// A jmhResult is one element of JMH's JSON.
type jmhResult struct {
	Benchmark string
	Mode      string
	VMName    string
	VMVersion string
	Params    map[string]string
	Primary   struct {
		Score     json.RawMessage
		ScoreUnit string
	} `json:"primaryMetric"`
}

// list runs each benchmark for a moment: only so are its parameters known, and one that fails is found.
func (t jmh) list(ctx context.Context, o Options, r runner) (l listing, err error) {
	if _, _, err := o.patterns(); err != nil {
		return l, err
	}
	args := []string{"-wi", "0", "-i", "1", "-r", "10ms"}
	if o.Skip != "" {
		args = append(args, "-e", o.Skip)
	}
	results, err := t.run(ctx, r, append(args, o.Match)...)
	if err = errors.Join(err, r.clean()); err != nil {
		return l, err
	}
	for _, x := range results {
		b := Benchmark{Package: whole, Name: x.name(), Calls: 1, Method: x.Benchmark, Params: x.Params}
		for k, v := range x.Params {
			if strings.ContainsAny(v, ",") {
				return l, fmt.Errorf("%s: JMH cannot be asked for the parameter %s=%s alone, since it has a comma; leave it "+
					"out with -skip", b.Name, k, v)
			}
		}
		if x.Mode == "ss" {
			return l, fmt.Errorf("%s times a single cold call (SingleShotTime), which has no mean; leave it out with -skip",
				b.Name)
		}
		if l.index(b) < 0 { // a benchmark of several modes has several results
			l.names = append(l.names, b)
		}
		l.on = x.VMName + " " + x.VMVersion
	}
	return l, nil
}

// name returns the method and its parameters: org.example.Work.sized/size=4.
func (x *jmhResult) name() string {
	parts := []string{x.Benchmark}
	for _, k := range sorted(x.Params) {
		parts = append(parts, k+"="+x.Params[k])
	}
	return strings.Join(parts, "/")
}

func (t jmh) batch(ctx context.Context, p *Plan, b Benchmark, r runner) (float64, error) {
	n := strconv.Itoa(jmhIterations)
	args := []string{
		"-bm", "avgt", "-tu", "ns", "-wi", n, "-w", milliseconds(p.Warm), "-i", n, "-r", milliseconds(p.Span),
	}
	for _, k := range sorted(b.Params) {
		args = append(args, "-p", k+"="+b.Params[k])
	}
	results, err := t.run(ctx, r, append(args, "^"+regexp.QuoteMeta(b.Method)+"$")...)
	if err != nil {
		return 0, err
	}
	if len(results) != 1 || results[0].name() != b.Name || !maps.Equal(results[0].Params, b.Params) {
		return 0, fmt.Errorf("%d results were written, not one of this benchmark", len(results))
	}
	x := &results[0]
	ns, err := strconv.ParseFloat(string(x.Primary.Score), 64)
	if err != nil || !(ns > 0) || math.IsInf(ns, 0) || x.Primary.ScoreUnit != "ns/op" || x.Mode != "avgt" {
		return 0, fmt.Errorf("its result is %.40s %q in mode %q, and no time of one call", x.Primary.Score,
			x.Primary.ScoreUnit, x.Mode)
	}
	return ns / 1e9, nil
}

// milliseconds returns the length of one iteration as JMH takes it.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, (d/jmhIterations).Milliseconds()), 10) + "ms"
}

// run runs JMH with one fork, and returns what it has written. Its lock and temporary files are in the folder, too.
func (jmh) run(ctx context.Context, r runner, args ...string) (results []jmhResult, err error) {
	java, ok := build.Look("java", os.LookupEnv)
	if !ok {
		return nil, wrong("there is no java in PATH; install a Java runtime")
	}
	file := filepath.Join(r.folder, "result.json")
	all := slices.Concat([]string{
		"-Djava.io.tmpdir=" + r.folder, "-jar", r.test.File, "-f", "1", "-wf", "0", "-foe", "true",
		"-rf", "json", "-rff", file,
	}, args)
	out, err := r.run(ctx, nil, java, all...)
	if err != nil {
		return nil, err
	}
	text, err := readResult(file)
	if err != nil {
		return nil, fmt.Errorf("JMH wrote no result: %s", reason(string(out.end)))
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("JMH's result: %w", err)
	}
	return results, nil
}
