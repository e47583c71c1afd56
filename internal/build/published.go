package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Published is a program of a Go module that somebody else publishes. It is built as its go.mod and go.sum say.
type Published struct {
	Path, Version string // of the module
	// Sum is its checksum, "h1:…"; empty: only Go's checksum database vouches for it.
	Sum     string
	Package string // in the module: "./cmd/x"
	Binary  string // name of the result
	// Edits are made in a copy of the module.
	Edits []Edit
}

// An Edit is a text in a file of a module that is another one in what is built. Without an old text it is a file that
// the module lacks.
type Edit struct{ File, Old, New string }

// make puts the edit into a copy of the module.
func (e Edit) make(module string) error {
	file := filepath.Join(module, filepath.FromSlash(e.File))
	if e.Old == "" && e.New != "" {
		return e.add(file)
	}
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return &GoFault{Fault: Other, Says: "the module has no file " + e.File}
	}
	if strings.Count(string(text), e.Old) != 1 {
		return &GoFault{Fault: Other, Says: fmt.Sprintf("%s of the module does not hold once: %s", e.File, e.Old)}
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), e.Old, e.New, 1)), 0o600)
}

func (e Edit) add(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return &GoFault{Fault: Other, Says: "the module has a file " + e.File}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(e.New), 0o600)
}

// Fetch downloads the module and returns its folder, which is Go's and read-only. The error is a *GoFault or the
// context's.
func (g Go) Fetch(ctx context.Context, p Published) (dir string, err error) {
	// Outside of every module, so that none says what is fetched.
	out, err := Step{
		Path: g.Path, Dir: string(filepath.Separator), Env: g.env, Keep: goHost,
		Args: []string{"mod", "download", "-json", p.Path + "@" + p.Version},
	}.Run(ctx)
	if err != nil {
		return "", explain(ctx, out, err)
	}
	var said struct{ Dir, Sum string }
	if err := json.NewDecoder(strings.NewReader(out[max(0, strings.Index(out, "{")):])).Decode(&said); err != nil ||
		said.Dir == "" {
		return "", &GoFault{Fault: Other, Says: "go mod download does not say where the module is", Tail: Tail(out)}
	}
	if p.Sum != "" && p.Sum != said.Sum {
		return "", &GoFault{Fault: Altered, Says: fmt.Sprintf("checksum mismatch: %s@%s is %s, and %s is pinned", p.Path,
			p.Version, said.Sum, p.Sum)}
	}
	return said.Dir, nil
}

// MakePublished builds dir/p.Binary in the module's folder, which Fetch has returned. The error is a *GoFault or the
// context's.
func (g Go) MakePublished(ctx context.Context, p Published, module, dir string) (err error) {
	if len(p.Edits) > 0 {
		from := module
		if module, err = os.MkdirTemp(dir, "module-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(module)) }()
		if err := os.CopyFS(module, os.DirFS(from)); err != nil {
			return err
		}
		for _, e := range p.Edits {
			if err := e.make(module); err != nil {
				return err
			}
		}
	}
	return g.within(dir, func(env []string) error {
		out, err := Step{
			Path: g.Path, Dir: module, Env: env, Keep: goHost,
			Args: []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, p.Binary), p.Package},
		}.Run(ctx)
		return explain(ctx, out, err)
	})
}
