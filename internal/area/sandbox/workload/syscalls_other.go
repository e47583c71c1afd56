//go:build !amd64

package workload

// ownSyscalls are the system calls that only this architecture has.
func ownSyscalls() map[string]harmless { return nil }
