package importer

import (
	"encoding/json"
	"fmt"
	"strings"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/unit"
)

// command is the operation of hyperfine's results; each command line is a treatment.
const command = "command"

// hyperfineFile is the export of hyperfine 1 and, with measurements, of hyperfine 2. Times are in seconds.
type hyperfineFile struct {
	Metadata struct {
		Version string `json:"hyperfine_version"`
	} `json:"metadata"`
	Results []struct {
		Command    string                     `json:"command"`
		Name       string                     `json:"name"`
		Median     *float64                   `json:"median"`
		Times      []float64                  `json:"times"`
		ExitCodes  []*int                     `json:"exit_codes"`
		Parameters map[string]json.RawMessage `json:"parameters"`
		// Measurements are the results of hyperfine 2.
		Measurements []struct {
			Wall     *hyperfineValue `json:"time_wall_clock"`
			CPU      *hyperfineValue `json:"time_cpu"`
			ExitCode *int            `json:"exit_code"`
		} `json:"measurements"`
	} `json:"results"`
}

type hyperfineValue struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// hyperfine imports each command as a treatment and each run as a repetition.
func (p *parser) hyperfine(f *hyperfineFile) error {
	p.data.Unit = "run"
	if v := f.Metadata.Version; v != "" {
		p.note("hyperfine %s", v)
	}
	for i := range f.Results {
		r := &f.Results[i]
		name := r.Name
		if name == "" {
			name = r.Command
		}
		if name == "" {
			name = fmt.Sprintf("result %d", i+1)
		}
		t := treatment(levelsOf(r.Parameters))
		t.ID = p.unused(name)
		codes := r.ExitCodes
		values := map[string][]float64{metric.Wall.Name: r.Times}
		for _, m := range r.Measurements {
			keep(values, metric.Wall.Name, m.Wall)
			keep(values, metric.CPU.Name, m.CPU)
			codes = append(codes, m.ExitCode)
		}
		if err := p.runs(t, values, r.Median); err != nil {
			return err
		}
		if err := p.exits(t, codes, len(values[metric.Wall.Name])); err != nil {
			return err
		}
	}
	return nil
}

// exits adds the share of runs that failed: for each time by itself, if there are as many codes, else of all. A run
// without a code did not end well as far as the file says.
func (p *parser) exits(t design.Treatment, codes []*int, times int) error {
	n, failed := 0, make([]float64, len(codes))
	for i, c := range codes {
		if c == nil || *c != 0 {
			n++
			failed[i] = 1
		}
	}
	if len(codes) == 0 {
		return nil // the export has no exit codes
	}
	if n > 0 {
		p.warn("%s: %s ended with another exit code than 0: a run that failed took no time that keeps a limit",
			t.ID, unit.Count(n, "run"))
	}
	missing := max(0, times-len(codes))
	if missing > 0 {
		p.warn("%s: %s without an exit code count as failed", t.ID, unit.Count(missing, "run"))
	}
	for i := range times {
		one := Repetition{N: 1, Values: []float64{float64(n+missing) / float64(len(codes)+missing)}}
		if len(codes) == times {
			one.Values[0] = failed[i]
		}
		if err := p.add(t, command, metric.Error.Name, one); err != nil {
			return err
		}
	}
	return nil
}

// unused returns the name, with a number if an earlier result has it: the same command twice was two measurements.
func (p *parser) unused(name string) string {
	for n := 2; ; n++ {
		if _, taken := p.treatments[plain(name)]; !taken {
			return name
		}
		name = fmt.Sprintf("%s (%d)", strings.TrimSuffix(name, fmt.Sprintf(" (%d)", n-1)), n)
	}
}

// keep appends a value in seconds.
func keep(values map[string][]float64, name string, v *hyperfineValue) {
	if v != nil && v.Unit == "second" {
		values[name] = append(values[name], v.Value)
	}
}

// runs adds every run of a command, or its median if the export has no runs.
func (p *parser) runs(t design.Treatment, values map[string][]float64, median *float64) error {
	if len(values[metric.Wall.Name]) == 0 && median != nil {
		p.warn("%s: summary only, without the times of single runs: no interval", t.ID)
		values[metric.Wall.Name] = []float64{*median}
	}
	if len(values[metric.CPU.Name]) == 0 {
		p.ignore("user and system time: only their mean is given, without single runs")
	}
	for _, name := range []string{metric.Wall.Name, metric.CPU.Name} {
		for n, v := range values[name] {
			if !good(v) {
				return fmt.Errorf("read %s: %s, run %d: %v s is no time", p.file, t.ID, n+1, v)
			}
			if err := p.add(t, command, name, Repetition{N: 1, Values: []float64{v}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// levelsOf returns the parameters of a scan; nil if there are none.
func levelsOf(parameters map[string]json.RawMessage) map[string]string {
	if len(parameters) == 0 {
		return nil
	}
	levels := map[string]string{}
	for k, v := range parameters {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		levels[k] = s
	}
	return levels
}
