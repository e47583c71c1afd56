package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"tare/engines"
	"tare/internal/build"
)

// The goals that Maven runs, by full coordinates: their versions are pinned, and nothing else of Maven's life cycle is fetched.
const (
	compileGoal = "org.apache.maven.plugins:maven-compiler-plugin:3.13.0:compile"
	resources   = "src/main/resources"
	copyGoal    = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
)

// A maven builds the server of one XACML engine.
type maven struct {
	kind    Kind
	host    Host
	sources []string
}

// find is the path of Maven.
func (m maven) find() (string, error) {
	mvn, ok := m.host.look("mvn")
	if !ok {
		return "", &Missing{Kind: m.kind, Reason: "mvn (Maven) was not found in PATH, and the engine has not been built yet", Next: installJava}
	}
	return mvn, nil
}

// build leaves two folders in dir: classes, with what our sources became, and lib, with the engine.
func (m maven) build(ctx context.Context, dir string) error {
	mvn, err := m.find()
	if err != nil {
		return err
	}
	m.host.Log.Info("building an engine with Maven: done once, takes up to a few minutes", slog.String("engine", xacmlVersions[m.kind]))
	work := filepath.Join(dir, "work")
	if err := build.Unpack(engines.Sources, m.sources, work, ""); err != nil {
		return fmt.Errorf("build %s: %w", m.kind, err)
	}
	args := []string{"-B", "-ntp", "-e", "-P", string(m.kind), compileGoal, copyGoal}
	if out, err := (build.Step{Path: mvn, Args: args, Dir: work}).Run(ctx); err != nil {
		return m.explain(ctx, out, err)
	}
	if _, err := checkJars(m.kind, filepath.Join(work, "target", "lib")); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(work, "target", "classes"), os.DirFS(filepath.Join(work, resources))); err != nil {
		return fmt.Errorf("build %s: %w", m.kind, err)
	}
	for _, name := range []string{"classes", "lib"} {
		if err := os.Rename(filepath.Join(work, "target", name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("build %s: %w", m.kind, err)
		}
	}
	return os.RemoveAll(work)
}

// unreachable are the ways in which Maven says that it did not get a file.
var unreachable = []string{"Could not transfer artifact", "Could not resolve dependencies", "could not be resolved", "Unknown host", "in offline mode"}

// explain tells what the host lacks from what is wrong with the build.
func (m maven) explain(ctx context.Context, out string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("build %s: %w", m.kind, errors.Join(ctx.Err(), err))
	}
	if strings.Contains(out, "No compiler is provided in this environment") {
		return &Missing{Kind: m.kind, Reason: "Maven found a Java runtime, but no compiler", Next: installJava}
	}
	for _, words := range unreachable {
		if strings.Contains(out, words) {
			return &Missing{
				Kind: m.kind, Reason: "Maven could not fetch the engine: " + mavenError(out),
				Next: "give Maven access to Maven Central (a proxy or a mirror belongs into ~/.m2/settings.xml) for one run; afterwards no network is needed",
			}
		}
	}
	return fmt.Errorf("build %s with Maven: %w\n%s", m.kind, err, build.Tail(out))
}

// mavenError is the first error that Maven reported, at most 300 bytes of it.
func mavenError(out string) string {
	const most = 300
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "[ERROR] "); ok {
			return strings.ToValidUTF8(text[:min(len(text), most)], "")
		}
	}
	return "it did not say why"
}
