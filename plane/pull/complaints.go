package pull

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/klog/v2"
)

// Complaints are the errors that upstream logs. It answers as if nothing had happened: a check that cannot read its record says "pull", a record that
// cannot be written is left out. What was timed then is not what the operation's name says, so that the driver must know.
type complaints struct {
	mu   sync.Mutex
	errs []error
	more int
}

// mostComplaints bounds what is kept of a batch.
const mostComplaints = 3

// take returns what was complained of since the last time.
func (c *complaints) take() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(c.errs...)
	if c.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, c.more)
	}
	c.errs, c.more = nil, 0
	return err
}

// Init implements logr.LogSink.
func (c *complaints) Init(klog.RuntimeInfo) {}

// Enabled says that nobody wants to hear what is no error.
func (c *complaints) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (c *complaints) Info(int, string, ...any) {}

// Error keeps an error.
func (c *complaints) Error(err error, message string, _ ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errs) == mostComplaints {
		c.more++
		return
	}
	c.errs = append(c.errs, fmt.Errorf("the pull manager: %s: %w", message, err))
}

// WithValues implements logr.LogSink.
func (c *complaints) WithValues(...any) klog.LogSink { return c }

// WithName implements logr.LogSink.
func (c *complaints) WithName(string) klog.LogSink { return c }

// silence discards what is logged past the logger that upstream is given.
func silence() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}
