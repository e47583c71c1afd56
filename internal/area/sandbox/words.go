package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/internal/metric"
)

// The levels of the factor "enforcer".
const (
	enforcerNone     = "none"
	enforcerSeccomp  = "seccomp"
	enforcerLandlock = "landlock"
)

// The attempts that proofs make, as the worker knows them.
const (
	trySyscall = "syscall" // NAME, with arguments that change nothing
	tryFifo    = "fifo"    // PATH
	tryCreate  = "create"  // PATH
	tryOpen    = "open"    // PATH
	tryExec    = "exec"    // PATH
)

// The workloads on which some enforcer cannot act.
const (
	workFork    = "fork"
	workCompute = "compute"
	workSyscall = "syscall"
)

// name is "EPERM", or "success".
func name(e syscall.Errno) string {
	if e == 0 {
		return "success"
	}
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return fmt.Sprintf("errno %d", int(e))
}

// fifoIn is the named pipe that proofs try to make: no workload makes any.
func fifoIn(dir string) string { return filepath.Join(dir, "proof.fifo") }

// fileIn is the file that proofs make beside it.
func fileIn(dir string) string { return filepath.Join(dir, "proof.file") }

// The metrics of a batch.
var (
	metricWall         = metric.Wall.Name
	metricCPU          = metric.CPU.Name
	metricInstructions = metric.Instructions.Name
)

// A hinted error carries what to do next.
type hinted struct {
	cause error
	hint  string
}

func withHint(err error, hint string) error { return &hinted{cause: err, hint: hint} }

// Error implements error.
func (h *hinted) Error() string { return h.cause.Error() }

// Unwrap gives the cause.
func (h *hinted) Unwrap() error { return h.cause }

// hintOf is the next step that err carries, or nothing.
func hintOf(err error) string {
	if h, ok := errors.AsType[*hinted](err); ok {
		return h.hint
	}
	return ""
}

// didYouMean is the end of a message that names the nearest of names, or nothing.
func didYouMean(word string, names []string) string {
	best, at := "", 3
	for _, n := range names {
		limit := 2
		if min(len(word), len(n)) <= 3 {
			limit = 1
		}
		if d := distance(strings.ToLower(word), strings.ToLower(n)); d <= limit && d < at {
			best, at = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// longest is the longest word that didYouMean looks at: the effort grows with the square.
const longest = 64

// distance counts the insertions, deletions and substitutions that turn a into b (Levenshtein 1966).
func distance(a, b string) int {
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := before
			if a[i-1] != b[j-1] {
				cost++
			}
			before = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
