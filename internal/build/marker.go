package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tare/internal/clock"
)

// markerFile lies in every folder that a build made. What does not have it is somebody else's, and is never removed.
const markerFile = ".tare-built.json"

// markerSchema names the form of a marker.
const markerSchema = "tare.built/v1"

// mostMarker bounds what is read of a marker, in bytes.
const mostMarker = 4 << 10

// A marker says which folder it was made for: a copy of it elsewhere is worth nothing. Its time of change is when the folder was last looked for.
type marker struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// mark writes the marker of the recipe called name into dir.
func mark(dir, name string) error {
	text, err := json.Marshal(marker{markerSchema, name})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, markerFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("mark what is built: %w", err)
	}
	return nil
}

// marked is the marker in dir, and when it was last changed; ok is false where there is none that can be read.
func marked(dir string) (m marker, at time.Time, ok bool) {
	file := filepath.Join(dir, markerFile)
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostMarker {
		return m, at, false
	}
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return m, at, false
	}
	m, ok = parseMarker(text)
	return m, info.ModTime(), ok
}

// parseMarker reads a marker: of our form, and for a name that is one folder's.
func parseMarker(text []byte) (m marker, ok bool) {
	err := json.Unmarshal(text, &m)
	return m, err == nil && m.Schema == markerSchema && m.Name != "" && m.Name != "." && m.Name != ".." && filepath.Base(m.Name) == m.Name
}

// touch notes that a folder was looked for just now. One that was built before there were markers gets its own: its name has a hash of what it was
// made from, which nobody else would have found. A cache that may only be read is none that anything is removed from.
func touch(dir string) {
	now := (clock.System{}).Now()
	err := os.Chtimes(filepath.Join(dir, markerFile), now, now)
	if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	was, err := os.Stat(dir)
	if err == nil && mark(dir, filepath.Base(dir)) == nil {
		_ = os.Chtimes(dir, was.ModTime(), was.ModTime()) // when it was built; if that is lost, little is
	}
}
