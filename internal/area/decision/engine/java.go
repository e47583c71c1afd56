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

const installJava = "install a JDK of Java 17 or newer and Maven (Debian: apt-get install openjdk-17-jdk-headless maven), or leave this engine out"

// A jvm is a Java runtime of the host.
type jvm struct {
	path    string
	version string // "17.0.15"
}

// findJava looks where Maven does: in JAVA_HOME, and then in PATH.
func findJava(ctx context.Context, k Kind, h Host) (jvm, error) {
	path, ok := h.look("java")
	if home, set := h.Getenv("JAVA_HOME"); set && home != "" && build.Executable(filepath.Join(home, "bin", "java")) {
		path, ok = filepath.Join(home, "bin", "java"), true
	}
	if !ok {
		return jvm{}, &Missing{Kind: k, Reason: "java was not found in PATH", Next: installJava}
	}
	out, err := build.Step{Path: path, Args: []string{"-version"}}.Run(ctx)
	if err != nil {
		return jvm{}, &Missing{Kind: k, Reason: fmt.Sprintf("%s -version: %v", path, err), Next: installJava}
	}
	version, major := javaVersion(out)
	if major < needJava {
		return jvm{}, &Missing{Kind: k, Reason: fmt.Sprintf("%s is Java %q, and %d is the oldest that will do", path, version, needJava), Next: installJava}
	}
	return jvm{path: path, version: version}, nil
}

var javaSays = regexp.MustCompile(`version "((?:1\.)?(\d+)[^"]*)"`)

// javaVersion reads what "java -version" says: `openjdk version "17.0.15" 2025-04-15`, or "1.8.0_392" for Java 8. major is 0 if there is none.
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
