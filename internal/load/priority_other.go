//go:build !linux || !(amd64 || arm64 || riscv64)

package load

// priority is not available here.
type priority struct{}

func (*priority) update(int64, bool) {}

func (*priority) release() {}
