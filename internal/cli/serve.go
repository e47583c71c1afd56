package cli

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tare/area"
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
			servers := ar.Parts().Servers
			serve, ok := servers[args[1]]
			switch {
			case len(servers) == 0:
				return usage("area %q has no servers of its own", args[0])
			case !ok:
				return fmt.Errorf("serve: %s has no server %q, only %s", args[0], args[1],
					strings.Join(sortedKeys(servers), " and "))
			}
			return a.serve(c.Context(), serve)
		},
	}
}

// serve ends with its parent. An interrupt at the terminal reaches the whole process group, but the parent decides when
// its servers end: after it has probed them and undone its changes.
func (a *app) serve(ctx context.Context, serve area.Serve) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	return proc.Serve(ctx, a.Stdin, a.Stdout, serve)
}
