package analyze

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"

	"tare/internal/capacity"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

// recordVariable names the record that a child process analyzes.
const recordVariable = "TARE_TEST_RECORD"

// TestPeakOfAnalysis is the child process of TestManyCallsInLittleMemory: it analyzes a record and prints the most
// memory that it ever held.
func TestPeakOfAnalysis(t *testing.T) {
	dir := os.Getenv(recordVariable)
	if dir == "" {
		return // it is run by TestManyCallsInLittleMemory
	}
	debug.SetGCPercent(20) // garbage is hardly counted
	r, err := record.Open(dir)
	must(t, err)
	rep, err := Analyze(r, Options{})
	must(t, err)
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	blocks := 0
	if rep.Design != nil {
		blocks = rep.Design.Blocks
	}
	fmt.Printf("blocks %d, %d searches\n%s", blocks, len(rep.Capacity), status)
}

var peakLine = regexp.MustCompile(`(?:blocks 20, 0|blocks 0, 1) searches\n(?s:.*)VmHWM:\s+(\d+) kB`)

// peakOfAnalysis returns the most memory that a process held which analyzed a record, in bytes.
func peakOfAnalysis(t *testing.T, dir string) float64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeakOfAnalysis$")
	// Where others take the processors a collection beside the analysis ends late, and the heap grows meanwhile.
	cmd.Env = append(os.Environ(), recordVariable+"="+dir, "GODEBUG=gcstoptheworld=1")
	out, err := cmd.CombinedOutput()
	found := peakLine.FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v\n%s", err, bytes.TrimSpace(out))
	}
	kB, err := strconv.ParseFloat(string(found[1]), 64)
	must(t, err)
	return kB * 1024
}

// TestManyCallsInLittleMemory: what an analysis needs for four times as many calls is a few bytes for each, since it
// holds those of one trial at a time. Two quantiles in the tail are asked for, of two operations and of both together.
func TestManyCallsInLittleMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		hosttest.Missing(t, err.Error(), "run on Linux")
	}
	hosttest.SkipIfShort(t)
	const trials, few, many = 60, 250_000, 1_000_000
	peak := func(calls int) float64 {
		x := experiment{
			blocks: 20, calls: calls / trials, seed: 3, cost: millisecond, operations: []string{"token", "introspect"},
			budget: []string{"response.p99 <= +50%", "token.response.p90 <= 1s", "service.p99 <= 1s"},
		}
		return peakOfAnalysis(t, x.write(t, t.TempDir()))
	}
	least, most := peak(few), peak(many)
	perCall := (most - least) / (many - few)
	t.Logf(
		"%d calls take %.1f MB, %d take %.1f MB: %.1f bytes for each call more", few, least/1e6, many, most/1e6, perCall,
	)
	if perCall > 16 {
		t.Errorf("each call more takes %.1f bytes", perCall)
	}
}

// TestManyCallsOfASearchInLittleMemory: what the analysis of a search needs for four times as many calls is less than
// these calls take: it reads those of one step at a time. A budget asks for a quantile at one rate.
func TestManyCallsOfASearchInLittleMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		hosttest.Missing(t, err.Error(), "run on Linux")
	}
	hosttest.SkipIfShort(t)
	peak := func(factor float64) (memory, calls float64) {
		n := 0
		j := journal{budget: []string{"response.p99 <= 500ms at 7500/s"}, trace: func(string) capacity.Trace {
			tr := fastTrace(1, factor)
			n = tr.Calls.Len()
			return tr
		}}
		return peakOfAnalysis(t, j.write(t, t.TempDir())), float64(n)
	}
	least, few := peak(150)
	most, many := peak(600)
	perCall := (most - least) / (many - few)
	t.Logf(
		"%.0f calls take %.1f MB, %.0f take %.1f MB: %.1f bytes for each call more", few, least/1e6, many, most/1e6, perCall,
	)
	if perCall > 30 {
		t.Errorf("each call more takes %.1f bytes", perCall)
	}
}
