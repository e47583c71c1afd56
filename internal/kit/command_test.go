package kit_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/internal/kit"
	"tare/rigs/areatest"
)

// commandIn returns a condition that makes a file and removes it. do is run by a shell in front of that.
func commandIn(dir, do string) (c kit.ByCommand, file string) {
	file = filepath.Join(dir, "file")
	return kit.ByCommand{
		Name: "made", Do: []string{"sh", "-c", do + `; echo "$TARE_TREATMENT" > "$0"`, file}, Undo: []string{"rm", file},
	}, file
}

// TestCommandIsUndone by the run, and by another process with nothing but the journal.
func TestCommandIsUndone(t *testing.T) {
	for _, later := range []bool{false, true} {
		j := &areatest.Journal{}
		c, file := commandIn(t.TempDir(), "true")
		lift, err := c.Condition("a", j).Impose(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "a\n" {
			t.Fatalf("do wrote %q (%v), want the treatment", text, err)
		}
		pending := j.Pending()
		if len(pending) != 1 || pending[0].Kind != kit.CommandKind {
			t.Fatalf("while it lasts the journal has %v, want the command", pending)
		}
		if later {
			err = kit.UndoCommand(t.Context(), pending[0])
		} else if err = lift(t.Context()); len(j.Pending()) > 0 {
			t.Errorf("after undo the journal still has %v", j.Pending())
		}
		if _, missing := os.Stat(file); err != nil || missing == nil {
			t.Errorf("after undo (later: %v) the file is there: %v", later, err)
		}
	}
}

// TestCommandHasNoSecrets: a condition's command gets what programs need to run, and nothing else of tare's
// environment.
func TestCommandHasNoSecrets(t *testing.T) {
	t.Setenv("TARE_TEST_TOKEN", "made up")
	file := filepath.Join(t.TempDir(), "file")
	c := kit.ByCommand{Name: "made", Do: []string{"sh", "-c", `env > "$0"`, file}, Undo: []string{"true"}}
	if _, err := c.Condition("a", &areatest.Journal{}).Impose(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "made up") || !strings.Contains(string(text), "PATH=") ||
		!strings.Contains(string(text), "TARE_TREATMENT=a") {
		t.Errorf("%v, its environment is\n%s", err, text)
	}
}

// TestCommandDoesNotOutliveItsUndo: where tare was killed while Do was at work, undo ends Do first. What Do has left
// behind on purpose stays.
func TestCommandDoesNotOutliveItsUndo(t *testing.T) {
	for _, c := range []struct {
		do    string
		lives bool
	}{{"sleep 600 & wait", false}, {"exec sleep 600", false}, {"sleep 600 &", true}} {
		j, dir := &areatest.Journal{}, t.TempDir()
		command := kit.ByCommand{
			Name: "made", Do: []string{"sh", "-c", `env > "$0"`, filepath.Join(dir, "env")}, Undo: []string{"true"},
		}
		if _, err := command.Condition("a", j).Impose(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "env"))
		if err != nil {
			t.Fatal(err)
		}
		do := exec.Command("sh", "-c", c.do) // as Do would be, after a kill of tare
		do.Env, do.SysProcAttr = strings.Split(string(text), "\n"), &syscall.SysProcAttr{Setpgid: true}
		if err := do.Start(); err != nil {
			t.Fatal(err)
		}
		group := do.Process.Pid
		defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }()
		ended := make(chan error, 1)
		go func() { ended <- do.Wait() }()
		if c.lives {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if err := kit.UndoCommand(t.Context(), j.Pending()[0]); err != nil {
			t.Error(err)
		}
		lives := func() bool { return syscall.Kill(-group, 0) == nil }
		for range 200 { // what was killed takes a moment to end
			if c.lives || !lives() {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if lives := lives(); lives != c.lives {
			t.Errorf("%s: it lives: %t, want %t", c.do, lives, c.lives)
		}
	}
}

// TestFailedCommandIsUndone: it may have done a part of its work. Its error says what it wrote last, but no secret.
func TestFailedCommandIsUndone(t *testing.T) {
	for do, want := range map[string]string{
		"echo no such database >&2; exit 3":                "exit status 3: no such database",
		"echo token refused: password=hunter2 >&2; exit 3": "exit status 3",
	} {
		c, file := commandIn(t.TempDir(), "touch \"$0\"; "+do)
		j := &areatest.Journal{}
		lift, err := c.Condition("a", j).Impose(t.Context())
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("the error is %v, want it to end with %q", err, want)
		}
		if err := lift(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("what a failed command had done was left behind")
		}
	}
	missing := kit.ByCommand{Name: "x", Do: []string{"no-such-program"}, Undo: []string{"true"}}
	if _, err := missing.Condition("a", &areatest.Journal{}).Impose(t.Context()); err == nil {
		t.Error("a program that does not exist did not fail")
	}
}

// TestUndoThatFails leaves the condition in the journal.
func TestUndoThatFails(t *testing.T) {
	j := &areatest.Journal{}
	c := kit.ByCommand{Name: "x", Do: []string{"true"}, Undo: []string{"false"}}
	lift, err := c.Condition("a", j).Impose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := lift(t.Context()); err == nil || len(j.Pending()) != 1 || !strings.Contains(err.Error(), "tare undo") {
		t.Errorf("got %v with %v in the journal, want an error that names tare undo, and the command", err, j.Pending())
	}
}

// TestInterruptedCommandIsKilled with what it started, and then undone.
func TestInterruptedCommandIsKilled(t *testing.T) {
	c, file := commandIn(t.TempDir(), `touch "$0"; sleep 600`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(file); err == nil {
				cancel()
				return
			}
		}
	}()
	lift, err := c.Condition("a", &areatest.Journal{}).Impose(ctx)
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v, want that it was killed", err)
	}
	if err := lift(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
}

// TestJournalOfCommandIsChecked: a record may be damaged.
func TestJournalOfCommandIsChecked(t *testing.T) {
	for _, run := range []string{"", "[]", "{}", `"rm"`} {
		err := kit.UndoCommand(t.Context(), area.Change{ID: "x", Data: map[string]string{"run": run}})
		if err == nil || !strings.Contains(err.Error(), "does not say which command") {
			t.Errorf("run %q: got %v", run, err)
		}
	}
}
