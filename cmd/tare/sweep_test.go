package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// A sweep is a sequence of commands that root runs where another user may exchange files and folders.
type sweep struct {
	name string
	// commands are what is run, after each other; RECORD stands for the record of the first. FOLDER is the folder of the
	// other user, which is also the working folder.
	commands [][]string
	files    map[string]string // in FOLDER
	env      []string
	fails    bool // tare refuses such a folder
	// with is an experiment of its own
	with *killable
}

// A site is a place that another user may exchange just before a call.
type site struct {
	command          int
	call, path, part string // what is called with which path, and which part of it is exchanged
}

// anyCommand is the same site of any command of any sweep.
func (s site) anyCommand() site {
	s.command = 0
	return s
}

// drawn are the parts of names that differ between runs.
var drawn = regexp.MustCompile(`results/[a-z]+-[0-9TZ]+|tare-[a-z]+(-[a-z]+)*|[0-9A-Z]{10,}|[0-9a-f]{8,}|[0-9]+`)

// sitesOf returns the sites of a call, the longest part first.
func (s *stranger) sitesOf(command int, c pathCall, folder string) (found []site, parts []string) {
	for part := c.path; len(part) > 1; part = filepath.Dir(part) {
		if s.may(part) && !strings.HasPrefix(filepath.Base(part), "outside-") { // which the test's own program makes
			name := func(path string) string {
				return drawn.ReplaceAllString(strings.ReplaceAll(path, folder, "FOLDER"), "N")
			}
			found, parts = append(found, site{command, c.name, name(c.path), name(part)}), append(parts, part)
		}
	}
	return found, parts
}

// An exchange puts a link to something of root's in the place of what a call names, and takes it away when the thread
// has gone on.
type exchange struct {
	at      site
	by      *stranger
	canary  string // a folder of root's
	folder  string
	done    bool
	thread  int
	restore func()
	before  string // what is root's
	err     error
}

// see exchanges the place if a call is about it.
func (x *exchange) see(t *testing.T, command int, c pathCall) {
	if c.thread == x.thread {
		x.goesOn()
	}
	if x.done {
		return
	}
	sites, parts := x.by.sitesOf(command, c, x.folder)
	for i, s := range sites {
		if s == x.at {
			x.done, x.thread = true, c.thread
			x.err = x.exchange(parts[i], c.name == "mkdir")
			x.before = contents(t, x.canary)
			return
		}
	}
}

// goesOn takes the link away if it is there.
func (x *exchange) goesOn() {
	if x.restore != nil {
		x.restore()
		x.restore = nil
	}
}

// exchange exchanges what is at path, or puts a link where nothing is.
func (x *exchange) exchange(path string, isFolder bool) error {
	target, aside := filepath.Join(x.canary, "of-root"), filepath.Join(filepath.Dir(path), ".aside")
	_, err := os.Lstat(path)
	exists := err == nil
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		err = copyFolder(target, path)
		if err != nil {
			return err
		}
	case err == nil && info.Mode().IsRegular():
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(target, text, info.Mode().Perm())
		}
		if err != nil {
			return err
		}
	case isFolder:
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(target, []byte(rootsSecret), 0o600); err != nil {
			return err
		}
	}
	x.restore = func() {
		_ = x.by.as(func() error {
			leads, err := os.Readlink(path)
			if err != nil || leads != target {
				return err // something else is there now
			}
			if err := os.Remove(path); err != nil || !exists {
				return err
			}
			return os.Rename(aside, path)
		})
	}
	return x.by.as(func() error {
		if exists {
			if err := os.Rename(path, aside); err != nil {
				return err
			}
		}
		return os.Symlink(target, path)
	})
}

const rootsSecret = "this is root's and nobody else's\n"

// copyFolder copies what is in a folder, but for what is neither file nor folder.
func copyFolder(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.Mkdir(at, 0o755)
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(at, text, 0o600)
		}
		return nil
	})
}

// TestExchangedPaths has root run tare where another user may exchange files and folders, and exchanges each of them at
// the moment before it is opened, made or removed, with a link to what is root's: each in a run of its own. A command
// may fail; nothing of root's may change, and none of it may be shown.
func TestExchangedPaths(t *testing.T) {
	hosttest.NeedsRoot(t)
	hosttest.SkipIfShort(t)
	by, known, exchanged := newStranger(t), map[site]bool{}, 0
	for _, s := range sweeps(t) {
		t.Run(s.name, func(t *testing.T) {
			if s.with != nil {
				if s.with.needs != nil {
					s.with.needs(t, tareBinary(t), s.with)
				}
				s.files = map[string]string{"x.yaml": s.with.experiment}
			}
			var sites []site
			s.run(t, func(folder string, command int, c pathCall) {
				found, _ := by.sitesOf(command, c, folder)
				if !hosttest.IsLong() { // what holds for a folder holds for those above it
					found = found[:min(1, len(found))]
				}
				for _, f := range found {
					if is := f.anyCommand(); !known[is] {
						known[is] = true
						sites = append(sites, f)
					}
				}
			}, func() {}, len(s.commands))
			for _, at := range sites {
				if s.tryAt(t, at, by) {
					exchanged++
				}
			}
		})
	}
	if exchanged < 25 && !t.Failed() {
		t.Errorf("only %d exchanges: next to nothing was tried", exchanged)
	}
}

// tryAt exchanges what is at one site. It reports whether the call came.
func (s *sweep) tryAt(t *testing.T, at site, by *stranger) bool {
	t.Helper()
	x := &exchange{at: at, by: by, canary: t.TempDir()}
	out := s.run(t, func(folder string, command int, c pathCall) {
		x.folder = folder
		x.see(t, command, c)
	}, x.goesOn, at.command)
	switch after := contents(t, x.canary); {
	case !x.done:
		t.Logf("%v: not seen again", at)
	case x.err != nil:
		t.Logf("%v: %v", at, x.err)
	case after != x.before:
		t.Errorf("%v: what is root's has changed:\n%s\n%s", at, cmp.Diff(x.before, after), out)
	case strings.Contains(out, rootsSecret[:20]):
		t.Errorf("%v: what is root's is shown:\n%s", at, out)
	case testing.Verbose():
		t.Logf("%v: %.300q", at, out)
	}
	return x.done && x.err == nil
}

// run runs the commands, up to the last one that is wanted, in a new folder of another user's, and returns what they
// print. Without a stranger who acts they succeed.
func (s *sweep) run(t *testing.T, before func(folder string, command int, c pathCall), after func(), last int) string {
	t.Helper()
	folder, shared := strangersFolder(t), strangersFolder(t)
	if err := errors.Join(os.Chown(shared, 0, 0), os.Chmod(shared, 0o777|fs.ModeSticky)); err != nil { // as /tmp is
		t.Fatal(err)
	}
	for name, text := range s.files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for i, c := range s.commands {
		records, _ := filepath.Glob(filepath.Join(folder, "results", "[a-z]*"))
		args := []string{}
		for _, a := range c {
			if len(records) > 0 {
				a = strings.ReplaceAll(a, "RECORD", records[0])
			}
			args = append(args, strings.ReplaceAll(a, "FOLDER", folder))
		}
		cmd := exec.CommandContext(t.Context(), tareBinary(t), args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "TMPDIR="+shared)
		for _, e := range s.env {
			cmd.Env = append(cmd.Env, strings.ReplaceAll(e, "FOLDER", folder))
		}
		out, code := runStopping(t, cmd, func(c pathCall) { before(folder, i, c) })
		after()
		if last == len(s.commands) && !s.fails && code != 0 && code < 10 {
			t.Errorf("tare %v: exit %d\n%s", args, code, out)
		}
		if fmt.Fprintf(&all, "%s\nexit %d\n", out, code); i == last {
			break
		}
	}
	return all.String()
}

// sweeps has nothing of area sandbox: it does not run where calls can be stopped, since that takes a seccomp filter.
// TARE_TEST_LONG=1 adds the other areas, control planes and lab VMs.
func sweeps(t *testing.T) []sweep {
	exec := drivenExperiment("rounds: 3, span: 1ms, fresh: run", 2)
	run := []string{"run", "x.yaml", "--set", "blocks=2"}
	imported, err := os.ReadFile(filepath.Join("..", "..", "internal", "importer", "testdata", "hyperfine.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := []sweep{
		{
			name: "record", files: map[string]string{"x.yaml": exec},
			commands: [][]string{run, {"report", "RECORD", "-o", "html=FOLDER/r.html"}, {"undo", "RECORD"}, {"list", "runs"}},
		},
		{
			name: "files", files: map[string]string{"import.json": string(imported)},
			commands: [][]string{
				{"init", "exec", "--file", "FOLDER/new.yaml"},
				{"man", "FOLDER/man"},
				{"import", "import.json"},
				{"check", "RECORD"},
				{"diff", "RECORD:sleep 0.020", "RECORD:sleep 0.021"},
			},
			env: []string{"GITHUB_STEP_SUMMARY=FOLDER/summary", "GITHUB_ACTIONS=true"},
		},
		{
			name: "homes", files: map[string]string{"x.yaml": exec}, commands: [][]string{run, {"undo", "RECORD"}},
			env: []string{"TMPDIR=FOLDER", "XDG_RUNTIME_DIR=FOLDER", "XDG_STATE_HOME=FOLDER/state", "HOME=FOLDER"}, fails: true,
		},
	}
	if !hosttest.IsLong() {
		return all
	}
	for _, what := range []string{"plane", "lab"} {
		commands := [][]string{{what, "up"}, {what, "down"}}
		all = append(all, sweep{name: what, commands: commands},
			sweep{name: "strange " + what, commands: commands, env: []string{"XDG_RUNTIME_DIR=FOLDER"}, fails: true})
	}
	for _, k := range killables() {
		if k.name != "sandbox" && k.name != "lab" && k.name != "cluster" {
			all = append(all, sweep{name: k.name, commands: [][]string{k.run(), {"undo", "RECORD"}}, with: &k})
		}
	}
	return all
}

// TestReplacedRecordsMisleadNoRun has root run experiments with results in another user's folder. That user puts a link
// to a folder of root's in the place of the record, again and again, and takes it away. A run may fail; nothing of
// root's may be written, made or removed.
func TestReplacedRecordsMisleadNoRun(t *testing.T) {
	hosttest.NeedsRoot(t)
	hosttest.SkipIfShort(t)
	bin, swaps := tareBinary(t), 0
	for _, k := range killables() {
		t.Run(k.name, func(t *testing.T) {
			needsAreas(t, areaOf(k.experiment))
			if k.name != "exec" && k.name != "sandbox" && k.name != "decision" {
				hosttest.SkipUnlessLong(t)
			}
			if k.needs != nil {
				k.needs(t, bin, &k)
			}
			k.experiment = strings.Replace(k.experiment, "blocks: 4", "blocks: 2", 1)
			folder := folderWith(t, k.experiment)
			stranger := &replacer{folder: strangersFolder(t), canary: newCanary(t)}
			before := contents(t, stranger.canary)
			stop := stranger.begin(t)
			out, code := execTare(t, bin, folder, append(k.run(), "--results", stranger.folder)...)
			records, _ := filepath.Glob(filepath.Join(stranger.folder, "[^.]*"))
			for _, r := range records {
				for range 3 {
					for _, command := range []string{"undo", "report"} {
						execTare(t, bin, folder, command, r) // it may find another folder, and refuses that
					}
				}
			}
			n := stop()
			swaps += n
			if after := contents(t, stranger.canary); after != before {
				t.Errorf("what is root's has changed:\n%s\nit was\n%s\nexit %d\n%s", after, before, code, out)
			}
			for _, r := range records {
				if written, _ := os.ReadDir(r); len(written) == 0 && code != 0 {
					continue // the run has ended before it had a record: its folder is gone, or nothing was written into it
				}
				if out, code := execTare(t, bin, folder, "undo", r); code != 0 || !strings.Contains(out, "nothing to undo") {
					t.Errorf("undo: exit %d\n%s", code, out)
				}
			}
			t.Logf("%d replacements, exit %d\n%.300s", n, code, out)
		})
	}
	if swaps < 50 && !t.Failed() {
		t.Errorf("only %d replacements: nothing was tried", swaps)
	}
}

// strangersFolder makes a folder of another user's.
func strangersFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tare-stranger-") //nolint:usetesting // the other user has to reach it
	if err == nil {
		err = os.Chown(dir, strangerID, strangerID)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// strangerID is the user nobody.
const strangerID = 65534

// newCanary makes a folder of root's with files of the names that a run writes.
func newCanary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"latency.hlog", "experiment.yaml", "lock", "driver-01.log", "driver-undo.log", "workers.log",
		"calls-0000.bin", "policies-0/policies.cedar", "policies-1/policies.rego", "report.html",
	} {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("root's\n"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents describes all that is in a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := []byte{}
		if info.Mode().IsRegular() {
			text, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %v %q\n", strings.TrimPrefix(path, dir), info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A replacer exchanges, as another user, the records in a folder of its own with links to the canary.
type replacer struct{ folder, canary string }

// begin exchanges until stop is called, which returns how often.
func (r *replacer) begin(t *testing.T) (stop func() int) {
	t.Helper()
	link := filepath.Join(r.folder, ".link")
	end, swaps := make(chan struct{}), make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		n := 0
		defer func() { swaps <- n }()
		_ = unix.Setfsgid(strangerID)
		_ = unix.Setfsuid(strangerID) // without the rights of root in the file system
		if err := os.Symlink(r.canary, link); err != nil {
			t.Error(err)
			return
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-end:
				return
			default:
			}
			found, _ := filepath.Glob(filepath.Join(r.folder, "[^.]*"))
			for _, record := range found {
				if unix.Renameat2(unix.AT_FDCWD, record, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) != nil {
					continue
				}
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
				_ = unix.Renameat2(unix.AT_FDCWD, record, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
				n++
			}
			time.Sleep(time.Duration(rng.IntN(4000)) * time.Microsecond)
		}
	}()
	return func() int {
		close(end)
		return <-swaps
	}
}
