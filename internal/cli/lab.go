package cli

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tare/internal/area"
	"tare/internal/area/remote"
	"tare/internal/clock"
	"tare/internal/vm"
)

func (a *app) labCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "lab", Short: "Boot a kernel of the distribution in a virtual machine, to measure what this host cannot",
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.labInitCommand(), a.labAgentCommand())
	return c
}

// guestFolder is the run's folder in a guest.
const guestFolder = "/run/tare"

func (a *app) labInitCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init AREA", Short: "First process of a lab VM (tare starts it there)", Hidden: true, Args: exactly("AREA"),
		RunE: func(_ *cobra.Command, args []string) error {
			return vm.Init(a.Args[0], "lab", "agent", args[0]) // there is no /proc yet to look the program up
		},
	}
}

func (a *app) labAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agent AREA", Short: "Measure in a lab VM (tare starts it there)", Hidden: true, Args: exactly("AREA"),
		RunE: func(c *cobra.Command, args []string) error {
			ar, err := a.area(args[0])
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(guestFolder, 0o700); err != nil {
				return err
			}
			env := area.Env{
				Dir: guestFolder, Self: filepath.Clean(self), Clock: clock.System{},
				Log: slog.New(slog.NewTextHandler(a.Stderr, nil)),
			}
			return remote.Serve(c.Context(), ar, env, a.Stdin, a.Stdout)
		},
	}
}
