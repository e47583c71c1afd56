package engine

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tare/internal/build"
	"tare/internal/files"
)

// xacmlVersions are the engines' own versions, which xacml/*.sha256 pin.
var xacmlVersions = map[Kind]string{ATT: "AT&T XACML 4.0.0", AuthzForce: "AuthzForce 21.0.1"}

// xacmlSources are the Java sources of the engines' servers, and their libraries with checksums.
//
//go:embed xacml
var xacmlSources embed.FS

// jvmArgs are the same for both engines, and for every run: -Xmx bounds the heap, so that memory can be compared, and
// not what lies outside, where a planted leak grows; the idle limits are the HTTP server's, whose defaults (200
// connections, 30 s) would close the generator's. Our server has that one share its port, by its own fields.
var jvmArgs = []string{
	"-Xmx512m", "-XX:MaxDirectMemorySize=64g", "-Dsun.net.httpserver.nodelay=true",
	"-Dsun.net.httpserver.maxIdleConnections=10000", "-Dsun.net.httpserver.idleInterval=86400",
	"--add-opens=jdk.httpserver/sun.net.httpserver=ALL-UNNAMED",
}

// xacmlRecipe returns how an engine is built.
func xacmlRecipe(k Kind, h Host) (build.Recipe, error) {
	files, err := build.ReadFiles(xacmlSources, "xacml")
	b := javaBuild{kind: k, host: h, sources: files}
	return build.Recipe{Name: fmt.Sprintf("xacml-%s-%s", k, files.Hash("xacml/%s")), Lock: "java", Make: b.build}, err
}

// findXACML builds an engine, if that has not been done, and says how its JVM is started.
func findXACML(ctx context.Context, k Kind, h Host) (Launch, error) {
	java, err := findJava(ctx, k, h)
	if err != nil {
		return Launch{}, err
	}
	r, err := xacmlRecipe(k, h)
	if err != nil {
		return Launch{}, err
	}
	dir, err := h.cache().Get(ctx, r)
	if err != nil {
		return Launch{}, missing(k, err)
	}
	jars, err := checkJars(k, filepath.Join(dir, "lib"))
	if err != nil {
		return Launch{}, err
	}
	path := append([]string{filepath.Join(dir, "classes")}, jars...)
	args := append(slices.Clone(jvmArgs), "-cp", strings.Join(path, string(filepath.ListSeparator)), "tare."+string(k)+
		".Main")
	return Launch{Kind: k, Path: java.path, Args: args, Version: xacmlVersions[k] + ", Java " + java.version, Java: true},
		nil
}

// seekXACML is findXACML without building.
func seekXACML(ctx context.Context, k Kind, h Host) (there bool, err error) {
	if _, err := findJava(ctx, k, h); err != nil {
		return false, err
	}
	r, err := xacmlRecipe(k, h)
	if err != nil {
		return false, err
	}
	dir, ok, err := h.cache().Has(r.Name)
	switch {
	case err != nil:
		return false, missing(k, err)
	case ok:
		_, err := checkJars(k, filepath.Join(dir, "lib"))
		return err == nil, err
	}
	_, err = findJavac(k, h)
	return false, err
}

// checkJars compares the libraries in dir with those that are pinned, all of them and nothing else, and returns their
// paths in order.
func checkJars(k Kind, dir string) ([]string, error) {
	all, err := libraries(k)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: read its libraries: %w", k, err)
	}
	pinned, paths := map[string]string{}, []string{}
	for _, l := range all {
		pinned[l.name()] = l.sum
	}
	for _, e := range entries {
		text, err := files.Read(filepath.Join(dir, e.Name()), mostLibrary)
		if err != nil {
			return nil, fmt.Errorf("%s: read its libraries: %w", k, err)
		}
		if got := sumOf(text); got != pinned[e.Name()] {
			return nil, otherJars(k, dir, fmt.Sprintf("found %s with SHA-256 %s", e.Name(), got))
		}
		delete(pinned, e.Name())
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	for name := range pinned {
		return nil, otherJars(k, dir, name+" is missing")
	}
	return paths, nil
}

func otherJars(k Kind, dir, how string) error {
	return fmt.Errorf("%s: the libraries in %s are not those that tare pins (areas/decision/engine/%s): %s; remove "+
		"the folder %s to have them fetched again",
		k, dir, pinsOf(k), how, filepath.Dir(dir))
}
