package gobench

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/build"
	"tare/internal/driver"
	"tare/internal/files"
)

// fakeCriterion writes what criterion 0.5 writes for the benchmarks that it has.
const fakeCriterion = `#!/bin/sh
for a in "$@"; do last=$a; done
case " $* " in *" --list "*) printf 'mix: benchmark\n\nsizes (a|b)/4: benchmark\n%s'; exit ;; esac
result() {
  mkdir -p "$CRITERION_HOME/x/new" "$CRITERION_HOME/x/base"
  printf '{"group_id":"x","full_id":"%%s"}' "$1" > "$CRITERION_HOME/x/new/benchmark.json"
  printf '{"sampling_mode":"Linear","iters":%%s,"times":%%s}' "$2" "$3" > "$CRITERION_HOME/x/new/sample.json"
  cp "$CRITERION_HOME/x/new/sample.json" "$CRITERION_HOME/x/base"
}
case $last in
'^mix$') result mix '[1.0,2.0,3.0]' '[10,21,29.0]' ;;
'^sizes \(a\|b\)/4$') result 'sizes (a|b)/4' '[1,1]' '[4,5]' ;;
%s
esac
`

func script(t *testing.T, file, text string) {
	t.Helper()
	if err := files.WriteProgram(file, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// more returns a fake binary with one more benchmark.
func more(name, does string) string {
	if name == "" {
		return fmt.Sprintf(fakeCriterion, "", "")
	}
	return fmt.Sprintf(fakeCriterion, name+`: benchmark\n`, "'^"+name+"$') "+does+" ;;")
}

// made makes a plan of two files in a folder of their own.
func made(t *testing.T, o Options) (Plan, string, error) {
	t.Helper()
	cache := t.TempDir()
	if o.Match == "" {
		o.Match = "."
	}
	o.Tell = func(string, ...any) {}
	return Make(t.Context(), build.Cache{Sub: "gobench", Getenv: func(name string) (string, bool) {
		return cache, name == "TARE_CACHE"
	}}, o)
}

// asked starts the driver of a plan, and asks.
func asked(t *testing.T, file string, requests ...driver.Request) (out []driver.Answer) {
	t.Helper()
	var in, said bytes.Buffer
	for i, r := range requests {
		r.ID = uint64(i + 1)
		if err := json.NewEncoder(&in).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := Serve(t.Context(), file, &in, &said); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(&said); d.More(); {
		var a driver.Answer
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	if len(out) != len(requests) {
		t.Fatalf("%d answers to %d requests", len(out), len(requests))
	}
	return out
}

// wantAnswers fails the test unless each answer is good and holds what is wanted.
func wantAnswers(t *testing.T, got []driver.Answer, want ...string) {
	t.Helper()
	for i, part := range want {
		if !strings.Contains(string(got[i].OK), part) || got[i].Error != "" {
			t.Errorf("answer %d is %s %s, want %s", i, got[i].OK, got[i].Error, part)
		}
	}
}

func prepareIn(label, folder string) driver.Request {
	r := prepare(label)
	r.Folder = folder
	return r
}

func TestCriterion(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	script(t, filepath.Join(dir, "old"), more("", ""))
	script(t, filepath.Join(dir, "new"), more("extra", "exit 1"))
	p, file, err := made(t, Options{Dir: dir, Old: "old", New: "new", Match: "mix|sizes"})
	if err != nil || len(p.Benchmarks) != 2 || p.Tool != Criterion || p.Benchmarks[1].Operation != "sizes__a_b__4" {
		t.Fatalf("%+v, %v", p, err)
	}
	got := asked(t, file, driver.Request{Do: driver.DoDescribe}, prepareIn("new", folder),
		driver.Request{Do: driver.DoVerify}, operate("mix", 1), operate("sizes__a_b__4", 1), operate("mix", 0))
	wantAnswers(t, got, "warms up for 50ms", "{}", "the file with the benchmarks of new: SHA-256", `"total":{"wall":1e-8}`,
		`"total":{"wall":4.5e-9}`, `"calls":0`)
	if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
		t.Errorf("%v is left in the treatment's folder, %v", left, err)
	}
}

// TestWrongBinaries says what is wrong instead of a figure, before anything is measured.
func TestWrongBinaries(t *testing.T) {
	for name, c := range map[string]struct{ old, fresh, want string }{
		"only one has it":   {more("", ""), more("extra", "result extra [1] [5]"), "only new has extra; leave out"},
		"it panics":         {more("bad", "echo \"'main' panicked\"; exit 101"), more("", ""), "status 101: 'main'"},
		"nothing written":   {more("bad", "true"), more("", ""), "0 results were written"},
		"another benchmark": {more("bad", "result other [1] [5]"), more("", ""), `the result is of "other"`},
		"garbage":           {more("bad", "result bad '{' '<'"), more("", ""), "criterion's sample.json"},
		"no calls":          {more("bad", "result bad '[0]' '[5]'"), more("", ""), "that is no time"},
		"negative":          {more("bad", "result bad '[1]' '[-5]'"), more("", ""), "that is no time"},
		"another unit":      {more("bad", "result bad '[1]' '[9e15]'"), more("", ""), "something other than time"},
		"too long":          {more("bad", "result bad 1 1; truncate -s 70M $CRITERION_HOME/*/*/*"), more("", ""), "longer"},
		"of two tools":      {more("", ""), fake, "one is of criterion and the other is a test binary"},
	} {
		dir := t.TempDir()
		script(t, filepath.Join(dir, "old"), c.old)
		script(t, filepath.Join(dir, "new"), c.fresh)
		_, _, err := made(t, Options{Dir: dir, Old: "old", New: "new"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"old", "new"} {
		script(t, filepath.Join(dir, name), more("", ""))
	}
	for want, o := range map[string]Options{
		"no benchmark of old matches -bench none": {Match: "none"},
		"error parsing regexp":                    {Match: "("},
		"--cpu-time: criterion tells":             {CPUTime: true},
		"packages and build flags":                {Packages: []string{"./..."}},
		"-cpu: only Go benchmarks":                {OnlyGo: []string{"cpu"}},
	} {
		o.Dir, o.Old, o.New = dir, "old", "new"
		if _, _, err := made(t, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// jar writes an archive that holds a file of that name.
func jar(t *testing.T, file, name, text string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err = errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// fakeJava answers as JMH 1.37 does; what a side does is in the jar's text, which the archive stores.
const fakeJava = `#!/bin/sh
work=org.example.Work.sized; mode=thrpt; unit=ops/s; n=
while [ $# -gt 0 ]; do
  case $1 in -rff) out=$2 ;; -jar) jar=$2 ;; -bm) mode=$2; unit=$3 ;; -tu) unit=$2/op ;; -p) n=$2 ;; esac
  last=$1; shift
done
one() { printf '{"benchmark":"%s","mode":"%s","vmName":"VM","vmVersion":"17",' "$1" "$2"
  printf '"params":{"size":"%s"},"primaryMetric":{"score":%s,"scoreUnit":"%s"}}' "$3" "$4" "$unit"; }
FAKE
case $n in
'') { printf '['; one $work $mode 1 50; printf ','; one $work avgt 4 70; printf ','; one $work thrpt 4 70; printf ']'
  } > "$out" ;;
size=1) { printf '['; one $work $mode 1 12.5; printf ']'; } > "$out" ;;
size=4) { printf '['; one $work $mode 4 40; printf ']'; } > "$out" ;;
esac
`

// withJava puts a fake java into the PATH.
func withJava(t *testing.T, does string) string {
	t.Helper()
	dir := t.TempDir()
	script(t, filepath.Join(dir, "java"), strings.Replace(fakeJava, "FAKE", does, 1))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, name := range []string{"old.jar", "new.jar"} {
		jar(t, filepath.Join(dir, name), benchmarkList, name)
	}
	return dir
}

func TestJMH(t *testing.T) {
	dir, folder := withJava(t, ""), t.TempDir()
	p, file, err := made(t, Options{Dir: dir, Old: "old.jar", New: "new.jar"})
	if err != nil || len(p.Benchmarks) != 2 || p.Tool != JMH || p.Benchmarks[1].Operation != "Work.sized_size_4" {
		t.Fatalf("%+v, %v", p, err)
	}
	got := asked(t, file, driver.Request{Do: driver.DoDescribe}, prepareIn("new.jar", folder),
		operate("Work.sized_size_1", 1), operate("Work.sized_size_4", 1))
	wantAnswers(t, got, "5 iterations of 200ms warm up and are not measured, 5 of 100ms are", "{}",
		`"total":{"wall":1.25e-8}`, `"total":{"wall":4e-8}`)
	wantAnswers(t, got, "old.jar ran on VM 17")
	if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
		t.Errorf("%v is left in the treatment's folder, %v", left, err)
	}
}

func TestWrongJars(t *testing.T) {
	for does, want := range map[string]string{
		`printf 'x\nIteration 1: <failure>\n\njava.lang.Error: oops\n%0900d\nat y\nat z\nat j\n' 1; exit 1`: "java.lang.Error: oops",
		`exit 0`:                    "JMH wrote no result",
		`echo '{' > "$out"; exit 0`: "JMH's result",
		`{ printf '['; one a.B.c ss 1 5; printf ']'; } > "$out"; exit 0`:                                       "SingleShotTime",
		`{ printf '['; one a.B.c avgt 1,2 5; printf ']'; } > "$out"; exit 0`:                                   "since it has a comma",
		`if [ "$n" = size=4 ]; then { printf '['; one $work $mode 4 '"NaN"'; printf ']'; } > "$out"; exit; fi`: `its result is "NaN" "ns/op" in mode "avgt"`,
		`printf '[]' > "$out"; exit 0`: "no benchmark of old.jar matches",
		`case $jar in *new*) { printf '['; one a.B.c avgt 1 5; printf ']'; } > "$out"; exit ;; esac`: "only old.jar has",
	} {
		dir := withJava(t, does)
		_, _, err := made(t, Options{Dir: dir, Old: "old.jar", New: "new.jar"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", does, err, want)
		}
	}
	dir := withJava(t, "")
	jar(t, filepath.Join(dir, "new.jar"), "META-INF/MANIFEST.MF", "")
	if _, _, err := made(t, Options{Dir: dir, Old: "old.jar", New: "new.jar"}); err == nil ||
		!strings.Contains(err.Error(), "has no JMH benchmarks") {
		t.Error(err)
	}
}

// TestEndOfContextEndsTheGroup: what a benchmark has started ends with it.
func TestEndOfContextEndsTheGroup(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "slow")
	script(t, file, "#!/bin/sh\nsleep 300 & echo $! > pid\nwait\n")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := runner{test: Test{Dir: dir}, env: os.Environ(), alone: true}.run(ctx, nil, file)
		ended <- err
	}()
	var pid int
	for until := time.Now().Add(10 * time.Second); pid == 0 && time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) || pid == 0 {
		t.Fatal(err, pid)
	}
	for until := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(stat), ") Z ") {
			break // ended, and nobody has waited for it
		}
		if time.Now().After(until) {
			t.Fatalf("process %d lives", pid)
		}
	}
}

// TestOutputIsBounded: a benchmark that prints without end fills no memory, and its last words are kept.
func TestOutputIsBounded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "loud")
	script(t, file, "#!/bin/sh\nhead -c 20000000 /dev/zero | tr '\\0' 'x'\necho; echo 'panic: last words'\nexit 3\n")
	out, err := runner{test: Test{Dir: dir}, env: os.Environ()}.run(t.Context(), nil, file)
	if err == nil || !strings.Contains(err.Error(), "panic: last words") || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
	if len(out.end) > 2*mostOutput || !out.dropped {
		t.Errorf("%d bytes were kept", len(out.end))
	}
}
