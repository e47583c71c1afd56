package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"tare/internal/build"
)

// needJava is the oldest Java that the engines run on; our sources are compiled for it.
const needJava = 17

const installJava = "install a JDK of Java 17 or newer (Debian: apt-get install openjdk-17-jdk-headless), or leave " +
	"this engine out"

// A jvm is a Java runtime of the host.
type jvm struct {
	path    string
	version string // "17.0.15"
}

// LookJava looks for a program of the JDK in JAVA_HOME, and then in PATH.
func LookJava(h Host, name string) (path string, ok bool) {
	if home, set := h.Getenv("JAVA_HOME"); set && home != "" {
		if path := filepath.Join(home, "bin", name); build.Executable(path) {
			return path, true
		}
	}
	return h.look(name)
}

// findJavac returns the path of the compiler.
func findJavac(k Kind, h Host) (string, error) {
	path, ok := LookJava(h, "javac")
	if !ok {
		return "", &Missing{
			Kind: k, Reason: "javac was not found in PATH, and the engine has not been built yet",
			Next: installJava,
		}
	}
	return path, nil
}

// findJava returns the runtime of this host.
func findJava(ctx context.Context, k Kind, h Host) (jvm, error) {
	path, ok := LookJava(h, "java")
	if !ok {
		return jvm{}, &Missing{Kind: k, Reason: "java was not found in PATH", Next: installJava}
	}
	out, err := build.Step{Path: path, Args: []string{"-version"}}.Run(ctx)
	if err != nil {
		return jvm{}, &Missing{Kind: k, Reason: fmt.Sprintf("%s -version: %v", path, err), Next: installJava}
	}
	version, major := javaVersion(out)
	if major < needJava {
		return jvm{}, &Missing{Kind: k, Reason: fmt.Sprintf("%s is Java %q, and %d is the oldest that will do",
			path, version, needJava), Next: installJava}
	}
	return jvm{path: path, version: version}, nil
}

var javaSays = regexp.MustCompile(`version "((?:1\.)?(\d+)[^"]*)"`)

// javaVersion reads what "java -version" says: `openjdk version "17.0.15" 2025-04-15`, or "1.8.0_392" for Java 8. major
// is 0 if the text names no version.
func javaVersion(out string) (version string, major int) {
	m := javaSays.FindStringSubmatch(out)
	if m == nil {
		return "", 0
	}
	major, err := strconv.Atoi(m[2])
	if err != nil {
		return m[1], 0
	}
	return m[1], major
}
