package plane

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"tare/engines"
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

// A source is what a version is built from, and how the user names a binary instead.
type source struct {
	folder   string // in engines.Sources
	binary   string
	variable string // names an existing binary
	field    string // the experiment's field with the same meaning
	flags    []string
}

// source returns what v is built from, or an error that names the known versions.
func (v Version) source() (source, error) {
	switch v {
	case V136:
		return source{folder: "planesource", binary: "tare-plane", variable: Variable, field: "embedded.binary"}, nil
	case V124:
		return source{
			folder: "pspsource", binary: "tare-plane-psp", variable: VariablePSP, field: "embedded.binary_psp",
			flags: []string{"-tags", "providerless"},
		}, nil
	}
	return source{}, fmt.Errorf("version %q of Kubernetes is not supported: tare runs %v", v, Versions())
}

// module describes how to build the binary, with the version of Kubernetes that go.mod pins, so that the API server
// reports the right version.
func (s source) module() (build.GoModule, error) {
	files, err := build.Below(engines.Sources, s.folder)
	if err != nil {
		return build.GoModule{}, err
	}
	text, err := engines.Sources.ReadFile(s.folder + "/go.mod" + build.Embedded)
	if err != nil {
		return build.GoModule{}, err
	}
	kubernetes, err := pinned(string(text))
	if err != nil {
		return build.GoModule{}, fmt.Errorf("%s: %w", s.folder, err)
	}
	return build.GoModule{
		Sources: engines.Sources, Files: files, Flags: s.flags, Version: kubernetes,
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
func folderName(v Version, m build.GoModule, toolchain string) (string, error) {
	words := append([]string{runtime.GOOS, runtime.GOARCH, m.LDFlags}, m.Flags...)
	hash, err := build.Hash(m.Sources, m.Files, words...)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s-%s-%s", v, hash, notInNames.ReplaceAllString(toolchain, "_")), nil
}
