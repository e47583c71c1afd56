package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"tare/areas/sandbox/vm"
	"tare/areas/sandbox/vm/shell"
	"tare/internal/kit/remote"
)

// serveGuest lets a test binary be the program of a lab VM, as tare's binary is: it returns unless it runs in one.
func serveGuest() {
	if len(os.Args) < 3 || os.Args[1] != "lab" {
		return
	}
	var err error
	switch ctx := context.Background(); os.Args[2] {
	case "shell":
		err = shell.Serve(ctx, os.Stdin, os.Stdout)
	case "init":
		err = vm.Init(ctx, os.Stderr, os.Args[0], append([]string{"lab"}, os.Args[3:]...)...)
	case "agent":
		err = remote.Serve(ctx, Area{}, slog.New(slog.NewTextHandler(os.Stderr, nil)), os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
