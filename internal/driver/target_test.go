package driver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
)

// TestTwoTreatmentsInTwoBlocks checks the requests, the journal and its order, and that nothing is left.
func TestTwoTreatmentsInTwoBlocks(t *testing.T) {
	for name, fresh := range map[string]bool{"a process per block": true, "one process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, actor{}, func(c *Config) { c.Fresh, c.Notes = fresh, []string{"noted by the area"} })
			s.ledger.look = func(c area.Change, undone bool) { s.checkJournalLine(t, c, undone) }
			slow := design.Treatment{ID: "mode=slow", Levels: map[string]string{"mode": "slow", "size": "9"}}
			both := []design.Treatment{baseline(), slow}
			for _, tr := range both {
				if err := s.Prepare(t.Context(), tr, s.ledger); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				for _, tr := range both {
					if err := s.Enter(t.Context(), tr); err != nil {
						t.Fatal(err)
					}
					if err := s.Verify(t.Context(), tr); err != nil {
						t.Fatal(err)
					}
				}
				got, err := s.sample(t, "work", 4)
				if d := cmp.Diff(map[string]float64{"wall": 2e-9, "cpu": 1e-9, "allocated": 16, "allocations": 1, "hits": 1},
					got); d != "" || err != nil {
					t.Error(d, err)
				}
				if _, err := s.sample(t, "empty", 8); err != nil {
					t.Error(err)
				}
				for _, tr := range both {
					if err := s.Leave(t.Context(), tr); err != nil {
						t.Fatal(err)
					}
				}
			}
			notes := strings.Join(s.Notes(), "\n")
			want := "noted by the area\nthe calls were made by actor 1\ndescribed by the test\nprepared by the test"
			if d := cmp.Diff(want, notes); d != "" {
				t.Error(d)
			}
			for range 2 { // the second time nothing is left to do
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			s.wantClean(t)
			asked := s.requests(t)
			if n, want := strings.Count(asked, DoDescribe), map[bool]int{true: 2 + 4 + 2, false: 2}[fresh]; n != want {
				t.Errorf("%d processes were started, want %d", n, want)
			}
			if n := strings.Count(asked, DoUndo); n != 2 {
				t.Errorf("undo was asked %d times, want 2: %s", n, asked)
			}
		})
	}
}

// checkJournalLine compares a journal line with the system: an intended change does not exist yet, an undone one no
// longer exists.
func (s *stage) checkJournalLine(t *testing.T, c area.Change, undone bool) {
	switch c.Kind {
	case FolderKind:
		if _, err := os.Stat(c.Data["path"]); err == nil {
			t.Errorf("folder, undone %v: it is there", undone)
		}
	case PreparedKind:
		if _, err := os.Stat(filepath.Join(s.actor.World, "made-"+c.Data["run"])); err == nil {
			t.Errorf("prepared, undone %v: it is there", undone)
		}
	case kit.ProcessKind:
		_, err := os.Stat(filepath.Join("/proc", c.Data["pid"]))
		if undone && err == nil {
			t.Error("process undone: it is there")
		}
		if n := strings.Count(s.requests(t), DoDescribe); !undone &&
			n != strings.Count(strings.Join(s.ledger.lines, " "), "+process")-1 {
			t.Errorf("process intended: it has been asked already (%d)", n)
		}
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, nil)
	defer s.close(t)
	s.entered(t)
	ops, err := s.Operations(baseline())
	if err != nil || len(ops) != 2 {
		t.Fatal(ops, err)
	}
	if o := ops[0]; o.Name != "empty" || !o.Harness || o.Most != 0 || o.Span != 0 || o.Rounds != 0 {
		t.Errorf("got %+v, want the harness's operation", o)
	}
	if o := ops[1]; o.Name != "work" || o.Harness || o.Most != 1000 || o.Overhead != "empty" ||
		o.Span != 3*time.Millisecond || o.Rounds != 7 || o.Weight != 1 || o.Expect != "done" {
		t.Errorf("got %+v, want the operation as described", o)
	}
	s.c.Operations, s.c.Span, s.c.Rounds = []string{"work"}, time.Second, 2
	if ops, err = s.Operations(baseline()); err != nil || len(ops) != 2 || ops[1].Span != time.Second ||
		ops[1].Rounds != 2 {
		t.Errorf("%+v, %v; want the configured span and rounds", ops, err)
	}
	if _, err := s.Operations(design.Treatment{ID: "other"}); err == nil {
		t.Error("a treatment that was never prepared has operations")
	}
	if ep, err := s.Endpoint(baseline()); ep != nil || err != nil {
		t.Error(ep, err)
	}
}

func (s *stage) close(t testing.TB) {
	t.Helper()
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	s.wantClean(t)
}

// TestPreparationIsTheSame: each process of a treatment gets the same run, folder and levels, and each treatment its
// own.
func TestPreparationIsTheSame(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, func(c *Config) { c.Fresh, c.Operations = true, []string{"work"} })
	defer s.close(t)
	s.entered(t)
	made := s.leftInWorld(t)
	if len(made) != 1 {
		t.Fatalf("two processes made %v", made)
	}
	text, err := os.ReadFile(made[0])
	if err != nil {
		t.Fatal(err)
	}
	a := s.arms[0].preparation
	for _, part := range []string{
		`"mode":"fast"`, `"operations":["work","empty"]`, `"treatment":"mode=fast"`,
		`"folder":"` + a.Folder + `"`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s lacks %s", text, part)
		}
	}
	other := baseline()
	other.ID = "mode=fast again"
	if err := s.Prepare(t.Context(), other, s.ledger); err != nil {
		t.Fatal(err)
	}
	if b := s.arms[1].preparation; a.Run == b.Run || a.Folder == b.Folder || len(a.Folder) != len(b.Folder) {
		t.Errorf("two treatments share a run or a folder: %+v, %+v", a, b)
	}
	if err := s.Prepare(t.Context(), other, s.ledger); err == nil {
		t.Error("a treatment is prepared twice")
	}
}

// TestTareMeasuresWhatTheProgramDoesNot: the program burns 1 ms of CPU time a call and counts something else.
func TestTareMeasuresWhatTheProgramDoesNot(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{At: DoOperate, How: "burn", Cost: map[string]float64{"allocations": 3}}, nil)
	defer s.close(t)
	s.entered(t)
	if _, err := s.sample(t, "empty", 1); err != nil {
		t.Error(err)
	}
	for range 3 {
		got, err := s.sample(t, "work", 20)
		if err != nil {
			t.Fatal(err)
		}
		if got["cpu"] < 0.95e-3 || got["cpu"] > 5e-3 || got["wall"] < got["cpu"]*0.95 || got["allocations"] != 3 ||
			len(got) != 3 {
			t.Errorf("%v; want 1 ms of CPU time, no less wall, and 3 allocations", got)
		}
	}
	notes := strings.Join(s.Notes(), "\n")
	for _, part := range []string{
		"work: the program does not count wall", "asking alone takes", "of a batch of 20 calls",
		"empty and work: the program does not count cpu",
	} {
		if !strings.Contains(notes, part) {
			t.Errorf("the notes lack %q:\n%s", part, notes)
		}
	}
	if n := len(s.asking); n < 3 || n > mostAsking { // fewer where they take longer than askingWithin
		t.Errorf("asking was timed %d times, want %d", n, mostAsking)
	}
}

func TestOneWatchForAllArms(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, nil)
	defer s.close(t)
	odd := &actor{World: s.actor.World, Cost: map[string]float64{"cpu": 1e-9}}
	p := odd.program(t)
	arm := s.c.Arm
	s.c.Arm = func(tr design.Treatment) (Arm, error) {
		a, err := arm(tr)
		if tr.ID == "odd" {
			a.Program = p
		}
		return a, err
	}
	s.entered(t)
	if _, err := s.sample(t, "work", 2); err != nil {
		t.Fatal(err)
	}
	tr := design.Treatment{ID: "odd"}
	if err := s.Prepare(t.Context(), tr, s.ledger); err != nil {
		t.Fatal(err)
	}
	ops, err := s.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ops[1].Batch(t.Context(), 2)
	wantError(t, err, "wall was counted by the program", "by tare", "cannot be compared")
}

// TestNoLevels: a treatment without levels has an empty map of them, not null, also in undo.
func TestNoLevels(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, nil)
	defer s.close(t)
	plain := design.Treatment{ID: "default"}
	if err := s.Prepare(t.Context(), plain, s.ledger); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.leftInWorld(t)[0])
	if err != nil || !strings.Contains(string(text), `"levels":{}`) {
		t.Errorf("got change %s, %v; want an empty map of levels", text, err)
	}
	back, err := parsePrepared(*s.arms[0].prepared)
	if err != nil || back.Preparation.Levels == nil || len(back.Preparation.Operations) != 2 {
		t.Errorf("read back %+v, %v; want levels and two operations", back, err)
	}
}

// TestChangedProgram: a run measures one program.
func TestChangedProgram(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, func(c *Config) { c.Fresh = true })
	defer s.close(t)
	s.prepared(t)
	newer := goodDescription()
	newer.Version = "2"
	s.actor.Describe = &newer
	s.arms[0].program = s.actor.program(t)
	wantError(t, s.Enter(t.Context(), baseline()), `version "1"`, `version "2"`, "one program")
}

// TestInterrupt: a context that ends during a request ends the process; Close starts another one to undo.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{At: DoOperate, How: "hang", Answer: ""}, nil)
	s.prepared(t)
	ops, err := s.Operations(baseline())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begun := time.Now()
	if _, err := ops[1].Batch(ctx, 1); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("%v; want that it was cancelled", err)
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("the interrupt took %v", took)
	}
	if _, err := ops[1].Batch(t.Context(), 1); err == nil {
		t.Error("a killed process made a batch")
	}
	s.close(t)
}

// TestPrepareNeedsAJournal: nothing is created that cannot be journaled.
func TestPrepareNeedsAJournal(t *testing.T) {
	for _, kind := range []string{FolderKind, kit.ProcessKind, PreparedKind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, actor{}, nil)
			s.ledger.fail = kind
			wantError(t, s.Prepare(t.Context(), baseline(), s.ledger), "journal", "disk full")
			if made := s.leftInWorld(t); len(made) > 0 {
				t.Errorf("made nonetheless: %v", made)
			}
			left, err := os.ReadDir(s.parent)
			if kind == FolderKind && (err != nil || len(left) > 0) {
				t.Errorf("made nonetheless: %v, %v", left, err)
			}
			s.close(t)
		})
	}
}

func TestFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, func(c *Config) { c.Parent += "/none" })
	wantError(t, s.Prepare(t.Context(), baseline(), s.ledger), "make the folder", "none", "exists and can be written")
	s.close(t)
}

// TestContainedProgramIsNotAskedToUndo: only processes and folders are journaled.
func TestContainedProgramIsNotAskedToUndo(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, func(c *Config) { c.Contained, c.Fresh = true, true })
	s.entered(t)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if asked := s.requests(t); strings.Contains(asked, DoUndo) {
		t.Error(asked)
	}
	if strings.Contains(strings.Join(s.ledger.lines, " "), PreparedKind) || len(s.ledger.pending) > 0 {
		t.Error(s.ledger.lines, s.ledger.pending)
	}
	s.wantNoProcess(t)
}

// BenchmarkAsk is one round trip: a request for no calls, and its answer.
func BenchmarkAsk(b *testing.B) {
	s := newStage(b, actor{}, nil)
	defer s.close(b)
	s.entered(b)
	c, none := s.process(s.arms[0]).client, 0
	b.ResetTimer()
	for b.Loop() {
		var cost Cost
		if _, err := c.ask(b.Context(), time.Minute, Request{Do: DoOperate, Operation: "work", Calls: &none},
			&cost); err != nil {
			b.Fatal(err)
		}
	}
}
