//go:build linux

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
	"tare/internal/unit"
)

// openCell is one way to offer load, with its runs.
type openCell struct {
	job  Job
	runs []Outcome
}

func openCells(port int, length time.Duration) []*openCell {
	var cells []*openCell
	for _, rate := range []float64{1000, 10000, 40000} {
		for _, spin := range []time.Duration{0, 60 * time.Microsecond} {
			for _, precise := range []bool{false, true} {
				cells = append(cells, &openCell{job: Job{
					Engine: load.Fast, Port: port, Rate: rate, Length: length, Spin: spin, Precise: precise, Timeout: 5 * time.Second,
				}})
			}
		}
	}
	return cells
}

// openLoop measures how late the engine sends, and what a request costs, at fixed rates.
func openLoop(ctx context.Context, h *host, o Options, w *table) error {
	rounds, length := 3, 2*time.Second
	if o.Short {
		rounds, length = 1, time.Second
	}
	srv, err := h.serve(ctx, Server{Mode: Quick})
	if err != nil {
		return err
	}
	defer srv.stop()
	w.line("## Open loop: lateness of the sends\n\nLateness is sent − max(intended, a connection was free). %s "+
		"of %v, the median of each.\n", unit.Count(rounds, "round"), length)
	cells := openCells(srv.Port, length)
	return h.measureOpen(ctx, cells, rounds, rand.New(rand.NewPCG(o.Seed, 2)), w)
}

// measureOpen runs the cells in interleaved rounds.
func (h *host) measureOpen(ctx context.Context, cells []*openCell, rounds int, rng *rand.Rand, w *table) error {
	for range rounds {
		for _, k := range rng.Perm(len(cells)) {
			r, _, err := h.run(ctx, cells[k].job)
			if err != nil {
				return err
			}
			cells[k].runs = append(cells[k].runs, r)
		}
	}
	rows := [][]string{{
		"engine", "rate", "reaping", "spin", "late p50 µs", "p99", "max", "µs CPU/request",
		"sent ÷ offered",
	}}
	for _, c := range cells {
		rows = append(rows, c.row())
	}
	w.rows(rows)
	return nil
}

func (c *openCell) row() []string {
	mid := func(format string, f func(Outcome) float64) string {
		var v []float64
		for _, r := range c.runs {
			v = append(v, f(r))
		}
		return fmt.Sprintf(format, stat.Median(v))
	}
	reaping, spin := "lazy", "–"
	if c.job.Precise {
		reaping = "precise"
	}
	if c.job.Spin > 0 {
		spin = c.job.Spin.String()
	}
	engine := string(c.job.Engine)
	if c.job.TLS {
		engine += ", TLS"
	}
	if c.job.Engine == load.Std {
		reaping = "–"
	}
	return []string{
		engine, fmt.Sprintf("%.0f/s", c.job.Rate), reaping, spin,
		mid("%.1f", func(r Outcome) float64 { return r.LateP50 }),
		mid("%.0f", func(r Outcome) float64 { return r.LateP99 }),
		mid("%.0f", func(r Outcome) float64 { return r.LateMax }),
		mid("%.1f", func(r Outcome) float64 { return r.CPU / float64(r.Offered) * 1e6 }),
		mid("%.4f", func(r Outcome) float64 { return float64(r.Sent) / float64(r.Offered) }),
	}
}
