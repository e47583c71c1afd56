// Command tare-calibrate weighs tare itself: it repeats an experiment whose truth is known, on this host as it is or
// with busy loops beside it, and counts how often the verdicts are right. The truth of a treatment is its level
// "planted": the share of work that it does more. With -servers it searches the capacity of servers and proxies whose
// limits follow from their configuration.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"tare/internal/report"
	"tare/rigs/servers"
)

func main() {
	if child, err := servers.ServeChild(os.Stdin, os.Stdout); child {
		if err != nil {
			fmt.Fprintln(os.Stderr, "tare-calibrate:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tare-calibrate:", err)
		os.Exit(1)
	}
}

// options say what is repeated, how often, and beside what.
type options struct {
	file, tare, keep  string
	n, busy           int
	seed              uint64
	parallel, retries int
	only, out         string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("tare-calibrate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.tare, "tare", "bin/tare", "the tare to weigh")
	flags.StringVar(&o.keep, "keep", "", "folder in which records are kept; default: they are thrown away")
	flags.IntVar(&o.n, "n", 40, "experiments")
	flags.IntVar(&o.busy, "busy", 0, "busy loops beside them")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the first experiment; the others follow")
	searches := flags.Bool("servers", false,
		"search the capacity of servers of known capacity, each by an experiment that the named template makes, instead of "+
			"repeating an experiment")
	flags.StringVar(&o.only, "only", "", "with -servers: a regular expression that the servers' names must match; with "+
		"-starve: the one way to starve it that is tried")
	flags.IntVar(&o.parallel, "parallel", 1, "with -servers: searches at a time")
	flags.IntVar(&o.retries, "retries", 2, "with -servers: how often a search is repeated whose answer cannot be judged")
	flags.StringVar(&o.out, "out", "", "with -servers: file in which all answers are kept as JSON")
	starve := flags.Bool("starve", false, "instead of experiments: starve the generator on purpose, -n times each way, "+
		"and count what the audit says (Linux, root)")
	serve := flags.String("serve", "", "be the server that this JSON describes (used by -starve itself)")
	job := flags.String("job", "", "be the generator that this JSON describes (used by -starve itself)")
	spin := flags.Bool("spin", false, "be a busy loop (started by this command itself)")
	every := flags.Duration("spin-every", 0, "with -spin: rest after -spin-for, until so much time has passed")
	last := flags.Duration("spin-last", 0, "with -spin: end after so much time; 0: when killed")
	part := flags.Duration("spin-for", 0, "with -spin-every: how long to be busy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *spin {
		burn(*every, *part, *last)
		return nil
	}
	switch {
	case *serve != "":
		return serveAs(ctx, *serve, stdout)
	case *job != "":
		return generate(ctx, *job, stdout)
	case *starve:
		return starved(ctx, o, stdout, stderr)
	}
	if flags.NArg() != 1 {
		return errors.New("name one experiment file; with -servers, its template")
	}
	o.file = flags.Arg(0)
	stop, err := startBusy(ctx, o.busy)
	defer stop()
	if err != nil {
		return err
	}
	if *searches {
		return searchAll(ctx, o, stdout, stderr)
	}
	return repeat(ctx, o, stdout, stderr)
}

// burn computes all the time, or for a part of every so much time, until last has passed or, where that is 0, it is
// killed.
func burn(every, part, last time.Duration) {
	for start := time.Now(); last == 0 || time.Since(start) < last; {
		for began := time.Now(); time.Since(began) < max(part, time.Millisecond); {
		}
		if every > part {
			time.Sleep(every - part)
		}
	}
}

// startBusy starts so many busy loops, which end with this process.
func startBusy(ctx context.Context, n int) (stop func(), err error) {
	var started []*exec.Cmd
	stop = func() {
		for _, c := range started {
			_ = c.Process.Kill() // it has no other end
			_ = c.Wait()
		}
	}
	self, err := os.Executable()
	if err != nil {
		return stop, err
	}
	for range n {
		c := exec.CommandContext(ctx, self, "-spin")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return stop, fmt.Errorf("start a busy loop: %w", err)
		}
		started = append(started, c)
	}
	return stop, nil
}

// repeat runs the experiment with one seed after another and prints what came of it.
func repeat(ctx context.Context, o options, stdout, stderr io.Writer) error {
	src, err := os.ReadFile(o.file)
	if err != nil {
		return err
	}
	dir, remove, err := o.folder()
	if err != nil {
		return err
	}
	defer remove()
	var all tally
	for i := range o.n {
		seed := o.seed + uint64(i)
		rep, err := once(ctx, o.tare, dir, src, seed)
		if err != nil {
			return fmt.Errorf("experiment %d, seed %d: %w", i+1, seed, err)
		}
		all.add(rep)
		if _, err := fmt.Fprintf(stderr, "%d/%d  seed %d  %s  %.0f s  %s\n", i+1, o.n, seed, rep.Verdict, rep.Seconds,
			rep.Reason); err != nil {
			return err
		}
	}
	return all.write(stdout, o)
}

// folder is where records go; remove throws them away, unless they are to be kept.
func (o options) folder() (dir string, remove func(), err error) {
	if o.keep != "" {
		return o.keep, func() {}, os.MkdirAll(o.keep, 0o700)
	}
	if dir, err = os.MkdirTemp("", "tare-calibrate-*"); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// once runs the experiment in src with one seed and returns its report. Exit codes of verdicts are answers, not
// failures.
func once(ctx context.Context, tare, dir string, src []byte, seed uint64) (*report.Report, error) {
	text := append([]byte(nil), src...)
	text = append(text, fmt.Sprintf("\nseed: %d\n", seed)...)
	b, said, err := runFile(ctx, tare, dir, fmt.Sprintf("seed-%d", seed), text)
	if err != nil {
		return nil, err
	}
	rep := &report.Report{}
	if err := json.Unmarshal(b, rep); err != nil {
		return nil, err
	}
	if rep.Status != report.Complete {
		return nil, fmt.Errorf("the run did not complete: %s", said)
	}
	return rep, nil
}

// runFile runs the experiment in text as a user would, and returns its report as JSON and what was printed.
func runFile(ctx context.Context, tare, dir, name string, text []byte) (rep, said []byte, err error) {
	file, out := filepath.Join(dir, name+".yaml"), filepath.Join(dir, name+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, nil, err
	}
	c := exec.CommandContext(ctx, tare, "run", file, "--results", dir, "-o", "json="+out)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	said, err = c.CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return nil, said, err
	}
	if ctx.Err() != nil {
		return nil, said, ctx.Err()
	}
	rep, readErr := os.ReadFile(out)
	if readErr != nil {
		return nil, said, fmt.Errorf("%w: %s", errors.Join(err, readErr), said)
	}
	return rep, said, nil
}
