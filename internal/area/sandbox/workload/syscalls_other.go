//go:build !amd64

package workload

// ownSyscalls are those of this architecture alone.
func ownSyscalls() map[string]harmless { return nil }
