package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tare/internal/stat"
	terminal "tare/internal/term"
)

// Hyperfine writes the times of blocks as hyperfine's --export-json does (https://github.com/sharkdp/hyperfine), for
// the scripts that read it: one result for each treatment and operation, with one time a block, in seconds a call: the
// block's median. CPU time by user and system and exit codes are not known and left out. ErrNoBlocks where nothing was
// measured in blocks; ErrNoTimes where no time was; ErrFailedCalls where failed calls leave one untold.
func Hyperfine(w io.Writer, r *Report) error {
	if err := r.independent(); err != nil {
		return fmt.Errorf("hyperfine: %w", err)
	}
	all, err := r.series()
	if err != nil {
		return fmt.Errorf("hyperfine: %w", err)
	}
	var out struct {
		Results []hyperfineResult `json:"results"`
	}
	for i := range all {
		s := &all[i]
		if i := slices.IndexFunc(s.untold, isElapsed); i >= 0 {
			return fmt.Errorf("%w: %s", ErrFailedCalls, s.untold[i].Untold)
		}
		b := s.elapsed()
		if b == nil {
			continue
		}
		times := b.measuredValues()
		if len(times) == 0 {
			continue
		}
		res := hyperfineResult{Command: r.command(s), Times: times, Parameters: map[string]string{}}
		res.summarize()
		for _, f := range r.factors(s.treatment) {
			res.Parameters[sanitize(f[0])] = sanitize(f[1])
		}
		if s.operation != "" {
			res.Parameters["operation"] = sanitize(s.operation)
		}
		out.Results = append(out.Results, res)
	}
	if len(out.Results) == 0 {
		return ErrNoTimes
	}
	return writeJSON(w, "hyperfine", out)
}

type hyperfineResult struct {
	Command string  `json:"command"`
	Mean    float64 `json:"mean"`
	// Stddev is null for a single time, as in hyperfine's own files.
	Stddev     *float64          `json:"stddev"`
	Median     float64           `json:"median"`
	Min        float64           `json:"min"`
	Max        float64           `json:"max"`
	Times      []float64         `json:"times"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// summarize computes what hyperfine computes: the sample's mean, standard deviation (n − 1), median and range.
func (h *hyperfineResult) summarize() {
	n := float64(len(h.Times))
	h.Min, h.Max = math.Inf(1), math.Inf(-1)
	for _, t := range h.Times {
		h.Mean += t / n
		h.Min, h.Max = min(h.Min, t), max(h.Max, t)
	}
	if n > 1 {
		ss := 0.0
		for _, t := range h.Times {
			ss += (t - h.Mean) * (t - h.Mean)
		}
		h.Stddev = new(math.Sqrt(ss / (n - 1)))
	}
	h.Median = stat.Median(h.Times)
}

// command names a series as a person would: the operation, and the treatment.
func (r *Report) command(s *series) string {
	return sanitize(strings.TrimSpace(s.operation + " " + s.treatment.ID))
}

func writeJSON(w io.Writer, format string, v any) error {
	text, err := indented(v)
	if err != nil {
		return fmt.Errorf("%s: %w", format, err)
	}
	_, err = io.WriteString(w, terminal.JSON(text))
	return err
}
