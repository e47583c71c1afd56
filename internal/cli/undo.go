package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/record"
)

func (a *app) undoCommand() *cobra.Command {
	var yes, results string
	c := &cobra.Command{
		Use: "undo RUN", Short: "Undo the changes that a run made and could not undo", Args: exactly("RUN"),
		Long: "Reads the journal of RUN, a folder or a name below results/, and undoes every change that the run\n" +
			"made and did not undo itself: after kill -9, a crash, or a second interrupt. You may run\n" +
			"it any number of times. The journal names programs, addresses and processes: if this user did not make\n" +
			"the record on this host, undo shows them, and a number of just these for --yes.\n\n" +
			"If the disk is full, tare undoes everything but cannot record that, and exits with 1. The next call\n" +
			"undoes everything again, which changes nothing, and records it.",
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := findRecord(args[0], results)
			if err != nil {
				return err
			}
			unlock, err := lockRecord(dir)
			if err != nil {
				return err
			}
			defer unlock()
			if err := a.undo(c.Context(), dir, toUndo, yes); err != nil {
				return err
			}
			for _, folder := range lockFolders() {
				if err := record.DropStale(folder); err != nil { // the next run on the same target reuses them
					a.tell("note: %v\n", err)
				}
			}
			return nil
		},
	}
	resultsFlag(c, &results)
	c.Flags().StringVar(&yes, "yes", "",
		"undo a record that this user did not make on this host: the `NUMBER` of what an earlier call has shown")
	return c
}

// undo undoes what the run with the record in dir has left. yes is the number that the user gave for what he wants.
func (a *app) undo(ctx context.Context, dir string, want purpose, yes string) error {
	rec, err := record.OpenOwn(dir)
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	pending := rec.Pending()
	if len(pending) > 0 {
		key := a.key()
		if err := a.agreed(rec, key, want, yes); err != nil {
			return err
		}
		if err := a.undoChanges(ctx, rec, key, pending); err != nil {
			return err
		}
	}
	if n := rec.Damaged; len(n) > 0 {
		return fmt.Errorf("undo %s: cannot read %s of the journal: changes that only they record are not undone",
			dir, lineList(n))
	}
	if len(pending) == 0 {
		a.print("nothing to undo in %s\n", dir)
	}
	return nil
}

// lineList lists lines of a journal, the first ones one by one.
func lineList(lines []int) string {
	const most = 20
	if n := len(lines) - most; n > 0 {
		return fmt.Sprintf("lines %v and %d more", lines[:most], n)
	}
	return fmt.Sprintf("lines %v", lines)
}

// undoChanges undoes changes, the latest first, and records that they are undone.
func (a *app) undoChanges(ctx context.Context, rec *record.Record, key record.Key, pending []area.Change) error {
	ar, err := a.area(rec.Header.Area)
	if err != nil {
		return err
	}
	env, err := a.areaEnv(rec.Dir)
	if err != nil {
		return err
	}
	if err := undoEach(ctx, ar, pending, env); err != nil {
		return fmt.Errorf("undo %s: %w; run this command again once the cause is gone", rec.Dir, err)
	}
	for _, c := range pending {
		a.print("undone  %s %s\n", c.Kind, c.ID)
	}
	if !madeHere(rec) {
		a.print("the run was on host %s: its processes and control groups can be removed only there, so nothing is marked "+
			"as undone\n", rec.Header.Host.Name)
		return nil
	}
	// Recording comes last: a full disk must not keep anything from being undone.
	if err := rec.MarkUndone(key, pending, clock.System{}); err != nil {
		return fmt.Errorf("undo %s: everything was undone, but the record could not be updated: %w; once it can be "+
			"written, run this command again, which changes nothing else",
			rec.Dir, err)
	}
	return nil
}

// undoEach ends the conditions of the file's own, which the target may need to be undone, and then undoes the rest.
func undoEach(ctx context.Context, ar area.Area, pending []area.Change, env area.Env) error {
	var commands, rest []area.Change
	for _, c := range pending {
		if c.Kind == kit.CommandKind && c.Area == "" {
			commands = append(commands, c)
		} else {
			rest = append(rest, c)
		}
	}
	err := kit.UndoEach(commands, func(c area.Change) error { return kit.UndoCommand(ctx, c) })
	if len(rest) > 0 {
		err = errors.Join(err, ar.Undo(ctx, rest, env))
	}
	return err
}
