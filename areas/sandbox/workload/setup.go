package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The files of a scratch directory.
const (
	programFile = "program"   // executes itself, or ends immediately
	plainFile   = "file"      // opened, read, and asked for attributes
	sourceFile  = "source"    // copied
	targetFile  = "target"    // overwritten by the copy
	scriptFile  = "script.sh" // run by shell
	linesFile   = "lines"     // its input
)

// fileSize is the size of the files that are copied.
const fileSize = 1 << 20

// Setup fills a scratch directory, which must exist, with the files of the micro-workloads. It is called before the
// worker is confined. The worker needs read, write and execute rights below dir, and changes nothing elsewhere. The
// caller removes the directory. Its file system affects the cost of open, stat, create, read and copy: tmpfs has the
// least noise.
func Setup(dir string) error {
	elf, err := program(runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("set up workloads: %w", err)
	}
	var lines strings.Builder
	for i := range 200 {
		fmt.Fprintf(&lines, "%d line\n", (i*7919)%200)
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{programFile, elf, 0o755},
		{plainFile, make([]byte, 4096), 0o644},
		{sourceFile, make([]byte, fileSize), 0o644},
		{targetFile, make([]byte, fileSize), 0o644},
		{scriptFile, []byte(script), 0o755},
		{linesFile, []byte(lines.String()), 0o644},
	} {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return fmt.Errorf("set up workloads: %w", err)
		}
	}
	return nil
}

// script is what "shell" runs: sort, filter and count, through pipes and one file of its own, which the argument names.
const script = `set -e
sort -n lines > "$1"
test "$(grep -c 1 "$1" | od -An -c | wc -l)" = 1
rm "$1"
`
