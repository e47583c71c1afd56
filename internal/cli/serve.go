package cli

import (
	"context"
	"encoding/json"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tare/internal/area"
	"tare/internal/proc"
)

// serveCommand runs an area's own server as a child of this binary; its configuration comes on standard input.
func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve AREA SERVER", Short: "Run one of an area's own servers (tare starts these itself)", Hidden: true,
		Args: exactly("AREA", "SERVER"),
		RunE: func(c *cobra.Command, args []string) error {
			ar, err := a.area(args[0])
			if err != nil {
				return err
			}
			s, ok := ar.(area.Server)
			if !ok {
				return usage("area %q has no servers of its own", args[0])
			}
			return a.serve(c.Context(), s, args[1])
		},
	}
}

// serve ends with its parent. An interrupt at the terminal reaches the whole process group, but the parent decides when
// its servers end: after it has probed them and undone its changes.
func (a *app) serve(ctx context.Context, s area.Server, name string) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	return proc.Serve(ctx, a.Stdin, a.Stdout, func(ctx context.Context, config json.RawMessage,
		ready func(any) error,
	) error {
		return s.Serve(ctx, name, config, ready)
	})
}
