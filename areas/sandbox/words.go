package sandbox

import (
	"fmt"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/internal/metric"
)

// The levels of the factor "enforcer".
const (
	enforcerNone     = "none"
	enforcerSeccomp  = "seccomp"
	enforcerLandlock = "landlock"
	enforcerBPF      = "bpf"
	enforcerAppArmor = "apparmor"
	enforcerSELinux  = "selinux"
)

// The attempts of proofs, as the worker names them.
const (
	trySyscall = "syscall" // NAME, with arguments that change nothing
	tryFifo    = "fifo"    // PATH
	tryCreate  = "create"  // PATH
	tryOpen    = "open"    // PATH
	tryExec    = "exec"    // PATH
	tryBind    = "bind"    // PORT
	tryConnect = "connect" // PORT

	tryAbstract    = "abstract"    // NAME of a socket of another process
	tryOwnAbstract = "ownabstract" // NAME
	trySignal      = "signal"      // "self" or "parent"
)

// The workloads that some enforcer cannot affect.
const (
	workFork    = "fork"
	workCompute = "compute"
	workSyscall = "syscall"
)

// name returns "EPERM", or "success".
func name(e syscall.Errno) string {
	if e == 0 {
		return "success"
	}
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return fmt.Sprintf("errno %d", int(e))
}

// fifoIn returns the named pipe that proofs try to create: no workload creates any.
func fifoIn(dir string) string { return filepath.Join(dir, "proof.fifo") }

// fileIn returns the file that proofs create beside it.
func fileIn(dir string) string { return filepath.Join(dir, "proof.file") }

// The metrics of a batch.
var (
	metricWall         = metric.Wall.Name
	metricCPU          = metric.CPU.Name
	metricInstructions = metric.Instructions.Name
	metricMemory       = metric.KernelMemory.Name
)
