package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/record"
)

func (a *app) undoCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "undo RUN", Short: "Take back what a run created and could not remove", Args: exactly("RUN"),
		Long: "Reads the journal in folder RUN and removes everything that the run created and has not removed itself: after kill -9, a crash, or\n" +
			"a second interrupt. It may be called any number of times. A record that this user did not make on this host is undone with --yes only:\n" +
			"what is to be taken back names programs, addresses and processes. Where the record cannot be written, since the disk is full, everything is\n" +
			"undone all the same, and the exit code is 1: the next call undoes it again, which changes nothing, and writes that.",
		RunE: func(c *cobra.Command, args []string) error {
			unlock, err := hold(args[0])
			if err != nil {
				return err
			}
			defer unlock()
			if err := a.undo(c.Context(), args[0], yes); err != nil {
				return err
			}
			if err := record.DropStale(locks()); err != nil { // the next run on the same target takes them over
				a.tell("note: %v\n", err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "undo also what this user did not do on this host")
	return c
}

func (a *app) undo(ctx context.Context, dir string, yes bool) error {
	rec, err := record.Open(dir)
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	pending := rec.Pending()
	if len(pending) > 0 {
		if err := a.takeBack(ctx, rec, pending, yes); err != nil {
			return err
		}
	}
	if n := rec.Damaged; len(n) > 0 {
		return fmt.Errorf("undo %s: %s of the journal cannot be read: what they say of changes is not known, and not undone", dir, lineList(n))
	}
	if len(pending) == 0 {
		a.print("nothing to undo in %s\n", dir)
	}
	return nil
}

// lineList names lines of a journal, the first of them one by one.
func lineList(lines []int) string {
	const most = 20
	if n := len(lines) - most; n > 0 {
		return fmt.Sprintf("lines %v and %d more", lines[:most], n)
	}
	return fmt.Sprintf("lines %v", lines)
}

// takeBack undoes changes, the latest first, and writes that they are undone.
func (a *app) takeBack(ctx context.Context, rec *record.Record, pending []area.Change, yes bool) error {
	key, here := a.key(), madeHere(rec)
	if !yes && (!here || len(rec.Foreign(key)) > 0) {
		return a.foreign(rec, pending)
	}
	ar, err := a.area(rec.Header.Area)
	if err != nil {
		return err
	}
	env, err := a.areaEnv(rec.Dir)
	if err != nil {
		return err
	}
	if err := ar.Undo(ctx, pending, env); err != nil {
		return fmt.Errorf("undo %s: %w; call it again once the cause is gone", rec.Dir, err)
	}
	for _, c := range pending {
		a.print("undone  %s %s\n", c.Kind, c.ID)
	}
	if !here {
		a.print("the run was on host %s: its processes and control groups can be taken back only there, so nothing is marked as undone\n", rec.Header.Host.Name)
		return nil
	}
	// That comes last: a full disk keeps nothing from being undone.
	if err := rec.MarkUndone(key, pending, clock.System{}); err != nil {
		return fmt.Errorf("undo %s: all of that was undone, but the record cannot say so: %w; call it again once the record can be written: that changes nothing else",
			rec.Dir, err)
	}
	return nil
}

// madeHere reports whether the record was made on a host of this one's name; an older one may not say.
func madeHere(rec *record.Record) bool {
	name, err := os.Hostname()
	return err != nil || rec.Header.Host.Name == "" || rec.Header.Host.Name == name
}

// foreign shows what would be undone of a record that this user did not make on this host, and refuses.
func (a *app) foreign(rec *record.Record, pending []area.Change) error {
	a.print("%s was not made on this host by this user, or was changed since. To undo it would mean:\n", rec.Dir)
	for _, c := range pending {
		a.print("  %s %q\n", c.Kind, c.ID)
		for _, name := range slices.Sorted(maps.Keys(c.Data)) {
			a.print("    %s: %q\n", name, c.Data[name])
		}
	}
	return usage("nothing was undone; if you want all of that, repeat with --yes")
}
