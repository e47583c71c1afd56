package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tare/internal/clock"
	"tare/internal/record"
)

func (a *app) undoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "undo RUN", Short: "Take back what a run created and could not remove", Args: exactly("RUN"),
		Long: "Reads the journal in folder RUN and removes everything that the run created and has not removed itself: after kill -9, a crash, or\n" +
			"a second interrupt. It may be called any number of times.",
		RunE: func(c *cobra.Command, args []string) error {
			unlock, err := hold(args[0])
			if err != nil {
				return err
			}
			defer unlock()
			return a.undo(c.Context(), args[0])
		},
	}
}

func (a *app) undo(ctx context.Context, dir string) error {
	rec, err := record.Open(dir)
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	pending := rec.Pending()
	if len(pending) == 0 {
		a.print("nothing to undo in %s\n", dir)
		return nil
	}
	ar, err := a.area(rec.Header.Area)
	if err != nil {
		return err
	}
	env, err := a.areaEnv(dir)
	if err != nil {
		return err
	}
	w, err := record.Append(dir, clock.System{})
	if err != nil {
		return err
	}
	undone := ar.Undo(ctx, pending, env)
	if undone == nil {
		for _, c := range pending {
			a.print("undone  %s %s\n", c.Kind, c.ID)
			undone = errors.Join(undone, w.Undone(c))
		}
	}
	if err := errors.Join(undone, w.Close()); err != nil {
		return fmt.Errorf("undo %s: %w; call it again once the cause is gone", dir, err)
	}
	return nil
}
