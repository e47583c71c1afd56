package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/proc"
)

// A parentPlan is what a parent to be killed is to do.
type parentPlan struct {
	Program Program
	Parent  string
	Until   string // it says "here" after prepare or operate; or nothing comes of it: "never"
}

// A printedJournal writes changes to stdout.
type printedJournal struct{ out io.Writer }

func (p printedJournal) Intend(c area.Change) error { return json.NewEncoder(p.out).Encode(c) }

func (printedJournal) Undone(area.Change) error { return nil }

// runParent is the process that is killed: it prepares a treatment and waits.
func runParent() int {
	var p parentPlan
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return 2
	}
	t := New(Config{
		Area: "tool", Env: area.Env{}, Parent: p.Parent,
		Arm: func(tr design.Treatment) (Arm, error) { return Arm{Program: p.Program, Levels: tr.Levels}, nil },
	})
	err := t.Prepare(context.Background(), baseline(), printedJournal{os.Stdout})
	if err == nil && p.Until == DoOperate {
		ops, _ := t.Operations(baseline())
		_, err = ops[1].Batch(context.Background(), 5)
	}
	fmt.Println(`"here"`, err)
	time.Sleep(time.Minute)
	return 1
}

// killParent starts a parent, kills it once its driver has received the request at, and returns what it has journaled,
// the latest first.
func (s *stage) killParent(t *testing.T, at string) []area.Change {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"=parent")
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := parentPlan{Program: s.actor.program(t), Parent: s.parent, Until: at}
	p.Program.Dir = s.parent
	if err := json.NewEncoder(in).Encode(p); err != nil {
		t.Fatal(err)
	}
	var changes []area.Change
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for until := time.Now().Add(20 * time.Second); !strings.Contains(s.requests(t), at); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the driver was never asked to %s", at)
		}
	}
	time.Sleep(50 * time.Millisecond) // into the middle of it
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for line := range lines {
		var c area.Change
		if json.Unmarshal([]byte(line), &c) == nil && c.Kind != "" {
			changes = append([]area.Change{c}, changes...)
		}
	}
	_ = cmd.Wait()
	return changes
}

// TestKilledRunIsUndone: after kill −9 no driver keeps running, and Undo undoes everything else, twice.
func TestKilledRunIsUndone(t *testing.T) {
	for name, c := range map[string]struct {
		actor actor
		at    string
	}{
		"in prepare":                       {actor{At: DoPrepare, How: "hang"}, DoPrepare},
		"in operate":                       {actor{At: DoOperate, How: "hang"}, DoOperate},
		"ignores its end":                  {actor{Stubborn: true, At: DoOperate, How: "hang"}, DoOperate},
		"with a grandchild that lives on":  {actor{At: DoOperate, How: "fork"}, DoOperate},
		"before it has prepared anything":  {actor{At: DoDescribe, How: "hang"}, DoDescribe},
		"with a folder that somebody took": {actor{}, DoPrepare},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.actor, nil)
			changes := s.killParent(t, c.at)
			kinds := ""
			for _, x := range changes {
				kinds = x.Kind + " " + kinds
				if x.Kind == kit.ProcessKind {
					s.awaitEnd(t, x)
				}
				if x.Kind == FolderKind && strings.Contains(name, "took") {
					if err := os.RemoveAll(x.Data["path"]); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := "folder process prepared "
			if c.at == DoDescribe {
				want = "folder process "
			}
			if kinds != want {
				t.Fatalf("journaled %s; want %s", kinds, want)
			}
			if c.at != DoDescribe && len(s.leftInWorld(t)) != 1 {
				t.Fatal("nothing is there to be undone")
			}
			s.actor.At, s.actor.Stubborn = "", false
			s.setActor(t)
			for range 2 {
				if err := Undo(t.Context(), changes, s.env); err != nil {
					t.Error(err)
				}
			}
			s.wantClean(t)
		})
	}
}

// TestNamedProcessIsEnded: a process that has left its session and cleared its environment is found by the program's
// report about it, after kill −9 and at the end of a run.
func TestNamedProcessIsEnded(t *testing.T) {
	t.Parallel()
	t.Run("after kill -9", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, actor{At: DoPrepare, How: "daemon"}, nil)
		var daemon []area.Change
		changes := s.killParent(t, DoOperate)
		for _, c := range changes {
			if c.Kind == NamedKind {
				daemon = append(daemon, c)
			}
		}
		if len(daemon) != 1 || !isAlive(t, daemon[0]) {
			t.Fatalf("journaled %v; want one process, which lives", changes)
		}
		s.actor.At = ""
		s.setActor(t)
		for range 2 {
			if err := Undo(t.Context(), changes, s.env); err != nil {
				t.Error(err)
			}
			if isAlive(t, daemon[0]) {
				t.Error("it lives on")
			}
		}
		s.wantClean(t)
	})
	t.Run("at the end", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, actor{At: DoPrepare, How: "daemon"}, nil)
		s.entered(t)
		i := slices.IndexFunc(s.ledger.pending, func(c area.Change) bool { return c.Kind == NamedKind })
		if i < 0 {
			t.Fatalf("not journaled: %v", s.ledger.pending)
		}
		daemon := s.ledger.pending[i]
		if !isAlive(t, daemon) {
			t.Fatal("it does not live")
		}
		s.close(t)
		if isAlive(t, daemon) || len(s.ledger.pending) > 0 {
			t.Errorf("it lives on, or %v is left", s.ledger.pending)
		}
	})
}

// isAlive reports whether a journaled process is still running.
func isAlive(t *testing.T, c area.Change) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + c.Data["pid"] + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	return fields[0] != "Z" && fields[19] == c.Data["start_ticks"]
}

// TestEarlierProcessIsNotEnded: a process that existed before the program does not belong to the program.
func TestEarlierProcessIsNotEnded(t *testing.T) {
	t.Parallel()
	server := exec.Command("/bin/sleep", "60")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	ticks, err := proc.StartTicks(server.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // start times are in ticks of 10 ms
	s := newStage(t, actor{At: DoPrepare, How: "ok", Answer: fmt.Sprintf(`{"pids":{"server":%d}}`, server.Process.Pid)},
		nil)
	s.entered(t)
	for _, c := range s.ledger.pending {
		if c.Kind == NamedKind {
			t.Errorf("journaled as the program's own: %v", c)
		}
	}
	s.actor.At = ""
	s.close(t)
	if now, err := proc.StartTicks(server.Process.Pid); err != nil || now != ticks {
		t.Errorf("it was ended: %v", err)
	}
}

// setActor makes a restarted program behave as the actor does now, since its environment is not in the journal.
func (s *stage) setActor(t *testing.T) {
	t.Helper()
	s.env.Getenv = s.actor.program(t).getenv
}

func (s *stage) awaitEnd(t *testing.T, c area.Change) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join("/proc", c.Data["pid"], "stat"))
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
	}
	t.Errorf("driver %s outlives its parent", c.Data["pid"])
}

// TestGrandchildren: processes that a driver left end with its arm: those of its group with it, others with its folder.
func TestGrandchildren(t *testing.T) {
	for _, how := range []string{"", "die"} {
		t.Run("the driver "+how, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, actor{At: DoVerify, How: "fork", Answer: how}, nil)
			err := s.enter(t)
			if how == "die" {
				wantError(t, err, "it ended where an answer to verify was expected", "exit status 3")
			} else if err != nil {
				t.Fatal(err)
			}
			group, session := s.forked(t, false), s.forked(t, true)
			if !living(session) {
				t.Fatal("it is gone too early")
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			for range 200 { // whoever was killed may take a moment to end
				if !living(group) && !living(session) {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if living(group) || living(session) {
				t.Errorf("they live on: %v %v", living(group), living(session))
			}
			s.wantClean(t)
		})
	}
}

func (s *stage) forked(t *testing.T, own bool) (id proc.ID) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.actor.World, fmt.Sprintf("forked-%v", own)))
	if err == nil {
		err = json.Unmarshal(text, &id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func living(id proc.ID) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id.PID))
	ticks, e := proc.StartTicks(id.PID)
	return err == nil && e == nil && ticks == id.StartTicks && !strings.Contains(string(text), ") Z ")
}
