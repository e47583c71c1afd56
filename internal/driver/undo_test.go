package driver

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

// TestUndoWithoutTheProgram: the error says what was prepared, by which program and where; the folder stays until the
// program is back.
func TestUndoWithoutTheProgram(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, nil)
	own := filepath.Join(t.TempDir(), "my-driver")
	install(t, own)
	arm := s.c.Arm
	s.c.Arm = func(tr design.Treatment) (Arm, error) {
		a, err := arm(tr)
		a.Program.Path, a.Program.Args = own, []string{"--fast"}
		return a, err
	}
	s.prepared(t)
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	if err := s.end(t.Context(), s.arms[0]); err != nil {
		t.Fatal(err)
	}
	a := s.arms[0].preparation
	wantError(t, s.Close(t.Context()), "mode=fast", "actor prepared something", a.Folder+" stays", own)
	for range 2 {
		wantError(t, Undo(t.Context(), s.ledger.pending, s.env), own+" --fast", `"mode=fast"`, a.Run, a.Folder,
			"no such file")
	}
	if _, err := os.Stat(filepath.Join(a.Folder, "inside")); err != nil {
		t.Errorf("the folder is gone, and with it what undoing may need: %v", err)
	}
	bare := s.env
	bare.Getenv = nil
	install(t, own)
	wantError(t, Undo(t.Context(), s.ledger.pending, bare),
		"environment variables "+roleEnv+", PATH, GORACE, which are not set now")
	if err := Undo(t.Context(), s.ledger.pending, s.env); err != nil {
		t.Error(err)
	}
	s.ledger.pending = nil
	s.wantClean(t)
}

// install copies this binary to path.
func install(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteProgram(path, b); err != nil {
		t.Fatal(err)
	}
}

// TestUndoContinuesAfterAnError: a treatment that cannot be undone does not keep another one from it.
func TestUndoContinuesAfterAnError(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, nil)
	other := design.Treatment{ID: "mode=slow"}
	for _, tr := range []design.Treatment{baseline(), other} {
		if err := s.Prepare(t.Context(), tr, s.ledger); err != nil {
			t.Fatal(err)
		}
	}
	changes := append([]area.Change{}, s.ledger.pending...)
	for i, c := range changes {
		if c.Kind == PreparedKind && c.Data["treatment"] == other.ID {
			changes[i].Data["program"] = `["/nowhere/driver"]`
		}
	}
	wantError(t, Undo(t.Context(), changes, s.env), "/nowhere/driver", other.ID)
	left, err := os.ReadDir(s.parent)
	if err != nil || len(left) != 1 || len(s.leftInWorld(t)) != 1 {
		t.Errorf("left %v, %v, %v; want those of one treatment", left, s.leftInWorld(t), err)
	}
	s.wantNoProcess(t)
	for i, c := range changes {
		if c.Kind == PreparedKind {
			changes[i].Data["program"] = `["/proc/self/exe"]`
		}
	}
	if err := Undo(t.Context(), changes, s.env); err != nil {
		t.Error(err)
	}
	s.ledger.pending = nil
	s.wantClean(t)
	// The target finds all of it undone.
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestUndoWithoutALog: a program undoes even if nothing can be written beside the record.
func TestUndoWithoutALog(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, nil)
	s.prepared(t)
	env := s.env
	env.Dir = filepath.Join(t.TempDir(), "gone")
	if err := Undo(t.Context(), s.ledger.pending, env); err != nil {
		t.Error(err)
	}
	s.ledger.pending = nil
	s.wantClean(t)
}

// TestUndoFails: programs that hang, exit or refuse during undo.
func TestUndoFails(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for how, want := range map[string]string{
		"hang": "no answer to undo within 1s", "die": "exit status 3",
		"refuse": "no cheese left; buy some",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, actor{At: DoUndo, How: how}, nil)
			s.prepared(t)
			s.c.Patience = time.Second
			wantError(t, s.Close(t.Context()), want, "is not undone", s.arms[0].preparation.Folder)
			for _, c := range s.ledger.pending {
				if c.Kind == kit.ProcessKind {
					t.Error("a process is left")
				}
				if c.Kind == PreparedKind {
					c.Data["patience"] = "1s"
				}
			}
			wantError(t, Undo(t.Context(), s.ledger.pending, s.env), want, s.arms[0].preparation.Folder)
			s.wantNoProcess(t)
			s.actor.At = ""
			s.setActor(t)
			if err := Undo(t.Context(), s.ledger.pending, s.env); err != nil {
				t.Error(err)
			}
			s.ledger.pending = nil
			s.wantClean(t)
		})
	}
}

// TestUndoRejectsForeignChanges: a manipulated journal, or one of something else, removes nothing.
func TestUndoRejectsForeignChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "tare-tool-0123456789abcdef")
	paths := []string{
		"", "/", dir, filepath.Join(dir, "tare-tool-"), filepath.Join(dir, "tare-tool-0123456789abcde"),
		filepath.Join(dir, "tare-tool-0123456789abcdeg"),
		filepath.Join(dir, "tare-tool-0123456789ABCDEF"), filepath.Join(dir, "tare-warehouse-0123456789abcdef"),
		filepath.Join(dir, "tare-tool-0123456789abcdef00"),
		dir + "/../" + filepath.Base(dir) + "/tare-tool-0123456789abcdef", good +
			"/", "tare-tool-0123456789abcdef", good + "/sub",
	}
	for _, p := range append(paths[3:9:9], good) {
		if err := os.MkdirAll(filepath.Join(p, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range paths {
		c := area.Change{Area: "tool", Kind: FolderKind, ID: "x", Data: map[string]string{"path": p}}
		wantError(t, Undo(t.Context(), []area.Change{c}, area.Env{}), "no folder of area")
		if _, err := os.Stat(filepath.Join(good, "sub")); err != nil {
			t.Fatalf("%q removed %v", p, err)
		}
	}
	wantError(t, Undo(t.Context(), []area.Change{{Area: "tool", Kind: "namespace", ID: "x"}}, area.Env{}),
		"no such change")
	wantError(t, Undo(t.Context(),
		[]area.Change{{Area: "tool", Kind: PreparedKind, ID: "x", Data: map[string]string{"program": "[]"}}}, area.Env{}),
		"undo prepared x")
	if err := Undo(t.Context(), []area.Change{folderChange("tool", good)}, area.Env{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(good); err == nil {
		t.Error("the folder is still there")
	}
	for kind, want := range map[string]bool{
		FolderKind: true, PreparedKind: true, kit.ProcessKind: true,
		"namespace": false,
	} {
		if Undoable(area.Change{Kind: kind}) != want {
			t.Errorf("Undoable of %s is not %v", kind, want)
		}
	}
}

// TestNoSecretInTheJournal: the journal does not contain values of the environment.
func TestNoSecretInTheJournal(t *testing.T) {
	p := Program{Name: "x", Path: "/bin/x", Env: []string{"TOKEN=hunter2", "PATH=/bin"}}
	c, err := preparedChange("tool", p, Preparation{
		Run: "r", Folder: "/tmp/tare-tool-0123456789abcdef",
		Levels: map[string]string{"a": "b"},
	}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "TOKEN") {
		t.Errorf("got change %s, %v; want the variable's name without its value", text, err)
	}
	back, err := parsePrepared(c)
	if err != nil || back.Argv[0] != p.Path || back.Patience != time.Minute || back.Preparation.Levels["a"] != "b" {
		t.Errorf("read back %+v, %v", back, err)
	}
}

func TestRestoreFolder(t *testing.T) {
	dir := t.TempDir()
	missing, link := filepath.Join(dir, "missing"), filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := restoreFolder(missing); err != nil {
			t.Error(err)
		}
	}
	if is, err := os.Stat(missing); err != nil || !is.IsDir() {
		t.Errorf("the missing folder was not restored: %v, %v", is, err)
	}
	wantError(t, restoreFolder(link), "is a link, and not a folder")
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	wantError(t, restoreFolder(open), "may be written by other users")
}

// TestProgramsUndoInTheirOwnFolderOnly: after an end of the host, or of its temporary files, another user could have
// made a folder of that name, with links in it.
func TestProgramsUndoInTheirOwnFolderOnly(t *testing.T) {
	hosttest.NeedsRoot(t)
	const other = 65534
	path := filepath.Join(t.TempDir(), "tare-tool-0123456789abcdef")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, other, other); err != nil {
		t.Fatal(err)
	}
	wantError(t, restoreFolder(path), "belongs to another user")
}

// TestWriteProtectedFoldersAreRemoved: programs that make such folders leave nothing all the same.
func TestWriteProtectedFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tare-tool-0123456789abcdef")
	if err := os.MkdirAll(filepath.Join(path, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(path, "a"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := clearFolder("tool", path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it is still there")
	}
}

// FuzzPrepared: no journal makes the reader panic; what it accepts names a program and one of tare's folders.
func FuzzPrepared(f *testing.F) {
	f.Add(`["/bin/x","-a"]`, `["PATH"]`, `{"a":"b"}`, `["work"]`, "/tmp/tare-tool-0123456789abcdef", "2m")
	f.Add(`[]`, `null`, `null`, `null`, "/", "-1s")
	f.Add(`[""]`, `[]`, `{}`, `[]`, "/tmp/tare-tool-0123456789abcdef/..", "")
	f.Add(`{"a":1}`, `"x"`, `[1]`, `7`, "/tmp/../tare-tool-0123456789abcdef", "soon")
	f.Fuzz(func(t *testing.T, program, env, levels, operations, folder, patience string) {
		defer memtest.Bound(t, len(program)+len(env)+len(levels)+len(operations)+len(folder)+len(patience))()
		p, err := parsePrepared(area.Change{Area: "tool", Kind: PreparedKind, Data: map[string]string{
			"program": program, "env": env, "levels": levels, "operations": operations, "path": folder, "patience": patience,
		}})
		if err != nil {
			return
		}
		if len(p.Argv) == 0 || p.Argv[0] == "" || p.Patience <= 0 || filepath.Clean(folder) != folder ||
			!strings.HasPrefix(filepath.Base(folder), "tare-tool-") {
			t.Errorf("%+v was taken for a preparation in %q", p, folder)
		}
		if _, missing := p.program(area.Env{}); len(missing) != len(p.Env) {
			t.Errorf("of %v only %v are missing where there is no environment", p.Env, missing)
		}
	})
}
