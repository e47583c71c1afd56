package pull

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/klog/v2"
)

// Complaints are the errors that upstream logs. Upstream carries on after them: a check that cannot read its record
// answers "pull", and a record that cannot be written is dropped. The timed calls then do something other than the
// operation's name says, so the driver must notice.
type complaints struct {
	mu   sync.Mutex
	errs []error
	more int
}

// mostComplaints limits how many complaints of a batch are kept.
const mostComplaints = 3

// take returns the complaints since the last call.
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

// Enabled returns false: messages that are not errors are dropped.
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

// silence discards messages that upstream logs without using the logger that it is given.
func silence() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}
