package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/load"
	runner "tare/internal/run"
	"tare/internal/signature"
	"tare/rigs/bench"
)

// The processors of the experiment. The server's thread goes before all others on its own, so that whatever changes is
// the generator's doing.
const (
	generatorCPU = 0
	serverCPU    = 1
	serverFirst  = 2 // real-time priority of the server, and of a generator that is measured undisturbed
	busyFirst    = 50
	// mostBusy bounds how long a loop at real-time priority keeps its processor from everybody else on the host.
	mostBusy = 5 * time.Second
)

// A loading is a load that the generator is to offer.
type loading struct {
	name string
	job  bench.Job
}

// loadings are loads that a generator with a processor of its own carries with ease.
func loadings() []loading {
	out := []loading{
		{"closed, 1 worker, fast", bench.Job{Engine: load.Fast, Workers: 1}},
		{"closed, 8 workers, fast", bench.Job{Engine: load.Fast, Workers: 8}},
		{"closed, 50 workers, fast", bench.Job{Engine: load.Fast, Workers: 50}},
		{"closed, 2 workers, std", bench.Job{Engine: load.Std, Workers: 2}},
		{"open, 1000/s, fast", bench.Job{Engine: load.Fast, Rate: 1000}},
		{"open, 10000/s, fast", bench.Job{Engine: load.Fast, Rate: 10000}},
		{"open, 1000/s, std", bench.Job{Engine: load.Std, Rate: 1000}},
	}
	for i := range out {
		j := &out[i].job
		j.Length, j.Warm, j.Timeout, j.MaxConns = 2*time.Second, 300*time.Millisecond, 5*time.Second, 256
	}
	return out
}

// A shortage is a way to starve the generator.
type shortage struct {
	name  string
	first bool          // nothing is short: the generator goes before all others
	quota float64       // share of a processor that its control group may use; 0: any
	busy  int           // busy loops beside it on its processor
	every time.Duration // a busy loop at real-time priority runs for the first part of so much time; 0: there is none
	runs  time.Duration
}

func shortages() []shortage {
	return []shortage{
		{name: "first", first: true},
		{name: "as the host is"},
		{name: "quota of 5 %", quota: 0.05},
		{name: "quota of 25 %", quota: 0.25},
		{name: "a busy loop beside it", busy: 1},
		{name: "3 busy loops beside it", busy: 3},
		{name: "real-time loop, 2 of 20 ms", every: 20 * time.Millisecond, runs: 2 * time.Millisecond},
		{name: "real-time loop, 30 of 100 ms", every: 100 * time.Millisecond, runs: 30 * time.Millisecond},
		{name: "real-time loop, all the time", every: time.Second, runs: time.Second},
	}
}

// starves reports whether anything is withheld from the generator.
func (s *shortage) starves() bool { return s.quota > 0 || s.busy > 0 || s.every > 0 }

// times is how often a loading is measured so in a round. Sound trials are to be as many as spoiled ones.
func (s *shortage) times(only string) int {
	switch {
	case s.first:
		return 4
	case strings.HasPrefix(s.name, only):
		return 1
	}
	return 0
}

// A trial is one run of a loading under a shortage.
type trial struct {
	loading, shortage int
	rate, mean, p99   float64
	opinion           signature.GeneratorOpinion
}

// starved measures every loading under every shortage n times, in random order, and writes how often the audit withheld
// what was spoiled, and what was sound.
func starved(ctx context.Context, o options, stdout, stderr io.Writer) error {
	if runtime.NumCPU() <= serverCPU {
		return fmt.Errorf("this needs %d processors", serverCPU+1)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server, err := startServer(ctx, self)
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer server.stop()
	loads, ways := loadings(), shortages()
	var order []trial
	for range o.n {
		for l := range loads {
			for w := range ways {
				for range ways[w].times(o.only) {
					order = append(order, trial{loading: l, shortage: w})
				}
			}
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	for i := range order {
		t := &order[i]
		j := loads[t.loading].job
		j.Port = server.port
		if err := t.measure(ctx, self, j, ways[t.shortage]); err != nil {
			return fmt.Errorf("%s, %s: %w", loads[t.loading].name, ways[t.shortage].name, err)
		}
		if _, err := fmt.Fprintf(stderr, "%d/%d  %s; %s: %.0f/s, p99 %.3f ms: %s %s %v\n",
			i+1, len(order), loads[t.loading].name, ways[t.shortage].name,
			t.rate, 1e3*t.p99, t.opinion.Verdict, t.opinion.Because(), t.opinion.Evidence); err != nil {
			return err
		}
	}
	return verdicts(order, loads, ways, stdout)
}

// child is a process that this one started.
type child struct {
	cmd     *exec.Cmd
	release func() // the thread that started it
	port    int
}

func (c *child) stop() {
	_ = c.cmd.Process.Kill() // it has no other end
	_ = c.cmd.Wait()
	c.release()
}

// startServer starts a server that answers after a millisecond.
func startServer(ctx context.Context, self string) (*child, error) {
	spec, err := json.Marshal(bench.Server{Mode: bench.Stall, Period: time.Hour})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve", string(spec))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c, err := start(cmd, serverCPU, serverFirst)
	if err != nil {
		return nil, err
	}
	var ready bench.Ready
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	c.port = ready.Port
	return c, nil
}

// start starts cmd on one processor, at a real-time priority unless that is 0. It ends with this process.
func start(cmd *exec.Cmd, cpu int, priority uint32) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	hold := make(chan struct{})
	// The thread that starts it is not used again: its processor and its priority would be inherited by others. It
	// lives as long as the child, which would be killed with it.
	go func() {
		runtime.LockOSThread()
		var only unix.CPUSet
		only.Set(cpu)
		err := unix.SchedSetaffinity(0, &only)
		if err == nil && priority > 0 {
			err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority}, 0)
		}
		if err == nil {
			err = cmd.Start()
		}
		if priority > 0 {
			_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0)
		}
		started <- err
		if err == nil {
			<-hold
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return &child{cmd: cmd, release: func() { close(hold) }}, nil
}

// serveAs is the server's process.
func serveAs(ctx context.Context, spec string, out io.Writer) error {
	var s bench.Server
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	return s.Serve(ctx, out)
}

// generate is the generator's process.
func generate(ctx context.Context, spec string, out io.Writer) error {
	var j bench.Job
	if err := json.Unmarshal([]byte(spec), &j); err != nil {
		return err
	}
	runtime.GOMAXPROCS(2) // as 'tare run' has it on one processor
	j.Host = runner.Accounts([]int{generatorCPU})
	r, err := j.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// measure runs one job under a shortage, and has it judged.
func (t *trial) measure(ctx context.Context, self string, j bench.Job, s shortage) error {
	spec, err := json.Marshal(j)
	if err != nil {
		return err
	}
	var others []*child
	defer func() {
		for _, c := range others {
			c.stop()
		}
	}()
	for range s.busy {
		c, err := start(exec.CommandContext(ctx, self, "-spin"), generatorCPU, 0)
		if err != nil {
			return err
		}
		others = append(others, c)
	}
	if s.every > 0 {
		loop := exec.CommandContext(ctx, self, "-spin", "-spin-every", s.every.String(), "-spin-for", s.runs.String(),
			"-spin-last", mostBusy.String())
		c, err := start(loop, generatorCPU, busyFirst)
		if err != nil {
			return err
		}
		others = append(others, c)
	}
	cmd := exec.CommandContext(ctx, self, "-job", string(spec))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	priority := uint32(0)
	if s.first {
		priority = serverFirst
	}
	c, err := start(cmd, generatorCPU, priority)
	if err != nil {
		return err
	}
	defer c.release()
	undo, err := limited(cmd.Process.Pid, s.quota)
	waited := cmd.Wait()
	undo()
	if err != nil || waited != nil {
		return fmt.Errorf("run the generator: %w: %s", errors.Join(err, waited), said.Bytes())
	}
	var r bench.Outcome
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return err
	}
	t.judge(j, &r)
	return nil
}

// limited puts a process into a control group with a quota, by v1 or v2, whichever there is.
func limited(pid int, quota float64) (undo func(), err error) {
	undo = func() {}
	if quota == 0 {
		return undo, nil
	}
	const period = 100000
	parent, file, text := "/sys/fs/cgroup", "cpu.max", fmt.Sprintf("%.0f %d", quota*period, period)
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); err == nil {
		parent, file, text = "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", fmt.Sprintf("%.0f", quota*period)
	}
	dir := filepath.Join(parent, "tare-calibrate-"+strconv.Itoa(pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return undo, err
	}
	undo = func() { _ = os.Remove(dir) }
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
		return undo, err
	}
	return undo, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// judge asks the audit, which is that of a run.
func (t *trial) judge(j bench.Job, r *bench.Outcome) {
	t.rate, t.mean, t.p99 = float64(r.Offered)/r.Seconds, r.Mean, r.Response[1]
	c := signature.Conduct{
		Workers: j.Workers, Rate: t.rate, Mean: r.Mean, P99: t.p99, Times: true, LatenessP99: r.LateP99 / 1e6,
		LatenessLimit: signature.LatenessLimit(r.GoodP50), Effort: r.Effort,
	}
	if j.Workers == 0 {
		c.AchievedRatio = min(1, float64(r.Sent)/float64(r.Offered))
	}
	t.opinion = c.Judge()
}

// What spoils a figure: a rate or a p99 that is off by so much of what an undisturbed generator finds, and a p99 by so
// many seconds.
const (
	offRate  = 0.05
	offP99   = 0.10
	offLeast = 100e-6
)

// reference is what a generator finds that goes before all others, in the best of its trials: what else the host does
// disturbs many.
func reference(trials []trial, loading int, ways []shortage) (rate, p99 float64) {
	var rates, tails []float64
	for _, t := range trials {
		if t.loading == loading && ways[t.shortage].first {
			rates, tails = append(rates, t.rate), append(tails, t.p99)
		}
	}
	return slices.Max(rates), slices.Min(tails)
}

// count is how many trials were spoiled or sound, and of how many of each the audit did not rule the generator out.
// Trials are disturbed that are off though nothing was withheld from the generator: other work on the host may have
// held back the server or the network as well.
type count struct{ spoiled, withheld, sound, falsely, disturbed, doubted int }

func (c *count) add(starved, spoiled, withheld bool) {
	switch {
	case spoiled && !starved:
		c.disturbed++
		if withheld {
			c.doubted++
		}
	case spoiled:
		c.spoiled++
		if withheld {
			c.withheld++
		}
	default:
		c.sound++
		if withheld {
			c.falsely++
		}
	}
}

// verdicts writes the counts by loading, and by shortage.
func verdicts(trials []trial, loads []loading, ways []shortage, out io.Writer) error {
	byLoad, byWay := make([]count, len(loads)), make([]count, len(ways))
	var all count
	var missed []string
	for l := range loads {
		rate, p99 := reference(trials, l, ways)
		for _, t := range trials {
			if t.loading != l {
				continue
			}
			spoiled := math.Abs(t.rate/rate-1) > offRate || math.Abs(t.p99-p99) > max(offP99*p99, offLeast)
			withheld := t.opinion.Verdict != signature.RuledOut
			starved := ways[t.shortage].starves()
			byLoad[l].add(starved, spoiled, withheld)
			byWay[t.shortage].add(starved, spoiled, withheld)
			all.add(starved, spoiled, withheld)
			if spoiled != withheld && (starved || !spoiled) {
				missed = append(missed, fmt.Sprintf("- %s; %s: %.0f/s and p99 %.3f ms, reference %.0f/s and %.3f ms: %s %s",
					loads[l].name,
					ways[t.shortage].name, t.rate, 1e3*t.p99, rate, 1e3*p99, t.opinion.Verdict, t.opinion.Because()))
			}
		}
	}
	var b strings.Builder
	row := func(name string, c count) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |\n", name, c.spoiled, c.withheld, c.sound, c.falsely,
			c.disturbed, c.doubted)
	}
	b.WriteString("| | spoiled | of these withheld | sound | of these withheld | disturbed | of these withheld |\n| " +
		"--- | --- | --- | --- | --- | --- | --- |\n")
	for l := range loads {
		row(loads[l].name, byLoad[l])
	}
	for w := range ways {
		row(ways[w].name, byWay[w])
	}
	row("**all**", all)
	b.WriteString("\nJudged otherwise than they were:\n" + strings.Join(missed, "\n") + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}
