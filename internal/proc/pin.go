package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// Allowed returns the processors on which this process may run, numbered from 0.
func Allowed() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read CPU affinity: %w", err)
	}
	return processorsIn(&set), nil
}

func processorsIn(set *unix.CPUSet) []int {
	var cpus []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// AllowedTo returns the processors on which any thread of a process or of its descendants may run. It fails when the
// process has ended.
func AllowedTo(pid int) ([]int, error) {
	var all unix.CPUSet
	if err := allow(pid, &all); err != nil {
		return nil, fmt.Errorf("read CPU affinity of process %d: %w", pid, err)
	}
	return processorsIn(&all), nil
}

func allow(pid int, all *unix.CPUSet) error {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		var set unix.CPUSet
		if unix.SchedGetaffinity(tid, &set) != nil {
			continue // it has ended meanwhile
		}
		for i := range set {
			all[i] |= set[i]
		}
		children, err := files.Kernel(tasks + "/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(f); err == nil {
				_ = allow(child, all) // one that has ended meanwhile adds nothing
			}
		}
	}
	return nil
}

// Pin binds this process to the given processors: all its threads, and those that they start. Children whose Spec names
// no CPUs inherit it.
func Pin(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	// A thread that starts while the list is read may be missed, so the list is read until no new thread turns up.
	done := map[int]bool{}
	for again := true; again; {
		again = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("pin to CPUs %v: %w", cpus, err)
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || done[tid] {
				continue
			}
			done[tid], again = true, true
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("pin to CPUs %v: %w; this machine has %d", cpus, err, runtime.NumCPU())
			}
		}
	}
	return nil
}
