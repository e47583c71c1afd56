package gobench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tare/internal/build"
	"tare/internal/files"
)

// A source is where the code of a side comes from: Commit, Binary, or neither for a module.
type source struct {
	Label  string
	Says   string // what exactly it is
	Commit string // of the repository Repo
	Repo   string // its top folder
	Within string // the folder of Repo in which tare was started
	Root   string // the folder of a checkout, or of a module in Go's module cache
	Binary string // a test binary
	SHA256 string // of Binary
	Tool   Tool
}

// version matches a module at a version, such as golang.org/x/text@v0.14.0.
var version = regexp.MustCompile(`^([^@/\s]+\.[^@/\s]+(?:/[^@\s]+)*)@([^@{}\s]+)$`)

// sources finds both sides.
func (o Options) sources(ctx context.Context) (out [2]source, err error) {
	for i, name := range []string{o.Old, o.New} {
		m := version.FindStringSubmatch(name)
		switch {
		case name == "" || strings.HasPrefix(name, "-"):
			return out, wrong("%q is no revision", name)
		case build.Executable(filepath.Join(o.Dir, name)) || filepath.IsAbs(name) || strings.HasSuffix(name, ".jar"):
			out[i], err = o.binary(name)
		case m != nil:
			out[i], err = o.module(ctx, m[1], m[2])
		default:
			out[i], err = o.revision(ctx, name)
		}
		if err != nil {
			return out, err
		}
	}
	if (out[0].Binary == "") != (out[1].Binary == "") || out[0].Tool != out[1].Tool {
		return out, wrong("%s and %s: one is %s and the other is %s; name two of a kind", o.Old, o.New, out[0].kind(),
			out[1].kind())
	}
	if out[0].Label == out[1].Label && out[0].SHA256 != out[1].SHA256 {
		out[0].Label, out[1].Label = o.Old, o.New
	}
	if out[0].Label == out[1].Label {
		out[1].Label += " again"
	}
	return out, nil
}

// toolVariable matches the variables with which go, git and the compilers that they call are told how to work.
var toolVariable = regexp.MustCompile(
	`^(GO|CGO_|GIT_)|^(CC|CXX|AR|FC|PKG_CONFIG|PKG_CONFIG_PATH|SSH_AUTH_SOCK)$|(?i)^(https?|no|all)_proxy$`)

// toolVariables returns those that are set.
func toolVariables() (names []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); toolVariable.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// run runs go or git with what tells them how to work, and nothing else of the user's environment: what they build may
// run programs of the module.
func (o Options) run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	path, ok := build.Look(name, os.LookupEnv)
	if !ok {
		return "", wrong("there is no %s in PATH; install it", name)
	}
	return build.Step{Path: path, Args: args, Dir: dir, Keep: toolVariables(), Env: env}.Run(ctx)
}

// git runs git in the folder in which tare was started.
func (o Options) git(ctx context.Context, args ...string) (string, error) {
	out, err := o.run(ctx, o.Dir, nil, "git", args...)
	return strings.TrimSpace(out), err
}

func (o Options) revision(ctx context.Context, name string) (s source, err error) {
	if s.Repo, err = o.git(ctx, "rev-parse", "--show-toplevel"); err != nil {
		if w, ok := errors.AsType[*Wrong](err); ok || ctx.Err() != nil {
			return s, errors.Join(ctx.Err(), w)
		}
		return s, wrong("%q is neither a benchmark binary nor a module version (path@version), and for git revisions git "+
			"says: %s", name, s.Repo)
	}
	said, err := o.git(ctx, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
	if err != nil {
		return s, wrong("%s has no revision %q; git log --oneline lists some (git says: %s)", s.Repo, name, said)
	}
	s.Commit = said[strings.LastIndexByte(said, '\n')+1:]
	if s.Within, err = o.git(ctx, "rev-parse", "--show-prefix"); err != nil {
		return s, fmt.Errorf("git: %s", s.Within)
	}
	if s.Label = name; strings.HasPrefix(s.Commit, name) {
		s.Label = s.Commit[:10]
	}
	s.Says = "commit " + s.Commit
	return s, o.clean(ctx, s, name)
}

// clean fails if the revision is what is checked out and files differ from it: the user may mean the changed ones.
func (o Options) clean(ctx context.Context, s source, name string) error {
	head, err := o.git(ctx, "rev-parse", "HEAD")
	if err != nil || head != s.Commit {
		return nil //nolint:nilerr // what is checked out is another commit, or none
	}
	changed, err := o.git(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return fmt.Errorf("git: %s", changed)
	}
	if changed == "" {
		return nil
	}
	var files []string
	for line := range strings.Lines(changed) {
		if f := strings.Fields(line); len(f) > 1 && len(files) < 3 {
			files = append(files, f[1])
		}
	}
	return wrong("%s is built as it was committed, but %s was changed since; commit or stash the changes", name,
		strings.Join(files, ", "))
}

func (o Options) module(ctx context.Context, path, v string) (s source, err error) {
	out, err := o.run(ctx, o.Dir, []string{"GOFLAGS=-mod=mod"}, "go", "mod", "download", "-json", path+"@"+v)
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	if _, ok := errors.AsType[*Wrong](err); ok {
		return s, err
	}
	var m struct{ Version, Dir, Error string }
	if e := json.NewDecoder(strings.NewReader(out[max(0, strings.Index(out, "{")):])).Decode(&m); e != nil || m.Dir == "" {
		if m.Error == "" {
			m.Error = build.Tail(out)
		}
		return s, wrong("%s@%s cannot be downloaded: %s", path, v, m.Error)
	}
	return source{Label: m.Version, Says: path + "@" + m.Version, Root: m.Dir}, nil
}

// kind says what the source is.
func (s source) kind() string {
	switch {
	case s.Binary == "":
		return "a revision or a module"
	case s.Tool == GoTest:
		return "a test binary"
	}
	return "of " + string(s.Tool)
}

func (o Options) binary(name string) (s source, err error) {
	if len(o.Packages) > 0 || len(o.BuildFlags) > 0 {
		return s, wrong("%s is a test binary: packages and build flags have no meaning, leave them out", name)
	}
	s = source{Label: filepath.Base(name), Binary: name}
	if !filepath.IsAbs(name) {
		s.Binary = filepath.Join(o.Dir, name)
	}
	if s.SHA256, err = content(s.Binary); errors.Is(err, fs.ErrNotExist) {
		return s, wrong("there is no file %s", name)
	}
	if err == nil {
		s.Tool, err = toolOf(s.Binary)
	}
	s.Says = name + ", SHA-256 " + s.SHA256
	return s, err
}

// checkout puts the files of a commit into the cache. It uses an index of its own, so that the repository stays as it
// is; git archive would leave out what the repository excludes from its archives.
func (o Options) checkout(ctx context.Context, cache build.Cache, s *source) (err error) {
	if s.Commit == "" {
		return nil
	}
	s.Root, err = cache.Get(ctx, build.Recipe{
		Name: "gobench-source-" + s.Commit[:16], Lock: "gobenchsource", Within: time.Hour,
		Make: func(ctx context.Context, dir string) error {
			index := filepath.Join(dir, ".git-index")
			for _, args := range [][]string{
				{"read-tree", s.Commit}, {"checkout-index", "--all", "--prefix=" + dir + string(filepath.Separator)},
			} {
				if out, err := o.run(ctx, s.Repo, []string{"GIT_INDEX_FILE=" + index}, "git", args...); err != nil {
					return errors.Join(ctx.Err(), fmt.Errorf("check out %s: git %s: %w: %s", s.Label, args[0], err, build.Tail(out)))
				}
			}
			return os.Remove(index)
		},
	})
	if err == nil {
		s.Root, err = files.Resolved(s.Root) // go names folders so
	}
	return err
}
