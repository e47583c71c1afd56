//go:build linux

package bench

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"time"

	"tare/internal/load"
	"tare/internal/unit"
)

// tlsLoops compares TLS with plaintext, and with wrk, in interleaved rounds.
func tlsLoops(ctx context.Context, h *host, o Options, w *table) error {
	rounds, length := 5, 3*time.Second
	if o.Short {
		rounds, length = 3, time.Second
	}
	plain, err := h.serve(ctx, Server{Mode: Quick})
	if err != nil {
		return err
	}
	defer plain.stop()
	secure, err := h.serve(ctx, Server{Mode: Quick, TLS: true})
	if err != nil {
		return err
	}
	defer secure.stop()
	w.line("## TLS\n\n%s of %v, in random order. The server of plaintext is faster than that of TLS, which makes a "+
		"generator\nwait less often, and cheaper.\n", unit.Count(rounds, "interleaved round"), length)
	generators := []generator{
		{name: "fast", engine: load.Fast, port: plain.Port},
		{name: "fast, TLS", engine: load.Fast, port: secure.Port, tls: true},
		{name: "std, TLS", engine: load.Std, port: secure.Port, tls: true},
	}
	with := "fast"
	if wrk, _ := exec.LookPath("wrk"); wrk != "" {
		with = "wrk, TLS"
		generators = append(generators, generator{name: with, wrk: wrk, port: secure.Port, tls: true})
	}
	if err := h.compareClosed(ctx, generators, with, rounds, length, o.Seed, w); err != nil {
		return err
	}
	cells := []*openCell{
		{job: Job{Engine: load.Fast, Port: plain.Port}},
		{job: Job{Engine: load.Fast, Port: secure.Port, TLS: true}},
		{job: Job{Engine: load.Std, Port: secure.Port, TLS: true}},
	}
	for _, c := range cells {
		// The handshakes are over before the measurement begins.
		c.job.Rate, c.job.Warm, c.job.Length, c.job.Timeout = 10_000, time.Second, length, 5*time.Second
	}
	return h.measureOpen(ctx, cells, rounds, rand.New(rand.NewPCG(o.Seed, 3)), w)
}
