package proc

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/internal/files"
)

// Tree is a set of processes and their descendants, whose CPU time can be read in nanoseconds.
type Tree struct {
	roots []int
	pids  []int
	// reaped holds reapedBy for each process: it changes when a child of the process ends.
	reaped []uint64
}

// NewTree finds the descendants of at least one process; a root that descends from another counts once. All of them
// must run throughout: a process that starts or ends later makes measurements fail, because the kernel reports the time
// of ended processes in whole ticks only.
func NewTree(roots ...int) (*Tree, error) {
	if len(roots) == 0 {
		return nil, errors.New("process tree: no root process is given")
	}
	t := &Tree{roots: slices.Clone(roots)}
	var err error
	t.pids, t.reaped, err = listTree(roots)
	if err != nil {
		return nil, fmt.Errorf("process tree of %s: %w", joinPIDs(roots), err)
	}
	return t, nil
}

// PIDs lists the processes, the first root first.
func (t *Tree) PIDs() []int { return slices.Clone(t.pids) }

// CPU returns the CPU time that the processes have used so far.
func (t *Tree) CPU() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range t.pids {
		cpu, err := CPUOf(pid)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		sum += cpu
	}
	return sum, nil
}

// Unchanged returns an error if a process has started or ended since NewTree, or both.
func (t *Tree) Unchanged() error {
	now, reaped, err := listTree(t.roots)
	switch {
	case err != nil:
		return fmt.Errorf("process tree of %s: %w", joinPIDs(t.roots), err)
	case !slices.Equal(now, t.pids):
		return fmt.Errorf("the processes were %v and are %v now: their CPU time is not comparable", t.pids, now)
	case !slices.Equal(reaped, t.reaped):
		return fmt.Errorf("children of the processes %v have ended since: their CPU time is unknown", t.pids)
	}
	return nil
}

func joinPIDs(pids []int) string { return strings.Trim(fmt.Sprint(pids), "[]") }

// listTree lists the processes below roots, and reapedBy for each of them.
func listTree(roots []int) (pids []int, reaped []uint64, err error) {
	for _, root := range roots {
		below, err := Descendants(root)
		if err != nil {
			return nil, nil, err
		}
		for _, pid := range below {
			if !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	for _, pid := range pids {
		n, err := reapedBy(pid)
		if err != nil {
			return nil, nil, err
		}
		reaped = append(reaped, n)
	}
	return pids, reaped, nil
}

// Descendants lists pid and its descendants, depth first. The kernel lists children by the thread that started them.
func Descendants(pid int) ([]int, error) {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", list[i]))
		if err != nil {
			return nil, err
		}
		if len(lists) == 0 && i == 0 {
			return nil, fmt.Errorf("no process %d, or a kernel that does not list children", pid)
		}
		for _, f := range lists {
			text, err := files.Kernel(f)
			if err != nil {
				continue // the thread has ended
			}
			for word := range strings.FieldsSeq(string(text)) {
				child, err := strconv.Atoi(word)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", f, err)
				}
				list = append(list, child)
			}
		}
	}
	slices.Sort(list[1:])
	return list, nil
}

// reapedBy returns a number that grows whenever the process has reaped a child: the page faults of all such children
// (cminflt, field 11 of /proc/PID/stat, proc_pid_stat(5)). Every process has page faults, while its CPU time, in ticks
// of 10 ms, mostly rounds to 0.
func reapedBy(pid int) (uint64, error) { return statOf(pid, fieldFaults) }
