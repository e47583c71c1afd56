//go:build linux

// Command tare-bench measures tare's load engines: efficiency against other generators, lateness, truth under stalls,
// and memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"tare/rigs/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tare-bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o bench.Options
	var serve, job string
	f := flag.NewFlagSet("tare-bench", flag.ContinueOnError)
	f.BoolVar(&o.Short, "short", false, "fewer and shorter rounds, for a first look")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the order of the rounds")
	f.StringVar(&o.Only, "only", "", "measure only this: closed, open, tls, stall or backlog")
	f.StringVar(&serve, "serve", "", "be the server that this JSON describes (used by the bench itself)")
	f.StringVar(&job, "job", "", "be the generator that this JSON describes (used by the bench itself)")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	switch {
	case serve != "":
		var s bench.Server
		if err := json.Unmarshal([]byte(serve), &s); err != nil {
			return err
		}
		return s.Serve(ctx, os.Stdout)
	case job != "":
		var j bench.Job
		if err := json.Unmarshal([]byte(job), &j); err != nil {
			return err
		}
		r, err := j.Run(ctx)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return bench.Report(ctx, o, os.Stdout)
}
