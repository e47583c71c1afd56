package build

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/rigs/memtest"
)

// FuzzMarker: a folder belongs to tare only by a valid marker for its name, or for the build that makes it.
func FuzzMarker(f *testing.F) {
	for _, text := range []string{
		"", "{}", `{"schema":"tare.built/v1","name":"x"}`,
		`{"schema":"tare.built/v1","name":"../x"}`, `{"schema":"tare.built/v2","name":"x"}`, `[]`, "null",
	} {
		f.Add([]byte(text), "x")
	}
	f.Add([]byte(`{"schema":"tare.built/v1","name":"x"}`), "x.y.1.tmp")
	f.Add([]byte(`{"schema":"tare.built/v1","name":"x"}`), "x.y.tmp")
	cache := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		defer memtest.Bound(t, len(text)+len(name))()
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > 100 {
			return
		}
		dir := filepath.Join(cache, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, markerFile), text, 0o600)); err != nil {
			return
		}
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}()
		l := &locks{dir: cache}
		defer l.release()
		i, err := l.item(name, Survey{Wanted: func(string) bool { return false }, Now: time.Now()})
		if err != nil {
			return // a lock of this name cannot be
		}
		var m marker
		ours := len(text) <= mostMarker && json.Unmarshal(text, &m) == nil && m.Schema == "tare.built/v1" && m.Name != "" &&
			(m.Name == name || strings.HasPrefix(name, m.Name+".") && strings.HasSuffix(name, ".tmp"))
		if i.State != Strange && !ours {
			t.Errorf("%q with the marker %q is %s", name, text, i.State)
		}
	})
}

// TestBelow finds the folders of the cache that a process refers to, in whatever way.
func TestBelow(t *testing.T) {
	for text, want := range map[string]string{
		"/c/plane/1.36-x/tare-plane":                             "1.36-x",
		"/c/plane/1.36-x/tare-plane (deleted)":                   "1.36-x",
		"java\x00-cp\x00/c/plane/a/classes:/c/plane/b/lib/x.jar": "a b",
		"/c/plane/a":          "a",
		"/c/planes/a/x":       "",
		"/c/plane":            "",
		"tare\x00cache\x00-v": "",
	} {
		if got := strings.Join(below(text, "/c/plane"), " "); got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}
