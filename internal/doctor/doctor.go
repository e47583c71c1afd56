// Package doctor checks a host's capabilities by trying each, and measures its noise floor. It leaves nothing changed.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/metric"
)

// Schema names this version of the JSON form. Additions are allowed within v1.
const Schema = "tare.doctor/v1"

// DefaultTime is the default length of the A/A comparison.
const DefaultTime = 10 * time.Second

// MinTime is the shortest Options.Time: a shorter comparison has too few pairs.
const MinTime = 500 * time.Millisecond

// Options configure an examination.
type Options struct {
	// Self is this program's file. Trials that a process cannot undo run in children: "Self doctor-trial NAME", which must
	// call Trial.
	Self  string
	Clock clock.Clock
	// Time is the length of the A/A comparison; 0: DefaultTime. The other measurements take at most 4 s, and less where
	// Time is short.
	Time time.Duration
	// Seed determines the order within each pair.
	Seed uint64
	// Getenv looks up DOCKER_HOST; nil: the environment is empty.
	Getenv func(string) string
	// Areas are the checks of areas, in their order.
	Areas []func(context.Context) []Check
	// Root is where /proc and /sys are read; nil: this machine.
	Root fs.FS
}

// A Diagnosis is the result of Examine. Numbers are in base units: seconds, bytes, 1/s, ratios.
type Diagnosis struct {
	Schema   string    `json:"schema"`
	Tare     string    `json:"tare,omitempty"`
	Host     string    `json:"host,omitempty"`
	Kernel   string    `json:"kernel,omitempty"`
	CPUs     int       `json:"cpus"` // on which this process may run
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Checks   []Check   `json:"checks"`
	Lateness *Lateness `json:"lateness,omitempty"`
	Stalls   *Stalls   `json:"stalls,omitempty"`
	Noise    *Noise    `json:"noise,omitempty"`
}

// A Check is one capability and the result of trying it.
type Check = area.Check

// A State judges one capability.
type State = area.CheckState

// The states.
const (
	OK      = area.CheckOK
	Limited = area.CheckLimited
	Missing = area.CheckMissing
	Broken  = area.CheckBroken
	Info    = area.CheckInfo
)

// Broken reports whether anything is broken that every run needs.
func (d *Diagnosis) Broken() bool {
	return slices.ContainsFunc(d.Checks, func(c Check) bool { return c.State == Broken })
}

// The groups of checks, in their order.
const (
	groupGenerator = "load generator"
	groupCPU       = "processors"
	groupLimits    = "control groups and children"
	groupKernel    = area.KernelFeatures
	groupTools     = area.Tools
)

// examiner holds the state of one examination.
type examiner struct {
	Options
	root fs.FS
	cpus int
}

// Examine runs all checks. It fails only with the context: what the host lacks is part of the Diagnosis.
func Examine(ctx context.Context, o Options) (*Diagnosis, error) {
	if o.Time == 0 {
		o.Time = DefaultTime
	}
	if o.Time < MinTime {
		return nil, fmt.Errorf("examine host: a comparison of %v is too short: give it at least %v", o.Time, MinTime)
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	x := &examiner{Options: o, root: o.Root, cpus: 1}
	if x.root == nil {
		x.root = files.Host()
	}
	d := &Diagnosis{Schema: Schema, Started: o.Clock.Now().UTC().Truncate(time.Second), Kernel: Kernel()}
	d.Host, _ = os.Hostname() // stays empty if the host has none
	began := monotonic()
	before := x.pressures(ctx)
	for _, step := range []func(context.Context, *Diagnosis){
		x.processors, x.children, x.kernelFeatures,
		x.generator, x.stalls, x.noise,
	} {
		step(ctx, d)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("examine host: %w", context.Cause(ctx))
		}
	}
	d.add(steal(before, x.pressures(ctx)))
	var ofAreas []Check
	for _, checks := range x.Areas {
		ofAreas = append(ofAreas, checks(ctx)...)
	}
	d.Checks = inOrder(append(ofAreas, append(d.Checks, x.containers(ctx))...))
	d.CPUs = x.cpus
	d.Seconds = time.Duration(monotonic() - began).Seconds()
	return d, nil
}

// inOrder sorts checks by their groups; groups of areas come last. Tools are of several areas, so they are sorted by
// name.
func inOrder(checks []Check) []Check {
	order := []string{groupGenerator, groupCPU, groupLimits, groupKernel, groupTools}
	rank := func(c Check) int {
		if i := slices.Index(order, c.Group); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(checks, func(a, b Check) int {
		byGroup := cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Group, b.Group))
		if byGroup == 0 && a.Group == groupTools {
			return cmp.Compare(a.Name, b.Name)
		}
		return byGroup
	})
	return checks
}

func (d *Diagnosis) add(checks ...Check) { d.Checks = append(d.Checks, checks...) }

// read returns a file's text without surrounding blanks; "" if it cannot be read.
func (x *examiner) read(name string) string {
	b, err := fs.ReadFile(x.root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Kernel returns the name of this machine's kernel with its release; "" if it cannot be read.
func Kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// monotonic returns CLOCK_MONOTONIC in nanoseconds: measurements here last microseconds.
func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// timeShare returns the fraction 1/of of the whole time, at most most.
func (x *examiner) timeShare(of, most time.Duration) time.Duration { return min(x.Time/of, most) }

// samples are the host's own counters at one moment.
type samples []metric.Sample
