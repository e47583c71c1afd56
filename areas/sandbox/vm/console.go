package vm

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/internal/files"
)

const (
	// keptOnDisk bounds the log of a console, whose length the guest decides.
	keptOnDisk = 4 << 20
	// keptEnd is how much of its end is kept for messages.
	keptEnd = 64 << 10
)

// A console keeps what the guest prints: the beginning in a log, the end in memory. QEMU writes to a pipe, and so
// neither opens a file nor decides how long it becomes.
type console struct {
	path    string
	log     *os.File
	written int
	ended   chan struct{} // closed when QEMU has closed the pipe

	mu  sync.Mutex
	end []byte
}

// openConsole opens the log and returns the end of the pipe that QEMU gets, which the caller closes once QEMU runs.
func openConsole(path string) (c *console, write *os.File, err error) {
	log, err := files.Append(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open the console's log: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		_ = log.Close()
		return nil, nil, fmt.Errorf("open the console: %w", err)
	}
	c = &console{path: path, log: log, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		_, _ = io.Copy(c, read) // it ends with QEMU
		_ = read.Close()
		_ = log.Close()
	}()
	return c, write, nil
}

// Write implements io.Writer. It never fails: a guest goes on whether its console can be kept or not.
func (c *console) Write(text []byte) (int, error) {
	c.mu.Lock()
	c.end = append(c.end, text...)
	c.end = slices.Delete(c.end, 0, max(0, len(c.end)-keptEnd))
	c.mu.Unlock()
	if c.written >= keptOnDisk {
		return len(text), nil
	}
	kept := text[:min(len(text), keptOnDisk-c.written)]
	c.written += len(kept)
	_, _ = c.log.Write(kept)
	if c.written >= keptOnDisk {
		_, _ = fmt.Fprintf(c.log, "\n[tare keeps the first %d MiB of a console]\n", keptOnDisk>>20)
	}
	return len(text), nil
}

// lastWords returns the end of what the guest has printed. It waits a moment for what a machine that has just ended
// printed last.
func (c *console) lastWords() string {
	soon, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	select {
	case <-c.ended:
	case <-soon.Done():
	}
	c.mu.Lock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(c.end), "?"))
	c.mu.Unlock()
	if text == "" {
		return "its console is empty"
	}
	lines := strings.Split(text, "\n")
	told := slices.DeleteFunc(slices.Clone(lines), isTrace)
	if len(told) == 0 {
		told = lines
	}
	const most = 4
	told = told[max(0, len(told)-most):]
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic: ") }); i >= 0 {
		told = lines[i : i+1] // of tare itself: its stack follows
	}
	for i := range told {
		told[i] = fmt.Sprintf("%.400s", strings.TrimSpace(told[i]))
	}
	return fmt.Sprintf("its console (%s) says: %s", c.path, strings.Join(told, " | "))
}

// isTrace reports whether a line of the console is the kernel's and not the reason of a panic: such lines follow the
// one that matters.
func isTrace(line string) bool {
	return strings.HasPrefix(line, "[") && !strings.Contains(line, "Kernel panic")
}
