// Package areatest holds what the tests of several areas share. Only tests import it.
package areatest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/proc"
)

// ServerOfArgs returns the name of the server that this process is to run: it is "x" with the arguments
// "serve AREA x", and empty otherwise.
func ServerOfArgs(areaName string) string {
	if len(os.Args) == 4 && os.Args[1] == "serve" && os.Args[2] == areaName {
		return os.Args[3]
	}
	return ""
}

// Serve runs the named server until its parent ends it, and exits, as "tare serve" does. A TestMain calls it so that
// the test binary can be its own child.
func Serve(a area.Area, name string) {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	serve, ok := a.Parts().Servers[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no server", name)
		os.Exit(1)
	}
	err := proc.Serve(ctx, os.Stdin, os.Stdout, serve)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Env returns the environment of a run: a temporary folder, the test binary as its own child, no environment variables.
func Env(t testing.TB) area.Env {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return area.Env{
		Dir: t.TempDir(), Run: strings.ToLower(rand.Text()[:12]), Self: self,
		Log: slog.New(slog.DiscardHandler), Clock: clock.System{},
	}
}

// Open opens spec as a target of type T. At the end of the test it closes the target, which must undo all changes and
// remove all folders that the journal holds.
func Open[T area.Target](t testing.TB, a area.Area, spec area.Spec, env area.Env) (T, *Journal) {
	t.Helper()
	opened, err := a.Open(t.Context(), spec, env)
	if err != nil {
		t.Fatal(err)
	}
	target, ok := opened.(T)
	if !ok {
		t.Fatalf("Open returned a target of type %T, want %T", opened, target)
	}
	j := &Journal{}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := opened.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		j.WantAllUndone(t)
	})
	return target, j
}

// Treatment returns the treatment with the levels "factor", "level", and so on in pairs.
func Treatment(pairs ...string) design.Treatment {
	levels := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		levels[pairs[i]] = pairs[i+1]
	}
	return design.Treatment{ID: design.ID(levels), Levels: levels}
}
