package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksOutOfAFolderAreRefused: a link to private files, in the place of a file or a folder that a trusted
// experiment names, or of a folder on the way to it, shows none of them.
func TestLinksOutOfAFolderAreRefused(t *testing.T) {
	t.Parallel()
	bin := tareBinary(t)
	for _, name := range []string{
		"files of a body", "a bundle of policies", "requests", "a pod that is refused", "a Cedar set", "Cedar policies",
		"an OPA bundle", "a seccomp profile", "an AppArmor profile", "the experiment itself",
	} {
		for way, c := range map[string]struct{ path, link, to string }{
			"a file":     {"p.cedar", "p.cedar", "p.cedar"},
			"a folder":   {"p.cedar", "p.cedar", "."},
			"on the way": {"ci/p.cedar", "ci", "."},
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				f, file := pipeFiles[name], "x.yaml"
				if f.text == "" {
					file = c.path
				}
				needsAreas(t, f.area)
				private, dir := t.TempDir(), t.TempDir()
				put := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
				if err := errors.Join(os.Symlink(filepath.Join(private, c.to), filepath.Join(dir, c.link)),
					os.Mkdir(filepath.Join(dir, "policies"), 0o700), put(filepath.Join(dir, "policies", "p.yaml"), onePolicy),
					put(filepath.Join(dir, "x.yaml"), strings.ReplaceAll(f.text, "@PIPE@", c.path)),
					put(filepath.Join(private, "p.cedar"), "hunter2\n")); err != nil {
					t.Fatal(err)
				}
				refused := false
				for _, args := range [][]string{{"validate", file}, {"plan", file}, {"plan", "--try", file}} {
					out, _ := execTare(t, bin, dir, args...)
					if strings.Contains(out, "hunter2") {
						t.Errorf("tare %v shows a private file:\n%s", args, out)
					}
					refused = refused || strings.Contains(out, "name what it leads to")
					t.Logf("tare %v:\n%s", args, out)
				}
				if !refused {
					t.Error("no command refuses the link")
				}
			})
		}
	}
}
