package workload

import "fmt"

// Programs lists the names that NewProgram knows.
func Programs() []string { return []string{"sysbench-cpu", "sysbench-memory"} }

// NewProgram returns an installed program as a command line with a fixed amount of work. The error is a *Missing when
// it is not installed.
func NewProgram(name string) (Command, error) {
	var args []string
	switch name {
	case "sysbench-cpu": // primes: user space alone
		args = []string{"cpu", "--cpu-max-prime=2000", "--events=400"}
	case "sysbench-memory": // writes: user space and page faults
		args = []string{"memory", "--memory-block-size=4K", "--memory-total-size=256M"}
	default:
		return Command{}, fmt.Errorf("unknown program %.40q", name)
	}
	path, err := installed("sysbench", "sysbench")
	if err != nil {
		return Command{}, err
	}
	return Command{Name: name, Run: append(append([]string{path}, args...), "--threads=1", "--time=0", "run")}, nil
}
