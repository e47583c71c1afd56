package area

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"tare/internal/ratelimit"
)

// Env is what an area may use of the outside world.
type Env struct {
	Dir   string // the run's folder, for logs and sockets
	Run   string // names what is made on servers and hosts: 12 lower-case letters and digits that no other run has
	Self  string // path of this binary, for child processes
	Log   *slog.Logger
	Clock Clock
	// Getenv looks up an environment variable, for secrets; nil: no variable is set.
	Getenv func(name string) (string, bool)
	// Look says that nothing will be measured: the caller only wants to know what a run would do, so nothing is built or
	// started but what describes itself.
	Look bool
	// Inert says that besides nothing is started at all, and no address connected to, for Parts.Program: the answer comes
	// from the file alone.
	Inert bool
	// Trespasses says that the run asks for what the control must refuse, among calls at rates that tare chooses: then the
	// operations must be calls, and not batches.
	Trespasses bool
	// Treatments are the treatments that will be measured, for Preflight and Open; empty: unknown.
	Treatments []Treatment
	// Operations are the names of the operations that the load chooses, so that only what they need is prepared; empty:
	// the area's default.
	Operations []string
	// Limit bounds the requests to targets that tare did not start, over the whole run: the load and the area's checks;
	// nil: no bound.
	Limit *Limiter
	// CPUs are the processors on which the area's own servers may run, from 0; empty: all.
	CPUs []int
}

// LogFile returns the path of the log of a process; empty if the run has no folder.
func (e Env) LogFile(name string, index int) string {
	if e.Dir == "" {
		return ""
	}
	return filepath.Join(e.Dir, fmt.Sprintf("%s-%d.log", name, index))
}

// Clock tells the time and lets it pass.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier with the context's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// A Limiter bounds requests over the whole run: Wait(ctx) before each. A nil one does not.
type Limiter = ratelimit.Limiter
