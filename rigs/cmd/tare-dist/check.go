package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// check builds the release of this commit again, in another folder and without the build cache, and compares the files.
func (r *release) check(ctx context.Context, args []string, out io.Writer) error {
	if strings.HasSuffix(r.version, "dirty") {
		return errors.New("the sources differ from the commit: commit your changes first")
	}
	other, err := os.MkdirTemp("", "tare-dist-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(other) }()
	sources := filepath.Join(other, "tare")
	for _, c := range [][]string{
		{"git", "clone", "-q", "-n", "--shared", ".", sources},
		{"git", "-C", sources, "checkout", "-q", "--detach", r.commit},
		append([]string{"go", "run", "-C", sources, "-trimpath", "./rigs/cmd/tare-dist"}, args...),
	} {
		cmd := exec.CommandContext(ctx, c[0], c[1:]...)
		cmd.Env, cmd.Stderr = append(os.Environ(), "GOCACHE="+filepath.Join(other, "cache")), os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c, " "), err)
		}
	}
	if err := same(r.out, filepath.Join(sources, r.out)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "both builds are the same, byte for byte")
	return err
}

// same compares the files of two folders.
func same(a, b string) error {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		err := filepath.WalkDir(pair[0], func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(pair[0], name)
			if err != nil {
				return err
			}
			one, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			two, err := os.ReadFile(filepath.Join(pair[1], rel))
			if err != nil {
				return err
			}
			if !bytes.Equal(one, two) {
				return fmt.Errorf("the two builds differ in %s", rel)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
