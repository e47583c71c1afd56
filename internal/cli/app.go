package cli

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/config"
	"tare/internal/ratelimit"
	"tare/internal/term"
)

// app is one invocation.
type app struct {
	Env
	verbose bool
	// inconclusiveOK makes an inconclusive result a warning, unless policies differ in what no request shows; unshownOK
	// does so in any case.
	inconclusiveOK, unshownOK bool
	// isOneLine says that the command composes the experiment, so that hints name flags and not fields of a file.
	isOneLine bool
	// interrupts are those of the command run.
	interrupts *interrupts
	// guesses bounds the rate of all questions that guess asks; nil: none was asked.
	guesses *ratelimit.Limiter
	// limiter bounded the last step that sent requests, such as the guess or the look at the host; nil: none has.
	limiter *ratelimit.Limiter
	// lost is the first error of writing to standard output: a report that was not delivered must not look like
	// success.
	lost error
}

// print writes to standard output: results.
func (a *app) print(format string, args ...any) {
	if _, err := io.WriteString(a.Stdout, term.Plain(fmt.Sprintf(format, args...))); err != nil && a.lost == nil {
		a.lost = fmt.Errorf("write to standard output: %w", err)
	}
}

// tell writes to standard error everything that is not a result. If that fails, there is nowhere to report it.
func (a *app) tell(format string, args ...any) {
	_, _ = io.WriteString(a.Stderr, term.Plain(fmt.Sprintf(format, args...)))
}

// area finds an area by name.
func (a *app) area(name string) (area.Area, error) {
	ar, ok := a.Areas.Find(name)
	if !ok {
		return nil, usage("unknown area %q: %s", name, config.KnownAreas(a.Areas, name))
	}
	return ar, nil
}

// plainWriter writes its input as term.Plain.
type plainWriter struct{ io.Writer }

func (p plainWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.Writer, term.Plain(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// logger writes to stderr: warnings, and with --verbose all messages.
func (a *app) logger(w io.Writer) *slog.Logger {
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(plainWriter{w}, &slog.HandlerOptions{Level: level}))
}

// areaEnv returns the parts of the environment that an area may use.
func (a *app) areaEnv(dir string) (area.Env, error) {
	self, err := os.Executable()
	if err != nil {
		return area.Env{}, fmt.Errorf("find tare's own executable, to start servers with it: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return area.Env{}, err
	}
	return area.Env{Dir: dir, Self: self, Log: a.logger(a.Stderr), Clock: clock.System{}, Getenv: a.lookup}, nil
}

// lookup returns the value of an environment variable for a secret. An empty value counts as unset.
func (a *app) lookup(name string) (string, bool) {
	if a.Getenv == nil {
		return "", false
	}
	v := a.Getenv(name)
	return v, v != ""
}

// sortedKeys returns m's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
