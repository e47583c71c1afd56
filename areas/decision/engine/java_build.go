package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tare/internal/build"
)

// Folders of the sources.
const (
	javaSources   = "src/main/java"
	javaResources = "src/main/resources"
)

// A javaBuild builds the server of one XACML engine. Nothing that it fetches is run, and nothing is compiled against a
// library before all have been checked.
type javaBuild struct {
	kind    Kind
	host    Host
	sources build.Files
}

// build leaves two folders in dir: lib, with the engine, and classes, with what our sources became.
func (b javaBuild) build(ctx context.Context, dir string) error {
	javac, err := findJavac(b.kind, b.host)
	if err != nil {
		return err
	}
	b.host.Log.Info("fetching and building an engine: done once, takes up to a few minutes",
		slog.String("engine", xacmlVersions[b.kind]))
	jars, err := b.fetch(ctx, filepath.Join(dir, "lib"))
	if err != nil {
		return err
	}
	work, classes := filepath.Join(dir, "work"), filepath.Join(dir, "classes")
	if err := b.sources.Unpack(work); err != nil {
		return fmt.Errorf("build %s: %w", b.kind, err)
	}
	files, err := javaFiles(filepath.Join(work, javaSources), string(b.kind))
	if err == nil {
		err = os.CopyFS(classes, os.DirFS(filepath.Join(work, javaResources)))
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", b.kind, err)
	}
	if err := b.compile(ctx, javac, files, jars, classes); err != nil {
		return err
	}
	return os.RemoveAll(work)
}

// fetch puts the engine's libraries into lib and returns their paths. All of them are what is pinned.
func (b javaBuild) fetch(ctx context.Context, lib string) ([]string, error) {
	all, err := libraries(b.kind)
	if err == nil {
		err = os.Mkdir(lib, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", b.kind, err)
	}
	from := b.host.source()
	defer from.client.CloseIdleConnections()
	for _, l := range all {
		err := from.put(ctx, l, lib)
		if failed, ok := errors.AsType[*unreachable](err); ok && ctx.Err() == nil {
			return nil, &Missing{
				Kind: b.kind, Reason: "could not fetch the engine: " + failed.Error(),
				Next: "give tare access to Maven Central for one run (HTTPS_PROXY names a proxy, " + Repository +
					" a mirror); afterwards no network is needed",
			}
		}
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", b.kind, err)
		}
	}
	return checkJars(b.kind, lib)
}

// javaFiles returns the sources of package tare and of its subpackage for one engine.
func javaFiles(root, kind string) ([]string, error) {
	var files []string
	for _, folder := range []string{"tare", "tare/" + kind} {
		found, err := fs.Glob(os.DirFS(root), folder+"/*.java")
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			files = append(files, filepath.Join(root, filepath.FromSlash(f)))
		}
	}
	return files, nil
}

// compile runs javac, which executes nothing of the libraries: it would run annotation processors that it finds there.
func (b javaBuild) compile(ctx context.Context, javac string, files, jars []string, classes string) error {
	args := []string{
		"-proc:none", "-implicit:none", "-encoding", "UTF-8", "--release", strconv.Itoa(needJava), "-d", classes,
		"-classpath", strings.Join(jars, string(filepath.ListSeparator)),
	}
	out, err := build.Step{Path: javac, Args: append(args, files...), Dir: filepath.Dir(classes)}.Run(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("build %s: %w", b.kind, errors.Join(ctx.Err(), err))
	case strings.Contains(out, "not supported") && strings.Contains(out, "release version"):
		return &Missing{Kind: b.kind, Reason: fmt.Sprintf("%s is older than Java %d", javac, needJava), Next: installJava}
	}
	return fmt.Errorf("build %s: %s: %w\n%s", b.kind, javac, err, build.Tail(out))
}
