//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/rigs/bench"
	"tare/rigs/hosttest"
)

// TestMain lets this binary be the children that the experiment starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"-serve", "-job", "-spin"}, os.Args[1]) {
		if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	hosttest.Main(m)
}

// TestStarvedGenerators: a generator from which a processor is withheld is never ruled out, however it is done.
func TestStarvedGenerators(t *testing.T) {
	hosttest.SkipIfShort(t)
	if runtime.NumCPU() <= serverCPU {
		hosttest.Missing(t, "server and generator need a processor each", "run with two processors")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server, err := startServer(t.Context(), self)
	if err != nil {
		hosttest.Missing(t, fmt.Sprintf("no real-time priority: %v", err), hosttest.Root)
	}
	defer server.stop()
	for _, way := range shortages() {
		if !slices.Contains([]string{"quota of 5 %", "3 busy loops beside it", "real-time loop, all the time"}, way.name) {
			continue
		}
		for name, job := range map[string]bench.Job{
			"closed": {Engine: load.Fast, Workers: 50}, "closed, std": {Engine: load.Std, Workers: 8},
			"open": {Engine: load.Fast, Rate: 5000},
		} {
			t.Run(way.name+", "+name, func(t *testing.T) {
				job.Port, job.Length, job.Timeout, job.MaxConns = server.port, time.Second, 5*time.Second, 256
				var x trial
				if err := x.measure(t.Context(), self, job, way); err != nil {
					if strings.Contains(err.Error(), "permission denied") ||
						strings.Contains(err.Error(), "operation not permitted") ||
						strings.Contains(err.Error(), "read-only file system") {
						hosttest.Missing(t, err.Error(), hosttest.Root)
					}
					t.Fatal(err)
				}
				if x.opinion.Verdict == signature.RuledOut {
					t.Errorf("%.0f/s, p99 %.3g s: starvation is ruled out: %+v", x.rate, x.p99, x.opinion)
				}
			})
		}
	}
}
