package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

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
			if err := a.undo(c.Context(), dir, yes); err != nil {
				return err
			}
			if err := record.DropStale(lockFolder()); err != nil { // the next run on the same target reuses them
				a.tell("note: %v\n", err)
			}
			return nil
		},
	}
	resultsFlag(c, &results)
	c.Flags().StringVar(&yes, "yes", "",
		"undo a record that this user did not make on this host: the `NUMBER` of what an earlier call has shown")
	return c
}

func (a *app) undo(ctx context.Context, dir, yes string) error {
	rec, err := record.OpenOwn(dir)
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	pending := rec.Pending()
	if len(pending) > 0 {
		if err := a.undoChanges(ctx, rec, pending, yes); err != nil {
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
func (a *app) undoChanges(ctx context.Context, rec *record.Record, pending []area.Change, yes string) error {
	key, here := a.key(), madeHere(rec)
	if !here || !rec.Sealed(key) {
		number, err := numberOf(pending)
		if err != nil {
			return err
		}
		if yes != number && yes != whateverIsShown {
			return a.refuseForeign(rec, pending, yes, number)
		}
	}
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
	if !here {
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

// madeHere reports whether the record was made on a host with this one's name; an older record may not say.
func madeHere(rec *record.Record) bool {
	name, err := os.Hostname()
	return err != nil || rec.Header.Host.Name == "" || rec.Header.Host.Name == name
}

// whateverIsShown takes the place of a number where the user has agreed to continue the record as it is. It is no
// number that a user can give.
const whateverIsShown = "\x00"

// numberOf returns a number of changes, which differs for all others.
func numberOf(pending []area.Change) (string, error) {
	text, err := json.Marshal(pending)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

// refuseForeign prints what undoing would do for a record that this user did not make on this host, and refuses. yes is
// the number that was given, if any.
func (a *app) refuseForeign(rec *record.Record, pending []area.Change, yes, number string) error {
	a.print("%s was not made on this host by this user, or was changed since. To undo it would mean:\n", rec.Dir)
	for _, c := range pending {
		a.print("  %s %q\n", c.Kind, c.ID)
		for _, name := range slices.Sorted(maps.Keys(c.Data)) {
			a.print("    %s: %q\n", name, c.Data[name])
		}
	}
	if yes != "" {
		return usage("nothing was undone: --yes %s is not the number of that; if you want all of that, repeat with --yes %s",
			yes, number)
	}
	return usage("nothing was undone; if you want all of that, repeat with --yes %s", number)
}
