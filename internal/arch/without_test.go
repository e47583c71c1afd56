package arch

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"tare/rigs/hosttest"
)

// TestWithoutEachArea: without an area's folder and its lines in cmd/tare/main.go, cmd/tare compiles, its tests too,
// and passes go vet. No other package can notice: see TestOnlyMainImportsAreas. With TARE_TEST_LONG=1 the
// tests of make quick pass as well: a minute of CPU time for each area.
func TestWithoutEachArea(t *testing.T) {
	hosttest.SkipIfShort(t)
	command := vetWithout
	if hosttest.IsLong() {
		command = quickWithout
	}
	list, err := os.ReadFile(mainFile)
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
			lines := regexp.MustCompile(`(?m)^\t("tare/areas/` + name + `"|\t` + name + `\.Area\{\},)\n`)
			if n := len(lines.FindAll(list, -1)); n != 2 {
				t.Fatalf("cmd/tare/main.go has %d lines of area %s, want its import and its entry of the list", n, name)
			}
			cmd := command(t, filepath.Join("..", "..", "areas", name), lines.ReplaceAll(list, nil))
			if cmd.Err != nil {
				hosttest.Missing(t, cmd.Err.Error(), "have it on PATH")
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("without area %s: %v: %v\n%s", name, cmd.Args, err, out)
			}
		})
	}
}

const mainFile = "../../cmd/tare/main.go"

// vetWithout returns a command that vets cmd/tare with another main.go and without the Go files of a folder: by one
// analyzer, since all that is asked is whether it compiles. The compiler reads the other packages where they are, so
// that it finds them in its cache.
func vetWithout(t *testing.T, folder string, main []byte) *exec.Cmd {
	t.Helper()
	other := filepath.Join(t.TempDir(), "main.go")
	write(t, other, string(main))
	replace := map[string]string{absolute(t, mainFile): other}
	eachFile(t, folder, func(file string, _ []string) { replace[absolute(t, file)] = "" })
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	write(t, file, string(overlay))
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-assign", "-trimpath", "-overlay", file, "./cmd/tare")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "GOWORK=off")
	return cmd
}

// quickWithout returns a command that runs the tests of make quick with another main.go and without a folder.
func quickWithout(t *testing.T, folder string, main []byte) *exec.Cmd {
	t.Helper()
	dir := copyWithout(t, folder)
	write(t, filepath.Join(dir, "cmd", "tare", "main.go"), string(main))
	cmd := exec.CommandContext(t.Context(), "make", "-s", "quick")
	// -trimpath, so that what was compiled here is not compiled again there.
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath")
	return cmd
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
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
