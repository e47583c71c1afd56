package plane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
)

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
	want := []need{{"/cache", 10 * roomPackage}, {"/tmp", 10*roomPackage + roomLinked}, {"/dir", roomBinary}}
	if diff := cmp.Diff(want, toCompile(g, 10, "/tmp", "/dir"), both); diff != "" {
		t.Error(diff)
	}
	want[1].path = "/other"
	g.Temporary = "/other"
	if diff := cmp.Diff(want, toCompile(g, 10, "/tmp", "/dir"), both); diff != "" {
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
