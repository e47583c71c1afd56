package plane

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"tare/internal/build"
)

// Version names a release of Kubernetes, as "1.36".
type Version string

// The versions.
const (
	V136 Version = "1.36" // the current release
	V124 Version = "1.24" // the last with PodSecurityPolicy
)

// Versions returns all versions.
func Versions() []Version { return []Version{V136, V124} }

// sources has a folder for the Go module of each version, and shared for the files of both. They cannot share a
// package: two modules that pin Kubernetes cannot import each other.
//
//go:embed _kubernetes
var sources embed.FS

// A source is what a version is built from, and how the user names a binary instead.
type source struct {
	folder   string // in _kubernetes
	hashed   string // build.GoModule.Hashed, as in earlier versions of tare, so that what these have built is used
	binary   string
	variable string // names an existing binary
	field    string // the experiment's field with the same meaning
	flags    []string
}

// source returns what v is built from, or an error that names the known versions.
func (v Version) source() (source, error) {
	switch v {
	case V136:
		return source{
			folder: "1.36", hashed: "planesource/%s.txt", binary: "tare-plane", variable: Variable, field: "embedded.binary",
		}, nil
	case V124:
		return source{
			folder: "1.24", hashed: "pspsource/%s.txt", binary: "tare-plane-psp", variable: VariablePSP,
			field: "embedded.binary_psp", flags: []string{"-tags", "providerless"},
		}, nil
	}
	return source{}, fmt.Errorf("version %q of Kubernetes is not supported: tare runs %v", v, Versions())
}

// module describes how to build the binary, with the version of Kubernetes that go.mod pins, so that the API server
// reports the right version.
func (s source) module() (build.GoModule, error) {
	files, err := build.ReadFiles(sources, "_kubernetes/shared", "_kubernetes/"+s.folder)
	if err != nil {
		return build.GoModule{}, err
	}
	kubernetes, err := pinned(string(files["go.mod"]))
	if err != nil {
		return build.GoModule{}, fmt.Errorf("%s: %w", s.folder, err)
	}
	return build.GoModule{
		Files: files.WithoutTests(), Hashed: s.hashed, Flags: s.flags, Version: kubernetes,
		LDFlags: versionFlags(kubernetes), Binary: s.binary,
	}, nil
}

var requires = regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes (v\d+\.\d+\.\d+)$`)

// pinned returns the version of Kubernetes that a go.mod requires: "v1.36.3".
func pinned(mod string) (string, error) {
	m := requires.FindStringSubmatch(mod)
	if m == nil {
		return "", errors.New("go.mod does not require k8s.io/kubernetes")
	}
	return m[1], nil
}

// minorOf returns the release that a version belongs to: "1.36" for "v1.36.3"; empty if the version is malformed.
func minorOf(kubernetes string) Version {
	parts := strings.Split(strings.TrimPrefix(kubernetes, "v"), ".")
	if len(parts) < 3 {
		return ""
	}
	return Version(parts[0] + "." + parts[1])
}

// versionFlags set Kubernetes' own version at link time, as its release scripts do (hack/lib/version.sh).
func versionFlags(kubernetes string) string {
	major, minor, _ := strings.Cut(string(minorOf(kubernetes)), ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+pkg+".gitVersion="+kubernetes, "-X "+pkg+".gitMajor="+major, "-X "+pkg+".gitMinor="+minor)
	}
	return strings.Join(flags, " ")
}

// notInNames are characters of a Go development version that a folder's name should not have.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9.+-]+`)

// folderName returns the binary's folder in the cache: it depends on the sources, their flags, and the toolchain, which
// affects the binary's speed.
func folderName(v Version, m build.GoModule, toolchain string) string {
	words := append([]string{runtime.GOOS, runtime.GOARCH, m.LDFlags}, m.Flags...)
	return fmt.Sprintf("%s-%s-%s", v, m.Files.Hash(m.Hashed, words...), notInNames.ReplaceAllString(toolchain, "_"))
}
