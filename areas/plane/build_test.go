package plane

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
	"tare/internal/clock"
	"tare/rigs/hosttest"
)

// A toolchain is a made-up Go: shell scripts for what its commands do.
type toolchain struct {
	version    string
	modules    string // folder; holds Kubernetes if it exists
	list, make string
}

const (
	listed = "echo go: downloading k8s.io/kubernetes v1.36.3 >&2; echo fresh; echo stale; echo stale"
	// making writes the file after -o: a binary that says its version.
	making = `while [ "$1" != -o ]; do shift; done; printf '#!/bin/sh\n%s\n' "$SAYS" > "$2"; chmod 700 "$2"; echo k8s.io/kubernetes; echo tare/plane`
)

// usual is a toolchain that works.
func usual(t *testing.T) toolchain {
	t.Helper()
	return toolchain{version: "go1.26.8", modules: t.TempDir(), list: listed, make: making}
}

// host has nothing but the toolchain, and notes what it tells.
func (g toolchain) host(t *testing.T, cache string) (h Host, told *[]string) {
	t.Helper()
	bin, caches := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "says"), []byte(says136+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script(t, filepath.Join(bin, "go"), `read -r SAYS < "${0%/*}/says"
case $1 in
env) echo '{"GOVERSION": "`+g.version+`", "GOPROXY": "https://modules.example", "GOCACHE": "`+caches+`", "GOMODCACHE": "`+g.modules+`"}';;
list) `+g.list+`;;
build) `+g.make+`;;
*) exit 9;;
esac`)
	told = new([]string)
	return Host{
		Cache: cache, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Tell: func(line string) { *told = append(*told, line) }, Clock: standing{},
		Getenv: func(name string) (string, bool) {
			if name != "PATH" {
				return "", false
			}
			return bin, true
		},
	}, told
}

// standing is a clock on which no time passes.
type standing struct{}

var _ clock.Clock = standing{}

func (standing) Now() time.Time { return time.Time{} }
func (standing) Sleep(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestBuiltOnceAndKept: it is built where it is not there, once for each toolchain; and it is still found when the
// toolchain has gone.
func TestBuiltOnceAndKept(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "ca[che")
	h, told := usual(t).host(t, cache)
	if b, ok := Cached(t.Context(), V136, h); ok {
		t.Fatalf("%+v is cached before it is built", b)
	}
	built, err := Find(t.Context(), V136, h)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Binary{
		Path: built.Path, Version: V136, Kubernetes: "v1.36.3", Etcd: "v3.6.8",
		Go: "go1.26.8",
	}); built != want || !strings.HasPrefix(built.Path, cache) {
		t.Errorf("%+v, want %+v", built, want)
	}
	want := []string{
		"fetching the Go modules of Kubernetes 1.36: about 90 MB, once",
		"compiling Kubernetes 1.36 from its Go modules: about 3 minutes on two cores, once",
	}
	if diff := cmp.Diff(want, *told); diff != "" {
		t.Error(diff)
	}
	if left, err := os.ReadDir(filepath.Dir(built.Path)); err != nil || len(left) != 2 { // its marker
		t.Errorf("beside the binary: %v (%v)", left, err)
	}
	broken := usual(t)
	broken.make = "exit 1"
	again, _ := broken.host(t, cache)
	none := again
	none.Getenv = func(string) (string, bool) { return "", false }
	for name, h := range map[string]Host{"again": again, "without Go": none} {
		if b, err := Find(t.Context(), V136, h); err != nil || b != built {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
		if b, ok := Cached(t.Context(), V136, h); !ok || b != built {
			t.Errorf("%s: %+v, %v", name, b, ok)
		}
	}
	broken.version = "go1.26.9"
	newer, _ := broken.host(t, cache)
	if b, ok := Cached(t.Context(), V136, newer); ok {
		t.Errorf("%+v was built by another Go", b)
	}
	if _, err := Find(t.Context(), V136, newer); err == nil {
		t.Error("nothing was built by the newer Go")
	}
	if b, ok := Cached(t.Context(), V124, h); ok {
		t.Errorf("%+v is of 1.24", b)
	}
	for name, c := range map[string]struct {
		host Host
		want bool
	}{"its own Go": {h, true}, "without Go": {none, true}, "a newer Go": {newer, false}} {
		current, err := c.host.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if folder := filepath.Base(filepath.Dir(built.Path)); current(folder) != c.want ||
			current("1.36-0123456789ab-go1.26.8") {
			t.Errorf("%s: it would use %s: %v, want %v", name, folder, current(folder), c.want)
		}
	}
}

// TestNewestWithoutGo: of several that were built, the last; and none that is being built.
func TestNewestWithoutGo(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{
		"1.36-0-go1.26.7", "1.36-0-go1.26.8", "1.36-1-go1.26.9", "1.36-0-go1.27.1.5.tmp",
		"1.24-0-go1.27",
	} {
		at := time.Unix(int64(1000+i), 0)
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700),
			os.Chtimes(filepath.Join(dir, name), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "1.36-0-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := newestFolder(filepath.Join(dir, "1.36-0-")); got != filepath.Join(dir, "1.36-0-go1.26.8") ||
		!ok || err != nil {
		t.Errorf("%q, %v, %v", got, ok, err)
	}
	if got, ok, err := newestFolder(filepath.Join(dir, "1.36-2-")); ok || err != nil {
		t.Errorf("%q, %v, %v", got, ok, err)
	}
}

// TestBuildIsIndependent of what the user has set for builds of their own, but goes where they get modules from.
func TestBuildIsIndependent(t *testing.T) {
	for _, v := range []string{
		"GOFLAGS=-tags=evil", "GOWORK=/evil", "GOENV=/evil", "GOAMD64=v3", "CGO_ENABLED=1", "GOTOOLCHAIN=auto", "GOOS=plan9",
		"GOEXPERIMENT=evil",
		"GOPROXY=https://modules.example", "HTTPS_PROXY=http://proxy.example", "AWS_SECRET_ACCESS_KEY=secret",
		"GIT_SSH_COMMAND=evil",
	} {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	notes := t.TempDir()
	g := usual(t)
	for _, command := range []*string{&g.list, &g.make} {
		*command = `env > ` + notes + `/$1.env; echo "$@" > ` + notes + `/$1.args; ls > ` + notes + "/$1.files; " + *command
	}
	h, _ := g.host(t, filepath.Join(t.TempDir(), "cache"))
	if _, err := Find(t.Context(), V136, h); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"list", "build"} {
		text, err := os.ReadFile(filepath.Join(notes, command+".env"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off", "GOENV=off", "GOAMD64=", "CGO_ENABLED=0", "GOTOOLCHAIN=local",
			"GOOS=linux", "GOEXPERIMENT=",
			"GOPROXY=https://modules.example", "HTTPS_PROXY=http://proxy.example",
		} {
			if !strings.Contains("\n"+string(text), "\n"+want+"\n") {
				t.Errorf("go %s: the environment lacks %s", command, want)
			}
		}
		if strings.Contains(string(text), "secret") || strings.Contains(string(text), "GIT_SSH_COMMAND") {
			t.Errorf("go %s: it is given what it has no need to know: %s", command, text)
		}
		files, err := os.ReadFile(filepath.Join(notes, command+".files"))
		if err != nil || string(files) != "batch\ncomponent.go\ndriver\netcd.go\ngo.mod\ngo.sum\n"+
			"listen.go\nmain.go\npull\nrecordfile\nsequence\nsetting\nsocket.go\n" {
			t.Errorf("go %s: in its folder are %q (%v)", command, files, err)
		}
	}
	args, err := os.ReadFile(filepath.Join(notes, "build.args"))
	if err != nil || !strings.HasPrefix(string(args),
		"build -trimpath -ldflags -s -w -X k8s.io/component-base/version.gitVersion=v1.36.") {
		t.Errorf("%q (%v)", args, err)
	}
}

// TestBuildFails with a cause, a next step, and the other way out: a binary from elsewhere. Nothing is left but the
// lock.
func TestBuildFails(t *testing.T) {
	says := func(text string) string { return "cat >&2 <<'.'\n" + text + "\n.\nexit 1" }
	for name, c := range map[string]struct {
		version, list, make, reason, next string
	}{
		"too old": {
			list:   says("go: go.mod requires go >= 1.26.0 (running go 1.21.5; GOTOOLCHAIN=local)"),
			reason: "too old: go: go.mod requires go >= 1.26.0 (running go 1.21.5", next: "install Go 1.26",
		},
		"ancient": {list: says("go: errors parsing go.mod:\ngo.mod:3: invalid go version '1.26.0': must match format " +
			"1.23"), reason: "too old: go.mod:3: invalid go version", next: "install Go 1.26"},
		"mute": {version: " ", list: "exit 1", reason: "no Go toolchain that works", next: "install Go 1.26"},
		"no network": {
			list: says("go: downloading a\nmain.go:6:2: Get \"https://modules.example/a\": dial tcp: lookup " +
				"modules.example: no such host"), reason: "could not fetch the modules of Kubernetes: main.go:6:2:",
			next: "GOPROXY",
		},
		"offline": {
			list: says("main.go:6:2: module lookup disabled by GOPROXY=off"), reason: "lookup disabled",
			next: "GOPROXY",
		},
		"another sum": {
			list:   says("verifying k8s.io/kubernetes@v1.36.3: checksum mismatch\nSECURITY ERROR"),
			reason: "not the one that tare pins: verifying k8s.io", next: "GOPROXY",
		},
		"a full disk": {
			make:   says("k8s.io/api/core/v1: write /tmp/x: no space left on device"),
			reason: "a disk is full: k8s.io/api", next: "TMPDIR",
		},
		"killed child": {
			make:   says("k8s.io/api/core/v1: compile: signal: killed"),
			reason: "killed, most likely for want of memory: k8s.io/api", next: "GOMAXPROCS=1",
		},
		"killed": {
			make: "kill -9 $$", reason: "killed, most likely for want of memory: go: signal: killed",
			next: "GOMAXPROCS=1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := usual(t)
			for to, from := range map[*string]string{&g.version: c.version, &g.list: c.list, &g.make: c.make} {
				if from != "" {
					*to = strings.TrimSpace(from)
				}
			}
			h, _ := g.host(t, filepath.Join(t.TempDir(), "cache"))
			_, err := Find(t.Context(), V136, h)
			missing, ok := errors.AsType[*Missing](err)
			if !ok {
				t.Fatalf("error %v, want a Missing", err)
			}
			if !strings.Contains(missing.Reason, c.reason) || !strings.Contains(missing.Next, c.next) {
				t.Errorf("%+v, want %q and %q", missing, c.reason, c.next)
			}
			if !strings.Contains(missing.Next, "$TARE_PLANE, or embedded.binary in the experiment") {
				t.Errorf("%q does not name the other way out", missing.Next)
			}
			nothingLeft(t, h.Cache)
		})
	}
	h := bare(t, nil)
	_, err := Find(t.Context(), V124, h)
	if missing, ok := errors.AsType[*Missing](err); !ok || missing.Reason != "no Go toolchain was found in PATH" ||
		!strings.Contains(missing.Next, "$TARE_PLANE_PSP, or embedded.binary_psp") {
		t.Errorf("without Go: %v", err)
	}
}

func nothingLeft(t *testing.T, cache string) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		if e.Name() != lockName+".lock" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// TestBuildIsOursToMend: what no person can do anything about quotes the build.
func TestBuildIsOursToMend(t *testing.T) {
	g := usual(t)
	g.make = "echo 'main.go:1: syntax error' >&2; exit 1"
	h, _ := g.host(t, filepath.Join(t.TempDir(), "cache"))
	_, err := Find(t.Context(), V136, h)
	if _, ok := errors.AsType[*Missing](err); ok || err == nil || !strings.Contains(err.Error(), "syntax error") {
		t.Errorf("error %v", err)
	}
	g.make = making + "; SAYS=x; echo x > \"$2\""
	h, _ = g.host(t, filepath.Join(t.TempDir(), "cache"))
	_, err = Find(t.Context(), V136, h)
	if missing, ok := errors.AsType[*Missing](err); !ok || !strings.Contains(missing.Next, "remove the folder "+h.Cache) {
		t.Errorf("a binary that does not run: %v", err)
	}
}

// TestBuildEndsWithItsContext, at once, and says that the work is not lost.
func TestBuildEndsWithItsContext(t *testing.T) {
	g := usual(t)
	g.make = "echo k8s.io/api; sleep 300"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, _ := g.host(t, filepath.Join(t.TempDir(), "cache"))
	h.Tell = func(line string) {
		if strings.HasPrefix(line, "compiling ") {
			cancel()
		}
	}
	_, err := Find(ctx, V136, h)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "goes on from there") {
		t.Errorf("error %v", err)
	}
	nothingLeft(t, h.Cache)
}

// TestWaitsForAnotherBuild, of whichever version, and says so.
func TestWaitsForAnotherBuild(t *testing.T) {
	h, told := usual(t).host(t, filepath.Join(t.TempDir(), "cache"))
	begun, free := make(chan struct{}), make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		_, err := h.cache().Get(t.Context(),
			build.Recipe{Name: "1.24", Lock: lockName, Make: func(context.Context, string) error {
				close(begun)
				<-free
				return nil
			}})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	note, once := h.Tell, sync.OnceFunc(func() { close(free) })
	h.Tell = func(line string) {
		note(line)
		if strings.Contains(line, "waiting for it") {
			once()
		}
	}
	if _, err := Find(t.Context(), V136, h); err != nil {
		t.Error(err)
	}
	once()
	other.Wait()
	if len(*told) != 3 || (*told)[0] != "another process is compiling a control plane: waiting for it" {
		t.Errorf("told %q", *told)
	}
}

func TestAnnouncement(t *testing.T) {
	for stale, want := range map[int]string{
		2497: "compiling Kubernetes 1.36 from its Go modules: about 5 minutes on two cores, once",
		1300: "compiling Kubernetes 1.36 from its Go modules: about 3 minutes on two cores, once",
		600:  "compiling Kubernetes 1.36 from its Go modules: about 2 minutes on two cores, once",
		1:    "building Kubernetes 1.36 from what Go has compiled before: about a minute, once",
	} {
		if got := announcement(V136, build.Packages{All: 2497, Stale: stale}); got != want {
			t.Errorf("%d: %q, want %q", stale, got, want)
		}
	}
}

// A stepper is a clock on which time passes when the test says so.
type stepper struct {
	now   time.Time
	steps chan struct{}
}

func (s *stepper) Now() time.Time { return s.now }

func (s *stepper) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.steps:
		s.now = s.now.Add(d)
		return nil
	}
}

// TestProgress: a line every 20 s says what is done, and none comes after the end.
func TestProgress(t *testing.T) {
	c, told := &stepper{steps: make(chan struct{})}, make(chan string)
	p := newProgress(V136, Host{Tell: func(line string) { told <- line }, Clock: c})
	stop := p.start(t.Context())
	next := func() string {
		c.steps <- struct{}{}
		return <-told
	}
	var got []string
	p.fetched("go: downloading k8s.io/kubernetes v1.36.3")
	p.fetched("go: downloading k8s.io/api v0.36.3")
	p.fetched("fresh")
	got = append(got, next())
	p.compiles(build.Packages{All: 2497, Stale: 1903})
	got = append(got, next())
	for range 412 {
		p.compiled("k8s.io/api/core/v1")
	}
	p.compiled("# a warning with spaces")
	p.compiled("")
	for range 2 {
		next()
	}
	got = append(got, next())
	p.compiled("tare/plane")
	got = append(got, next())
	p.compiles(build.Packages{All: 2497, Stale: 414})
	p.linking = false
	got = append(got, next())
	stop()
	want := []string{
		"fetching the Go modules of Kubernetes 1.36: 2 so far, 20s",
		"compiling Kubernetes 1.36: 0 of 1903 packages, 40s",
		"compiling Kubernetes 1.36: 412 of 1903 packages, 1m40s",
		"linking Kubernetes 1.36: 2m0s",
		"linking Kubernetes 1.36: 2m20s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	select {
	case line := <-told:
		t.Errorf("told after the end: %q", line)
	case c.steps <- struct{}{}:
		t.Error("the clock is still waited for")
	default:
	}
}

// TestRoom: what goes to one disk is added up, and the first disk that is too small is told, with both figures.
func TestRoom(t *testing.T) {
	all := []need{{"/cache", 3000 << 20}, {"/tmp", 3300 << 20}, {"/home", 150 << 20}}
	for name, c := range map[string]struct {
		disks map[string]disk
		says  string
	}{
		"one disk": {
			map[string]disk{"/cache": {1, 6450 << 20}, "/tmp": {1, 6450 << 20}, "/home": {1, 6450 << 20}},
			"",
		},
		"one, a byte short": {map[string]disk{
			"/cache": {1, 6450<<20 - 1}, "/tmp": {1, 6450<<20 - 1},
			"/home": {1, 6450<<20 - 1},
		}, "the disk of /cache, /tmp, /home has "},
		"three": {
			map[string]disk{"/cache": {1, 3000 << 20}, "/tmp": {2, 3300 << 20}, "/home": {3, 150 << 20}},
			"",
		},
		"three, one is full": {
			map[string]disk{"/cache": {1, 3000 << 20}, "/tmp": {2, 1 << 30}, "/home": {3, 150 << 20}},
			"the disk of /tmp has 1 GiB free, and the build takes 3.22 GiB there",
		},
	} {
		err := checkRoom(all, func(path string) (disk, error) { return c.disks[path], nil })
		if _, ok := errors.AsType[*diskFullError](err); ok != (c.says != "") ||
			(ok && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	broken := errors.New("broken")
	if err := checkRoom(all, func(string) (disk, error) { return disk{}, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	s, err := V136.source()
	if err != nil {
		t.Fatal(err)
	}
	if missing, ok := errors.AsType[*Missing](explain(V136, s, &diskFullError{paths: []string{"/x"}, wanted: 1})); !ok ||
		!strings.Contains(missing.Next, "GOCACHE") {
		t.Errorf("%v", missing)
	}
}

func TestNeeds(t *testing.T) {
	modules := t.TempDir()
	g, m := build.Go{Cache: "/cache", ModCache: modules}, build.GoModule{Version: "v1.36.3"}
	if n, ok := toFetch(g, m); !ok || n != (need{modules, roomModules}) {
		t.Errorf("%+v, %v", n, ok)
	}
	if err := os.MkdirAll(filepath.Join(modules, "k8s.io", "kubernetes@v1.36.3"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n, ok := toFetch(g, m); ok {
		t.Errorf("%+v, and the modules are there", n)
	}
	both := cmp.AllowUnexported(need{})
	want := []need{{"/cache", 10 * roomPackage}, {"/dir", 10*roomPackage + roomLinked}, {"/dir", roomBinary}}
	if diff := cmp.Diff(want, toCompile(g, 10, "/dir"), both); diff != "" {
		t.Error(diff)
	}
	want[1].path = "/other"
	g.Temporary = "/other"
	if diff := cmp.Diff(want, toCompile(g, 10, "/dir"), both); diff != "" {
		t.Error(diff)
	}
}

// TestDiskOf a folder that is yet to be made is the one above.
func TestDiskOf(t *testing.T) {
	dir := t.TempDir()
	at, err1 := diskOf(dir)
	below, err2 := diskOf(filepath.Join(dir, "a", "b"))
	if err := errors.Join(err1, err2); err != nil || at.id != below.id || at.free <= 0 {
		t.Errorf("%+v, %+v, %v", at, below, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := diskOf(filepath.Join(file, "x")); err == nil {
		t.Errorf("below a file: %+v", d)
	}
}

// TestBinariesAreBuilt really builds, where that is wanted: it takes minutes, and the network where Go's own cache
// lacks something.
func TestBinariesAreBuilt(t *testing.T) {
	if os.Getenv("TARE_TEST_PLANE_BUILD") != "1" {
		hosttest.Missing(t, "it compiles Kubernetes", hosttest.Plane)
	}
	for _, v := range Versions() {
		t.Run(string(v), func(t *testing.T) {
			began := time.Now()
			b, err := Find(t.Context(), v, Host{Getenv: withoutNames, Tell: func(line string) { t.Log(line) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v after %v", b, time.Since(began).Round(time.Second/10))
			if b.Version != v || b.Etcd == "" || b.Go == "" {
				t.Errorf("%+v", b)
			}
			for _, component := range []string{APIServer, Scheduler, ControllerManager} {
				if out := says(t, b, component); out != "{\"ready\":{}}\nKubernetes "+b.Kubernetes+"\n" {
					t.Errorf("%s says %q, and is of %s", component, out, b.Kubernetes)
				}
			}
		})
	}
}

// says is what a component answers to its flag --version.
func says(t *testing.T, b Binary, component string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), b.Path, component)
	in, err := cmd.StdinPipe() // stays open, so that the component need not end
	if err == nil {
		_, err = in.Write([]byte(`{"args": ["--version"]}` + "\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s --version: %v", component, err)
	}
	return string(out)
}

// withoutNames is the environment, but for binaries that are named in it.
func withoutNames(name string) (string, bool) {
	if name == Variable || name == VariablePSP {
		return "", false
	}
	return os.LookupEnv(name)
}
