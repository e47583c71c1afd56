package gobench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tare/internal/files"
)

// toolchain returns what else the result of a build depends on.
func (o Options) toolchain(ctx context.Context) (string, error) {
	out, err := o.run(ctx, o.Dir, nil, "go", "env", "GOVERSION", "GOFLAGS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED",
		"CGO_CFLAGS", "CGO_LDFLAGS", "GOEXPERIMENT", "GOWORK", "GODEBUG", "CC")
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("go env: %w: %s", err, firstLines(out))
	}
	return out, err
}

// build builds a side in its own folder below dir, or copies its test binary.
func (o Options) build(ctx context.Context, dir, name string, s source) (Side, error) {
	side := Side{Label: s.Label, Tests: map[string]Test{}}
	if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
		return side, err
	}
	if s.Binary != "" {
		file := filepath.Join(name, "0.test")
		pkg := "."
		if s.Tool != GoTest {
			file, pkg = filepath.Join(name, filepath.Base(s.Binary)), whole
		}
		err := copyFile(s.Binary, filepath.Join(dir, file))
		side.Tests[pkg] = Test{File: file, Dir: o.Dir, SHA256: s.SHA256}
		return side, err
	}
	work := filepath.Join(s.Root, s.Within)
	if _, err := os.Stat(work); err != nil {
		return side, wrong("%s has no folder %s", s.Label, s.Within)
	}
	packages, err := o.packages(ctx, work, s.Label)
	if err != nil {
		return side, err
	}
	for i, p := range packages {
		file := filepath.Join(name, fmt.Sprintf("%d.test", i))
		args := slices.Concat([]string{"test", "-c", "-buildvcs=false", "-o", filepath.Join(dir, file)}, o.BuildFlags,
			[]string{p.path})
		if out, err := o.run(ctx, work, nil, "go", args...); err != nil {
			return side, errors.Join(ctx.Err(), fmt.Errorf("%s: %s does not build: %s", s.Label, p.path, firstLines(out)))
		}
		t := Test{File: file, Dir: p.dir}
		if t.SHA256, err = content(filepath.Join(dir, file)); err != nil {
			return side, err
		}
		key, err := filepath.Rel(s.Root, p.dir)
		if err != nil {
			return side, err
		}
		side.Tests[key] = t
	}
	return side, nil
}

type goPackage struct{ path, dir string }

// mark begins the lines of packages, among what go says.
const mark = "tare-package\t"

// packages lists the packages with benchmarks.
func (o Options) packages(ctx context.Context, dir, label string) (out []goPackage, err error) {
	form := mark + "{{.ImportPath}}\t{{.Dir}}\t{{range .TestGoFiles}}{{.}}\t{{end}}{{range .XTestGoFiles}}{{.}}\t{{end}}"
	args := slices.Concat([]string{"list", "-f", form}, o.BuildFlags, o.Packages)
	said, err := o.run(ctx, dir, nil, "go", args...)
	if err != nil {
		return nil, errors.Join(ctx.Err(),
			wrong("%s: go list %s: %s", label, strings.Join(o.Packages, " "), firstLines(said)))
	}
	for line := range strings.Lines(said) {
		rest, ok := strings.CutPrefix(line, mark)
		words := strings.Split(strings.TrimSpace(rest), "\t")
		if !ok || len(words) < 3 {
			continue
		}
		has := slices.ContainsFunc(words[2:], func(file string) bool {
			text, err := files.Read(filepath.Join(words[1], file), mostProgram)
			return err != nil || bytes.Contains(text, []byte("func Benchmark")) // go says what is wrong with an unreadable one
		})
		if has {
			out = append(out, goPackage{path: words[0], dir: words[1]})
		}
	}
	if len(out) == 0 {
		return nil, wrong("%s: no package of %s has benchmarks; name others after --, such as -- ./...", label,
			strings.Join(o.Packages, " "))
	}
	return out, nil
}

// firstLines returns the beginning of what a compiler says: the first errors lead to the others.
func firstLines(out string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	})
	return strings.Join(lines[:min(len(lines), 8)], "\n  ")
}

func content(file string) (string, error) {
	f, err := files.ForReading(file)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it is read only
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

func copyFile(from, to string) error {
	text, err := files.Read(from, mostProgram)
	if err != nil {
		return err
	}
	return files.WriteProgram(to, text)
}
