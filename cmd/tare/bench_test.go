package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/cli"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

// repository is a Go module in git, in a folder of its own, with a cache of its own.
type repository struct {
	dir, tare string
	env       []string
}

// newRepository skips the test where git or go is missing.
func newRepository(t *testing.T) repository {
	t.Helper()
	needsAreas(t, "exec")
	for _, name := range []string{"git", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			hosttest.Missing(t, name+" is not installed", "apt-get install "+name)
		}
	}
	r := repository{dir: t.TempDir(), tare: tareBinary(t)}
	r.env = append(os.Environ(), "TARE_CACHE="+t.TempDir(), "GOWORK=off", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	r.write(t, "go.mod", "module example.com/m\n\ngo 1.24\n")
	r.must(t, "git", "init", "-q")
	return r
}

func (r repository) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commit commits a benchmark file with this body.
func (r repository) commit(t *testing.T, text string) {
	t.Helper()
	r.write(t, "m_test.go", "package m\n\nimport \"testing\"\n\nvar x uint64\nvar p *[64]byte\n\n"+text)
	r.must(t, "git", "add", ".")
	r.must(t, "git", "commit", "-qm", "next")
}

func (r repository) must(t *testing.T, name string, args ...string) {
	t.Helper()
	if said, code := r.run(t, name, args...); code != 0 {
		t.Fatalf("%s %s: %s", name, args, said)
	}
}

// run returns what a command says on both streams, and its exit code.
func (r repository) run(t *testing.T, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	if x, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), x.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// work is a benchmark that mixes so many times and allocates so many objects of 64 bytes.
func work(mixes, objects string) string {
	return "func BenchmarkWork(b *testing.B) {\n\tb.Run(\"kind=a/b\", func(b *testing.B) {\n" +
		"\t\tfor i := 0; i < b.N; i++ {\n" +
		"\t\t\tfor range " + mixes + " {\n\t\t\t\tx = x*3 + 1\n\t\t\t}\n\t\t\tfor range " + objects +
		" {\n\t\t\t\tp = new([64]byte)\n\t\t\t}\n\t\t}\n\t})\n}\n"
}

// TestBenchFindsWhatWasPlanted: the second revision does three times the work and allocates twice as often.
func TestBenchFindsWhatWasPlanted(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	r := newRepository(t)
	r.commit(t, work("1000", "1"))
	r.commit(t, work("3000", "2"))
	before, _ := r.run(t, "git", "status", "--porcelain")
	said, code := r.run(t, r.tare, "bench", "HEAD~1", "HEAD", "--all", "--blocks", "8", "--set", "target.rounds=5",
		"--write", "../kept.yaml",
		"--budget", "allocations <= +10%", "--", "-bench", "Work/kind=a", "-benchtime", "10ms")
	if code != 10 {
		t.Errorf("exit %d, want 10: a budget is broken", code)
	}
	for _, want := range []string{
		`Work_kind_a_b.allocations .*\+100 % \[100, 100\] .*»`,
		`Work_kind_a_b.allocated .*\+100 % \[100, 100\]`,
		`Work_kind_a_b.wall .*\+\d+ %`, // how much is not for a busy host to say
		`HEAD~1 is commit [0-9a-f]{40}`,
	} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	r.must(t, r.tare, "plan", "--try", "../kept.yaml")
	if after, _ := r.run(t, "git", "status", "--porcelain"); after != before+"?? results/\n" {
		t.Errorf("the repository has changed:\n%s", after)
	}
}

// TestBenchRefuses says what is wrong and what to do, and measures nothing.
func TestBenchRefuses(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	r := newRepository(t)
	if said, code := (repository{t.TempDir(), r.tare, r.env}).run(t, r.tare, "bench", "v1", "v2"); code != 2 ||
		!strings.Contains(said, "not a git repository") {
		t.Errorf("outside of a repository: exit %d, %s", code, said)
	}
	r.commit(t, work("1000", "1"))
	r.commit(t, work("1000", "1")+"\nfunc BenchmarkNew(b *testing.B) {\n\tpanic(\"oops\")\n}\n")
	r.commit(t, work("1000", "1")+"\nfunc BenchmarkNew(b *testing.B) {\n\tfor range b.N {\n\t\tx++\n\t}\n}\n")
	r.commit(t, "func BenchmarkWork(b *testing.B) {\n\tundefined()\n}\n")
	for _, c := range []struct {
		args string
		exit int
		want string
	}{
		{"nosuch HEAD~1", 2, `has no revision "nosuch"`},
		{"HEAD~3", 2, "expects OLD and NEW"},
		{"HEAD~3 HEAD", 1, "HEAD: example.com/m does not build: "},
		{"HEAD~3 HEAD", 1, "undefined: undefined"},
		{"HEAD~3 HEAD~1", 2, "only HEAD~1 has BenchmarkNew; leave out what HEAD~3 lacks with -skip after --"},
		{"HEAD~3 HEAD~2", 1, "panic: oops"},
		{"HEAD~3 HEAD~1 -- -bench Nothing", 2, "no benchmark of HEAD~3 matches -bench Nothing in ."},
		{"HEAD~3 HEAD~1 -- ./nosuch", 2, "go list ./nosuch: "},
		{"HEAD~3 HEAD~1 -- -count 5", 2, "how often is said by --blocks"},
		{"HEAD~3 HEAD~1 -- -benchtime 1h", 2, "want 10ms to 10s"},
		{"HEAD~3 HEAD~1 --cpu-time -- -benchtime 10ms", 2, "--cpu-time needs batches of 50ms"},
		{"HEAD~3 HEAD~1 -- -warmup 1s", 2, "Go benchmarks have no warm-up of their own"},
		{"/nosuch.test HEAD", 2, "there is no file /nosuch.test"},
		{"/bin/sh HEAD", 2, "one is a test binary and the other is a revision or a module"},
		{"HEAD~3 HEAD~1 --budget nonsense -- -skip New", 2, "budget"},
	} {
		said, code := r.run(t, r.tare, append([]string{"bench"}, strings.Fields(c.args)...)...)
		if code != c.exit || !strings.Contains(said, c.want) {
			t.Errorf("bench %s: exit %d, want %d and %q:\n%s", c.args, code, c.exit, c.want, said)
		}
	}
	r.write(t, "m_test.go", "package m\n")
	if said, code := r.run(t, r.tare, "bench", "HEAD~3", "HEAD"); code != 2 ||
		!strings.Contains(said, "m_test.go was changed since; commit or stash the changes") {
		t.Errorf("with a changed file: exit %d, %s", code, said)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "results", "*")); len(left) > 0 {
		t.Errorf("something was measured: %s", left)
	}
}

// TestBenchOfBinaries needs neither git nor the source.
func TestBenchOfBinaries(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	r := newRepository(t)
	r.commit(t, work("1000", "1"))
	r.must(t, "go", "test", "-c", "-o", "../old.test", ".")
	r.commit(t, work("1000", "3"))
	r.must(t, "go", "test", "-c", "-o", "../new.test", ".")
	said, code := r.run(t, r.tare, "bench", "../old.test", "../new.test", "--dry-run")
	if code != 0 || !strings.Contains(said, "revision=old.test   (baseline)") || !strings.Contains(said, "Work_kind_a_b") {
		t.Errorf("exit %d:\n%s", code, said)
	}
}

// TestBenchInterrupted while it builds: the compiler ends, and nothing stays in the cache but what is complete.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(t, work("1000", "1"))
	cache, bin := t.TempDir(), t.TempDir()
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	slow := "#!/bin/sh\nif [ \"$1\" = test ]; then sleep 60; fi\nexec " + compiler + " \"$@\"\n"
	if err := files.WriteProgram(filepath.Join(bin, "go"), []byte(slow)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), r.tare, "bench", "HEAD", "HEAD")
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = r.dir, &said
	cmd.Env = slices.Concat(r.env, []string{"TARE_CACHE=" + cache, "PATH=" + bin + ":" + os.Getenv("PATH")})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(cache, "gobench", "gobench-*.tmp", "side0")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if found, _ := filepath.Glob(unfinished); len(found) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the build has not begun")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code says how it ended
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted {
		t.Errorf("exit %d, want %d: %s", code, cli.ExitInterrupted, &said)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "gobench", "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// fakeCriterion is a benchmark binary as criterion builds them; one call takes so many nanoseconds and some noise.
const fakeCriterion = `#!/bin/sh
case " $* " in *" --list "*) echo 'mix: benchmark'; exit ;; esac
mkdir -p "$CRITERION_HOME/mix/new"
echo '{"full_id":"mix"}' > "$CRITERION_HOME/mix/new/benchmark.json"
echo '{"iters":[1],"times":['$((NS + $$ % 16))']}' > "$CRITERION_HOME/mix/new/sample.json"
`

// TestBenchOfCriterion composes an experiment of two binaries, and finds what was planted.
func TestBenchOfCriterion(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	needsAreas(t, "exec")
	r := repository{dir: t.TempDir(), tare: tareBinary(t), env: append(os.Environ(), "TARE_CACHE="+t.TempDir())}
	for folder, ns := range map[string]string{"old": "1000", "same": "1000", "new": "1200"} {
		if err := os.Mkdir(filepath.Join(r.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(fakeCriterion, "NS", ns, 1)
		if err := files.WriteProgram(filepath.Join(r.dir, folder, "work-1"), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for fresh, want := range map[string]string{
		"new":  `mix\.wall .*\+(19|20|21)(\.\d)? % .*✗`,
		"same": `mix\.wall .* [≈?] `,
	} {
		said, code := r.run(t, r.tare, "bench", "old/work-1", fresh+"/work-1", "--all", "--blocks", "8", "--set", "margin=5%",
			"--set", "target.rounds=5", "--", "-bench", "m.x")
		if code != 0 || !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("%s: exit %d, no %s in\n%s", fresh, code, want, said)
		}
		if !strings.Contains(strings.Join(strings.Fields(said), " "), "warms up for 50ms, which is not measured") {
			t.Errorf("%s: how it is measured is not said:\n%s", fresh, said)
		}
	}
}

// TestBenchForetellsProcesses: each value needs a process, and the plan counts the time of all of them.
func TestBenchForetellsProcesses(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	needsAreas(t, "exec")
	r := repository{dir: t.TempDir(), tare: tareBinary(t), env: append(os.Environ(), "TARE_CACHE="+t.TempDir())}
	slow := strings.Replace(strings.Replace(fakeCriterion, "NS", "1000", 1), "mkdir", "sleep 0.1\nmkdir", 1)
	r.write(t, "work-1", slow)
	if err := os.Chmod(filepath.Join(r.dir, "work-1"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	said, code := r.run(t, r.tare, "bench", "work-1", "work-1", "--blocks", "8", "--dry-run", "--write", "kept.yaml")
	if code != 0 || !strings.Contains(said, "wall of each operation; CPU time is not compared") {
		t.Errorf("exit %d:\n%s", code, said)
	}
	cmd := exec.CommandContext(t.Context(), r.tare, "plan", "--try", "kept.yaml", "-o", "json")
	cmd.Dir, cmd.Env = r.dir, r.env
	text, err := cmd.Output()
	var plan struct {
		Takes float64 `json:"all_blocks_seconds"`
	}
	if err = errors.Join(err, json.Unmarshal(text, &plan)); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if least := 8 * 3 * (1 + 10) * 0.1; plan.Takes < least {
		t.Errorf("the plan takes %v s, and its processes alone %v s", plan.Takes, least)
	}
}

// TestBenchOfRealTools measures real benchmarks. They take minutes to build, so a variable names the files: the old, an
// equal one, and one with a fifth more work in each call, all with one benchmark.
func TestBenchOfRealTools(t *testing.T) {
	needsAreas(t, "exec")
	for _, name := range []string{"TARE_TEST_CRITERION", "TARE_TEST_JMH"} {
		t.Run(name, func(t *testing.T) {
			files := strings.Fields(os.Getenv(name))
			if len(files) != 3 {
				hosttest.Missing(t, name+" is not set", "set it to three benchmark files: OLD EQUAL SLOWER")
			}
			r := repository{dir: t.TempDir(), tare: tareBinary(t), env: append(os.Environ(), "TARE_CACHE="+t.TempDir())}
			for i, want := range []string{`\.wall .* [≈?›‹] `, `\.wall .*\+\d+ % .* [»›] `} {
				said, code := r.run(t, r.tare, "bench", files[0], files[1+i], "--all", "--blocks", "12")
				if code != 0 || !regexp.MustCompile(want).MatchString(said) {
					t.Errorf("%s: exit %d, no %s in\n%s", files[1+i], code, want, said)
				}
			}
		})
	}
}
