//go:build !amd64

package workload

// ownSyscalls returns the system calls that only this architecture has.
func ownSyscalls() map[string]harmless { return nil }
