package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"tare/areas/sandbox/workload"
	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/load"
)

// kindMemory is the set-up cost that is no time: the kernel's memory for a policy.
const kindMemory = "memory"

const (
	// memoryPolicies are held at once, since the kernel gives its memory in pages.
	memoryPolicies = 500
	// memorySpan is about how long that takes.
	memorySpan = 400 * time.Millisecond
	// memoryTries is how often it is tried when other work on the host frees more memory meanwhile.
	memoryTries = 5
	// provedPolicies are held for the proof where a treatment holds no others.
	provedPolicies = 10
)

// The pauses before the first and the second reading: the kernel frees what has ended in the background.
const (
	beforeReading = 150 * time.Millisecond
	afterHolding  = 50 * time.Millisecond
)

// memoryOperation returns the operation that puts policies in force and reads the kernel's memory.
func memoryOperation(help string) operation {
	return operation{name: kindMemory, expect: help, span: memorySpan, most: 1, run: policyMemory}
}

// policyMemory returns the memory of n policies, from that of memoryPolicies.
func policyMemory(ctx context.Context, s *sample, n int) (workload.Cost, error) {
	if s.holder == nil {
		return workload.Cost{}, errors.New("the process that holds policies has not been started")
	}
	for range memoryTries {
		grown, err := s.holder.grows(ctx)
		if err != nil || grown > 0 {
			return workload.Cost{N: n, Wall: 1, Memory: grown * int64(n) / memoryPolicies}, err
		}
	}
	return workload.Cost{}, fmt.Errorf("%s: the kernel's memory did not grow in %d attempts to hold %d policies: other "+
		"work on this host frees more; leave %[1]s out here", kindMemory, memoryTries, memoryPolicies)
}

// grows returns by how many bytes the kernel's memory grows while the process for it holds memoryPolicies, with as many
// in the kernel itself.
func (s *sample) grows(ctx context.Context) (bytes int64, err error) {
	c := clock.System{}
	if err := c.Sleep(ctx, beforeReading); err != nil {
		return 0, err
	}
	before, err := kernelMemory()
	if err != nil {
		return 0, err
	}
	remove, err := s.plan.stack.fill(ctx, s.plan.policy, memoryPolicies, s.launch.host)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx))) }()
	if _, err := micro(workload.KindHold)(ctx, s, memoryPolicies); err != nil {
		return 0, err
	}
	if err := c.Sleep(ctx, afterHolding); err != nil {
		return 0, err
	}
	after, err := kernelMemory()
	_, e := micro(workload.KindRelease)(ctx, s, 1)
	return after - before, errors.Join(err, e)
}

// kernelMemory returns the bytes of memory that the kernel cannot reclaim, where policies are: slabs, virtually
// mapped pages, and memory of each processor.
func kernelMemory() (int64, error) {
	const path = "/proc/meminfo"
	text, err := files.Kernel(path)
	if err != nil {
		return 0, fmt.Errorf("%s cannot be read here: %w", kindMemory, err)
	}
	return parseMeminfo(text)
}

func parseMeminfo(text []byte) (sum int64, err error) {
	want := []string{"SUnreclaim", "VmallocUsed", "Percpu"}
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		if !slices.Contains(want, string(name)) {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) != 2 || string(fields[1]) != "kB" {
			return 0, fmt.Errorf("%s cannot be read here: %q in /proc/meminfo", kindMemory, line)
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s cannot be read here: /proc/meminfo: %w", kindMemory, err)
		}
		sum += n << 10
		want = slices.DeleteFunc(want, func(w string) bool { return w == string(name) })
	}
	if len(want) > 0 {
		return 0, fmt.Errorf("%s cannot be read here: /proc/meminfo has no %v", kindMemory, want)
	}
	return sum, nil
}

// memorySample is what is reported of a cost of memory, which has no time.
func memorySample(c workload.Cost, n int) []load.BatchSample {
	return []load.BatchSample{{Metric: metricMemory, Value: float64(c.Memory) / float64(n)}}
}

// policiesToProve is how many policies are held while some of them are proved.
func (p plan) policiesToProve() int { return cmp.Or(p.others, provedPolicies) }

// needsHolder reports whether a process holds policies of the treatment.
func (s *Spec) needsHolder(p plan) bool {
	return slices.Contains(s.SetUp, kindMemory) || (p.others > 0 && p.stack.fillers() == 0)
}
