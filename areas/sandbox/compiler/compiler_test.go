package compiler

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/files"
	"tare/rigs/hosttest"
)

// script makes a program of these lines of sh and puts it into PATH.
func script(t *testing.T, lines string) Compiler {
	t.Helper()
	dir := t.TempDir()
	const name = "tare-test-compiler"
	//nolint:gosec // a program
	if err := files.WriteProgram(filepath.Join(dir, name), []byte("#!/bin/sh\n"+lines+"\n")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return Compiler{Program: name, Package: "none"}
}

func TestRunReturnsWhatTheProgramWrote(t *testing.T) {
	c := script(t, "echo a; cat "+SourceFile+" > "+ResultFile+"; echo said of "+SourceFile+" >&2")
	out, messages, err := c.Run(t.Context(), "mine", "source\n")
	if err != nil || string(out) != "a\nsource\n" || len(messages) != 1 || messages[0] != "said of mine" {
		t.Errorf("got %q, %q, %v", out, messages, err)
	}
}

func TestRunSaysWhyItFailed(t *testing.T) {
	for lines, want := range map[string]string{
		"exit 3": "compile mine: tare-test-compiler: exit status 3",
		"echo " + SourceFile + " is bad >&2; exit 1":      "compile mine: mine is bad",
		"exec head -c 17000000 /dev/zero":                 "wrote more than",
		"exec head -c 17000000 /dev/zero > " + ResultFile: "wrote more than",
	} {
		if _, _, err := script(t, lines).Run(t.Context(), "mine", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", lines, err, want)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err := script(t, "exec sleep 1000").Run(ctx, "mine", "")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "compile mine") {
		t.Errorf("got %v", err)
	}
}

// TestRunBoundsTheProgram: the program has its limits soon after it has started, and is refused more memory.
func TestRunBoundsTheProgram(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, _, err := script(t, `until [ "$(ulimit -t) $(ulimit -d)" = "60 1048576" ]; do :; done
exec dd if=/dev/zero of=/dev/null count=1 bs=2G`).Run(ctx, "mine", "")
	if err == nil || err.Error() != "compile mine: tare-test-compiler needs more than 1024 MiB of memory" {
		t.Errorf("got %v", err)
	}
}

func TestFindNamesThePackage(t *testing.T) {
	_, _, err := Compiler{Program: "tare-test-absent", Package: "absent-tools"}.Run(t.Context(), "mine", "")
	if err == nil || err.Error() != "tare-test-absent is not installed" {
		t.Fatalf("got %v", err)
	}
	if hint, ok := err.(interface{ Hint() string }); !ok || !strings.Contains(hint.Hint(), "install absent-tools") {
		t.Errorf("no hint to the package: %v", err)
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
