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

// markerFile is in every folder that a build made. A folder without it is never removed.
const markerFile = ".tare-built.json"

// markerSchema is the version of a marker's format.
const markerSchema = "tare.built/v1"

// mostMarker bounds what is read of a marker, in bytes.
const mostMarker = 4 << 10

// A marker says which folder it was made for: a copy elsewhere is not valid. Its modification time is when the folder
// was last looked up.
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
		return fmt.Errorf("write the marker of a built folder: %w", err)
	}
	return nil
}

// marked returns the marker in dir, and when it was last changed; ok is false if there is no readable marker.
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

// parseMarker parses a marker. It must have the right format, and the name of a single folder.
func parseMarker(text []byte) (m marker, ok bool) {
	err := json.Unmarshal(text, &m)
	return m, err == nil && m.Schema == markerSchema && m.Name != "" && m.Name != "." && m.Name != ".." &&
		filepath.Base(m.Name) == m.Name
}

// touch records that a folder was looked up just now. A folder from before there were markers gets one: its name
// contains a hash of its inputs, so tare made it. In a read-only cache nothing is removed, so no marker is needed.
func touch(dir string) {
	now := (clock.System{}).Now()
	err := os.Chtimes(filepath.Join(dir, markerFile), now, now)
	if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	was, err := os.Stat(dir)
	if err == nil && mark(dir, filepath.Base(dir)) == nil {
		_ = os.Chtimes(dir, was.ModTime(), was.ModTime()) // the build time; losing it does no harm
	}
}
