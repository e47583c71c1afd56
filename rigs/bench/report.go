//go:build linux

package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// Options say how much to measure.
type Options struct {
	Short bool   // fewer and shorter rounds
	Seed  uint64 // of the order of the rounds
	Only  string // one of "closed", "open", "tls", "stall", "backlog"; empty: all
}

// Report measures everything and writes tables, in Markdown, to out. It starts this same program for servers and
// generators.
func Report(ctx context.Context, o Options, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	h := &host{self: self}
	var how string
	h.server, h.client, how = pinning()
	w := &table{out: out}
	w.line("%s.\n", how)
	for _, part := range []struct {
		name string
		run  func(context.Context, *host, Options, *table) error
	}{{"closed", closedLoop}, {"open", openLoop}, {"tls", tlsLoops}, {"stall", stall}, {"backlog", backlog}} {
		if o.Only != "" && o.Only != part.name {
			continue
		}
		if err := part.run(ctx, h, o, w); err != nil {
			return fmt.Errorf("bench %s: %w", part.name, err)
		}
	}
	return w.err
}

// table writes Markdown with aligned columns.
type table struct {
	out io.Writer
	err error
}

func (t *table) line(format string, a ...any) {
	if _, err := fmt.Fprintf(t.out, format+"\n", a...); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *table) rows(rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	rule := make([]string, len(width))
	for i, n := range width {
		rule[i] = strings.Repeat("-", n)
	}
	for _, r := range slices.Insert(slices.Clone(rows), 1, rule) {
		for i, c := range r {
			r[i] = c + strings.Repeat(" ", width[i]-len([]rune(c)))
		}
		t.line("| %s |", strings.Join(r, " | "))
	}
	t.line("")
}

// closedLoop compares requests per CPU-second of the generator with wrk's, in interleaved rounds.
func closedLoop(ctx context.Context, h *host, o Options, w *table) error {
	rounds, length := 5, 3*time.Second
	if o.Short {
		rounds, length = 3, time.Second
	}
	srv, err := h.serve(ctx, Server{Mode: Quick})
	if err != nil {
		return err
	}
	defer srv.stop()
	generators := []generator{
		{name: "fast", engine: load.Fast, port: srv.Port},
		{name: "std", engine: load.Std, port: srv.Port},
	}
	if wrk, _ := exec.LookPath("wrk"); wrk != "" {
		generators = append(generators, generator{name: "wrk", wrk: wrk, port: srv.Port})
	} else {
		w.line("wrk is not installed: no ratios.\n")
	}
	w.line("## Closed loop: requests per generator CPU-second\n\n%d interleaved rounds of %v, in random order. Ratios "+
		"are medians over the rounds,\nwith their range. Engines are measured once their pool is full; wrk from its start.\n",
		rounds, length)
	return h.compareClosed(ctx, generators, "wrk", rounds, length, o.Seed, w)
}

// A generator is what a closed loop is measured with: an engine, or wrk.
type generator struct {
	name   string
	engine load.Engine
	wrk    string // its path
	tls    bool
	port   int // of its server
}

// compareClosed measures generators in interleaved rounds, and compares each with the one of that name, if there is
// one.
func (h *host) compareClosed(ctx context.Context, generators []generator, with string, rounds int, length time.Duration,
	seed uint64, w *table,
) error {
	rows := [][]string{{
		"connections", "generator", "requests/s", "requests/CPU-s", "µs CPU/request", "ratio to " + with,
		"range",
	}}
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, conns := range []int{50, 256} {
		perCPU, perSecond := map[string][]float64{}, map[string][]float64{}
		for range rounds {
			for _, k := range rng.Perm(len(generators)) {
				g := generators[k]
				c, s, err := h.closedRun(ctx, g, conns, length)
				if err != nil {
					return err
				}
				perCPU[g.name] = append(perCPU[g.name], c)
				perSecond[g.name] = append(perSecond[g.name], s)
			}
		}
		for _, g := range generators {
			rows = append(rows, closedRow(conns, g.name, perSecond[g.name], perCPU[g.name], perCPU[with]))
		}
	}
	w.rows(rows)
	return nil
}

func closedRow(conns int, name string, perSecond, perCPU, with []float64) []string {
	ratio, spread := "–", "–"
	if len(with) > 0 {
		mid, lo, hi := ratios(perCPU, with)
		ratio, spread = fmt.Sprintf("%.2f", mid), fmt.Sprintf("%.2f–%.2f", lo, hi)
	}
	return []string{
		fmt.Sprint(conns), name, fmt.Sprintf("%.0f", stat.Median(perSecond)), fmt.Sprintf("%.0f", stat.Median(perCPU)),
		fmt.Sprintf("%.2f", 1e6/stat.Median(perCPU)), ratio, spread,
	}
}

func (h *host) closedRun(ctx context.Context, g generator, conns int, length time.Duration) (perCPU,
	perSecond float64, err error,
) {
	if g.wrk != "" {
		scheme := "http"
		if g.tls {
			scheme = "https"
		}
		n, u, err := h.wrk(ctx, g.wrk, scheme, g.port, conns, length)
		return float64(n) / u.cpu, float64(n) / length.Seconds(), err
	}
	r, _, err := h.run(ctx, Job{
		Engine: g.engine, Port: g.port, TLS: g.tls, Workers: conns, MaxConns: conns, Length: length,
		Timeout: 5 * time.Second,
	})
	if err == nil && r.Good != r.Ended {
		err = fmt.Errorf("%s: %d of %d answers were wrong", g.name, r.Ended-r.Good, r.Ended)
	}
	return float64(r.Offered) / r.CPU, float64(r.Offered) / r.Seconds, err
}

// ratios of the rounds, which are paired.
func ratios(a, b []float64) (mid, lo, hi float64) {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return stat.Median(r), slices.Min(r), slices.Max(r)
}

// stall compares what the engine reports with what the server's schedule makes of it: a generator that waits for
// answers before it sends on (coordinated omission) misses most of a stall.
func stall(ctx context.Context, h *host, o Options, w *table) error {
	s := Server{Mode: Stall, Period: 10 * time.Second, StallFor: 2 * time.Second}
	length := 20 * time.Second
	if o.Short {
		s.Period, s.StallFor, length = time.Second, 200*time.Millisecond, 4*time.Second
	}
	w.line("## A server that stalls for %v in every %v, 1,000/s offered for %v\n\nTruth is computed from the server's "+
		"schedule.\n", s.StallFor, s.Period, length)
	rows := [][]string{{"engine", "quantile", "reported ms", "truth ms", "difference µs", "relative"}}
	for _, engine := range []load.Engine{load.Fast, load.Std} {
		srv, err := h.serve(ctx, s)
		if err != nil {
			return err
		}
		r, _, err := h.run(ctx, Job{
			Engine: engine, Port: srv.Port, Rate: 1000, Length: length, Timeout: 10 * time.Second, MaxConns: 4096,
			Start: srv.Start, Stall: &s,
		})
		srv.stop()
		if err != nil {
			return err
		}
		for i, q := range Quantiles {
			d := r.Response[i] - r.Truth[i]
			rows = append(rows, []string{
				string(engine), fmt.Sprintf("p%g", q*100), fmt.Sprintf("%.3f", r.Response[i]*1e3),
				fmt.Sprintf("%.3f", r.Truth[i]*1e3),
				fmt.Sprintf("%+.0f", d*1e6), fmt.Sprintf("%+.2f %%", 100*d/r.Truth[i]),
			})
		}
	}
	w.rows(rows)
	return nil
}

// backlog offers far more than the server can serve: every arrival must be accounted for, in little memory.
func backlog(ctx context.Context, h *host, o Options, w *table) error {
	length := 15 * time.Second
	if o.Short {
		length = 5 * time.Second
	}
	timeout := length + time.Second // so that no connection is given up before every call has been offered
	w.line("## 1,000/s offered for %v against a server of 150/s, timeout %v\n", length, timeout)
	rows := [][]string{{
		"engine", "max connections", "offered", "sent in time", "ended", "recorded", "good",
		"unsent timeouts", "peak RSS MB",
	}}
	for _, j := range []Job{
		{Engine: load.Fast, MaxConns: 16000},
		{Engine: load.Fast, MaxConns: 256},
		{Engine: load.Std, MaxConns: 256},
	} {
		srv, err := h.serve(ctx, Server{Mode: Limit, Rate: 150})
		if err != nil {
			return err
		}
		j.Port, j.Rate, j.Length, j.Timeout, j.Keep = srv.Port, 1000, length, timeout, true
		r, u, err := h.run(ctx, j)
		srv.stop()
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			string(j.Engine), fmt.Sprint(j.MaxConns), fmt.Sprint(r.Offered), fmt.Sprint(r.Sent), fmt.Sprint(r.Ended),
			fmt.Sprint(r.Recorded),
			fmt.Sprint(r.Good), fmt.Sprint(r.Unsent), fmt.Sprintf("%.0f", float64(u.rss)/(1<<20)),
		})
	}
	w.rows(rows)
	return nil
}
