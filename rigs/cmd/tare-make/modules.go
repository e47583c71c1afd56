package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// modules makes a folder in bin/modules for each Go module whose sources tare embeds. Its files are links, so that what
// is edited there is edited where it belongs.
func modules(_ context.Context, _ []string, out io.Writer) error {
	if err := os.RemoveAll("bin/modules"); err != nil {
		return err
	}
	return filepath.WalkDir("areas", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "go.mod.txt" {
			return err
		}
		from := filepath.Dir(path)
		to := filepath.Join("bin/modules", from[strings.LastIndex(from, "/_")+len("/_"):])
		_, err = fmt.Fprintln(out, to)
		if err := errors.Join(err, link(from, to)); err != nil {
			return err
		}
		shared := filepath.Join(from, "..", "shared")
		if info, err := os.Stat(shared); err == nil && info.IsDir() {
			return link(shared, to)
		}
		return nil
	})
}

// link makes the folders of from below to, with a link to each file. go.mod.txt and go.sum.txt lose their ending.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(at, 0o755)
		}
		target, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if base := d.Name(); base == "go.mod.txt" || base == "go.sum.txt" {
			at = strings.TrimSuffix(at, ".txt")
		}
		return os.Symlink(target, at)
	})
}
