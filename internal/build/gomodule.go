package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A GoModule is a program whose sources are embedded, including go.sum, which pins its dependencies.
type GoModule struct {
	Files   Files    // the sources
	Hashed  string   // the form of their paths in the hash: see Files.Hash
	Flags   []string // of go build: "-tags", "x"
	LDFlags string
	Version string // its version; empty if unused
	Binary  string // name of the result
}

// goSettings are the user's settings that a build keeps: where modules come from, and where they and compiled packages
// are cached.
var goSettings = []string{
	"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOVCS", "GOAUTH", "GOCACHE", "GOMODCACHE",
	"GOTMPDIR", "GOCACHEPROG",
}

// goHost are variables that Go needs to reach a module proxy on this host, and to find its own files. All others,
// including secrets, are withheld from a build, since it runs git and the compilers.
var goHost = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "NETRC", "GOROOT", "GOPATH",
}

// goFixed override the user's other settings, which would only change this build. GOENV is off, since its file could
// set them again.
var goFixed = []string{
	"GOENV=off", "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local",
	"GO111MODULE=on",
	"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH, "GOAMD64=", "GOARM64=", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=",
}

// A Go is an installed toolchain.
type Go struct {
	Path      string
	Version   string // "go1.26.8"
	Cache     string // GOCACHE
	ModCache  string // GOMODCACHE
	Temporary string // GOTMPDIR; empty: the system's
	env       []string
}

// FindGo looks for a Go toolchain in the PATH that getenv gives. The error is a *GoFault.
func FindGo(ctx context.Context, getenv func(name string) (string, bool)) (Go, error) {
	path, ok := Look("go", getenv)
	if !ok {
		return Go{}, &GoFault{Fault: NoGo, Says: "no Go toolchain was found in PATH"}
	}
	args := append([]string{"env", "-json", "GOVERSION"}, goSettings...)
	// Run outside of every module, so that none can request another toolchain, and without the user's flags.
	env := []string{"GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-mod=mod"}
	// the last two locate the user's settings
	keep := slices.Concat(goSettings, goHost, []string{"GOENV", "XDG_CONFIG_HOME"})
	out, err := Step{Path: path, Args: args, Dir: string(filepath.Separator), Env: env, Keep: keep}.Run(ctx)
	if ctx.Err() != nil {
		return Go{}, ctx.Err()
	}
	said := map[string]string{}
	if err == nil {
		err = json.NewDecoder(strings.NewReader(out[max(0, strings.Index(out, "{")):])).Decode(&said) // it may warn before
	}
	if err != nil || said["GOVERSION"] == "" {
		return Go{}, &GoFault{
			Fault: NoGo,
			Says:  fmt.Sprintf("no Go toolchain that works: %s does not say its version (%v): %s", path, err, first(out)),
		}
	}
	g := Go{
		Path: path, Version: said["GOVERSION"], Cache: said["GOCACHE"], ModCache: said["GOMODCACHE"],
		Temporary: said["GOTMPDIR"],
		env:       slices.Clone(goFixed),
	}
	for _, name := range goSettings {
		if v := said[name]; v != "" {
			g.env = append(g.env, name+"="+v)
		}
	}
	return g, nil
}

// markVariable is in the environment of a build's processes: the folder that they fill.
const markVariable = "TARE_BUILD"

// within calls do with the environment of a build that fills dir. Its temporary files are there, so that the next build
// removes those of a killed one, unless the user has named another folder for them.
func (g Go) within(dir string, do func(env []string) error) error {
	env := append(slices.Clone(g.env), markVariable+"="+dir)
	if g.Temporary != "" {
		return do(env)
	}
	tmp, err := os.MkdirTemp(dir, "tmp-")
	if err != nil {
		return err
	}
	err = do(append(env, "GOTMPDIR="+tmp))
	return errors.Join(err, os.RemoveAll(tmp))
}

// Packages is the number of packages of a program, including the standard library.
type Packages struct {
	All   int
	Stale int // those that Go still has to compile
}

// Packages downloads what the module in work needs, where Files.Unpack put it, and counts packages. progress receives
// Go's messages. The error is a *GoFault or the context's.
func (g Go) Packages(ctx context.Context, m GoModule, work string, progress func(line string)) (Packages, error) {
	args := []string{"list", "-deps", "-trimpath", "-f", "{{if .Stale}}stale{{else}}fresh{{end}}"}
	out, err := Step{
		Path: g.Path, Dir: work, Env: g.env, Keep: goHost, Args: append(append(args, m.Flags...), "."),
		Progress: progress,
	}.Run(ctx)
	if err != nil {
		return Packages{}, explain(ctx, out, err)
	}
	var n Packages
	for line := range strings.Lines(out) {
		switch strings.TrimSpace(line) {
		case "stale":
			n.All++
			n.Stale++
		case "fresh":
			n.All++
		}
	}
	return n, nil
}

// Build makes dir/m.Binary from the sources in work, where Files.Unpack put them, and removes the sources. progress
// receives the output of "go build -v": the path of each package when its compilation begins, and messages, which
// contain a space; nil: the output is ignored. The error is a *GoFault or the context's.
func (g Go) Build(ctx context.Context, m GoModule, work, dir string, progress func(line string)) error {
	args := []string{
		"build", "-trimpath", "-ldflags", strings.TrimSpace("-s -w " + m.LDFlags), "-o",
		filepath.Join(dir, m.Binary),
	}
	if progress != nil {
		args = append(args, "-v")
	}
	args = append(append(args, m.Flags...), ".")
	if err := g.within(dir, func(env []string) error {
		out, err := Step{Path: g.Path, Dir: work, Env: env, Keep: goHost, Args: args, Progress: progress}.Run(ctx)
		return explain(ctx, out, err)
	}); err != nil {
		return err
	}
	return os.RemoveAll(work)
}

// Fault is a kind of failure of a Go toolchain that is due to the host, not to the module.
type Fault string

// The faults.
const (
	NoGo        Fault = "no-go"       // there is none that works
	TooOld      Fault = "too-old"     // for the module
	Unreachable Fault = "unreachable" // a module could not be fetched
	Altered     Fault = "altered"     // a module is not the one that is pinned
	NoSpace     Fault = "no-space"    // a disk is full
	Killed      Fault = "killed"      // a compiler or linker was killed, usually by the kernel when memory is short
	Other       Fault = "other"
)

// A GoFault says why a toolchain could not build.
type GoFault struct {
	Fault Fault
	Says  string // one line, in the toolchain's words
	Tail  string // the end of its output
}

// Error implements error.
func (f *GoFault) Error() string {
	if f.Fault == Other {
		return f.Says + "\n" + f.Tail
	}
	return f.Says
}

// faultWords identify faults by their messages, in the order of checking: a full disk can look like an unreachable
// proxy.
var faultWords = []struct {
	fault Fault
	words []string
}{
	{NoSpace, []string{"no space left on device", "disk quota exceeded"}},
	{TooOld, []string{"go.mod requires go >=", "invalid go version '"}},
	{Altered, []string{"checksum mismatch", "SECURITY ERROR"}},
	{Unreachable, []string{
		"dial tcp", "no such host", "Could not resolve host", "module lookup disabled", "connection refused",
		"connection reset",
		"network is unreachable", "i/o timeout", "TLS handshake timeout", "x509: ", "404 Not Found", "403 Forbidden",
		"410 Gone", "502 ", "503 ", "504 ",
	}},
	{Killed, []string{"signal: killed"}},
}

// explain derives a GoFault from the output of a failed build; nil: it has not failed.
func explain(ctx context.Context, out string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, f := range faultWords {
		for _, words := range f.words {
			if strings.Contains(out, words) {
				return &GoFault{Fault: f.fault, Says: lineWith(out, words), Tail: Tail(out)}
			}
		}
	}
	if strings.Contains(err.Error(), "signal: killed") { // the go command itself
		return &GoFault{Fault: Killed, Says: "go: " + err.Error(), Tail: Tail(out)}
	}
	return &GoFault{Fault: Other, Says: err.Error(), Tail: Tail(out)}
}

// most bounds a quoted line, in bytes.
const most = 300

// lineWith returns the first line that contains the words, shortened for quoting.
func lineWith(out, words string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, words) {
			return cut(line)
		}
	}
	return first(out)
}

// first returns the first line that is not about a download.
func first(out string) string {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "go: downloading ") {
			return cut(line)
		}
	}
	return "it did not say why"
}

func cut(line string) string {
	line = strings.TrimSpace(line)
	return strings.ToValidUTF8(line[:min(len(line), most)], "")
}

// Make unpacks and builds: it leaves only the module's binary in dir.
func (g Go) Make(ctx context.Context, m GoModule, dir string) error {
	work := filepath.Join(dir, "work")
	if err := m.Files.Unpack(work); err != nil {
		return err
	}
	return g.Build(ctx, m, work, dir, nil)
}
