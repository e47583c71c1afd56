// Command tare-make does what targets of the Makefile need more than a line for: it builds tare of some areas, lists
// what the tests could not try and the packages with goroutines, fuzzes all targets, links embedded modules to
// edit them, and writes the gallery.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

var commands = map[string]func(context.Context, []string, io.Writer) error{
	"build":      build,
	"concurrent": concurrent,
	"fuzz":       fuzz,
	"gallery":    gallery,
	"modules":    modules,
	"untried":    untried,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tare-make:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	names := strings.Join(slices.Sorted(maps.Keys(commands)), ", ")
	if len(args) == 0 {
		return errors.New("name a command: " + names)
	}
	do, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown command %q; the commands are: %s", args[0], names)
	}
	return do(ctx, args[1:], out)
}

// command returns a command that writes to out and to stderr.
func command(ctx context.Context, out io.Writer, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd
}
