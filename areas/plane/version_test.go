package plane

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
)

// TestModules: what is built says the version that its go.mod pins, and that is of the release that was asked for.
func TestModules(t *testing.T) {
	for v, folder := range map[Version]string{V136: "1.36", V124: "1.24"} {
		s, err := v.source()
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.module()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join("_kubernetes", folder, "go.mod.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\tk8s.io/kubernetes "+m.Version+"\n") || minorOf(m.Version) != v {
			t.Errorf("%s: version %q", v, m.Version)
		}
		for _, flag := range []string{
			"-X k8s.io/component-base/version.gitVersion=" + m.Version, "-X k8s.io/component-base/version.gitMajor=1",
			"-X k8s.io/component-base/version.gitMinor=" + strings.TrimPrefix(string(v), "1."),
		} {
			if !strings.Contains(m.LDFlags+" ", flag+" ") {
				t.Errorf("%s: %q lacks %q", v, m.LDFlags, flag)
			}
		}
		files := slices.Sorted(maps.Keys(m.Files))
		isTest := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
		if len(files) < 5 || slices.ContainsFunc(files, isTest) {
			t.Errorf("%s: is built from %q", v, files)
		}
	}
}

// TestFolderNames differ with all that a binary is made of.
func TestFolderNames(t *testing.T) {
	s, err := V136.source()
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.module()
	if err != nil {
		t.Fatal(err)
	}
	fewer, tagged, linked := m, m, m
	fewer.Files = maps.Clone(m.Files)
	delete(fewer.Files, "main.go")
	tagged.Flags = []string{"-tags", "x"}
	linked.LDFlags += " -X a.b=c"
	seen := map[string]string{}
	for what, c := range map[string]struct {
		m  build.GoModule
		by string
	}{
		"plain": {m, "go1.26.8"}, "a file less": {fewer, "go1.26.8"}, "a tag more": {tagged, "go1.26.8"},
		"other words for the linker": {linked, "go1.26.8"},
		"another Go":                 {m, "go1.26.9"},
		"a Go of one's own":          {m, "devel go1.27-0123 Mon Nov 2 01:02:03 2026 ../x"},
		"no Go":                      {m, ""},
	} {
		name := folderName(V136, c.m, c.by)
		if other := seen[name]; other != "" {
			t.Errorf("%s and %s are both %s", what, other, name)
		}
		seen[name] = what
		if filepath.Base(name) != name || strings.ContainsAny(name, " :*[?") || !strings.HasPrefix(name, "1.36-") {
			t.Errorf("%s: %q is a bad name of a folder", what, name)
		}
	}
}

func TestPinned(t *testing.T) {
	for mod, want := range map[string]string{
		"module x\n\nrequire (\n\ta/b v1.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n": "v1.36.3",
		"module x\nrequire k8s.io/kubernetes v1.24.17\n":                        "v1.24.17",
		"module x\n":                             "",
		"require k8s.io/kubernetes-csi v1.2.3\n": "",
		"replace k8s.io/kubernetes => k8s.io/kubernetes v1.36.3\n":                                     "",
		"\tk8s.io/kubernetes v1.36.3 // indirect\n":                                                    "",
		"\t// k8s.io/kubernetes v1.36.3\n":                                                             "",
		"\tk8s.io/kubernetes v0.0.0-20260101000000-0123456789ab\n\tk8s.io/kubernetes/staging v1.2.3\n": "",
	} {
		got, err := pinned(mod)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", mod, got, err)
		}
	}
}

func TestMinorOf(t *testing.T) {
	got := map[string]Version{}
	for _, k := range []string{"v1.36.3", "v1.24.17", "1.30.0-rc.1", "v1.36", "(devel)", ""} {
		got[k] = minorOf(k)
	}
	want := map[string]Version{
		"v1.36.3": "1.36", "v1.24.17": "1.24", "1.30.0-rc.1": "1.30", "v1.36": "",
		"(devel)": "", "": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
