package driver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/design"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestProgramIdentity: whatever makes a program another one changes its identity; nothing else does.
func TestProgramIdentity(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "driver.py")
	described := goodDescription()
	of := func(text string, change func(*Description)) map[string]string {
		write(t, file, text)
		d := described
		d.Operations, d.Notes = slices.Clone(d.Operations), slices.Clone(d.Notes)
		if change != nil {
			change(&d)
		}
		out, err := Identity(Program{Name: "driver.py", Files: map[string]string{"driver.py": file}}, d)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	was := of("one", nil)
	for name, c := range map[string]struct {
		text   string
		change func(*Description)
		key    string // of what differs; empty: nothing
	}{
		"the same":     {"one", nil, ""},
		"another note": {"one", func(d *Description) { d.Notes[0] = "said otherwise" }, ""},
		"its content":  {"two", nil, "content of driver.py"},
		"its version":  {"one", func(d *Description) { d.Version = "2" }, "says that it is"},
		"its name":     {"one", func(d *Description) { d.Name = "another" }, "says that it is"},
		"an operation": {
			"one", func(d *Description) { d.Operations[1].Expect = "something" },
			"operations and factors",
		},
		"a factor of itself": {
			"one", func(d *Description) { d.Factors = map[string][]string{"size": {"1"}} },
			"operations and factors",
		},
	} {
		is := of(c.text, c.change)
		for key := range was {
			if differs := was[key] != is[key]; differs != (key == c.key) {
				t.Errorf("%s: %q was %q and is %q", name, key, was[key], is[key])
			}
		}
		if len(is) != len(was) {
			t.Errorf("%s: %v, want the words of %v", name, is, was)
		}
	}
	if _, err := Identity(Program{Name: "gone", Files: map[string]string{"x": file + ".gone"}}, described); err == nil ||
		!strings.Contains(err.Error(), "tell gone from other programs") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestProgramChangesUnderRun: a program whose file changes between two blocks, or differs between arms, is not measured
// any further.
func TestProgramChangesUnderRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, file string)
		want   string
	}{
		"nothing": {func(*testing.T, string) {}, ""},
		"written to": {
			func(t *testing.T, file string) { t.Helper(); write(t, file, "longer than before") },
			"the script was changed since the run began",
		},
		"another one": {replaceFile, "the script was changed since the run began"},
		"gone": {func(t *testing.T, file string) {
			t.Helper()
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "script")
			write(t, file, "before")
			s := newStage(t, actor{}, nil)
			arm := s.c.Arm
			s.c.Arm = func(tr design.Treatment) (Arm, error) {
				a, err := arm(tr)
				a.Program.Files = map[string]string{"the script": file}
				return a, err
			}
			s.c.Fresh = true
			s.prepared(t)
			c.change(t, file)
			err := s.Enter(t.Context(), baseline())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(file); err != nil {
				write(t, file, "back, so that it can undo")
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// replaceFile replaces a file by another one of the same length and time.
func replaceFile(t *testing.T, file string) {
	t.Helper()
	was, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file+".new", "behind")
	if err := os.Chtimes(file+".new", time.Time{}, was.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// TestArmsMustDescribeThemselvesAlike: arms whose programs describe themselves differently are not compared.
func TestArmsMustDescribeThemselvesAlike(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, nil)
	other := goodDescription()
	other.Version = "2"
	second := newStage(t, actor{Describe: &other}, nil)
	first := s.c.Arm
	s.c.Arm = func(tr design.Treatment) (Arm, error) {
		if tr.ID == "mode=slow" {
			return second.c.Arm(tr)
		}
		return first(tr)
	}
	s.prepared(t)
	err := s.Prepare(t.Context(), design.Treatment{ID: "mode=slow", Levels: map[string]string{"mode": "slow"}}, s.ledger)
	if err == nil || !strings.Contains(err.Error(), `as "actor", version "1", before, and as "actor", version "2", now`) {
		t.Errorf("%v, want a refusal of version 2", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
