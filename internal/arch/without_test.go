package arch

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestWithoutEachArea: without an area's folder and its lines in cmd/tare/main.go, everything else compiles, its tests
// too, and passes go vet. With TARE_TEST_WITHOUT_AREAS=1 the tests of make quick pass as well: a minute of CPU time for
// each area.
func TestWithoutEachArea(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it vets the module once for each area")
	}
	command := []string{"go", "vet", "./..."}
	if os.Getenv("TARE_TEST_WITHOUT_AREAS") == "1" {
		command = []string{"make", "-s", "quick"}
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	list, err := os.ReadFile("../../cmd/tare/main.go")
	if err != nil {
		t.Fatal(err)
	}
	areas := regexp.MustCompile(`(?m)^\t"tare/areas/([a-z0-9]+)"$`).FindAllSubmatch(list, -1)
	if len(areas) < 2 {
		t.Fatalf("cmd/tare/main.go imports %d areas", len(areas))
	}
	for _, m := range areas {
		name := string(m[1])
		t.Run(name, func(t *testing.T) {
			dir := copyWithout(t, filepath.Join("..", "..", "areas", name))
			lines := regexp.MustCompile(`(?m)^\t("tare/areas/` + name + `"|\t` + name + `\.Area\{\},)\n`)
			if n := len(lines.FindAll(list, -1)); n != 2 {
				t.Fatalf("cmd/tare/main.go has %d lines of area %s, want its import and its entry of the list", n, name)
			}
			main := filepath.Join(dir, "cmd", "tare", "main.go")
			if err := os.WriteFile(main, lines.ReplaceAll(list, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			// -trimpath, so that what was compiled here is not compiled again there.
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("without area %s: %v: %v\n%s", name, command, err, out)
			}
		})
	}
}

// copyWithout copies the module, without one of its folders and without what no package needs.
func copyWithout(t *testing.T, folder string) string {
	t.Helper()
	root, dir := filepath.Join("..", ".."), t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, path[len(root):])
		switch {
		case err != nil:
			return err
		case path == folder || d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "results"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
