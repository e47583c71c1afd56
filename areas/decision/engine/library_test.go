package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tare/internal/build"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

// pinnedTo returns a library with the checksum of this content.
func pinnedTo(content string) library {
	return library{path: "org/example/x/1/x-1.jar", sum: sumOf([]byte(content))}
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestLibraryMustMatchItsChecksum wherever it comes from; any other file does not reach the folder.
func TestLibraryMustMatchItsChecksum(t *testing.T) {
	const right = "right"
	endless := func(w http.ResponseWriter) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	says := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = w.Write([]byte(text)) }
	}
	for name, c := range map[string]struct {
		local  string // empty: none
		remote func(http.ResponseWriter)
		asked  bool
		err    string // empty: none
	}{
		"local":             {right, says("evil"), false, ""},
		"another one local": {"evil", says(right), true, ""},
		"remote":            {"", says(right), true, ""},
		"both others":       {"evil", says("evil too"), true, "is not what tare pins"},
		"nothing":           {"", says(""), true, "is not what tare pins"},
		"not found":         {"", func(w http.ResponseWriter) { http.Error(w, right, 404) }, true, "404 Not Found"},
		"endless":           {"", endless, true, "more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Store(true)
				if r.URL.Path != "/maven/org/example/x/1/x-1.jar" {
					t.Errorf("asked for %s", r.URL)
				}
				c.remote(w)
			}))
			defer server.Close()
			s, l, dir := source{local: t.TempDir(), remote: server.URL + "/maven", client: server.Client()}, pinnedTo(right),
				t.TempDir()
			if c.local != "" {
				writeText(t, filepath.Join(s.local, l.path), c.local)
			}
			err := s.put(t.Context(), l, dir)
			got, _ := os.ReadFile(filepath.Join(dir, "x-1.jar")) // compared below
			switch {
			case c.err == "" && (err != nil || string(got) != right):
				t.Errorf("got library %q, %v; want the pinned one", got, err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || got != nil):
				t.Errorf("%d bytes, error %v; want none and %q", len(got), err, c.err)
			}
			if asked.Load() != c.asked {
				t.Errorf("the repository was asked: %v", !c.asked)
			}
		})
	}
}

// TestLibrariesAreCheckedBeforeCompiling: a repository with another library fails the build before the compiler runs.
func TestLibrariesAreCheckedBeforeCompiling(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("evil"))
	}))
	defer server.Close()
	bin, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	if err := files.WriteProgram(filepath.Join(bin, "javac"), []byte("#!/bin/sh\n> "+ran+"\n")); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PATH": bin, Repository: server.URL}
	getenv := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	h := Host{Log: slog.New(slog.DiscardHandler), Getenv: getenv}
	for _, k := range []Kind{ATT, AuthzForce} {
		r, err := xacmlRecipe(k, h)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Make(t.Context(), t.TempDir())
		if missing := new(Missing); err == nil || errors.As(err, &missing) ||
			!strings.Contains(err.Error(), "is not what tare pins") {
			t.Errorf("%s: got %v, want an error about the checksum", k, err)
		}
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the compiler was run: %v", err)
	}
}

// TestAnnotationProcessorsDoNotRun: the compiler does not run an annotation processor that a library on the class path
// names.
func TestAnnotationProcessorsDoNotRun(t *testing.T) {
	hosttest.SkipIfShort(t)
	javac, err := exec.LookPath("javac")
	if err != nil {
		hosttest.Missing(t, "there is no javac", "apt-get install default-jdk-headless")
	}
	dir := t.TempDir()
	evil, classes, proof := filepath.Join(dir, "evil"), filepath.Join(dir, "classes"), filepath.Join(dir, "proof")
	services := filepath.Join(evil, "META-INF", "services")
	writeText(t, filepath.Join(dir, "Evil.java"), `import java.nio.file.*;
import java.util.Set;
import javax.annotation.processing.*;
import javax.lang.model.element.TypeElement;
@SupportedAnnotationTypes("*")
public class Evil extends AbstractProcessor {
  public boolean process(Set<? extends TypeElement> a, RoundEnvironment r) {
    try { Files.writeString(Path.of("`+proof+`"), "ran"); } catch (Exception e) { throw new RuntimeException(e); }
    return false;
  }
}`)
	writeText(t, filepath.Join(dir, "Good.java"), "class Good {}")
	writeText(t, filepath.Join(classes, "x"), "")
	b := javaBuild{kind: ATT}
	writeText(t, filepath.Join(services, "x"), "")
	if err := b.compile(t.Context(), javac, []string{filepath.Join(dir, "Evil.java")}, nil, evil); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(services, "javax.annotation.processing.Processor"), "Evil\n")
	if err := b.compile(t.Context(), javac, []string{filepath.Join(dir, "Good.java")}, []string{evil},
		classes); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(classes, "Good.class")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(proof); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the processor was run: %v", err)
	}
	if err := b.compile(t.Context(), javac, []string{filepath.Join(dir, "none.java")}, nil, classes); err == nil ||
		!strings.Contains(err.Error(), "none.java") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestLibrariesArePinned: each has a checksum, and its own name in the folder that all of them share.
func TestLibrariesArePinned(t *testing.T) {
	for k, want := range map[Kind]int{ATT: 18, AuthzForce: 44} {
		all, err := libraries(k)
		if err != nil || len(all) != want {
			t.Errorf("%s: %d libraries, want %d (%v)", k, len(all), want, err)
		}
		seen := map[string]bool{}
		for _, l := range all {
			if len(l.sum) != 64 || strings.Trim(l.sum, "0123456789abcdef") != "" || seen[l.name()] ||
				!strings.HasSuffix(l.path, ".jar") {
				t.Errorf("%s: bad checksum or name of %+v", k, l)
			}
			seen[l.name()] = true
		}
	}
	if _, err := libraries("none"); err == nil {
		t.Error("libraries of an unknown kind")
	}
}

// TestJarsAreCheckedAtEveryStart: a changed, an additional and a missing one are rejected.
func TestJarsAreCheckedAtEveryStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lib")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := checkJars(ATT, dir); err == nil ||
		!strings.Contains(err.Error(), ".jar is missing; remove the folder "+filepath.Dir(dir)) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range []string{"xacml-4.0.0.jar", "more.jar"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("evil"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := checkJars(ATT, dir); err == nil || !strings.Contains(err.Error(), "found "+name+" with SHA-256 ") {
			t.Errorf("%s: got %v, want an error with its checksum", name, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJavaVersion(t *testing.T) {
	for out, want := range map[string]struct {
		version string
		major   int
	}{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime":                 {"17.0.15", 17},
		"openjdk version \"21\" 2023-09-19":                                       {"21", 21},
		"java version \"1.8.0_392\"":                                              {"1.8.0_392", 8},
		"openjdk version \"25-ea\" 2025-09-16":                                    {"25-ea", 25},
		"Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version \"17.0.1\" 2021-10-19": {"17.0.1", 17},
		"": {"", 0}, "version \"x\"": {"", 0},
	} {
		if version, major := javaVersion(out); version != want.version || major != want.major {
			t.Errorf("version of %q: got %q, %d", out, version, major)
		}
	}
}

// TestVersionsMatchTheBuildFiles: a launch reports the versions in the build files.
func TestVersionsMatchTheBuildFiles(t *testing.T) {
	for file, want := range map[string]string{
		"_opa/go.mod.txt":         "github.com/open-policy-agent/opa v" + opa.version + "\n",
		"_openfga/go.mod.txt":     "github.com/openfga/openfga v" + openFGA.version + "\n",
		"xacml/att.sha256":        "/xacml-pdp-" + lastWord(xacmlVersions[ATT]) + ".jar\n",
		"xacml/authzforce.sha256": "/authzforce-ce-core-pdp-engine-" + lastWord(xacmlVersions[AuthzForce]) + ".jar\n",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
}

func lastWord(words string) string {
	f := strings.Fields(words)
	return f[len(f)-1]
}

// TestCurrentBuilds: Find uses exactly the builds that count as current.
func TestCurrentBuilds(t *testing.T) {
	h := Host{Cache: t.TempDir(), Getenv: func(string) (string, bool) { return "", false }}
	_, name, err := opa.module()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.Cache, name), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Find(t.Context(), OPA, h)
	if err != nil {
		t.Fatal(err)
	}
	current, err := h.Current()
	if err != nil {
		t.Fatal(err)
	}
	if folder := filepath.Base(filepath.Dir(l.Path)); !current(folder) || current("opa-1.0.0-0123456789ab") ||
		current("xacml-att-0123456789ab") {
		t.Errorf("%s is not current, or something else is", folder)
	}
	for _, k := range []Kind{ATT, AuthzForce} {
		if r, err := xacmlRecipe(k, h); err != nil || !current(r.Name) {
			t.Errorf("%s is not current: %v", r.Name, err)
		}
	}
	items, err := h.Built().Items(build.Survey{Wanted: current})
	if err != nil || len(items) != 1 || items[0].State != build.Current {
		t.Errorf("got builds %+v, %v; want one that is current", items, err)
	}
}

// FuzzXACML: whatever a file holds, it is refused or complete.
func FuzzXACML(f *testing.F) {
	f.Add([]byte(`<Policy xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17" PolicyId="a"/>`))
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///">]><PolicySet PolicySetId="a"><PolicyIdReference/></PolicySet>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := parseXACML("x.xml", text)
		if err == nil && (root == "" || bytes.Contains(text, []byte("<!DOCTYPE")) && !bytes.Contains(text, []byte("<!--")) &&
			!bytes.Contains(text, []byte("CDATA"))) {
			t.Errorf("%q is taken, as %q", text, root)
		}
	})
}
