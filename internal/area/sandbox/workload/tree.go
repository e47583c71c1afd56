package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tree is a process and its descendants, whose CPU time is read to the nanosecond from outside.
type Tree struct{ pids []int }

// NewTree finds the descendants of pid. They must have been started: a process that is born or ends later makes measurements fail, because the kernel
// tells the time of those that ended in whole ticks only.
func NewTree(pid int) (*Tree, error) {
	pids, err := descend(pid)
	if err != nil {
		return nil, fmt.Errorf("process tree of %d: %w", pid, err)
	}
	return &Tree{pids: pids}, nil
}

// PIDs lists the processes, the first of all first.
func (t *Tree) PIDs() []int { return slices.Clone(t.pids) }

// CPU is the CPU time that the processes have used so far.
func (t *Tree) CPU() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range t.pids {
		cpu, err := processClock(pid)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		sum += cpu
	}
	return sum, nil
}

// unchanged is an error when a process was born or ended since NewTree.
func (t *Tree) unchanged() error {
	now, err := descend(t.pids[0])
	if err != nil {
		return fmt.Errorf("process tree of %d: %w", t.pids[0], err)
	}
	if !slices.Equal(now, t.pids) {
		return fmt.Errorf("the processes were %v and are %v now: their CPU time is not comparable", t.pids, now)
	}
	return nil
}

// descend lists pid and its descendants, each with its children's children behind it. The kernel lists children by the thread that made them.
func descend(pid int) ([]int, error) {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", list[i]))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 && i == 0 {
			return nil, fmt.Errorf("no process %d, or a kernel that does not list children", pid)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				continue // a thread that ended
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
