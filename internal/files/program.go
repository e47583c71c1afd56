package files

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that is to be executed. Meanwhile this process starts no other one: that would inherit the
// open file until it executes its own program, and no kernel executes a file that is open for writing (ETXTBSY).
func WriteProgram(path string, text []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, 0o755)
}
