package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Allowed are the processors on which this process may run, from 0.
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

// AllowedTo are the processors on which any thread of a process, or of one that descends from it, may run. It fails when the process is gone.
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
		children, err := os.ReadFile(tasks + "/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(f); err == nil {
				_ = allow(child, all) // one that has ended meanwhile allows nothing
			}
		}
	}
	return nil
}

// Pin binds this process to the given processors: every thread that it has; those to come inherit it, as do children whose Spec names no CPUs.
func Pin(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	// A thread that starts while the list is read may be missed, so it is read until nothing new turns up.
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
