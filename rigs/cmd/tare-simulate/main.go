// Command tare-simulate reruns the published tables: those of the capacity search against simulated servers, or with
// -stat those of the statistics against data whose truth is known, with -turns those of arms that take turns.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tare/rigs/montecarlo"
	"tare/rigs/simulation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tare-simulate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tare-simulate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	statistics := flags.Bool("stat", false, "the tables of the statistics instead of those of the capacity search")
	turns := flags.Bool("turns", false, "the tables of comparisons by turns instead")
	n := flags.Int("n", 0, "instances of each kind of server (default 40); repetitions of each case, with -stat "+
		"(default 1000) and with -turns (default 40)")
	seed := flags.Uint64("seed", 1, "seed of the instances")
	only := flags.String("only", "", "kinds of server, separated by commas; default all")
	verbose := flags.Bool("v", false, "print every instance")
	worlds := flags.Int("worlds", 0, "search that many composed worlds instead, and print which goals are reached")
	index := flags.Int("i", -1, "with -worlds or alone: the world of that number only")
	trace := flags.Bool("trace", false, "with -i: print every step of the search")
	file := flags.String("case", "", "the composition of a kept case instead of a drawn one")
	truths := flags.String("truths", "",
		"with -worlds: a file that remembers the truths; remove it when the simulator changes")
	shrink := flags.Bool("shrink", false, "with -i: simplify the world as long as the search fails in the same way")
	keep := flags.String("keep", "", "with -shrink: write the simplified world to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *worlds > 0 || *index >= 0 || *file != "" {
		debug.SetGCPercent(400) // the worlds are small, and many
		s := worldStudy{
			seed: *seed, n: *worlds, index: *index, only: *only, file: *file, verbose: *verbose, trace: *trace,
			shrink: *shrink, keep: *keep,
			truths: *truths,
		}
		return s.run(ctx, stdout, stderr)
	}
	if *statistics {
		if *n <= 0 {
			*n = 1000
		}
		return writeStatistics(ctx, stdout, stderr, montecarlo.Study{Seed: *seed, N: *n, Workers: runtime.GOMAXPROCS(0)})
	}
	if *turns {
		if *n <= 0 {
			*n = 40
		}
		return writeTurns(ctx, stdout, stderr, montecarlo.Study{Seed: *seed, N: *n, Workers: runtime.GOMAXPROCS(0)})
	}
	if *n <= 0 {
		*n = 40
	}
	return writeCapacity(ctx, stdout, stderr, *only, *seed, *n, *verbose)
}

// writeStatistics prints the tables as they are finished, and how long each took to stderr.
func writeStatistics(ctx context.Context, stdout, stderr io.Writer, s montecarlo.Study) error {
	if err := writeStudy(stdout, s); err != nil {
		return err
	}
	for _, table := range montecarlo.Tables() {
		start := time.Now()
		t, err := table(ctx, s)
		if err != nil {
			return err
		}
		if err := writeTables(stdout, stderr, start, t); err != nil {
			return err
		}
	}
	return nil
}

// writeTurns is writeStatistics for comparisons by turns.
func writeTurns(ctx context.Context, stdout, stderr io.Writer, s montecarlo.Study) error {
	if err := writeStudy(stdout, s); err != nil {
		return err
	}
	for _, tables := range montecarlo.TurnsTables() {
		start := time.Now()
		t, err := tables(ctx, s)
		if err != nil {
			return err
		}
		if err := writeTables(stdout, stderr, start, t...); err != nil {
			return err
		}
	}
	return nil
}

func writeStudy(w io.Writer, s montecarlo.Study) error {
	_, err := fmt.Fprintf(w, "%d repetitions of each case, seed %d.\n\n", s.N, s.Seed)
	return err
}

// writeTables prints tables that were begun at start.
func writeTables(stdout, stderr io.Writer, start time.Time, tables ...montecarlo.Table) error {
	for _, t := range tables {
		if err := t.Write(stdout); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(stderr, "%s: %.0f s\n", tables[0].Title, time.Since(start).Seconds())
	return err
}

func writeCapacity(ctx context.Context, stdout, stderr io.Writer, only string, seed uint64, n int, verbose bool) error {
	kinds, err := choose(only)
	if err != nil {
		return err
	}
	studies, err := simulation.RunAll(ctx, kinds, seed, n, runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	if verbose {
		if err := list(stderr, studies); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(stdout, "%d instances of each server, seed %d.\n\n", n, seed); err != nil {
		return err
	}
	if err := simulation.WriteTable(stdout, studies); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout); err != nil {
		return err
	}
	return simulation.WriteConfusion(stdout, studies)
}

func choose(only string) ([]simulation.Kind, error) {
	all := simulation.Kinds()
	if only == "" {
		return all, nil
	}
	names := strings.Split(only, ",")
	var kinds []simulation.Kind
	for _, name := range names {
		i := slices.IndexFunc(all, func(k simulation.Kind) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown server %q", name)
		}
		kinds = append(kinds, all[i])
	}
	return kinds, nil
}

func list(w io.Writer, studies []simulation.Study) error {
	for _, s := range studies {
		for i, o := range s.Outcomes {
			r := o.Result
			_, err := fmt.Fprintf(w, "%s %d: truth %.2f, rate %.2f [%.2f, %.2f] (%.2f %%), verified %.2f to %.2f, at least "+
				"%.0f, %s, %d phases, %.1f s, %d calls, %s %s\n",
				s.Kind.Name, i, o.Truth.Capacity, r.Rate, r.Lo, r.Hi, 100*o.Error(), r.VerifiedLow, r.VerifiedHigh, r.AtLeast,
				r.Signature.Class,
				r.Phases, r.Seconds, o.Calls, r.Stop, r.Reason)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
