package kit

import (
	"errors"

	"tare/area"
	"tare/internal/proc"
)

// Environment returns get, or an environment without variables if get is nil.
func Environment(get func(name string) (string, bool)) func(name string) (string, bool) {
	if get == nil {
		return func(string) (string, bool) { return "", false }
	}
	return get
}

// Processors returns the processors on which the area's own servers may run: CPUs or, if that is empty, all that this
// process may use. It fails if there are none.
func Processors(e area.Env) ([]int, error) {
	cpus := e.CPUs
	if len(cpus) == 0 {
		var err error
		if cpus, err = proc.Allowed(); err != nil {
			return nil, err
		}
	}
	if len(cpus) == 0 {
		return nil, errors.New("this process may not use any processor: check its CPU affinity (taskset -p)")
	}
	return cpus, nil
}
